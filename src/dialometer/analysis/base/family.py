"""A family of analyses: which designs it fits, what it reports, and the test that decides its primary comparison."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypedDict

from dialometer.analysis.base.data import StudyData
from dialometer.errors import DialometerError
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.report import Claim, Figure, Headline, Method, Section, Verdict
from dialometer.model.study import Study
from dialometer.registry import Registry
from dialometer.stats.effects.multiplicity import Correction


class BootstrapSettings(TypedDict):
    """Settings of a bootstrap, passed as ``**options.resampling``."""

    n_resamples: int
    seed: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Options:
    """Settings that every statistic of a report shares, from the study's declared analysis unless overridden."""

    confidence: float
    n_resamples: int
    seed: int
    correction: Correction
    has_fixed_items: bool = False
    """Whether claims are about the items of the study only, as its analysis may declare."""
    model: Literal["linear", "ordinal"] = "linear"
    """How systems are compared on Likert scales."""

    @classmethod
    def declared(cls, study: Study) -> Options:
        """As the study declares them."""
        analysis = study.spec.analysis
        return cls(
            confidence=analysis.confidence,
            n_resamples=analysis.n_resamples,
            seed=study.spec.seed,
            correction=analysis.correction,
            has_fixed_items=analysis.items == "fixed",
            model=analysis.model,
        )

    @property
    def resampling(self) -> BootstrapSettings:
        """What every bootstrap needs to know."""
        return {"n_resamples": self.n_resamples, "seed": self.seed, "confidence": self.confidence}


@dataclass(frozen=True)
class Findings:
    """What one family has to say. The first family of a study also gives the answer of the whole report."""

    answer: str
    certainty: str
    headlines: tuple[Headline, ...] = ()
    figure: Figure | None = None
    sections: tuple[Section, ...] = ()
    methods: tuple[Method, ...] = ()
    warnings: tuple[str, ...] = field(default=())
    closing: tuple[Section, ...] = ()
    """Sections that end the report, after those of all other families."""
    claims: tuple[Claim, ...] = ()
    """What the answer states as found."""
    basis: str = ""
    """What is left of the certainty where the first sentence is the one declared test: who rated how much, how far it reaches."""
    verdicts: tuple[Verdict, ...] = ()
    """On the hypotheses that were declared."""
    verdict_answer: str = ""
    """The verdict on the primary hypothesis in a sentence; it opens the report."""
    one_test_answer: str = ""
    """The same with the estimate, where the primary hypothesis has one test: it says all that the family's answer would."""
    one_test_numbers: str = ""
    """The confidence interval and p-value of that test."""
    verdict_counts: str = ""
    """How many tests of the primary hypothesis are significant: said where the deciding family has no answer of its own."""
    verdict_headlines: tuple[Headline, ...] = ()
    """The tests of the primary hypothesis, where its direction was declared; they take the place of the family's own."""
    next_steps: tuple[str, ...] = ()
    """What to do next, from what this family found."""


@dataclass(frozen=True, slots=True)
class OtherChoice:
    """A choice that a critic might have made instead of the declared one, and the primary tests under it.

    The tests have the labels, the unit and the correction of the declared ones, so that both can be compared.
    """

    kind: str
    label: str
    tests: Callable[[], Mapping[str, Estimate]]
    claim: str = ""
    """What the claim is about where it is another than the declared one, such as "these items only"."""


class Family(ABC):
    """One family; subclasses say which designs they fit and what they report.

    A family that compares systems or levels of a factor also names the tests that decide such a comparison. Power
    analysis repeats them thousands of times, so they come without tables, figures and bootstraps.
    """

    is_about: Literal["raters", "judges"] = "raters"
    """Which reports it is in: those about raters, or those about models alone, each of which is a judge of its own."""
    rank: int
    """Orders the families of one study: the lowest comes first and gives the answer of the report."""

    @abstractmethod
    def fits(self, study: Study) -> bool:
        """Whether the study's design asks for this family."""

    @abstractmethod
    def run(self, data: StudyData, options: Options) -> Findings:
        """All that the family reports; sections that cannot be computed say why."""

    def at_look(self, data: StudyData, options: Options) -> tuple[StudyData, Options]:
        """The data and settings of the report; a study that declares looks before its end has those of its last look."""
        return data, options

    def decides(self, study: Study, comparison: Comparison) -> bool:
        """Whether the family tests this comparison of a study that it fits."""
        return False

    def primary_tests(self, data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
        """Each test of the comparison by its label; ``details["p_adjusted"]`` is corrected within the comparison.

        None for a family that decides no comparison.
        """
        return {}

    def alternatives(self, data: StudyData, comparison: Comparison, options: Options) -> Sequence[OtherChoice]:
        """Other models and normalisations of this kind of data that the comparison might have been tested with.

        What applies to every kind of data (exclusions, zeros, items fixed or a sample) is not among them.
        """
        return ()

    def effect_unit(self, comparison: Comparison) -> str:
        """What the size of an effect is counted in when the comparison is planned."""
        return "standard deviations of quality between the best and the worst system"


ANALYSES: Registry[Family] = Registry("analysis", "dialometer.analysis.families")
AlternativeSource = Callable[[StudyData, Comparison, Options], Sequence[OtherChoice]]
ALTERNATIVES: Registry[AlternativeSource] = Registry(
    "alternative", "dialometer.analysis.families", group="dialometer.alternatives"
)
"""Choices that a critic might have made in data of any kind; other packages add theirs by an entry point."""


def section_or_problem(name: str, title: str, build: Callable[[], Section]) -> Section:
    """The section, or one that says in words why it could not be made; the rest of the report goes on."""
    try:
        return build()
    except DialometerError as error:
        return Section(name, title, problem=str(error))


def in_appendix(sections: Iterable[Section]) -> tuple[Section, ...]:
    """The sections as parts of the appendix."""
    return tuple(replace(section, in_appendix=True) for section in sections)


def with_prefix(findings: Findings, prefix: str) -> Findings:
    """The same findings with the prefix in every name, so that names stay unique when several families share a report."""

    def named(name: str) -> str:
        return name if name == prefix or name.startswith(f"{prefix}-") else f"{prefix}-{name}"

    def renamed(section: Section) -> Section:
        parts = tuple(replace(part, name=named(part.name)) for part in section.parts)
        return replace(section, name=named(section.name), parts=parts)

    figure = findings.figure
    return replace(
        findings,
        figure=None if figure is None else replace(figure, name=named(figure.name)),
        sections=tuple(renamed(section) for section in findings.sections),
    )
