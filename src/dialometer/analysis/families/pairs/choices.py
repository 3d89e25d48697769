"""Choices between a control transcript and its experimental version as arrays, and how often each version was preferred."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import gold_items
from dialometer.analysis.base.scale_units import compared_types
from dialometer.analysis.base.wording import criterion_label, listed, n_of, system_label
from dialometer.analysis.shared.comparisons import corrected, corrected_by_name
from dialometer.analysis.shared.equivalence import differences_of
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.item import PairItem
from dialometer.model.study import Comparison, Study
from dialometer.model.values import CANNOT_TELL, TIE
from dialometer.stats.clustered.clustered import clustered_preference
from dialometer.stats.clustered.homogeneity import homogeneity_clustered, pairwise_clustered
from dialometer.stats.clustered.preference import chi2_goodness_of_fit, preference_of
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
        )

    def asked(self, questions: list[str]) -> PairChoices:
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
        if any(
            study.scale_for(criterion, study.presentation(cell, block)).choice_form == "one"
            for block in study.blocks
            for cell in study.cells
            if criterion in study.block_criteria(block)
        )
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
            "strategy": [strategies.index(strategy_of(study, item)) for item in items],
        },
        schema={"item": pl.String, "a": pl.String, "b": pl.String, "item_code": pl.Int64, "strategy": pl.Int64},
    )
    frame = data.judgments.filter(
        pl.col("scale").is_in(compared_types(study, "one")) & pl.col("criterion").is_in(questions)
    )
    joined = frame.select("rater", "item", "criterion", "choice", "side").join(known, on="item", how="inner")
    choice = pl.col("choice")
    joined = joined.with_columns(
        signed=pl.when(choice == pl.col("b")).then(1.0).when(choice == pl.col("a")).then(-1.0).when(choice == TIE).then(0.0),
        is_read=choice.is_in([TIE, CANNOT_TELL]) | (choice == pl.col("a")) | (choice == pl.col("b")),
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
        rater_names=names.to_numpy().astype(np.str_),
        notes=_notes(frame.filter(~pl.col("item").is_in(gold_items(study))), joined, kept),
    )  # fmt: skip


def _strategy_label(study: Study, name: str) -> str:
    return name if study.spec.design.blocks else system_label(study, name)


def _notes(frame: pl.DataFrame, joined: pl.DataFrame, kept: pl.DataFrame) -> tuple[str, ...]:
    notes = []
    if len(frame) > len(joined):
        notes.append(f"{n_of(len(frame) - len(joined), 'choice')} on items that the study no longer has were left out.")
    if len(joined) > len(kept):
        strange = joined.filter(~pl.col("is_read").fill_null(value=False))["choice"].drop_nulls().unique().sort()
        named = f" ({listed(strange.to_list(), most=5)})" if len(strange) else ""
        notes.append(f"{n_of(len(joined) - len(kept), 'answer')} named neither transcript{named} and were left out.")
    return tuple(notes)


# A cell (one strategy, one question) holds one answer of each rater and is tested exactly. Marginals, and cells in which
# raters judged several pairs, are tested with each rater as one cluster.


def cell_share(choices: PairChoices, *, confidence: float, label: str = "") -> Estimate:
    """The share of one cell: exact where every rater answered once, else by rater. χ² is in the details."""
    if choices.is_repeated:
        return marginal_share(choices, confidence=confidence, label=label)
    share = _as_share(preference_of(choices.signed, confidence=confidence, label=label))
    n_for, n_against = int(np.sum(choices.signed == 1)), int(np.sum(choices.signed == -1))
    if not share.is_known:
        return share
    chi2 = chi2_goodness_of_fit([n_for, n_against])
    return replace(share, details={**share.details, "chi2": chi2.statistic, "chi2_p": chi2.p_value})


def marginal_share(choices: PairChoices, *, confidence: float, label: str = "") -> Estimate:
    """The share over several answers of each rater, with a test that takes each rater as one cluster."""
    return _as_share(clustered_preference(choices.signed, choices.rater, confidence=confidence, label=label))


def _as_share(estimate: Estimate) -> Estimate:
    """Marked as a share whose test is about one half, so that it is written and drawn as such."""
    return replace(estimate, unit="share", details={**estimate.details, "null": 0.5})


@dataclass(frozen=True, eq=False)
class Shares:
    """Every share of a study: cells by strategy and question, and the marginals; p values are corrected by family."""

    cells: dict[tuple[int, int], Estimate]
    by_strategy: tuple[Estimate, ...]
    by_question: tuple[Estimate, ...]
    overall: Estimate


def all_shares(choices: PairChoices, options: Options) -> Shares:
    """Cells, marginals and the whole. Cells that the design does not ask are absent, those without answers unknown."""
    strategies, questions = range(len(choices.strategies)), range(len(choices.questions))
    places = [(s, q) for s in strategies for q in questions]
    cells = [
        cell_share(
            choices.where((choices.strategy == s) & (choices.question == q)),
            confidence=options.confidence,
            label=f"{choices.strategy_labels[s]}, {choices.question_labels[q]}",
        )
        for s, q in places
    ]
    by_strategy = [
        marginal_share(
            choices.where(choices.strategy == s), confidence=options.confidence, label=choices.strategy_labels[s]
        )
        for s in strategies
    ]
    by_question = [
        marginal_share(
            choices.where(choices.question == q), confidence=options.confidence, label=choices.question_labels[q]
        )
        for q in questions
    ]
    return Shares(
        cells=dict(zip(places, corrected(cells, options), strict=True)),
        by_strategy=corrected(by_strategy, options),
        by_question=corrected(by_question, options),
        overall=marginal_share(choices, confidence=options.confidence, label="all"),
    )


@dataclass(frozen=True, eq=False)
class DeclaredShares:
    """One declared comparison: the share of each strategy over the comparison's questions, tested as one family."""

    comparison: Comparison
    is_primary: bool
    strategies: tuple[int, ...]
    questions: tuple[str, ...]
    shares: tuple[Estimate, ...]

    def covers(self, choices: PairChoices) -> bool:
        """Whether it is about all strategies and all questions, as the marginals are."""
        return self.questions == choices.questions and len(self.strategies) == len(choices.strategies)


def declared_shares(
    study: Study, choices: PairChoices, options: Options, only: Comparison | None = None
) -> tuple[DeclaredShares, ...]:
    """The comparisons between systems that the study declares, the primary one first; ``only`` names a single one."""
    analysis = study.spec.analysis
    declared = []
    for comparison in (only,) if only is not None else differences_of(study):
        if comparison.between != "systems":
            continue
        questions = tuple(q for q in choices.questions if not comparison.criteria or q in comparison.criteria)
        strategies = tuple(
            s for s, name in enumerate(choices.strategies) if not comparison.blocks or name in comparison.blocks
        )
        if not questions or not strategies:
            continue
        inside = choices.asked(list(questions))
        shares = [
            marginal_share(
                inside.where(inside.strategy == s), confidence=options.confidence, label=choices.strategy_labels[s]
            )
            for s in strategies
        ]
        is_primary = comparison.name == analysis.primary
        declared.append(DeclaredShares(comparison, is_primary, strategies, questions, corrected(shares, options)))
    return tuple(sorted(declared, key=lambda comparison: not comparison.is_primary))


def differs(choices: PairChoices, by: str, *, label: str = "") -> Estimate:
    """Whether the preference differs between strategies, questions or items, each rater as one cluster."""
    return homogeneity_clustered(choices.share, getattr(choices, by), choices.rater, label=label)


def strategy_differences(choices: PairChoices, options: Options) -> dict[tuple[str, str], Estimate]:
    """Every two strategies: difference of their shares, corrected as one family."""
    differences = pairwise_clustered(choices.share, choices.strategy, choices.rater, confidence=options.confidence)
    labels = choices.strategy_labels
    named = {(labels[int(first)], labels[int(second)]): gap for (first, second), gap in differences.items()}
    return corrected_by_name(named, options)
