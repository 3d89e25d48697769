"""Other models with which systems might have been compared on best-worst choices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options, OtherChoice
from dialometer.analysis.families.votes.best_worst_choices import best_worst_data
from dialometer.analysis.shared.comparisons import between
from dialometer.analysis.shared.equivalence import decided
from dialometer.analysis.shared.other_models import OneSample, by_both, by_raters, rescaled, simpler_models
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.stats.observations import Floats

Count = Callable[[Floats], Floats]
"""From marks (1 best, -1 worst, 0 neither) to what is compared."""


def best_worst_alternatives(data: StudyData, comparison: Comparison, options: Options) -> list[OtherChoice]:
    """Best picks alone, worst picks alone, and simpler models of the same scores."""
    given = best_worst_data(data)
    choices = given.on(given.questions(comparison))
    if not choices.n:
        return []
    marks = choices.marks()
    item = np.zeros(choices.n, dtype=np.intp) if choices.item is None else choices.item
    name_of = dict(zip(given.systems, given.names, strict=True))

    def tests(count: Count, model: OneSample) -> dict[str, Estimate]:
        made = {}
        for first, second in combinations(given.labels(comparison), 2):
            a, b = (choices.systems.index(label) for label in (first, second))
            declared, gap = marks[:, a] - marks[:, b], count(marks[:, a]) - count(marks[:, b])
            if np.isnan(gap).all():
                continue
            spread = float(np.nanstd(gap))
            factor = float(np.nanstd(declared)) / spread if spread > 0 else 1.0
            estimate = rescaled(model(gap, choices.rater, item, 0.0, options.confidence), factor)
            made[f"{first} against {second}"] = between(estimate, name_of[first], name_of[second])
        return decided(made, comparison, options)

    same = by_raters if options.has_fixed_items else by_both
    counts: list[tuple[str, Count]] = [
        ("only the best counts", lambda marked: np.maximum(marked, 0)),
        ("only the worst counts", lambda marked: np.minimum(marked, 0)),
    ]
    return [
        *(OtherChoice("Choices", label, partial(tests, count, same)) for label, count in counts),
        *(
            OtherChoice("Model", label, partial(tests, lambda marked: marked, model), claim)
            for label, model, claim in simpler_models(options)
            if model is not same  # the declared model
        ),
    ]
