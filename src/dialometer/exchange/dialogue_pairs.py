"""Studies in which experts compare two dialogues: every verdict, and the majority's label of each pair.

Such a study declares ``items: pairs: dialogues``. Its two systems only name the sides; which dialogues a pair holds is written
in the item's metadata under ``first`` and ``second``, so both may come from one system.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from dialometer.design.load import load_study
from dialometer.errors import DialometerError, NotEnoughData
from dialometer.exchange.exports.export_tables import ExportTable
from dialometer.model.item import PairItem
from dialometer.model.study import Study
from dialometer.model.values import BOTH_BAD, CANNOT_TELL, TIE
from dialometer.storage.counting.counts import OUTSIDE_STATES, main_sources
from dialometer.storage.store import open_collected
from dialometer.storage.table import long_table

Verdict = Literal["first", "second", "cannot_tell"]


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """One rater's answer on one pair."""

    item: str
    criterion: str
    rater: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A pair of dialogues with the votes for each; ties count as "cannot tell"."""

    item: str
    criterion: str
    first: str
    second: str
    n_first: int
    n_second: int
    n_cannot_tell: int

    @property
    def better(self) -> Verdict:
        """The majority of those who chose one; "cannot tell" where they are divided or no more than those who could not."""
        if self.n_first == self.n_second or max(self.n_first, self.n_second) <= self.n_cannot_tell:
            return "cannot_tell"
        return "first" if self.n_first > self.n_second else "second"


PAIRS = ExportTable(
    "pairs",
    "one pair of dialogues with the raters' label a row; what `dialometer learn` reads with --pairs",
    {
        "item": (pl.String, "id of the item"),
        "criterion": (pl.String, "the question asked"),
        "first": (pl.String, "id of the dialogue on the first side"),
        "second": (pl.String, "id of the other one"),
        "better": (pl.String, "first, second or cannot_tell, by majority"),
        "n_first": (pl.Int64, "raters who found the first one better"),
        "n_second": (pl.Int64, "raters who found the second one better"),
        "n_cannot_tell": (pl.Int64, "raters who called it a tie or could not tell"),
    },
)


def is_about_dialogues(study: Study) -> bool:
    """Whether the study compares dialogues and not systems."""
    return study.spec.items.kind == "transcript_pair" and study.spec.items.pairs == "dialogues"


def dialogue_ids(item: PairItem) -> tuple[str, str]:
    """Ids of the dialogues of a pair."""
    return str(item.metadata["first"]), str(item.metadata["second"])


def counted(table: pl.DataFrame) -> pl.DataFrame:
    """The judgments that count: no practice, no excluded raters; people's where there are any."""
    rows = table.filter(~pl.col("is_practice") & ~pl.col("is_excluded") & ~pl.col("state").is_in(OUTSIDE_STATES))
    return rows.filter(pl.col("source").is_in(main_sources(rows["source"].unique().to_list())))


def pair_verdicts(study: Study, judgments: pl.DataFrame) -> list[PairVerdict]:
    """Every answer that names a side, a tie or "cannot tell"; gold pairs only check raters and are not among them."""
    sides: dict[tuple[str, str], Verdict] = {}
    for item in study.rated_items:
        if isinstance(item, PairItem) and "first" in item.metadata and "second" in item.metadata:
            sides |= {(item.id, item.a.system): "first", (item.id, item.b.system): "second"}
            sides |= {(item.id, undecided): "cannot_tell" for undecided in (TIE, BOTH_BAD, CANNOT_TELL)}
    rows = judgments.select("item", "criterion", "rater", "choice").iter_rows()
    return [
        PairVerdict(item, criterion, rater, sides[item, choice])
        for item, criterion, rater, choice in rows
        if (item, choice) in sides
    ]


def labelled_pairs(study: Study, judgments: pl.DataFrame) -> list[LabelledPair]:
    """Each judged pair and criterion with its votes, in the order of the items."""
    votes = Counter((v.item, v.criterion, v.verdict) for v in pair_verdicts(study, judgments))
    pairs = []
    for criterion in study.spec.criteria:
        for item in study.rated_items:
            if not isinstance(item, PairItem):
                continue
            n = {verdict: votes[item.id, criterion.name, verdict] for verdict in ("first", "second", "cannot_tell")}
            if sum(n.values()):
                ids = dialogue_ids(item)
                pairs.append(LabelledPair(item.id, criterion.name, *ids, n["first"], n["second"], n["cannot_tell"]))
    return pairs


def pair_frames(study: Study, judgments: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The rows of the export."""
    rows = [
        (p.item, p.criterion, p.first, p.second, p.better, p.n_first, p.n_second, p.n_cannot_tell)
        for p in labelled_pairs(study, judgments)
    ]
    yield pl.DataFrame(rows, schema=PAIRS.schema, orient="row")


def study_pairs(folder: Path) -> list[LabelledPair]:
    """The labelled pairs of a study's folder, on its first criterion."""
    study = load_study(folder)
    if not is_about_dialogues(study):
        raise DialometerError(
            "the study does not compare pairs of dialogues",
            where=str(folder),
            remedy="name a study that 'dialometer learn pairs' wrote, or a file with first, second and better",
        )
    with open_collected(folder) as store:
        table = counted(long_table(store.records.judgment_batches(), study))
    pairs = [pair for pair in labelled_pairs(study, table) if pair.criterion == study.spec.criteria[0].name]
    if not pairs:
        raise NotEnoughData("no pair has been judged yet", where=str(folder), remedy="collect judgments first")
    return pairs
