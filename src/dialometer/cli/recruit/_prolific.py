"""dialometer recruit prolific: drafts, publishing, submissions, bonuses. Nothing is sent without --live."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.options import AsJson, Database, StudyDir, open_study
from dialometer.errors import DialometerError

if TYPE_CHECKING:
    from dialometer.recruit.prolific import Prolific


# What the verbs of the family recruit prolific share: options, which study it is, and the API with the user's token.


Live = Annotated[bool, typer.Option("--live", help="Do it. Without this, only say what would be done.")]
StudyId = Annotated[
    str, typer.Option("--study-id", help="Prolific's id of the study; by default the one that 'draft' has made.")
]
DRY = "Nothing was sent: this was a dry run. Do it with [bold]--live[/]."


def study_id_of(folder: Path, given: str) -> str:
    """Prolific's id of a study: the one that was given, else the one that was noted."""
    pass
    from dialometer.errors import DialometerError

    found = given or Ledger(folder).study_id
    if not found:
        raise DialometerError(
            "this study has no draft on Prolific yet",
            remedy="make one with 'dialometer recruit prolific draft --live', or name one with --study-id",
        )
    return found


class prolific:  # noqa: N801 - used as a function, in a with statement
    """The API with the token of the environment."""

    def __enter__(self) -> Prolific:
        from dialometer.recruit.calling import Calls
        from dialometer.recruit.prolific import Prolific, api_from_environment, token_from_environment

        self._calls = Calls(api_from_environment(), token_from_environment())
        return Prolific(self._calls)

    def __exit__(self, *_: object) -> None:
        self._calls.close()


def prolific_commands() -> typer.Typer:
    """The family of verbs."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        epilog="Example: dialometer recruit prolific draft my-study --url https://study.example.org",
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
    from dialometer.cli.recruit._prolific_money import approve, submissions

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
    from dialometer.cli.console import results

    pass
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
        with prolific() as api:
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
        results.print(DRY)


def _transition(action: Any, word: str) -> Any:
    def command(folder: StudyDir, study_id: StudyId = "", live: Live = False, as_json: AsJson = False) -> None:
        from dialometer.cli.console import results

        open_study(folder)
        identity = study_id_of(folder, study_id)
        status = ""
        if live:
            with prolific() as api:
                status = str(api.transition(identity, action).get("status", ""))
        if as_json:
            told = {"is_live": live, "study_id": identity, "action": action, "status": status}
            typer.echo(json.dumps(told, indent=2))
        elif live:
            results.print(f"{word}: done. Prolific says the study is [bold]{status or 'changed'}[/].")
        else:
            results.print(f"Would send {action} for the study {identity}.")
            results.print(DRY)

    command.__doc__ = f"{word} on Prolific."
    return command


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
    from dialometer.cli.console import results

    open_study(folder)
    if live:
        with prolific() as api:
            for one in submission:
                api.request_return(one, reason)
    if as_json:
        typer.echo(json.dumps({"is_live": live, "submissions": submission, "reasons": reason}, indent=2))
        return
    results.print(f"{'Asked' if live else 'Would ask'} {len(submission):,} raters to return: {'; '.join(reason)}")
    if not live:
        results.print(DRY)


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
    from dialometer.cli.console import results
    from dialometer.cli.recruit._prolific_money import pay, read_bonuses

    study = open_study(folder)
    given = read_bonuses(amounts, study, folder, database)
    currency = study.spec.recruitment.currency
    paid: list[dict[str, Any]] = []
    if live:
        pass

        ledger = Ledger(folder)
        with prolific() as api:
            paid = pay(api, ledger, study_id_of(folder, study_id), amounts, given)
    if as_json:
        told = {"is_live": live, "bonuses": given, "total": f"{_total(given):.2f}", "payments": paid}
        typer.echo(json.dumps(told, indent=2))
        return
    verb = "Paid" if live else "Would pay"
    results.print(f"{verb} {_total(given):,.2f} {currency} to {len(given):,} raters.")
    for one in paid:
        results.print(f"  {one['total_cents'] / 100:,.2f} {currency} with fees (payment {one['id']})")
    if not live:
        results.print(DRY)


def _total(amounts: dict[str, str]) -> float:
    from decimal import Decimal

    return float(sum(map(Decimal, amounts.values())))


# What was done on Prolific, noted beside the study so that it is not done twice.


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
