"""Bonuses from a list: read, checked against who took part, and paid once."""

from __future__ import annotations

import csv
import hashlib
import io
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialometer.errors import DialometerError, ImportFileError, Problem

if TYPE_CHECKING:
    from dialometer.cli._prolific_ledger import Ledger
    from dialometer.model.study import Study
    from dialometer.recruit.prolific import Prolific

LARGEST = Decimal(1000)
"""A bonus beyond this is taken for a slip: Prolific reads 150 as 150.00, not as cents."""


def read_bonuses(file: Path, study: Study, folder: Path, database: str) -> dict[str, str]:
    """Amounts by Prolific's id of the rater. Pseudonyms are looked up; every fault is told with its line."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DialometerError(f"the list cannot be read: {error}", where=str(file), remedy="give a CSV file") from error
    rows = list(csv.DictReader(io.StringIO(text)))
    if not rows or not {"rater", "amount"} <= set(rows[0]):
        raise DialometerError(
            "the list needs the columns rater and amount", where=f"{file}:1", remedy="rater,amount, then R0001,1.50"
        )
    names = _names(study, folder, database)
    problems: list[Problem] = []
    amounts: dict[str, str] = {}
    for line, row in enumerate(rows, start=2):
        rater, given = (row["rater"] or "").strip(), (row["amount"] or "").strip()
        who = names.get(rater)
        if who is None:
            problems.append(Problem(f"nobody called '{rater}' took part", "check the name", str(file), line))
            continue
        amount = _amount(given)
        if amount is None:
            problems.append(Problem(f"'{given}' is no amount", "such as 1.50", str(file), line))
        elif who in amounts:
            problems.append(Problem(f"'{rater}' is listed twice", "give one amount", str(file), line))
        else:
            amounts[who] = f"{amount:.2f}"
    if problems:
        raise ImportFileError(problems)
    return amounts


def pay(api: Prolific, ledger: Ledger, study_id: str, file: Path, amounts: dict[str, str]) -> list[dict[str, Any]]:
    """Sets up and pays a list in parts. What is about to be paid is noted first; a list is never paid again."""
    from dialometer.recruit.calling import PlatformError, UnknownOutcome
    from dialometer.recruit.prolific import N_PER_BONUS

    people = sorted(amounts.items())
    digest = hashlib.sha256(repr((study_id, people)).encode()).hexdigest()
    noted = ledger.payment(digest)
    if noted is not None:
        raise DialometerError(
            f"this list is noted as {noted['state']}",
            where=str(ledger.file),
            remedy="look on Prolific what was paid; list only what is still owed",
        )
    entry: dict[str, Any] = {"sha256": digest, "file": file.name, "state": "begun", "payments": []}
    ledger.note_payment(entry)
    try:
        for at in range(0, len(people), N_PER_BONUS):
            made = api.set_up_bonuses(study_id, dict(people[at : at + N_PER_BONUS]))
            part = {"id": made.id, "total_cents": made.total_cents, "state": "being paid"}
            entry["payments"].append(part)
            ledger.note_payment(entry)
            api.pay_bonuses(made.id)
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
    """Prolific's id by that id and by our pseudonym."""
    from dialometer.cli._study import open_store
    from dialometer.flow.reviewing import arrived
    from dialometer.table import rater_name

    with open_store(folder, database, create=False) as store:
        numbers = store.rater_numbers()
        came = arrived(study, store)
    by_id = {one.participant: one.participant for one in came}
    return by_id | {rater_name(numbers[one.session.id]): one.participant for one in came}


def _amount(text: str) -> Decimal | None:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return None
    is_whole_cents = amount.is_finite() and amount == amount.quantize(Decimal("0.01"))
    return amount if is_whole_cents and 0 < amount <= LARGEST else None
