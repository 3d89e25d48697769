"""Models that reviewers ask for, of a table of ratings: ordinal regression, generalisability, severity of raters."""

from __future__ import annotations

from typing import Any

import polars as pl

from dialometer.errors import DialometerError
from dialometer.public.judged import criterion_name, of_criterion
from dialometer.stats.effects.generalizability import GStudy, g_study
from dialometer.stats.effects.ordinal_systems import OrdinalSystems, ordinal_systems
from dialometer.stats.effects.rasch import Rasch, many_facet_rasch


def ordinal_model(judgments: pl.DataFrame, criterion: str = "", *, confidence: float = 0.95) -> OrdinalSystems:
    """Systems compared on a Likert scale without assuming equal distances between its points.

    A cumulative link mixed model with random raters and items, the ordinal counterpart of the linear mixed model (equal to
    ``ordinal::clmm`` in R). ``.differences`` holds every pair of systems in points with the test of the log odds ratio,
    ``.odds_ratio(first, second)`` the ratio of the odds of a higher rating, ``.fit`` thresholds and standard deviations.
    """
    rows = _ratings(judgments, criterion)
    return ordinal_systems(*_columns(rows, "value", "system", "rater", "item"), confidence=confidence)


def generalizability(judgments: pl.DataFrame, criterion: str = "") -> GStudy:
    """Where the variance of ratings comes from (systems, items, raters and their interactions), for planning the next study.

    ``.contrast_error(n_raters, n_items)`` is the standard error of the difference of two systems in a study of that size,
    ``.generalizability(...)`` and ``.dependability(...)`` are the coefficients G and Phi (Brennan 2001).
    """
    return g_study(*_columns(_ratings(judgments, criterion), "value", "system", "item", "rater"))


def rater_severity(judgments: pl.DataFrame, criterion: str = "", *, confidence: float = 0.95) -> Rasch:
    """How severe each rater is, in logits, beside the levels of systems and items: the many-facet Rasch model.

    ``.raters`` holds each rater's severity with interval, infit and outfit, and the mean rating expected from this rater.
    """
    rows = _ratings(judgments, criterion)
    return many_facet_rasch(*_columns(rows, "value", "system", "item", "rater"), confidence=confidence)


def _ratings(judgments: pl.DataFrame, criterion: str) -> pl.DataFrame:
    rows = of_criterion(judgments, criterion).filter(pl.col("value").is_not_null() & pl.col("system").is_not_null())
    if not len(rows):
        raise DialometerError(
            f"no judgment on '{criterion_name(judgments, criterion)}' is a number", remedy="choose a rating criterion"
        )
    return rows


def _columns(rows: pl.DataFrame, *names: str) -> list[Any]:
    return [rows[name].to_numpy() for name in names]
