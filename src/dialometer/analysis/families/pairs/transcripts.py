"""Transcript pairs beside their numbers: what was changed, word by word, and what raters made of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import correction_name, listed, with_interval
from dialometer.analysis.families.pairs.choices import PairChoices, pair_items, strategy_of
from dialometer.analysis.families.pairs.results import pairs_differ, share_here
from dialometer.analysis.shared.comparisons import corrected_by_name, is_significant, known_cell, p_cell
from dialometer.design.pairs import PairReport, inspect_pair
from dialometer.model.estimate import Estimate
from dialometer.model.item import PairItem
from dialometer.model.report import Cell, Column, Section, Table, Turns
from dialometer.model.study import Study
from dialometer.report.numbers import write_signed

MOST_PAIRS = 40
MOST_TURNS = 14
Stretch = tuple[str, str, str]
Row = tuple[str, tuple[Stretch, ...]]


def transcripts_section(study: Study, choices: PairChoices, options: Options) -> Section:
    """Every pair with its share, its change of length and its difference, in the order of the item file."""
    items = pair_items(study)
    shares = [
        share_here(choices.where(choices.item == k), confidence=options.confidence, label=item.id)
        for k, item in enumerate(items)
    ]
    reports = [inspect_pair(item) for item in items]
    label = dict(zip(choices.strategies, choices.strategy_labels, strict=True))
    rows: list[tuple[Cell, ...]] = [
        (
            item.id,
            label[strategy_of(study, item)],
            int(np.sum(choices.item == k)),
            known_cell(shares[k]),
            reports[k].n_words_a,
            reports[k].n_words_b,
        )
        for k, item in enumerate(items)
    ]
    columns = (
        Column("pair", "Pair"),
        Column("strategy", "Strategy"),
        Column("n", "Answers", "count"),
        Column("share", "Prefer experimental", "percent_estimate"),
        Column("words_control", "Words, control", "count"),
        Column("words_experimental", "Words, experimental", "count"),
    )
    parts: list[Table | Turns] = [Table("pairs", "Preference by pair", columns, tuple(rows), notes=_pair_notes())]
    same = _same_pairs(choices, options)
    parts += [same] if same else []
    shown = [_turns(item, reports[k], shares[k], label[strategy_of(study, item)]) for k, item in enumerate(items)]
    parts += [replace(turns, is_markdown=study.shows_markdown) for turns in shown[:MOST_PAIRS]]
    paragraphs = _reach_words(choices, options)
    paragraphs = (
        *paragraphs,
        "In the pairs below, the first transcript is the control and the second the experimental version.",
    )
    if len(items) > MOST_PAIRS:
        paragraphs = (*paragraphs, f"Only the first {MOST_PAIRS} of {len(items)} pairs are printed below.")
    return Section("transcripts", "The transcripts", paragraphs, tuple(parts))


def _pair_notes() -> tuple[str, ...]:
    return (
        "Over all questions, each rater as one cluster. Pairs are few, so they are described rather than tested one by one.",
    )


def pairs_that_differ(choices: PairChoices, options: Options) -> list[str]:
    """Strategies whose preference depends on which of their pairs was read, after correction."""
    return [label for label, test in _tests(choices, options).items() if is_significant(test)]


def _tests(choices: PairChoices, options: Options) -> dict[str, Estimate]:
    """For strategies with several pairs: whether the preference depends on the pair."""
    tests = {}
    for s, label in enumerate(choices.strategy_labels):
        inside = choices.where(choices.strategy == s)
        if len(np.unique(inside.item)) > 1:
            tests[label] = pairs_differ(inside, label=label)
    return corrected_by_name(tests, options)


def _same_pairs(choices: PairChoices, options: Options) -> Table | None:
    tests = _tests(choices, options)
    if not tests:
        return None
    rows: list[tuple[Cell, ...]] = [
        (
            label,
            test.n,
            p_cell(test.statistic),
            p_cell(test.p_value),
            p_cell(float(test.details.get("p_adjusted", math.nan))),
        )
        for label, test in tests.items()
    ]
    columns = (
        Column("strategy", "Strategy"),
        Column("n", "Answers", "count"),
        Column("f", "F", "number"),
        Column("p", "p", "p_value"),
        Column("p_adjusted", f"p ({correction_name(options.correction)})", "p_value"),
    )
    notes = tuple(dict.fromkeys(note for test in tests.values() for note in test.notes))
    return Table("pairs-differ", "Does the preference depend on the pair?", columns, tuple(rows), notes=notes)


def _reach_words(choices: PairChoices, options: Options) -> tuple[str, ...]:
    tests = _tests(choices, options)
    apart = pairs_that_differ(choices, options)
    text = "Where all pairs of a strategy give similar results, its preference is more likely to hold for other transcripts. "
    if not tests:
        return (text + "Each strategy was shown in one pair only, so this cannot be checked here.",)
    untested = {label: test.notes for label, test in tests.items() if math.isnan(test.p_value)}
    parts = []
    if apart:
        parts.append(
            f"The pairs differ significantly for {listed(apart)}: there the wording of the single pair matters."
        )
    elif len(untested) < len(tests):
        whom = "No other strategy" if untested else "No strategy"
        parts.append(f"{whom} shows a significant difference between its pairs.")
    for notes in dict.fromkeys(untested.values()):
        labels = listed(label for label, own in untested.items() if own == notes)
        why = f": {notes[-1].removeprefix('no test: ')}" if notes else ""
        parts.insert(0, f"Whether the pairs of {labels} differ cannot be tested{why}.")
    return (text + " ".join(parts),)


def _turns(item: PairItem, report: PairReport, share: Estimate, strategy: str) -> Turns:
    preferred = f"Choices for the experimental version: {with_interval(share, is_percent=True)}, {share.n} answers. "
    length = f"{write_signed(100 * report.length_change, 0)}%"
    words = f"{report.n_words_a} words in the control, {report.n_words_b} in the experimental version ({length})."
    reasons = "".join(f" Declared exception: {rule} ({why})." for rule, why in item.breaches.items())
    return Turns(f"pair-{item.id}", f"{strategy}: {item.id}", _rows(item, report), preferred + words + reasons)


def _rows(item: PairItem, report: PairReport) -> tuple[Row, ...]:
    """All turns with their differing stretches; in long transcripts the turns far from any difference are counted instead."""
    if any(rule == "same_turns" for rule, _ in report.breaches):
        before: list[Row] = [(turn.speaker, (("delete", turn.text, ""),)) for turn in item.a.turns]
        return (*before, *((turn.speaker, (("insert", "", turn.text),)) for turn in item.b.turns))
    changed = dict(report.differences)
    rows: list[Row] = []
    n_hidden = 0
    for index, turn in enumerate(item.a.turns):
        is_near = any(abs(index - other) <= 1 for other in changed)
        if len(item.a.turns) > MOST_TURNS and not is_near:
            n_hidden += 1
            continue
        if n_hidden:
            rows.append(_hidden(n_hidden))
            n_hidden = 0
        stretches = changed.get(index)
        if stretches is None:
            rows.append((turn.speaker, (("equal", turn.text, turn.text),)))
        else:
            rows.append((turn.speaker, tuple((stretch.kind, stretch.a, stretch.b) for stretch in stretches)))
    return (*rows, _hidden(n_hidden)) if n_hidden else tuple(rows)


def _hidden(n: int) -> Row:
    text = f"{n} turns that are the same in both" if n > 1 else "1 turn that is the same in both"
    return ("…", (("equal", text, text),))
