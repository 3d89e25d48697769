"""Ratings that a learned evaluator doubts, flagged by ``dialometer learn noisy --flag``."""

from __future__ import annotations

import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, section_or_problem
from dialometer.analysis.base.wording import n_of
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.model.study import Study

NO_ANSWER = "There is no analysis for this design yet."
NAME, TITLE = "doubted_ratings", "Ratings to read again"
RULE = "noisy_rating"
"""The rule under which the learned evaluator files its flags."""
MOST_ROWS = 100


class FlaggedRatings(Family):
    """Fits every study; silent where nothing was flagged."""

    rank = 895

    def fits(self, study: Study) -> bool:
        """Always; flags come with the evaluator."""
        return True

    def run(self, data: StudyData, options: Options) -> Findings:
        """One section where there are flags."""
        if _flags(data).is_empty():
            return Findings(NO_ANSWER, "")
        section = section_or_problem(NAME, TITLE, lambda: flagged_section(data))
        return Findings(NO_ANSWER, "", sections=(section,))


ANALYSES.register(NAME)(FlaggedRatings())


def flagged_section(data: StudyData) -> Section:
    """Each flagged rating with its reason."""
    flags = _flags(data)
    rows: list[tuple[Cell, ...]] = [
        (rater, *reason.partition(": ")[::2]) for rater, reason in flags.select("rater", "reason").iter_rows()
    ]
    n_raters = flags["rater"].n_unique()
    words = (
        f"A learned evaluator doubts {n_of(len(rows), 'rating')} of {n_of(n_raters, 'rater')}: similar dialogues were rated "
        "otherwise. All of them still count. A rating can be doubted because it is honest, so read the dialogue before "
        "excluding anyone."
    )
    table = Table(
        NAME,
        "Ratings that contradict those of similar dialogues",
        (Column("rater", "Rater"), Column("item", "Item"), Column("reason", "Why")),
        tuple(rows[:MOST_ROWS]),
        notes=(f"the first {MOST_ROWS} of {len(rows)}",) if len(rows) > MOST_ROWS else (),
    )
    return Section(NAME, TITLE, (words,), (table,))


def _flags(data: StudyData) -> pl.DataFrame:
    shown = data.sessions.filter(pl.col("source").is_in(data.sources))["rater"]
    return data.findings.filter((pl.col("rule") == RULE) & pl.col("rater").is_in(shown.implode())).sort(
        "rater", "reason"
    )
