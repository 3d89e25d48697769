"""The versions of the study that a database holds answers for."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import insert, select

from dialometer.errors import StorageError
from dialometer.storage.database import StorePart
from dialometer.storage.schema import study_versions


@dataclass(frozen=True, slots=True)
class StudyVersion:
    """A study as it stood when raters were shown it; sessions name its ``id``."""

    id: int
    name: str
    fingerprint: str
    spec_json: str
    at_ms: int


class Studies(StorePart):
    """One study per database, in as many versions as it went through."""

    def register(self, name: str, fingerprint: str, spec_json: str, at_ms: int) -> int:
        """The number of this version of the study; a version that is known already keeps its number.

        A database belongs to one study, since places are counted over the whole of it; another name is refused.
        """
        with self.database.assigning() as connection:
            rows = connection.execute(select(study_versions)).all()
            other_names = {row.name for row in rows} - {name}
            if other_names:
                raise StorageError(
                    f"this database holds the study '{other_names.pop()}', not '{name}'",
                    where=self.database.where,
                    remedy="give each study a database of its own",
                )
            for row in rows:
                if row.fingerprint == fingerprint:
                    return int(row.id)
            values = {"name": name, "fingerprint": fingerprint, "spec": spec_json, "at_ms": at_ms}
            key = connection.execute(insert(study_versions), values).inserted_primary_key
            assert key is not None
            return int(key[0])

    def versions(self) -> list[StudyVersion]:
        """All versions, the oldest first."""
        with self.database.reading() as connection:
            rows = connection.execute(select(study_versions).order_by(study_versions.c.id))
            return [StudyVersion(row.id, row.name, row.fingerprint, row.spec, row.at_ms) for row in rows]
