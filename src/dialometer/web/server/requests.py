"""Reading forms and small JSON bodies, within limits."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request

from dialometer.flow.engine import RawAnswers
from dialometer.model.session import LAST_MS
from dialometer.web.server.failures import RequestError
from dialometer.web.server.submissions import SentScreen

Form = dict[str, list[str]]

MAX_FIELDS = 2000
MAX_OPENED = 100
"""Places of opened responses that are read; no screen has more."""
SENT_FORM = "dialometer.form"
"""Where a request keeps its form, so that a page about a failure can send it again."""
_SUBMISSION = re.compile(r"[\x21-\x7e]{1,200}")
_DEVICE = re.compile(r"[a-z][a-z \-]{0,31}")


_MOST_DIGITS = 9


def small_number(text: str) -> int | None:
    """A whole number of at most nine digits; None for anything else, such as other scripts' digits or thousands of them."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


class SmallNumber(Convertor[int]):
    """``{name:number}`` in the address of a page. Other numbers are no such page; Starlette's own ``int`` fails on long ones."""

    regex = f"[0-9]{{1,{_MOST_DIGITS}}}"

    def convert(self, value: str) -> int:
        """The number."""
        return int(value)

    def to_string(self, value: int) -> str:
        """Its digits."""
        return str(value)


register_url_convertor("number", SmallNumber())


class Unreadable(RequestError):
    """A request that its route cannot read."""


async def read_form(request: Request) -> Form:
    """The fields of a sent form, each with all its values in order."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Unreadable("this is not a form", remedy="send application/x-www-form-urlencoded")
    body = (await request.body()).decode("utf-8", "replace")
    form: Form = {}
    try:
        for name, value in parse_qsl(body, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="replace"):
            form.setdefault(name, []).append(value)
    except ValueError as error:
        raise Unreadable("the form has too many fields") from error
    request.scope[SENT_FORM] = form
    return form


async def read_json(request: Request) -> dict[str, Any]:
    """A JSON object; text that no database can store is refused."""
    body = await request.body()
    try:
        content = json.loads(body, parse_constant=_refuse_constant)
        json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Unreadable("the body is not JSON", remedy="send a JSON object") from error
    if not isinstance(content, dict):
        raise Unreadable("the body is not a JSON object", remedy="send a JSON object")
    return content


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def last_value(form: Mapping[str, list[str]], name: str) -> str:
    """The last value of a field, empty where it is missing."""
    values = form.get(name)
    return values[-1] if values else ""


def sent_from_form(form: Form, token: str, answers: RawAnswers, *, is_opening: bool = False) -> SentScreen:
    """A screen as a page sends it. Measurements of the page's script are used where they make sense."""
    submission = last_value(form, "token")
    if not _SUBMISSION.fullmatch(submission):
        raise Unreadable("the form has no token", remedy="reload the page")
    device = last_value(form, "device")
    return SentScreen(
        token=token,
        screen=last_value(form, "screen"),
        submission=submission,
        answers=answers,
        shown_at_ms=_whole(last_value(form, "shown_at_ms"), LAST_MS),
        first_input_at_ms=_whole(last_value(form, "first_input_at_ms"), LAST_MS),
        focus_lost_n=_whole(last_value(form, "focus_lost_n"), 100_000) or 0,
        focus_lost_s=_seconds(last_value(form, "focus_lost_s")),
        device=device if _DEVICE.fullmatch(device) else "",
        opened=tuple(dict.fromkeys(form.get("opened", ())))[:MAX_OPENED],
        is_opening=is_opening,
    )


def _whole(text: str, at_most: int) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= 16
    return min(int(text), at_most) if is_number else None


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return min(number, 1e7) if math.isfinite(number) and number > 0 else 0.0
