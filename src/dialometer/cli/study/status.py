"""dialometer status: how far a study has come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dialometer.cli.options import AsJson, Database, StudyDir, open_store, open_study
from dialometer.model.file_names import DATABASE_FILE

if TYPE_CHECKING:
    from dialometer.model.session import State
    from dialometer.model.study import Study
    from dialometer.storage.store import Store


SOURCE_WORDS = {
    "person": "human raters",
    "imported": "imported raters",
    "simulated": "simulated raters",
    "model": "models",
}
STATES: tuple[State, ...] = ("active", "completed", "stale", "screened_out", "declined", "withdrawn")


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="status", epilog="Example: dialometer status my-study")
    def status(folder: StudyDir, database: Database = "", as_json: AsJson = False) -> None:
        """Show how far a study has come: raters in each condition, judgments per item, what is open."""
        from dialometer.storage.safety.files import n_bytes_in_log

        study = open_study(folder)
        n_bytes = 0 if database else n_bytes_in_log(folder / DATABASE_FILE)
        n_lost = 0
        if database or (folder / DATABASE_FILE).exists():
            with open_store(folder, database, create=False) as store:
                progress = _collect(study, store)
                n_lost = _n_lost(folder, store)
        else:
            progress = _before_anybody(study)
        progress |= {"lost_screens": n_lost, "bytes_in_write_ahead_log": n_bytes}
        if as_json:
            typer.echo(json.dumps(progress, indent=2, ensure_ascii=False))
        else:
            _show(progress)
            _warn(folder, n_lost, n_bytes)


def _n_lost(folder: Path, store: Store) -> int:
    """How many of the screens that were acknowledged last are not in the database."""
    from dialometer.storage.safety.acknowledged import N_LAST, compare

    return len(compare(folder, store.database, N_LAST).lost)


def _warn(folder: Path, n_lost: int, n_bytes: int) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    if n_lost:
        results.print(
            f"[bold red]{n_lost:,} of the last acknowledged screens are not in the database:[/] see "
            f"dialometer verify {escape(str(folder))}",
            soft_wrap=True,
        )
    if n_bytes:
        results.print(
            f"The newest answers are in {DATABASE_FILE}-wal, which a copy of {DATABASE_FILE} alone lacks: use "
            f"dialometer backup {escape(str(folder))}",
            soft_wrap=True,
        )


def _before_anybody(study: Study) -> dict[str, object]:
    """The same answer for a study that has no database yet: asking how far it has come is no mistake."""
    from dialometer.design.protocol import raters_wanted

    return {
        "study": study.spec.name,
        "state": "not started",
        "quota": study.spec.recruitment.quota,
        "raters_wanted": raters_wanted(study, study.spec.recruitment.quota),
        "sessions": {},
        "session_counts": {},
        "judgments": {},
        "raters_per_item": {"least": 0, "most": 0, "wanted": study.spec.design.judgments_per_item},
    }


def _collect(study: Study, store: Store) -> dict[str, object]:
    from dataclasses import asdict

    from dialometer.design.protocol import raters_wanted
    from dialometer.storage.counting.counts import SOURCES, count_sessions, main_sources

    controls = store.control.current()
    by_source: dict[str, list[dict[str, object]]] = {}
    for source in SOURCES:
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
    marks = store.sessions.marks()
    counts_by_source = {
        source: asdict(count_sessions(mark for mark in marks if mark.source == source)) for source in by_source
    }
    n_raters = store.counts.raters_by_item(main_sources(by_source))
    per_item = [n_raters.get(item.id, 0) for item in study.people_items]
    quota = controls.quota if controls.quota is not None else study.spec.recruitment.quota
    return {
        "study": study.spec.name,
        "state": controls.state,
        "quota": quota,
        "raters_wanted": raters_wanted(study, quota),
        "sessions": by_source,
        "session_counts": counts_by_source,
        "judgments": {source: asdict(counts) for source, counts in store.counts.judgments_by_source().items()},
        "raters_per_item": {
            "least": min(per_item),
            "most": max(per_item),
            "wanted": study.spec.design.judgments_per_item,
        },
        **_agents(study, store),
    }


def _agents(study: Study, store: Store) -> dict[str, object]:
    """What agents with a price have cost so far."""
    live = study.spec.live
    if not live.prices:
        return {}
    cost, n_responses = store.conversations.agent_costs()
    counted = {"responses": n_responses, "cost": round(cost, 6), "budget": live.budget, "currency": live.currency}
    return {"agents": counted}


def _show(progress: dict[str, object]) -> None:
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.storage.counting.counts import PEOPLE

    results.print(
        f"[bold]{progress['study']}[/] is {progress['state']}; raters wanted: {progress['raters_wanted'] or 'no limit'}"
    )
    sessions: dict[str, list[dict[str, object]]] = progress["sessions"]  # type: ignore[assignment]
    judgments: dict[str, dict[str, int]] = progress["judgments"]  # type: ignore[assignment]
    counts: dict[str, dict[str, int]] = progress["session_counts"]  # type: ignore[assignment]
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
        results.print(f"\n{SOURCE_WORDS.get(source, source.replace('_', ' ') + 's')}")
        results.print(table)
        results.print(_judgments(judgments[source]))
        is_counted_alone = source == "simulated" or (
            source in PEOPLE and not all(other in sessions for other in PEOPLE)
        )
        results.print(_valid(counts[source], progress["raters_wanted"] if is_counted_alone else None))
    items: dict[str, object] = progress["raters_per_item"]  # type: ignore[assignment]
    of_wanted = f" of {items['wanted']} wanted" if items["wanted"] else ""
    least, most = items["least"], items["most"]
    between = str(least) if least == most else f"{least} to {most}"
    results.print(f"\neach item has been judged by {between} {'rater' if most == 1 else 'raters'}{of_wanted}")
    agents: dict[str, object] | None = progress.get("agents")  # type: ignore[assignment]
    if agents is not None:
        budget = f" of a budget of {agents['budget']:g}" if agents["budget"] else ""
        costs = f"{agents['responses']:,} responses have cost {agents['cost']:,g}{budget} {agents['currency']}"
        results.print(f"agents: {costs.rstrip()}")


def _judgments(counts: dict[str, int]) -> str:
    from dialometer.storage.counting.counts import JudgmentCounts

    judgments = JudgmentCounts(**counts)
    return f"{judgments}; {judgments.counted:,} count in the analysis" if judgments.not_counted else str(judgments)


def _valid(counts: dict[str, int], wanted: object) -> str:
    """How many finished and count, as the dashboard says it."""
    of = f" of {wanted} wanted" if wanted else ""
    excluded = f"; {counts['excluded']:,} excluded" if counts["excluded"] else ""
    return f"finished and counted: {counts['valid']:,}{of}{excluded}"
