"""The one model of a set of votes: Bradley-Terry strengths and the tests of every two systems.

Answer, leaderboard, declared comparisons and power analysis all read the contrasts that are made here. Raters and items are
both samples, unless the study declares its items fixed or has only one; then claims are about the items that were shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import n_of
from dialometer.analysis.shared.effect_words import expected_share
from dialometer.analysis.shared.ranking import adjusted_pairs, difference
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.effects.multiplicity import Correction, adjust, without_look
from dialometer.stats.ranking.bradley_terry import BradleyTerry, Ties, bradley_terry
from dialometer.stats.ranking.strength_contrasts import StrengthContrasts
from dialometer.stats.ranking.vote_variance import VoteVariance, is_item_per_rater, vote_variance
from dialometer.stats.ranking.votes import Votes, WinMatrix, win_matrix

MOST_PAIRED = 100
"""Systems above which only the first is compared with each of the others; tests are corrected for all pairs all the same."""

_AT_THE_END = 5e-4
_STEP = 1e-5

Contrasts = dict[tuple[str, str], Estimate]


@dataclass(frozen=True, eq=False)
class VoteModel:
    """A fit with its uncertainty. ``strengths`` is None where one rater gave all votes: nothing is tested then."""

    votes: Votes
    matrix: WinMatrix
    fit: BradleyTerry
    strengths: StrengthContrasts | None
    options: Options
    is_about_these_items: bool
    """Whether claims are about the items that were shown, not about items like them."""
    weighted: WinMatrix | None = None
    """The votes by their weights, which the fit was made from; ``matrix`` counts them."""

    @property
    def n_items(self) -> int:
        """How many items were voted on; 0 where they are not known."""
        return 0 if self.votes.item is None else len(np.unique(self.votes.item))

    @property
    def items_words(self) -> str:
        """How many items were voted on, and what they have in common; empty where they are not known."""
        words = n_of(self.n_items, "item") if self.n_items else ""
        if self.votes.prompt is not None:
            return f"{words} of {n_of(len(np.unique(self.votes.prompt)), 'prompt')}"
        if self.votes.text is not None:
            return f"{words} that show {n_of(len(np.unique(self.votes.text)), 'transcript')}"
        return words

    @cached_property
    def contrasts(self) -> Contrasts:
        """Differences of strengths of every two systems, corrected as one family, with intervals."""
        return self._pairs(self.strengths)

    def on_these_items(self) -> Contrasts:
        """The same tests as claims about the items that were shown; empty where items are no further sample."""
        if self.strengths is None or self.strengths.variance.items is None:
            return {}
        of_all = self.strengths.variance
        raters_only = VoteVariance(of_all.inverse, of_all.raters, independent=of_all.independent)
        return self._pairs(
            StrengthContrasts(self.weighted or self.matrix, self.fit, raters_only, confidence=self.options.confidence)
        )

    def win_probability(self, first: str, second: str) -> Estimate:
        """How often the first is preferred to the second, a tie counting half, with interval and test of their contrast."""
        plain = self.fit.win_probability(first, second)
        gap = difference(self.contrasts, first, second)
        if not plain.is_known or gap is None:
            return replace(plain, low=math.nan, high=math.nan, interval_method="")
        ends = np.array([gap.low, gap.high])
        low, high = outward(*expected_share(ends, tie_of(self.fit)).tolist())
        around = expected_share(gap.value + np.array([-_STEP, _STEP]), tie_of(self.fit))
        error = float(gap.details["standard_error"]) * float(np.diff(around)[0]) / (2 * _STEP)
        value = plain.value
        details = {**gap.details, "null": 0.5, "standard_error": error, "n_effective": value * (1 - value) / error**2}
        return replace(gap, value=value, low=low, high=high, unit="share", details=details)

    def differ(self, contrasts: Contrasts) -> Estimate:
        """Whether the systems differ at all: they do if any two of them do, after correction for all pairs."""
        method = "smallest p-value of all pairs of systems, corrected (Holm)"
        n_systems = len(self.fit.ranked)
        label = f"{n_systems} systems"
        p_values = _adjusted([gap.p_value for gap in contrasts.values()], n_systems, "holm")
        known = [p for p in p_values if not math.isnan(p)]
        if not known:
            return unknown(method, "no two systems can be tested: more raters or items are needed", label=label)
        return Estimate(
            value=max(abs(gap.value) for gap in contrasts.values()),
            n=self.votes.n,
            method=method,
            confidence=self.options.confidence,
            p_value=min(known),
            label=label,
            unit="log odds",
        )

    def _pairs(self, strengths: StrengthContrasts | None) -> Contrasts:
        ranked = self.fit.ranked
        if strengths is None or len(ranked) < 2:
            return {}
        in_order = [name for name in self.fit.systems if name in ranked]
        pairs = list(combinations(in_order, 2))
        if len(ranked) > MOST_PAIRED:
            pairs = [(ranked[0], name) for name in ranked[1:]]
        differences = strengths.estimates(strengths.pair_rows(pairs), [f"{a} - {b}" for a, b in pairs], n=self.votes.n)
        # Sentences turn a difference into a share of choices, in which a tie counts half, as in every table.
        tie = {"tie": tie_of(self.fit)}
        estimates = [replace(gap, details={**gap.details, **tie}) for gap in differences]
        return _corrected(dict(zip(pairs, estimates, strict=True)), len(ranked), self.options.correction)


def tie_of(fit: BradleyTerry) -> float:
    """Davidson's tie parameter; 0 where the model has none."""
    return fit.tie_parameter.value if fit.tie_parameter is not None and fit.tie_parameter.is_known else 0.0


def outward(low: float, high: float) -> tuple[float, float]:
    """The ends of an interval of a share; next to 0 and 1 they are 0 and 1, as no votes could show the difference."""
    return (0.0 if low < _AT_THE_END else low), (1.0 if high > 1 - _AT_THE_END else high)


def vote_model(votes: Votes, options: Options, *, is_order_drawn: bool, where: str = "") -> VoteModel:
    """The richest model that the votes can carry: tie and position parameters go where they alone have no finite value."""
    if votes.n == 0:
        raise NotEnoughData("no votes yet", where=where, remedy="collect judgments on this question")
    counted = win_matrix(votes)
    matrix = counted if votes.weight is None else win_matrix(votes, is_weighted=True)
    ties: Ties = "davidson" if matrix.tied.any() else "half"
    has_position = is_order_drawn and _both_orders(matrix)
    fit = bradley_terry(matrix, ties=ties, position_effect=has_position, confidence=options.confidence)
    if fit.is_penalised and len(fit.groups) == 1 and (has_position or ties == "davidson"):
        fit = bradley_terry(matrix, confidence=options.confidence)
    has_one_item = votes.prompt_or_item is not None and len(np.unique(votes.prompt_or_item)) == 1
    is_fixed = (options.has_fixed_items or has_one_item) and not _has_item_each(votes)
    strengths = None
    if len(votes.raters) > 1:
        variance = vote_variance(votes, fit, has_fixed_items=is_fixed)
        strengths = StrengthContrasts(matrix, fit, variance, confidence=options.confidence)
    return VoteModel(votes, counted, fit, strengths, options, is_fixed, weighted=matrix)


def _has_item_each(votes: Votes) -> bool:
    """Whether every rater saw items of their own, as in arenas: then other raters would have seen other items anyway."""
    return votes.item is not None and len(votes.raters) > 1 and is_item_per_rater(votes)


def _both_orders(matrix: WinMatrix) -> bool:
    """Whether some two systems were shown in either order."""
    seen = matrix.first_won + matrix.second_won + matrix.tied > 0
    return bool((seen & seen.T).any())


def _adjusted(p_values: list[float], n_systems: int, correction: Correction) -> list[float]:
    """Corrected for all pairs of systems, also those that were not computed."""
    n_missing = n_systems * (n_systems - 1) // 2 - len(p_values)
    return [float(p) for p in adjust([*p_values, *([1.0] * n_missing)], correction)[: len(p_values)]]


def _corrected(pairs: Contrasts, n_systems: int, correction: Correction) -> Contrasts:
    tidy = adjusted_pairs(pairs, correction)
    p_values = _adjusted([gap.p_value for gap in tidy.values()], n_systems, without_look(correction))
    return {
        pair: replace(gap, details={**gap.details, "p_adjusted": p})
        for (pair, gap), p in zip(tidy.items(), p_values, strict=True)
    }
