"""Many tests at once: p-values that stay honest about how many questions were asked, and how often.

Checked against ``statsmodels.stats.multitest.multipletests(p, method="holm" | "fdr_bh" | "bonferroni")``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from dialometer.errors import UnknownName
from dialometer.model.estimate import Estimate
from dialometer.stats.observations import Floats, numbers
from dialometer.stats.sequential.look import SequentialLook

Correction = Literal["holm", "benjamini-hochberg", "bonferroni", "none"]


class _AtLook(str):
    """The name of a correction with the look at which it is made: many looks are corrected for where many tests are."""

    look: SequentialLook

    def __reduce__(self) -> tuple[object, ...]:
        return at_look, (str(self), self.look)


def at_look(correction: Correction, look: SequentialLook) -> Correction:
    """The correction at a look: p-values and intervals then hold at every look too. It keeps its name."""
    corrected_at_look = _AtLook(correction)
    corrected_at_look.look = look
    return cast("Correction", corrected_at_look)


def look_of(correction: Correction) -> SequentialLook | None:
    """The look of a correction; None where the number of raters is fixed."""
    return getattr(correction, "look", None)


def without_look(correction: Correction) -> Correction:
    """The correction for p-values that hold at every look already."""
    return cast("Correction", str.__str__(correction)) if look_of(correction) else correction


def _with_family(p_values: ArrayLike) -> tuple[Floats, Floats]:
    """All p-values and the sorted ones of the family: tests that could not be made (nan) do not count in it."""
    p = numbers(p_values)
    return p, np.sort(p[~np.isnan(p)])


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down procedure (1979): keeps the chance of any false finding, never weaker than Bonferroni."""
    p, family = _with_family(p_values)
    steps = np.maximum.accumulate(family * np.arange(len(family), 0, -1))
    return _spread(p, family, np.minimum(steps, 1.0))


def benjamini_hochberg(p_values: ArrayLike) -> Floats:
    """Benjamini and Hochberg's step-up procedure (1995): keeps the expected share of false findings."""
    p, family = _with_family(p_values)
    steps = family * len(family) / np.arange(1, len(family) + 1)
    return _spread(p, family, np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0))


def bonferroni(p_values: ArrayLike) -> Floats:
    """Every p-value times the number of tests; for comparison with papers that report it."""
    p, family = _with_family(p_values)
    return np.minimum(p * len(family), 1.0)


def _spread(p: Floats, family: Floats, adjusted: Floats) -> Floats:
    """Adjusted values back in the given order; equal p-values get equal adjusted ones, nan stays nan."""
    out = np.full(len(p), np.nan)
    is_tested = ~np.isnan(p)
    out[is_tested] = adjusted[np.searchsorted(family, p[is_tested], side="left")]
    return out


def adjust(p_values: ArrayLike, correction: Correction = "holm") -> Floats:
    """P-values corrected by the procedure a study declares."""
    look = look_of(correction)
    if look is not None:
        held = [p if math.isnan(p) else look.p_value(p) for p in numbers(p_values).tolist()]
        return adjust(held, without_look(correction))
    if correction == "none":
        return numbers(p_values).copy()
    procedures = {"holm": holm, "benjamini-hochberg": benjamini_hochberg, "bonferroni": bonferroni}
    if correction not in procedures:
        known = ", ".join([*procedures, "none"])
        raise UnknownName(f"unknown correction {correction!r}", remedy=f"use one of {known}")
    return procedures[correction](p_values)


def adjust_estimates(estimates: Sequence[Estimate], correction: Correction = "holm") -> tuple[Estimate, ...]:
    """The estimates as one family: each gains ``p_adjusted``, the procedure and the size of the family in its details.

    At a look their intervals and p-values become those that hold at every look.
    """
    look = look_of(correction)
    if look is not None:
        return adjust_estimates([look.applied(estimate) for estimate in estimates], without_look(correction))
    adjusted = adjust([estimate.p_value for estimate in estimates], correction)
    n_tests = int(np.sum(~np.isnan(adjusted)))
    return tuple(
        replace(
            estimate,
            details={
                **estimate.details,
                "p_adjusted": float(value),
                "correction": correction,
                "n_tests": n_tests,
            },
        )
        for estimate, value in zip(estimates, adjusted, strict=True)
    )
