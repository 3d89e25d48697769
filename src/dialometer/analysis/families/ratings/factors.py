"""Between-rater factors on numeric ratings: the report of anchoring studies, and of any other factor.

It says what Santhanam, Karduni and Shaikh (CHI 2020) report: size and consistency of ratings by condition, time, groups by
time and by experience, one criterion against another; with tests that treat raters and items as samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
from dialometer.analysis.base.measures import RaterRows
from dialometer.analysis.base.scale_units import has_numeric_criteria
from dialometer.analysis.base.wording import is_anchor, n_of, question_label
from dialometer.analysis.families.ratings.agreement import Reliability
from dialometer.analysis.families.ratings.alternatives import FactorAlternatives, RatingAlternatives
from dialometer.analysis.families.ratings.conclusion import (
    Evidence,
    conclusion,
    found_claims,
    is_declared,
    summary_words,
)
from dialometer.analysis.families.ratings.conditions import (
    EFFECTS_TITLE,
    condition_section,
    effects_section,
    main_figure,
    minutes_section,
)
from dialometer.analysis.families.ratings.conditions import TITLE as RATINGS_TITLE
from dialometer.analysis.families.ratings.consistency import (
    ConsistencyChange,
    all_differences,
    by_condition,
    condition_figure,
    condition_table,
    consistency_methods,
    criteria_section,
    difference_table,
)
from dialometer.analysis.families.ratings.declared import (
    DeclaredTest,
    declared_headlines,
    declared_section,
    declared_sections,
    declared_tests,
    factor_differences,
    is_about_ratings,
    pair_sections,
    system_differences,
)
from dialometer.analysis.families.ratings.factor_effects import (
    Contrast,
    FactorEffects,
    contrasts,
    criteria_table,
    effect_sentence,
    factor_question,
    shown_with_unit,
)
from dialometer.analysis.families.ratings.groups import group_section, question_groups
from dialometer.analysis.families.ratings.nearness import (
    Nearness,
    anchor_ratio_table,
    nearness,
    nearness_sentence,
    nearness_table,
    together,
)
from dialometer.analysis.families.ratings.spread import disputed_sections, distribution_section, order_section
from dialometer.analysis.families.ratings.system_section import system_methods, system_section
from dialometer.analysis.families.ratings.system_shifts import shift_section
from dialometer.analysis.families.ratings.systems import RatingRun
from dialometer.analysis.shared.equivalence import decided
from dialometer.analysis.shared.subgroups import RaterGroups, time_groups
from dialometer.errors import DialometerError
from dialometer.model.analysis_plan import Comparison
from dialometer.model.design import Factor
from dialometer.model.estimate import Estimate
from dialometer.model.report import Claim, Figure, Headline, Method, Section, Table
from dialometer.model.study import Study

KINDS = ("responses", "transcript_pair", "dialogue")


class Factors(Family):
    """The family for numeric ratings under between-rater factors."""

    rank = 10

    def fits(self, study: Study) -> bool:
        """Any factors, and something rated with numbers."""
        return bool(study.spec.design.factors) and study.spec.items.kind in KINDS and has_numeric_criteria(study)

    def decides(self, study: Study, comparison: Comparison) -> bool:
        """Comparisons of levels or of systems on a rated criterion."""
        return comparison.between in ("factor", "systems") and is_about_ratings(study, comparison)

    def primary_tests(self, data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
        """Every level against the baseline, or systems two by two."""
        tests = factor_differences if comparison.between == "factor" else system_differences
        return decided(tests(data, comparison, options), comparison, options)

    def alternatives(self, data: StudyData, comparison: Comparison, options: Options) -> list[OtherChoice]:
        """Other normalisations and models of ratings."""
        kind = RatingAlternatives if comparison.between == "systems" else FactorAlternatives
        return kind(data, comparison, options).all()

    def effect_unit(self, comparison: Comparison) -> str:
        """Levels differ in raters' means."""
        if comparison.between == "factor":
            return "standard deviations of raters' mean ratings (Cohen's d)"
        return super().effect_unit(comparison)

    def run(self, data: StudyData, options: Options) -> Findings:
        """Everything; a part that cannot be computed says why."""
        work = _FactorRun(data, options)
        sections = work.sections()
        closing = section_or_problem("conclusion", "What was found", lambda: conclusion(work.evidence))
        return Findings(
            answer=work.answer(),
            certainty=work.certainty(),
            headlines=work.headlines(),
            figure=None if work.measures.main.unit == "z" else work.figure,
            sections=sections,
            methods=work.methods(),
            warnings=work.measures.notes,
            closing=in_appendix((closing,)),
            claims=work.claims(),
        )


class _FactorRun(RatingRun):
    """One run: what several sections share is computed once."""

    @cached_property
    def effects(self) -> list[FactorEffects]:
        return [FactorEffects(self.study, m, self.rows, self.options) for m in self.measures.all]

    @cached_property
    def tests(self) -> list[DeclaredTest]:
        return declared_tests(
            self.study, self.measures, self.rows, self.options, self.systems, self.effects, self.steady
        )

    @cached_property
    def near(self) -> list[Nearness]:
        return nearness(self.effects[0], self.measures)

    @cached_property
    def steady(self) -> list[ConsistencyChange]:
        return all_differences(self.study, self.measures, self.rows, self.options)

    @cached_property
    def consistent(self) -> dict[str, list[Reliability]]:
        return {m.name: by_condition(m, self.rows, self.options) for m in self.measures.criteria}

    @cached_property
    def groups(self) -> list[RaterGroups]:
        """Groups that can be formed; those that cannot have their own section that says why."""
        makers: list[Callable[[], RaterGroups]] = [lambda: time_groups(self.rows)]
        makers += [_question_maker(self.data, self.rows, name) for name in self.study.spec.analysis.subgroups]
        made = []
        for make in makers:
            try:
                made.append(make())
            except DialometerError:
                continue
        return made

    @cached_property
    def shifts(self) -> Section:
        return section_or_problem(
            "systems_by_condition",
            "Does the condition change how systems compare?",
            lambda: shift_section(self.effects[0], self.systems[0]),
        )

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence(
            self.effects, together(self.near), self.steady, self.groups, list(self.shifts.paragraphs), self.tests
        )

    @cached_property
    def figure(self) -> Figure:
        return main_figure(self.study, self.measures, self.rows, self.options)

    def sections(self) -> tuple[Section, ...]:
        """What the hypotheses are about first; the rest is the appendix."""
        return (
            *declared_sections(self.study, lambda: declared_section(self.study, self.tests, self.options)),
            section_or_problem("ratings_by_condition", RATINGS_TITLE, self._ratings),
            section_or_problem("consistency", "Consistency of the raters", self._consistency),
            *in_appendix(self.later_sections()),
        )

    def later_sections(self) -> list[Section]:
        """Systems, groups of raters, time and order."""
        made = [
            section_or_problem(
                "systems",
                "Systems",
                lambda: system_section(self.systems),
            ),
            *pair_sections(self.systems, self.tests),
            self.shifts,
            *([] if self.measures.main.unit == "z" else [section_or_problem("effects", EFFECTS_TITLE, self._effects)]),
            section_or_problem(
                "time", "Time taken by condition", lambda: minutes_section(self.rows, self.effects[0], self.options)
            ),
            self._group("time", "Time taken: groups of raters", lambda: time_groups(self.rows)),
        ]
        for name in self.study.spec.analysis.subgroups:
            title = f"{question_label(self.study, name)}: groups of raters"
            made.append(self._group(name, title, _question_maker(self.data, self.rows, name)))
        if len(self.measures.criteria) > 1:
            made.append(
                section_or_problem(
                    "consistency_of_criteria",
                    "Consistency of one criterion against another",
                    lambda: criteria_section(self.measures, self.rows, self.options),
                )
            )
        made += [
            section_or_problem(
                "distribution",
                "Distribution of the ratings",
                lambda: distribution_section(self.study, self.measures),
            ),
            section_or_problem(
                "order", "Order of presentation", lambda: order_section(self.data, self.measures.main, self.options)
            ),
            *disputed_sections(self.study, self.measures),
        ]
        return made

    def _group(self, name: str, title: str, make: Callable[[], RaterGroups]) -> Section:
        return section_or_problem(
            f"group_{name}",
            title,
            lambda: group_section(make(), self.measures, self.rows, self.effects, self.options),
        )

    def _ratings(self) -> Section:
        return condition_section(self.study, self.measures, self.rows, self.effects, self.options)

    def _effects(self) -> Section:
        section = effects_section(self.study, self.measures, self.rows, self.effects, self.options)
        more: list[Table] = [table for table in [criteria_table(self.measures, self.effects[0])] if table is not None]
        paragraphs = list(section.paragraphs)
        if self.near:
            more += [anchor_ratio_table(self.near), nearness_table(self.near)]
            paragraphs += [nearness_sentence(distance) for distance in together(self.near)]
        return replace(section, paragraphs=tuple(paragraphs), parts=(*section.parts, *more))

    def _consistency(self) -> Section:
        parts = (
            condition_figure(self.study, self.measures, self.consistent),
            condition_table(self.study, self.measures, self.consistent),
            difference_table(self.study, self.steady),
        )
        text = "Consistency is the intraclass correlation: the share of the variance of ratings that is due to what was rated."
        if self.measures.main.is_log:
            text += (
                " Magnitudes enter as logarithms, and raters' own levels do not count, because everyone chooses their own "
                "numbers (Bard et al. 1996): it is the consistency of log-normalised scores, not absolute agreement."
            )
        return Section("consistency", "Consistency of the raters", (text,), parts)

    @property
    def chief(self) -> Factor:
        """The factor the summary speaks of: the anchor where there is one."""
        return sorted(self.study.spec.design.factors, key=lambda factor: not is_anchor(factor))[0]

    def answer(self) -> str:
        """What the chief factor did; systems are another comparison, with a verdict of its own."""
        return " ".join(summary_words(self.evidence, contrast) for contrast in self._stated)

    @property
    def _stated(self) -> list[Contrast]:
        """The contrasts that the first screen speaks of: those that were declared, where any were."""
        every = contrasts(self.chief)
        return [contrast for contrast in every if is_declared(self.evidence, contrast)] or every

    def claims(self) -> tuple[Claim, ...]:
        return tuple(claim for contrast in self._stated for claim in found_claims(self.evidence, contrast))

    def certainty(self) -> str:
        main = self.effects[0]
        declared = [test for test in self.tests if test.comparison.factor == self.chief.name]
        paragraphs = []
        if not declared and main.measure.unit != "z":
            paragraphs += [effect_sentence(main, contrast) for contrast in contrasts(self.chief)]
        kind = "confirmatory (declared in advance)" if declared else "exploratory"
        paragraphs.append(
            f"{n_of(self.rows.n, 'rater')} in {n_of(len(self.study.cells), 'condition')}; the comparison is {kind}."
        )
        return " ".join(paragraphs)

    def headlines(self) -> tuple[Headline, ...]:
        made = list(declared_headlines(self.study, self.tests, self.options, is_interim=bool(so_far(self.data))))
        main = self.effects[0]
        if not made and main.measure.unit != "z":
            made += [
                Headline(
                    factor_question(contrast),
                    shown_with_unit(main.measure, main.difference(contrast)),
                    effect_sentence(main, contrast),
                )
                for contrast in contrasts(self.chief)
            ]
        return tuple(made)

    def methods(self) -> tuple[Method, ...]:
        effect = Method(
            "Effects of the factors",
            next(iter(self.effects[0].fit.effects().values())).method,
            "raters belong to one condition each and judge the same items: raters and items are random samples",
            "Baayen, Davidson & Bates 2008",
        )
        check = Method(
            "The same by permutation",
            "permutation of raters between conditions, on rater means",
            "rater means need not be normal, and a permutation test does not assume it",
            "Freedman & Lane 1983; Phipson & Smyth 2010",
        )
        return (effect, check, *consistency_methods(self.consistent), *system_methods(self.systems))


def _question_maker(data: StudyData, rows: RaterRows, name: str) -> Callable[[], RaterGroups]:
    return lambda: question_groups(data, rows, name)


ANALYSES.register("factors")(Factors())
