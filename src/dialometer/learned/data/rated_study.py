"""A study's judgments of whole dialogues, or of the rater's own conversations, as rated dialogues."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from dialometer.design.load import load_study
from dialometer.errors import DialometerError, NotEnoughData
from dialometer.learned.data.rated import RatedDialogue, to_five_points
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.model.item import DialogueItem
from dialometer.model.scale import Scale
from dialometer.model.study import Study
from dialometer.storage.counting.counts import OUTSIDE_STATES, PEOPLE
from dialometer.storage.store import Store, open_collected
from dialometer.storage.table import long_table, rater_name


def study_ratings(folder: Path, *, criterion: str = "", database: str = "") -> list[RatedDialogue]:
    """One rated dialogue for each judgment that counts, called ``rater/item``; the judgment's number is in the metadata.

    People's judgments are used, or simulated raters' where no person has judged yet (a dry run); those of models and of
    excluded raters never. Numbers from another scale are brought to 1 to 5 in proportion. Without ``criterion`` it is the
    first that has a rating scale.
    """
    study = load_study(folder)
    kind = study.spec.items.kind
    if kind not in ("dialogue", "chat") or study.spec.items.rate == "turns":
        raise DialometerError(
            "the study does not rate whole dialogues",
            where=str(folder),
            remedy="use a study whose items are of the kind 'dialogue' (rated as a whole) or 'chat'",
        )
    name, scale = rated_scale(study, criterion, where=str(folder))
    with open_collected(folder, database) as store:
        table = counted_ratings(long_table(store.records.judgment_batches(), study), name)
        dialogues = dict(_conversations(store)) if kind == "chat" else dict(_transcripts(study, table))
    if not len(table):
        raise NotEnoughData(
            f"no human rater has given a judgment on '{name}' that counts",
            where=str(folder),
            remedy="collect judgments; those of models are not learned from",
        )
    return list(_rows(table, dialogues, scale, source=study.spec.name))


def rated_scale(study: Study, criterion: str, where: str) -> tuple[str, tuple[float, float]]:
    """The criterion, the first with a rating scale if none is named, and the ends of its scale."""
    known = {asked.name: _bounds(study.scale_for(asked, study.spec.presentation)) for asked in study.spec.criteria}
    usable = {name: ends for name, ends in known.items() if ends is not None}
    if criterion and criterion not in usable:
        what = "has no rating scale" if criterion in known else "is not in this study"
        remedy = f"name one of: {', '.join(usable)}" if usable else "use a study with a rating scale"
        raise DialometerError(f"the criterion '{criterion}' {what}", where=where, remedy=remedy)
    if not usable:
        raise DialometerError(
            "no criterion of this study has a rating scale with two ends",
            where=where,
            remedy="ask one on a likert or slider scale",
        )
    name = criterion or next(iter(usable))
    return name, usable[name]


def _bounds(scale: Scale) -> tuple[float, float] | None:
    low, high = scale.bounds()
    is_usable = scale.is_numeric and scale.unit == "points" and math.isfinite(low) and math.isfinite(high)
    return (float(low), float(high)) if is_usable else None


def counted_ratings(table: pl.DataFrame, criterion: str) -> pl.DataFrame:
    """The judgments on a criterion that an evaluator may learn from."""
    rows = table.filter(
        (pl.col("criterion") == criterion)
        & pl.col("value").is_not_null()
        & ~pl.col("is_practice")
        & ~pl.col("is_excluded")
        & ~pl.col("state").is_in(OUTSIDE_STATES)
    )
    return people_or_simulated(rows)


def people_or_simulated(rows: pl.DataFrame) -> pl.DataFrame:
    """Judgments to learn from: people's; where there are none, simulated raters'; never a model's.

    A model that learned from models would be measured by its own kind.
    """
    people = rows.filter(pl.col("source").is_in(PEOPLE))
    return people if len(people) else rows.filter(pl.col("source") == "simulated")


def _transcripts(study: Study, table: pl.DataFrame) -> Iterator[tuple[tuple[str, str], tuple[Turn, ...]]]:
    for rater, item_id in table.select("rater", "item").unique().iter_rows():
        item = study.items_by_id.get(item_id)
        if isinstance(item, DialogueItem):
            yield (rater, item_id), item.turns


def _conversations(store: Store) -> Iterator[tuple[tuple[str, str], tuple[Turn, ...]]]:
    names = {"user": "User", "agent": "Agent", "person": "Person"}
    for session in store.sessions.all():
        turns: dict[str, list[Turn]] = {}
        for turn in store.conversations.turns(session.id):
            turns.setdefault(turn.item_id, []).append(Turn(names[turn.role], turn.text, turn.role))
        for item_id, spoken in turns.items():
            yield (rater_name(session.ordinal), item_id), tuple(spoken)


def _rows(
    table: pl.DataFrame,
    dialogues: dict[tuple[str, str], tuple[Turn, ...]],
    scale: tuple[float, float],
    source: str,
) -> Iterator[RatedDialogue]:
    columns = ("judgment", "rater", "item", "system", "value")
    for judgment, rater, item, system, value in table.select(columns).sort("judgment").iter_rows():
        turns = dialogues.get((rater, item))
        if turns is None:
            continue
        metadata = {"item": item, "judgment": judgment, "rating": value}
        rating = to_five_points(value, scale) if math.isfinite(value) else math.nan
        yield RatedDialogue(Dialogue(f"{rater}/{item}", turns, metadata), rating, rater, source, system or None)
