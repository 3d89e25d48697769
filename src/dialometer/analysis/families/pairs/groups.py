"""Preferences of subgroups of raters, and whether the place on the screen mattered."""

from __future__ import annotations

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import listed, n_of, p_words, percent, with_interval
from dialometer.analysis.families.pairs.choices import Flags, PairChoices, corrected, marginal_share
from dialometer.analysis.families.pairs.sections import is_significant, known_cell, p_cell
from dialometer.analysis.shared.ranking import CORRECTIONS, p_adjusted
from dialometer.analysis.shared.subgroups import NO_GROUP, RaterGroups, rater_groups
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.stats.clustered.clustered import clustered_proportion
from dialometer.stats.clustered.homogeneity import homogeneity_clustered
from dialometer.stats.observations import Ints

FEW_RATERS = 2


def subgroup_section(data: StudyData, choices: PairChoices, question: str, options: Options) -> Section:
    """Marginals of each strategy by the raters' answers to one question, and whether the groups differ."""
    groups = rater_groups(data, question, choices.rater_names)
    group = groups.of_rater[choices.rater]
    levels = [k for k in range(len(groups.levels)) if groups.n_raters(k) >= FEW_RATERS]
    tests = corrected(
        [
            _difference(choices.where(choices.strategy == s), group[choices.strategy == s], levels, label)
            for s, label in enumerate(choices.strategy_labels)
        ],
        options,
    )
    rows: list[tuple[Cell, ...]] = [
        _row(choices.where(choices.strategy == s), group[choices.strategy == s], groups, tests[s], options)
        for s in range(len(choices.strategies))
    ]
    whole = _difference(choices, group, levels, "all strategies")
    if len(choices.strategies) > 1:
        rows.append(_row(choices, group, groups, whole, options))
    table = Table(
        f"subgroup-{question}",
        f"Share that preferred the experimental version by “{groups.text}”",
        (Column("strategy", "Strategy"), *groups.columns(options.correction)),
        tuple(rows),
        notes=_notes(groups, levels),
    )
    title = f"Subgroups of raters: {question.replace('_', ' ')}"
    return Section(f"subgroup-{question}", title, _words(tests, whole), (table,))


def _difference(choices: PairChoices, group: Ints, levels: list[int], label: str) -> Estimate:
    kept = np.isin(group, levels)
    return homogeneity_clustered(choices.share[kept], group[kept], choices.rater[kept], label=label)


def _row(
    choices: PairChoices,
    group: Ints,
    groups: RaterGroups,
    test: Estimate,
    options: Options,
) -> tuple[Cell, ...]:
    shares = [
        known_cell(marginal_share(choices.where(group == k), confidence=options.confidence))
        for k in range(len(groups.levels))
    ]
    last: list[Cell] = [p_cell(test.p_value)]
    if options.correction in CORRECTIONS:
        last.append("" if test.label == "all strategies" else p_cell(p_adjusted(test)))
    return (test.label, *shares, *last)


def _notes(groups: RaterGroups, levels: list[int]) -> tuple[str, ...]:
    said = [groups.note] if groups.note else []
    few = [groups.levels[k] for k in range(len(groups.levels)) if k not in levels]
    if few:
        said.append(f"With one rater only, {listed(few)} is shown but not tested.")
    n_silent = int(np.sum(groups.of_rater == NO_GROUP))
    if n_silent:
        said.append(f"{n_of(n_silent, 'rater')} gave no answer to this question.")
    return tuple(said)


def _words(tests: tuple[Estimate, ...], whole: Estimate) -> tuple[str, ...]:
    apart = [one.label for one in tests if is_significant(one)]
    known = [one for one in tests if not np.isnan(one.p_value)]
    if not known:
        reason = next((note for one in (*tests, whole) for note in one.notes), "not enough data")
        return (f"The groups cannot be compared: {reason}.",)
    if apart:
        return (
            f"The groups differ in their preference for {listed(apart)}. This was not randomised: it describes raters.",
        )
    text = "No difference between the groups can be told from chance"
    if len(tests) > 1:
        smallest = min(p_adjusted(one) for one in known)
        return (
            f"{text}, for any strategy (smallest corrected {p_words(smallest)}) or over all ({p_words(whole.p_value)}).",
        )
    return (f"{text} ({p_words(known[0].p_value)}).",)


def side_section(data: StudyData, choices: PairChoices, options: Options) -> Section:
    """Whether the transcript shown first had an advantage, overall and for each strategy."""
    if not np.isfinite(choices.chose_first).any():
        raise NotEnoughData(
            "the data do not say which transcript stood first", remedy="import the column with the side or the order"
        )
    overall = clustered_proportion(
        choices.chose_first, choices.rater, confidence=options.confidence, label="all strategies"
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
    for s, one in enumerate((*by_strategy, overall)):
        here = is_known & ((choices.strategy == s) if s < len(by_strategy) else True)
        when = [
            known_cell(marginal_share(choices.where(here & side), confidence=options.confidence))
            for side in (was_first, ~was_first)
        ]
        p = p_adjusted(one) if s < len(by_strategy) else one.p_value
        rows.append((one.label, one.n, known_cell(one), p_cell(p), *when))
    if len(by_strategy) == 1:
        rows = rows[-1:]
    columns = (
        Column("strategy", "Strategy"),
        Column("n", "Answers", "count"),
        Column("first", "Chose the first shown", "percent_estimate"),
        Column("p", "p, corrected" if len(by_strategy) > 1 else "p", "p_value"),
        Column("when_first", "Prefer experimental, shown first", "percent_estimate"),
        Column("when_second", "Prefer experimental, shown second", "percent_estimate"),
    )
    table = Table(
        "side",
        "Choice by place on the screen",
        columns,
        tuple(rows),
        notes=(
            "Cluster-robust by rater (CR2); p values of strategies are corrected as one family, that of the whole is not.",
        ),
    )
    return Section(
        "side", "Did the place on the screen matter?", _side_words(data, overall, was_first[is_known]), (table,)
    )


def _side_words(data: StudyData, overall: Estimate, was_first: Flags) -> tuple[str, ...]:
    share = float(np.mean(was_first))
    if not 0 < share < 1:
        return (
            "The experimental version always stood on the same side, so its advantage cannot be told from that of the side. "
            "Set system_order to random or counterbalanced.",
        )
    said = f"{with_interval(overall, is_percent=True)} of the choices went to the transcript shown first "
    said += f"({p_words(overall.p_value)}). "
    drawn = data.study.spec.design.system_order
    if drawn == "fixed":
        return (
            said + "The order was fixed by the item file; where sides are unequal, the preferences carry some of this.",
        )
    return (
        said
        + f"Sides were {'counterbalanced' if drawn == 'counterbalanced' else 'drawn at random'} (the experimental version "
        f"stood first in {percent(share)}), so a preference for a side does not favour either version.",
    )
