"""Other models with which the preference for each strategy might have been tested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options, OtherChoice
from dialometer.analysis.families.pairs.choices import PairChoices, pair_choices
from dialometer.analysis.shared.equivalence import decided
from dialometer.analysis.shared.other_models import OneSample, by_both, simpler_models
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.stats.clustered.two_way import two_way_share

NO_PREFERENCE = 0.5


def pair_alternatives(
    data: StudyData, comparison: Comparison, options: Options, named: Callable[[Estimate], Estimate]
) -> list[OtherChoice]:
    """Ties as half a choice, and one share for each rater or each pair of transcripts."""
    choices = pair_choices(data)
    asked = [name for name in choices.questions if not comparison.criteria or name in comparison.criteria]
    choices = choices.for_questions(asked)
    chosen = [s for s, name in enumerate(choices.strategies) if not comparison.blocks or name in comparison.blocks]

    def tests(test: Callable[[PairChoices], Estimate]) -> dict[str, Estimate]:
        made = {}
        for s in chosen:
            label = choices.strategy_labels[s]
            made[label] = named(replace(test(choices.where(choices.strategy == s)), label=label))
        return decided(made, comparison, options)

    def with_ties(own: PairChoices) -> Estimate:
        items = None if options.has_fixed_items else own.drawn
        return two_way_share((own.signed + 1) / 2, own.rater, items, confidence=options.confidence)

    def simpler(model: OneSample, own: PairChoices) -> Estimate:
        return model(own.share, own.rater, own.drawn, NO_PREFERENCE, options.confidence)

    made = []
    if bool(np.any(choices.signed == 0)):
        made.append(OtherChoice("Ties", "half a choice instead of excluded", partial(tests, with_ties)))
    models = [
        OtherChoice("Model", label, partial(tests, partial(simpler, model)), claim)
        for label, model, claim in simpler_models(options)
        if model is not by_both  # the declared one, but for its score test
    ]
    return [*made, *models]
