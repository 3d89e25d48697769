"""Judgments that were collected elsewhere: a file comes in whole, once, or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from sqlalchemy import Connection, insert, select, update

from dialometer.errors import StorageError
from dialometer.model.session import Answer, Draw, Judgment, Source, State
from dialometer.storage.database import StorePart, Values, insert_many
from dialometer.storage.rows import answer_values, judgment_values
from dialometer.storage.schema import answers, exclusions, imports, judgments, people
from dialometer.storage.sessions import drawn, insert_sessions, next_ordinal

N_SESSIONS_PER_WRITE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSession:
    """One rater's answers in a file. ``rater`` is the name the file has for the rater; it is kept only with the person.

    A session with an ``exclusion_reason`` (be it empty) is excluded from the analysis.
    """

    id: str
    rater: str
    condition: Mapping[str, str] = field(default_factory=dict)
    cell: int = 0
    judgments: Sequence[Judgment] = ()
    answers: Sequence[Answer] = ()
    started_at_ms: int = 0
    finished_at_ms: int | None = None
    last_seen_at_ms: int = 0
    state: State = "completed"
    source: Source = "imported"
    consent_version: str = ""
    language: str = ""
    exclusion_reason: str | None = None


@dataclass(frozen=True, slots=True)
class ImportEntry:
    """A file that was imported; ``n_rows`` counts its judgments and answers."""

    id: int
    file_name: str
    sha256: str
    format: str
    n_rows: int
    at_ms: int


class Imports(StorePart):
    """Files with judgments."""

    def add(
        self,
        sessions: Iterable[ImportedSession],
        *,
        file_name: str,
        sha256: str,
        format: str,
        study_version: int,
        at_ms: int,
        platform: str = "import",
    ) -> ImportEntry:
        """Store the sessions of a file in one transaction; a file that is in already is refused.

        Raters of the same name on the same ``platform`` are one person, also across files. Imported sessions take the
        next ordinals but no slots. ``sessions`` is consumed as it is written, so a long file need not be in memory.
        """
        with self.database.assigning() as connection:
            known = connection.execute(select(imports).where(imports.c.sha256 == sha256)).one_or_none()
            if known is not None:
                raise StorageError(f"this file was imported before, as '{known.file_name}'", where=file_name)
            row = {"file_name": file_name, "sha256": sha256, "format": format, "n_rows": 0, "at_ms": at_ms}
            key = connection.execute(insert(imports), row).inserted_primary_key
            assert key is not None
            import_id = int(key[0])
            writing = _Import(connection, import_id, study_version, platform, at_ms, next_ordinal(connection))
            rest = iter(sessions)
            while chunk := list(islice(rest, N_SESSIONS_PER_WRITE)):
                writing.write(chunk)
            connection.execute(update(imports).where(imports.c.id == import_id).values(n_rows=writing.n_rows))
        return ImportEntry(import_id, file_name, sha256, format, writing.n_rows, at_ms)

    def all(self) -> list[ImportEntry]:
        """All files that were imported, the earliest first."""
        with self.database.reading() as connection:
            return [ImportEntry(*row) for row in connection.execute(select(imports).order_by(imports.c.id))]


@dataclass(slots=True)
class _Import:
    """One file while it is imported."""

    connection: Connection
    import_id: int
    study_version: int
    platform: str
    at_ms: int
    next_ordinal: int
    n_rows: int = 0

    def write(self, chunk: Sequence[ImportedSession]) -> None:
        for session in chunk:
            entries: list[Judgment | Answer] = [*session.judgments, *session.answers]
            if any(entry.session_id != session.id or entry.replaces is not None for entry in entries):
                raise StorageError("a session holds entries of another one, or corrections")
        rater_ids = self._raters(chunk)
        insert_sessions(self.connection, [self._row(session, rater_ids[session.rater]) for session in chunk])
        judged = [judgment_values(judgment) for session in chunk for judgment in session.judgments]
        answered = [answer_values(answer) for session in chunk for answer in session.answers]
        insert_many(self.connection, judgments, judged)
        insert_many(self.connection, answers, answered)
        excluded = [
            {"session_id": session.id, "is_excluded": True, "made_by": "import", "reason": session.exclusion_reason}
            for session in chunk
            if session.exclusion_reason is not None
        ]
        insert_many(self.connection, exclusions, [{**row, "at_ms": self.at_ms} for row in excluded])
        self.n_rows += len(judged) + len(answered)

    def _raters(self, chunk: Sequence[ImportedSession]) -> dict[str, str]:
        """Pseudonyms by the file's own names; new raters become people."""
        names = {session.rater for session in chunk}
        query = select(people.c.external_id, people.c.rater_id)
        known = self.connection.execute(
            query.where(people.c.platform == self.platform, people.c.external_id.in_(names))
        )
        rater_ids = dict(known.all())
        new = {name: secrets.token_hex(8) for name in sorted(names - rater_ids.keys())}
        row = {"platform": self.platform, "params": "{}"}
        insert_many(
            self.connection,
            people,
            [{**row, "rater_id": rater_id, "external_id": name} for name, rater_id in new.items()],
        )
        return rater_ids | new

    def _row(self, session: ImportedSession, rater_id: str) -> Values:
        draw = Draw(ordinal=self.next_ordinal, cell=session.cell, blocks=(), items={})
        self.next_ordinal += 1
        return {
            "id": session.id,
            "token_hash": None,
            "rater_id": rater_id,
            "study_version": self.study_version,
            "import_id": self.import_id,
            "source": session.source,
            "state": session.state,
            "consent_version": session.consent_version,
            "language": session.language,
            "is_excluded": session.exclusion_reason is not None,
            "started_at_ms": session.started_at_ms,
            "finished_at_ms": session.finished_at_ms,
            "last_seen_at_ms": session.last_seen_at_ms or session.started_at_ms,
            **drawn(draw, session.condition),
        }
