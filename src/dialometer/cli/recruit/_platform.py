"""dialometer recruit PLATFORM: drafts, publishing, submissions, bonuses through its API. Nothing is sent without --live.

The group's name is the platform's name, so that the same commands serve every registered platform with an API.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.audit import log_action
from dialometer.cli.options import AsJson, Database, StudyDir, open_store, open_study
from dialometer.errors import DialometerError
from dialometer.model.file_names import DATABASE_FILE

if TYPE_CHECKING:
    from dialometer.flow.review import PlatformRater, ReviewedSubmission
    from dialometer.model.study import Study
    from dialometer.recruit.platform import Platform, PlatformApi, Transition

Live = Annotated[bool, typer.Option("--live", help="Do it. Without this, only say what would be done.")]
StudyId = Annotated[
    str, typer.Option("--study-id", help="The platform's id of the study; by default that of the draft.")
]
DRY_RUN = "Nothing was sent: this was a dry run. Do it with [bold]--live[/]."


def platform_commands(name: str, label: str, token_variable: str) -> typer.Typer:
    """The commands of a platform with an API."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        epilog=f"Example: dialometer recruit {name} draft my-study --url https://study.example.org",
        help=f"Run a study on {label}. The token is read from {token_variable}; nothing is sent without --live.",
    )
    commands: dict[str, tuple[Callable[..., None], str, str]] = {
        "draft": (
            draft,
            "my-study --url https://study.example.org --live",
            f"Create a draft study on {label} from the study file. Nobody sees it until it is published.",
        ),
        "publish": (_transition("PUBLISH", "Publish the study"), "my-study --live", f"Publish the study on {label}."),
        "pause": (_transition("PAUSE", "Pause the study"), "my-study --live", f"Pause the study on {label}."),
        "start": (
            _transition("START", "Resume the paused study"),
            "my-study --live",
            f"Resume the study on {label}.",
        ),
        "submissions": (
            submissions,
            "my-study",
            f"List {label}'s submissions beside the study's sessions, with what to do about each. Only reads.",
        ),
        "approve": (approve, "my-study --live", ""),
        "return": (return_, "my-study 5f0c… --reason 'Did not finish' --live", ""),
        "bonus": (bonus, "my-study bonuses.csv --live", ""),
    }
    for verb, (command, example, text) in commands.items():
        app.command(name=verb, epilog=f"Example: dialometer recruit {name} {verb} {example}", help=text or None)(
            command
        )
    return app


def _platform_class(context: typer.Context) -> type[Platform]:
    from dialometer.recruit.platforms import PLATFORMS

    return PLATFORMS.get(_name(context))


def _name(context: typer.Context) -> str:
    """The platform whose group of commands is used."""
    return str(context.parent.info_name) if context.parent else ""


def _open_api(context: typer.Context) -> PlatformApi:
    platform = _platform_class(context)
    if platform.api is None:
        raise DialometerError(f"{platform.label} has no API that is known here", remedy="use the platform's own pages")
    return platform.api.from_environment()


def _study_id(context: typer.Context, folder: Path, option: str) -> str:
    """The platform's id of a study: the one that was given, else the one that was noted."""
    from dialometer.cli.recruit._ledger import Ledger

    study_id = option or Ledger(folder, _name(context)).study_id
    if not study_id:
        raise DialometerError(
            f"this study has no draft on {_platform_class(context).label} yet",
            remedy=f"make one with 'dialometer recruit {_name(context)} draft --live', or name one with --study-id",
        )
    return study_id


def draft(
    context: typer.Context,
    folder: StudyDir,
    url: Annotated[str, typer.Option("--url", help="Address under which the study is served.", show_default=False)],
    places: Annotated[int | None, typer.Option("--places", min=1, help="Raters wanted; the quota by default.")] = None,
    devices: Annotated[
        str, typer.Option("--devices", help="Devices raters may use, with commas.")
    ] = "desktop,tablet,mobile",
    live: Live = False,
    as_json: AsJson = False,
) -> None:
    """Create a draft study on the platform."""
    from dialometer.cli.console import results
    from dialometer.cli.recruit._ledger import Ledger
    from dialometer.design.protocol import announced_minutes, protocol

    study = open_study(folder)
    numbers = protocol(study)
    chosen = [device.strip() for device in devices.split(",") if device.strip()]
    if not chosen or set(chosen) - {"desktop", "tablet", "mobile"}:
        raise DialometerError(f"'{devices}' are not devices", remedy="some of desktop,tablet,mobile")
    platform = _platform_class(context)(study.spec.recruitment)
    payload = platform.draft_of(
        study, url, minutes=numbers.minutes_per_rater, n_places=places or numbers.n_raters, devices=chosen
    )
    ledger = Ledger(folder, _name(context))
    if live and ledger.study_id:
        raise DialometerError(
            f"this study has the draft {ledger.study_id} already",
            where=str(ledger.file),
            remedy="continue with 'publish'",
        )
    content: dict[str, Any] = {}
    if live:
        with _open_api(context) as api:
            payload = platform.with_filter_numbers(payload, api)
            content = api.create_draft(payload)
        ledger.note_study(str(content["id"]))
        log_action(folder, "", "made a draft on the platform", str(content["id"]))
    if as_json:
        typer.echo(json.dumps({"is_live": live, "sent" if live else "would_send": payload, "study": content}, indent=2))
        return
    n_raters = places or numbers.n_raters
    results.print(f"{n_raters} raters, {announced_minutes(study)} minutes, {study.spec.recruitment.pay} each")
    if live:
        results.print(f"Draft [bold]{content['id']}[/] is on {platform.label}. Look at it there, then run 'publish'.")
    else:
        typer.echo(json.dumps(payload, indent=2, ensure_ascii=False))
        if any("selected_values" in chosen for chosen in payload.get("filters", ())):
            results.print(f"Filters are shown in words. {platform.label}'s numbers for them are looked up with --live.")
        results.print(DRY_RUN)


def _transition(action: Transition, done: str) -> Callable[..., None]:
    def command(
        context: typer.Context, folder: StudyDir, study_id: StudyId = "", live: Live = False, as_json: AsJson = False
    ) -> None:
        from dialometer.cli.console import results

        open_study(folder)
        identity = _study_id(context, folder, study_id)
        status = ""
        if live:
            with _open_api(context) as api:
                status = str(api.transition(identity, action).get("status", ""))
            log_action(folder, "", "changed the study on its platform", action)
        if as_json:
            outcome = {"is_live": live, "study_id": identity, "action": action, "status": status}
            typer.echo(json.dumps(outcome, indent=2))
        elif live:
            label = _platform_class(context).label
            results.print(f"{done}: done. {label} says the study is [bold]{status or 'changed'}[/].")
        else:
            results.print(f"Would send {action} for the study {identity}.")
            results.print(DRY_RUN)

    return command


def submissions(
    context: typer.Context, folder: StudyDir, study_id: StudyId = "", database: Database = "", as_json: AsJson = False
) -> None:
    """List the platform's submissions beside the study's sessions."""
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results

    study = open_study(folder)
    reviewed = _review(context, study, folder, study_id, _platform_raters(study, folder, database))
    if as_json:
        rows = [
            {
                "submission": row.submission.id,
                "status": row.submission.status,
                "session": f"S{row.session.ordinal:04d}" if row.session else None,
                "state": row.session.state if row.session else None,
                "advice": row.advice,
                "why": row.why,
            }
            for row in reviewed
        ]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    label = _platform_class(context).label
    table = Table("submission", label, "session", "advice", "why", box=None, pad_edge=False, header_style="bold")
    for row in reviewed:
        session = f"S{row.session.ordinal:04d} {row.session.state}" if row.session else ""
        status = row.submission.status.lower().replace("_", " ")
        table.add_row(escape(row.submission.id), status, session, row.advice, escape(row.why))
    results.print(table if reviewed else "Nobody has taken a slot yet.")


def approve(
    context: typer.Context,
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

    Raters whose session is excluded from the analysis are skipped: approve those one by one with --submission.
    """
    from dialometer.cli.console import results

    study = open_study(folder)
    chosen = list(submission or ())
    how = "named"
    if not chosen:
        raters = _platform_raters(study, folder, database)
        try:
            reviewed = _review(context, study, folder, study_id, raters)
            chosen = [row.submission.id for row in reviewed if row.advice == "approve"]
            how = "finished and awaiting review"
        except DialometerError:
            if live:
                raise
            platform = _platform_class(context)
            variable = platform.api.token_variable if platform.api else ""
            finished = [row for row in raters if row.session.state == "completed" and not row.session.is_excluded]
            chosen = [row.submission_id or row.participant for row in finished]
            how = f"finished here ({platform.label} was not asked which of them await review; set {variable} for that)"
    if live and chosen:
        with _open_api(context) as api:
            api.approve(chosen)
        log_action(folder, database, "approved submissions", f"{len(chosen):,}")
    if as_json:
        typer.echo(json.dumps({"is_live": live, "approved" if live else "would_approve": chosen}, indent=2))
        return
    verb = "Approved" if live else "Would approve"
    results.print(f"{verb} {len(chosen):,} submissions: {how}.", soft_wrap=True)
    if not live:
        results.print(DRY_RUN)


def _platform_raters(study: Study, folder: Path, database: str) -> list[PlatformRater]:
    from dialometer.flow.review import platform_raters

    if not database and not (folder / DATABASE_FILE).exists():
        return []
    with open_store(folder, database, create=False) as store:
        return platform_raters(study, store)


def _review(
    context: typer.Context, study: Study, folder: Path, study_id: str, raters: list[PlatformRater]
) -> list[ReviewedSubmission]:
    from dialometer.flow.review import review

    with _open_api(context) as api:
        return review(study, raters, api.submissions(_study_id(context, folder, study_id)))


def return_(
    context: typer.Context,
    folder: StudyDir,
    submission: Annotated[list[str], typer.Argument(metavar="SUBMISSION", help="Ids of submissions.")],
    reason: Annotated[
        list[str], typer.Option("--reason", help="What the rater reads. Repeat for more.", show_default=False)
    ],
    live: Live = False,
    as_json: AsJson = False,
) -> None:
    """Ask raters to return their submissions. They see the reasons; it does not affect their approval rate."""
    from dialometer.cli.console import results

    open_study(folder)
    if live:
        with _open_api(context) as api:
            for identity in submission:
                api.request_return(identity, reason)
        log_action(folder, "", "asked raters to return their submissions", f"{len(submission):,}")
    if as_json:
        typer.echo(json.dumps({"is_live": live, "submissions": submission, "reasons": reason}, indent=2))
        return
    results.print(f"{'Asked' if live else 'Would ask'} {len(submission):,} raters to return: {'; '.join(reason)}")
    if not live:
        results.print(DRY_RUN)


def bonus(
    context: typer.Context,
    folder: StudyDir,
    amounts: Annotated[
        Path,
        typer.Argument(metavar="BONUSES.CSV", help="Columns rater (R0001 or the platform's id) and amount (1.50)."),
    ],
    study_id: StudyId = "",
    database: Database = "",
    live: Live = False,
    as_json: AsJson = False,
) -> None:
    """Pay bonuses from a list. Each list is paid once: what was sent is noted beside the study before it is sent."""
    from decimal import Decimal

    from dialometer.cli.console import results
    from dialometer.cli.recruit._ledger import Ledger, pay_bonuses, read_bonuses

    study = open_study(folder)
    bonuses = read_bonuses(amounts, study, folder, database)
    total = sum(map(Decimal, bonuses.values()))
    currency = study.spec.recruitment.currency
    payments: list[dict[str, Any]] = []
    if live:
        ledger = Ledger(folder, _name(context))
        with _open_api(context) as api:
            payments = pay_bonuses(api, ledger, _study_id(context, folder, study_id), amounts, bonuses)
        log_action(folder, database, "paid bonuses", f"{total:.2f} {currency}")
    if as_json:
        outcome = {"is_live": live, "bonuses": bonuses, "total": f"{total:.2f}", "payments": payments}
        typer.echo(json.dumps(outcome, indent=2))
        return
    verb = "Paid" if live else "Would pay"
    results.print(f"{verb} {total:,.2f} {currency} to {len(bonuses):,} raters.")
    for payment in payments:
        results.print(f"  {payment['total_cents'] / 100:,.2f} {currency} with fees (payment {payment['id']})")
    if not live:
        results.print(DRY_RUN)
