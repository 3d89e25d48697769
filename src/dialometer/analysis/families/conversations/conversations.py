"""Live dialogues as their partners rated them: one row for each, with who, which system, when, and how long it was."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.scale_units import AskedCriterion
from dialometer.analysis.base.wording import criterion_label, system_label
from dialometer.errors import NotEnoughData
from dialometer.model.scale import Scale
from dialometer.stats.observations import Floats, Ints

LENGTHS = {
    "n_turns_user": "Messages of the rater",
    "n_words_user": "Words of the rater",
    "duration_s": "Duration",
}
N_BINS = 5
"""Parts into which a scale without points is cut to show its shape."""


@dataclass(frozen=True)
class SelfRatings:
    """The ratings of dialogues on one criterion."""

    criterion: str
    label: str
    scale: Scale
    systems: tuple[str, ...]
    """Labels of the systems that were rated, in file order."""
    value: Floats
    rater: NDArray[Any]
    system: NDArray[Any]
    """Label of the system of each dialogue."""
    item: NDArray[Any]
    position: Ints
    """Place of the dialogue in the rater's session, from 1."""
    answered_s: Floats
    """When it was rated, in seconds since 1970; nan where unknown."""
    lengths: dict[str, Floats]
    """By the names of ``LENGTHS``; nan where unknown."""

    @property
    def n_raters(self) -> int:
        """How many people rated."""
        return len(np.unique(self.rater))

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest number of the scale; what was given where it has none."""
        low, high = (float(end) for end in self.scale.bounds())
        return (low, high) if math.isfinite(high - low) else (float(self.value.min()), float(self.value.max()))

    @property
    def points(self) -> list[str]:
        """The points of the scale in order, or its parts where it has no points."""
        categories = self.scale.categories()
        if categories:
            return [str(point) for point in categories]
        low, high = self.ends
        edges = np.linspace(low, high, N_BINS + 1)
        return [f"{left:g}–{right:g}" for left, right in pairwise(edges)]

    @property
    def place(self) -> Ints:
        """Each rating as its place among the points, from 0."""
        low, high = self.ends
        categories = self.scale.categories()
        if categories:
            numbers = np.array(list(self.scale.category_labels()))
            return np.asarray(np.abs(self.value[:, None] - numbers).argmin(axis=1), dtype=np.int64)
        width = (high - low) or 1.0
        return np.clip(((self.value - low) / width * N_BINS).astype(np.int64), 0, N_BINS - 1)

    @property
    def conversation(self) -> list[str]:
        """The name of each dialogue: the rater's pseudonym and the item."""
        return [f"{rater}/{item}" for rater, item in zip(self.rater, self.item, strict=True)]

    def of(self, system: str) -> NDArray[np.bool_]:
        """Which dialogues were held with a system."""
        return np.asarray(self.system == system)


def self_ratings_of(data: StudyData, asked: AskedCriterion) -> SelfRatings:
    """Ratings on one criterion joined with what is known of the dialogues; out-of-scale numbers are refused."""
    name = asked.criterion.name
    if len({scale.describe() for scale in asked.scales}) > 1:
        raise NotEnoughData(
            f"'{name}' was answered on different scales in different conditions",
            remedy="look at each condition by itself",
        )
    chats = data.chats.unique(["rater", "item"], keep="first")
    rows = data.judgments.filter((pl.col("criterion") == name) & pl.col("value").is_not_null()).join(
        chats.rename({"duration_s": "chat_duration_s"}), on=["rater", "item"], how="left", maintain_order="left"
    )
    if not len(rows):
        raise NotEnoughData(f"no dialogue has a rating on '{name}' yet", remedy="collect dialogues")
    scale = asked.scales[0]
    low, high = scale.bounds()
    n_outside = int(rows.select(((pl.col("value") < low) | (pl.col("value") > high)).sum()).item())
    if n_outside:
        raise NotEnoughData(
            f"{n_outside} ratings on '{name}' lie outside the scale from {low:g} to {high:g}", remedy="fix the import"
        )
    labels = [system_label(data.study, system) for system in rows["system"].to_list()]
    present = set(labels)
    ordered = [system_label(data.study, system.name) for system in data.study.spec.systems]
    return SelfRatings(
        criterion=name,
        label=criterion_label(data.study, name),
        scale=scale,
        systems=tuple(label for label in dict.fromkeys([*ordered, *labels]) if label in present),
        value=rows["value"].to_numpy().astype(np.float64),
        rater=rows["rater"].to_numpy(),
        system=np.array(labels, dtype=object),
        item=rows["item"].to_numpy(),
        position=rows["position"].fill_null(0).to_numpy().astype(np.int64),
        answered_s=_floats(rows["answered_at"].dt.timestamp("ms")) / 1000,
        lengths={key: _floats(rows["chat_duration_s" if key == "duration_s" else key]) for key in LENGTHS},
    )


def _floats(column: pl.Series) -> Floats:
    return np.asarray(column.cast(pl.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)
