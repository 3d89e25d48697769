"""What a power analysis found, in words and as a report: how many raters are enough, or what to change if none are."""

from __future__ import annotations

from dataclasses import replace

from dialometer._version import __version__
from dialometer.analysis.base.wording import n_of, percent
from dialometer.analysis.planning.power import DEFAULT, PowerPoint, PowerResult
from dialometer.analysis.planning.simulated_assignment import N_AT_ONCE
from dialometer.analysis.planning.simulated_study import Assumptions, n_items_of
from dialometer.analysis.shared.comparisons import comparison_title, primary_comparison
from dialometer.design.adaptive import floor_of
from dialometer.design.lock import fingerprint
from dialometer.model.recruitment import money
from dialometer.model.report import Cell, Column, Figure, Headline, Method, Report, Section, Summary, Table
from dialometer.model.study import Study
from dialometer.report.charts.lines import LinePoint, lines

_ITEM_WORDS = {
    "responses": "item",
    "transcript_pair": "transcript pair",
    "dialogue": "dialogue",
    "candidate": "question",
    "chat": "scenario",
    "arena": "scenario",
}


def items_words(study: Study, n_items: int) -> str:
    """A number of items as the study has them: ``24 items``, ``2 transcript pairs per block``."""
    word, n_blocks = _ITEM_WORDS.get(study.spec.items.kind, "item"), len(study.blocks)
    if n_blocks > 1 and n_items % n_blocks == 0:
        return f"{n_of(n_items // n_blocks, word)} per block"
    return n_of(n_items, word)


def cost_words(point: PowerPoint) -> str:
    """What the raters of a design cost; empty where the study pays nothing."""
    return "" if point.cost_cents is None else money(point.cost_cents, point.currency)


def _significant(result: PowerResult) -> str:
    if result.n_tests == 1:
        return "the test is significant"
    n = result.n_tests
    return f"all {n} tests are significant" if result.needs_all else f"at least one of the {n} tests is significant"


def answer_words(study: Study, result: PowerResult) -> str:
    """How many raters are enough."""
    goal = f"{percent(result.target)} power for an effect of {result.effect:g}"
    if result.smallest is not None:
        return f"{result.smallest.setting.n_raters} raters reach {goal}."
    tried = max(point.setting.n_raters for point in result.points)
    return f"With {items_words(study, n_items_of(study))}, no number of raters up to {tried:,} reaches {goal}."


def advice_words(study: Study, result: PowerResult) -> str:
    """How sure that is; where no design is enough, whether more raters or more items would help."""
    if result.smallest is not None:
        point = result.smallest
        cost = cost_words(point)
        value = point.all_tests if result.needs_all else point.power
        return (
            f"The power is {percent(value.value)} ({percent(value.low)} to {percent(value.high)}): in that share of "
            f"{value.n:,} simulated studies with {items_words(study, point.setting.n_items)}, {_significant(result)}."
            f"{f' The raters cost {cost}.' if cost else ''}"
        )
    parts = []
    if result.limit is not None:
        n, reached = result.limit.setting.n_raters, result.limit.reached(result.needs_all)
        value = result.limit.all_tests if result.needs_all else result.limit.power
        why = "which is close" if value.high >= result.target else "so more raters alone do not help"
        parts.append(f"{n:,} raters reach {percent(reached)} ({percent(value.low)} to {percent(value.high)}), {why}.")
    if result.with_items is not None:
        setting, reached = result.with_items.setting, result.with_items.reached(result.needs_all)
        parts.append(
            f"More items help: {items_words(study, setting.n_items)} reach {percent(reached)} with {setting.n_raters} raters, "
            "each of whom judges as many as now."
            if study.spec.design.items_per_rater != "all" or study.spec.design.blocks
            else f"More items help: {items_words(study, setting.n_items)} reach {percent(reached)} with {setting.n_raters} raters."
        )
    elif study.spec.items.kind not in ("chat", "arena"):
        parts.append(
            "Eight times as many items are not enough for that number of raters either: plan for more of both, or a larger effect."
        )
    return " ".join(parts)


def assumption_words(assumed: Assumptions) -> str:
    """What was assumed about raters and items."""
    return (
        f"Assumed, in standard deviations of quality: a system varies by {assumed.item_sd:g} from item to item; raters vary by "
        f"{assumed.rater_sd:g} in leniency and by {assumed.taste_sd:g} in their opinion of a system. {percent(assumed.careless)} of "
        "raters are careless; those who fail gold items, checks or straight-lining rules are excluded."
    )


def looks_words(study: Study) -> tuple[str, ...]:
    """What power means where results are looked at before the end; empty elsewhere."""
    looks = study.spec.analysis.looks
    if looks is None:
        return ()
    tried = (
        "at ten looks" if looks == "anytime" else "at the planned looks, moved in proportion to the number of raters"
    )
    return (f"The study declares looks before its end: power is the share of studies that are significant {tried}.",)


def assignment_words(study: Study) -> tuple[str, ...]:
    """How adaptive assignment enters; empty where assignment is balanced."""
    if floor_of(study) is None:
        return ()
    if study.spec.items.kind == "arena":
        return ("Pairs are drawn where they are uncertain; power is that of balanced draws.",)
    return (
        f"Raters are assigned adaptively, as in the study: {N_AT_ONCE} at a time, by the answers of those before them.",
    )


def power_report(
    study: Study, result: PowerResult, *, n_simulations: int, seed: int, alpha: float, assumed: Assumptions = DEFAULT
) -> Report:
    """What was tried and what follows from it."""
    answer, certainty = answer_words(study, result), advice_words(study, result)
    headlines: tuple[Headline, ...] = ()
    if result.smallest is not None:
        value = result.smallest.all_tests if result.needs_all else result.smallest.power
        design = result.smallest.setting
        words = f"{n_of(design.n_raters, 'rater')}, {items_words(study, design.n_items)}."
        headlines = (Headline("Power of the smallest design", replace(value, unit="share"), words),)
    reach = (
        "The study declares its items as fixed: power and later claims are about these items only."
        if study.spec.analysis.items == "fixed"
        else "Raters and items are both drawn anew in every simulated study, so that power is that of a claim about other "
        "raters and other items."
    )
    return Report(
        study=study.spec.name,
        has_kinds=False,
        title=f"Power: {study.spec.title}",
        summary=Summary(answer, certainty, headlines, figure=_figure(result)),
        sections=(
            Section(
                "power",
                "Power by design",
                (
                    f"The primary comparison is “{comparison_title(primary_comparison(study))}”. Each simulated study was analysed "
                    "as the real one will be, by the same tests and the same correction; power is the share of studies that are "
                    f"significant at {alpha:g}.",
                    "Between systems, the effect is the distance of the best and the worst in standard deviations of quality; "
                    "between levels of a factor, Cohen's d of raters' mean ratings.",
                    assumption_words(assumed),
                    reach,
                    *looks_words(study),
                    *assignment_words(study),
                ),
                (_table(result), *([_by_test(result)] if result.n_tests > 1 else [])),
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
            "alpha": alpha,
            "item_sd": assumed.item_sd,
            "rater_sd": assumed.rater_sd,
            "taste_sd": assumed.taste_sd,
            "careless": assumed.careless,
            "dialometer": __version__,
        },
    )


def _table(result: PowerResult) -> Table:
    has_several = result.n_tests > 1
    columns = (
        Column("raters", "Raters", "count"),
        Column("items", "Items", "count"),
        Column("power", "Any test significant" if has_several else "Power", "percent_estimate", n_digits=0),
        *([Column("all_tests", "All significant", "percent_estimate", n_digits=0)] if has_several else []),
        Column("cost", "Cost", "text"),
        Column("enough", "Enough", "mark"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            point.setting.n_raters,
            point.setting.n_items,
            point.power,
            *([point.all_tests] if has_several else []),
            cost_words(point),
            point.is_enough(result.target, result.needs_all),
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
        (p.setting.n_raters, p.setting.n_items, *(p.by_test.get(label) for label in labels)) for p in result.points
    )
    return Table("power_by_test", "Power of each test", columns, rows)


def _figure(result: PowerResult) -> Figure:
    points = [
        LinePoint(
            x=point.setting.n_raters,
            y=value.value,
            low=value.low,
            high=value.high,
            group=f"{point.setting.n_items} items",
        )
        for point in result.points
        for value in [point.all_tests if result.needs_all else point.power]
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
    shown = ", ".join(f"{p.setting.n_raters} raters: {percent(p.reached(result.needs_all))}" for p in result.points)
    return Figure("power_curve", "Power over the number of raters", spec, f"Power by the number of raters. {shown}.")
