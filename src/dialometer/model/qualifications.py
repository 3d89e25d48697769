"""Who may rate: what a study file asks of raters before they see the study."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from dialometer.model.part import Part

LanguageLevel = Literal["A1", "A2", "B1", "B2", "C1", "C2"]


class Between(Part):
    """A range of a platform's own filter."""

    at_least: float | None = Field(default=None, description="Lower end of the range.")
    at_most: float | None = Field(default=None, description="Upper end of the range.")

    @model_validator(mode="after")
    def _is_a_range(self) -> Between:
        if self.at_least is None and self.at_most is None:
            raise ValueError("give at_least, at_most or both")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"at_least {self.at_least:g} is above at_most {self.at_most:g}")
        return self


class Qualifications(Part):
    """What raters must have. A platform filters what it can; the rest is asked in screening or checked on arrival."""

    min_approval_percent: float | None = Field(
        default=None, ge=0, le=100, description="Share of a rater's earlier tasks that were approved, at least."
    )
    min_earlier_tasks: int | None = Field(
        default=None, ge=1, description="Tasks of a rater that were approved before, at least."
    )
    max_earlier_tasks: int | None = Field(
        default=None, ge=1, description="Tasks of a rater that were approved before, at most."
    )
    countries: list[str] = Field(
        default_factory=list, description="Countries of residence, one of these: names or ISO codes."
    )
    first_languages: list[str] = Field(
        default_factory=list, description="First languages, one of these: names or ISO codes."
    )
    fluent_languages: list[str] = Field(
        default_factory=list, description="Languages of which raters speak one fluently: names or ISO codes."
    )
    levels: dict[str, LanguageLevel] = Field(
        default_factory=dict, description="Lowest level (CEFR) in each of these languages, such as English: C1."
    )
    platform_filters: dict[str, list[str] | Between] = Field(
        default_factory=dict,
        description="Other filters of the platform, by its own names: answers to select, or a range.",
    )
    allow_list: str = Field(
        default="", description="Text file beside study.yaml: only these raters, one identifier per line."
    )
    block_list: str = Field(
        default="", description="Text file beside study.yaml: none of these raters, one identifier per line."
    )

    @model_validator(mode="after")
    def _numbers_fit(self) -> Qualifications:
        low, high = self.min_earlier_tasks, self.max_earlier_tasks
        if low is not None and high is not None and low > high:
            raise ValueError(f"min_earlier_tasks {low} is above max_earlier_tasks {high}")
        return self

    @property
    def given(self) -> tuple[str, ...]:
        """The names of what is asked for, in the order of the fields."""
        return tuple(name for name in type(self).model_fields if getattr(self, name) not in (None, "", [], {}))
