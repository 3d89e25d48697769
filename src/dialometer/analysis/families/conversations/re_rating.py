"""Dialogues whose users rated them, rated again by others: how often do the two differ, and in which direction?

Liang, Zou and Yu (ACL 2020, section 3.2): of 50 dialogues that users gave five points, an expert gave 27 four or less.
Fits every study of dialogues whose items name the user's rating (metadata ``user_rating``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, section_or_problem
from dialometer.analysis.base.scale_units import asked_criteria
from dialometer.analysis.base.wording import criterion_label, n_of, percent, with_interval
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Headline, Method, Section, Table
from dialometer.model.study import Study
from dialometer.quality.gold import gold_items
from dialometer.report.charts import HeatCell, heatmap
from dialometer.stats.clustered.two_way import two_way_share

PAPER = "Liang, Zou and Yu 2020"
TITLE = "Ratings of the users beside those of the raters"


class ReRating(Family):
    """Dialogues with a rating of their user."""

    rank = 18

    def fits(self, study: Study) -> bool:
        """Dialogue items that name the user's rating, and a criterion answered with numbers."""
        return study.spec.items.kind == "dialogue" and bool(user_ratings(study)) and bool(asked_criteria(study))

    def run(self, data: StudyData, options: Options) -> Findings:
        """How many are rated lower, and the table of both ratings."""
        study = data.study
        criterion = asked_criteria(study)[0].criterion.name
        users, raters, ids, items = both_ratings(data, criterion)
        lower = rated_lower(users, raters, ids, items, options)
        n_low, n = int(np.sum(raters < users)), len(users)
        answer = f"Raters give {n_low:,} of {n_of(n, 'judgment')} a lower rating than the dialogue's user gave."
        certainty = f"That is {with_interval(lower, is_percent=True)}; published: 27 of 50 ({PAPER})."
        section = section_or_problem("re_rating", TITLE, lambda: _section(study, criterion, users, raters, lower))
        method = Method(
            "users and raters",
            "share of judgments below the user's rating, " + lower.method,
            "raters and dialogues are samples",
            PAPER,
        )
        headline = Headline("Rated lower than by the user", lower, certainty)
        return Findings(answer, certainty, (headline,), sections=(section,), methods=(method,))


ANALYSES.register("re_rating")(ReRating())


def user_ratings(study: Study) -> dict[str, float]:
    """The user's rating of each dialogue that has one; gold and practice items have none."""
    gold = gold_items(study)
    return {
        item.id: float(item.metadata["user_rating"])
        for item in study.rated_items
        if "user_rating" in item.metadata and item.id not in gold
    }


def both_ratings(data: StudyData, criterion: str) -> tuple[np.ndarray, np.ndarray, Sequence[str], Sequence[str]]:
    """User's rating, rater's rating, rater and item of each judgment."""
    known = user_ratings(data.study)
    rows = data.of_criterion(criterion).filter(pl.col("value").is_not_null() & pl.col("item").is_in(list(known)))
    if not len(rows):
        raise NotEnoughData("no dialogue with a user's rating has been rated yet", remedy="collect judgments first")
    users = np.array([known[item] for item in rows["item"]])
    return users, rows["value"].to_numpy(), rows["rater"].to_list(), rows["item"].to_list()


def rated_lower(
    users: np.ndarray, raters: np.ndarray, ids: Sequence[str], items: Sequence[str], options: Options
) -> Estimate:
    """Share of judgments below the user's rating, for other raters and dialogues; with one rater, for other dialogues."""
    is_lower = (raters < users).astype(np.float64)
    if len(set(ids)) == 1:  # one expert: dialogues are the sample
        return two_way_share(is_lower, items, None, confidence=options.confidence, label="rated lower")
    by_items = None if options.has_fixed_items else items
    return two_way_share(is_lower, ids, by_items, confidence=options.confidence, label="rated lower")


def _section(study: Study, criterion: str, users: np.ndarray, raters: np.ndarray, lower: Estimate) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for rating in np.unique(users).tolist():
        here = raters[users == rating]
        rows.append(
            (
                rating,
                len(here),
                float(here.mean()),
                float(np.mean(here < rating)),
                float(np.mean(here == rating)),
                float(np.mean(here > rating)),
            )
        )
    table = Table(
        "re_rating",
        TITLE,
        (
            Column("user", "User's rating", "number", 0),
            Column("n", "Judgments", "count"),
            Column("mean", "Mean of the raters", "number"),
            Column("lower", "Lower", "percent"),
            Column("equal", "Equal", "percent"),
            Column("higher", "Higher", "percent"),
        ),
        tuple(rows),
    )
    words = (
        f"{criterion_label(study, criterion)}: {with_interval(lower, is_percent=True)} of the judgments are below the user's own "
        "rating. Users may rate higher because they were there, or because they did not take care; the two look alike here.",
    )
    return Section("re_rating", TITLE, words, (_figure(users, raters), table))


def _figure(users: np.ndarray, raters: np.ndarray) -> Figure:
    cells = [
        HeatCell(f"user {user:g}", f"rater {rater:g}", float(np.mean(raters[users == user] == rater)))
        for user in np.unique(users).tolist()
        for rater in np.unique(raters).tolist()
    ]
    spec = heatmap(cells, value_title="share of the judgments", is_percent=True)
    alt = "; ".join(f"{cell.row}, {cell.column}: {percent(cell.value or 0)}" for cell in cells)
    return Figure("re_rating_map", "What raters give for each rating of a user", spec, f"Shares in colour. {alt}.")
