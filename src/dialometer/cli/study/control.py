"""dialometer control: start, pause or close a study or one condition, and change quotas while it runs."""

from __future__ import annotations

import getpass
import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dialometer.cli.audit import log_action
from dialometer.cli.options import AsJson, Database, StudyDir, open_store, open_study

if TYPE_CHECKING:
    from dialometer.model.study import Study


Action = Literal["start", "pause", "close", "quota"]
STATES: dict[str, Literal["running", "paused", "closed"]] = {"start": "running", "pause": "paused", "close": "closed"}
CELL_STATES = {"start": "open", "close": "closed"}


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="control",
        epilog="Example: dialometer control my-study close --condition anchor=both,layout=together --reason 'enough raters'",
    )
    def control(
        folder: StudyDir,
        action: Annotated[Action, typer.Argument(help="What to do.", show_default=False)],
        number: Annotated[
            int | None, typer.Argument(help="With quota: how many raters at most; omit for no limit.")
        ] = None,
        condition: Annotated[
            str, typer.Option("--condition", help="One condition, such as anchor=both,layout=together.")
        ] = "",
        cell: Annotated[str, typer.Option("--cell", hidden=True, help="The earlier name of --condition.")] = "",
        reason: Annotated[str, typer.Option("--reason", help="Why; it is kept in the study's log.")] = "",
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Start, pause or close a study or one condition, or set a quota. Raters under way can always finish."""
        from rich.markup import escape

        from dialometer.cli.console import results
        from dialometer.errors import DialometerError
        from dialometer.flow.engine import now_ms

        study, condition = open_study(folder), condition or cell
        if number is not None and action != "quota":
            raise DialometerError(f"'{action}' takes no number", remedy="use 'quota' to set a quota")
        if condition and action == "pause":
            raise DialometerError("a condition is open or closed", remedy="use close, and start to open it again")
        index = _find_condition(study, condition) if condition else None
        by, why, at_ms = getpass.getuser(), reason or "from the command line", now_ms()
        with open_store(folder, database) as store:
            if index is not None and action == "quota":
                store.control.set_cell_quota(index, number, by=by, reason=why, at_ms=at_ms)
            elif index is not None:
                store.control.set_cell_open(index, action == "start", by=by, reason=why, at_ms=at_ms)
            elif action == "quota":
                store.control.set_quota(number, by=by, reason=why, at_ms=at_ms)
            else:
                store.control.set_state(STATES[action], by=by, reason=why, at_ms=at_ms)
        subject = study.spec.name if index is None else study.cell_label(study.cells[index])
        log_action(folder, database, _logged(action, index), why if index is None else f"{subject}: {why}")
        if as_json:
            done = {"study": study.spec.name, "condition": condition, "action": action, "reason": why}
            typer.echo(json.dumps({**done, "quota": number} if action == "quota" else done, ensure_ascii=False))
            return
        new_state = _quota(number) if action == "quota" else STATES[action] if index is None else CELL_STATES[action]
        results.print(
            f"{escape(subject)} is now {new_state}" if action != "quota" else f"{escape(subject)}: {new_state}"
        )


def _logged(action: str, condition: int | None) -> str:
    """The words of the dashboard's log for the same decision."""
    if action == "quota":
        return "set a quota"
    if condition is not None:
        return "opened a condition" if action == "start" else "closed a condition"
    return {"start": "started the study", "pause": "paused the study", "close": "closed the study"}[action]


def _quota(number: int | None) -> str:
    if number is None:
        return "no limit to the number of raters"
    return f"{number:,} {'rater' if number == 1 else 'raters'} at most{'' if number else ', so nobody else can start'}"


def _find_condition(study: Study, text: str) -> int:
    from dialometer.errors import UnknownName

    levels = dict(part.split("=", 1) for part in text.replace(" ", "").split(",") if "=" in part)
    for index, condition in enumerate(study.cells):
        if levels and levels == dict(condition):
            return index
    known = "; ".join(study.cell_label(condition) for condition in study.cells)
    raise UnknownName(f"there is no condition '{text}'", remedy=f"known: {known}")
