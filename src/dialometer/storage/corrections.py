"""Corrections: a new row that names the one it replaces, checked before it is written."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Table, select

from dialometer.errors import StorageError
from dialometer.model.session import Answer, Judgment
from dialometer.storage.schema import NO_TURN, answers, judgments

JUDGMENT_KEY = ("session_id", "item_id", "criterion", "system", "turn", "is_practice")
ANSWER_KEY = ("session_id", "part", "question")


class SubmissionRefused(StorageError):
    """A submission contradicts what is stored; ``token`` names it where it is known. Nothing of it was written."""

    def __init__(self, message: str, *, token: str = "", remedy: str = "") -> None:
        self.token = token
        super().__init__(message, where=f"submission {token}" if token else "", remedy=remedy)


def check_replaced(connection: Connection, entries: Sequence[Judgment | Answer]) -> None:
    """Refuse corrections of what is not there, of something else, or of what another correction has replaced."""
    _check(connection, judgments, JUDGMENT_KEY, [entry for entry in entries if isinstance(entry, Judgment)])
    _check(connection, answers, ANSWER_KEY, [entry for entry in entries if isinstance(entry, Answer)])


def _check(
    connection: Connection, table: Table, key: tuple[str, ...], corrections: Sequence[Judgment] | Sequence[Answer]
) -> None:
    if not corrections:
        return
    ids = [correction.replaces for correction in corrections]
    columns = [table.c[name] for name in ("id", *key)]
    stored = {row.id: tuple(row)[1:] for row in connection.execute(select(*columns).where(table.c.id.in_(ids)))}
    replaced = set(connection.scalars(select(table.c.replaces).where(table.c.replaces.in_(ids))))
    for correction in corrections:
        number = correction.replaces
        if number not in stored:
            raise SubmissionRefused(f"a correction replaces {table.name} {number}, which is not there")
        if stored[number] != _key_of(correction, key):
            raise SubmissionRefused(f"a correction replaces {table.name} {number}, which is about something else")
        if number in replaced:
            raise SubmissionRefused(f"{table.name} {number} was corrected already", remedy="correct the newest one")
        replaced.add(number)


def _key_of(entry: Judgment | Answer, key: tuple[str, ...]) -> tuple[object, ...]:
    values = (getattr(entry, name) for name in key)
    return tuple(NO_TURN if value is None else value for value in values)
