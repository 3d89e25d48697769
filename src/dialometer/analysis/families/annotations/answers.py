"""Stored answers of several parts on one criterion, with codes for who gave them on what; gold items are not among them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class PartedAnswers:
    """The answers on one criterion, one row each; all codes count in the tuples of names."""

    criterion: str
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


def criteria_with(study: Study, has_parts: Callable[[Scale], bool]) -> list[tuple[Criterion, Scale]]:
    """The criteria that are answered so wherever they are asked, with their scale; one asked on several scales is left out,
    since their parts are not the same."""
    found = []
    for criterion in study.spec.criteria:
        scales = study.scales_of(criterion)
        if scales and has_parts(scales[0]) and all(scale == scales[0] for scale in scales):
            found.append((criterion, scales[0]))
    return found


def answers_on(data: StudyData, criterion: Criterion, scale: Scale) -> PartedAnswers:
    """The answers on a criterion; of several by one rater on the same thing the last one counts."""
    study = data.study
    frame = data.judgments.filter(
        (pl.col("criterion") == criterion.name)
        & pl.col("answer").is_not_null()
        & (pl.col("scale") == scale.type)
        & ~pl.col("item").is_in(sorted(gold_items(study)))
    ).with_columns(pl.col("system").fill_null(""))
    if not len(frame):
        raise NotEnoughData(f"no answers on '{criterion.name}' yet", remedy="collect judgments first")
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
        criterion=criterion.name,
        label=criterion_label(study, criterion.name),
        scale=scale,
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
    for criterion, scale in criteria_with(data.study, is_wanted):
        try:
            sections += make(answers_on(data, criterion, scale))
        except DialometerError as error:
            sections.append(Section(f"{name}-{criterion.name}", f"{title}: {criterion.name}", problem=str(error)))
    return tuple(sections)


def _codes(column: pl.Series, names: Sequence[str]) -> Ints:
    return column.replace_strict(list(names), list(range(len(names))), return_dtype=pl.Int64).to_numpy()
