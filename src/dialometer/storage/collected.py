"""The database of a study that is to be read: where nobody has come yet, that is said in so many words."""

from __future__ import annotations

from pathlib import Path

from dialometer.errors import NotEnoughData
from dialometer.model.file_names import DATABASE_FILE
from dialometer.storage.store import Store


def open_collected(folder: Path, database: str = "") -> Store:
    """The study's own database, or the one that is named; none is made."""
    own = folder / DATABASE_FILE
    if not database and not own.exists():
        raise NotEnoughData(
            "nothing has been collected in this study yet",
            where=str(own),
            remedy=f"collect judgments, try it with 'dialometer simulate {folder}', or name the database",
        )
    return Store.open(database or own, create=False)
