"""Other models with which systems might have been compared by votes: without ties, or by direct votes alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
from scipy.special import logit

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options, OtherChoice
from dialometer.analysis.families.votes.system_votes import comparison_votes, system_votes, votes_where
from dialometer.analysis.shared.comparisons import between
from dialometer.analysis.shared.equivalence import decided, has_margin
from dialometer.analysis.shared.other_models import OneSample, by_both, simpler_models
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.stats.clustered.two_way import two_way_share
from dialometer.stats.observations import Floats, Ints
from dialometer.stats.ranking.votes import FIRST, TIE, Votes

Declared = Callable[[Votes], dict[str, Estimate]]
"""The declared tests of a set of votes."""


def vote_alternatives(
    data: StudyData, comparison: Comparison, options: Options, declared: Declared
) -> list[OtherChoice]:
    """The declared model without ties, and models of direct votes that know nothing of other pairs."""
    given = system_votes(data)
    votes = comparison_votes(given, comparison)
    name_of = dict(zip(given.systems, given.names, strict=True))
    made = []
    is_tie = votes.outcome == TIE
    if is_tie.any() and not is_tie.all():
        made.append(OtherChoice("Ties", "excluded", partial(declared, votes_where(votes, ~is_tie))))

    def direct(model: OneSample) -> dict[str, Estimate]:
        tests = {}
        for a, b in combinations(range(len(votes.systems)), 2):
            points, rater, item = _direct(votes, a, b)
            if len(points):
                if model is by_both:  # its score test, as in the votes head to head
                    share = two_way_share(points, rater, item, confidence=options.confidence)
                else:
                    share = model(points, rater, item, 0.5, options.confidence)
                first, second = votes.systems[a], votes.systems[b]
                shown = share if has_margin(comparison) else _log_odds(share)
                null = 0.5 if has_margin(comparison) else 0.0
                tests[f"{first} against {second}"] = between(shown, name_of[first], name_of[second], null=null)
        return decided(tests, comparison, options)

    return [
        *made,
        *(
            OtherChoice("Direct votes", label, partial(direct, model), claim)
            for label, model, claim in simpler_models(options)
        ),
    ]


def _direct(votes: Votes, a: int, b: int) -> tuple[Floats, Ints, Ints]:
    """Points for the first of two systems in their direct votes, ties half, with raters and items."""
    ahead, behind = ((votes.first == x) & (votes.second == y) for x, y in ((a, b), (b, a)))
    met = ahead | behind
    points = np.where(votes.outcome == TIE, 0.5, np.where(votes.outcome == FIRST, 1.0, 0.0))
    points = np.where(behind, 1 - points, points)
    every = np.arange(votes.n)
    rater = every if votes.rater is None else votes.rater
    item = every if votes.prompt_or_item is None else votes.prompt_or_item
    return points[met], rater[met], item[met]


def _log_odds(share: Estimate) -> Estimate:
    """A share as log odds, the unit of strengths; its test stays that of the share, and so do the ends of its interval.

    An interval about the log odds itself (delta method) could hold zero where the test of the share rejects it.
    """
    if not share.is_known or not 0 < share.value < 1:
        return replace(share, value=math.nan, low=math.nan, high=math.nan, notes=(*share.notes, "all votes are equal"))
    value, low, high = (float(logit(min(max(end, 0.0), 1.0))) for end in (share.value, share.low, share.high))
    if math.isinf(low) and math.isinf(high):  # no value is ruled out
        low = high = math.nan
    details = {name: detail for name, detail in share.details.items() if name != "standard_error"}  # it is of the share
    return replace(share, value=value, low=low, high=high, unit="log odds", details=details)
