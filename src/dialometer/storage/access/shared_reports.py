"""Links that anybody can read by: to copies of reports, which never change, and to studies for review. A link that is revoked
loses its copy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, select, update

from dialometer.errors import StorageError
from dialometer.storage.database import StorePart
from dialometer.storage.rows import to_json, token_hash
from dialometer.storage.schema import shared_reports as table


@dataclass(frozen=True, slots=True)
class SharedReport:
    """One link: when it was made and by whom, what its copy contains, and whether it was revoked."""

    id: int
    study: str
    about: Mapping[str, Any]
    made_by: str
    at_ms: int
    revoked_by: str | None
    revoked_at_ms: int | None


_COLUMNS = (table.c.id, table.c.study, table.c.about, table.c.made_by, table.c.at_ms)
_REVOKED = (table.c.revoked_by, table.c.revoked_at_ms)
REVIEW = {"for": "review"}
"""What is known about a link to a study for review: there is no copy, the study is shown as it is."""


class SharedReports(StorePart):
    """Links to copies of reports, of all studies."""

    def add(self, token: str, study: str, page: str, about: Mapping[str, Any], by: str, at_ms: int) -> None:
        """Keep a copy under the token of its link."""
        row = {"token_hash": token_hash(token), "study": study, "about": to_json(dict(about)), "page": page}
        with self.database.writing() as connection:
            connection.execute(insert(table), {**row, "made_by": by, "at_ms": at_ms})

    def of_study(self, study: str, *, for_review: bool = False) -> list[SharedReport]:
        """All links to copies of a study's reports, or to the study for review, the newest first."""
        is_kind = table.c.about == to_json(REVIEW) if for_review else table.c.about != to_json(REVIEW)
        query = select(*_COLUMNS, *_REVOKED).where(table.c.study == study, is_kind).order_by(table.c.id.desc())
        with self.database.reading() as connection:
            return [_link(row) for row in connection.execute(query)]

    def add_review(self, token: str, study: str, by: str, at_ms: int) -> None:
        """A link to a study for review."""
        self.add(token, study, "", REVIEW, by, at_ms)

    def review(self, token: str) -> SharedReport | None:
        """The link to a study for review; None where there is none, or no longer."""
        same = (table.c.token_hash == token_hash(token), table.c.revoked_at_ms.is_(None))
        query = select(*_COLUMNS, *_REVOKED).where(*same, table.c.about == to_json(REVIEW))
        with self.database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _link(row)

    def page(self, token: str) -> str | None:
        """The copy behind a link; None where there is none, or no longer."""
        query = select(table.c.page).where(table.c.token_hash == token_hash(token), table.c.revoked_at_ms.is_(None))
        with self.database.reading() as connection:
            return connection.scalar(query) or None  # a link for review has no copy

    def revoke(self, study: str, report_id: int, by: str, at_ms: int) -> None:
        """End a link; its copy is erased."""
        same = (table.c.id == report_id, table.c.study == study, table.c.revoked_at_ms.is_(None))
        ended = {"page": "", "revoked_by": by, "revoked_at_ms": at_ms}
        with self.database.writing() as connection:
            if connection.execute(update(table).where(*same).values(**ended)).rowcount != 1:
                raise StorageError("there is no such link", remedy="reload the page")


def _link(row: Any) -> SharedReport:
    return SharedReport(row.id, row.study, json.loads(row.about), *row[3:])
