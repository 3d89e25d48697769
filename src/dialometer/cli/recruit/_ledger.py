"""What was done on a platform, noted beside the study so that it is not done twice; bonuses from a list, paid once."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialometer.cli.options import open_store
from dialometer.errors import DialometerError, ImportFileError, Problem
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import table_rows

if TYPE_CHECKING:
    from dialometer.model.study import Study
    from dialometer.recruit.platform import PlatformApi

LARGEST_BONUS = Decimal(1000)
"""A bonus beyond this is taken for a slip: platforms read 150 as 150.00, not as cents."""


class Ledger:
    """The file ``<platform>.json`` of a study: the id of the study there, and every payment with how far it got."""

    def __init__(self, folder: Path, platform: str) -> None:
        self.file = folder / f"{platform}.json"
        self._noted: dict[str, Any] = {"study_id": "", "bonuses": []}
        if self.file.exists():
            try:
                noted = json.loads(self.file.read_text(encoding="utf-8-sig"))
            except (ValueError, RecursionError):
                noted = None
            if not _are_notes(noted):
                raise DialometerError(
                    f"the notes about {platform} cannot be read", where=str(self.file), remedy="restore the file"
                )
            self._noted |= noted

    @property
    def study_id(self) -> str:
        """The platform's id of the study, empty before a draft was made."""
        return str(self._noted["study_id"])

    def note_study(self, study_id: str) -> None:
        """Note the draft."""
        self._noted["study_id"] = study_id
        self._write()

    def payment(self, digest: str) -> dict[str, Any] | None:
        """What was noted about a list of bonuses with this hash."""
        return next((payment for payment in self._noted["bonuses"] if payment["sha256"] == digest), None)

    def note_payment(self, entry: dict[str, Any]) -> None:
        """Note how far a payment got, in place of what was noted about the same list."""
        self._noted["bonuses"] = [*self._others(entry["sha256"]), entry]
        self._write()

    def forget_payment(self, digest: str) -> None:
        """Take back a note about a list of which nothing was paid."""
        self._noted["bonuses"] = self._others(digest)
        self._write()

    def _others(self, digest: str) -> list[dict[str, Any]]:
        return [payment for payment in self._noted["bonuses"] if payment["sha256"] != digest]

    def _write(self) -> None:
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(self._noted, indent=1) + "\n", encoding="utf-8")
        part.replace(self.file)


def _are_notes(noted: object) -> bool:
    """Whether a file's content is what this class writes."""
    bonuses = noted.get("bonuses", []) if isinstance(noted, dict) else None
    return isinstance(bonuses, list) and all(isinstance(entry, dict) and "sha256" in entry for entry in bonuses)


def read_bonuses(file: Path, study: Study, folder: Path, database: str) -> dict[str, str]:
    """Amounts by the platform's id of the rater. Pseudonyms are looked up; every problem is reported with its line."""
    source, found = SourceFile(file), Problems(str(file))
    source.probe()
    rows = list(table_rows(source, found, ("rater", "amount")))
    found.finish()
    if not rows:
        raise DialometerError(
            "the list needs the columns rater and amount", where=f"{file}:1", remedy="rater,amount, then R0001,1.50"
        )
    names = _names(study, folder, database)
    problems: list[Problem] = []
    amounts: dict[str, str] = {}
    for row in rows:
        line, rater, amount_text = row.line, row.cells["rater"].strip(), row.cells["amount"].strip()
        person = names.get(rater)
        if person is None:
            problems.append(Problem(f"nobody called '{rater}' took part", "check the name", str(file), line))
            continue
        amount = _amount(amount_text)
        if amount is None:
            problems.append(Problem(f"'{amount_text}' is not an amount", "such as 1.50", str(file), line))
        elif person in amounts:
            problems.append(Problem(f"'{rater}' is listed twice", "give one amount", str(file), line))
        else:
            amounts[person] = f"{amount:.2f}"
    if problems:
        raise ImportFileError(problems)
    return amounts


def pay_bonuses(
    api: PlatformApi, ledger: Ledger, study_id: str, file: Path, amounts: dict[str, str]
) -> list[dict[str, Any]]:
    """Set up and pay a list in parts. Each payment is noted before it is sent; a list is never paid twice."""
    from dialometer.recruit.platform import PlatformError, UnknownOutcome

    people = sorted(amounts.items())
    digest = hashlib.sha256(repr((study_id, people)).encode()).hexdigest()
    noted = ledger.payment(digest)
    if noted is not None:
        raise DialometerError(
            f"this list is noted as {noted['state']}",
            where=str(ledger.file),
            remedy="check on the platform what was paid; list only what is still owed",
        )
    entry: dict[str, Any] = {"sha256": digest, "file": file.name, "state": "begun", "payments": []}
    ledger.note_payment(entry)
    try:
        for at in range(0, len(people), api.n_per_bonus):
            payment = api.set_up_bonuses(study_id, dict(people[at : at + api.n_per_bonus]))
            part = {"id": payment.id, "total_cents": payment.total_cents, "state": "being paid"}
            entry["payments"].append(part)
            ledger.note_payment(entry)
            api.pay_bonuses(payment.id)
            part["state"] = "paid"
            ledger.note_payment(entry)
    except PlatformError as error:
        is_sure = not isinstance(error, UnknownOutcome)
        if is_sure and not any(part["state"] == "paid" for part in entry["payments"]):
            ledger.forget_payment(digest)  # refused before anything was paid: the list may be tried again
        raise
    entry["state"] = "paid"
    ledger.note_payment(entry)
    return list(entry["payments"])


def _names(study: Study, folder: Path, database: str) -> dict[str, str]:
    """The platform's id of each rater, by that id and by our pseudonym."""
    from dialometer.flow.review import platform_raters
    from dialometer.storage.table import rater_name

    with open_store(folder, database, create=False) as store:
        numbers = store.sessions.rater_numbers()
        raters = platform_raters(study, store)
    by_id = {rater.participant: rater.participant for rater in raters}
    return by_id | {rater_name(numbers[rater.session.id]): rater.participant for rater in raters}


def _amount(text: str) -> Decimal | None:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return None
    is_whole_cents = amount.is_finite() and amount == amount.quantize(Decimal("0.01"))
    return amount if is_whole_cents and 0 < amount <= LARGEST_BONUS else None
