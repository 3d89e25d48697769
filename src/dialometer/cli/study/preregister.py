"""dialometer preregister: the plan of a study as a document, from the study file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from dialometer.cli.options import AsJson, Database, StudyDir, check_place, open_store, open_study
from dialometer.model.file_names import DATABASE_FILE

OUT_FILE = "preregistration.md"


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="preregister", epilog="Example: dialometer preregister my-study --effect 0.4")
    def preregister(
        folder: StudyDir,
        out: Annotated[
            Path | None, typer.Option("--out", metavar="FILE", help=f"Where to; by default {OUT_FILE} in DIR.")
        ] = None,
        effect: Annotated[float, typer.Option("--effect", min=0, help="Effect to plan for; see 'power'.")] = 0.5,
        raters: Annotated[
            int | None, typer.Option("--raters", min=2, help="Raters planned; the quota by default.")
        ] = None,
        simulations: Annotated[
            int, typer.Option("--simulations", min=0, help="Simulated studies for the power; 0 for none.")
        ] = 200,
        seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulated studies.")] = 1,
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Write the preregistration: hypotheses, design, sampling with power, variables, analysis, in the usual headings.

        Everything comes from the study file. The analysis plan lists what the report will do.
        """
        for library in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(library, "1")
        from dialometer.analysis.planning.preregistration import (
            OPEN,
            planned_methods,
            planned_power,
            planned_raters,
            preregistration,
        )
        from dialometer.cli.console import errors
        from dialometer.design.lock import verify

        study = open_study(folder)
        target = out or folder / OUT_FILE
        check_place(target)
        lock = verify(study, folder)
        n_raters = raters or planned_raters(study)
        alpha = 1 - study.spec.analysis.confidence
        with errors.status("Simulating studies of the planned size …"):
            power = (
                planned_power(
                    study, n_raters=n_raters, effect=effect, alpha=alpha, n_simulations=simulations, seed=seed
                )
                if simulations
                else None
            )
            methods = planned_methods(study, n_raters=n_raters, seed=seed)
        n_collected = _n_collected(folder, database)
        frozen = f"version {lock['version']} on {lock['frozen_at']}" if lock else ""
        text = preregistration(
            study, n_raters=n_raters, power=power, methods=methods, n_collected=n_collected, frozen=frozen
        )
        target.write_text(text, encoding="utf-8")
        summary = {
            "study": str(folder),
            "file": str(target),
            "raters": n_raters,
            "effect": effect,
            "power": power.power.value if power else None,
            "n_open": text.count(OPEN),
            "n_collected": n_collected,
            "is_frozen": bool(lock),
        }
        if as_json:
            typer.echo(json.dumps(summary, indent=2))
        else:
            _print_result(summary)


def _print_result(summary: dict[str, Any]) -> None:
    from rich.markup import escape

    from dialometer.analysis.base.wording import percent
    from dialometer.analysis.planning.preregistration import OPEN
    from dialometer.cli.console import results

    power = (
        ""
        if summary["power"] is None
        else f", power {percent(summary['power'])} for an effect of {summary['effect']:g}"
    )
    results.print(f"Wrote [bold]{escape(summary['file'])}[/]: {summary['raters']} raters{power}", soft_wrap=True)
    if summary["n_open"]:
        n = summary["n_open"]
        are = "1 heading is" if n == 1 else f"{n} headings are"
        results.print(f"[yellow]{are} open:[/] the study file does not say. Look for:")
        results.print(f"  {OPEN.strip('*')}")
    if summary["n_collected"]:
        results.print(
            f"[yellow]{summary['n_collected']:,} judgments of human raters are there already;[/] the document says so."
        )
    if not summary["is_frozen"]:
        results.print(
            f"Next: [bold]dialometer freeze {escape(summary['study'])}[/], so that the plan cannot change unseen.",
            soft_wrap=True,
        )


def _n_collected(folder: Path, database: str) -> int:
    """Judgments of human raters so far; simulated raters and models do not count."""
    from dialometer.storage.counting.counts import PEOPLE

    if not database and not (folder / DATABASE_FILE).exists():
        return 0
    with open_store(folder, database, create=False) as store:
        by_source = store.counts.judgments_by_source()
        return sum(by_source[source].judgments for source in PEOPLE if source in by_source)
