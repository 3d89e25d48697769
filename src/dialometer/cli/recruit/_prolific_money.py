"""Bonuses from a list: read, checked against who took part, and paid once."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.options import AsJson, Database, StudyDir, open_store, open_study
from dialometer.cli.recruit._prolific import DRY, Live, StudyId, prolific, study_id_of
from dialometer.errors import DialometerError, ImportFileError, Problem
from dialometer.model.file_names import DATABASE_FILE

if TYPE_CHECKING:
    from dialometer.cli.recruit._prolific import Ledger
    from dialometer.flow.reviewing import Arrived
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
    from dialometer.cli.options import open_store
    from dialometer.flow.reviewing import arrived
    from dialometer.storage.table import rater_name

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


# Prolific's submissions beside our sessions: listing them, and approving those who finished.


def submissions(folder: StudyDir, study_id: StudyId = "", database: Database = "", as_json: AsJson = False) -> None:
    """List Prolific's submissions beside our own sessions, with what to do about each. Only reads."""
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.flow.reviewing import review

    study = open_study(folder)
    identity = study_id_of(folder, study_id)
    with prolific() as api:
        found = review(study, _arrived(study, folder, database), api.submissions(identity))
    if as_json:
        rows = [
            {
                "submission": one.submission.id,
                "status": one.submission.status,
                "session": f"S{one.session.ordinal:04d}" if one.session else None,
                "state": one.session.state if one.session else None,
                "advice": one.advice,
                "why": one.why,
            }
            for one in found
        ]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    table = Table("submission", "Prolific", "session", "advice", "why", box=None, pad_edge=False, header_style="bold")
    for one in found:
        session = f"S{one.session.ordinal:04d} {one.session.state}" if one.session else ""
        status = one.submission.status.lower().replace("_", " ")
        table.add_row(escape(one.submission.id), status, session, one.advice, escape(one.why))
    results.print(table if found else "Nobody has taken a place yet.")


def approve(
    folder: StudyDir,
    submission: Annotated[
        list[str] | None, typer.Option("--submission", help="Only this one, whatever the advice. Repeat for more.")
    ] = None,
    study_id: StudyId = "",
    database: Database = "",
    live: Live = False,
    as_json: AsJson = False,
) -> None:
    """Approve (and so pay) submissions of raters who finished here and await review.

    Raters whose session is excluded from the analysis are not among them: approve those by name, or not, yourself.
    """
    from dialometer.cli.console import results
    from dialometer.errors import DialometerError
    from dialometer.flow.reviewing import review
    from dialometer.recruit.prolific import TOKEN_VARIABLE

    study = open_study(folder)
    chosen = list(submission or ())
    how = "named"
    if not chosen:
        came = _arrived(study, folder, database)
        try:
            with prolific() as api:
                found = review(study, came, api.submissions(study_id_of(folder, study_id)))
            chosen, how = (
                [one.submission.id for one in found if one.advice == "approve"],
                "finished and awaiting review",
            )
        except DialometerError:
            if live:
                raise
            finished = [one for one in came if one.session.state == "completed" and not one.session.is_excluded]
            chosen = [one.submission_id or one.participant for one in finished]
            how = f"finished here (Prolific was not asked which of them await review; set {TOKEN_VARIABLE} for that)"
    if live and chosen:
        with prolific() as api:
            api.approve(chosen)
    if as_json:
        typer.echo(json.dumps({"is_live": live, "approved" if live else "would_approve": chosen}, indent=2))
        return
    verb = "Approved" if live else "Would approve"
    results.print(f"{verb} {len(chosen):,} submissions: {how}.", soft_wrap=True)
    if not live:
        results.print(DRY)


def _arrived(study: Study, folder: Path, database: str) -> list[Arrived]:
    from dialometer.flow.reviewing import arrived

    if not database and not (folder / DATABASE_FILE).exists():
        return []
    with open_store(folder, database, create=False) as store:
        return arrived(study, store)
