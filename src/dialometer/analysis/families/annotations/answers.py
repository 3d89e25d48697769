"""Stored answers of several parts on one criterion, with codes for who gave them on what; gold items are not among them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.wording import criterion_label, n_of, system_label
from dialometer.errors import DialometerError, NotEnoughData
from dialometer.model.report import Section
from dialometer.model.scale import Scale
from dialometer.model.study import Criterion, Study
from dialometer.quality.gold import gold_items
from dialometer.stats.observations import Ints, codes
from dialometer.storage.table import FACTOR_PREFIX


@dataclass(frozen=True, eq=False)
class PartedAnswers:
    """The answers on one criterion, one row each; all codes count in the tuples of names."""

    criterion: str
    """Its name; with a number behind it where the study asks it on several such scales."""
    label: str
    scale: Scale
    values: tuple[Any, ...]
    raters: tuple[str, ...]
    rater: Ints
    items: tuple[str, ...]
    item: Ints
    system_names: tuple[str, ...]
    system: Ints
    turns: tuple[int | None, ...]
    notes: tuple[str, ...] = ()

    def systems(self, study: Study) -> tuple[str, ...]:
        """Labels of the systems in file order; where two are alike, the names."""
        labels = tuple(system_label(study, name) or "all" for name in self.system_names)
        return labels if len(set(labels)) == len(labels) else self.system_names

    @property
    def thing(self) -> Ints:
        """What was judged: item, system and turn together."""
        turn = np.array([-1 if turn is None else turn for turn in self.turns], dtype=np.int64) + 1
        joined = (self.item * len(self.system_names) + self.system) * (int(turn.max(initial=0)) + 1) + turn
        return codes(joined)[0]

    def of_system(self, code: int) -> NDArray[np.bool_]:
        """Which answers are about a system."""
        return np.asarray(self.system == code)


@dataclass(frozen=True, eq=False)
class CriterionOnScale:
    """A criterion on one of its scales, with the conditions and blocks where raters answer it so."""

    criterion: Criterion
    scale: Scale
    places: list[tuple[Mapping[str, str], str]]
    number: int | None = None
    """Counts the scales with parts of a criterion that has several: their parts are not the same, so each is analysed alone."""

    @property
    def name(self) -> str:
        """Under which sections and tables are found."""
        return self.criterion.name if self.number is None else f"{self.criterion.name}-{self.number}"

    def label(self, study: Study) -> str:
        """The criterion, and where it is asked on this scale if it is asked on others elsewhere."""
        label = criterion_label(study, self.criterion.name)
        if self.number is None:
            return label
        has_blocks = len(study.blocks) > 1
        where = [
            ", ".join(filter(None, (study.cell_label(cell) if cell else "", f"block {block}" if has_blocks else "")))
            for cell, block in self.places
        ]
        return f"{label} ({'; '.join(where)})"

    def is_here(self) -> pl.Expr:
        """Which judgments were given on this scale."""
        here = pl.lit(value=False)
        for cell, block in self.places:
            levels = (pl.col(FACTOR_PREFIX + factor) == level for factor, level in cell.items())
            here |= pl.all_horizontal(pl.col("block") == block, *levels)
        of_scale = (pl.col("criterion") == self.criterion.name) & (pl.col("scale") == self.scale.type)
        return of_scale if self.number is None else of_scale & here


def criteria_with(study: Study, has_parts: Callable[[Scale], bool]) -> list[CriterionOnScale]:
    """The criteria that are answered so, once for each such scale that they are asked on."""
    criteria: list[CriterionOnScale] = []
    for criterion in study.spec.criteria:
        own: list[CriterionOnScale] = []
        for block in (block for block in study.blocks if criterion in study.block_criteria(block)):
            for cell in study.cells:
                scale = study.scale_for(criterion, study.presentation(cell, block))
                known = next((one for one in own if one.scale == scale), None)
                if known is not None:
                    known.places.append((cell, block.name))
                elif has_parts(scale):
                    own.append(CriterionOnScale(criterion, scale, [(cell, block.name)]))
        criteria += own if len(own) < 2 else [replace(one, number=n) for n, one in enumerate(own, start=1)]
    return criteria


def answers_on(data: StudyData, asked: CriterionOnScale) -> PartedAnswers:
    """The answers on a criterion; of several by one rater on the same thing the last one counts."""
    study = data.study
    frame = data.judgments.filter(
        asked.is_here() & pl.col("answer").is_not_null() & ~pl.col("item").is_in(sorted(gold_items(study)))
    ).with_columns(pl.col("system").fill_null(""))
    if not len(frame):
        raise NotEnoughData(f"no answers on '{asked.name}' yet", remedy="collect judgments first")
    n_all = len(frame)
    frame = frame.unique(["rater", "item", "system", "turn"], keep="last", maintain_order=True)
    notes = []
    if len(frame) < n_all:
        n_more = n_of(n_all - len(frame), "answer")
        notes.append(f"{n_more} came before another one of the same rater on the same thing; the last one counts.")
    known = {text: json.loads(text) for text in frame["answer"].unique().to_list()}
    present = set(frame["system"].to_list())
    order = [system.name for system in study.spec.systems if system.name in present]
    systems = (*order, *sorted(present - set(order)))
    raters, items = (tuple(frame[name].unique().sort().to_list()) for name in ("rater", "item"))
    return PartedAnswers(
        criterion=asked.name,
        label=asked.label(study),
        scale=asked.scale,
        values=tuple(known[text] for text in frame["answer"].to_list()),
        raters=raters,
        rater=_codes(frame["rater"], raters),
        items=items,
        item=_codes(frame["item"], items),
        system_names=systems,
        system=_codes(frame["system"], systems),
        turns=tuple(frame["turn"].to_list()),
        notes=tuple(notes),
    )


def sections_by_criterion(
    data: StudyData,
    is_wanted: Callable[[Scale], bool],
    make: Callable[[PartedAnswers], list[Section]],
    *,
    name: str,
    title: str,
) -> tuple[Section, ...]:
    """The sections of every criterion on such a scale; one that cannot be analysed says why, under ``name`` and ``title``."""
    sections: list[Section] = []
    for asked in criteria_with(data.study, is_wanted):
        try:
            sections += make(answers_on(data, asked))
        except DialometerError as error:
            sections.append(Section(f"{name}-{asked.name}", f"{title}: {asked.label(data.study)}", problem=str(error)))
    return tuple(sections)


def _codes(column: pl.Series, names: Sequence[str]) -> Ints:
    return column.replace_strict(list(names), list(range(len(names))), return_dtype=pl.Int64).to_numpy()
