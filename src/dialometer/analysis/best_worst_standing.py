"""One ranking from best-worst choices: counts, choice model, ranks and differences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dialometer.analysis.best_worst_choices import scores
from dialometer.analysis.family import Options
from dialometer.analysis.leader import Lead, adjusted_pairs, lead
from dialometer.analysis.rater_bootstrap import EXPANDED, MOST_RESAMPLED, expanded_confidence, random_groups
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.best_worst import BestWorstChoices, BestWorstScores, best_worst_counts
from dialometer.stats.clustered import clustered_mean
from dialometer.stats.homogeneity import homogeneity_clustered
from dialometer.stats.maxdiff import Maxdiff, maxdiff
from dialometer.stats.rank_intervals import RankIntervals


@dataclass(frozen=True, eq=False)
class BestWorstStanding:
    """Everything about one ranking; systems stand in it by their score, -1 (always worst) to 1 (always best)."""

    label: str
    choices: BestWorstChoices
    scores: dict[str, Estimate]
    utilities: dict[str, Estimate]
    model: Maxdiff
    ranks: RankIntervals
    pairs: dict[tuple[str, str], Estimate]
    differ: Estimate

    @property
    def ranked(self) -> tuple[str, ...]:
        """Systems that were shown, the best first."""
        known = [name for name, one in self.scores.items() if one.is_known]
        return tuple(sorted(known, key=lambda name: -self.scores[name].value))

    @property
    def has_ranks(self) -> bool:
        """Whether raters could be resampled."""
        return len(self.choices.raters) > 1

    def leader(self) -> Lead:
        """Who is first, and of whom that can be said after correction."""
        found = lead(self.scores, self.pairs, confidence=self.differ.confidence)
        return found or Lead(self.ranked[0], (), self.ranked[1:])

    def rivals(self) -> tuple[str, ...]:
        """Systems that cannot be told from the first, the best first."""
        found = self.leader()
        return tuple(name for name in self.ranked if name in (*found.level, *found.untested))


def best_worst_standing(choices: BestWorstChoices, label: str, options: Options) -> BestWorstStanding:
    """The ranking that a set of choices makes."""
    n_raters = len(choices.raters)
    wide = expanded_confidence(options.confidence, n_raters) if n_raters > 1 else options.confidence
    drawn = choices
    if n_raters > MOST_RESAMPLED:
        groups = random_groups(n_raters, options.seed)
        names = tuple(f"group {k + 1}" for k in range(MOST_RESAMPLED))
        drawn = replace(choices, raters=names, rater=groups[choices.rater])
    counted = best_worst_counts(drawn, n_resamples=options.n_resamples, confidence=wide, seed=options.seed)
    model = maxdiff(drawn, n_resamples=options.n_resamples, confidence=wide, seed=options.seed)
    table = scores(choices)
    return BestWorstStanding(
        label=label,
        choices=choices,
        scores={name: _named(one, options) for name, one in counted.scores.items()},
        utilities={name: _named(one, options) for name, one in model.utilities.items()},
        model=model,
        ranks=_named_ranks(counted, options),
        pairs=score_differences(choices, table, options),
        differ=systems_differ(choices, table),
    )


def _named(one: Estimate, options: Options) -> Estimate:
    if not one.has_interval or "bootstrap" not in one.interval_method:
        return replace(one, confidence=options.confidence)
    return replace(one, confidence=options.confidence, interval_method=EXPANDED)


def _named_ranks(counted: BestWorstScores, options: Options) -> RankIntervals:
    return replace(counted.ranks, ranks={name: _named(one, options) for name, one in counted.ranks.ranks.items()})


def score_differences(
    choices: BestWorstChoices, table: NDArray[np.float64], options: Options, systems: list[int] | None = None
) -> dict[tuple[str, str], Estimate]:
    """Every two systems: mean difference of their scores where both were shown, each rater as one cluster; one family."""
    chosen = list(range(len(choices.systems))) if systems is None else systems
    found = {}
    for a, b in combinations(chosen, 2):
        gap = table[:, a] - table[:, b]
        label = f"{choices.systems[a]} - {choices.systems[b]}"
        if np.isnan(gap).all():
            found[choices.systems[a], choices.systems[b]] = unknown(
                "difference of scores", "never shown together", label=label
            )
            continue
        found[choices.systems[a], choices.systems[b]] = clustered_mean(
            gap, choices.rater, null=0.0, confidence=options.confidence, label=label
        )
    return adjusted_pairs(found, options.correction)


def systems_differ(choices: BestWorstChoices, table: NDArray[np.float64]) -> Estimate:
    """Whether scores differ between systems at all, each rater as one cluster."""
    row, system = np.nonzero(~np.isnan(table))
    return homogeneity_clustered(table[row, system], system, choices.rater[row], label="systems")
