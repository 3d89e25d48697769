"""Links that are signed: a name in an address is believed only together with a signature that the study's server made.

The signature is an HMAC over platform, rater and time limit. Its key is in the study's database, which only its servers
read, and never among the files of a study that are shared.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from dialometer.errors import DialometerError
from dialometer.recruit.people_list import as_csv, check_address, read_people

SIGNATURE, EXPIRES = "sig", "expires"
"""The parameters of a signed link; ``expires`` counts seconds since 1970 and may be left out."""
LINK_COLUMN = "link"
N_BYTES = 18


def signature(key: bytes, platform: str, rater: str, expires: str = "") -> str:
    """What only a holder of the key can write behind this rater's name."""
    message = "\x00".join(("dialometer link", platform, rater, expires)).encode("utf-8", "surrogatepass")
    return base64.urlsafe_b64encode(hmac.digest(key, message, "sha256")[:N_BYTES]).decode()


def signature_problem(key: bytes, platform: str, rater: str, query: Mapping[str, str], now_s: float) -> str:
    """What is wrong with a link's signature; empty where it is right and in time."""
    signature_text, expires = query.get(SIGNATURE, ""), query.get(EXPIRES, "")
    if not signature_text:
        return "the link is not signed"
    right = signature(key, platform, rater, expires)
    if not hmac.compare_digest(signature_text.encode("utf-8", "surrogatepass"), right.encode()):
        return "the link's signature is wrong"
    return "the link has expired" if expires and now_s >= int(expires) else ""


def signed_list(
    people: Path,
    address: str,
    *,
    key: bytes,
    platform: str,
    parameter: str,
    column: str = "",
    expires: str = "",
) -> tuple[str, int]:
    """A CSV list of people with a signed link for each, and how many there are.

    ``column`` holds the raters' names as the study shall know them; the first column by default.
    """
    check_address(address)
    header, rows = read_people(people)
    column = column or header[0]
    if column not in header:
        raise DialometerError(
            f"the list has no column '{column}'", where=str(people), remedy=f"give one of {', '.join(header)}"
        )
    kept = [name for name in header if name != LINK_COLUMN]
    made: list[list[str]] = []
    lines: dict[str, int] = {}
    for number, row in enumerate(rows, start=2):
        cells = dict(zip(header, row, strict=True))
        rater = cells[column].strip()
        if not rater or not rater.isprintable() or rater in lines:
            problem = (
                "nobody is named" if not rater else f"'{rater}' is on line {lines[rater]} too" if rater in lines else ""
            )
            raise DialometerError(
                problem or "the name cannot be part of a link", where=f"{people}:{number}", remedy="correct the list"
            )
        lines[rater] = number
        link = f"{address.rstrip('/')}/?{quote(parameter)}={quote(rater, safe='')}"
        link += f"&{EXPIRES}={expires}" if expires else ""
        made.append([*(cells[name] for name in kept), f"{link}&{SIGNATURE}={signature(key, platform, rater, expires)}"])
    return as_csv([*kept, LINK_COLUMN], made), len(made)
