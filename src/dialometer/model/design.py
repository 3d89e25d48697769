"""The design that a study file declares: what raters see, who sees what, in which order and how often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dialometer.model.judges import PeopleRate
from dialometer.model.part import Name, Part
from dialometer.model.rater_text import RaterText, TextFile

Anchor = Literal["none", "number", "text", "both"]
Layout = Literal["together", "one_per_screen"]
Order = Literal["fixed", "random"]
TextForm = Literal["plain", "markdown"]
Shown = Literal["shown", "hidden"]
ToolsShown = Literal["shown", "folded", "hidden"]
Condition = Mapping[str, str]
PositiveNumber = Annotated[float, Field(gt=0)]


class Presentation(Part):
    """What a rater sees. The study sets the base; levels of factors and blocks change parts of it."""

    anchor: Anchor = Field(
        default="none", description="Shown beside the item: the standard's value, the standard response, both."
    )
    anchor_values: dict[str, PositiveNumber] = Field(
        default_factory=dict, description="Criterion to the standard's value on it, replacing the scale's modulus."
    )
    task: RaterText = Field(
        default="",
        description="A sentence above what is rated, on every screen; {{criteria}} and {{anchor}} stand for what the screen "
        "asks for and for the values it shows.",
    )
    layout: Layout = Field(default="together", description="All criteria on one screen, or one per screen.")
    scales: dict[str, str] = Field(
        default_factory=dict, description="Criterion to scale, replacing the criterion's own."
    )
    deadline_s: float | None = Field(
        default=None, gt=0, description="Seconds to answer a screen; later answers are stored as late."
    )
    instructions: TextFile | None = Field(
        default=None, description="Markdown file that replaces the study's instructions."
    )
    highlight_differences: bool = Field(default=False, description="Mark where two transcripts differ.")
    text: TextForm = Field(
        default="plain",
        description="Turns and responses as they were written, or as Markdown with code, tables and formulas.",
    )
    fold_words: int | None = Field(
        default=None,
        ge=20,
        description="Responses of more words are cut at the same height, with a button to show all; never by default.",
    )
    system_prompt: Shown = Field(default="hidden", description="Whether raters can open the system prompt.")
    tools: ToolsShown = Field(default="folded", description="Tool calls: shown, folded or hidden.")
    word_count: Shown = Field(default="hidden", description="Whether the number of words is shown below a response.")
    variables: dict[str, RaterText] = Field(
        default_factory=dict, description="Free-form values; {{name}} in texts and questions is replaced by them."
    )


class Change(Part):
    """A change of the presentation: only what is given changes."""

    anchor: Anchor | None = None
    anchor_values: dict[str, PositiveNumber] | None = None
    task: RaterText | None = None
    layout: Layout | None = None
    scales: dict[str, str] | None = None
    deadline_s: float | None = Field(default=None, gt=0)
    instructions: TextFile | None = None
    highlight_differences: bool | None = None
    text: TextForm | None = None
    fold_words: int | None = Field(default=None, ge=20)
    system_prompt: Shown | None = None
    tools: ToolsShown | None = None
    word_count: Shown | None = None
    variables: dict[str, RaterText] | None = None

    def apply(self, base: Presentation) -> Presentation:
        """The base with this change made; mappings are merged, everything else is replaced."""
        update: dict[str, Any] = {}
        for key in self.model_fields_set:
            new = getattr(self, key)
            old = getattr(base, key)
            update[key] = {**old, **new} if isinstance(new, dict) else new
        return base.model_copy(update=update)


class Level(Part):
    """One level of a factor and what it changes."""

    name: Name = Field(description="Short name used in tables and reports.")
    label: str = Field(default="", description="Name for reports; the short name by default.")
    set: Change = Field(default_factory=Change, description="What this level changes in what a rater sees.")
    quota: int | None = Field(default=None, ge=0, description="At most this many raters at this level.")


_BARE_FACTORS = ("anchor", "layout", "text", "system_prompt", "tools", "word_count")
"""Factors whose levels may be bare names: each sets what the factor is called."""


class Factor(Part):
    """A between-subject factor: each rater is given one of its levels."""

    name: Name = Field(description="Short name used in tables and reports.")
    label: str = Field(default="", description="Name for reports; the short name by default.")
    levels: list[Level] = Field(
        min_length=2, description="At least two; for anchor, layout, text and the like bare names suffice."
    )

    @model_validator(mode="before")
    @classmethod
    def _expand_bare_levels(cls, data: Any) -> Any:
        """``{name: anchor, levels: [none, both]}`` stands for levels that set the anchor to their own name."""
        if not isinstance(data, dict) or not isinstance(data.get("levels"), list):
            return data
        factor = data.get("name")
        levels = []
        for level in data["levels"]:
            if isinstance(level, dict):
                levels.append(level)
            elif factor == "deadline_s" and isinstance(level, int | float):
                levels.append({"name": f"within_{level:g}s".replace(".", "_"), "set": {"deadline_s": level}})
            elif factor in _BARE_FACTORS and isinstance(level, str):
                levels.append({"name": level, "set": {factor: level}})
            else:
                levels.append({"name": level})
        return {**data, "levels": levels}


class Block(Part):
    """A within-subject block: every rater passes through it, in an order drawn for the rater."""

    name: Name = Field(description="Items name their block in their field 'block'.")
    title: RaterText = Field(default="", description="Heading shown above the block's items.")
    text: RaterText = Field(default="", description="A sentence shown above the block's items.")
    n_items: int | Literal["all"] = Field(default="all", description="How many of the block's items each rater gets.")
    criteria: list[Name] | None = Field(default=None, description="Criteria asked in this block; all by default.")
    set: Change = Field(default_factory=Change, description="What this block changes in what a rater sees.")


class Assignment(Part):
    """How raters are spread over the comparisons of systems."""

    rule: Literal["balanced", "adaptive"] = Field(
        default="balanced",
        description="All systems equally often, or raters go where the answers so far leave it most open which system is better. "
        "The probability of every draw is stored, and the analysis weights answers by it.",
    )
    floor: float = Field(
        default=0.5,
        ge=0.2,
        le=1,
        description="With adaptive assignment: the share of draws that is spread evenly, so that each comparison keeps a chance.",
    )

    @model_validator(mode="before")
    @classmethod
    def _bare_rule(cls, value: Any) -> Any:
        """``assignment: adaptive`` is the rule with its usual floor."""
        return {"rule": value} if isinstance(value, str) else value


class Design(Part):
    """Who sees what, in which order, how often."""

    factors: list[Factor] = Field(
        default_factory=list, description="What differs between raters: each gets one level of every factor."
    )
    blocks: list[Block] = Field(
        default_factory=list, description="Parts of the session that every rater passes through."
    )
    items_per_rater: Annotated[int, Field(ge=1)] | Literal["all", "unlimited"] = Field(
        default="all", description="All items, a fixed number, or as many as the rater likes."
    )
    judgments_per_item: int | None = Field(
        default=None, ge=1, description="How many distinct raters each item needs; no limit by default."
    )
    people_rate: PeopleRate = Field(
        default_factory=PeopleRate,
        description="Which share of the items raters get, drawn at random; a bare number is the share of all items.",
    )
    systems_per_item: int | None = Field(
        default=None,
        ge=1,
        description="How many of an item's responses each rater rates, counterbalanced over raters and items; "
        "all by default.",
    )
    assignment: Assignment = Field(
        default_factory=Assignment,
        description="How raters are spread over comparisons: `balanced`, or `adaptive` for where the answer is most open.",
    )
    quota_per: Literal["study", "condition", "cell"] = Field(
        default="study",
        description="Whether judgments per item are counted over the whole study or in each condition (`cell` is the earlier "
        "name of `condition`).",
    )
    block_order: Literal["fixed", "random", "williams"] = Field(
        default="williams", description="Order of the blocks: as written, random, or balanced over raters (williams)."
    )
    item_order: Order = Field(
        default="random", description="Order of the items: as in the file, or drawn for each rater."
    )
    system_order: Literal["fixed", "random", "counterbalanced"] = Field(
        default="random", description="Order of responses and sides of pairs, drawn per rater and item."
    )
    criterion_order: Order = Field(
        default="fixed", description="Order of the criteria: as written, or drawn for each rater."
    )
    stale_after_minutes: float = Field(
        default=120, gt=0, description="An idle session's slots are given away after this time."
    )
    hold_minutes: float = Field(
        default=10,
        gt=0,
        description="How long the slots of a rater who agreed and has not answered anything yet are held.",
    )
    may_go_back: bool = Field(
        default=False, description="Whether raters may return to earlier screens and correct answers."
    )
    batch_size: int = Field(default=10, ge=1, description="With unlimited items: how many are given at a time.")
    n_practice_items: int = Field(
        default=0, ge=0, description="Items shown first for practice; their answers do not count."
    )

    @property
    def is_quota_per_condition(self) -> bool:
        """Whether each condition needs its own judgments of an item."""
        return self.quota_per != "study"

    @property
    def stale_ms(self) -> int:
        """After how many milliseconds without a sign of the rater a session counts as left."""
        return int(self.stale_after_minutes * 60_000)


MAIN_BLOCK = Block(name="main")
