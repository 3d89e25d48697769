"""What every table of judgments is asked: do raters agree, and which of two systems is better, or are they equivalent?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from dialometer.analysis.families.ratings.agreement import IntervalMethod, Scores, reliability
from dialometer.errors import DialometerError, UnknownName
from dialometer.model.estimate import Estimate
from dialometer.model.values import BOTH_BAD, CANNOT_TELL, TIE
from dialometer.public.frames import to_frame
from dialometer.registry import did_you_mean
from dialometer.scales import SCALES
from dialometer.stats.clustered.clustered import clustered_mean, clustered_preference
from dialometer.stats.clustered.preference import signed_choices
from dialometer.stats.compute import with_derived
from dialometer.stats.effects.equivalence import equivalence as equivalence_of
from dialometer.stats.effects.normalise import ZeroRule, normalise
from dialometer.stats.effects.two_groups import welch_t
from dialometer.stats.icc.forms import form_named
from dialometer.stats.observations import codes

_UNDECIDED = (TIE, BOTH_BAD, CANNOT_TELL)


def icc(
    judgments: pl.DataFrame,
    criterion: str = "",
    *,
    form: str = "",
    method: IntervalMethod = "unequal raters",
    zeros: ZeroRule = "half_minimum",
    confidence: float = 0.95,
) -> Estimate:
    """How far raters agree on a criterion: the intraclass correlation of ratings, from every judgment there is.

    ``judgments`` is what :func:`~dialometer.public.studies.read_judgments` gives, or any table with ``rater``, ``item`` and
    ``value`` (and ``criterion``, where there are several; ``system``, where one item shows several; ``scale``, where it is a
    magnitude).
    The number is that of the report for the same judgments: left alone, ``form`` follows from the design (two-way where
    raters share items, one-way where they do not), magnitudes enter as logarithms in the form of consistency, and a
    rater's repeated judgments of one thing are averaged. ``ICC(2,1)`` is the agreement of one rating, ``ICC(2,k)`` that of
    the mean over as many raters as a thing has; ``details["k"]`` says how many.

    The interval takes raters and items as samples and raters as unequal. ``method="classical"`` gives those of other
    software: McGraw & Wong's for complete ratings (pingouin, R psych), else the profile of the likelihood.
    """
    rows = of_criterion(judgments, criterion, ("value",)).filter(pl.col("value").is_not_null())
    name = criterion_name(rows, criterion)
    if not len(rows):
        raise DialometerError(f"no judgment on '{name}' is a number", remedy="choose a rating criterion")
    chosen = form_named(form) if form else None
    table = with_derived(rows).group_by("rater", "target", "item", maintain_order=True).agg(pl.col("value").mean())
    y = table["value"].to_numpy()
    (rater, _), (target, _), (item, _) = (codes(table[column].to_numpy()) for column in ("rater", "target", "item"))
    scales = set(rows["scale"].to_list()) if "scale" in rows.columns else set()
    is_log = bool(scales) and all(name in SCALES and SCALES.get(name).unit == "log" for name in scales)
    if is_log:
        y = normalise(y, rater, "ln", zeros=zeros).values
        is_rated = ~np.isnan(y)
        y, rater, target, item = y[is_rated], rater[is_rated], target[is_rated], item[is_rated]
    data = Scores(y, target, rater, item, "log" if is_log else "as given")
    single = "" if chosen is None else chosen.name.replace(",k)", ",1)")
    result = reliability(data, confidence=confidence, label=name, form=single, method=method)
    return result.average if chosen is not None and chosen.is_average else result.single


def compare(
    judgments: pl.DataFrame, first: str, second: str, criterion: str = "", *, confidence: float = 0.95
) -> Estimate:
    """By how much ``first`` is better than ``second`` on a criterion, with a test that respects raters who answer often.

    Ratings: the mean difference, rater by rater on the same items where raters saw both systems, else between raters (Welch
    on raters' means). Choices between the two: the share that prefers ``first``, tested against one half; ties, "both are
    bad" and "cannot tell" are left out. In a report, the study's own declared comparisons come first; this is for looking.
    """
    rows = of_criterion(judgments, criterion, ("system", "value"))
    label = f"{first} − {second}"
    systems = set(rows["system"].drop_nulls().to_list()) | _shown_systems(rows)
    for name in (first, second):
        if name not in systems:
            raise UnknownName(f"there is no system '{name}'", remedy=did_you_mean(name, sorted(systems)))
    if first == second:
        raise DialometerError(f"'{first}' is compared with itself", remedy="name two systems")
    ratings = rows.filter(pl.col("value").is_not_null() & pl.col("system").is_in([first, second]))
    if len(ratings):
        return _by_ratings(ratings, first, second, label, confidence)
    return _by_choices(rows, first, second, confidence)


def equivalence(
    judgments: pl.DataFrame, first: str, second: str, margin: float, criterion: str = "", *, confidence: float = 0.95
) -> Estimate:
    """Whether two systems are practically the same on a criterion: two one-sided tests (TOST) within a margin.

    The difference is that of :func:`compare`. Ratings are equivalent where it lies within ``margin`` points of zero, choices
    where the share that prefers ``first`` lies within ``margin`` of one half. A small p-value supports equivalence;
    ``details["is_equivalent"]`` says whether it holds at this confidence.
    """
    if margin <= 0:
        raise DialometerError(f"a margin of {margin:g}", remedy="give the largest difference that does not matter")
    difference = compare(judgments, first, second, criterion)
    middle = 0.5 if "n_for" in difference.details else 0.0
    return equivalence_of(difference, middle - margin, middle + margin, confidence=confidence)


def _by_ratings(rows: pl.DataFrame, first: str, second: str, label: str, confidence: float) -> Estimate:
    means = rows.group_by("rater", "item", "system", maintain_order=True).agg(pl.col("value").mean())
    wide = means.pivot(on="system", index=["rater", "item"], values="value", sort_columns=True)
    both = wide.drop_nulls([first, second]) if {first, second} <= set(wide.columns) else wide.clear()
    if len(both):
        apart = (both[first] - both[second]).to_numpy()
        return clustered_mean(apart, both["rater"].to_numpy(), null=0.0, confidence=confidence, label=label)
    by_rater = rows.group_by("system", "rater", maintain_order=True).agg(pl.col("value").mean())
    own, other = (by_rater.filter(pl.col("system") == name)["value"].to_numpy() for name in (first, second))
    return welch_t(own, other, confidence=confidence, label=label)


def _by_choices(rows: pl.DataFrame, first: str, second: str, confidence: float) -> Estimate:
    """+1 for the first, -1 for the second; screens that showed other systems are passed over."""
    pair = rows.filter(pl.col("order").is_in([f"{first}|{second}", f"{second}|{first}"]))
    kept = pair.filter(pl.col("choice").is_in([first, second, *_UNDECIDED]))
    if not len(kept):
        message = f"nobody has rated or chosen between '{first}' and '{second}' here"
        raise DialometerError(message, remedy="look at the columns value and choice of the judgments")
    signed = signed_choices(kept["choice"].replace(BOTH_BAD, TIE).to_list(), favoured=first, against=second)
    label = f"prefer {first} to {second}"
    return clustered_preference(signed, kept["rater"].to_numpy(), confidence=confidence, label=label)


def of_criterion(judgments: Any, criterion: str, also: Sequence[str] = ()) -> pl.DataFrame:
    """The judgments on one criterion, which need not be named where there is only one. ``also`` are further columns needed.

    A table without a column of criteria is about one, which is called ``value``.
    """
    table = to_frame(judgments)
    missing = [
        name for name in ("rater", "item", *also, *(["criterion"] if criterion else [])) if name not in table.columns
    ]
    if missing:
        remedy = "give the table of read_judgments, or one with its column names"
        raise DialometerError(f"the judgments have no column '{missing[0]}'", remedy=remedy)
    if "criterion" not in table.columns:
        table = table.with_columns(pl.lit("value").alias("criterion"))
    known = table["criterion"].unique(maintain_order=True).to_list()
    if not criterion and len(known) > 1:
        raise DialometerError("there are several criteria", remedy=f"name one of: {', '.join(map(str, known))}")
    if criterion and criterion not in known:
        raise UnknownName(f"there are no judgments on '{criterion}'", remedy=did_you_mean(criterion, known))
    return table.filter(pl.col("criterion") == criterion) if criterion else table


def criterion_name(rows: pl.DataFrame, criterion: str) -> str:
    """The criterion's name, taken from the rows where it was not given."""
    return criterion or (str(rows["criterion"][0]) if len(rows) else "this criterion")


def _shown_systems(rows: pl.DataFrame) -> set[str]:
    """Systems that stood side by side."""
    if "order" not in rows.columns:
        return set()
    return {name for order in rows["order"].drop_nulls().unique().to_list() for name in order.split("|") if name}
