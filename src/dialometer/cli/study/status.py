"""dialometer status: how far a study has come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from dialometer.cli.options import AsJson, Database, StudyDir, open_store, open_study
from dialometer.model.file_names import DATABASE_FILE

if TYPE_CHECKING:
    from dialometer.model.session import Source, State
    from dialometer.model.study import Study
    from dialometer.storage.store import Store


STATES: tuple[State, ...] = ("active", "completed", "stale", "screened_out", "declined", "withdrawn")


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="status", epilog="Example: dialometer status my-study")
    def status(folder: StudyDir, database: Database = "", as_json: AsJson = False) -> None:
        """Show how far a study has come: raters in each condition, judgments per item, what is open."""
        study = open_study(folder)
        if database or (folder / DATABASE_FILE).exists():
            with open_store(folder, database, create=False) as store:
                found = _collect(study, store)
        else:
            found = _before_anybody(study)
        if as_json:
            typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        else:
            _show(found)


def _before_anybody(study: Study) -> dict[str, object]:
    """The same answer for a study that has no database yet: asking how far it has come is no mistake."""
    return {
        "study": study.spec.name,
        "state": "not started",
        "quota": study.spec.recruitment.quota,
        "sessions": {},
        "raters_per_item": {"least": 0, "most": 0, "wanted": study.spec.design.judgments_per_item},
    }


def _collect(study: Study, store: Store) -> dict[str, object]:
    controls = store.control.current()
    by_source: dict[str, list[dict[str, object]]] = {}
    sources: tuple[Source, ...] = ("person", "model", "imported", "simulated")
    for source in sources:
        counts = store.counts.session_counts(source=source)
        if not counts:
            continue
        by_source[source] = [
            {
                "condition": study.cell_label(condition),
                "is_open": cell not in controls.closed_cells,
                "quota": controls.cell_quotas.get(cell),
                **{state: counts.get((cell, state), 0) for state in STATES},
            }
            for cell, condition in enumerate(study.cells)
        ]
    done: dict[str, int] = {}
    # As in the report: people where there are any, else whoever there is.
    came = [source for source in sources if source in by_source]
    for source in [one for one in came if one in ("person", "imported")] or came:
        for (_, item), states in store.counts.item_counts(source=source).items():
            done[item] = done.get(item, 0) + states.get("done", 0)
    per_item = [done.get(item.id, 0) for item in study.rated_items]
    return {
        "study": study.spec.name,
        "state": controls.state,
        "quota": controls.quota if controls.quota is not None else study.spec.recruitment.quota,
        "sessions": by_source,
        "raters_per_item": {
            "least": min(per_item),
            "most": max(per_item),
            "wanted": study.spec.design.judgments_per_item,
        },
    }


def _show(found: dict[str, object]) -> None:
    from rich.table import Table

    from dialometer.cli.console import results

    results.print(f"[bold]{found['study']}[/] is {found['state']}; raters wanted: {found['quota'] or 'no limit'}")
    sessions: dict[str, list[dict[str, object]]] = found["sessions"]  # type: ignore[assignment]
    if not sessions:
        results.print("Nobody has come yet.")
    for source, cells in sessions.items():
        shown = [state for state in STATES if any(cell[state] for cell in cells)]
        table = Table(
            "condition",
            *(state.replace("_", " ") for state in shown),
            "",
            box=None,
            pad_edge=False,
            header_style="bold",
        )
        for cell in cells:
            table.add_row(
                str(cell["condition"]), *(str(cell[state]) for state in shown), "" if cell["is_open"] else "closed"
            )
        results.print(f"\nraters ({source})")
        results.print(table)
    items: dict[str, object] = found["raters_per_item"]  # type: ignore[assignment]
    wanted = f" of {items['wanted']} wanted" if items["wanted"] else ""
    least, most = items["least"], items["most"]
    between = str(least) if least == most else f"{least} to {most}"
    results.print(f"\neach item has been judged by {between} raters{wanted}")
