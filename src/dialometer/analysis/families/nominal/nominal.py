"""The family for criteria answered by categories without order, such as dialogue acts or types of error."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import (
    ANALYSES,
    Family,
    Findings,
    Options,
    in_appendix,
    section_or_problem,
    with_prefix,
)
from dialometer.analysis.base.wording import factor_named, inside, listed, n_of, sentence, with_interval
from dialometer.analysis.families.nominal.categories import (
    Answers,
    answers_on,
    by_system,
    compared_groups,
    nominal_criteria,
)
from dialometer.analysis.families.nominal.sections import (
    MOST_NAMED,
    agreement_section,
    declared_section,
    difference_words,
    majority_section,
    over_words,
    shares_figure,
    shares_section,
    turned,
)
from dialometer.analysis.families.nominal.shares import (
    CategoryContrast,
    CategoryContrasts,
    CategoryShares,
    declared_tests,
    significant,
)
from dialometer.analysis.shared.comparisons import CORRECTIONS, p_adjusted
from dialometer.analysis.shared.equivalence import decided, differences_of
from dialometer.analysis.shared.next_steps import alpha_steps
from dialometer.errors import NotEnoughData
from dialometer.model.analysis_plan import Comparison
from dialometer.model.design import Factor
from dialometer.model.estimate import Estimate
from dialometer.model.report import Claim, Headline, Method, Section
from dialometer.model.study import Study


class Nominal(Family):
    """The family for answers that are one of several categories."""

    rank = 25

    def fits(self, study: Study) -> bool:
        """Any criterion that is answered by a category."""
        return bool(nominal_criteria(study))

    def decides(self, study: Study, comparison: Comparison) -> bool:
        """Comparisons of systems or conditions that name such a criterion, or any where there is no other kind."""
        return comparison.between in ("systems", "factor") and bool(_criteria_names(study, comparison))

    def primary_tests(self, data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
        """Systems two by two, category by category: the tests of the declared section."""
        answers = [answers_on(data, criterion) for criterion in nominal_criteria(data.study)]
        tests = declared_tests(data.study, answers, comparison, options, has_fixed_items=options.has_fixed_items)
        has_criterion = len({name.criterion for name in tests}) > 1
        named = {
            f"{f'{name.criterion}, ' if has_criterion else ''}{name.first} against {name.second}: {name.category}": test
            for name, test in tests.items()
        }
        return decided(named, comparison, options)

    def run(self, data: StudyData, options: Options) -> Findings:
        """Shares by system, declared comparisons, agreement, and the majority for each item."""
        return with_prefix(_Run(data, options).findings(), "nominal")


ANALYSES.register("nominal")(Nominal())


def _criteria_names(study: Study, comparison: Comparison) -> list[str]:
    """The nominal criteria that a comparison is about. One that names no criterion is about them where all are nominal."""
    names = [criterion.name for criterion in nominal_criteria(study)]
    if comparison.criteria:
        return [name for name in names if name in comparison.criteria]
    return names if len(names) == len(study.spec.criteria) else []


class _Run:
    """One run: what several sections share is computed once."""

    def __init__(self, data: StudyData, options: Options) -> None:
        self.data = data
        self.study = data.study
        self.options = options

    @cached_property
    def answers(self) -> list[Answers]:
        answers = []
        for criterion in nominal_criteria(self.study):
            try:
                answers.append(answers_on(self.data, criterion))
            except NotEnoughData:
                continue
        if not answers:
            raise NotEnoughData("there are no answers by category yet", remedy="collect judgments first")
        return answers

    @cached_property
    def comparisons(self) -> list[Comparison]:
        return [
            comparison
            for comparison in differences_of(self.study)
            if comparison.between in ("systems", "factor") and _criteria_names(self.study, comparison)
        ]

    @cached_property
    def primary(self) -> Comparison | None:
        return next((c for c in self.comparisons if c.name == self.study.spec.analysis.primary), None)

    @cached_property
    def main_answers(self) -> list[Answers]:
        """The criteria that the answer is about."""
        if self.primary is None:
            return self.answers
        return [
            given for given in self.answers if given.criterion in _criteria_names(self.study, self.primary)
        ] or self.answers

    @cached_property
    def shares(self) -> dict[str, CategoryShares]:
        """Every criterion by system, by its label."""
        return {given.label: CategoryShares(given, by_system(given), self.options) for given in self.answers}

    @cached_property
    def factor(self) -> Factor | None:
        """The factor whose levels the primary comparison compares; None where it compares systems."""
        is_factor = self.primary is not None and self.primary.between == "factor"
        return factor_named(self.study, self.primary.factor or "") if self.primary is not None and is_factor else None

    @cached_property
    def main_shares(self) -> dict[str, CategoryShares]:
        """The criteria of the answer by what it compares: systems, or the levels of a factor."""
        if self.primary is None or not self.factor:
            return {given.label: self.shares[given.label] for given in self.main_answers}
        return {
            given.label: CategoryShares(given, compared_groups(self.study, given, self.primary), self.options)
            for given in self.main_answers
        }

    def tests(self, *, has_fixed_items: bool) -> CategoryContrasts:
        """The tests behind the answer: those of the primary comparison, or of all criteria by system as one family."""
        comparison = self.primary or Comparison(name="systems")
        return declared_tests(self.study, self.main_answers, comparison, self.options, has_fixed_items=has_fixed_items)

    @cached_property
    def general(self) -> CategoryContrasts:
        return self.tests(has_fixed_items=self.options.has_fixed_items)

    @cached_property
    def on_items(self) -> CategoryContrasts:
        return self.general if self.options.has_fixed_items else self.tests(has_fixed_items=True)

    def sections(self) -> list[Section]:
        """Confirmatory comparisons, shares of every criterion, agreement and majorities."""
        declared = {name for comparison in self.comparisons for name in _criteria_names(self.study, comparison)}
        sections = declared_section(self.study, self.answers, self.comparisons, self.options)
        for shares in self.main_shares.values() if self.factor else ():
            sections.append(shares_section(shares, {}, is_declared=True, by=self.factor))
        for label, shares in self.shares.items():
            is_main = self.primary is None and shares.answers in self.main_answers
            own = {name: test for name, test in self.general.items() if name.criterion == label}
            is_declared = shares.answers.criterion in declared and not self.factor
            sections.append(shares_section(shares, own if is_main else shares.tests, is_declared=is_declared))
        return [
            *sections,
            section_or_problem(
                "agreement", "Agreement of the raters", partial(agreement_section, self.answers, self.options)
            ),
            *in_appendix([section_or_problem("majority", "Majority by item", partial(majority_section, self.answers))]),
        ]

    def findings(self) -> Findings:
        """All that the family reports."""
        main = self.main_shares[self.main_answers[0].label]
        sections = self.sections()
        return Findings(
            answer=self.answer(),
            certainty=self.certainty(),
            headlines=self.headlines(),
            figure=shares_figure(main, "summary", self.factor),
            sections=tuple(sections),
            methods=_methods(self.options),
            warnings=tuple(note for given in self.answers for note in given.notes),
            claims=self.claims(),
            next_steps=tuple(
                step for section in sections if section.name == "agreement" for step in alpha_steps(section)
            ),
        )

    def answer(self) -> str:
        """Which systems get which category more often, as far as the corrected tests carry it."""
        where = listed(inside(given.label) for given in self.main_answers)
        n_items = len({item for given in self.main_answers for item in given.items})
        shown = "the one item" if n_items == 1 else f"the {n_of(n_items, 'item')}"
        if not self.general:
            return self._most_frequent()
        what = "conditions" if self.factor else "systems"
        clear = significant(self.general)
        if clear:
            scope = f" on {shown} of this study" if self.options.has_fixed_items else ""
            return f"The {what} differ in {where}{scope}: {self._named(clear)}."
        only_here = significant(self.on_items)
        if only_here:
            limit = "one item says nothing about others" if n_items == 1 else "for other items this is not significant"
            return f"On {shown} shown, the {what} differ in {where}: {self._named(only_here)}; {limit}."
        if all(np.isnan(p_adjusted(test)) for test in self.general.values()):
            return f"Whether the {what} differ in {where} cannot be tested yet."
        return f"The {what} do not differ significantly in {where}."

    def claims(self) -> tuple[Claim, ...]:
        """What the answer states as found."""
        clear = significant(self.general)
        is_general = bool(clear) and not self.options.has_fixed_items
        return tuple(
            Claim(f"{name.first} and {name.second} differ in {name.category}", is_general=is_general)
            for name in clear or significant(self.on_items)
        )

    def _named(self, clear: CategoryContrasts) -> str:
        words = [difference_words(name, test, self.main_shares[name.criterion]) for name, test in clear.items()]
        more = f", and {n_of(len(words) - MOST_NAMED, 'further difference')}" if len(words) > MOST_NAMED else ""
        return "; ".join(words[:MOST_NAMED]) + more

    def _most_frequent(self) -> str:
        parts = []
        for given in self.main_answers:
            shares = self.main_shares[given.label]
            group = shares.groups.names[0]
            best = max(given.categories, key=lambda name: shares.shares[group, name].value)
            share = with_interval(shares.shares[group, best], is_percent=True)
            parts.append(f"“{best}” is the most frequent {inside(given.label)}: {share}")
        return f"{'; '.join(parts)}."

    def certainty(self) -> str:
        n_answers = sum(given.n for given in self.main_answers)
        raters = {rater for given in self.main_answers for rater in given.raters}
        items = {item for given in self.main_answers for item in given.items}
        basis = f"{n_of(len(raters), 'rater')} gave {n_of(n_answers, 'answer')} on {n_of(len(items), 'item')}."
        declared = (
            "The comparison is confirmatory (declared in advance)."
            if self.primary is not None
            else "No comparison was declared: this is exploratory."
        )
        tested = [test for test in self.general.values() if not np.isnan(p_adjusted(test))]
        if not tested:
            reason = next((note for test in self.general.values() for note in test.notes), "")
            return f"{sentence(reason)} {basis} {declared}".strip()
        correction = CORRECTIONS.get(self.options.correction, "")
        corrected = (
            f", corrected for {n_of(len(tested), 'test')} ({correction})" if correction and len(tested) > 1 else ""
        )
        return f"{basis} {declared} The tests are about {over_words(self.options)}{corrected}."

    def headlines(self) -> tuple[Headline, ...]:
        """The clearest differences; without any, the most frequent category of each system."""
        clear = significant(self.general)
        is_declared = self.primary is not None
        if clear:
            return tuple(self._headline(name, test, is_declared) for name, test in list(clear.items())[:MOST_NAMED])
        shares = self.main_shares[self.main_answers[0].label]
        lines = []
        for group in shares.groups.names[:MOST_NAMED]:
            best = max(shares.answers.categories, key=lambda name: shares.shares[group, name].value)
            words = f"The most frequent category{f' of {group}' if group else ''} is “{best}”."
            lines.append(Headline(f"{best}{f': {group}' if group else ''}", shares.shares[group, best], words, False))
        return tuple(lines)

    def _headline(self, name: CategoryContrast, test: Estimate, is_declared: bool) -> Headline:
        first, second, shown = name.first, name.second, test
        if test.value < 0:
            first, second, shown = name.second, name.first, turned(test)
        words = difference_words(name, test, self.main_shares[name.criterion])
        label = f"“{name.category}”: {first} minus {second}"
        return Headline(label, replace(shown, unit="share"), f"{words}.", is_declared)


def _methods(options: Options) -> tuple[Method, ...]:
    samples = "raters" if options.has_fixed_items else "raters and items"
    return (
        Method(
            "shares of categories",
            f"proportions with a jackknife over {samples}; Wilson's interval with the effective number of answers",
            f"intervals are about {over_words(options)}",
            "Cameron, Gelbach and Miller 2011; MacKinnon, Nielsen and Webb 2023",
        ),
        Method(
            "differences in categories",
            f"difference of shares for every two systems and category, jackknife over {samples}, Student's t",
            f"says which category differs; claims are about {over_words(options)}",
        ),
        Method(
            "agreement on categories",
            "percent agreement, Fleiss' kappa, Krippendorff's alpha (nominal), Gwet's AC1",
            "categories have no order",
            "Fleiss 1971; Krippendorff 2011; Gwet 2008",
        ),
        Method("several tests at once", CORRECTIONS.get(options.correction, "none"), "declared in the study; one family per table"),
    )  # fmt: skip
