"""What every rating scale says about itself. The scales are in :mod:`dialometer.scales`, one file each.

Nothing outside that folder asks for a scale's type: pages, simulation, judges, export, import and analysis ask for what is
declared here, so that a scale of another package takes part in all of it. All but ``parse`` has a default.
"""

from __future__ import annotations

import json
import math
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import PrivateAttr

from dialometer.model.marks import Passage, SpanMark
from dialometer.model.part import Part
from dialometer.model.values import ObservedValues, Value, answer_words

__all__ = ["InputField", "NumberUse", "Scale", "Value"]

Floats = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval", "ratio"]
ChoiceForm = Literal["one", "ends", "order"]
"""How alternatives are compared: the best one is chosen, the best and the worst, or all are put in order."""


@dataclass(frozen=True, slots=True)
class InputField:
    """With what an answer is entered, in terms that any form or annotation tool has."""

    kind: Literal["points", "range", "number", "one_of", "any_of", "order", "text", "parts"]
    """``parts``: several things are entered that belong together, for which other tools have no single control."""
    options: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    step: float = 1
    labels: Mapping[float, str] = field(default_factory=dict)
    """Words for some numbers."""

    @property
    def is_number(self) -> bool:
        """Whether a number is entered."""
        return self.kind in ("points", "range", "number")


@dataclass(frozen=True, slots=True)
class NumberUse:
    """How simulated raters pick numbers where a scale leaves that to them; see ``simulate.rater.Habits``."""

    log_modulus: Floats
    slope: float
    anchor: float | None = None
    anchor_pull: float = 0.0


@dataclass(frozen=True, slots=True)
class DetailTable:
    """The parts of answers as a table of their own in exports: its file name, what a row is, and its columns.

    Each column has the type of its values (``str``, ``int``, ``float`` or ``bool``) and its meaning.
    """

    name: str
    meaning: str
    columns: Mapping[str, tuple[type, str]]


class Scale(Part):
    """One way of answering. Turns what a form or a program sends into a value, or says in words why it cannot."""

    type: str
    level: ClassVar[Level] = "nominal"
    """What the values mean: names, an order, distances, or ratios. Means are taken of all but names."""
    unit: ClassVar[Literal["points", "log"]] = "points"
    """Whether numbers are analysed as they are or, as answers in proportion, by their logarithms."""
    choice_form: ClassVar[ChoiceForm | None] = None
    """Set where one answer compares all alternatives on the screen instead of rating one."""
    n_alternatives: ClassVar[tuple[int, int]] = (2, 99)
    """Fewest and most alternatives that can be compared."""
    seconds_per_answer: ClassVar[float] = 4.0
    """Rough time for one answer, for the estimate of a session's length."""
    no_answer: ClassVar[str] = "Please answer this."
    """What a rater reads who leaves a required answer out."""
    scripts: ClassVar[tuple[str, ...]] = ()
    """Scripts of ``web/static`` that the control on the page uses."""
    guess_rank: ClassVar[int | None] = None
    """Place among the scales that an import tries on values of unknown origin, lowest first; None: never tried."""

    # What an answer is

    @abstractmethod
    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        """The value of a raw answer; raises :class:`~dialometer.errors.AnswerError` with a sentence for the rater.

        ``alternatives`` are the options on the screen for a scale that compares (as positions "1", "2", …, so that a page
        never gives a system's name away).
        """

    def parse_collected(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        """The value of an answer that was collected elsewhere; by default what raters may enter here."""
        return self.parse(raw, alternatives)

    def parse_about(self, raw: object, alternatives: Sequence[str], passages: Sequence[Passage]) -> Value:
        """The value of an answer about texts; only scales that mark words look at these."""
        return self.parse(raw, alternatives)

    def doubt(self, value: Value, anchor: float | None = None) -> str:
        """A question to the rater about a value that is allowed but looks like a slip; empty where nothing does.

        ``anchor`` is the standard's value where the rater sees one. Pages ask once and then accept the value.
        """
        return ""

    def differ(self, values: Sequence[Value], distance: float = 0) -> bool:
        """Whether raters disagree who gave these answers to the same: numbers further apart than ``distance`` (a ratio where
        answers are in proportion), anything else that is not the same."""
        if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            return any(value != values[0] for value in values)
        low, high = float(min(values)), float(max(values))  # type: ignore[type-var, arg-type]
        if self.unit == "log":
            return high > low * max(distance, 1.0) * (1 + 1e-9)
        return high - low > distance + 1e-9

    def rename(self, value: Value, names: Mapping[str, str]) -> Value:
        """The value with screen positions replaced by systems; scales that do not compare have nothing to rename."""
        return value

    def number(self, value: Value) -> float | None:
        """The value as a number for analysis, or None where it has no natural number."""
        return float(value) if isinstance(value, int | float) else None

    def categories(self) -> list[Any] | None:
        """All values the scale allows, from low to high, where they are finitely many (the label set for agreement)."""
        return None

    def option_names(self) -> list[str]:
        """The options of a question, in the order shown, where it has any."""
        return [str(category) for category in self.categories() or ()]

    def value_words(self) -> dict[str, str]:
        """The names that are stored as answers, each with the words that raters read for it: by default its options."""
        return {option: option for option in self.option_names()}

    _said_as: dict[str, str] = PrivateAttr(default_factory=dict)

    def said_as(self, words: Mapping[str, str]) -> Self:
        """The scale with other words for some of its options, as in another language; the same answers are stored."""
        other = self.model_copy()
        other._said_as = {**self._said_as, **words}
        return other

    @property
    def other_words(self) -> dict[str, str]:
        """The options that raters read in other words than they are stored in."""
        return dict(self._said_as)

    def option_words(self, option: str) -> str:
        """What raters read for an option."""
        return self._said_as.get(option) or self.value_words().get(option, option)

    def extra_options(self) -> list[str]:
        """What a scale that compares allows beside the alternatives, such as a tie."""
        return []

    def category_labels(self) -> dict[float, str]:
        """The numbers of all categories, each with the words for it."""
        numbers = {self.number(category): str(category) for category in self.categories() or ()}
        return {number: words for number, words in numbers.items() if number is not None}

    def bounds(self) -> tuple[float, float]:
        """Smallest and largest number."""
        numbers = self.category_labels()
        return (float(min(numbers)), float(max(numbers))) if numbers else (-math.inf, math.inf)

    def anchor_number(self) -> float | None:
        """The number of the standard, which a condition may show to raters as the anchor."""
        return None

    @property
    def compares(self) -> bool:
        """Whether one answer is given over all alternatives shown (pairwise, ranking …) instead of one for each."""
        return self.choice_form is not None

    @property
    def compares_responses(self) -> bool:
        """Whether what is compared are the responses on the screen, not options of its own."""
        return self.compares and not self.option_names()

    @property
    def is_numeric(self) -> bool:
        """Whether answers are numbers given to one thing at a time."""
        return not self.compares and self.level != "nominal"

    @property
    def takes_own_words(self) -> bool:
        """Whether raters can write what they like."""
        return False

    # What an answer consists of, where it has parts

    number_words: ClassVar[str] = ""
    """What the number of an answer with parts is, for reports; empty where raters give the number themselves."""

    detail_table: ClassVar[DetailTable | None] = None
    """Set where an answer has parts that an export lists one by one; :meth:`details` gives the rows."""

    def details(self, value: Value) -> list[tuple[Any, ...]]:
        """The parts of a stored answer, one row of :attr:`detail_table` each."""
        return []

    def point_texts(self, *, as_shown: bool = False) -> dict[str, str]:
        """The points of a checklist in the order shown: name, and text for reports, or as raters read it. Empty for a scale
        that is none."""
        return {}

    def point_results(self, value: Value) -> dict[str, bool | None]:
        """For each point of a checklist whether it is met, None where it does not apply."""
        return {}

    marks_text: ClassVar[bool] = False
    """Set where raters mark words: then the control shows the text itself, and answers are checked against it."""

    def markable(self, turns: Sequence[tuple[str, str, str]]) -> tuple[Passage, ...]:
        """What can be marked, from speaker, role and text of the turns shown."""
        return tuple(Passage(number, text, speaker) for number, (speaker, _, text) in enumerate(turns))

    def marks(self, value: Value) -> list[SpanMark]:
        """The marks of a stored answer."""
        return []

    # How it is shown and described

    def input_field(self, alternatives: Sequence[str] = ()) -> InputField:
        """With what the answer is entered, for pages without a template and for other tools' forms."""
        if self.compares:
            return InputField("one_of", (*(self.option_names() or alternatives), *self.extra_options()))
        if self.categories():
            return InputField("one_of", tuple(self.option_names()))
        return InputField("number" if self.is_numeric else "text")

    @classmethod
    def template_file(cls) -> Path | None:
        """The template of the control on the page that a package brings along: ``<type>.html`` beside its module."""
        module = getattr(sys.modules.get(cls.__module__), "__file__", None)
        file = Path(module).with_name(f"{cls.model_fields['type'].default}.html") if module else None
        return file if file is not None and file.is_file() else None

    def in_words(self, value: Value) -> str:
        """An answer as it reads on the page; empty where nothing was marked."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self.category_labels().get(float(value), answer_words(value))
        if isinstance(value, list):
            value = [self.option_words(entry) if isinstance(entry, str) else entry for entry in value]
        return answer_words(self.option_words(value) if isinstance(value, str) else value)

    def describe(self) -> str:
        """A phrase for protocols, data dictionaries and reports, such as "1 to 5"."""
        return self.type

    def answer_format(self, alternatives: Sequence[str] = ()) -> str:
        """What a program must write as its answer, for the prompt of a language model."""
        entered = self.input_field(alternatives)
        listed = ", ".join(map(self._named_option, entered.options))
        match entered.kind:
            case "points" | "range":
                labels = "; ".join(f"{number:g} = {label}" for number, label in entered.labels.items())
                noun = "whole number" if entered.kind == "points" else "number"
                return f"a {noun} from {entered.low:g} to {entered.high:g}" + (f" ({labels})" if labels else "")
            case "number":
                return "a number"
            case "one_of":
                return f"one of {listed}"
            case "any_of":
                return f"a list with any of {listed}"
            case "order":
                return f"a list with all of {listed}, the first the best"
        return "a text"

    def _named_option(self, option: str) -> str:
        words = self._said_as.get(option, "")
        return json.dumps(option, ensure_ascii=False) + (f" ({words})" if words else "")

    def names(self, systems: Sequence[str]) -> list[str] | None:
        """The names that a value can be, for the data dictionary: none for numbers and lists, None for free text."""
        if self.compares:
            return [*systems, *self.extra_options()]
        if self.input_field().is_number:
            return []
        return None if self.categories() is None else self.option_names()

    # What a simulated rater answers

    def simulate(self, quality: Floats, use: NumberUse) -> NDArray[Any] | None:
        """Values that raters give who perceive this quality (in standard deviations, 0 is average), in the same shape.

        None where perceived quality does not decide the answer. By default, categories are taken from low to high quality.
        """
        categories = self.categories()
        if not categories:
            return None
        values = np.empty(len(categories), dtype=object)
        values[:] = categories
        share = 1 / (1 + np.exp(-quality))
        return np.asarray(values[np.minimum((share * len(values)).astype(np.int64), len(values) - 1)])

    def simulate_about(self, quality: float, passages: Sequence[Passage], rng: np.random.Generator) -> Any:
        """The answer about these texts by a rater who perceives this quality, for a scale that marks words."""
        return None

    def simulate_comparison(
        self, perceived: Floats, alternatives: Sequence[str], rng: np.random.Generator, *, tie_width: float
    ) -> Any:
        """The answer of a rater who perceives these qualities; differences below ``tie_width`` may be called a tie."""
        order = [int(place) for place in (-perceived).argsort(kind="stable")]
        if self.choice_form == "ends":
            return {"best": alternatives[order[0]], "worst": alternatives[order[-1]]}
        if self.choice_form == "one":
            return alternatives[order[0]]
        options = self.option_names() or list(alternatives)
        if len(options) != len(perceived):
            return [options[place] for place in rng.permutation(len(options))]
        return [options[place] for place in order]

    def simulate_question(
        self, rng: np.random.Generator, alternatives: Sequence[str] = (), *, is_required: bool = True
    ) -> Any:
        """An answer to a question about the rater."""
        categories = self.categories()
        if categories:
            return categories[int(rng.integers(len(categories)))]
        low, high = (
            end if math.isfinite(end) else default for end, default in zip(self.bounds(), (0, 100), strict=True)
        )
        return float(round(low + (high - low) * rng.random())) if self.is_numeric else "No further remarks."

    # What an import guesses

    @classmethod
    def could_give(cls, seen: ObservedValues) -> bool:  # noqa: ARG003
        """Whether values of unknown origin may come from such a scale."""
        return False

    @classmethod
    def guess(cls, seen: ObservedValues) -> dict[str, Any]:  # noqa: ARG003
        """The scale as a study file declares it, rebuilt from values that are known to be of this type."""
        return {"type": cls.model_fields["type"].default}
