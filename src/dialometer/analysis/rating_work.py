"""What every analysis of ratings starts from, computed once and only when a section asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dialometer.analysis.data import StudyData
from dialometer.analysis.family import Options
from dialometer.analysis.measures import Measures, numeric_measures
from dialometer.analysis.rater_rows import RaterRows, rater_rows
from dialometer.analysis.system_ratings import SystemRatings
from dialometer.model.study import Study


@dataclass(frozen=True)
class RatingWork:
    """One run of an analysis of ratings."""

    data: StudyData
    options: Options

    @property
    def study(self) -> Study:
        """The study that the judgments belong to."""
        return self.data.study

    @cached_property
    def measures(self) -> Measures:
        """Every criterion as numbers, and all of them together."""
        return numeric_measures(self.data)

    @cached_property
    def rows(self) -> RaterRows:
        """One row for each rater."""
        return rater_rows(self.data, self.measures)

    @cached_property
    def systems(self) -> list[SystemRatings]:
        """The systems' ratings by each measure, in the order of the measures."""
        return [SystemRatings(self.study, measure, self.options) for measure in self.measures.all]
