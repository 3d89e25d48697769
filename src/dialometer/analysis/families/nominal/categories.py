"""Answers by category as arrays, without gold items: who put what into which category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.wording import criterion_label, level_label, listed, n_of, system_label
from dialometer.analysis.shared.comparisons import declared_factor
from dialometer.errors import NotEnoughData
from dialometer.model.analysis_plan import Comparison
from dialometer.model.scale import Scale
from dialometer.model.study import Criterion, Study
from dialometer.quality.gold import gold_items
from dialometer.stats.observations import Floats, Ints
from dialometer.storage.table import FACTOR_PREFIX

OTHER = "another answer"
NO_GROUP = -1


def is_nominal(scale: Scale) -> bool:
    """Whether one answer is one of several categories without order."""
    return (
        scale.level == "nominal"
        and not scale.compares
        and bool(scale.option_names())
        and scale.input_field().kind == "one_of"
    )


def nominal_criteria(study: Study) -> tuple[Criterion, ...]:
    """Criteria that are answered by a category wherever they are asked, in file order."""
    criteria = []
    for criterion in study.spec.criteria:
        scales = study.scales_of(criterion)
        if scales and all(is_nominal(scale) for scale in scales):
            criteria.append(criterion)
    return tuple(criteria)


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers on one criterion; all codes count in the tuples of names."""

    criterion: str
    label: str
    categories: tuple[str, ...]
    category: Ints
    raters: tuple[str, ...]
    rater: Ints
    items: tuple[str, ...]
    item: Ints
    systems: tuple[str, ...]
    """Labels of the systems, in file order; a single empty one where answers are not about systems."""
    system_names: tuple[str, ...]
    system: Ints
    things: tuple[tuple[str, str], ...]
    """What was judged: the item (with its turn) and the label of its system."""
    thing: Ints
    frame: pl.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """How many answers there are."""
        return len(self.category)

    @property
    def used(self) -> tuple[int, ...]:
        """Codes of the categories that anybody chose."""
        return tuple(np.unique(self.category).tolist())

    def counts(self) -> Floats:
        """How often each thing got each category."""
        shape = (len(self.things), len(self.categories))
        flat = np.bincount(self.thing * shape[1] + self.category, minlength=shape[0] * shape[1])
        return flat.reshape(shape).astype(np.float64)

    def matrix(self) -> Floats:
        """Things by answers, filled up with ``nan``: who gave an answer does not matter for agreement without order."""
        order = np.argsort(self.thing, kind="stable")
        sizes = np.bincount(self.thing, minlength=len(self.things))
        place = np.arange(self.n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        table = np.full((len(self.things), int(sizes.max())), np.nan)
        table[self.thing[order], place] = self.category[order]
        return table


def answers_on(data: StudyData, criterion: Criterion) -> Answers:
    """The answers on a criterion. What raters wrote in their own words is one category more."""
    study = data.study
    options = list(dict.fromkeys(name for scale in study.scales_of(criterion) for name in scale.option_names()))
    frame = data.judgments.filter(
        (pl.col("criterion") == criterion.name)
        & pl.col("choice").is_not_null()
        & (pl.col("choice") != "")
        & ~pl.col("item").is_in(gold_items(study))
    ).with_columns(pl.col("system").fill_null(""))
    if not len(frame):
        raise NotEnoughData(f"no answers on '{criterion.name}' yet", remedy="collect judgments first")
    n_judgments = len(frame)
    frame = frame.unique(["rater", "item", "system", "turn"], keep="last", maintain_order=True)
    notes = []
    if len(frame) < n_judgments:
        n_more = n_of(n_judgments - len(frame), "answer")
        notes.append(f"{n_more} came before another one of the same rater on the same thing; the last one counts.")
    own_words = sorted(set(frame["choice"].to_list()) - set(options))
    if own_words:
        notes.append(f"Answers in other words ({listed(own_words, most=5)}) count as “{OTHER}”.")
        frame = frame.with_columns(
            pl.when(pl.col("choice").is_in(options)).then(pl.col("choice")).otherwise(pl.lit(OTHER)).alias("choice")
        )
        options = list(dict.fromkeys([*options, OTHER]))
    present = set(frame["system"].to_list())
    order = [system.name for system in study.spec.systems if system.name in present]
    names = [*order, *sorted(present - set(order))]
    raters, items = (frame[name].unique().sort().to_list() for name in ("rater", "item"))
    place = frame.select(
        pl.when(pl.col("turn").is_null())
        .then(pl.col("item"))
        .otherwise(pl.format("{}, turn {}", pl.col("item"), pl.col("turn") + 1))
        .alias("place"),
        "system",
    )
    things = place.unique().sort("place", "system")
    thing = place.join(things.with_row_index("thing"), on=["place", "system"], how="left", maintain_order="left")
    return Answers(
        criterion=criterion.name,
        label=criterion_label(study, criterion.name),
        categories=tuple(options),
        category=_codes(frame["choice"], options),
        raters=tuple(raters),
        rater=_codes(frame["rater"], raters),
        items=tuple(items),
        item=_codes(frame["item"], items),
        systems=tuple(system_label(study, name) for name in names),
        system_names=tuple(names),
        system=_codes(frame["system"], names),
        things=tuple((str(item), system_label(study, str(system))) for item, system in things.iter_rows()),
        thing=thing["thing"].to_numpy().astype(np.int64),
        frame=frame,
        notes=tuple(notes),
    )


def _codes(column: pl.Series, names: Sequence[str]) -> Ints:
    return column.replace_strict(list(names), list(range(len(names))), return_dtype=pl.Int64).to_numpy()


@dataclass(frozen=True, eq=False)
class Groups:
    """What is compared: systems or levels of a factor, with a code for each answer; -1 for answers outside."""

    names: tuple[str, ...]
    """What they are called in the report."""
    keys: tuple[str, ...]
    """What they are called in the study file."""
    code: Ints

    @property
    def is_inside(self) -> NDArray[np.bool_]:
        """Which answers belong to a group."""
        return np.asarray(self.code != NO_GROUP)


def by_system(answers: Answers, levels: Sequence[str] = ()) -> Groups:
    """Groups by system; of a comparison, only its own systems."""
    kept = [k for k, name in enumerate(answers.system_names) if not levels or name in levels]
    number = np.full(len(answers.systems), NO_GROUP, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    labels, names = (tuple(given[k] for k in kept) for given in (answers.systems, answers.system_names))
    return Groups(labels if len(set(labels)) == len(labels) else names, names, number[answers.system])


def compared_groups(study: Study, answers: Answers, comparison: Comparison) -> Groups:
    """The groups that a declared comparison is about."""
    if comparison.between != "factor":
        return by_system(answers, comparison.levels)
    factor = declared_factor(study, comparison)
    levels = [level for level in factor.levels if not comparison.levels or level.name in comparison.levels]
    column = answers.frame[FACTOR_PREFIX + factor.name].to_list()
    number = {level.name: k for k, level in enumerate(levels)}
    code = np.array([number.get(name, NO_GROUP) for name in column], dtype=np.int64)
    present = np.unique(code[code != NO_GROUP])
    again = np.full(len(levels) + 1, NO_GROUP, dtype=np.int64)
    again[present] = np.arange(len(present))
    chosen = [levels[k] for k in present.tolist()]
    return Groups(tuple(map(level_label, chosen)), tuple(level.name for level in chosen), again[code])
