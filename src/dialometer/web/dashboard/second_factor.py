"""The second factor: six digits from an app on a phone (TOTP), or one of ten codes on paper.

Time-based one-time passwords of RFC 6238 with what every app expects: SHA-1, 30 seconds, six digits. Checked against the
test values of the RFC's appendix B.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from urllib.parse import quote, urlencode

PERIOD_S = 30
N_DIGITS = 6
N_RECOVERY_CODES = 10
_LETTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"


def new_secret() -> str:
    """A secret of 160 bits in the letters that apps take."""
    return base64.b32encode(secrets.token_bytes(20)).decode()


def code_at(secret: str, step: int, n_digits: int = N_DIGITS) -> str:
    """The digits of one period since 1970 (RFC 4226, section 5.3)."""
    digest = hmac.digest(base64.b32decode(secret), step.to_bytes(8, "big"), "sha1")
    place = digest[-1] & 15
    number = int.from_bytes(digest[place : place + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**n_digits:0{n_digits}d}"


def matching_step(secret: str, code: str, at_ms: int) -> int | None:
    """The period whose digits these are, this one or a neighbour, since clocks differ; None where there is none."""
    typed = "".join(code.split())
    if not (typed.isascii() and typed.isdigit()):
        return None
    now = at_ms // 1000 // PERIOD_S
    return next((step for step in (now, now - 1, now + 1) if hmac.compare_digest(code_at(secret, step), typed)), None)


def app_address(secret: str, name: str, host: str) -> str:
    """What the QR code holds: the address by which apps take a secret over."""
    issuer = f"dialometer {host}".strip()
    return (
        f"otpauth://totp/{quote(f'{issuer}:{name}')}?{urlencode({'secret': secret, 'issuer': issuer}, quote_via=quote)}"
    )


def new_recovery_codes() -> list[str]:
    """Codes to write down, each good once, of 50 bits: for a lost phone."""
    letters = ["".join(secrets.choice(_LETTERS) for _ in range(10)) for _ in range(N_RECOVERY_CODES)]
    return [f"{code[:5]}-{code[5:]}" for code in letters]


def clean_code(code: str) -> str:
    """A recovery code as it is stored, however it was typed."""
    return "".join(code.split()).replace("-", "").upper()
