"""Numeric ratings without between-rater factors: which system is rated best, and do raters agree?"""

from __future__ import annotations

from functools import cached_property

from dialometer.analysis.base.choose import so_far
from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import (
    ANALYSES,
    Family,
    Findings,
    Options,
    OtherChoice,
    in_appendix,
    section_or_problem,
)
from dialometer.analysis.base.scale_units import has_numeric_criteria
from dialometer.analysis.base.wording import listed, n_of, question_label, with_interval
from dialometer.analysis.families.ratings import generalisability, ordinal, severity
from dialometer.analysis.families.ratings.agreement import agreement_section, agreement_steps
from dialometer.analysis.families.ratings.alternatives import RatingAlternatives
from dialometer.analysis.families.ratings.declared import (
    DeclaredTest,
    best_headline,
    declared_best,
    declared_headlines,
    declared_section,
    declared_sections,
    declared_tests,
    is_about_ratings,
    pair_sections,
    system_differences,
)
from dialometer.analysis.families.ratings.factors import KINDS
from dialometer.analysis.families.ratings.generalisability import generalisability_section
from dialometer.analysis.families.ratings.groups import rating_group_section
from dialometer.analysis.families.ratings.ordinal import ordinal_section
from dialometer.analysis.families.ratings.ordinal_model import has_order
from dialometer.analysis.families.ratings.severity import severity_section
from dialometer.analysis.families.ratings.spread import disputed_sections, distribution_section, order_section
from dialometer.analysis.families.ratings.system_section import (
    Best,
    item_limit,
    mean_figures,
    system_methods,
    system_section,
)
from dialometer.analysis.families.ratings.systems import RatingRun, SystemRatings
from dialometer.analysis.shared.equivalence import decided
from dialometer.errors import DialometerError
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.report import Headline, Method, Section
from dialometer.model.study import Study


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

    def alternatives(self, data: StudyData, comparison: Comparison, options: Options) -> list[OtherChoice]:
        """Other normalisations and models of ratings."""
        return RatingAlternatives(data, comparison, options).all()

    def run(self, data: StudyData, options: Options) -> Findings:
        """Everything; a part that cannot be computed says why."""
        work = _RatingRun(data, options)
        agreement, methods = work.agreement()
        figures = mean_figures(work.deciding)
        return Findings(
            answer=work.answer(),
            certainty=work.certainty(),
            basis=work.basis(),
            headlines=work.headlines(),
            figure=figures[0] if figures else None,
            sections=(*work.sections(), agreement, *in_appendix(work.later_sections())),
            methods=(*system_methods(work.systems), *methods, *work.model_methods()),
            warnings=work.measures.notes,
            claims=tuple(claim for best, _ in work.best for claim in best.claims()),
            next_steps=agreement_steps(agreement, work.measures.criteria),
        )


class _RatingRun(RatingRun):
    """One run: what several sections share is computed once."""

    @cached_property
    def deciding(self) -> list[SystemRatings]:
        """The measures that decide: those of the primary comparison of systems, else all criteria together."""
        analysis = self.study.spec.analysis
        primary = next((c for c in analysis.comparisons if c.name == analysis.primary), None)
        if primary is None or primary.between != "systems" or primary.blocks:
            return self.systems[:1]
        own = [
            ratings
            for ratings in self.systems
            if len(ratings.measure.criteria) == 1
            and (not primary.criteria or ratings.measure.criteria[0] in primary.criteria)
        ]
        return own or self.systems[:1]

    @cached_property
    def tests(self) -> list[DeclaredTest]:
        return declared_tests(self.study, self.measures, self.rows, self.options, self.systems)

    def sections(self) -> tuple[Section, ...]:
        return (
            *declared_sections(self.study, lambda: declared_section(self.study, self.tests, self.options)),
            section_or_problem(
                "systems",
                "Systems",
                lambda: system_section(self.systems),
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
            *pair_sections(self.systems, self.tests),
            section_or_problem(
                "distribution",
                "Distribution of the ratings",
                lambda: distribution_section(self.study, self.measures),
            ),
            *groups,
            section_or_problem(
                "order", "Order of presentation", lambda: order_section(self.data, self.measures.main, self.options)
            ),
            *disputed_sections(self.study, self.measures),
            *self.model_sections(),
        )

    def model_sections(self) -> tuple[Section, ...]:
        """Other models of the same ratings: exploratory, and only where the design has something for them."""
        made = []
        has_systems = len(self.deciding[0].systems) > 1
        if any(has_order(measure) for measure in self.measures.criteria):
            if has_systems:
                decide = any(has_order(ratings.measure) for ratings in self.deciding)
                chosen = self.deciding if decide else self.systems
                made.append(section_or_problem(ordinal.NAME, ordinal.TITLE, lambda: ordinal_section(chosen)))
            made.append(
                section_or_problem(
                    severity.NAME, severity.TITLE, lambda: severity_section(self.measures.criteria, self.options)
                )
            )
        if has_systems:
            recruitment = self.study.spec.recruitment
            made.append(
                section_or_problem(
                    generalisability.NAME,
                    generalisability.TITLE,
                    lambda: generalisability_section(self.deciding[0], recruitment),
                )
            )
        return tuple(made)

    def model_methods(self) -> tuple[Method, ...]:
        """How the models of the exploratory sections work, and which one compares the systems."""
        is_ordered = any(has_order(measure) for measure in self.measures.criteria)
        has_systems = len(self.deciding[0].systems) > 1
        return (
            *((ordinal.METHOD,) if is_ordered and has_systems else ()),
            *((severity.METHOD,) if is_ordered else ()),
            *((generalisability.METHOD,) if has_systems else ()),
        )

    def _group(self, name: str) -> Section:
        title = f"{question_label(self.study, name)}: groups of raters"
        return section_or_problem(
            f"group_{name}",
            title,
            lambda: rating_group_section(self.data, self.rows, name, self.systems, self.options),
        )

    @cached_property
    def best(self) -> list[tuple[Best, bool]]:
        """The best system on each measure that decides, and whether its comparison was declared."""
        return [declared_best(ratings, self.tests) for ratings in self.deciding]

    def answer(self) -> str:
        return " ".join([*self._only_means(), *dict.fromkeys(best.short for best, _ in self.best)])

    def _only_means(self) -> list[str]:
        """Where one system was rated: its mean, as there is nothing to compare it with."""
        alone = [ratings for ratings in self.deciding if len(ratings.systems) == 1 and ratings.measure.unit != "z"]
        if len(alone) < len(self.deciding):
            return []
        means = [(ratings.means[ratings.systems[0]], ratings.measure) for ratings in alone]
        listing = [f"{with_interval(mean)} on {measure.label}" for mean, measure in means if mean.is_known]
        kind = "geometric mean" if means and means[0][1].is_log else "mean"
        name = alone[0].label(alone[0].systems[0])
        return [f"{name} has a {kind} rating of {listed(listing)}.{item_limit(alone[0])}"] if listing else []

    def certainty(self) -> str:
        found = [best for best, _ in self.best]
        if all(best.system is None for best in found):
            return " ".join(dict.fromkeys(best.numbers or best.sentence for best in found))
        numbers = [
            best.numbers if len(found) == 1 else f"{ratings.measure.label}: {best.numbers}"
            for ratings, best in zip(self.deciding, found, strict=True)
            if best.numbers
        ]
        return " ".join([*numbers, self._counts()])

    def _counts(self) -> str:
        n_raters = max(ratings.n_raters for ratings in self.deciding)
        n_items = max(ratings.n_items for ratings in self.deciding)
        kind = "confirmatory (declared in advance)" if all(declared for _, declared in self.best) else "exploratory"
        return f"{n_of(n_raters, 'rater')} rated {n_of(n_items, 'item')}; the comparison is {kind}."

    def basis(self) -> str:
        """Who rated how much, and that one item is too few; that items are fixed is in the verdict."""
        return self._counts() + ("" if self.options.has_fixed_items else item_limit(self.deciding[0]))

    def headlines(self) -> tuple[Headline, ...]:
        made = list(
            declared_headlines(self.study, self.tests, self.options, most=3, is_interim=bool(so_far(self.data)))
        )
        if not made:
            made = [best_headline(ratings, self.tests) for ratings in self.systems if len(ratings.systems) > 1]
        return tuple(made)


ANALYSES.register("ratings")(Ratings())
