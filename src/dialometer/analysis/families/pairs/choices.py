"""Choices between a control transcript and its experimental version as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.scale_units import compared_types
from dialometer.analysis.base.wording import criterion_label, listed, n_of, system_label
from dialometer.errors import NotEnoughData
from dialometer.model.item import PairItem
from dialometer.model.shared_texts import first_shown
from dialometer.model.study import Study
from dialometer.model.values import BOTH_BAD, CANNOT_TELL, TIE
from dialometer.quality.gold import gold_items
from dialometer.stats.observations import Floats, Ints

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PairChoices:
    """One entry per answer. Codes count in the tuples of names, which hold everything the study declares, chosen or not.

    ``signed`` is +1 for the experimental version, -1 for the control, 0 for a tie, nan for "cannot tell"; ``chose_first``
    is 1 where the transcript shown first was chosen, 0 where it was the second, nan where neither or not known.
    """

    strategies: tuple[str, ...]
    questions: tuple[str, ...]
    items: tuple[str, ...]
    strategy_labels: tuple[str, ...]
    question_labels: tuple[str, ...]
    signed: Floats
    chose_first: Floats
    rater: Ints
    strategy: Ints
    question: Ints
    item: Ints
    drawn: Ints
    """What counts as one draw: the pair, or all pairs of a strategy that have a transcript in common."""
    rater_names: NDArray[np.str_]
    """Names in the order of the raters' numbers."""
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """How many answers there are."""
        return len(self.signed)

    @property
    def n_raters(self) -> int:
        """How many raters gave them."""
        return len(np.unique(self.rater))

    @property
    def n_pairs(self) -> int:
        """On how many transcript pairs a preference was given."""
        return len(np.unique(self.item[~np.isnan(self.share)]))

    @property
    def share(self) -> Floats:
        """1 for the experimental version, 0 for the control, nan where neither was preferred."""
        return np.where(self.signed == 0, np.nan, (self.signed + 1) / 2)

    def where(self, kept: Flags) -> PairChoices:
        """Some of the answers, under the same names."""
        return replace(
            self,
            signed=self.signed[kept],
            chose_first=self.chose_first[kept],
            rater=self.rater[kept],
            strategy=self.strategy[kept],
            question=self.question[kept],
            item=self.item[kept],
            drawn=self.drawn[kept],
        )

    def for_questions(self, questions: list[str]) -> PairChoices:
        """The answers to some questions."""
        wanted = [self.questions.index(name) for name in questions if name in self.questions]
        return self.where(np.isin(self.question, wanted))

    @property
    def is_repeated(self) -> bool:
        """Whether some rater answered one question more than once, so that answers are not independent."""
        key = self.rater * len(self.questions) + self.question
        return len(np.unique(key)) < len(key)


def strategy_of(study: Study, item: PairItem) -> str:
    """What a pair tests: its block where the study has blocks, else the experimental system."""
    return item.block if study.spec.design.blocks else item.b.system


def pair_items(study: Study) -> tuple[PairItem, ...]:
    """The pairs that say something about the strategies; gold pairs only check raters."""
    gold = gold_items(study)
    return tuple(item for item in study.rated_items if isinstance(item, PairItem) and item.id not in gold)


def asked_pairwise(study: Study) -> tuple[str, ...]:
    """Criteria that are answered by choosing one of two, under any condition, in file order."""
    return tuple(
        criterion.name
        for criterion in study.spec.criteria
        if any(scale.choice_form == "one" for scale in study.scales_of(criterion))
    )


def pair_choices(data: StudyData) -> PairChoices:
    """The answers of a study of controlled pairs; what cannot be read is excluded, with a note."""
    study = data.study
    items, questions = pair_items(study), asked_pairwise(study)
    strategies = tuple(dict.fromkeys(strategy_of(study, item) for item in items))
    if study.spec.design.blocks:
        strategies = tuple(block.name for block in study.blocks if block.name in strategies)
    known = pl.DataFrame(
        {
            "item": [item.id for item in items],
            "a": [item.a.system for item in items],
            "b": [item.b.system for item in items],
            "item_code": np.arange(len(items)),
            "drawn": _draws(study, items),
            "strategy": [strategies.index(strategy_of(study, item)) for item in items],
        },
        schema={
            "item": pl.String,
            "a": pl.String,
            "b": pl.String,
            "item_code": pl.Int64,
            "drawn": pl.Int64,
            "strategy": pl.Int64,
        },
    )
    frame = data.judgments.filter(
        pl.col("scale").is_in(compared_types(study, "one")) & pl.col("criterion").is_in(questions)
    )
    joined = frame.select("rater", "item", "criterion", "choice", "side").join(
        known, on="item", how="inner", maintain_order="left"
    )
    choice = pl.col("choice")
    joined = joined.with_columns(
        signed=pl.when(choice == pl.col("b")).then(1.0).when(choice == pl.col("a")).then(-1.0)
        .when(choice.is_in([TIE, BOTH_BAD])).then(0.0),
        is_read=choice.is_in([TIE, BOTH_BAD, CANNOT_TELL]) | (choice == pl.col("a")) | (choice == pl.col("b")),
    )  # fmt: skip
    kept = joined.filter(pl.col("is_read").fill_null(value=False))
    if not len(kept):
        raise NotEnoughData("no choice between two transcripts has been made yet", remedy="collect judgments first")
    names = kept["rater"].unique().sort()
    rater = kept["rater"].replace_strict(names, pl.int_range(len(names), eager=True), return_dtype=pl.Int64)
    side = kept["side"].to_numpy()
    is_decided = np.isin(side, (1, 2)) & np.isin(np.nan_to_num(kept["signed"].to_numpy(), nan=9.0), (-1.0, 1.0))
    return PairChoices(
        strategies=strategies,
        questions=questions,
        items=tuple(item.id for item in items),
        strategy_labels=tuple(_strategy_label(study, name) for name in strategies),
        question_labels=tuple(criterion_label(study, name) for name in questions),
        signed=kept["signed"].cast(pl.Float64).fill_null(float("nan")).to_numpy(),
        chose_first=np.where(is_decided, (side == 1).astype(np.float64), np.nan),
        rater=rater.to_numpy(),
        strategy=kept["strategy"].to_numpy(),
        question=kept["criterion"].replace_strict(
            list(questions), list(range(len(questions))), return_dtype=pl.Int64
        ).to_numpy(),
        item=kept["item_code"].to_numpy(),
        drawn=kept["drawn"].to_numpy(),
        rater_names=names.to_numpy().astype(np.str_),
        notes=_notes(frame.filter(~pl.col("item").is_in(gold_items(study))), joined, kept),
    )  # fmt: skip


def _draws(study: Study, items: tuple[PairItem, ...]) -> list[int]:
    """For each pair the first of its strategy that it shares a transcript with, directly or by way of others."""
    shown = first_shown(study)
    earlier = list(range(len(items)))

    def first_of(k: int) -> int:
        while earlier[k] != k:
            earlier[k] = k = earlier[earlier[k]]
        return k

    shows: dict[tuple[str, str, str], int] = {}
    for k, item in enumerate(items):
        for system in item.systems:
            text = (strategy_of(study, item), system, shown.get((item.id, system), item.id))
            one, other = first_of(k), first_of(shows.setdefault(text, k))
            earlier[max(one, other)] = min(one, other)
    return [first_of(k) for k in range(len(items))]


def _strategy_label(study: Study, name: str) -> str:
    return name if study.spec.design.blocks else system_label(study, name)


def _notes(frame: pl.DataFrame, joined: pl.DataFrame, kept: pl.DataFrame) -> tuple[str, ...]:
    notes = []
    if len(frame) > len(joined):
        notes.append(f"{n_of(len(frame) - len(joined), 'choice')} on items that the study no longer has were excluded.")
    if len(joined) > len(kept):
        strange = joined.filter(~pl.col("is_read").fill_null(value=False))["choice"].drop_nulls().unique().sort()
        named = f" ({listed(strange.to_list(), most=5)})" if len(strange) else ""
        notes.append(f"{n_of(len(joined) - len(kept), 'answer')} named neither transcript{named} and were excluded.")
    return tuple(notes)
