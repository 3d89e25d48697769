"""What the gold rule cost and what it changed: ratings lost, and averages with and without it."""

from __future__ import annotations

import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import n_of, number, percent
from dialometer.analysis.families.candidates.agreement import Agreement, agreement_of, bare, rating_columns
from dialometer.analysis.families.candidates.first_answers import GOLD, group_means
from dialometer.analysis.families.candidates.pool import Pool, pool_of
from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.quality.gold import Gold
from dialometer.stats.clustered.proportion import proportion


def gold_rules(data: StudyData) -> list[Gold]:
    """The study's rules that exclude raters by their answers to gold items."""
    return [rule for rule in data.study.spec.quality if isinstance(rule, Gold) and rule.action == "exclude"]


APPROVED_BY_RULE = "This is so by construction: raters who rated one of the maker's answers lower were excluded."


def approves_gold(data: StudyData, pool: Pool) -> bool:
    """Whether all raters who are left must have called every gold answer right, since a rule excluded the others."""
    return any(
        not rule.n_allowed_failures
        and rule.items is None
        and any(
            one.criterion == pool.criterion and one.at_least is not None and one.at_least >= pool.good_from
            for one in rule.acceptable
        )
        for rule in gold_rules(data)
    )


def gold_section(name: str, data: StudyData, pool: Pool, options: Options) -> Section:
    """Losses by the rule, and how averages and agreement would stand without it."""
    title = "What the gold rule cost and changed"
    rules = gold_rules(data)
    if not rules:
        return Section(
            name, title, ("The study excludes nobody by gold answers, so nothing was lost or changed by it.",)
        )
    failed = data.findings.filter(
        pl.col("rule").is_in([rule.rule for rule in rules]) & (pl.col("action") == "exclude")
    )["rater"].unique()
    own = data.set_aside.filter((pl.col("criterion") == pool.criterion) & pl.col("value").is_not_null())
    lost = own.filter(pl.col("rater").is_in(failed.implode()))
    n_all = len(pool.value) + len(lost)
    n_raters = len(pool.rater_names) + lost["rater"].n_unique()
    share = proportion(len(lost), n_all, confidence=options.confidence)
    by_rater = proportion(lost["rater"].n_unique(), n_raters, confidence=options.confidence)
    n_allowed = max(rule.n_allowed_failures for rule in rules)
    rejected = "a gold answer" if not n_allowed else f"more than {n_of(n_allowed, 'gold answer')}"
    words = [
        f"Raters who reject {rejected} are excluded. This removed {n_of(lost['rater'].n_unique(), 'rater')} of {n_raters:,} "
        f"({percent(by_rater.value)}) and {n_of(len(lost), 'rating')} of {n_all:,} ({percent(share.value)}). In the published "
        "study a rule of this kind cost about 36% of the ratings.",
    ]
    if not len(lost):
        words.append("Nothing was lost, so there is nothing to compare.")
        return Section(name, title, tuple(words))
    everyone = pool_of(data, pool.criterion, pool.scale, judgments=pl.concat([data.judgments, lost], how="diagonal"))
    with_rule, without = _averages(pool, options), _averages(everyone, options)
    words.append(_change(with_rule, without))
    rows: list[tuple[Cell, ...]] = [(label, with_rule[label], without[label]) for label in with_rule]
    for label, kept, given in _agreements(data, pool, everyone, options):
        rows.append((label, kept, given))
    table = Table(
        name,
        "With the gold rule and without it",
        (
            Column("measure", "Statistic"),
            Column("with_rule", "With the rule", "estimate"),
            Column("without_rule", "Without it", "estimate"),
        ),
        tuple(rows),
        caption="Average ratings count every question alike. Raters excluded for other reasons are excluded on both sides.",
        notes=(
            "The rule keeps raters who like the gold answers. It raises the gold average by construction, and with it any "
            "agreement between crowd and maker.",
        ),
    )
    return Section(name, title, tuple(words), (table,))


def _averages(pool: Pool, options: Options) -> dict[str, Estimate]:
    groups = [pool.is_gold, *(pool.first_answers(k) for k in range(len(pool.systems)))]
    by_group = group_means(pool, groups, options)
    labels = [GOLD, *(f"First answers of {label}" for label in pool.labels)]
    return {label: by_group.mean(k, label=label) for k, label in enumerate(labels)}


def _change(with_rule: dict[str, Estimate], without: dict[str, Estimate]) -> str:
    gold_with, gold_without = with_rule[GOLD], without[GOLD]
    moves = [
        with_rule[label].value - without[label].value
        for label in with_rule
        if label != GOLD and with_rule[label].is_known and without[label].is_known
    ]
    text = f"With the rule the gold answers average {number(gold_with.value)}, without it {number(gold_without.value)}."
    if not gold_with.is_known or not gold_without.is_known:
        text = "The gold answers have no ratings on one of the two sides."
    if moves:
        text += f" The averages of first answers move by {number(min(moves))} to {number(max(moves))}."
    order = [
        sorted(averages, key=lambda label: -averages[label].value)
        for averages in (_systems(with_rule), _systems(without))
    ]
    same = "stays the same" if order[0] == order[1] else "changes"
    return f"{text} The order of the systems {same}." if len(order[0]) > 1 else text


def _systems(averages: dict[str, Estimate]) -> dict[str, Estimate]:
    return {label: mean for label, mean in averages.items() if label != GOLD and mean.is_known}


def _agreements(data: StudyData, kept: Pool, everyone: Pool, options: Options) -> list[tuple[str, Cell, Cell]]:
    """Alpha and the random two's kappa on both sides; None where one side has too few ratings."""
    sides: list[Agreement | None] = []
    for pool in (kept, everyone):
        try:
            columns = rating_columns(pool, data.study.spec.design.judgments_per_item)
            sides.append(agreement_of(pool, columns, options, has_null=False))
        except DialometerError:
            sides.append(None)
    alphas = [side.alpha if side is not None else None for side in sides]
    rows: list[tuple[str, Cell, Cell]] = [("Krippendorff's alpha", alphas[0], alphas[1])]
    kappas = [bare(side.linear["random"].kappa) if side is not None and side.linear else None for side in sides]
    if any(kappa is not None for kappa in kappas):
        rows.append(("Weighted kappa, random two", kappas[0], kappas[1]))
    return rows
