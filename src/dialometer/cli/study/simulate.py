"""dialometer simulate: raters with known truth walk through a study."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.audit import log_action
from dialometer.cli.interruption import continues
from dialometer.cli.options import AsJson, Database, StudyDir, open_store, open_study

if TYPE_CHECKING:
    from pathlib import Path

    from dialometer.model.study import Study
    from dialometer.simulate.run import SimulationProgress
    from dialometer.simulate.screen_view import StudyAccess
    from dialometer.storage.store import Store


PAUSE_S = 0.2
"""Between lines of progress where there is no terminal."""


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="simulate", epilog="Example: dialometer simulate my-study --raters 80 --seed 1")
    def simulate_(
        folder: StudyDir,
        raters: Annotated[int, typer.Option("--raters", min=1, help="How many raters arrive.")] = 20,
        seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of who they are and what they answer.")] = 1,
        spread: Annotated[
            float, typer.Option("--spread", min=0, help="Difference between systems, in standard deviations.")
        ] = 0.5,
        item_sd: Annotated[float, typer.Option(min=0, help="How much each system differs from item to item.")] = 0.6,
        taste_sd: Annotated[
            float, typer.Option(min=0, help="How much raters differ in their opinion of a system.")
        ] = 0.0,
        anchor_pull: Annotated[float, typer.Option(min=0, max=1, help="How far a shown number draws estimates.")] = 0.5,
        careless: Annotated[
            float, typer.Option(min=0, max=1, help="Share of raters who mostly answer at random.")
        ] = 0.05,
        position_bias: Annotated[float, typer.Option(help="Advantage of the first position on the screen.")] = 0.0,
        drop_out: Annotated[float, typer.Option(min=0, max=1, help="Share of raters who leave before the end.")] = 0.0,
        languages: Annotated[
            str,
            typer.Option(
                "--languages",
                help="Shares of raters by language, such as en=3,de=1; equal shares of the study's languages by default.",
            ),
        ] = "",
        adjudicators: Annotated[
            int,
            typer.Option(
                "--adjudicators", min=0, help="How many settle disagreements afterwards, where the study declares it."
            ),
        ] = 1,
        url: Annotated[
            str, typer.Option("--url", help="Address of a running server; its JSON API is used instead of a database.")
        ] = "",
        api_key: Annotated[
            str,
            typer.Option(
                "--api-key", envvar="DIALOMETER_API_KEY", help="The server's key; by default the one it left in DIR."
            ),
        ] = "",
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Let simulated raters take part, on the same screens as human raters. Run again after an interruption: it continues.

        Their true preferences are written to simulation.json, so that you can compare the analysis with them.
        """
        from dialometer.flow.engine import Flow, now_ms
        from dialometer.flow.simulated import EngineAccess
        from dialometer.flow.simulated_judges import simulate_judges
        from dialometer.simulate.rater import Habits
        from dialometer.simulate.run import settle, simulate
        from dialometer.simulate.server_client import ServerClient
        from dialometer.simulate.truth import draw_truth, keep_truth

        study = open_study(folder)
        truth = draw_truth(study, seed, spread=spread, item_sd=item_sd)
        habits = Habits(
            taste_sd=taste_sd,
            anchor_pull=anchor_pull,
            careless_share=careless,
            position_bias=position_bias,
            drop_out=drop_out,
        )
        shares = _language_shares(study, languages)
        keep = partial(keep_truth, folder, truth, seed=seed, n_raters=raters, habits=habits)

        def run(access: StudyAccess, start_ms: int) -> SimulationProgress:
            with continues(), _reporting(raters) as report:
                return simulate(
                    study,
                    access,
                    truth,
                    n_raters=raters,
                    seed=seed,
                    start_ms=start_ms,
                    habits=habits,
                    languages=shares,
                    report=report,
                )

        if url:
            with ServerClient(url, api_key or _left_key(folder, url)) as over_http:
                keep()
                _print_progress(run(over_http, now_ms()), as_json=as_json)
            return
        with open_store(folder, database) as store:
            kept = keep(has_raters=next(iter(store.sessions.all(source="simulated")), None) is not None)
            access, start_ms = EngineAccess(Flow(study, store)), _start_ms(store)
            progress = run(access, start_ms)
            settled = None
            if study.spec.adjudication is not None and adjudicators:
                last_ms = max(session.last_seen_at_ms for session in store.sessions.all(source="simulated"))
                settled = settle(study, access, truth, n_adjudicators=adjudicators, seed=seed, start_ms=last_ms)
            judged = simulate_judges(study, store, truth, seed=seed, at_ms=start_ms)
            _print_result(study, store, progress, settled, judged, as_json=as_json)
        log_action(folder, database, "ran simulated raters", f"seed {seed}")
        if not as_json:
            _print_next(folder, database, kept)


def _language_shares(study: Study, text: str) -> dict[str, float] | None:
    """Shares by language from ``en=3,de=1``."""
    from dialometer.errors import DialometerError

    shares: dict[str, float] = {}
    known = study.spec.all_languages
    for part in filter(None, (entry.strip() for entry in text.split(","))):
        language, _, share = part.partition("=")
        try:
            shares[language] = float(share or 1)
        except ValueError:
            shares[language] = -1
        if language not in known or not 0 < shares[language] < float("inf"):
            remedy = f"write {','.join(f'{entry}=1' for entry in known)}, with the shares you want"
            raise DialometerError(
                f"'{part}' is not a share of one of the study's languages", where="--languages", remedy=remedy
            )
    return shares or None


def _left_key(folder: Path, url: str) -> str:
    """The key that a server has left in the study's folder, or in the folder of all its studies."""
    from dialometer.cli.study.serve import SERVING_FILE
    from dialometer.errors import DialometerError

    for place in (folder, folder.resolve().parent):
        try:
            left = json.loads((place / SERVING_FILE).read_text(encoding="utf-8"))
            if f"{url.rstrip('/')}/".startswith(left["url"]):
                return str(left["api_key"])
        except (OSError, ValueError, KeyError):
            continue
    raise DialometerError(
        f"the key of the server at {url} is not known", remedy="give it with --api-key or DIALOMETER_API_KEY"
    )


def _start_ms(store: Store) -> int:
    """The virtual clock begins now, or where an interrupted simulation began."""
    from dialometer.flow.engine import now_ms

    first = next(iter(store.sessions.all(source="simulated")), None)
    return first.started_at_ms if first else now_ms()


@contextmanager
def _reporting(n_raters: int) -> Iterator[Callable[[SimulationProgress], None]]:
    """A bar on a terminal; elsewhere a line of JSON from time to time, written after what it says was stored."""
    from dialometer.cli.console import ProgressBar

    n_reported = -1

    def report(progress: SimulationProgress) -> None:
        nonlocal n_reported
        n_done = progress.n_finished + progress.n_left + progress.n_refused
        line = {"raters_done": n_done, "raters": n_raters, "judgments_stored": progress.n_judgments}
        is_due = n_reported < 0 or n_done == n_raters
        message = f"{progress.n_judgments:,} judgments"
        bar.report(message, n_done, n_raters, label="judgments", line=line, is_due=is_due)
        n_reported = n_done

    with ProgressBar("raters", pause_s=PAUSE_S) as bar:
        yield report


def _print_result(
    study: Study,
    store: Store,
    progress: SimulationProgress,
    settled: SimulationProgress | None,
    judged: dict[str, int],
    *,
    as_json: bool,
) -> None:
    from rich.table import Table

    from dialometer.cli.console import results

    counts: dict[int, dict[str, int]] = {}
    for (cell, state), n in store.counts.session_counts(source="simulated").items():
        counts.setdefault(cell, {})[state] = n
    cells = {study.cell_label(condition): counts.get(cell, {}) for cell, condition in enumerate(study.cells)}
    if as_json:
        more = {"n_settled": settled.n_judgments} if settled else {}
        typer.echo(json.dumps({**asdict(progress), "cells": cells, **more, "judges": judged}, indent=2))
        return
    states = sorted({state for of_cell in cells.values() for state in of_cell})
    table = Table(
        "condition", *(state.replace("_", " ") for state in states), box=None, pad_edge=False, header_style="bold"
    )
    for label, of_cell in cells.items():
        table.add_row(label, *(str(of_cell.get(state, 0)) for state in states))
    results.print(table)
    _print_progress(progress)
    if settled:
        n = settled.n_judgments
        results.print(f"Adjudicators settled {n:,} disagreement{'' if n == 1 else 's'}.")
    for name, n_judged in judged.items():
        results.print(f"The simulated judge {name} gave {n_judged:,} judgments.")


def _print_progress(progress: SimulationProgress, *, as_json: bool = False) -> None:
    from dialometer.cli.console import results
    from dialometer.storage.counting.counts import JudgmentCounts

    if as_json:
        typer.echo(json.dumps(asdict(progress), indent=2))
        return
    if progress.n_arrived and not progress.n_screens:
        results.print(
            f"\nThese {progress.n_arrived} raters have already taken part: nothing new. Ask for more with --raters."
        )
    else:
        stored = JudgmentCounts(progress.n_judgments, practice=progress.n_practice)
        raters = "1 rater" if progress.n_arrived == 1 else f"{progress.n_arrived} raters"
        results.print(f"\n{stored} stored; {raters}, {progress.n_left} left early.")
    if progress.n_refused:
        results.print(f"{progress.n_refused} more found no free slot.")


def _print_next(folder: Path, database: str, kept: Path) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    where = f" --database {database}" if database else ""
    results.print(f"Their true preferences are in {escape(str(kept))}", soft_wrap=True)
    results.print(f"Next: [bold]dialometer report {escape(f'{folder}{where}')}[/]", soft_wrap=True)
