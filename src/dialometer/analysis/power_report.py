"""A power analysis as a report: the curve, the table, and the smallest design that reaches the target."""

from __future__ import annotations

from dialometer._version import __version__
from dialometer.analysis.power import PowerPoint, PowerResult, speaks_for_other_items
from dialometer.design.lock import fingerprint
from dialometer.model.report import Cell, Column, Figure, Headline, Method, Report, Section, Summary, Table
from dialometer.model.study import Study
from dialometer.report.charts.lines import LinePoint, lines


def power_report(study: Study, result: PowerResult, *, n_simulations: int, seed: int, alpha: float) -> Report:
    """What was tried and what follows from it."""
    figure = _figure(result)
    first = result.points[0]
    effect = f"an effect of {result.effect:g}"
    if result.smallest is None:
        answer = f"No design that was tried reaches a power of {result.target:.0%} for {effect}."
        largest = max(p.setting.n_raters for p in result.points)
        certainty = f"The largest had {largest} raters. Try more raters or items, or plan for a larger effect."
    else:
        setting = result.smallest.setting
        answer = f"{setting.n_raters} raters reach a power of {result.target:.0%} for {effect}."
        reached = f"Power {result.smallest.power.value:.0%} with {setting.n_items} items"
        certainty = f"{reached}, from {n_simulations} simulated studies{_cost(result.smallest)}."
    headlines: tuple[Headline, ...] = ()
    if result.smallest is not None:
        label = "Power of the smallest design"
        headlines = (Headline(label, result.smallest.power, certainty, is_confirmatory=True),)
    return Report(
        study=study.spec.name,
        title=f"Power of: {study.spec.title}",
        summary=Summary(answer, certainty, headlines, figure=figure),
        sections=(
            Section(
                "power",
                "Power by design",
                (
                    f"The primary comparison is {result.comparison}. Each simulated study was analysed as the real one will be; "
                    f"power is the share in which at least one of its tests is significant at {alpha:g} after correction.",
                    "Between systems, the effect is the distance of the best and the worst in standard deviations of quality; "
                    "between levels of a factor, Cohen's d of raters' mean ratings.",
                    "The result speaks for other items too."
                    if speaks_for_other_items(study)
                    else "The analysis speaks for other raters on the items shown, so items differ by nothing else.",
                ),
                (_table(result), _by_test(result)),
            ),
        ),
        methods=(
            Method(
                "power",
                f"simulation, {n_simulations} studies for each design",
                "it follows the declared design and analysis exactly",
            ),
        ),
        provenance={
            "study": study.spec.name,
            "fingerprint": fingerprint(study),
            "seed": seed,
            "n_simulations": n_simulations,
            "alpha": first.setting.alpha,
            "dialometer": __version__,
        },
    )


def _cost(point: PowerPoint) -> str:
    return "" if point.cost_cents is None else f", for {point.cost_cents / 100:,.2f} {point.currency}"


def _table(result: PowerResult) -> Table:
    columns = (
        Column("raters", "Raters", "count"),
        Column("items", "Items", "count"),
        Column("power", "Power", "percent_estimate", n_digits=0),
        Column("cost", "Cost", "text"),
        Column("enough", "Enough", "mark"),
    )
    rows = tuple(
        (
            point.setting.n_raters,
            point.setting.n_items,
            point.power,
            "" if point.cost_cents is None else f"{point.cost_cents / 100:,.2f} {point.currency}",
            point.power.value >= result.target,
        )
        for point in result.points
    )
    return Table("power", "Power by number of raters and items", columns, rows)


def _by_test(result: PowerResult) -> Table:
    labels = list(result.points[0].by_test)
    columns = (
        Column("raters", "Raters", "count"),
        Column("items", "Items", "count"),
        *(Column(f"test_{i + 1}", label, "percent_estimate", n_digits=0) for i, label in enumerate(labels)),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (p.setting.n_raters, p.setting.n_items, *(p.by_test[label] for label in labels)) for p in result.points
    )
    return Table("power_by_test", "Power of each test", columns, rows)


def _figure(result: PowerResult) -> Figure:
    points = [
        LinePoint(
            x=point.setting.n_raters,
            y=point.power.value,
            low=point.power.low,
            high=point.power.high,
            group=f"{point.setting.n_items} items",
        )
        for point in result.points
    ]
    spec = lines(
        points,
        x_title="raters",
        y_title="power",
        group_title="Items",
        target=result.target,
        y_domain=(0.0, 1.0),
        is_percent=True,
    )
    shown = ", ".join(f"{p.setting.n_raters} raters: {p.power.value:.0%}" for p in result.points)
    return Figure(
        "power_curve", "Power over the number of raters", spec, f"Power rises with the number of raters. {shown}."
    )
