"""A family of analyses: which designs it fits, and what it finds. One file each, found by this folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from dialometer.analysis.base.data import StudyData
from dialometer.errors import DialometerError
from dialometer.model.report import Figure, Headline, Method, Section
from dialometer.model.study import Study
from dialometer.registry import Registry


@dataclass(frozen=True, slots=True)
class Options:
    """Settings that every statistic of a report shares, from the study's declared analysis unless overridden."""

    confidence: float
    n_resamples: int
    seed: int
    correction: str


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


class Analysis(Protocol):
    """A family. ``rank`` orders the families of one study: the lowest speaks first."""

    rank: int

    def fits(self, study: Study) -> bool:
        """Whether the study's design asks for this family."""

    def run(self, data: StudyData, options: Options) -> Findings:
        """All that the family finds; sections that cannot be computed say why."""


ANALYSES: Registry[Analysis] = Registry("analysis", "dialometer.analysis.families")


def section_or_problem(name: str, title: str, build: Callable[[], Section]) -> Section:
    """The section, or one that says in words why it could not be made; the rest of the report goes on."""
    try:
        return build()
    except DialometerError as error:
        return Section(name, title, problem=str(error))


# Names of a report's parts that stay unique when several families speak in one report.


def with_prefix(findings: Findings, prefix: str) -> Findings:
    """The same findings; every section, table and figure carries the family's prefix in its name."""

    def named(name: str) -> str:
        return name if name == prefix or name.startswith(f"{prefix}-") else f"{prefix}-{name}"

    def section(one: Section) -> Section:
        parts = tuple(replace(part, name=named(part.name)) for part in one.parts)
        return replace(one, name=named(one.name), parts=parts)

    figure = findings.figure
    return replace(
        findings,
        figure=None if figure is None else replace(figure, name=named(figure.name)),
        sections=tuple(section(one) for one in findings.sections),
    )
