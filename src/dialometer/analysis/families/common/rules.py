"""What each quality rule changed, in every report of a study that has rules.

Where a comparison decides the study, whether the rules change its answer is shown with all other choices (``sensitivity``);
elsewhere every result is shown with the rule and without it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, in_appendix, section_or_problem
from dialometer.analysis.base.scale_units import log_types, within
from dialometer.analysis.base.wording import criterion_label, listed, n_of, system_label
from dialometer.analysis.families.common.sensitivity import TITLE as SENSITIVITY
from dialometer.analysis.families.common.sensitivity import is_decided
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Method, Section, Table
from dialometer.model.study import Study
from dialometer.quality.gold import gold_items
from dialometer.stats.clustered.clustered import clustered_mean, clustered_proportion

NAME, TITLE = "rule_effects", "What the quality rules changed"
MOST_ROWS = 12
"""Of each rule the results that moved most."""
METHODS = (
    Method(
        "Results with and without a quality rule",
        "means and shares with intervals that count raters, not answers (clustered by rater)",
        "a rule that changes the answer must be known to the reader, whichever way it changes it",
        "Bell & McCaffrey 2002",
    ),
)


class RuleEffects(Family):
    """The family of every study with rules that look at raters; it gives no answer of its own."""

    rank = 890

    def fits(self, study: Study) -> bool:
        """Any rule but those on arrival, whose raters never began."""
        return any(rule.acts != "arrival" for rule in study.spec.quality)

    def run(self, data: StudyData, options: Options) -> Findings:
        """One section."""
        section = section_or_problem(NAME, TITLE, lambda: rules_section(data, options))
        methods = METHODS if any(part.name == NAME for part in section.parts) else ()
        return Findings(
            "There is no analysis for this design yet.", "", sections=in_appendix((section,)), methods=methods
        )


ANALYSES.register("rule_effects")(RuleEffects())


def rules_section(data: StudyData, options: Options) -> Section:
    """How many raters each rule concerns, and how the results stand with and without it."""
    if not len(data.judgments) and not len(data.set_aside):
        raise NotEnoughData("there are no judgments yet", remedy="the effect of rules appears with the first")
    rules = [rule for rule in data.study.spec.quality if rule.acts != "arrival"]
    kinds = Counter((rule.rule, rule.action) for rule in rules)
    counts: list[tuple[Cell, ...]] = []
    effects: list[tuple[Cell, ...]] = []
    changed = []
    concerned: set[str] = set()
    has_answer = is_decided(data.study)
    for (name, action), n_rules in kinds.items():
        shown = name.replace("_", " ") + (f" ({n_rules} rules)" if n_rules > 1 else "")
        raters = _concerned(data, name, action)
        concerned.update(raters)
        counts.append(
            (shown, _ACTIONS[action], len(raters), _n_judgments(data, raters) if action != "screen_out" else "")
        )
        if has_answer:
            continue
        with_rule, without = (_rated(data, side) for side in _sides(data, name, action, raters))
        if len(with_rule) == len(without):
            continue
        rows, is_other_order = _compared(data.study, with_rule, without, options)
        effects += [(shown, _ACTIONS[action], *row) for row in rows]
        if is_other_order:
            changed.append(shown)
    found = _found(len(rules), len(concerned))
    words = (found, _elsewhere(data)) if has_answer else _paragraphs(found, counts, changed)
    caption = "Judgments on gold items are not counted here." if gold_items(data.study) else ""
    return Section(NAME, TITLE, words, _tables(counts, effects, caption))


def _elsewhere(data: StudyData) -> str:
    """Where the effect of the rules on the answer is shown, or why there is none."""
    excluded, flagged = (_raters(data, action) for action in ("exclude", "flag"))
    ways = []
    if data.set_aside["rater"].is_in(excluded).any():
        ways.append("without the rules that exclude raters")
    if data.judgments["rater"].is_in(flagged).any():
        ways.append("if the flagged raters are excluded")
    if not ways:
        return "No judgment was excluded or flagged by a rule, so the answer cannot change."
    return f"Whether the answer changes {' or '.join(ways)} is shown under “{SENSITIVITY}”."


def _raters(data: StudyData, action: str) -> list[str]:
    return data.findings.filter(pl.col("action") == action)["rater"].unique().to_list()


_ACTIONS = {"exclude": "excludes", "flag": "only flags", "screen_out": "screens out"}


def _concerned(data: StudyData, rule: str, action: str) -> list[str]:
    flags = data.findings.filter((pl.col("rule") == rule) & (pl.col("action") == action))
    shown = data.sessions.filter(pl.col("source").is_in(data.sources))["rater"]
    return flags.filter(pl.col("rater").is_in(shown.implode()))["rater"].unique().sort().to_list()


def _n_judgments(data: StudyData, raters: list[str]) -> int:
    """How many judgments the raters gave that would be in results, whatever another rule says about them."""
    return sum(
        len(_rated(data, rows.filter(pl.col("rater").is_in(raters)))) for rows in (data.judgments, data.set_aside)
    )


def _rated(data: StudyData, judgments: pl.DataFrame) -> pl.DataFrame:
    """The judgments that are in results: gold items only check raters."""
    return judgments.filter(~pl.col("item").is_in(sorted(gold_items(data.study))))


def _sides(data: StudyData, rule: str, action: str, raters: list[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Judgments with the rule and without it. A rater whom another rule excludes too stays out on both sides."""
    if action == "exclude":
        others = data.findings.filter((pl.col("action") == "exclude") & (pl.col("rule") != rule))["rater"]
        only = [rater for rater in raters if rater not in set(others)]
        lost = data.set_aside.filter(pl.col("rater").is_in(only))
        return data.judgments, pl.concat([data.judgments, lost], how="diagonal")
    if action == "flag":
        return data.judgments.filter(~pl.col("rater").is_in(raters)), data.judgments
    return data.judgments, data.judgments


def _compared(
    study: Study, with_rule: pl.DataFrame, without: pl.DataFrame, options: Options
) -> tuple[list[tuple[Cell, ...]], bool]:
    """The results on both sides, those that moved most first kept; and whether the order of systems differs."""
    kept, given = (results(study, side, options.confidence) for side in (with_rule, without))
    keys = [key for key in given if key in kept]
    moves = {key: abs(kept[key].value - given[key].value) for key in keys}
    top = sorted(keys, key=lambda key: -moves[key] if not math.isnan(moves[key]) else 0.0)[:MOST_ROWS]
    rows: list[tuple[Cell, ...]] = [
        (criterion_label(study, key[0]), _of_system(study, key[1]), kept[key], given[key]) for key in keys if key in top
    ]
    return rows, _orders(kept) != _orders(given)


def _of_system(study: Study, name: str) -> str:
    return system_label(study, name) if name else "all"


def _orders(estimates: Mapping[tuple[str, str], Estimate]) -> dict[str, list[str]]:
    by_criterion: dict[str, list[tuple[float, str]]] = {}
    for (criterion, system), estimate in estimates.items():
        if estimate.is_known and system:
            by_criterion.setdefault(criterion, []).append((-estimate.value, system))
    return {criterion: [system for _, system in sorted(pairs)] for criterion, pairs in by_criterion.items()}


def results(study: Study, judgments: pl.DataFrame, confidence: float) -> dict[tuple[str, str], Estimate]:
    """For each criterion and system: the mean rating, the geometric mean of magnitudes, the share of choices, or for
    best-worst the share of best minus the share of worst."""
    estimates: dict[tuple[str, str], Estimate] = {}
    names = [system.name for system in study.spec.systems]
    for criterion in study.spec.criteria:
        rows = judgments.filter(pl.col("criterion") == criterion.name)
        numeric = rows.filter(pl.col("value").is_not_null())
        for (system,), own in numeric.with_columns(pl.col("system").fill_null("")).group_by(
            "system", maintain_order=True
        ):
            estimates[criterion.name, str(system)] = _mean(study, own, confidence)
        chosen = rows.filter(pl.col("choice").is_not_null() & pl.col("value").is_null())
        if not len(chosen):
            continue
        for system in names:
            shown = chosen.filter(pl.col("order").str.split("|").list.contains(system))
            if len(shown):
                estimates[criterion.name, system] = _choices(shown, system, confidence)
    order = {key: place for place, key in enumerate((c.name, s) for c in study.spec.criteria for s in ["", *names])}
    return dict(sorted(estimates.items(), key=lambda pair: order.get(pair[0], len(order))))


def _mean(study: Study, rows: pl.DataFrame, confidence: float) -> Estimate:
    values, raters = rows["value"].to_numpy().astype(np.float64), rows["rater"].to_numpy()
    if not rows["scale"].is_in(log_types(study)).all():
        bounds = [study.spec.scales[name].bounds() for name in rows["scale"].unique() if name in study.spec.scales]
        mean = clustered_mean(values, raters, confidence=confidence)
        return within(mean, min(low for low, _ in bounds), max(high for _, high in bounds)) if bounds else mean
    positive = values[values > 0]
    if not len(positive):
        return clustered_mean(values, raters, confidence=confidence)
    logs = np.log(np.where(values > 0, values, positive.min() / 2))
    mean = clustered_mean(logs, raters, confidence=confidence)
    return replace(
        mean,
        value=math.exp(mean.value),
        low=math.exp(mean.low),
        high=math.exp(mean.high),
        method=f"geometric mean ({mean.method} of logarithms)",
        statistic=math.nan,
        p_value=math.nan,
        df=(),
    )


def _choices(shown: pl.DataFrame, system: str, confidence: float) -> Estimate:
    raters = shown["rater"].to_numpy()
    best = (shown["choice"] == system).to_numpy().astype(np.float64)
    if shown["worst"].is_not_null().any():
        worst = (shown["worst"] == system).fill_null(False).to_numpy().astype(np.float64)
        return within(clustered_mean(best - worst, raters, confidence=confidence), -1.0, 1.0)
    ties = (~shown["choice"].is_in(shown["order"].str.split("|").explode().unique().implode())).to_numpy()
    return clustered_proportion(np.where(ties, 0.5, best), raters, confidence=confidence)


def _found(n_rules: int, n_raters: int) -> str:
    """How many rules there are, and how many raters broke any of them."""
    rules = "one rule" if n_rules == 1 else f"{n_rules} rules"
    applied = "applied" if n_rules == 1 or not n_raters else "together applied"
    return (
        f"The study has {rules} about raters, which {applied} to {n_of(n_raters, 'rater') if n_raters else 'no rater'}."
    )


def _paragraphs(found: str, counts: list[tuple[Cell, ...]], changed: list[str]) -> tuple[str, ...]:
    paragraphs = [
        f"{found} "
        "Below, every result is shown as it is with the rule and as it would be without it. A rule that only flags "
        "leaves nobody out: there, 'with the rule' is what excluding the flagged raters would give."
    ]
    if any(row[2] for row in counts):
        paragraphs.append(
            f"The order of the systems changes with {listed(dict.fromkeys(changed))}: say so when you report the result."
            if changed
            else "No rule changes the order of the systems on any criterion."
        )
    return tuple(paragraphs)


def _tables(counts: list[tuple[Cell, ...]], effects: list[tuple[Cell, ...]], caption: str) -> tuple[Table, ...]:
    counted = (
        Column("rule", "Rule"),
        Column("action", "What it does"),
        Column("raters", "Raters concerned", "count"),
        Column("judgments", "Their judgments", "count"),
    )
    summary = Table("rule_counts", "The rules and whom they concern", counted, tuple(counts), caption=caption)
    if not effects:
        return (summary,)
    columns = (
        Column("rule", "Rule"),
        Column("action", "What it does"),
        Column("criterion", "Criterion"),
        Column("system", "System"),
        Column("with_rule", "With the rule", "estimate"),
        Column("without_rule", "Without it", "estimate"),
    )
    effect = Table(
        NAME,
        "Results with each rule and without it",
        columns,
        tuple(effects),
        caption=f"Of each rule at most the {MOST_ROWS} results that move most. Raters whom another rule excludes as "
        "well stay out on both sides.",
    )
    return (summary, effect)
