"""The code with which a rater withdraws.

It follows from the token in the rater's browser, so that every page can show it, and is stored only as a hash: neither a
session's id nor a copy of the database yields it. Each token that a session was given has its own code, and all of them
stay valid.
"""

from __future__ import annotations

import hashlib
import hmac

from sqlalchemy import Connection, insert, select

from dialometer.storage.schema import withdrawal_codes

LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Digits and letters that are not taken for one another when they are copied by hand (Crockford's base 32)."""
N_LETTERS = 16
_READ_AS = str.maketrans("OIL", "011")


def withdrawal_code(token: str) -> str:
    """The code of a session's token, such as ``7Q4M-0ZKP-XW2T-93GB``: 80 bits, too many to guess."""
    digest = hmac.digest(token.encode("utf-8", "surrogatepass"), b"dialometer withdrawal", "sha256")
    number = int.from_bytes(digest[:10], "big")
    letters = "".join(LETTERS[number >> 5 * place & 31] for place in reversed(range(N_LETTERS)))
    return "-".join(letters[at : at + 4] for at in range(0, N_LETTERS, 4))


def code_hash(code: str) -> str:
    """What is stored of a code, however it is typed."""
    return hashlib.sha256(_plain(code).encode()).hexdigest()


def note_code(connection: Connection, session_id: str, token: str) -> None:
    """Let the code of this token withdraw the session; noting it twice changes nothing."""
    row = {"code_hash": code_hash(withdrawal_code(token)), "session_id": session_id}
    known = select(withdrawal_codes.c.code_hash).where(withdrawal_codes.c.code_hash == row["code_hash"])
    if connection.scalar(known) is None:
        connection.execute(insert(withdrawal_codes), row)


def is_code(text: str) -> bool:
    """Whether a text could be a code."""
    return len(_plain(text)) == N_LETTERS


def _plain(code: str) -> str:
    return "".join(sign for sign in code.upper().translate(_READ_AS) if sign in LETTERS)
