"""Sections on raters and the screen: subgroups of raters, and whether the place of a transcript mattered.

Both compare answers on the same transcript pairs. Groups of raters read the same pairs, and which version is shown first is drawn
for each rater and pair, so differences between pairs cancel and only raters are a sample. Both are exploratory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import correction_name, inside, listed, n_of, p_words, percent, with_interval
from dialometer.analysis.families.pairs.choices import Flags, PairChoices
from dialometer.analysis.families.pairs.results import share_here
from dialometer.analysis.shared.comparisons import (
    CORRECTIONS,
    corrected,
    is_significant,
    known_cell,
    p_adjusted,
    p_cell,
    p_cells,
    p_columns,
)
from dialometer.analysis.shared.subgroups import (
    FEWEST_RATERS,
    GroupTest,
    RaterGroups,
    corrected_groups,
    group_notes,
    groups_test,
    no_difference_words,
    rater_groups,
)
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.stats.clustered.clustered import clustered_proportion

SAME_PAIRS = (
    "All groups read the same transcript pairs, so that the test between groups takes raters alone as a sample; the shares are "
    "those in these pairs. Exploratory."
)


def subgroup_section(data: StudyData, choices: PairChoices, question: str, options: Options) -> Section:
    """Marginals of each strategy by the raters' answers to one question, and whether the groups differ."""
    groups = rater_groups(data, question, choices.rater_names)

    def by_group(inside: PairChoices, label: str) -> GroupTest:
        def share(chosen: Flags) -> Estimate:
            return share_here(inside.where(chosen), confidence=options.confidence)

        return groups_test(groups, inside.share, inside.rater, share, label=label)

    labels = choices.strategy_labels
    outcomes = [by_group(choices.where(choices.strategy == s), label) for s, label in enumerate(labels)]
    outcomes = corrected_groups(outcomes, options)
    whole = by_group(choices, "All strategies")
    rows: list[tuple[Cell, ...]] = [
        (outcome.test.label, *map(known_cell, outcome.by_level), *p_cells(outcome.test, options.correction))
        for outcome in outcomes
    ]
    if len(labels) > 1:
        last = ("",) if options.correction in CORRECTIONS else ()
        rows.append((whole.test.label, *map(known_cell, whole.by_level), p_cell(whole.test.p_value), *last))
    table = Table(
        f"subgroup-{question}",
        f"Share of choices for the experimental version by “{groups.text}”",
        (
            Column("strategy", "Strategy"),
            *groups.columns("percent_estimate", "group-{}", first=0),
            *p_columns(options.correction, "p (groups differ)"),
        ),
        tuple(rows),
        notes=_notes(groups, outcomes),
    )
    title = f"Subgroups of raters: {inside(groups.label)}"
    words = _group_words([outcome.test for outcome in outcomes], whole.test)
    return Section(f"subgroup-{question}", title, (words,), (table,))


def _notes(groups: RaterGroups, outcomes: Sequence[GroupTest]) -> tuple[str, ...]:
    notes = [*group_notes(groups, outcomes), SAME_PAIRS]
    few = [level for k, level in enumerate(groups.levels) if groups.n_raters(k) < FEWEST_RATERS]
    if few:
        notes.append(f"With one rater only, {listed(few)} is shown but not tested.")
    if groups.n_without:
        notes.append(f"{n_of(groups.n_without, 'rater')} gave no answer to this question.")
    return tuple(notes)


def _group_words(tests: Sequence[Estimate], whole: Estimate) -> str:
    known = [test for test in tests if not np.isnan(test.p_value)]
    apart = [test.label for test in known if is_significant(test)]
    if not known:
        return no_difference_words([*tests, whole])
    if apart:
        return (
            f"The groups differ significantly in their preference for {listed(apart)}. Groups were not randomised, and this "
            "comparison is exploratory: it describes raters."
        )
    text = "No difference between the groups is significant"
    if len(tests) > 1:
        smallest = min(p_adjusted(test) for test in known)
        return (
            f"{text}, for any strategy (smallest corrected {p_words(smallest)}) or over all ({p_words(whole.p_value)})."
        )
    return f"{text} ({p_words(known[0].p_value)})."


def side_section(data: StudyData, choices: PairChoices, options: Options) -> Section:
    """Whether the transcript shown first had an advantage, overall and for each strategy."""
    if not np.isfinite(choices.chose_first).any():
        raise NotEnoughData(
            "the data do not say which transcript was first", remedy="import the column with the side or the order"
        )
    overall = clustered_proportion(
        choices.chose_first, choices.rater, confidence=options.confidence, label="All strategies"
    )
    by_strategy = corrected(
        [
            clustered_proportion(
                choices.chose_first[choices.strategy == s],
                choices.rater[choices.strategy == s],
                confidence=options.confidence,
                label=label,
            )
            for s, label in enumerate(choices.strategy_labels)
        ],
        options,
    )
    was_first = choices.chose_first == (choices.signed == 1)
    is_known = np.isfinite(choices.chose_first)
    rows: list[tuple[Cell, ...]] = []
    for s, share in enumerate((*by_strategy, overall)):
        here = is_known & ((choices.strategy == s) if s < len(by_strategy) else True)
        when = [
            known_cell(share_here(choices.where(here & side), confidence=options.confidence))
            for side in (was_first, ~was_first)
        ]
        p = p_adjusted(share) if s < len(by_strategy) else share.p_value
        rows.append((share.label, share.n, known_cell(share), p_cell(p), *when))
    if len(by_strategy) == 1:
        rows = rows[-1:]
    columns = (
        Column("strategy", "Strategy"),
        Column("n", "Answers", "count"),
        Column("first", "Chose the first shown", "percent_estimate"),
        Column("p", f"p ({correction_name(options.correction)})" if len(by_strategy) > 1 else "p", "p_value"),
        Column("when_first", "Prefer experimental, shown first", "percent_estimate"),
        Column("when_second", "Prefer experimental, shown second", "percent_estimate"),
    )
    table = Table(
        "side",
        "Choice by position on the screen",
        columns,
        tuple(rows),
        notes=(
            "Cluster-robust by rater (CR2): sides are drawn for each rater and pair, so differences between pairs cancel. The "
            "p-values of strategies are corrected as one family, that of the whole is not. Shares for the experimental version "
            "are those in these transcript pairs.",
        ),
    )
    return Section(
        "side", "Did the position on the screen matter?", _side_words(data, overall, was_first[is_known]), (table,)
    )


def _side_words(data: StudyData, overall: Estimate, was_first: Flags) -> tuple[str, ...]:
    share = float(np.mean(was_first))
    if not 0 < share < 1:
        return (
            "The experimental version was always on the same side, so its advantage cannot be separated from that of the side. "
            "Set system_order to random or counterbalanced.",
        )
    text = f"{with_interval(overall, is_percent=True)} of the choices went to the transcript shown first "
    text += f"({p_words(overall.p_value)}). "
    drawn = data.study.spec.design.system_order
    if drawn == "fixed":
        return (
            text + "The order was fixed by the item file; where sides are unequal, the preferences carry some of this.",
        )
    return (
        text
        + f"Sides were {'counterbalanced' if drawn == 'counterbalanced' else 'drawn at random'} (the experimental version "
        f"was first in {percent(share)}), so a preference for a side does not favour either version.",
    )
