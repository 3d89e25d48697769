"""The code with which a rater withdraws: it follows from the session, so nothing has to be stored for it.

A session's id is drawn at random and leaves the database nowhere, so only whoever saw the code can know it; and the
code, being a hash, does not give the id away.
"""

from __future__ import annotations

import hashlib

from sqlalchemy import select

from dialometer.storage.database import Database
from dialometer.storage.schema import sessions

LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Digits and letters that are not taken for one another when they are copied by hand (Crockford's base 32)."""
N_LETTERS = 16
_READ_AS = str.maketrans("OIL", "011")


def withdrawal_code(session_id: str) -> str:
    """The code of a session, such as ``7Q4M-0ZKP-XW2T-93GB``: 80 bits, too many to guess."""
    digest = hashlib.sha256(b"dialometer withdrawal\x00" + session_id.encode()).digest()
    number = int.from_bytes(digest[:10], "big")
    letters = "".join(LETTERS[number >> 5 * place & 31] for place in reversed(range(N_LETTERS)))
    return "-".join(letters[at : at + 4] for at in range(0, N_LETTERS, 4))


def session_of_code(database: Database, code: str) -> str | None:
    """The id of the session with this code, however it was typed; None where there is none."""
    wanted = _plain(code)
    if len(wanted) != N_LETTERS:
        return None
    with database.reading() as connection:
        ids = connection.scalars(select(sessions.c.id)).all()
    return next((one for one in ids if _plain(withdrawal_code(one)) == wanted), None)


def _plain(code: str) -> str:
    return "".join(sign for sign in code.upper().translate(_READ_AS) if sign in LETTERS)
