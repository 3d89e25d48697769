"""How far raters agree on the best and the worst, and whether half of them would have given the same scores."""

from __future__ import annotations

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import n_of, number, percent, value_only, with_interval
from dialometer.analysis.families.votes.agreement import AGREEMENT_TITLE
from dialometer.analysis.families.votes.best_worst_choices import BestWorstData
from dialometer.analysis.shared.comparisons import known_cell, without_empty_interval
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Method, Section, Table
from dialometer.stats.ranking.best_worst import BestWorstChoices
from dialometer.stats.ranking.best_worst_agreement import agreeing_picks, best_worst_alpha, split_half


def best_worst_agreement_section(given: BestWorstData, options: Options) -> Section:
    """Agreement on every question beyond chance, and split-half reliability of the scores."""
    questions = {
        label: given.on((name,))
        for k, (name, label) in enumerate(zip(given.criteria, given.criterion_labels, strict=True))
        if np.any(given.criterion == k)
    }
    rows: list[tuple[Cell, ...]] = []
    sentences = []
    for label, choices in questions.items():
        alpha = without_empty_interval(best_worst_alpha(choices, label=label, **options.resampling))
        best, worst = (agreeing_picks(choices, end, label=label, **options.resampling) for end in ("best", "worst"))
        rows.append((label, best.n, known_cell(best), known_cell(worst), known_cell(alpha)))
        if alpha.is_known:
            sentences.append(f"{label} {with_interval(alpha)}")
    if not sentences:
        raise NotEnoughData(
            "no two raters chose from the same systems on the same item",
            remedy="have items judged by more raters to see whether they agree",
        )
    table = Table(
        "agreement",
        "Agreement on the best and the worst",
        (
            Column("question", "Question"),
            Column("items", "Items judged by two or more", "count"),
            Column("best", "Raters who agree on the best", "percent_estimate"),
            Column("worst", "Raters who agree on the worst", "percent_estimate"),
            Column("alpha", "Krippendorff's alpha", "estimate"),
        ),
        tuple(rows),
        caption=f"The share of two raters of one item who picked the same{_by_chance(given.choices)}. Alpha is of marks (best 1, "
        "neither 0, worst −1): 0 is agreement by chance, 1 full agreement. Confidence intervals are about other items.",
    )
    halves, words = _halves(questions, options)
    text = f"Agreement of raters (Krippendorff's alpha): {'; '.join(sentences)}."
    return Section("agreement", AGREEMENT_TITLE, (text, *words), (table, *halves))


def _by_chance(choices: BestWorstChoices) -> str:
    """What raters who choose at random would reach, where all screens are of one size."""
    sizes = np.unique((choices.shown >= 0).sum(axis=1))
    return f" (by chance {percent(1 / int(sizes[0]))})" if len(sizes) == 1 else ""


def _halves(questions: dict[str, BestWorstChoices], options: Options) -> tuple[list[Table], list[str]]:
    """The table of split-half reliability and its sentence; nothing where raters are too few to split."""
    halves = {
        label: (
            split_half(choices, of="systems", seed=options.seed),
            split_half(choices, of="responses", seed=options.seed),
        )
        for label, choices in questions.items()
    }
    if not any(one.is_known for both in halves.values() for one in both):
        return [], []
    rows: list[tuple[Cell, ...]] = [(label, *map(known_cell, both)) for label, both in halves.items()]
    n_splits = max(int(one.details.get("n_splits", 0)) for both in halves.values() for one in both)
    table = Table(
        "split_half",
        "Split-half reliability of the scores",
        (
            Column("question", "Question"),
            Column("systems", "Scores of systems", "estimate"),
            Column("responses", "Scores of single responses", "estimate"),
        ),
        tuple(rows),
        caption=f"Raters are split at random into two halves, and the scores of the halves are correlated: the mean of "
        f"{n_of(n_splits, 'split')}, raised to all raters (Spearman-Brown; 0 where negative). A response is one system on one item.",
    )
    return [table], [
        f"Two halves of the raters, {label}: the scores of systems correlate at {_plain(systems)}, those of single "
        f"responses at {_plain(responses)}; the reliability of all raters is {value_only(systems)} and {value_only(responses)}."
        for label, (systems, responses) in halves.items()
        if systems.is_known and responses.is_known
    ]


def _plain(estimate: Estimate) -> str:
    return number(float(estimate.details["correlation"]))


def agreement_method() -> Method:
    """How agreement is measured."""
    return Method(
        "agreement of raters",
        "Krippendorff's alpha of marks (best 1, neither 0, worst −1; interval distances); bootstrap over items",
        "corrects for chance, and works where screens hold different systems; split-half reliability beside it",
        "Krippendorff 2011; Kiritchenko and Mohammad 2017",
    )
