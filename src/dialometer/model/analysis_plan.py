"""The analysis that a study file declares before data are collected: comparisons, their tests, looks before the end."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from dialometer.model.judges import JudgedAnalysis
from dialometer.model.part import Name, Part


class Comparison(Part):
    """A comparison declared before data are collected."""

    name: Name = Field(description="Short name used in tables and reports.")
    between: Literal["systems", "factor", "items"] = Field(
        default="systems", description="Whether systems, levels of a factor or items are compared."
    )
    factor: str | None = Field(default=None, description="Which factor, where its levels are compared.")
    levels: list[str] = Field(default_factory=list, description="Which systems or levels; all by default.")
    criteria: list[str] = Field(default_factory=list, description="Which criteria; all by default.")
    blocks: list[str] = Field(default_factory=list, description="Which blocks; all by default.")
    test: Literal["difference", "equivalence", "non_inferiority"] = Field(
        default="difference",
        description="What is to be shown: a difference, none larger than the margin, or none worse than the reference by it.",
    )
    margin: float | None = Field(
        default=None,
        gt=0,
        description="The largest difference that does not matter: points of the scale, a ratio above 1 for magnitudes, "
        "a share for choices (0.1 is ten percentage points).",
    )
    reference: str | None = Field(
        default=None, description="The system (or level) that the others must not be inferior to."
    )
    hypothesis: str = Field(default="", description="What you expect, in a sentence for the report.")
    expected: list[str] = Field(
        default_factory=list,
        description="The direction of the hypothesis, as 'a > b': a gets higher ratings or is chosen more often than b. "
        "'a > b, c' is a above both; 'a > b > c' is an order. Without it, any difference supports the hypothesis.",
    )

    @field_validator("expected", mode="before")
    @classmethod
    def _one_or_more(cls, value: object) -> object:
        """A single direction needs no list."""
        return [value] if isinstance(value, str) else value

    @property
    def expected_pairs(self) -> tuple[tuple[str, str], ...]:
        """Every expected difference as (higher, lower), in the order they are declared."""
        pairs: dict[tuple[str, str], None] = {}
        for line in self.expected:
            steps = [[name.strip() for name in step.split(",")] for step in line.split(">")]
            for place, higher in enumerate(steps):
                lower = [name for step in steps[place + 1 :] for name in step]
                pairs |= {(first, second): None for first in higher for second in lower}
        return tuple(pairs)


class StoppingRule(Part):
    """When the study closes by itself. The rule is checked at the declared looks; raters under way may finish."""

    decided: bool = Field(default=True, description="Once the primary hypothesis is supported or contradicted.")
    futile: float | None = Field(
        default=None,
        gt=0,
        lt=0.5,
        description="Once the predicted chance of deciding it at the planned number of raters is below this, such as 0.1.",
    )
    budget_cents: int | None = Field(
        default=None, ge=1, description="Once raters have been paid this much, the platform's fee included."
    )
    every: int = Field(
        default=10, ge=1, description="With looks at any time: checked whenever this many more raters have finished."
    )


class Analysis(Part):
    """What is declared in advance: the confirmatory analysis."""

    primary: str | None = Field(default=None, description="Name of the comparison that decides the study.")
    comparisons: list[Comparison] = Field(
        default_factory=list, description="What is compared, decided before the first answer."
    )
    subgroups: list[str] = Field(default_factory=list, description="Questions whose answers split the raters.")
    bins: dict[str, list[float]] = Field(
        default_factory=dict,
        description="Where groups of raters begin, for questions answered with a number, such as age: [18, 25, 35, 50].",
    )
    items: Literal["sample", "fixed"] = Field(
        default="sample",
        description="Whether the items stand for others like them, or are all that claims are about.",
    )
    model: Literal["linear", "ordinal"] = Field(
        default="linear",
        description="How ratings on Likert scales compare systems: as numbers, or by their order alone (cumulative link).",
    )
    judges: JudgedAnalysis | None = Field(
        default=None,
        description="Judges that correct raters' estimates; a name or a list of names suffices. Raters alone by default.",
    )
    correction: Literal["holm", "benjamini-hochberg", "none"] = Field(
        default="holm", description="How p-values of several comparisons are corrected."
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Confidence level of the confidence intervals.")
    n_resamples: int = Field(
        default=2000, ge=100, description="How often data are resampled for confidence intervals; more takes longer."
    )
    zeros: Literal["exclude", "half_minimum", "error"] = Field(
        default="half_minimum", description="What the logarithm does with magnitude estimates that are zero."
    )
    looks: Literal["anytime"] | list[Annotated[int, Field(ge=2)]] | None = Field(
        default=None,
        description="When results may be looked at before the end: at any time, or at these numbers of finished raters, the last "
        "being the planned one. Confidence intervals and p-values of comparisons then hold at every look.",
    )
    spending: Literal["obrien_fleming", "pocock"] = Field(
        default="obrien_fleming",
        description="With looks at fixed numbers of raters: how the error is spent, little at the first looks or evenly.",
    )
    stop: StoppingRule | None = Field(default=None, description="When the study closes by itself; never by default.")

    def checked_at(self, n_finished: int) -> list[int]:
        """At how many raters the planned looks are that were reached, or the checks of the stopping rule at any time.

        After the last planned look all raters count, also those beyond it.
        """
        if isinstance(self.looks, list):
            reached = [n for n in self.looks if n <= n_finished]
            return [*reached[:-1], n_finished] if len(reached) == len(self.looks) else reached
        return list(range(self.stop.every, n_finished + 1, self.stop.every)) if self.stop else []
