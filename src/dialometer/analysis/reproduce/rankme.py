"""Agreement of the crowd in the RankME files: ICC, variance components and kappa beside psych, lme4 and scikit-learn."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.analysis.reproduce.compared import (
    FITTED,
    REPRODUCTIONS,
    ComparedNumber,
    NumberComparison,
    Reproduction,
    data_file,
    expected,
)
from dialometer.stats.agreement.kappa import Weights, kappa_of_pairs
from dialometer.stats.effects.normalise import normalise
from dialometer.stats.icc.crossed import icc_from
from dialometer.stats.icc.forms import FORMS
from dialometer.stats.icc.icc import icc
from dialometer.stats.icc.one_way import icc_one_way
from dialometer.stats.icc.variance_components import variance_components
from dialometer.stats.observations import stack

CITATION = "Novikova, Dušek and Rieser, RankME, NAACL 2018: three systems, 100 inputs, setup 1"
METHODS = ("likert", "plainME", "rankME")
CRITERIA = ("informativeness", "naturalness", "quality")
N_COLUMNS = 3
LIKERT_POINTS = range(1, 7)
WEIGHTS: tuple[Weights, ...] = ("linear", "quadratic")
CROSSED_FORMS = ("ICC(2,1)", "ICC(3,1)", "ICC(2,k)", "ICC(3,k)")


@dataclass(frozen=True, slots=True, eq=False)
class CriterionRatings:
    """One file's judgments on one criterion, in file order."""

    values: NDArray[np.float64]
    items: NDArray[np.str_]
    raters: NDArray[np.str_]

    def matrix(self, values: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Items by columns: the k-th judgment of an item in file order is in column k."""
        return stack(self.values if values is None else values, self.items, n_columns=N_COLUMNS).ratings


@REPRODUCTIONS.register("rankme")
def rankme(data: Path | None) -> Reproduction:
    """Reads ``rankme/setup1_{likert,plainME,rankME}.csv``."""
    ratings = {(m, c): judgments for m in METHODS for c, judgments in _read(data, m).items()}
    other = expected("rankme")
    return Reproduction(
        "rankme",
        "RankME: ratings by Likert scale, plain magnitude estimation and RankME",
        CITATION,
        (_six_forms(ratings, other), _one_way(ratings, other), _crossed(ratings, other), _kappas(ratings, other)),
        (
            "An item is one system's text for one input. ln_center divides by the rater's geometric mean (in logarithms).",
            "Fits of lme4 without rater variance are excluded: there it stops before the optimum that ours reaches.",
        ),
    )


def _read(data: Path | None, method: str) -> dict[str, CriterionRatings]:
    with data_file(data, "rankme", f"setup1_{method}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    slots = ("1", "2", "3") if method == "rankME" else ("",)  # a RankME row holds three systems side by side
    items = np.array([f"{row['mr_id']}|{row[f'team{slot}']}" for row in rows for slot in slots])
    raters = np.array([row["_worker_id"] for row in rows for _ in slots])
    return {
        criterion: CriterionRatings(
            np.array([float(row[criterion + slot]) for row in rows for slot in slots]), items, raters
        )
        for criterion in CRITERIA
    }


def _six_forms(ratings: dict[tuple[str, str], CriterionRatings], other: dict[str, Any]) -> NumberComparison:
    rows = []
    for key, there in other["icc"].items():
        method, criterion, scaling = key.split("|")
        judgments = ratings[method, criterion]
        matrix = judgments.matrix(normalise(judgments.values, judgments.raters, scaling).values)
        rows += [
            ComparedNumber(f"{method}, {criterion}, {scaling}: {form.name}", icc(matrix, form.name).value, value)
            for form, value in zip(FORMS, there, strict=True)
        ]
    return NumberComparison("ICC, six forms, 300 items with three judgments", other["sources"]["icc"], tuple(rows))


def _one_way(ratings: dict[tuple[str, str], CriterionRatings], other: dict[str, Any]) -> NumberComparison:
    rows = []
    for key, (single, average) in other["one_way"].items():
        method, criterion = key.split("|")
        judgments = ratings[method, criterion]
        for form, value in (("ICC(1,1)", single), ("ICC(1,k)", average)):
            estimate = icc_one_way(judgments.values, judgments.items, form, k=N_COLUMNS)
            rows.append(ComparedNumber(f"{method}, {criterion}: {form}", estimate.value, value))
    return NumberComparison("ICC, one-way, all judgments (unbalanced)", other["sources"]["one_way"], tuple(rows))


def _crossed(ratings: dict[tuple[str, str], CriterionRatings], other: dict[str, Any]) -> NumberComparison:
    rows = []
    for key, there in other["crossed"].items():
        method, criterion, scaling = key.split("|")
        judgments = ratings[method, criterion]
        estimate = variance_components(
            normalise(judgments.values, judgments.raters, scaling).values, judgments.items, judgments.raters
        )
        rows += [
            ComparedNumber(
                f"{method}, {criterion}, {scaling}: {form}", icc_from(estimate, form, N_COLUMNS), value, FITTED
            )
            for form, value in zip(CROSSED_FORMS, there, strict=True)
        ]
    return NumberComparison(
        "ICC from crossed item and rater variances, all judgments", other["sources"]["crossed"], tuple(rows)
    )


def _kappas(ratings: dict[tuple[str, str], CriterionRatings], other: dict[str, Any]) -> NumberComparison:
    rows = []
    for key, there in other["kappa"].items():
        criterion, choice, ties = key.split("|")
        matrix = ratings["likert", criterion].matrix()
        for weights, value in zip(WEIGHTS, there, strict=True):
            pair = kappa_of_pairs(
                matrix,
                LIKERT_POINTS,
                choice,
                weights=weights,
                ties=ties,
                sides="given",
                n_resamples=2,
                n_permutations=1,
            )
            name = f"{choice} two" + (f", equal gaps to the {ties}" if choice == "closest" else "")
            rows.append(ComparedNumber(f"{criterion}, {name}: {weights}", pair.kappa.value, value))
    return NumberComparison("Kappa of two chosen of three Likert ratings", other["sources"]["kappa"], tuple(rows))
