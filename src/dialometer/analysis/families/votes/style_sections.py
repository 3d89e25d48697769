"""Ranking with and without style: how much of a system's lead is associated with the length and formatting of what it wrote."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import listed, p_words, with_interval
from dialometer.analysis.families.votes.system_votes import SystemVotes, votes_where
from dialometer.analysis.shared.styles import VOTES_PER_PARAMETER, style_of
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Method, Section, Table
from dialometer.model.study import Study
from dialometer.stats.observations import Floats
from dialometer.stats.ranking.covariates import CovariateFit, distinct_covariates, fit_with_covariates
from dialometer.stats.ranking.style import STYLE, STYLE_LABELS, relative_differences
from dialometer.stats.ranking.votes import TIE, Votes

TITLE = "Ranking with and without style"
MUCH_WIDER = 2.5
"""How many times as wide intervals may become by holding style equal before the report says that they carry nothing."""
WORTH = "style-worth"


def style_method(section: Section) -> Method:
    """The model with the covariates that it could use, as its section shows them."""
    rows = [row for part in section.parts if isinstance(part, Table) and part.name == WORTH for row in part.rows]
    fitted = next(cell for cell in rows[0] if isinstance(cell, Estimate))
    features = listed([str(row[0]).lower() for row in rows])
    return Method(
        "ranking with and without style",
        f"{fitted.method}, relative differences as covariates ({features}), {fitted.interval_method}",
        "long and formatted responses are preferred to a degree that does not depend on what they say",
        "Li, Angelopoulos and Chiang 2024; Cameron, Gelbach and Miller 2011",
    )


@dataclass(frozen=True)
class StyledVotes:
    """Votes whose both sides are known as texts, with the differences of style in standard deviations."""

    votes: Votes
    features: tuple[str, ...]
    differences: Floats
    same: tuple[str, ...]
    """Features that differ, but only as the systems or other features do: they cannot be distinguished from those."""


def style_section(data: StudyData, given: SystemVotes, options: Options, *, criteria: tuple[str, ...]) -> Section:
    """Strengths by one model without and with style, and what each feature of style is worth."""
    styled = styled_votes(data, given, criteria)
    n_parameters = len(styled.votes.systems) + len(styled.features)
    if styled.votes.n < VOTES_PER_PARAMETER * n_parameters:
        raise NotEnoughData(
            f"{styled.votes.n} votes for {n_parameters} parameters",
            where="style",
            remedy=f"collect at least {VOTES_PER_PARAMETER * n_parameters} votes",
        )
    fit = partial(
        fit_with_covariates,
        styled.votes,
        position_effect=data.study.spec.design.system_order != "fixed",
        has_fixed_items=options.has_fixed_items,
        confidence=options.confidence,
    )
    plain = fit(np.zeros((styled.votes.n, 0)), ())
    if not styled.features:
        raise NotEnoughData(
            "style does not differ beyond what the systems do",
            where="style",
            remedy="use more items, on which the systems write in different ways",
        )
    full = fit(styled.differences, styled.features)
    if any(math.isnan(e.low) for e in (*plain.strengths, *full.strengths, *full.coefficients)):
        raise NotEnoughData(
            "too few raters or items, or votes that do not differ",
            where="style",
            remedy="collect votes of more raters on more items",
        )
    return Section(
        "style",
        TITLE,
        _words(plain, full),
        (_ranks_table(plain, full, has_ties=bool((styled.votes.outcome == TIE).any())), _worth(full, styled.same)),
    )


def styled_votes(data: StudyData, given: SystemVotes, criteria: tuple[str, ...]) -> StyledVotes:
    """The votes on some questions with how both sides were written; features that never differ are left out."""
    votes = given.on(criteria)
    if votes.rater is None or votes.item is None:
        raise NotEnoughData("the votes name no items", where="style", remedy="style needs the texts that were shown")
    counts = _shown_style(data)
    names = np.array(given.names, dtype=object)
    sides = pl.DataFrame(
        {
            "rater": np.array(votes.raters, dtype=object)[votes.rater].astype(str),
            "item": np.array(votes.items, dtype=object)[votes.item].astype(str),
            "first": names[votes.first].astype(str),
            "second": names[votes.second].astype(str),
        }
    )
    keys = [key for key in ("rater", "item") if key in counts.columns]
    first, second = (
        sides.join(counts.rename({"system": side}), on=[*keys, side], how="left", maintain_order="left")
        .select(STYLE)
        .to_numpy()
        .astype(np.float64)
        for side in ("first", "second")
    )
    known = np.isfinite(first).all(axis=1) & np.isfinite(second).all(axis=1)
    if not known.any():
        raise NotEnoughData("the texts of the votes are not known", where="style", remedy="keep the items' texts")
    differences = relative_differences(first[known], second[known])
    spread = differences.std(axis=0)
    scaled = np.divide(differences, spread, out=np.zeros_like(differences), where=spread > 1e-9)
    kept = votes_where(votes, known)
    distinct = distinct_covariates(kept, scaled)
    same = tuple(STYLE[k] for k in range(len(STYLE)) if k not in distinct and spread[k] > 1e-9)
    return StyledVotes(kept, tuple(STYLE[k] for k in distinct), scaled[:, distinct], same)


def _shown_style(data: StudyData) -> pl.DataFrame:
    """Counts of style by item and system; in arenas also by rater, since everybody had another conversation."""
    if data.study.spec.items.kind == "arena":
        return data.battles.select("rater", "item", "system", *STYLE)
    schema = {"item": pl.String, "system": pl.String, **dict.fromkeys(STYLE, pl.Int64)}
    return pl.DataFrame([(*key, *counts) for key, counts in style_of(data.study).items()], schema=schema, orient="row")


def has_texts(study: Study) -> bool:
    """Whether what raters compared is known as text."""
    return study.spec.items.kind in ("arena", "responses", "transcript_pair")


def _ranks_table(plain: CovariateFit, full: CovariateFit, *, has_ties: bool) -> Table:
    place = {name: k for k, name in enumerate(full.systems)}
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            plain.order.index(name) + 1,
            plain.strengths[place[name]],
            full.order.index(name) + 1,
            full.strengths[place[name]],
        )
        for name in plain.order
    ]
    columns = (
        Column("system", "System"),
        Column("rank", "Rank", "count"),
        Column("strength", "Strength", "estimate", unit="log odds"),
        Column("rank_style", "Rank, style held equal", "count"),
        Column("strength_style", "Strength, style held equal", "estimate", unit="log odds"),
    )
    tied = "count ties as half wins and " if has_ties else ""
    notes = (f"Strengths are log odds against the mean of all systems. Both columns {tied}take their "
             "confidence intervals from a jackknife, so that they can be compared; those of the leaderboard come from its own "
             "model and can differ a little.",)  # fmt: skip
    return Table("style-standing", "Strengths without and with style", columns, tuple(rows), notes=notes)


def _worth(full: CovariateFit, same: tuple[str, ...]) -> Table:
    rows: list[tuple[Cell, ...]] = [(STYLE_LABELS[e.label], e, e.p_value) for e in full.coefficients]
    columns = (
        Column("feature", "Style"),
        Column("worth", "Effect", "estimate", unit="log odds per standard deviation"),
        Column("p", "p-value", "p_value"),
    )
    notes = (
        "Each feature is the difference of the two sides relative to their sum, in standard deviations over votes. p-values "
        "are not corrected.",
        *(
            (
                f"{listed([STYLE_LABELS[name] for name in same])} cannot be distinguished from the systems or the features above.",
            )
            if same
            else ()
        ),
    )
    return Table(WORTH, "What style is worth", columns, tuple(rows), notes=notes)


def _words(plain: CovariateFit, full: CovariateFit) -> tuple[str, ...]:
    alpha = 1 - full.coefficients[0].confidence if full.coefficients else 0.05
    telling = [e for e in full.coefficients if e.p_value <= alpha]
    if telling:
        parts = [f"{STYLE_LABELS[e.label].lower()} {with_interval(e)} ({p_words(e.p_value)})" for e in telling]
        worth = f"Style is associated with the votes: {listed(parts)}, in log odds per standard deviation."
    else:
        worth = "No feature of style is significantly associated with the votes."
    moved = plain.order != full.order
    standing = (
        f"With style held equal, the order is {' > '.join(full.order)}; without, {' > '.join(plain.order)}."
        if moved
        else f"The order is the same with and without style: {' > '.join(full.order)}."
    )
    widths = [
        (b.high - b.low) / (a.high - a.low)
        for a, b in zip(plain.strengths, full.strengths, strict=True)
        if a.high > a.low
    ]
    if widths and max(widths) > MUCH_WIDER:
        standing += (
            f" Style and systems are so closely related here that with style the confidence intervals are up to {max(widths):.1f} "
            "times as wide: this order says little. Items on which the systems write alike would show more."
        )
    caution = (
        "This shows association, not cause: where a system is better because it explains more, holding length equal takes "
        "part of its quality away."
    )
    return f"{worth} {standing}", caution
