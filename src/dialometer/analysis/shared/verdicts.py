"""Every hypothesis that was declared gets a verdict from its own confirmatory tests: supported, contradicted or undecided.

The tests are those of the deciding family (``Family.primary_tests``), corrected as declared, so the verdict, the report's
tables and the power analysis cannot differ. How tests make a verdict:

- With an expected direction, every expected difference must be significant in that direction, on everything that is
  compared. One that is significant in the other direction contradicts the hypothesis.
- Without one, the hypothesis is that there is a difference: on each criterion (or strategy) one significant difference is
  enough. It cannot be contradicted: that a difference is not significant does not show that there is none.
- With a margin, all pairs must be equivalent (not inferior); one that is demonstrably outside the margin contradicts it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import (
    after_correction,
    criterion_label,
    factor_named,
    interval_only,
    level_label,
    listed,
    n_of,
    p_words,
    system_label,
    with_interval,
)
from dialometer.analysis.shared.comparisons import (
    compared_systems,
    comparison_title,
    deciding_family,
    is_significant,
    p_adjusted,
    significance_words,
)
from dialometer.analysis.shared.effect_words import (
    about_words,
    compared_words,
    counted_in,
    effect_words,
    flipped,
    is_share,
    is_tie,
    readable,
    short_words,
)
from dialometer.analysis.shared.equivalence import answer_words, has_margin, is_outside, test_sentence
from dialometer.errors import DialometerError
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.report import Headline, Verdict, VerdictResult
from dialometer.model.study import Study
from dialometer.report.numbers import write_estimate

MOST_TESTS = 4
"""So many tests are written out in a verdict; of more, the most telling ones, and the rest is counted."""


@dataclass(frozen=True)
class DeclaredHypothesis:
    """One declared comparison with its confirmatory tests, each the way round that the hypothesis speaks of."""

    study: Study
    comparison: Comparison
    tests: Mapping[str, Estimate]
    options: Options
    problem: str = ""
    so_far: str = ""
    """How far an unfinished study is ("30 of 60 raters"): then the verdict is worded as an interim one."""

    @property
    def is_primary(self) -> bool:
        """Whether this comparison decides the study."""
        return self.comparison.name == self.study.spec.analysis.primary

    @property
    def is_about_these_items(self) -> bool:
        """Whether the study declares its items fixed; levels of a factor are compared between raters on the same items."""
        return self.options.has_fixed_items and self.comparison.between != "factor"

    @cached_property
    def relevant(self) -> list[Estimate]:
        """The tests that decide: those of the expected differences, the expected winner first; else all, the higher system first."""
        if not self.comparison.expected or has_margin(self.comparison):
            is_turned = self.comparison.between != "factor"  # levels are compared one way round throughout the report
            return [_higher_first(test) if is_turned else test for test in self.tests.values()]
        made = []
        for pair in self.comparison.expected_pairs:
            for test in self.tests.values():
                names = (test.details.get("first"), test.details.get("second"))
                if set(names) == set(pair):
                    made.append(test if names == pair else flipped(test))
        return made

    @property
    def is_complete(self) -> bool:
        """Whether every expected difference has a test."""
        tested = {(test.details.get("first"), test.details.get("second")) for test in self.relevant}
        return set(self.comparison.expected_pairs) <= tested

    @cached_property
    def supporting(self) -> list[Estimate]:
        """The tests that are significant as the hypothesis says."""
        if has_margin(self.comparison):
            return [test for test in self.tests.values() if is_significant(test)]
        return [
            test for test in self.relevant if is_significant(test) and (not self.comparison.expected or _is_above(test))
        ]

    @cached_property
    def contradicting(self) -> list[Estimate]:
        """The tests that are significant the other way."""
        if has_margin(self.comparison):
            return [test for test in self.tests.values() if is_outside(test) and not is_significant(test)]
        if not self.comparison.expected:
            return []
        return [test for test in self.relevant if is_significant(test) and not _is_above(test)]

    @property
    def result(self) -> VerdictResult:
        """What the tests say together."""
        if self.contradicting:
            return "contradicted"
        if self.problem or not self.relevant:
            return "undecided"
        if self.comparison.expected or has_margin(self.comparison):
            is_shown = len(self.supporting) == len(self.relevant) and self.is_complete
        else:
            groups = {_group(test) for test in self.relevant}
            is_shown = {_group(test) for test in self.supporting} == groups
        return "supported" if is_shown else "undecided"

    @property
    def open_tests(self) -> list[Estimate]:
        """The tests that would still have to become significant."""
        decided = [id(test) for test in (*self.supporting, *self.contradicting)]
        left = [test for test in self.relevant if id(test) not in decided]
        if self.comparison.expected or has_margin(self.comparison):
            return left
        done = {_group(test) for test in self.supporting}
        return [test for test in left if _group(test) not in done]

    def hypothesis(self) -> str:
        """The hypothesis as it was declared, or what the comparison asks where none was written down."""
        return " ".join(self.comparison.hypothesis.split()) or f"{self.statement()}."

    def statement(self) -> str:
        """What the tests decide on: the hypothesis where its direction was declared, else that there is a difference."""
        stated = " ".join(self.comparison.hypothesis.split()).rstrip(".")
        if stated and (self.comparison.expected or has_margin(self.comparison)):
            return stated
        names, where = listed(self._names()), self._where()  # as they are written, at the beginning of a sentence too
        if self.comparison.test == "non_inferiority":
            others = [name for name in self._names() if name != self.label(self.comparison.reference)]
            verb = "is" if len(others) == 1 else "are"
            return (
                f"{self._capital(listed(others))} {verb} not inferior to {self.label(self.comparison.reference)}{where}"
            )
        if has_margin(self.comparison):
            return f"Differences between {names or 'what is compared'} are within the margin{where}"
        if self.comparison.expected:
            return f"{self._expected()}{where}"
        differ = "are not all equal" if len(self._names()) > 2 else "differ"
        return f"{names or 'What is compared'} {differ}{where}"

    def tested(self) -> str:
        """What is compared on which criteria, and which direction counts, where no margin says it."""
        if has_margin(self.comparison):
            return ""
        if self.comparison.expected:
            return f"{self._expected()}{self._where()}"
        names = listed(self._names())
        return f"{names}{self._where()}; any difference counts" if names else ""

    def _expected(self) -> str:
        return listed(
            f"{self.label(first)} above {self.label(second)}" for first, second in self.comparison.expected_pairs
        )

    def _where(self) -> str:
        on = listed(criterion_label(self.study, name) for name in self.comparison.criteria)
        return f" on {on}" if on else ""

    def _names(self) -> list[str]:
        if self.comparison.between == "systems":
            return [system_label(self.study, name) for name in compared_systems(self.study, self.comparison)]
        factor = factor_named(self.study, self.comparison.factor or "")
        levels = factor.levels if factor else []
        return [f"“{level_label(level)}”" for level in levels if level.name in (self.comparison.levels or [level.name])]

    def label(self, name: object) -> str:
        """A system or a level as readers know it."""
        factor = factor_named(self.study, self.comparison.factor or "")
        level = next((level for level in factor.levels if level.name == name), None) if factor else None
        return f"“{level_label(level)}”" if level else system_label(self.study, str(name))

    def words(self, test: Estimate) -> str:
        """One test in words."""
        if has_margin(self.comparison):
            label = next((label for label, own in self.tests.items() if own is test), test.label)
            return test_sentence(label, test, self.comparison).removesuffix(".")
        first, second = self.label(test.details.get("first")), self.label(test.details.get("second"))
        return effect_words(test, first, second, self.options.correction)

    def tests_in_words(self) -> str:
        """All tests in words where they are few, else counted, with those that decide."""
        if self.problem:
            return f"No test: {self.problem}."
        if not self.relevant:
            return "No data for it yet."
        if has_margin(self.comparison):
            shown = list(self.tests.values())
        else:
            shown = sorted(self.relevant, key=lambda test: _place(self, test))
        is_one = len({about_words(test) for test in shown}) == 1
        n_shown = MOST_TESTS if len(shown) > MOST_TESTS + 1 else len(shown)  # one more is no longer than saying so
        text = self._listed(shown[:n_shown], is_one) + "."
        rest = len(shown) - n_shown
        more = f" {n_of(rest, 'more test')} in the confirmatory comparisons below." if rest > 0 else ""
        return self.counts() + self._capital(text) + more + self._corrected_over()

    def _capital(self, text: str) -> str:
        """With a capital letter, but names of systems as they are written."""
        names = tuple(system_label(self.study, system.name) for system in self.study.spec.systems)
        return text if text.startswith(names) else _capital(text)

    def _corrected_over(self) -> str:
        """Over how many tests p-values are corrected, where that is more than the hypothesis is about."""
        n_tests = max(int(test.details.get("n_tests", 0)) for test in self.relevant)
        if n_tests <= len(self.relevant) or self.options.correction == "none":
            return ""
        are = "p-values are" if len(self.relevant) > 1 else "The p-value is"
        return f" {are} corrected for all {n_tests} tests of this comparison."

    def _listed(self, tests: list[Estimate], is_one: bool) -> str:
        """The tests one after the other; what they share is said once where all are about choices between the same two."""
        sides = {(test.details.get("first"), test.details.get("second")) for test in tests}
        is_choices = all(is_share(test) and test.is_known and about_words(test) for test in tests)
        if len(tests) == 1 or len(sides) > 1 or not is_choices or has_margin(self.comparison):
            return "; ".join(self._short(test, is_one) for test in tests)
        first, second = (self.label(side) for side in sides.pop())
        shares = (
            f"{about_words(test).removesuffix(': ')} {write_estimate(test, is_percent=True).text}, {p_words(p_adjusted(test))}"
            for test in tests
        )
        return f"Choices of {first} over {second}: {'; '.join(shares)}"

    def _short(self, test: Estimate, is_one: bool) -> str:
        """One test for the list; what it is about is said where there are several."""
        if has_margin(self.comparison):
            return self.words(test)
        first, second = self.label(test.details.get("first")), self.label(test.details.get("second"))
        return ("" if is_one else about_words(test)) + short_words(test, first, second)

    def in_short(self, test: Estimate) -> str:
        """One test with what it is about, for brackets."""
        return self._short(test, is_one=not about_words(test))

    def named(self, test: Estimate) -> str:
        """The two that one test compares, and on what where that is not the same for all; for brackets."""
        first, second = self.label(test.details.get("first")), self.label(test.details.get("second"))
        has_several = len({about_words(one) for one in self.relevant}) > 1
        return f"{about_words(test) if has_several else ''}{first} against {second}"

    def counts(self) -> str:
        """How many of several tests are significant, and which way."""
        n, yes, no = len(self.relevant), len(self.supporting), len(self.contradicting)
        if n == 1:
            return ""
        against = f", {no} in the other direction" if no else ""
        direction = " in the expected direction" if self.comparison.expected else ""
        if has_margin(self.comparison):
            return f"{answer_words(self.tests, self.comparison)} "
        if all(math.isnan(test.p_value) for test in self.relevant):
            return "Nothing can be tested yet. "
        every = "Both tests" if n == 2 else f"All {n} tests"
        if no == n:
            return f"{every} are significant in the other direction. "
        some = every if yes == n else f"{yes or 'None'} of {n} tests"
        if n == 2 and not yes:
            some = "Neither test"
        return f"{some} {'is' if yes <= 1 else 'are'} significant{direction}{against}. "

    def answer(self) -> str:
        """The first sentence of the report, where this is the primary hypothesis."""
        return f"{self._opening()}: {self.statement()}."

    def _opening(self) -> str:
        here = " for the items of this study" if self.is_about_these_items else ""
        return f"Hypothesis {self.result}{f' so far ({self.so_far})' if self.so_far else ''}{here}"

    @property
    def one_test(self) -> Estimate | None:
        """The only test, as of two systems on one criterion; None where it does not decide alone, or has no p-value."""
        if len(self.tests) != 1 or len(self.relevant) != 1 or has_margin(self.comparison) or not self.is_complete:
            return None
        (test,) = self.relevant
        return None if math.isnan(test.p_value) else test

    def one_test_answer(self) -> str:
        """The first sentence where one test decides: the verdict, and the estimate in place of the hypothesis."""
        test = self.one_test
        if test is None:
            return ""
        first, second = self.label(test.details.get("first")), self.label(test.details.get("second"))
        on = about_words(test).removesuffix(": ") or listed(
            criterion_label(self.study, name) for name in self.comparison.criteria
        )
        where = f" on {on}" if on else ""
        if is_significant(test):
            return f"{self._opening()}: {compared_words(test, first, second)}{where}."
        if is_tie(test):
            return f"{self._opening()}: {first} and {second} are tied{where}."
        return f"{self._opening()}: {compared_words(test, first, second)}{where}, which is not significant."

    def one_test_numbers(self) -> str:
        """The confidence interval and p-value of that test."""
        test = self.one_test
        if test is None:
            return ""
        shown, is_percent = readable(test)
        if not shown.has_interval:
            return f"{_capital(p_words(p_adjusted(test)))}."
        what = "probability" if test.unit == "log odds" else "share" if is_share(test) else "difference"
        what = "ratio" if test.details.get("is_log") else what
        if is_percent and is_tie(test):  # the sentence before names neither the number nor what it is of
            of = f"that {self.label(test.details.get('first'))} is preferred" if what == "probability" else "of choices"
            number = with_interval(shown, is_percent=is_percent)
            return f"The estimated {what} {of} is {number}, {p_words(p_adjusted(test))}."
        interval = interval_only(shown, is_percent=is_percent).replace("interval ", f"interval of the {what} is ", 1)
        return f"The {interval}, {p_words(p_adjusted(test))}."

    def headlines(self) -> tuple[Headline, ...]:
        """The numbers of the first screen where a direction was declared: its tests, the way round it has them."""
        if not self.comparison.expected or has_margin(self.comparison) or len(self.relevant) > MOST_TESTS:
            return ()
        return tuple(self._headline(test) for test in self.relevant)

    def _headline(self, test: Estimate) -> Headline:
        first, second = (self.label(test.details.get(key)).strip("“”") for key in ("first", "second"))
        shown, unit = readable(test)[0], counted_in(test)
        verb = "over" if is_share(test) or test.unit == "log odds" else "against"
        after = " so far" if self.so_far else ""
        after += after_correction(self.options.correction) if test.details.get("n_tests", 2) > 1 else ""
        if any(test is other for other in self.contradicting):
            words = f"Significant{after}, against the hypothesis."
        else:
            words = significance_words(shown, float(shown.details.get("null", 0.0)), p_adjusted(test), after)
        kind = ", consistency" if test.details.get("quantity") == "ICC" else ""
        about = about_words(test) if len({about_words(one) for one in self.relevant}) > 1 or kind else ""
        label = f"{about}{first} {verb} {second}{kind}"
        return Headline(label, replace(shown, unit=unit), words, is_confirmatory=True)

    def verdict(self) -> Verdict:
        """For the summary."""
        stated = self.hypothesis()
        if stated.rstrip(".") != self.statement():
            stated += " No direction is declared: any difference counts."
        if self.is_about_these_items:
            stated += " Tested for the items of this study only, as declared."
        title = comparison_title(self.comparison)
        words, is_interim = self.tests_in_words(), bool(self.so_far)
        return Verdict(
            title,
            stated,
            self.result,
            words,
            is_primary=self.is_primary,
            is_interim=is_interim,
            n_tests=max(len(self.tests), 1),
        )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _is_above(test: Estimate) -> bool:
    return test.value > float(test.details.get("null", 0.0))


def _higher_first(test: Estimate) -> Estimate:
    is_choice = test.details.get("quantity") == "share" or test.details.get("quantity") == "ICC"
    return test if is_choice or not test.is_known or _is_above(test) else flipped(test)


def _group(test: Estimate) -> tuple[object, ...]:
    """On what the hypothesis must hold: each criterion or strategy, size and consistency apart."""
    return test.details.get("about", ""), test.details.get("quantity") == "ICC"


def _place(tested: DeclaredHypothesis, test: Estimate) -> tuple[float, ...]:
    """Contradicting tests first, then by their corrected p-values; many of those are 1, so then by the uncorrected ones."""
    is_against = any(test is other for other in tested.contradicting)
    return (0 if is_against else 1), *(1.0 if math.isnan(p) else p for p in (p_adjusted(test), test.p_value))


def tested_hypotheses(data: StudyData, options: Options) -> list[DeclaredHypothesis]:
    """Every declared comparison with its tests, the primary one first."""
    study = data.study
    primary = study.spec.analysis.primary
    declared = sorted(study.spec.analysis.comparisons, key=lambda comparison: comparison.name != primary)
    return [_tested(data, comparison, options) for comparison in declared]


def _tested(data: StudyData, comparison: Comparison, options: Options) -> DeclaredHypothesis:
    family = deciding_family(data.study, comparison)
    if not family.decides(data.study, comparison):
        problem = "no analysis of this design tests this comparison as a whole"
        return DeclaredHypothesis(data.study, comparison, {}, options, problem)
    try:
        tests = family.primary_tests(data, comparison, options)
    except DialometerError as error:
        return DeclaredHypothesis(data.study, comparison, {}, options, str(error).rstrip("."))
    return DeclaredHypothesis(data.study, comparison, tests, options)
