"""Statistics of a table of judgments: by name, by models of raters, and by resampling any function of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from dialometer.errors import UnknownName
from dialometer.model.estimate import Estimate
from dialometer.model.statistic import StatisticResult
from dialometer.public.frames import to_frame
from dialometer.public.judged import criterion_name, of_criterion
from dialometer.registry import did_you_mean
from dialometer.stats import STATISTICS
from dialometer.stats.agreement.fleiss import fleiss_kappa_of_judgments, label_counts
from dialometer.stats.agreement.gwet import GwetWeights, gwet_of_counts, gwet_weights
from dialometer.stats.agreement.label_models import DawidSkene, Labels, Mace, code_labels
from dialometer.stats.agreement.label_models import dawid_skene as fit_dawid_skene
from dialometer.stats.agreement.label_models import mace as fit_mace
from dialometer.stats.bootstrap.bootstrap import Interval, bootstrap_clusters
from dialometer.stats.compute import compute as compute_statistic
from dialometer.stats.compute import with_derived
from dialometer.stats.observations import positions, stack


def statistics() -> pl.DataFrame:
    """The statistics that :func:`compute` knows by name, those of other packages included, and what they are made of."""
    known = [STATISTICS.get(name) for name in STATISTICS]
    return pl.DataFrame(
        {
            "name": [statistic.name for statistic in known],
            "title": [statistic.title for statistic in known],
            "columns": [", ".join(statistic.columns) for statistic in known],
            "settings": [", ".join(statistic.settings) for statistic in known],
            "is_in_reports": [statistic.fits is not None for statistic in known],
            "source": [statistic.source for statistic in known],
        }
    )


def compute(name: str, judgments: pl.DataFrame, criterion: str = "", **settings: Any) -> StatisticResult:
    """A statistic by its name (see :func:`statistics`): an estimate, or one for each group such as a rater.

    ``settings`` are those of the statistic, such as ``confidence`` and ``seed``. ``docs/how-to/add-a-statistic.md`` shows
    how to add a statistic of your own.
    """
    statistic = STATISTICS.get(name)
    rows = of_criterion(judgments, criterion) if "criterion" not in statistic.columns else to_frame(judgments)
    return compute_statistic(statistic, rows, settings)


def fleiss_kappa(
    judgments: pl.DataFrame,
    criterion: str = "",
    *,
    interval: Interval = "percentile",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """How far several raters agree beyond chance on answers without order, such as choices (Fleiss 1971).

    The interval draws items; ``interval="bca"`` corrects it for bias and skewness.
    """
    rows = with_derived(of_criterion(judgments, criterion)).drop_nulls(["target", "category"])
    estimate = fleiss_kappa_of_judgments(
        rows["target"].to_numpy(),
        rows["category"].to_numpy(),
        interval=interval,
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
    )
    return replace(estimate, label=criterion_name(rows, criterion))


def gwet(
    judgments: pl.DataFrame,
    criterion: str = "",
    *,
    weights: GwetWeights = "nominal",
    labels: Sequence[Any] = (),
    confidence: float = 0.95,
) -> Estimate:
    """Gwet's AC1 (answers without order) or AC2 (``weights`` ordinal, linear or quadratic): agreement beyond chance.

    Unlike kappa and alpha it stays high where nearly all answers are the same and raters agree on them. ``labels`` are all
    points of the scale; left out, those that were given.
    """
    is_number = weights != "nominal" or (len(labels) > 0 and not isinstance(labels[0], str))
    column = "value" if is_number else "category"
    rows = with_derived(of_criterion(judgments, criterion)).drop_nulls(["target", column])
    known = list(labels) or sorted(rows[column].unique().to_list())
    places = positions(rows[column].to_numpy() if is_number else rows[column].to_list(), known)
    counts = label_counts(stack(places, rows["target"].to_numpy()).ratings, range(len(known)))
    name = criterion_name(rows, criterion)
    return gwet_of_counts(counts, gwet_weights(known, weights), weights=weights, confidence=confidence, label=name)


def dawid_skene(
    judgments: pl.DataFrame, criterion: str = "", *, smoothing: float = 0.0, confidence: float = 0.95
) -> DawidSkene:
    """The true answers and how well each rater knows them, estimated together (Dawid and Skene 1979).

    The result holds the ``consensus`` on each item, the ``posterior`` behind it, and each rater's ``accuracy`` and
    ``confusion``.
    """
    return fit_dawid_skene(_labels(judgments, criterion), smoothing=smoothing, confidence=confidence)


def mace(judgments: pl.DataFrame, criterion: str = "", *, confidence: float = 0.95, seed: int = 0) -> Mace:
    """The true answers and each rater's ``competence``: how likely they know rather than guess (Hovy et al. 2013)."""
    return fit_mace(_labels(judgments, criterion), confidence=confidence, seed=seed)


def bootstrap(
    judgments: pl.DataFrame,
    statistic: Callable[[pl.DataFrame], float],
    by: str | Sequence[str] = "rater",
    *,
    interval: Interval = "percentile",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """The interval of any number that a function makes of a table, drawing raters (or items, or both) with all their rows.

    ``by`` names the column whose values are drawn, or two columns that are drawn independently. ``interval="bca"`` corrects
    for bias and skewness (Efron 1987); it takes one column.
    """
    judgments = to_frame(judgments)
    columns = [by] if isinstance(by, str) else list(by)
    for name in columns:
        if name not in judgments.columns:
            raise UnknownName(f"there is no column '{name}'", remedy=did_you_mean(name, judgments.columns))
    return bootstrap_clusters(
        lambda rows: float(statistic(judgments[rows])),
        *(judgments[name].to_numpy() for name in columns),
        method=label or getattr(statistic, "__name__", "statistic"),
        resampled=" and ".join(f"{name}s" for name in columns),
        interval=interval,
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
        label=label,
    )


def _labels(judgments: pl.DataFrame, criterion: str) -> Labels:
    rows = with_derived(of_criterion(judgments, criterion)).drop_nulls(["rater", "target", "category"])
    return code_labels(*(rows[name].to_list() for name in ("rater", "target", "category")))
