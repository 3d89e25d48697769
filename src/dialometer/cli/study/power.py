"""dialometer power: how many raters and items a study needs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.options import AsJson, Seed, StudyDir, open_study

if TYPE_CHECKING:
    from dialometer.analysis.planning.power import PowerResult


def _numbers(text: str, name: str) -> list[int]:
    from dialometer.errors import DialometerError

    try:
        numbers = sorted({int(part) for part in text.split(",") if part.strip()})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 1:
        raise DialometerError(f"'{text}' is no list of numbers for {name}", remedy=f"write for example {name} 20,40,80")
    return numbers


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="power", epilog="Example: dialometer power my-study --effect 0.5 --raters 20,40,80")
    def power(
        folder: StudyDir,
        effect: Annotated[float, typer.Option("--effect", min=0, help="Effect to find: see the help text.")] = 0.5,
        raters: Annotated[str, typer.Option("--raters", help="Numbers of raters to try.")] = "10,20,40,80,160",
        items: Annotated[
            str, typer.Option("--items", help="Numbers of items to try; those of the study if left out.")
        ] = "",
        target: Annotated[float, typer.Option("--target", min=0.05, max=0.999, help="Power to reach.")] = 0.8,
        alpha: Annotated[float, typer.Option("--alpha", min=0.0001, max=0.5, help="Significance level.")] = 0.05,
        simulations: Annotated[
            int, typer.Option("--simulations", min=20, help="Simulated studies for each design.")
        ] = 200,
        seed: Seed = 1,
        processes: Annotated[
            int, typer.Option("--processes", min=0, help="Processes at work; 0 for one per core.")
        ] = 0,
        out: Annotated[Path | None, typer.Option("--out", help="Folder for the report; DIR/power if left out.")] = None,
        as_json: AsJson = False,
    ) -> None:
        """Find how many raters a study needs: simulates the declared design with the declared analysis, many times.

        The effect between systems is the distance of the best and the worst in standard deviations of quality; between
        levels of a factor it is Cohen's d of raters' mean ratings.
        """
        from dialometer.analysis.planning.power import PowerAnalysis, Setting, power_report
        from dialometer.cli.console import errors, results
        from dialometer.report import render

        study = open_study(folder)
        wanted = _numbers(raters, "--raters")
        sizes = _numbers(items, "--items") if items else []
        with errors.status("Simulating …") as status:
            n_done = 0

            def report(n: int, setting: Setting) -> None:
                nonlocal n_done
                n_done += n
                status.update(f"{n_done:,} studies simulated; now {setting.n_raters} raters, {setting.n_items} items")

            analysis = PowerAnalysis(
                study,
                effect,
                alpha=alpha,
                target=target,
                n_simulations=simulations,
                seed=seed,
                n_processes=processes or os.cpu_count() or 1,
                report=report,
            )
            result = analysis.run(wanted, sizes)
        target_folder = out or folder / "power"
        render(power_report(study, result, n_simulations=simulations, seed=seed, alpha=alpha), target_folder)
        if as_json:
            typer.echo(json.dumps(_as_json(result), indent=2))
            return
        _show(result)
        results.print(f"\nThe curve is in [bold]{target_folder / 'index.html'}[/]")


def _as_json(result: PowerResult) -> dict[str, object]:
    points = [
        {
            "raters": p.setting.n_raters,
            "items": p.setting.n_items,
            "power": p.power.value,
            "low": p.power.low,
            "high": p.power.high,
            "cost_cents": p.cost_cents,
        }
        for p in result.points
    ]
    smallest = result.smallest.setting.n_raters if result.smallest else None
    return {
        "comparison": result.comparison,
        "effect": result.effect,
        "target": result.target,
        "points": points,
        "smallest": smallest,
    }


def _show(result: PowerResult) -> None:
    from rich.table import Table

    from dialometer.cli.console import results

    table = Table("raters", "items", "power", "95% interval", "cost", box=None, pad_edge=False, header_style="bold")
    for p in result.points:
        mark = "green" if p.power.value >= result.target else "default"
        cost = "" if p.cost_cents is None else f"{p.cost_cents / 100:,.2f} {p.currency}"
        interval = f"{p.power.low:.0%} to {p.power.high:.0%}"
        table.add_row(
            str(p.setting.n_raters), str(p.setting.n_items), f"[{mark}]{p.power.value:.0%}[/]", interval, cost
        )
    results.print(f"Primary comparison: [bold]{result.comparison}[/], effect {result.effect:g}\n")
    results.print(table)
    if result.smallest is None:
        results.print(f"\nNone of these designs reaches {result.target:.0%}: try more raters or items.")
    else:
        results.print(
            f"\nThe smallest that reaches {result.target:.0%}: [bold]{result.smallest.setting.n_raters} raters[/]"
        )
