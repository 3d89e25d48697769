"""How raters liked each retriever's first answer, beside the answers known to be right (Chierici and Habash 2021, table 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import inside, listed, n_of, number, with_interval
from dialometer.analysis.families.candidates.answer_differences import answer_difference
from dialometer.analysis.families.candidates.pool import Marks, Pool, pool_of
from dialometer.analysis.shared.comparisons import CORRECTIONS
from dialometer.analysis.shared.ranking import (
    Lead,
    Pairs,
    adjusted_pairs,
    every_pair,
    lead,
    lead_words,
    pair_columns,
    pair_rows,
    possible_ranks,
    rank_range,
)
from dialometer.analysis.shared.subgroups import rater_groups
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import Dot, dot_interval
from dialometer.stats.bootstrap.bootstrap import estimate_from
from dialometer.stats.bootstrap.means import crossed_means as bootstrap_crossed
from dialometer.stats.observations import Floats, Ints, from_the_highest

# All groups share every draw of raters and questions, so ratios to a reference, differences and ranks have valid intervals
# too: what a lenient rater or an easy question does to one group it does to the others.


@dataclass(frozen=True)
class GroupMeans:
    """Weighted means of groups (nan: no rating) with replicates (resamples by groups)."""

    means: Floats
    replicates: Floats
    n: Ints
    seed: int
    confidence: float
    resampled: str = "raters and questions"
    notes: tuple[str, ...] = ()

    def mean(self, group: int, *, label: str = "") -> Estimate:
        """One group's mean."""
        if np.isnan(self.means[group]):
            return unknown("mean rating", "no ratings: collect at least one judgment", label=label)
        return self._estimate(float(self.means[group]), self.replicates[:, group], group, "mean rating", label)

    def ratio(self, group: int, reference: int, *, label: str = "") -> Estimate:
        """One group's mean over another's."""
        base = self.means[reference]
        if np.isnan(self.means[group]) or np.isnan(base) or base <= 0:
            return unknown("ratio of mean ratings", "one side has no ratings above 0", label=label)
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = self.replicates[:, group] / self.replicates[:, reference]
        return self._estimate(float(self.means[group] / base), drawn, group, "ratio of mean ratings", label)

    def _estimate(self, value: float, drawn: Floats, group: int, method: str, label: str) -> Estimate:
        estimate = estimate_from(
            value,
            drawn,
            n=int(self.n[group]),
            method=f"{method}, every question counted alike",
            resampled=self.resampled,
            seed=self.seed,
            confidence=self.confidence,
            label=label,
            notes=self.notes,
        )
        return estimate if len(drawn) else replace(estimate, interval_method="", seed=None)


def crossed_means(
    value: Floats,
    rater: Ints,
    question: Ints,
    weights: Sequence[Floats],
    *,
    n_resamples: int,
    seed: int,
    confidence: float,
    has_fixed_questions: bool = False,
) -> GroupMeans:
    """A weighted mean for each group, and the same under independent draws of raters and, unless fixed, of questions.

    ``weights`` holds one array per group: how much each rating counts in it, 0 for those outside. With one rater or one
    question there are no replicates and so no interval.
    """
    drawn = {"rater": rater} if has_fixed_questions else {"rater": rater, "question": question}
    few = [name for name, group in drawn.items() if int(group.max(initial=-1)) < 1]
    means, replicates = bootstrap_crossed(
        value,
        rater,
        question,
        weights,
        n_resamples=0 if few else n_resamples,
        seed=seed,
        has_fixed_items=has_fixed_questions,
    )
    n = np.array([np.count_nonzero(weight) for weight in weights])
    why = (f"one {few[0]} only: no confidence interval, since nothing is known of others",) if few else ()
    return GroupMeans(means, replicates, n, seed, confidence, " and ".join(f"{name}s" for name in drawn), why)


GOLD = "Gold answers"
TITLE = "Average rating of first answers"


@dataclass(frozen=True)
class FirstAnswers:
    """Mean ratings of first answers and of gold answers, computed once for tables, figure and summary."""

    pool: Pool
    found: GroupMeans
    means: dict[str, Estimate]
    shares: dict[str, Estimate]
    """Each mean as a share of the gold answers' mean; empty without gold."""
    gold: Estimate | None
    declared: Pairs
    """Tests of declared comparisons, each corrected among those of its comparison."""
    others: Pairs
    lead: Lead | None

    @property
    def pairs(self) -> Pairs:
        """All comparisons."""
        return {**self.declared, **self.others}

    @property
    def is_declared(self) -> bool:
        """Whether every comparison was declared."""
        return bool(self.declared) and not self.others

    @property
    def ranked(self) -> list[str]:
        """The systems from best to worst; those without ratings come last."""
        return from_the_highest({label: mean.value for label, mean in self.means.items()})


def system_differences(pool: Pool, options: Options) -> dict[tuple[str, str], Estimate]:
    """The differences of first answers of all systems two by two (by label), not corrected."""
    of_system = {label: pool.first_answers(k) for k, label in enumerate(pool.labels)}
    return {
        (left, right): answer_difference(
            pool,
            of_system[left],
            of_system[right],
            confidence=options.confidence,
            has_fixed_questions=options.has_fixed_items,
            label=f"{left} - {right}",
        )
        for left, right in every_pair(pool.labels)
    }


def first_answers(pool: Pool, options: Options, declared: Pairs = MappingProxyType({})) -> FirstAnswers:
    """Ratings of the candidates at rank 1. Every question counts alike, however many ratings its candidates have.

    ``declared`` holds the tests of declared comparisons, corrected as their verdicts are; all other pairs are a family of
    their own.
    """
    if not pool.systems:
        raise NotEnoughData(
            "no candidate says at which rank a system retrieved it",
            where="first answers",
            remedy='give ranks in the item file, such as "ranks": {"bm25": 1}',
        )
    groups = [pool.first_answers(k) for k in range(len(pool.systems))]
    by_group = group_means(pool, [*groups, pool.is_gold], options)
    pairs = system_differences(pool, options)
    others = adjusted_pairs({pair: gap for pair, gap in pairs.items() if pair not in declared}, options.correction)
    means = {label: by_group.mean(k, label=label) for k, label in enumerate(pool.labels)}
    has_gold = bool((pool.is_gold & pool.is_judged).any())
    return FirstAnswers(
        pool=pool,
        found=by_group,
        means=means,
        shares={name: by_group.ratio(k, len(groups), label=name) for k, name in enumerate(pool.labels) if has_gold},
        gold=by_group.mean(len(groups), label=GOLD) if has_gold else None,
        declared=declared,
        others=others,
        lead=lead(means, {**declared, **others}, confidence=options.confidence),
    )


def group_means(pool: Pool, groups: list[Marks], options: Options) -> GroupMeans:
    """Means of groups of candidates in which every question weighs the same."""
    question = pool.question[pool.candidate]
    weights = []
    for group in groups:
        used = group & pool.is_judged
        n_here = np.bincount(pool.question[used], minlength=len(pool.questions))
        per_candidate = np.where(used, 1 / np.maximum(pool.n_ratings * n_here[pool.question], 1), 0.0)
        weights.append(per_candidate[pool.candidate])
    return crossed_means(
        pool.value,
        pool.rater,
        question,
        weights,
        **options.resampling,
        has_fixed_questions=options.has_fixed_items,
    )


def first_answers_section(name: str, answers: FirstAnswers, options: Options, has_gold_rule: bool) -> Section:
    """Table 2 of the paper with intervals, the comparisons between systems, and a figure."""
    low, high = answers.pool.ends
    paragraphs = [
        f"Each system's first answer to a question, as raters judged it on the scale from {low:g} to {high:g} without "
        f"knowing who had picked it. Every question counts alike; confidence intervals draw {answers.found.resampled}."
    ]
    if answers.lead is not None:
        best = answers.lead.best
        text = f"The first answers of {best} were rated {with_interval(answers.means[best])} on average"
        if answers.gold is not None:
            text += f", {with_interval(answers.shares[best], is_percent=True)} of what the gold answers got "
            text += f"({number(answers.gold.value)})"
        paragraphs.append(f"{text}. {_lead_words(answers, options)}")
    same = _same_answers(answers)
    if same:
        paragraphs.append(same)
    if answers.gold is not None and has_gold_rule:
        paragraphs.append(
            "The gold rule keeps only raters who like the gold answers, so their average is high by construction and the "
            "percentages of gold are lower than they would be otherwise; the section on the gold rule shows the averages without it."
        )
    if answers.gold is None:
        paragraphs.append(
            "No rated candidate is marked as gold (the maker's own answer), so there is no percentage of gold; mark such "
            "candidates with is_gold in the item file."
        )
    parts: list[Table | Figure] = [_table(name, answers), means_figure(f"{name}_figure", answers)]
    return Section(
        name,
        "How good the first answers are",
        tuple(paragraphs),
        (*parts, *_pair_tables(name, answers, options)),
        is_confirmatory=answers.is_declared,
    )


def _lead_words(answers: FirstAnswers, options: Options) -> str:
    """Who is ahead of whom; declared tests are corrected among those of their comparison."""
    assert answers.lead is not None
    is_mixed = bool(answers.declared and answers.others) and options.correction in CORRECTIONS
    text = lead_words(answers.lead, answers.pairs, "none" if is_mixed else options.correction)
    if not is_mixed:
        return text
    name = CORRECTIONS[options.correction]
    return f"{text} p-values are corrected ({name}), those of confirmatory comparisons among their own tests."


def _pair_tables(name: str, answers: FirstAnswers, options: Options) -> list[Table]:
    tables = []
    note = (
        "Jackknife over raters: the test is about other raters and these questions, as declared."
        if options.has_fixed_items
        else "Two-way jackknife over raters and questions: the test is about other raters and other questions."
    )
    for suffix, pairs in (("pairs", answers.declared), ("other_pairs", answers.others)):
        if pairs:
            tables.append(
                Table(
                    f"{name}_{suffix}",
                    "First answers compared, question by question",
                    pair_columns(options.correction, value="Difference in rating"),
                    pair_rows(pairs, options.correction),
                    caption="Mean over questions of the difference between two systems' first answers; n counts questions.",
                    notes=(note,),
                    is_confirmatory=suffix == "pairs",
                )
            )
    return tables


def _same_answers(answers: FirstAnswers) -> str:
    """Systems that mostly pick the same answer leave little to tell them apart by."""
    pool = answers.pool
    words = []
    for (left, right), gap in answers.pairs.items():
        first, second = (pool.first_answers(pool.labels.index(label)) for label in (left, right))
        n_same, n_both = int(np.sum(first & second & pool.is_judged)), gap.n
        if n_both and n_same / n_both >= 0.5:
            words.append(f"{left} and {right} (the same first answer to {n_same} of {n_of(n_both, 'question')})")
    if not words:
        return ""
    return f"Systems that give mostly the same answers differ little in their ratings: {listed(words)}."


def _table(name: str, answers: FirstAnswers) -> Table:
    pool = answers.pool
    ranked = [label for label in answers.ranked if answers.means[label].is_known]
    columns = [Column("system", "System"), Column("mean", "Average rating", "estimate")]
    if answers.gold is not None:
        columns.append(Column("of_gold", "% of gold", "percent_estimate"))
    columns += [
        Column("rank", "Rank", "count"),
        Column("rank_interval", "Possible ranks"),
        Column("sd", "SD of ratings", "number"),
        Column("questions", "Questions", "count"),
        Column("ratings", "Ratings", "count"),
    ]
    rows: list[tuple[Cell, ...]] = []
    if answers.gold is not None:
        rows.append((GOLD, answers.gold, "", "", "", *_spread(pool, pool.is_gold)))
    for label in answers.ranked:
        first = pool.first_answers(pool.labels.index(label))
        shares: tuple[Cell, ...] = (answers.shares[label],) if answers.gold is not None else ()
        ranks: tuple[Cell, ...] = ("", "")
        if label in ranked:
            own = answers.means[label].value
            higher = (answers.means[other].value for other in ranked)
            n_ahead = sum(value > own and not math.isclose(value, own) for value in higher)
            ranks = (1 + n_ahead, rank_range(possible_ranks(ranked, answers.pairs, label)))
        rows.append((label, answers.means[label], *shares, *ranks, *_spread(pool, first)))
    return Table(
        name,
        TITLE,
        tuple(columns),
        tuple(rows),
        caption="“Possible ranks” are those that the tests of each two systems leave open.",
        notes=_unrated(pool),
    )


def _spread(pool: Pool, group: Marks) -> tuple[Cell, Cell, Cell]:
    values = pool.value[pool.ratings_of(group)]
    n_questions = len(np.unique(pool.question[group & pool.is_judged]))
    return (float(values.std(ddof=1)) if len(values) > 1 else None), n_questions, len(values)


def _unrated(pool: Pool) -> tuple[str, ...]:
    notes = []
    for k, label in enumerate(pool.labels):
        first = pool.first_answers(k)
        n_missing = len(pool.questions) - len(np.unique(pool.question[first & pool.is_judged]))
        if n_missing:
            excluded = "this question is" if n_missing == 1 else "these questions are"
            notes.append(
                f"{label}: its first answer to {n_of(n_missing, 'question')} is not in the pool or has no rating; "
                f"{excluded} excluded from it."
            )
    return tuple(notes)


def means_figure(name: str, answers: FirstAnswers) -> Figure:
    """The average rating of the first answers and of the gold answers."""
    gold = [Dot(GOLD, answers.gold)] if answers.gold is not None else []
    dots = [*gold, *(Dot(label, answers.means[label]) for label in answers.ranked)]
    low, high = answers.pool.ends
    details = "; ".join(f"{dot.label}: {with_interval(dot.estimate)}" for dot in dots)
    return Figure(
        name,
        TITLE,
        dot_interval(dots, value_title=f"average rating ({low:g} to {high:g})", domain=(low, high)),
        alt=f"Average rating of each system's first answers with confidence intervals. {details}.",
        is_confirmatory=answers.is_declared,
    )


def candidate_group_section(name: str, data: StudyData, pool: Pool, question: str, options: Options) -> Section:
    """Average ratings of first answers in each group of raters, and which system is first there."""
    groups = rater_groups(data, question, pool.rater_names)
    resampled = "raters" if options.has_fixed_items else "raters and questions"
    labels = [GOLD, *pool.labels] if pool.is_gold.any() else list(pool.labels)
    columns: list[dict[str, Estimate]] = []
    for level in range(len(groups.levels)):
        raters = pool.rater_names[groups.inside(level)].tolist()
        columns.append(_averages(data, pool, raters, options))
    rows: list[tuple[Cell, ...]] = [
        (label, *(averages[label] if label in averages and averages[label].is_known else None for averages in columns))
        for label in labels
    ]
    first = []
    for group, averages in zip(groups.levels, columns, strict=True):
        known = {
            label: averages[label].value for label in pool.labels if label in averages and averages[label].is_known
        }
        if known:
            first.append(f"{max(known, key=lambda label: known[label])} ({group})")
    words = (
        (f"First by average rating in each group: {listed(first)}. " if first else "")
        + "Each group has rated only some candidates, so groups differ in what they saw as well as in taste; no test is made."
    )
    table = Table(
        name,
        f"Average rating of first answers by “{groups.text}”",
        (Column("system", "System"), *groups.columns()),
        tuple(rows),
        caption=f"Every question counts alike; confidence intervals draw {resampled}.",
        notes=(groups.note,) if groups.note else (),
    )
    return Section(name, f"Groups of raters: {inside(groups.label)}", (words,), (table,))


def _averages(data: StudyData, pool: Pool, raters: list[str], options: Options) -> dict[str, Estimate]:
    own = data.judgments.filter(pl.col("rater").is_in(raters))
    names = [GOLD, *pool.labels]
    try:
        part = pool_of(data, pool.criterion, pool.scale, judgments=own)
    except NotEnoughData as error:
        return {name: unknown("mean rating", str(error)) for name in names}
    groups = [part.is_gold, *(part.first_answers(k) for k in range(len(part.systems)))]
    by_group = group_means(part, [np.asarray(group) for group in groups], options)
    return {name: by_group.mean(k, label=name) for k, name in enumerate(names)}
