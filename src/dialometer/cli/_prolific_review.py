"""Prolific's submissions beside our sessions: listing them, and approving those who finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli._prolific_shared import DRY, Live, StudyId, prolific, study_id_of
from dialometer.cli._study import AsJson, Database, StudyDir, open_store, open_study
from dialometer.model.places import DATABASE_FILE

if TYPE_CHECKING:
    from dialometer.flow.reviewing import Arrived
    from dialometer.model.study import Study


def submissions(folder: StudyDir, study_id: StudyId = "", database: Database = "", as_json: AsJson = False) -> None:
    """List Prolific's submissions beside our own sessions, with what to do about each. Only reads."""
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli._console import results
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
    from dialometer.cli._console import results
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
