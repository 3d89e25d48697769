"""Questions and answers on which raters differ, and those on which they do not (Chierici and Habash 2021, section 6.4).

Sets chosen by disagreement arise in pure noise too. So their sizes stand beside those of the same ratings dealt out to the
candidates by lot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import n_of, number
from dialometer.analysis.families.candidates.agreement import agreement_of, bare
from dialometer.analysis.families.candidates.pool import Marks, Pool
from dialometer.errors import DialometerError
from dialometer.model.estimate import SHUFFLES, Estimate
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.stats.agreement.kappa import CONFIGURATIONS
from dialometer.stats.bootstrap.bootstrap import percentile_interval
from dialometer.stats.observations import Floats, Ints
from dialometer.stats.retrieval.versatility import VersatileSets, Versatility, versatility

MOST_SHUFFLED = 40_000_000
_EQUAL = 1e-12
_MOST_SHOWN = 5
_FEWEST = 10  # candidates for a kappa


def versatile_section(name: str, pool: Pool, columns: Floats, options: Options) -> Section:
    """Sizes of the sets against chance, kappa inside them, and the questions at either end."""
    candidate, place = np.nonzero(~np.isnan(columns))
    versatile = versatility(
        [pool.questions[k] for k in pool.question[candidate]],
        [pool.answers[k] for k in pool.answer[candidate]],
        columns[candidate, place].tolist(),
    )
    chance = shuffled_sizes(columns, pool.question, pool.answer, options)
    notes = (f"{n_of(versatile.n_unusable, 'candidate')} with one rating excluded.",) if versatile.n_unusable else ()
    paragraphs = [
        "The coefficient of variation (standard deviation over mean) of the ratings of one candidate says how far raters "
        f"differ on it. Its median here is {number(versatile.median)}, its 75th percentile {number(versatile.percentile_75)}. A "
        "question is versatile if it has candidates above the 75th percentile and none below the median, one-sided if "
        "it is the other way round; answers likewise.",
        _against_chance(versatile, chance),
    ]
    parts = [_sizes_table(name, versatile, chance, notes), _kappa_table(name, pool, columns, versatile, options)]
    return Section(
        name, "Versatile and one-sided questions", tuple(paragraphs), (*parts, *_question_tables(name, pool, versatile))
    )


@dataclass(frozen=True)
class SetSizes:
    """How many questions (or answers) are versatile and one-sided when ratings are dealt out by lot."""

    versatile: Estimate
    one_sided: Estimate


def shuffled_sizes(columns: Floats, question: Ints, answer: Ints, options: Options) -> dict[str, SetSizes]:
    """Sizes of the sets over shuffles of each column of ratings, holes kept; keys ``questions`` and ``answers``."""
    n_shuffles = int(np.clip(MOST_SHUFFLED // max(columns.size, 1), 50, 500))
    rng = np.random.default_rng(options.seed)
    given = [np.flatnonzero(~np.isnan(columns[:, k])) for k in range(columns.shape[1])]
    drawn: dict[str, list[tuple[int, int]]] = {"questions": [], "answers": []}
    for _ in range(n_shuffles):
        shuffled = columns.copy()
        for k, rows in enumerate(given):
            shuffled[rows, k] = rng.permutation(columns[rows, k])
        cov = variation(shuffled)
        for kind, group in (("questions", question), ("answers", answer)):
            drawn[kind].append(set_sizes(cov, group))
    result = {}
    for kind, sizes in drawn.items():
        table = np.array(sizes, dtype=np.float64)
        n = len(np.unique(question if kind == "questions" else answer))
        result[kind] = SetSizes(*(_over_shuffles(table[:, k], n, options) for k in (0, 1)))
    return result


def variation(columns: Floats) -> Floats:
    """Coefficient of variation of each row (sample standard deviation over mean); nan where it says nothing."""
    n = (~np.isnan(columns)).sum(axis=1)
    total = np.nansum(columns, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / n
        spread = np.sqrt(np.nansum((columns - mean[:, None]) ** 2, axis=1) / (n - 1))
        return np.where((n >= 2) & (mean > 0), spread / mean, np.nan)


def set_sizes(cov: Floats, group: Ints) -> tuple[int, int]:
    """How many groups are versatile and how many one-sided, by the rule of :mod:`dialometer.stats.retrieval.versatility`."""
    usable = ~np.isnan(cov)
    if not usable.any():
        return 0, 0
    median, upper = np.percentile(cov[usable], [50, 75])
    size = int(group.max()) + 1
    high = np.bincount(group[usable], weights=cov[usable] > upper + _EQUAL, minlength=size) > 0
    low = np.bincount(group[usable], weights=cov[usable] < median - _EQUAL, minlength=size) > 0
    return int(np.sum(high & ~low)), int(np.sum(low & ~high))


def _over_shuffles(sizes: Floats, n: int, options: Options) -> Estimate:
    low, high = percentile_interval(sizes, options.confidence)
    return Estimate(
        value=float(sizes.mean()),
        n=n,
        method="mean size over shuffled ratings",
        low=low,
        high=high,
        confidence=options.confidence,
        interval_method=SHUFFLES,
        seed=options.seed,
        n_resamples=len(sizes),
    )


def _against_chance(versatile: Versatility, chance: dict[str, SetSizes]) -> str:
    """Whether there are more such questions than shuffled ratings would show."""
    entries = []
    for word, n, lot in (
        ("versatile", len(versatile.questions.versatile), chance["questions"].versatile),
        ("one-sided", len(versatile.questions.one_sided), chance["questions"].one_sided),
    ):
        who = f"{n_of(n, 'question')} {'is' if n == 1 else 'are'}" if n else "No question is"
        verdict = (
            "more than chance gives"
            if n > lot.high
            else "fewer than chance gives"
            if n < lot.low
            else "what chance gives"
        )
        entries.append(
            f"{who} {word}; with the same ratings shuffled there are "
            f"{number(lot.low, 0)} to {number(lot.high, 0)}, so this is {verdict}."
        )
    return " ".join(entries)


def _sizes_table(name: str, versatile: Versatility, chance: dict[str, SetSizes], notes: tuple[str, ...]) -> Table:
    def row(kind: str, sets: VersatileSets) -> tuple[Cell, ...]:
        lot = chance[kind]
        n_all = len(sets.mean_cov)
        return (
            kind,
            n_all,
            len(sets.high),
            len(sets.low),
            len(sets.both),
            len(sets.versatile),
            lot.versatile,
            len(sets.one_sided),
            lot.one_sided,
        )

    return Table(
        name,
        "Sizes of the sets",
        (
            Column("kind", "Of"),
            Column("n", "All", "count"),
            Column("high", "Above the 75th percentile", "count"),
            Column("low", "Below the median", "count"),
            Column("both", "Both", "count"),
            Column("versatile", "Versatile", "count"),
            Column("versatile_chance", "Versatile, shuffled", "estimate", 0),
            Column("one_sided", "One-sided", "count"),
            Column("one_sided_chance", "One-sided, shuffled", "estimate", 0),
        ),
        (row("questions", versatile.questions), row("answers", versatile.answers)),
        caption="Shuffled: mean and middle of the sizes when ratings are shuffled over the candidates.",
        notes=notes,
    )


def _kappa_table(name: str, pool: Pool, columns: Floats, versatile: Versatility, options: Options) -> Table:
    """Kappa recomputed inside the sets; sets too small for it say so."""

    def of_questions(names: frozenset[str]) -> Marks:
        return np.isin(pool.question, [k for k, question in enumerate(pool.questions) if question in names])

    def of_answers(names: frozenset[str]) -> Marks:
        return np.isin(pool.answer, [k for k, answer in enumerate(pool.answers) if answer in names])

    sets = (
        ("all", np.ones(len(pool.items), dtype=bool)),
        ("versatile questions", of_questions(versatile.questions.versatile)),
        ("one-sided questions", of_questions(versatile.questions.one_sided)),
        ("versatile answers", of_answers(versatile.answers.versatile)),
        ("one-sided answers", of_answers(versatile.answers.one_sided)),
    )
    rows: list[tuple[Cell, ...]] = []
    for label, chosen in sets:
        cells: list[Cell] = [label, int(np.sum(chosen & pool.is_judged))]
        if np.sum(chosen & pool.is_judged) < _FEWEST:
            rows.append((*cells, *[None] * len(CONFIGURATIONS)))
            continue
        try:
            inside = agreement_of(pool, columns, options, chosen=chosen, has_null=False)
            cells += [
                bare(inside.linear[choice].kappa) if choice in inside.linear else None for choice in CONFIGURATIONS
            ]
        except DialometerError:
            cells += [None] * len(CONFIGURATIONS)
        rows.append(tuple(cells))
    return Table(
        f"{name}_kappa",
        "Weighted kappa (linear) inside the sets",
        (
            Column("set", "Candidates of"),
            Column("n", "Candidates", "count"),
            *(Column(choice, f"{choice} two", "estimate") for choice in CONFIGURATIONS),
        ),
        tuple(rows),
        caption="The sets were chosen by how far ratings differ, so kappa must be low in versatile ones and high in one-sided "
        "ones: this describes them and tests nothing. Sets of fewer than 10 candidates have no kappa.",
    )


def _question_tables(name: str, pool: Pool, versatile: Versatility) -> list[Table]:
    """The questions on which raters differ most and least, in words."""
    text = dict(zip(pool.questions, pool.question_texts, strict=True))
    ordered = sorted(versatile.questions.mean_cov, key=lambda question: -versatile.questions.mean_cov[question])
    n_shown = min(_MOST_SHOWN, len(ordered) // 2)
    if not n_shown:
        return []
    mark = {
        **dict.fromkeys(versatile.questions.versatile, "versatile"),
        **dict.fromkeys(versatile.questions.one_sided, "one-sided"),
    }
    rows = tuple(
        (question, text[question], versatile.questions.mean_cov[question], mark.get(question, ""))
        for question in (*ordered[:n_shown], *ordered[-n_shown:])
    )
    return [
        Table(
            f"{name}_questions",
            "Questions on which raters differ most, and least",
            (
                Column("question", "Question"),
                Column("text", "Last turn before the answer"),
                Column("cov", "Mean coefficient of variation", "number"),
                Column("set", "Set"),
            ),
            rows,
        )
    ]
