"""A report before it has a form: what was found, in tables, figures and sentences, every number an estimate.

Analyses build it, :mod:`dialometer.report` renders it. Nothing here knows about HTML.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dialometer.model.estimate import Estimate

Cell = str | int | float | bool | Estimate | None
"""A table cell. None is shown as "not enough data", never as zero or empty."""

ColumnKind = Literal["text", "count", "number", "percent", "estimate", "percent_estimate", "p_value", "mark"]


PERCENTAGE_POINTS = "percentage points"
"""The unit of a column of differences between shares: written without a percent sign, which would mean a share."""

OWN_WORDS = "in own words"
"""How the cell of a table begins that goes on with what raters wrote themselves."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its key in the exported files, its heading, and how its cells are written."""

    name: str
    label: str
    kind: ColumnKind = "text"
    n_digits: int = 2
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. ``name`` is unique in a report and names its files. Rows have one cell per column."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    notes: tuple[str, ...] = ()
    is_confirmatory: bool = False

    def __post_init__(self) -> None:
        wrong = [i for i, row in enumerate(self.rows) if len(row) != len(self.columns)]
        if wrong:
            raise ValueError(f"table '{self.name}': row {wrong[0]} has not one cell per column")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure as a Vega-Lite specification with its data inside. ``alt`` says in words what it shows."""

    name: str
    title: str
    spec: Mapping[str, Any]
    alt: str
    caption: str = ""
    is_confirmatory: bool = False


@dataclass(frozen=True, slots=True)
class Turns:
    """A dialogue or transcript pair to be shown beside the numbers: marked stretches per turn (see ``design.pairs``)."""

    name: str
    title: str
    rows: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]
    """For each turn: the speaker and its stretches as (kind, text before, text after). A stretch of the kind ``heat-1`` to
    ``heat-4`` is a marked one, the more often the higher; then the text before says how often."""
    caption: str = ""
    is_markdown: bool = False
    """Whether raters saw the texts as Markdown: then turns that are the same throughout are shown so."""

    @property
    def has_heat(self) -> bool:
        """Whether it shows how often stretches were marked, not how two transcripts differ."""
        return any(kind.startswith("heat-") for _, stretches in self.rows for kind, _, _ in stretches)


Part = Table | Figure | Turns


@dataclass(frozen=True, slots=True)
class Section:
    """A chapter. Paragraphs come first, then the parts in order. ``problem`` tells why it could not be computed."""

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    problem: str = ""
    is_confirmatory: bool = False
    in_appendix: bool = False
    """Complete, but not needed to follow the answer: folded on the page, at the end of the document elsewhere."""


@dataclass(frozen=True, slots=True)
class Headline:
    """One number of the summary: what it is, the estimate, and a sentence in plain words."""

    label: str
    estimate: Estimate | None
    sentence: str
    is_confirmatory: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """A difference or a preference that the answer states as found, so that error rates can be counted without reading it.

    One that ``is_general`` speaks of other raters and other items; else it is about the items that were shown. One that
    is not ``is_primary`` answers another question than the first one of the study.
    """

    what: str
    is_general: bool = True
    is_primary: bool = True


VerdictResult = Literal["supported", "contradicted", "undecided"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the confirmatory tests say about one hypothesis that was declared in advance."""

    comparison: str
    hypothesis: str
    result: VerdictResult
    tests: str
    """The tests in words: estimate, confidence interval and corrected p-value."""
    is_primary: bool = False
    is_interim: bool = False
    """Whether the study still lacks raters and declares no looks, so that the verdict can still change."""
    n_tests: int = 1
    """How many tests the comparison has; their p-values are corrected together."""

    @property
    def words(self) -> str:
        """The result as it is written: "supported", or "supported so far"."""
        return f"{self.result} so far" if self.is_interim else self.result


@dataclass(frozen=True, slots=True)
class Summary:
    """The first screen: the answer, how certain it is, what was excluded, and one picture."""

    answer: str
    certainty: str
    headlines: tuple[Headline, ...] = ()
    exclusions: Table | None = None
    balance: Table | None = None
    figure: Figure | None = None
    warnings: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    """What the answer states as found; empty where it finds no difference."""
    verdicts: tuple[Verdict, ...] = ()
    """On every hypothesis that was declared; empty where none was."""
    next_steps: tuple[str, ...] = ()
    """What to do next, derived from the result."""
    hypotheses: Table | None = None
    """The verdicts as a table."""


@dataclass(frozen=True, slots=True)
class Method:
    """Which statistic was used for what, and why this one."""

    what: str
    method: str
    why: str
    source: str = ""


@dataclass(frozen=True)
class Report:
    """Everything an analysis says about a study."""

    study: str
    title: str
    summary: Summary
    sections: tuple[Section, ...]
    methods: tuple[Method, ...]
    provenance: Mapping[str, str | int | float] = field(default_factory=dict)
    """Fingerprint, lock version, seed, counts, software version, first and last judgment: what makes it reproducible."""
    is_finished: bool = True
    has_kinds: bool = True
    """Whether its parts are confirmatory or exploratory; a plan or the test of an evaluator is neither."""

    def tables(self) -> tuple[Table, ...]:
        """All tables in the order they appear."""
        summary = self.summary
        own = [table for table in (summary.exclusions, summary.balance, summary.hypotheses) if table is not None]
        return (*own, *(part for section in self.in_order for part in section.parts if isinstance(part, Table)))

    @property
    def main_sections(self) -> tuple[Section, ...]:
        """What a reader needs to follow the answer."""
        return tuple(section for section in self.sections if not section.in_appendix)

    @property
    def appendix(self) -> tuple[Section, ...]:
        """Everything else, complete."""
        return tuple(section for section in self.sections if section.in_appendix)

    @property
    def in_order(self) -> tuple[Section, ...]:
        """The sections in the order they are shown."""
        return (*self.main_sections, *self.appendix)

    def figures(self) -> tuple[Figure, ...]:
        """All figures in the order they appear."""
        own = (self.summary.figure,) if self.summary.figure else ()
        return (*own, *(part for section in self.in_order for part in section.parts if isinstance(part, Figure)))
