"""Which system is best on a measure, and how certain that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dialometer.analysis.factor_sentences import difference_words, interval_of
from dialometer.analysis.measures import OVERALL
from dialometer.analysis.system_ratings import SystemPair, SystemRatings
from dialometer.analysis.words import correction_name, listed, p_words
from dialometer.model.estimate import Estimate


@dataclass(frozen=True)
class Best:
    """The system with the highest mean, those that cannot be told from it, and the pair that decides."""

    system: int | None
    label: str
    rivals: tuple[str, ...]
    next_pair: SystemPair | None
    sentence: str
    short: str
    """The same without numbers, for the first line of a report."""
    numbers: str = ""
    """Only the numbers: the lead over the next system."""

    @property
    def is_certain(self) -> bool:
        """Whether every other system is behind it after correction."""
        return self.system is not None and not self.rivals

    @property
    def lead(self) -> Estimate | None:
        """The lead over the next system, on the analysed footing."""
        return self.next_pair.difference if self.next_pair else None


def best_system(ratings: SystemRatings, declared_p: Mapping[tuple[int, int], float] | None = None) -> Best:
    """The best system: certain when its lead over each other system is, after correction.

    ``declared_p`` gives the p values of pairs that were declared and corrected with other declared tests.
    """
    measure, options = ratings.measure, ratings.options
    on = "over all criteria" if measure.name == OVERALL else f"on {measure.label}"
    known = [system for system in ratings.systems if ratings.means[system].is_known]
    if len(known) < 2:
        names = listed(ratings.label(system) for system in ratings.systems)
        why = f"only {names} has judgments" if names else "no system has judgments"
        return Best(None, "", (), None, f"No comparison of systems {on}: {why}.", "Systems were not compared.")
    best = max(known, key=lambda system: ratings.means[system].value)
    own = [pair for pair in ratings.pairs if pair.first == best]

    def p_of(pair: SystemPair) -> float:
        return pair.p_adjusted if declared_p is None else declared_p[pair.first, pair.second]

    if not any(pair.difference.has_interval for pair in own):
        why = next((note for pair in own for note in pair.difference.notes), "not enough data")
        said = f"Which system is best {on} is not known: {why}."
        others_ = tuple(ratings.label(pair.second) for pair in own)
        return Best(None, "", others_, None, said, f"Which system is best {on} is not known.")
    alpha = 1 - options.confidence
    rivals = [pair for pair in own if not p_of(pair) < alpha]
    # The nearest by its mean decides how the lead is told.
    nearest = max(own, key=lambda pair: ratings.means[pair.second].value)
    label, second = ratings.label(best), ratings.label(nearest.second)
    corrected = ""
    if options.correction != "none" and len(ratings.pairs) > 1:
        corrected = f" after {correction_name(options.correction)}"
        corrected += "" if declared_p is None else " with the other declared tests"
    told = (
        f"{difference_words(measure, nearest.difference, second)}, {interval_of(measure, nearest.difference)}, "
        f"{p_words(p_of(nearest))}{corrected}"
    )
    names = listed(ratings.label(pair.second) for pair in rivals)
    if not rivals:
        others = "the other system" if len(own) == 1 else "every other system"
        short = f"{label} is rated best {on}."
        said = f"{label} is rated best {on}, ahead of {others}: {told}."
    elif len(rivals) == len(own):
        short = f"No system is demonstrably best {on}."
        said = f"No best system {on}: {label} has the highest mean, but {names} cannot be told from it ({told})."
    else:
        short = f"{label} has the highest ratings {on}, but {names} cannot be told from it."
        said = f"{label} has the highest mean {on}, but {names} cannot be told from it ({told})."
    numbers = f"{label} is rated {told}."
    return Best(best, label, tuple(ratings.label(pair.second) for pair in rivals), nearest, said, short, numbers)
