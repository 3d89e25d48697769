"""Judges: models and programs whose judgments stand beside people's, and how the confirmatory analysis uses them.

A judge's judgments are stored as sessions of source ``model`` under the judge's name, however many sessions they fill: one
judge is one name. Raters get a declared share of the items, drawn at random; judges rate all or some of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from dialometer.model.part import Name, Part

Share = Annotated[float, Field(gt=0, le=1)]


class Agent(Part):
    """How a live system or a judge is reached: the agent's registered name and its options."""

    type: Name = Field(
        description="Registered agent: scripted, carbohydrates, http, openai, anthropic, ollama, local, retriever, generator, "
        "wizard."
    )
    options: dict[str, Any] = Field(default_factory=dict, description="Options of that agent, such as url or model.")


class JudgeExample(Part):
    """An item with the right answers, which a language model reads before it judges; a judge does not judge its examples."""

    item: str = Field(description="Id of the item: one for practice, a gold item, or any other.")
    answers: dict[str, Any] = Field(
        min_length=1,
        description="Criterion to its answer: a value; the chosen system for a choice; system to value where several are rated.",
    )
    reasons: str = Field(default="", description="Why, in a sentence or two.")


class SimulatedJudge(Part):
    """How a simulated judge differs from the truth that simulated raters see; in standard deviations of quality."""

    noise_sd: float = Field(default=0.5, ge=0, description="Noise of a single score.")
    slope: float = Field(default=1.0, description="How much of a difference in quality it sees; 0 is a useless judge.")
    lifts: dict[str, float] = Field(
        default_factory=dict, description="By system: how much it is liked too much, or (below zero) too little."
    )
    first_place: float = Field(default=0.0, description="Choices: advantage of the response that is shown first.")


class Judge(Part):
    """A judge that rates the items beside human raters."""

    name: Name = Field(description="The name under which its judgments are stored and reported.")
    kind: Literal["model", "evaluator", "scores"] = Field(
        description="A language model (`dialometer judge`), a learned evaluator (`dialometer learn judge`), or scores that are "
        "imported (`dialometer learn judge DIR SCORES`)."
    )
    agent: Agent | None = Field(
        default=None, description="Language models: how the model is reached; the command line may say it instead."
    )
    language: str = Field(
        default="", description="Language models: in which of the study's languages it reads; the first by default."
    )
    items: Literal["all"] | list[str] = Field(default="all", description="Which items it rates: all, or these ids.")
    rubric: str = Field(
        default="", description="Language models: what to look for, beside the study's instructions and criteria."
    )
    examples: list[JudgeExample] = Field(
        default_factory=list, description="Language models: items with the right answers."
    )
    samples: int = Field(default=1, ge=1, description="Language models: how often each item is asked.")
    orders: Literal["both", "one"] = Field(
        default="both", description="Choices between two: asked in both orders, or in one that is drawn."
    )
    flips: Literal["tie", "keep"] = Field(
        default="tie",
        description="A choice that changes with the order: counts as a tie, or both answers are kept as they are.",
    )
    own_systems: list[Name] = Field(
        default_factory=list,
        description="Systems of the judge's own family, for the check of self-preference; taken from names by default.",
    )
    simulated: SimulatedJudge | None = Field(
        default=None, description="How `dialometer simulate` plays this judge; it does not by default."
    )
    trained_on: Literal["other", "this"] = Field(
        default="other",
        description="Evaluators: trained on other data, or on the ratings of this study. Then each item must be scored by an "
        "evaluator that did not see its ratings (cross-fitting).",
    )


class PeopleRate(Part):
    """Which share of the items raters get, drawn at random before anyone arrives. Gold and practice items are not drawn."""

    share: Share = Field(default=1.0, description="Share of the items, of each stratum that names none of its own.")
    by: str = Field(default="", description="Strata: `block`, or a key of the items' metadata.")
    shares: dict[str, Share] = Field(default_factory=dict, description="Stratum to its share.")

    @model_validator(mode="before")
    @classmethod
    def _bare_share(cls, value: Any) -> Any:
        """``people_rate: 0.3`` is a share of all items."""
        return {"share": value} if isinstance(value, int | float) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _strata_have_a_key(self) -> PeopleRate:
        if self.shares and not self.by:
            raise ValueError("shares of strata need 'by': block, or a key of the items' metadata")
        return self


PEOPLE_STREAM = 1001
"""Sets the draw of people's items apart from every other draw that starts from the study's seed."""


def draw_for_people(strata: Mapping[str, str], rate: PeopleRate, seed: int) -> dict[str, float]:
    """The items that raters get, each with the probability with which it was drawn; from the stratum of every item.

    Within a stratum it is a simple random sample of a fixed size, at least one item, so that no stratum has none by bad luck.
    """
    chances: dict[str, float] = {}
    for number, stratum in enumerate(sorted(set(strata.values()))):
        ids = [item for item, own in strata.items() if own == stratum]
        n = max(1, round(rate.shares.get(stratum, rate.share) * len(ids)))
        chosen = np.random.default_rng([seed, PEOPLE_STREAM, number]).permutation(len(ids))[:n]
        chances |= {ids[place]: n / len(ids) for place in sorted(chosen)}
    return chances


class JudgedAnalysis(Part):
    """The confirmatory analysis is raters corrected by judges: judges' scores of all items, raters' answers on some."""

    use: list[Name] = Field(min_length=1, description="Judges by name; several are combined into one score.")
    combine: Literal["mean", "majority", "dawid_skene"] = Field(
        default="mean",
        description="How several judges become one: the mean of their scores, the majority of their choices (ratings: median), or "
        "Dawid and Skene's model, which learns from raters' answers on other items how far to trust each judge.",
    )

    @model_validator(mode="before")
    @classmethod
    def _bare_names(cls, value: Any) -> Any:
        """``judges: my-judge`` or a list of names."""
        return {"use": [value] if isinstance(value, str) else value} if isinstance(value, str | list) else value
