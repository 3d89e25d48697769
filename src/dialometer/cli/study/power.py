"""dialometer power: how many raters and items a study needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dialometer.cli.options import Address, AsJson, EngineName, Seed, StudyDir, open_study

if TYPE_CHECKING:
    from dialometer.analysis.planning.power import PowerPoint, PowerResult
    from dialometer.analysis.planning.simulated_study import Assumptions
    from dialometer.model.study import Study


def _numbers(text: str, name: str) -> list[int]:
    from dialometer.errors import DialometerError

    try:
        numbers = sorted({int(part) for part in text.split(",") if part.strip()})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 1:
        raise DialometerError(
            f"'{text}' is not a list of numbers for {name}", remedy=f"write for example {name} 20,40,80"
        )
    return numbers


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="power", epilog="Example: dialometer power my-study --effect 0.5 --raters 20,40,80")
    def power(
        folder: StudyDir,
        effect: Annotated[
            float, typer.Option("--effect", min=0, help="Smallest effect that matters to you, in standard deviations.")
        ] = 0.5,
        raters: Annotated[str, typer.Option("--raters", help="Numbers of raters to try.")] = "10,20,40,80,160",
        items: Annotated[
            str, typer.Option("--items", help="Numbers of items to try; those of the study by default.")
        ] = "",
        target: Annotated[float, typer.Option("--target", min=0.05, max=0.999, help="Power to reach.")] = 0.8,
        alpha: Annotated[float, typer.Option("--alpha", min=0.0001, max=0.5, help="Significance level.")] = 0.05,
        simulations: Annotated[
            int, typer.Option("--simulations", min=20, help="Simulated studies for each design.")
        ] = 200,
        needs_all: Annotated[
            bool,
            typer.Option(
                "--all", help="Plan for all tests of the primary comparison to be significant; any of them by default."
            ),
        ] = False,
        item_sd: Annotated[
            float, typer.Option("--item-sd", min=0, help="How much each system differs from item to item.")
        ] = 0.6,
        rater_sd: Annotated[
            float, typer.Option("--rater-sd", min=0, help="How much raters differ in leniency.")
        ] = 0.35,
        taste_sd: Annotated[
            float, typer.Option("--taste-sd", min=0, help="How much raters differ in their opinion of a system.")
        ] = 0.3,
        careless: Annotated[
            float, typer.Option("--careless", min=0, max=1, help="Share of raters who mostly answer at random.")
        ] = 0.05,
        judges: Annotated[
            bool,
            typer.Option(
                "--judges",
                help="How many human judgments are needed where judges score all items (see analysis.judges).",
            ),
        ] = False,
        agreement: Annotated[
            float | None,
            typer.Option(
                "--agreement",
                min=0,
                max=1,
                help="With --judges: correlation of the judge's score with a single human judgment; from the study's own data "
                "by default.",
            ),
        ] = None,
        judgments: Annotated[
            str, typer.Option("--judgments", help="With --judges: numbers of human judgments to try.")
        ] = "50,100,200,400,800",
        judged_items: Annotated[
            int,
            typer.Option(
                "--judged-items", min=0, help="With --judges: items that the judge scores; 0 for the study's."
            ),
        ] = 0,
        seed: Seed = 1,
        processes: Annotated[
            int, typer.Option("--processes", min=0, help="Processes at work; 0 for one per core.")
        ] = 0,
        engine: EngineName = "local",
        address: Address = "",
        out: Annotated[Path | None, typer.Option("--out", help="Folder for the report; DIR/power by default.")] = None,
        shows_lines: Annotated[
            bool, typer.Option("--progress", help="Print the progress line by line, for other programs.")
        ] = False,
        as_json: AsJson = False,
    ) -> None:
        """Find how many raters and items a study needs: simulates the design with its confirmatory analysis, many times.

        The effect between systems is the difference between the best and the worst in standard deviations of quality; between
        levels of a factor it is Cohen's d of raters' mean ratings. If no number of raters is enough, more items are tried.
        With --judges it is in standard deviations of single judgments of a difference.
        """
        from dialometer.analysis.planning.power import PowerAnalysis, Setting
        from dialometer.analysis.planning.power_report import power_report
        from dialometer.analysis.planning.simulated_study import Assumptions
        from dialometer.cli.console import errors, results
        from dialometer.neural.engines import InProcesses, engine_of
        from dialometer.report import render

        study = open_study(folder)
        if judges or agreement is not None:
            numbers = _numbers(judgments, "--judgments")
            judge_options = JudgeDesign(agreement, numbers, judged_items, effect, target, alpha, simulations, seed)
            _with_judges(study, folder, judge_options, out or folder / "power", as_json=as_json)
            return
        assumed = Assumptions(item_sd=item_sd, rater_sd=rater_sd, taste_sd=taste_sd, careless=careless)
        n_raters = _numbers(raters, "--raters")
        sizes = _numbers(items, "--items") if items else []
        with (
            errors.status("Simulating …") as status,
            engine_of(engine, address, local=InProcesses(processes)) as opened,
        ):
            n_done = 0

            def report(n: int, setting: Setting) -> None:
                nonlocal n_done
                n_done += n
                words = f"{n_done:,} studies simulated; now {setting.n_raters} raters, {setting.n_items} items"
                status.update(words)
                if shows_lines:
                    typer.echo(words, err=True)

            analysis = PowerAnalysis(
                study,
                effect,
                alpha=alpha,
                target=target,
                n_simulations=simulations,
                seed=seed,
                engine=opened,
                assumed=assumed,
                needs_all=needs_all,
                report=report,
            )
            result = analysis.run(n_raters, sizes)
        target_folder = out or folder / "power"
        made = power_report(study, result, n_simulations=simulations, seed=seed, alpha=alpha, assumed=assumed)
        render(made, target_folder)
        if as_json:
            typer.echo(json.dumps(_as_json(study, result), indent=2))
            return
        _show(study, result, assumed)
        results.print(f"\nThe curve and the power of each test are in [bold]{target_folder / 'index.html'}[/]")


class JudgeDesign(NamedTuple):
    """What was asked about a design with judges."""

    agreement: float | None
    judgments: list[int]
    n_judged: int
    effect: float
    target: float
    alpha: float
    n_simulations: int
    seed: int


def _with_judges(study: Study, folder: Path, options: JudgeDesign, out: Path, *, as_json: bool) -> None:
    """Human judgments with and without the judge, as table and report."""
    from rich.table import Table

    from dialometer.analysis.base.wording import percent
    from dialometer.analysis.planning.judged_power import (
        BOTH,
        PEOPLE,
        JudgedPlan,
        answer_words,
        assumed_words,
        judged_power,
        judged_report,
        pilot_agreement,
    )
    from dialometer.cli.console import errors, results
    from dialometer.cli.options import open_store
    from dialometer.design.protocol import protocol
    from dialometer.report import render

    agreement, source = options.agreement, "The agreement was given on the command line."
    if agreement is None:
        with open_store(folder, "") as store:
            agreement, source = pilot_agreement(study, store)
    n_judged = options.n_judged or len([item for item in study.rated_items if item.id not in study.gold_ids])
    per_rater = protocol(study).n_items_per_rater or study.spec.design.batch_size
    plan = JudgedPlan(
        agreement, options.effect, n_judged, per_rater, options.alpha, options.n_simulations, options.seed
    )
    with errors.status("Simulating …"):
        power = judged_power(plan, options.judgments, target=options.target)
    render(judged_report(study, power, source), out)
    if as_json:
        points = [
            {"judgments": p.n, "people": p.power[PEOPLE].value, "with_judge": p.power[BOTH].value, "worth": p.worth}
            for p in power.points
        ]
        smallest = {"people": power.smallest[PEOPLE], "with_judge": power.smallest[BOTH]}
        typer.echo(
            json.dumps({"agreement": agreement, "points": points, **smallest, "answer": answer_words(power)}, indent=2)
        )
        return
    table = Table("human judgments", PEOPLE, BOTH, "worth", box=None, pad_edge=False, header_style="bold")
    for point in power.points:
        cells = [
            f"{percent(value.value)} ({percent(value.low)} to {percent(value.high)})" for value in point.power.values()
        ]
        table.add_row(str(point.n), *cells, f"{point.worth:,.0f}")
    results.print(f"{source} {assumed_words(plan)}\n", style="dim")
    results.print(table)
    results.print(f"\n[bold]{answer_words(power)}[/]")
    results.print(f"The curve is in [bold]{out / 'index.html'}[/]")


def _as_json(study: Study, result: PowerResult) -> dict[str, object]:
    from dialometer.analysis.planning.power_report import advice_words, answer_words

    def shown(point: PowerPoint | None) -> dict[str, object] | None:
        if point is None:
            return None
        return {
            "raters": point.setting.n_raters,
            "items": point.setting.n_items,
            "power": point.power.value,
            "low": point.power.low,
            "high": point.power.high,
            "power_all": point.all_tests.value,
            "by_test": {label: test.value for label, test in point.by_test.items()},
            "cost_cents": point.cost_cents,
        }

    return {
        "comparison": result.comparison,
        "effect": result.effect,
        "target": result.target,
        "needs_all": result.needs_all,
        "points": [shown(point) for point in result.points],
        "smallest": result.smallest.setting.n_raters if result.smallest else None,
        "many_raters": shown(result.limit),
        "more_items": shown(result.with_items),
        "answer": answer_words(study, result),
        "advice": advice_words(study, result),
    }


def _show(study: Study, result: PowerResult, assumed: Assumptions) -> None:
    from rich.table import Table

    from dialometer.analysis.base.wording import percent
    from dialometer.analysis.planning.power_report import advice_words, answer_words, assumption_words, cost_words
    from dialometer.cli.console import results

    has_several = result.n_tests > 1
    power = ["any test significant", "all significant"] if has_several else ["power"]
    table = Table("raters", "items", *power, "cost", box=None, pad_edge=False, header_style="bold")
    for point in result.points:
        mark = "green" if point.is_enough(result.target, result.needs_all) else "default"
        shown = [point.power, point.all_tests] if has_several else [point.power]
        cells = [f"{percent(value.value)} ({percent(value.low)} to {percent(value.high)})" for value in shown]
        is_counted = [result.needs_all == (place == 1) for place in range(len(cells))]
        cells = [f"[{mark}]{cell}[/]" if counted else cell for cell, counted in zip(cells, is_counted, strict=True)]
        table.add_row(str(point.setting.n_raters), str(point.setting.n_items), *cells, cost_words(point))
    tests = f", {result.n_tests} tests" if has_several else ""
    results.print(f"Primary comparison: [bold]{result.comparison}[/]{tests}; effect {result.effect:g}")
    results.print(f"{assumption_words(assumed)}\n", style="dim")
    results.print(table)
    results.print(f"\n[bold]{answer_words(study, result)}[/] {advice_words(study, result)}")
