"""Numeric ratings without between-rater factors: which system is rated best, and do raters agree?"""

from __future__ import annotations

from functools import cached_property

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, section_or_problem
from dialometer.analysis.base.scale_units import has_numeric_criteria
from dialometer.analysis.base.wording import confidence_words, n_of
from dialometer.analysis.families.ratings.agreement import agreement_section
from dialometer.analysis.families.ratings.declared import (
    DeclaredTest,
    best_headline,
    declared_headlines,
    declared_section,
    declared_tests,
    is_about_ratings,
    system_differences,
)
from dialometer.analysis.families.ratings.factors import KINDS
from dialometer.analysis.families.ratings.groups import rating_group_section
from dialometer.analysis.families.ratings.spread import disputed_section, distribution_section, order_section
from dialometer.analysis.families.ratings.system_section import (
    best_system,
    mean_figures,
    system_methods,
    system_section,
)
from dialometer.analysis.families.ratings.systems import RatingRun, SystemRatings
from dialometer.analysis.shared.equivalence import decided
from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.model.report import Headline, Method, Section
from dialometer.model.study import Comparison, Study


class Ratings(Family):
    """The family for likert, slider and magnitude ratings of systems."""

    rank = 20

    def fits(self, study: Study) -> bool:
        """Something rated with numbers, all raters under the same conditions."""
        return not study.spec.design.factors and study.spec.items.kind in KINDS and has_numeric_criteria(study)

    def decides(self, study: Study, comparison: Comparison) -> bool:
        """Comparisons of systems on a rated criterion."""
        return comparison.between == "systems" and is_about_ratings(study, comparison)

    def primary_tests(self, data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
        """Systems two by two."""
        return decided(system_differences(data, comparison, options), comparison, options)

    def run(self, data: StudyData, options: Options) -> Findings:
        """Everything; a part that cannot be computed says why."""
        work = _RatingRun(data, options)
        agreement, methods = work.agreement()
        figures = mean_figures([work.deciding])
        return Findings(
            answer=work.answer(),
            certainty=work.certainty(),
            headlines=work.headlines(),
            figure=figures[0] if figures else None,
            sections=(*work.sections(), agreement, *work.later_sections()),
            methods=(*system_methods(work.systems), *methods),
            warnings=work.measures.notes,
            claims=best_system(work.deciding).claims(),
        )


class _RatingRun(RatingRun):
    """One run: what several sections share is computed once."""

    @cached_property
    def deciding(self) -> SystemRatings:
        """The measure that decides: the primary comparison's only criterion, else all criteria together."""
        analysis = self.study.spec.analysis
        primary = next((c for c in analysis.comparisons if c.name == analysis.primary), None)
        if primary is not None and len(primary.criteria) == 1:
            own = [ratings for ratings in self.systems if ratings.measure.criteria == (primary.criteria[0],)]
            if own:
                return own[0]
        return self.systems[0]

    @cached_property
    def tests(self) -> list[DeclaredTest]:
        return declared_tests(self.study, self.measures, self.rows, self.options, self.systems)

    def sections(self) -> tuple[Section, ...]:
        return (
            section_or_problem(
                "declared_ratings",
                "Declared comparisons",
                lambda: declared_section(self.study, self.tests, self.options),
            ),
            section_or_problem("systems", "Systems", lambda: system_section(self.systems)),
            section_or_problem(
                "distribution",
                "Distribution of the ratings",
                lambda: distribution_section(self.study, self.measures),
            ),
        )

    def agreement(self) -> tuple[Section, tuple[Method, ...]]:
        try:
            return agreement_section(self.measures, self.options)
        except DialometerError as error:
            return Section("rating_agreement", "Agreement of the raters", problem=str(error)), ()

    def later_sections(self) -> tuple[Section, ...]:
        groups = [self._group(name) for name in self.study.spec.analysis.subgroups]
        return (
            *groups,
            section_or_problem(
                "order", "Order of presentation", lambda: order_section(self.data, self.measures.main, self.options)
            ),
            section_or_problem("disputed", "Most disputed items", lambda: disputed_section(self.study, self.measures)),
        )

    def _group(self, name: str) -> Section:
        title = f"{name.replace('_', ' ').capitalize()}: groups of raters"
        return section_or_problem(
            f"group_{name}",
            title,
            lambda: rating_group_section(self.data, self.rows, name, self.systems, self.options),
        )

    def answer(self) -> str:
        return best_system(self.deciding).short

    def certainty(self) -> str:
        best = best_system(self.deciding)
        means = self.deciding.means.values()
        n = max((int(mean.details.get("n_raters", 0)) for mean in means), default=0)
        declared = "declared before the data" if self.study.spec.analysis.comparisons else "not declared: exploratory"
        if best.system is None:
            return best.sentence
        level = confidence_words(self.options.confidence)
        if best.is_certain:
            verdict = f"The lead stands at {level} confidence after correction, with {n_of(n, 'rater')}; {declared}."
        else:
            verdict = f"At {level} confidence the leaders cannot be told apart with {n_of(n, 'rater')}; {declared}."
        return f"{best.numbers} {verdict}"

    def headlines(self) -> tuple[Headline, ...]:
        made = list(declared_headlines(self.study, self.tests, self.options, most=3))
        others = [ratings for ratings in self.systems if not (made and ratings is self.deciding)]
        made += [best_headline(ratings, self.tests) for ratings in others]
        return tuple(made)


ANALYSES.register("ratings")(Ratings())
