"""Candidates that the maker and the crowd see differently, with their texts (Chierici and Habash 2021, figure 4)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dialometer.analysis.base.wording import n_of, number
from dialometer.analysis.families.candidates.gold_loss import APPROVED_BY_RULE
from dialometer.analysis.families.candidates.pool import Marks, Pool
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.retrieval.evaluation import crowd_approves

MOST_SHOWN = 20
TITLE = "Where the maker and the crowd disagree"


def disagreement_section(name: str, pool: Pool, is_by_rule: bool) -> Section:
    """The candidates right for the crowd only and for the maker only; first answers of a system come first."""
    if not pool.is_gold.any():
        problem = "No candidate is marked as gold, so there is no verdict of the maker to differ from."
        return Section(name, TITLE, (problem,))
    good = pool.is_judged & crowd_approves(pool.mean, pool.good_from)
    only_crowd = good & ~pool.is_gold & _has_gold(pool)
    only_maker = pool.is_gold & pool.is_judged & ~good
    n_rejected = int(only_maker.sum())
    rejected = n_of(n_rejected, "candidate") if n_rejected else "none"
    by_rule = f" {APPROVED_BY_RULE}" if is_by_rule and not n_rejected else ""
    words = (
        f"The crowd calls {n_of(int(only_crowd.sum()), 'candidate')} right (a mean rating of {number(pool.good_from, 1)} or more) "
        f"that the maker did not mark, and rejects {rejected} that the maker marked.{by_rule} An answer can "
        "make sense to a visitor and still be wrong for the person who recorded it, and a maker who looks through many answers "
        "misses some."
    )
    parts = []
    for suffix, title, chosen, sign in (
        ("crowd", "Right for the crowd, not marked by the maker", only_crowd, -1),
        ("maker", "Marked by the maker, not right for the crowd", only_maker, 1),
    ):
        if chosen.any():
            parts.append(_table(f"{name}_{suffix}", title, pool, chosen, sign, has_maker=suffix == "crowd"))
    return Section(name, TITLE, (words,), tuple(parts))


def _has_gold(pool: Pool) -> Marks:
    """Candidates of questions to which the maker marked an answer at all."""
    n_gold = np.bincount(pool.question[pool.is_gold], minlength=len(pool.questions))
    return np.asarray(n_gold[pool.question] > 0)


def _table(name: str, title: str, pool: Pool, chosen: Marks, sign: int, *, has_maker: bool) -> Table:
    is_first = np.any(pool.rank == 1, axis=1) if pool.systems else np.zeros(len(pool.items), dtype=bool)
    order = sorted(np.flatnonzero(chosen).tolist(), key=lambda k: (not is_first[k], sign * pool.mean[k], k))
    gold: dict[int, list[str]] = {}
    for k in np.flatnonzero(pool.is_gold).tolist():
        gold.setdefault(int(pool.question[k]), []).append(pool.candidate_texts[k])
    columns = [
        Column("question", "Question"),
        Column("text", "Last turn before the answer"),
        Column("answer", "Answer"),
        *([Column("maker", "The maker's answer")] if has_maker else []),
        Column("mean", "Mean rating", "number"),
        Column("n", "Ratings", "count"),
        Column("first_of", "First answer of"),
    ]
    rows: list[tuple[Cell, ...]] = []
    for k in order[:MOST_SHOWN]:
        question = int(pool.question[k])
        rows.append(
            (
                pool.questions[question],
                pool.question_texts[question],
                pool.candidate_texts[k],
                *([" / ".join(gold.get(question, []))] if has_maker else []),
                float(pool.mean[k]),
                int(pool.n_ratings[k]),
                _listed(label for label, rank in zip(pool.labels, pool.rank[k], strict=True) if rank == 1),
            )
        )
    n_more = len(order) - len(rows)
    notes = (f"{n_of(n_more, 'further candidate')} not shown.",) if n_more else ()
    return Table(name, title, tuple(columns), tuple(rows), caption="First answers of systems come first.", notes=notes)


def _listed(labels: Iterable[str]) -> str:
    return ", ".join(labels)
