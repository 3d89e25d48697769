"""Comparisons of systems as votes: pairwise choices and rankings, without gold items; notes say what could not be read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.scale_units import compared_types
from dialometer.analysis.base.wording import criterion_label, listed, n_of, percent, system_label
from dialometer.analysis.shared.comparisons import compared_criteria, compared_systems
from dialometer.errors import NotEnoughData
from dialometer.model.analysis_plan import Comparison
from dialometer.model.shared_texts import first_shown, shared_prompts
from dialometer.model.study import Study
from dialometer.model.values import BOTH_BAD, CANNOT_TELL, TIE
from dialometer.quality.gold import gold_items
from dialometer.stats.ranking.votes import FIRST, SECOND, RepeatedVote, Votes, repeated_votes
from dialometer.stats.ranking.votes import TIE as TIED

_VOTE_COLUMNS = ("rater", "criterion", "item", "first", "second", "winner")


@dataclass(frozen=True, eq=False)
class SystemVotes:
    """All votes of a study with the number of their criterion; systems carry their labels."""

    criteria: tuple[str, ...]
    criterion_labels: tuple[str, ...]
    names: tuple[str, ...]
    """Short names of the systems, in the order of their labels."""
    votes: Votes
    criterion: NDArray[np.int64]
    notes: tuple[str, ...]
    has_rankings: bool

    @property
    def systems(self) -> tuple[str, ...]:
        """Labels of the systems that are compared."""
        return self.votes.systems

    def on(self, criteria: tuple[str, ...] | None = None) -> Votes:
        """The votes on some criteria, all by default."""
        if criteria is None:
            return self.votes
        return votes_where(self.votes, np.isin(self.criterion, [self.criteria.index(name) for name in criteria]))


def votes_where(votes: Votes, kept: NDArray[np.bool_]) -> Votes:
    """Some of the votes; raters without any left are no longer counted among the raters."""
    rater, raters = votes.rater, votes.raters
    if rater is not None:
        used, rater = np.unique(rater[kept], return_inverse=True)
        raters = tuple(raters[k] for k in used.tolist())
    return replace(
        votes,
        first=votes.first[kept],
        second=votes.second[kept],
        outcome=votes.outcome[kept],
        row=votes.row[kept],
        raters=raters,
        rater=None if rater is None else rater.astype(np.intp),
        item=None if votes.item is None else votes.item[kept],
        prompt=None if votes.prompt is None else votes.prompt[kept],
        text=None if votes.text is None else votes.text[kept],
        weight=None if votes.weight is None else votes.weight[kept],
        n_self=0,
    )


def votes_between(votes: Votes, systems: Sequence[int]) -> Votes:
    """The votes between some of the systems, as if there were no others."""
    kept = votes_where(votes, np.isin(votes.first, systems) & np.isin(votes.second, systems))
    number = np.full(len(votes.systems), -1)
    number[list(systems)] = np.arange(len(systems))
    return replace(
        kept,
        systems=tuple(votes.systems[k] for k in systems),
        first=number[kept.first].astype(np.intp),
        second=number[kept.second].astype(np.intp),
    )


def comparison_votes(given: SystemVotes, comparison: Comparison) -> Votes:
    """The votes that a declared comparison is about: its questions, and its systems among themselves."""
    votes = given.on(comparison_questions(given, comparison))
    systems = [k for k, name in enumerate(given.names) if not comparison.levels or name in comparison.levels]
    return votes if len(systems) == len(given.names) else votes_between(votes, systems)


def comparison_questions(given: SystemVotes, comparison: Comparison) -> tuple[str, ...]:
    """The questions a declared comparison is about."""
    return tuple(name for name in given.criteria if not comparison.criteria or name in comparison.criteria)


def system_votes(data: StudyData) -> SystemVotes:
    """The votes of a study, pairwise choices and rankings together; read once."""
    if "votes" not in data.shared:
        data.shared["votes"] = _read_votes(data)
    votes: SystemVotes = data.shared["votes"]
    return votes


def _read_votes(data: StudyData) -> SystemVotes:
    study = data.study
    asked = (*compared_criteria(study, "one"), *compared_criteria(study, "order"))
    names = tuple(c.name for c in study.spec.criteria if c in asked)
    systems = compared_systems(study)
    gold = gold_items(study)
    frame = data.judgments.filter(pl.col("criterion").is_in(names) & ~pl.col("item").is_in(gold))
    rankings = _rankings(frame.filter(pl.col("scale").is_in(compared_types(study, "order"))))
    pairs, notes = _pairs(frame.filter(pl.col("scale").is_in(compared_types(study, "one"))))
    table = pl.concat([pairs, rankings])
    known = table.filter(pl.col("first").is_in(systems) & pl.col("second").is_in(systems))
    if len(known) < len(table):
        notes = (*notes, f"{n_of(len(table) - len(known), 'vote')} on systems outside the comparison were excluded.")
    if not len(known):
        raise NotEnoughData("there are no votes between two systems yet", remedy="collect judgments first")
    return SystemVotes(
        criteria=names,
        criterion_labels=tuple(criterion_label(study, name) for name in names),
        names=systems,
        votes=_weighted(data, known, _coded(study, known, systems)),
        criterion=_codes(known["criterion"], names),
        notes=(*notes, *_left_out(study, systems)),
        has_rankings=len(rankings) > 0,
    )


def read_choices(frame: pl.DataFrame) -> pl.DataFrame:
    """Pairwise choices with the systems shown and the winner, a tie or "cannot tell"; what names neither is left out."""
    shown = pl.col("order").str.split_exact("|", 1)
    frame = frame.with_columns(
        first=shown.struct.field("field_0"), second=shown.struct.field("field_1"), winner=pl.col("choice")
    )
    is_read = (
        pl.col("second").is_not_null()
        & (pl.col("first") != pl.col("second"))
        & (
            (pl.col("winner") == pl.col("first"))
            | (pl.col("winner") == pl.col("second"))
            | pl.col("winner").is_in([TIE, BOTH_BAD, CANNOT_TELL])
        )
    )
    return frame.filter(is_read.fill_null(value=False))


def _pairs(frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Pairwise choices; "cannot tell" is no vote, and an answer that names neither system is excluded, with a note."""
    read = read_choices(frame)
    decided = read.filter(pl.col("winner") != CANNOT_TELL)
    notes = []
    if len(read) < len(frame):
        n_other = len(frame) - len(read)
        were = "was" if n_other == 1 else "were"
        notes.append(f"{n_of(n_other, 'answer')} named neither of the two systems shown and {were} excluded.")
    if len(decided) < len(read):
        n_open = len(read) - len(decided)
        notes.append(f"{n_of(n_open, 'answer')} “cannot tell” {'counts' if n_open == 1 else 'count'} as no vote.")
    n_bad = int((decided["winner"] == BOTH_BAD).sum())
    if n_bad:
        over = " over all questions" if decided["criterion"].n_unique() > 1 else ""
        share = f"{percent(n_bad / len(decided))} of {n_of(len(decided), 'vote')}{over}"
        count_as = "counts as a tie" if n_bad == 1 else "count as ties"
        notes.append(f"{n_of(n_bad, 'answer')} “both are bad” ({share}) {count_as} in the ranking.")
        decided = decided.with_columns(winner=pl.col("winner").replace(BOTH_BAD, TIE))
    return decided.select(_VOTE_COLUMNS), tuple(notes)


def _rankings(frame: pl.DataFrame) -> pl.DataFrame:
    """Each ranking as a vote between every two of its systems, in the order in which they stood on the screen."""
    empty = pl.DataFrame(schema=dict.fromkeys(_VOTE_COLUMNS, pl.String))
    if not len(frame):
        return empty
    rows = []
    for answer, order in frame.select("answer", "order").unique(maintain_order=True).iter_rows():
        ranked = json.loads(answer)
        if not isinstance(ranked, list) or len(set(ranked)) != len(ranked):
            continue
        shown = (order or "").split("|")
        place = {name: shown.index(name) if name in shown else k for k, name in enumerate(ranked)}
        for better, worse in combinations(ranked, 2):
            first, second = sorted((better, worse), key=lambda name: place[name])
            rows.append((answer, order, first, second, better))
    schema = {"answer": pl.String, "order": pl.String, "first": pl.String, "second": pl.String, "winner": pl.String}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    joined = frame.select("rater", "criterion", "item", "answer", "order").join(
        table, on=["answer", "order"], how="inner", nulls_equal=True, maintain_order="left_right"
    )
    return joined.select(_VOTE_COLUMNS)


def _coded(study: Study, table: pl.DataFrame, systems: tuple[str, ...]) -> Votes:
    winner, first = table["winner"], table["first"]
    outcome = np.where(winner == TIE, TIED, np.where(winner == first, FIRST, SECOND)).astype(np.intp)
    labels = tuple(system_label(study, name) for name in systems)
    raters, items = (table[name].unique().sort().to_list() for name in ("rater", "item"))
    return Votes(
        systems=labels if len(set(labels)) == len(labels) else systems,
        first=_codes(first, systems).astype(np.intp),
        second=_codes(table["second"], systems).astype(np.intp),
        outcome=outcome,
        row=np.arange(len(table)),
        raters=tuple(raters),
        rater=_codes(table["rater"], raters).astype(np.intp),
        items=tuple(items),
        item=_codes(table["item"], items).astype(np.intp),
        prompt=_prompts(study, table),
        text=_texts(study, table),
    )


def _prompts(study: Study, table: pl.DataFrame) -> NDArray[np.intp] | None:
    prompts = shared_prompts(study)
    if not prompts:
        return None
    number = {prompt: k for k, prompt in enumerate(dict.fromkeys(prompts.values()))}
    by_item = {item: number[prompt] for item, prompt in prompts.items()}
    return table["item"].replace_strict(by_item, return_dtype=pl.Int64).to_numpy().astype(np.intp)


def _texts(study: Study, table: pl.DataFrame) -> NDArray[np.intp] | None:
    """The numbers of what was shown first and second, where texts are shown in several items."""
    shown = first_shown(study)
    if not shown:
        return None
    things = {
        (item.id, system): (shown.get((item.id, system), item.id), system)
        for item in study.items
        for system in item.systems
    }
    number = {thing: k for k, thing in enumerate(dict.fromkeys(things.values()))}
    rows = [(item, system, number[thing]) for (item, system), thing in things.items()]
    known = pl.DataFrame(rows, schema={"item": pl.String, "system": pl.String, "text": pl.Int64}, orient="row")
    sides = [
        table.select("item", system=side).join(known, on=["item", "system"], how="left", maintain_order="left")["text"]
        for side in ("first", "second")
    ]
    return np.column_stack([side.to_numpy() for side in sides]).astype(np.intp)


def _weighted(data: StudyData, table: pl.DataFrame, votes: Votes) -> Votes:
    """The votes with the weights of their draws, where pairs were assigned adaptively."""
    if data.draws.is_empty():
        return votes
    weights = data.draws.select("rater", "item", "weight").unique(["rater", "item"])
    joined = table.select("rater", "item").join(weights, on=["rater", "item"], how="left", maintain_order="left")
    return replace(votes, weight=joined["weight"].fill_null(1.0).to_numpy())


def _codes(column: pl.Series, names: tuple[str, ...] | list[str]) -> NDArray[np.int64]:
    return column.replace_strict(list(names), list(range(len(names))), return_dtype=pl.Int64).to_numpy()


def _left_out(study: Study, systems: tuple[str, ...]) -> tuple[str, ...]:
    checks = [system_label(study, s.name) for s in study.spec.systems if s.name not in systems]
    gold = gold_items(study)
    shown = {system for item in study.items for system in item.systems}
    used = [
        label
        for label, s in zip(checks, (s for s in study.spec.systems if s.name not in systems), strict=True)
        if s.name in shown
    ]
    verb = "is" if len(used) == 1 else "are"
    return (
        (f"{listed(used)} {verb} used only for practice or checks and {verb} not ranked.",)
        if used and (gold or study.practice_items)
        else ()
    )


RARELY = 0.05
"""Share of votes up to which meeting the same two systems again is an exception."""


def duplicate_votes(all_votes: SystemVotes) -> tuple[RepeatedVote, ...]:
    """Votes one rater cast more than once on the same two systems of one item and criterion.

    Where every vote has an item of its own, as in arenas with live conversations, the item tells nothing: then votes of one
    rater on the same two systems with the same outcome count as repeated, if nearly all raters meet the same two systems once.
    """
    votes = all_votes.votes
    if votes.rater is None or votes.item is None:
        return ()
    n_items = np.bincount(votes.item, minlength=len(votes.items))
    is_arena = len(all_votes.criteria) == 1 and int(n_items.max(initial=0)) == 1
    low, high = np.minimum(votes.first, votes.second), np.maximum(votes.first, votes.second)
    keys = pl.DataFrame(
        {
            "rater": votes.rater,
            "criterion": all_votes.criterion,
            "item": np.zeros_like(votes.item) if is_arena else votes.item,
            "low": low,
            "high": high,
        }
    )
    is_suspect = keys.is_duplicated().to_numpy()
    if is_arena and is_suspect.mean() > RARELY:  # raters are meant to meet the same systems again
        return ()
    repeats: list[RepeatedVote] = []
    for criterion in np.unique(all_votes.criterion[is_suspect]).tolist():
        inside = votes_where(votes, is_suspect & (all_votes.criterion == criterion))
        given = replace(inside, item=None, items=()) if is_arena else inside
        repeats += [vote for vote in repeated_votes(given) if vote.is_same or not is_arena]
    return tuple(repeats)
