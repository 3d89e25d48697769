"""dialometer recruit prolific: drafts, publishing, submissions, bonuses. Nothing is sent without --live."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli._study import DATABASE_FILE, AsJson, Database, StudyDir, open_store, open_study

if TYPE_CHECKING:
    from dialometer.cli._prolific_ledger import Ledger
    from dialometer.flow.reviewing import Arrived
    from dialometer.model.study import Study
    from dialometer.recruit.prolific import Prolific

Live = Annotated[bool, typer.Option("--live", help="Do it. Without this, only say what would be done.")]
StudyId = Annotated[
    str, typer.Option("--study-id", help="Prolific's id of the study; by default the one that 'draft' has made.")
]
_DRY = "Nothing was sent: this was a dry run. Do it with [bold]--live[/]."


def prolific_commands() -> typer.Typer:
    """The family of verbs."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        help="Run a study on Prolific. The token is read from PROLIFIC_TOKEN; nothing is sent without --live.",
    )
    example = "Example: dialometer recruit prolific"
    app.command(name="draft", epilog=f"{example} draft my-study --url https://study.example.org --live")(draft)
    app.command(name="publish", epilog=f"{example} publish my-study --live")(
        _transition("PUBLISH", "Publish the study")
    )
    app.command(name="pause", epilog=f"{example} pause my-study --live")(_transition("PAUSE", "Pause the study"))
    app.command(name="start", epilog=f"{example} start my-study --live")(
        _transition("START", "Let the paused study go on")
    )
    app.command(name="submissions", epilog=f"{example} submissions my-study")(submissions)
    app.command(name="approve", epilog=f"{example} approve my-study --live")(approve)
    app.command(name="return", epilog=f"{example} return my-study 5f0c… --reason 'Did not finish' --live")(return_)
    app.command(name="bonus", epilog=f"{example} bonus my-study bonuses.csv --live")(bonus)
    return app


def draft(
    folder: StudyDir,
    url: Annotated[str, typer.Option("--url", help="Address under which the study is served.", show_default=False)],
    places: Annotated[int | None, typer.Option("--places", min=1, help="Raters wanted; the quota if left out.")] = None,
    devices: Annotated[
        str, typer.Option("--devices", help="Devices raters may use, with commas.")
    ] = "desktop,tablet,mobile",
    live: Live = False,
    as_json: AsJson = False,
) -> None:
    """Create a draft study on Prolific from the study file. Nobody sees it until it is published."""
    from dialometer.cli._console import results
    from dialometer.cli._prolific_ledger import Ledger
    from dialometer.design.protocol import protocol
    from dialometer.errors import DialometerError
    from dialometer.recruit.prolific_draft import draft_of

    study = open_study(folder)
    numbers = protocol(study)
    chosen = [one.strip() for one in devices.split(",") if one.strip()]
    if not chosen or set(chosen) - {"desktop", "tablet", "mobile"}:
        raise DialometerError(f"'{devices}' are no devices", remedy="some of desktop,tablet,mobile")
    payload = draft_of(
        study, url, minutes=numbers.minutes_per_rater, n_places=places or numbers.n_raters, devices=chosen
    )
    ledger = Ledger(folder)
    if live and ledger.study_id:
        raise DialometerError(
            f"this study has the draft {ledger.study_id} already", where=str(ledger.file), remedy="go on with 'publish'"
        )
    made: dict[str, Any] = {}
    if live:
        with _prolific() as api:
            made = api.create_draft(payload)
        ledger.note_study(str(made["id"]))
    if as_json:
        typer.echo(json.dumps({"is_live": live, "sent" if live else "would_send": payload, "study": made}, indent=2))
        return
    reward = f"{payload['reward'] / 100:.2f} {study.spec.recruitment.currency}"
    results.print(
        f"{payload['total_available_places']} raters, {payload['estimated_completion_time']} minutes, {reward} each"
    )
    if live:
        results.print(f"Draft [bold]{made['id']}[/] is on Prolific. Look at it there, then run 'publish'.")
    else:
        typer.echo(json.dumps(payload, indent=2, ensure_ascii=False))
        results.print(_DRY)


def _transition(action: Any, word: str) -> Any:
    def command(folder: StudyDir, study_id: StudyId = "", live: Live = False, as_json: AsJson = False) -> None:
        from dialometer.cli._console import results

        open_study(folder)
        identity = _study_id(folder, study_id)
        status = ""
        if live:
            with _prolific() as api:
                status = str(api.transition(identity, action).get("status", ""))
        if as_json:
            told = {"is_live": live, "study_id": identity, "action": action, "status": status}
            typer.echo(json.dumps(told, indent=2))
        elif live:
            results.print(f"{word}: done. Prolific says the study is [bold]{status or 'changed'}[/].")
        else:
            results.print(f"Would send {action} for the study {identity}.")
            results.print(_DRY)

    command.__doc__ = f"{word} on Prolific."
    return command


def submissions(folder: StudyDir, study_id: StudyId = "", database: Database = "", as_json: AsJson = False) -> None:
    """List Prolific's submissions beside our own sessions, with what to do about each. Only reads."""
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli._console import results
    from dialometer.flow.reviewing import review

    study = open_study(folder)
    identity = _study_id(folder, study_id)
    with _prolific() as api:
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
            with _prolific() as api:
                found = review(study, came, api.submissions(_study_id(folder, study_id)))
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
        with _prolific() as api:
            api.approve(chosen)
    if as_json:
        typer.echo(json.dumps({"is_live": live, "approved" if live else "would_approve": chosen}, indent=2))
        return
    verb = "Approved" if live else "Would approve"
    results.print(f"{verb} {len(chosen):,} submissions: {how}.", soft_wrap=True)
    if not live:
        results.print(_DRY)


def return_(
    folder: StudyDir,
    submission: Annotated[list[str], typer.Argument(metavar="SUBMISSION…", help="Ids of submissions.")],
    reason: Annotated[
        list[str], typer.Option("--reason", help="What the rater is told. Repeat for more.", show_default=False)
    ],
    live: Live = False,
    as_json: AsJson = False,
) -> None:
    """Ask raters to return their places. They read the reasons; their standing does not suffer."""
    from dialometer.cli._console import results

    open_study(folder)
    if live:
        with _prolific() as api:
            for one in submission:
                api.request_return(one, reason)
    if as_json:
        typer.echo(json.dumps({"is_live": live, "submissions": submission, "reasons": reason}, indent=2))
        return
    results.print(f"{'Asked' if live else 'Would ask'} {len(submission):,} raters to return: {'; '.join(reason)}")
    if not live:
        results.print(_DRY)


def bonus(
    folder: StudyDir,
    amounts: Annotated[
        Path, typer.Argument(metavar="BONUSES.CSV", help="Columns rater (R0001 or Prolific's id) and amount (1.50).")
    ],
    study_id: StudyId = "",
    database: Database = "",
    live: Live = False,
    as_json: AsJson = False,
) -> None:
    """Pay bonuses from a list. Each list is paid once: what was sent is noted beside the study before it is sent."""
    from dialometer.cli._console import results
    from dialometer.cli._prolific_bonus import pay, read_bonuses

    study = open_study(folder)
    given = read_bonuses(amounts, study, folder, database)
    currency = study.spec.recruitment.currency
    paid: list[dict[str, Any]] = []
    if live:
        ledger = _ledger(folder)
        with _prolific() as api:
            paid = pay(api, ledger, _study_id(folder, study_id), amounts, given)
    if as_json:
        told = {"is_live": live, "bonuses": given, "total": f"{_total(given):.2f}", "payments": paid}
        typer.echo(json.dumps(told, indent=2))
        return
    verb = "Paid" if live else "Would pay"
    results.print(f"{verb} {_total(given):,.2f} {currency} to {len(given):,} raters.")
    for one in paid:
        results.print(f"  {one['total_cents'] / 100:,.2f} {currency} with fees (payment {one['id']})")
    if not live:
        results.print(_DRY)


def _total(amounts: dict[str, str]) -> float:
    from decimal import Decimal

    return float(sum(map(Decimal, amounts.values())))


def _arrived(study: Study, folder: Path, database: str) -> list[Arrived]:
    from dialometer.flow.reviewing import arrived

    if not database and not (folder / DATABASE_FILE).exists():
        return []
    with open_store(folder, database, create=False) as store:
        return arrived(study, store)


def _ledger(folder: Path) -> Ledger:
    from dialometer.cli._prolific_ledger import Ledger

    return Ledger(folder)


def _study_id(folder: Path, given: str) -> str:
    from dialometer.errors import DialometerError

    found = given or _ledger(folder).study_id
    if not found:
        raise DialometerError(
            "nobody knows which study on Prolific this is",
            remedy="make one with 'dialometer recruit prolific draft', or give --study-id",
        )
    return found


class _prolific:  # noqa: N801 - used as a function, in a with statement
    """The API with the token of the environment."""

    def __enter__(self) -> Prolific:
        from dialometer.recruit.calling import Calls
        from dialometer.recruit.prolific import Prolific, api_from_environment, token_from_environment

        self._calls = Calls(api_from_environment(), token_from_environment())
        return Prolific(self._calls)

    def __exit__(self, *_: object) -> None:
        self._calls.close()
