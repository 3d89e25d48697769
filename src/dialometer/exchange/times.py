"""Times in the forms that platforms write them, as milliseconds since 1970 (UTC)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_ZONES_H = {"UTC": 0, "GMT": 0, "PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "CST": -6, "CDT": -5, "EST": -5, "EDT": -4}
_BATCH = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2} \d{1,2} \d{1,2}:\d{2}:\d{2}) ([A-Z]{3}) (\d{4})")
_LEAST_S, _LEAST_MS = 1e8, 1e11
"""A number from here on counts seconds, or milliseconds; a smaller one is no time that judgments are from."""


def read_time_ms(text: str, time_format: str = "") -> int:
    """The moment that a text tells; a text without zone is read as UTC. Raises ValueError with a reason.

    Read are ISO 8601, seconds or milliseconds since 1970, and ``Mon Oct 21 08:51:04 PDT 2019``; anything else needs
    ``time_format`` in the notation of strptime, since 4/11 is in April or in November.
    """
    text = text.strip()
    try:
        moment = datetime.strptime(text, time_format) if time_format else _read(text)
        return round(_with_zone(moment).timestamp() * 1000)
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(_why(text, time_format)) from error


def _read(text: str) -> datetime:
    if re.fullmatch(r"\d+(\.\d+)?", text) and float(text) >= _LEAST_S:
        number = float(text)
        return datetime.fromtimestamp(number / 1000 if number >= _LEAST_MS else number, UTC)
    batch = _BATCH.fullmatch(text)
    if batch and batch[2] in _ZONES_H:
        moment = datetime.strptime(f"{batch[1]} {batch[3]}", "%b %d %H:%M:%S %Y")
        return moment.replace(tzinfo=timezone(timedelta(hours=_ZONES_H[batch[2]])))
    moment = datetime.fromisoformat(text)
    if "-" not in text[:8]:  # 20240908 is read as a date, but is more often a number
        raise ValueError(text)
    return moment


def _with_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _why(text: str, time_format: str) -> str:
    shown = text if len(text) <= 40 else text[:37] + "…"
    return f"'{shown}' is no time" + (f" of the form {time_format}" if time_format else " that can be read")
