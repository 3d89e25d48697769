"""What was done on Prolific, noted beside the study so that it is not done twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dialometer.errors import DialometerError

LEDGER_FILE = "prolific.json"


class Ledger:
    """The file ``prolific.json`` of a study: the id of the study there, and every payment with how far it got."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / LEDGER_FILE
        self._noted: dict[str, Any] = {"study_id": "", "bonuses": []}
        if self.file.exists():
            try:
                self._noted |= json.loads(self.file.read_text(encoding="utf-8"))
            except (ValueError, TypeError) as error:
                raise DialometerError(
                    "the notes about Prolific cannot be read", where=str(self.file), remedy="restore the file"
                ) from error

    @property
    def study_id(self) -> str:
        """Prolific's id of the study, empty before a draft was made."""
        return str(self._noted["study_id"])

    def note_study(self, study_id: str) -> None:
        """Note the draft."""
        self._noted["study_id"] = study_id
        self._write()

    def payment(self, digest: str) -> dict[str, Any] | None:
        """What was noted about a list of bonuses with this hash."""
        return next((one for one in self._noted["bonuses"] if one["sha256"] == digest), None)

    def note_payment(self, entry: dict[str, Any]) -> None:
        """Note how far a payment got, in place of what was noted about the same list."""
        kept = [one for one in self._noted["bonuses"] if one["sha256"] != entry["sha256"]]
        self._noted["bonuses"] = [*kept, entry]
        self._write()

    def forget_payment(self, digest: str) -> None:
        """Take back a note about a list of which nothing was paid."""
        self._noted["bonuses"] = [one for one in self._noted["bonuses"] if one["sha256"] != digest]
        self._write()

    def _write(self) -> None:
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(self._noted, indent=1) + "\n", encoding="utf-8")
        part.replace(self.file)
