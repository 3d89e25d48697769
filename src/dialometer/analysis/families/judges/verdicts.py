"""The report about judges alone: what each of them says of the systems, judge by judge, with inference over items.

Repeated answers of a model are no sample of raters, so nothing is pooled over them or over models: every judge has a column of its
own, each item counts once in it, and intervals hold for other items under the same judge.
"""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import polars as pl
from scipy import stats

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options
from dialometer.analysis.base.scale_units import compared_types, within
from dialometer.analysis.base.wording import (
    criterion_label,
    factor_label,
    level_label,
    listed,
    n_of,
    percent,
    system_label,
    with_interval,
)
from dialometer.analysis.families.judges.compared import UNDECIDED
from dialometer.analysis.families.judges.position import PositionBias, position_bias
from dialometer.analysis.shared.drawn_items import drawn_items
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, ColumnKind, Figure, Method, Section, Table
from dialometer.model.study import Study
from dialometer.quality.gold import gold_items
from dialometer.report.charts import Dot, dot_interval
from dialometer.stats.effects.multiplicity import adjust
from dialometer.stats.observations import Floats
from dialometer.storage.table import FACTOR_PREFIX

NAME, TITLE = "judge_verdicts", "What each judge says"


class JudgeVerdicts(Family):
    """The one family of a report about models alone."""

    rank = 1
    is_about = "judges"

    def fits(self, study: Study) -> bool:
        """Always; which reports it is in is decided by their source."""
        return True

    def run(self, data: StudyData, options: Options) -> Findings:
        """A section for every criterion, and one about position on the screen."""
        judges = data.judgments["rater"].unique(maintain_order=True).sort().to_list()
        gold = gold_items(data.study)
        # A ranking has no one verdict over both orders: the points of all its answers are averaged.
        is_ranked = pl.col("scale").is_in(compared_types(data.study, "order"))
        answers = pl.concat(
            [data.judgments.filter(~is_ranked), data.calls.filter(is_ranked).select(data.judgments.columns)]
        )
        scores = _scores(answers.filter(~pl.col("item").is_in(gold)))
        n_items = scores["item"].n_unique()
        scores = scores.with_columns(drawn_items(data.study, scores["item"]).alias("item"))
        sections, sentences = [], []
        for criterion in data.study.criteria_by_name:
            own = scores.filter(pl.col("criterion") == criterion)
            if own.is_empty():
                continue
            section, sentence = _criterion_section(data.study, criterion, own, judges, options)
            sections.append(section)
            sentences.append(sentence)
        sections += _condition_sections(data, scores, options)
        positions = position_bias(data, options)
        if positions:
            table = position_table(data.study, positions)
            sections.append(
                Section("judge_positions", "Position on the screen", (position_words(positions),), (table,))
            )
        n_prompts = scores["item"].n_unique()
        prompts = f" of {n_of(n_prompts, 'prompt')}" if n_prompts < n_items else ""
        head = f"{n_of(len(judges), 'judge')} ({listed(judges)}) judged {n_of(n_items, 'item')}{prompts}."
        return Findings(
            " ".join([head, *sentences[:1]]),
            "Each judge is shown by itself. Confidence intervals and p-values are over items and hold for that judge: they do not "
            "say what human raters would say.",
            figure=next((part for section in sections for part in section.parts if isinstance(part, Figure)), None),
            sections=tuple(sections),
            methods=METHODS,
            next_steps=(_next_step(data),),
        )


def _next_step(data: StudyData) -> str:
    if (data.sessions["source"] != "model").any():
        return "The report without --source model sets these judges beside the raters and says whether they can be trusted."
    return "Let human raters judge some of the items too: the report then says whether these judges can be trusted."


METHODS = (
    Method(
        "what each judge says",
        "means over items with Student's t; differences of systems paired by item, Holm's correction within judge and criterion; "
        "items of one prompt count as one",
        "a judge's answers are repeated calls of one model, so only items are a sample",
    ),
)
ANALYSES.register(NAME)(JudgeVerdicts())


def _scores(judgments: pl.DataFrame) -> pl.DataFrame:
    """Judge, criterion, item, system and a number: ratings as they are, choices as points (1 chosen, ½ tie, 0 not)."""
    rated = judgments.filter(pl.col("value").is_not_null() & (pl.col("system").fill_null("") != ""))
    factors = [name for name in judgments.columns if name.startswith(FACTOR_PREFIX)]
    kept = ["rater", "criterion", "item", "system", *factors]
    rows = [rated.select(*kept, "value", pl.lit(value=False).alias("is_choice"))]
    compared = judgments.filter((pl.col("system").fill_null("") == "") & (pl.col("order").fill_null("") != ""))
    points = [
        (*(row[name] for name in kept[:3]), system, *(row[name] for name in factors), point, True)
        for row in compared.iter_rows(named=True)
        for system, point in _points(row).items()
    ]
    rows.append(pl.DataFrame(points, schema=rows[0].schema, orient="row"))
    return pl.concat(rows).group_by(*kept, "is_choice", maintain_order=True).agg(pl.col("value").mean())


def _points(row: dict[str, object]) -> dict[str, float]:
    """What a choice or a ranking gives each system shown, from 0 (last) to 1 (first)."""
    systems = str(row["order"]).split("|")
    ranked = json.loads(str(row["answer"])) if row["answer"] else None
    if isinstance(ranked, list) and set(ranked) == set(systems):
        return {system: 1 - ranked.index(system) / (len(ranked) - 1) for system in systems}
    if row["worst"]:
        return {s: 1.0 if s == row["choice"] else 0.0 if s == row["worst"] else 0.5 for s in systems}
    if row["choice"] in UNDECIDED:
        return dict.fromkeys(systems, 0.5)
    return {s: float(s == row["choice"]) for s in systems} if row["choice"] in systems else {}


def _criterion_section(
    study: Study, criterion: str, own: pl.DataFrame, judges: list[str], options: Options
) -> tuple[Section, str]:
    label = criterion_label(study, criterion)
    is_choice = bool(own["is_choice"].any())
    systems = own["system"].unique(maintain_order=True).sort().to_list()
    kind: ColumnKind = "percent_estimate" if is_choice else "estimate"
    values = {
        (judge, system): dict(
            part.group_by("item", maintain_order=True).agg(pl.col("value").mean()).select("item", "value").iter_rows()
        )
        for (judge, system), part in own.group_by("rater", "system", maintain_order=True)
    }
    means = {key: over_items(np.array(list(by_item.values())), options) for key, by_item in values.items()}
    if is_choice:
        means = {key: within(estimate, 0.0, 1.0) for key, estimate in means.items()}
    rows = tuple((system_label(study, system), *(means.get((judge, system)) for judge in judges)) for system in systems)
    columns = (Column("system", "System"), *(Column(f"judge_{i}", judge, kind) for i, judge in enumerate(judges)))
    what = "Share of comparisons won (ties count half)" if is_choice else "Mean rating"
    parts: list[Table | Figure] = [
        Figure(
            f"{NAME}-{criterion}",
            f"{label}: what each judge says",
            dot_interval(
                [Dot(system_label(study, s), means[j, s], group=j) for s in systems for j in judges if (j, s) in means],
                value_title=what,
                group_title="Judge",
                is_percent=is_choice,
                reference=0.5 if is_choice else None,
            ),
            f"{what} of {n_of(len(systems), 'system')} by {n_of(len(judges), 'judge')}, on {label}.",
        ),
        Table(f"{NAME}_{criterion}", f"{label}: {what[0].lower()}{what[1:]}, by judge", columns, rows),
    ]
    differences = _differences(study, systems, judges, values, options, is_choice=is_choice)
    if differences:
        parts.append(
            Table(
                f"{NAME}_{criterion}_differences",
                f"{label}: differences between systems, by judge",
                (
                    Column("judge", "Judge"),
                    Column("first", "System"),
                    Column("second", "Compared with"),
                    Column("difference", "Difference", "estimate"),
                    Column("p", "p-value, corrected", "p_value"),
                ),
                tuple(differences),
                caption="Paired by item where both systems were judged on the same items.",
            )
        )
    sentence = _best(study, label, systems, judges, means, is_choice=is_choice)
    return Section(f"{NAME}_{criterion}", f"{TITLE}: {label}", (sentence,), tuple(parts)), sentence


def _best(
    study: Study,
    label: str,
    systems: list[str],
    judges: list[str],
    means: dict[tuple[str, str], Estimate],
    *,
    is_choice: bool,
) -> str:
    words = []
    for judge in judges:
        known = {s: means[judge, s] for s in systems if (judge, s) in means}
        if not known:
            continue
        best = max(known, key=lambda system: known[system].value)
        if len(known) > 1 and len({round(estimate.value, 9) for estimate in known.values()}) == 1:
            words.append(f"{judge} finds all systems alike")
            continue
        words.append(
            f"{judge} puts {system_label(study, best)} first, {with_interval(known[best], is_percent=is_choice)}"
        )
    return f"{label}: {'; '.join(words)}."


def _differences(
    study: Study,
    systems: list[str],
    judges: list[str],
    values: dict[tuple[str, str], dict[str, float]],
    options: Options,
    *,
    is_choice: bool,
) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    if is_choice and len(systems) == 2:
        return rows  # the share of one is the whole comparison
    for judge in judges:
        differences = []
        for first, second in itertools.combinations(systems, 2):
            a, b = values.get((judge, first), {}), values.get((judge, second), {})
            shared = [item for item in a if item in b]
            if shared:
                differences.append((first, second, over_items(np.array([a[i] - b[i] for i in shared]), options)))
            elif len(a) > 1 and len(b) > 1:
                differences.append(
                    (first, second, _unpaired(np.array(list(a.values())), np.array(list(b.values())), options))
                )
        corrected = adjust([estimate.p_value for *_, estimate in differences], "holm")
        rows += [
            (judge, system_label(study, first), system_label(study, second), estimate, float(p))
            for (first, second, estimate), p in zip(differences, corrected, strict=True)
        ]
    return rows


def over_items(values: Floats, options: Options) -> Estimate:
    """A mean over items with Student's t."""
    values = values[~np.isnan(values)]
    n, mean = len(values), float(values.mean()) if len(values) else math.nan
    if n < 2 or np.ptp(values) == 0:
        why = "one item: no confidence interval" if n < 2 else "every item gives the same value: no confidence interval"
        return Estimate(mean, n, "mean over items", confidence=options.confidence, notes=(why,))
    test = stats.ttest_1samp(values, 0.0)
    interval = test.confidence_interval(options.confidence)
    return Estimate(
        mean, n, "mean over items", float(interval.low), float(interval.high), options.confidence, "Student's t over items",
        statistic=float(test.statistic), df=(float(n - 1),), p_value=float(test.pvalue),
    )  # fmt: skip


def _unpaired(first: Floats, second: Floats, options: Options) -> Estimate:
    mean, n = float(first.mean() - second.mean()), len(first) + len(second)
    if np.ptp(first) == 0 and np.ptp(second) == 0:
        return Estimate(mean, n, "difference of means over items", notes=("no spread: no confidence interval",))
    test = stats.ttest_ind(first, second, equal_var=False)
    interval = test.confidence_interval(options.confidence)
    return Estimate(
        mean, n, "difference of means over items", float(interval.low), float(interval.high), options.confidence,
        "Welch's t over items", statistic=float(test.statistic), df=(float(test.df),), p_value=float(test.pvalue),
    )  # fmt: skip


def _condition_sections(data: StudyData, scores: pl.DataFrame, options: Options) -> list[Section]:
    """How each judge's numbers differ between the conditions it took part in, item by item."""
    rows: list[tuple[Cell, ...]] = []
    rated = scores.filter(~pl.col("is_choice"))
    for factor in data.study.spec.design.factors:
        column = FACTOR_PREFIX + factor.name
        for (judge, criterion), own in rated.group_by("rater", "criterion", maintain_order=True):
            by_level = {
                level.name: own.filter(pl.col(column) == level.name)
                .group_by("item", "system", maintain_order=True)
                .agg(pl.col("value").mean())
                for level in factor.levels
            }
            present = [level for level in factor.levels if len(by_level[level.name])]
            for other in present[1:]:
                first = present[0]
                both = by_level[other.name].join(
                    by_level[first.name], on=["item", "system"], suffix="_first", maintain_order="left"
                )
                if both.is_empty():
                    continue
                difference = (both["value"] - both["value_first"]).to_numpy()
                label = criterion_label(data.study, str(criterion))
                against = f"{level_label(other)} minus {level_label(first)}"
                rows.append((str(judge), label, factor_label(factor), against, over_items(difference, options)))
    if not rows:
        return []
    columns = (
        Column("judge", "Judge"),
        Column("criterion", "Criterion"),
        Column("factor", "Factor"),
        Column("levels", "Conditions"),
        Column("difference", "Difference", "estimate"),
    )
    words = "Each item is compared with itself in the other condition."
    table = Table("judge_conditions", "Conditions, by judge", columns, tuple(rows), caption=words)
    return [Section("judge_conditions", "What conditions do to judges", (words,), (table,))]


def position_table(study: Study, positions: list[PositionBias]) -> Table:
    """The rows as a table."""
    return Table(
        "judge_positions",
        "Position on the screen, by judge",
        (
            Column("criterion", "Criterion"),
            Column("judge", "Judge"),
            Column("consistent", "Both orders agree", "percent_estimate"),
            Column("first", "First position chosen", "percent_estimate"),
            Column("to_first", "Changed answers: first position both times", "percent_estimate"),
        ),
        tuple(
            (criterion_label(study, row.criterion), row.judge, row.consistent, row.first, row.flips_to_first)
            for row in positions
        ),
        caption="Without a bias, the first position is chosen in half of the answers, since every pair is asked in both orders.",
    )


def position_words(positions: list[PositionBias]) -> str:
    """One sentence: who prefers a position."""
    biased = [row for row in positions if row.is_biased]
    if not biased:
        return "No judge prefers a position on the screen significantly."
    worst = max(biased, key=lambda row: abs(row.first.value - 0.5))
    names = listed(dict.fromkeys(row.judge for row in biased))
    place = "first" if worst.first.value > 0.5 else "second"
    verb = "prefers" if len({row.judge for row in biased}) == 1 else "prefer"
    share = max(worst.first.value, 1 - worst.first.value)
    return f"{names} {verb} a position on the screen: {worst.judge} chose the {place} one in {percent(share)} of its answers."
