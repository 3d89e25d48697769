"""dialometer privacy: what is stored about raters and why, withdrawals, and the end of the time it may be kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.audit import log_action
from dialometer.cli.options import AsJson, Database, StudyDir, open_store, open_study
from dialometer.model.file_names import STUDY_FILE

if TYPE_CHECKING:
    from dialometer.model.study import Study
    from dialometer.storage.store import Store


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="privacy", epilog="Example: dialometer privacy my-study --withdraw 7Q4M-0ZKP-XW2T-93GB")
    def privacy(
        folder: StudyDir,
        withdraw: Annotated[
            str, typer.Option("--withdraw", metavar="CODE", help="Erase the rater who was shown this code at the end.")
        ] = "",
        apply_retention: Annotated[
            bool, typer.Option("--apply-retention", help="Erase data that are older than the study promises.")
        ] = False,
        yes: Annotated[bool, typer.Option("--yes", help="Do not ask before erasing.")] = False,
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Show what is stored about raters, why and for how long; erase a rater who withdraws, or data that are too old.

        A withdrawal erases the person everywhere in the database; only a session without a rater remains.
        """
        from dialometer.errors import DialometerError
        from dialometer.flow.engine import now_ms
        from dialometer.storage.sessions import Patience

        if withdraw and apply_retention:
            raise DialometerError("--withdraw and --apply-retention are two things", remedy="do one after the other")
        study = open_study(folder)
        with open_store(folder, database, create=False) as store:
            store.sessions.release_left(Patience(now_ms() - study.spec.design.stale_ms))
            if withdraw:
                done = _withdraw(store, folder, withdraw, now_ms(), is_sure=yes)
            elif apply_retention:
                done = _apply_retention(study, store, folder, now_ms(), is_sure=yes)
            else:
                from dialometer.exchange.exports.inventory import inventory

                stored = inventory(study, store, now_ms())
                typer.echo(json.dumps(stored, indent=2, ensure_ascii=False)) if as_json else _show(stored, folder)
                return
        # Not who: the log stays when the rater is gone.
        log_action(folder, database, "withdrew a rater" if withdraw else "erased data past their time limit")
        if as_json:
            typer.echo(json.dumps(done, indent=2, ensure_ascii=False))
        else:
            _print_result(done)


def _withdraw(store: Store, folder: Path, code: str, at_ms: int, *, is_sure: bool) -> dict[str, Any]:
    from dialometer.errors import DialometerError

    session_id = store.withdrawals.session_of_code(code)
    if session_id is None:
        raise DialometerError(
            f"no session of this study has the code '{code}'",
            remedy="compare it character by character; is it the right study?",
        )
    is_new = store.sessions.get(session_id).state != "withdrawn"
    if is_new:
        _ask("Erase everything this rater gave, for good?", is_sure=is_sure)
    tombstone = store.withdrawals.withdraw(session_id, at_ms)
    return {
        "withdrawn": is_new,
        "judgments": tombstone.n_judgments,
        "answers": tombstone.n_answers,
        "screens": tombstone.n_visits,
        "made_before": _made_before(folder),
    }


def _apply_retention(study: Study, store: Store, folder: Path, at_ms: int, *, is_sure: bool) -> dict[str, Any]:
    from dialometer.errors import DialometerError
    from dialometer.exchange.exports.inventory import due_now

    promise = study.spec.privacy
    if promise.identifiers_days is None and promise.answers_days is None:
        raise DialometerError(
            "the study promises no time after which anything is erased",
            where=STUDY_FILE,
            remedy="declare privacy: {identifiers_days: 30} or privacy: {answers_days: 3650}",
        )
    due = due_now(study, store, at_ms)
    if due:
        n = f"the names of {len(due.raters)} raters and {len(due.sessions)} sessions with all their answers"
        _ask(f"Erase {n}, for good?", is_sure=is_sure)
        store.withdrawals.erase(due, at_ms)
    return {
        "identifiers_erased": len(due.raters),
        "sessions_erased": len(due.sessions),
        "made_before": _made_before(folder) if due else [],
    }


def _ask(question: str, *, is_sure: bool) -> None:
    if not is_sure:
        typer.confirm(question, abort=True, err=True)


def _made_before(folder: Path) -> list[str]:
    """Copies in and beside the folder that were made before something was erased, and that no database command reaches."""
    from dialometer.exchange.backups.packing import ASIDE
    from dialometer.exchange.exports.export_folder import MANIFEST

    exports = [path.parent for path in folder.glob(f"*/{MANIFEST}")]
    reports = [path.parent for path in folder.glob("*/report.json")]
    backups = [*folder.parent.glob(f"{folder.resolve().name}-backup-*.zip"), *folder.glob(f"{ASIDE}*")]
    return sorted(str(path) for path in {*exports, *reports, *backups, *folder.glob("*.zip")})


def _show(stored: dict[str, Any], folder: Path) -> None:
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results

    results.print(f"[bold]{escape(stored['study'])}[/] stores about its raters:\n")
    table = Table("what", "rows", "why", "kept", box=None, pad_edge=False, header_style="bold", leading=1)
    for row in stored["stored"]:
        days = row["kept_days"]
        until = "as long as the study" if row["bounded_by"] == "study" else "no limit declared"
        table.add_row(
            escape(row["what"] or row["table"]),
            f"{row['n_rows']:,}",
            escape(row["why"]),
            until if days is None else f"{days:,} days",
        )
    results.print(table)
    for row in stored["identifiers"]:
        parts = [f"{row['n_named']:,} raters with a name there"]
        if row["n_forgotten"]:
            parts.append(f"{row['n_forgotten']:,} whose name was erased")
        if row["parameters"]:
            parts.append(f"parameters {', '.join(row['parameters'])}")
        results.print(f"\nPlatform [bold]{escape(row['platform'])}[/]: {escape('; '.join(parts))}", soft_wrap=True)
    versions = ", ".join(f"{version} ({n:,} sessions)" for version, n in stored["consent_versions"].items())
    results.print(f"\nVersions of the consent text: {versions or 'nobody has come yet'}", soft_wrap=True)
    if stored["free_text_questions"]:
        names = ", ".join(stored["free_text_questions"])
        results.print(f"Raters may write freely in {escape(names)}: read it before you publish.", soft_wrap=True)
    results.print("\nNot stored:")
    for line in stored["not_stored"]:
        results.print(f"  {escape(line)}", soft_wrap=True)
    if stored["n_withdrawn"]:
        results.print(f"\n{stored['n_withdrawn']:,} sessions were withdrawn and erased.")
    due = stored["due"]
    if due["identifiers"] or due["sessions"]:
        results.print(
            f"\n[yellow]Past the promised time:[/] the names of {due['identifiers']:,} raters and {due['sessions']:,} "
            f"sessions. Erase them with [bold]dialometer privacy {escape(str(folder))} --apply-retention[/]",
            soft_wrap=True,
        )


def _print_result(done: dict[str, Any]) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    if "withdrawn" in done:
        held = f"{done['judgments']:,} judgments, {done['answers']:,} answers, {done['screens']:,} screens"
        results.print(f"Erased: {held}." if done["withdrawn"] else f"This rater had withdrawn before ({held} erased).")
    elif done["identifiers_erased"] or done["sessions_erased"]:
        results.print(
            f"Erased: the names of {done['identifiers_erased']:,} raters, "
            f"{done['sessions_erased']:,} sessions with all their answers."
        )
    else:
        results.print("Nothing is past its time limit.")
    if done["made_before"]:
        results.print("[yellow]These were made before and may still hold what was erased; make them anew:[/]")
        for path in done["made_before"]:
            results.print(f"  {escape(path)}", soft_wrap=True)
