"""What was declared about systems before the votes came in, and votes that came in twice."""

from __future__ import annotations

import numpy as np

from dialometer.analysis.family import Options
from dialometer.analysis.leader import p_adjusted
from dialometer.analysis.meetings import Met, pairs_table
from dialometer.analysis.standings import head_to_head_by_rater
from dialometer.analysis.system_votes import SystemVotes, duplicate_votes, votes_where
from dialometer.analysis.words import listed, n_of, p_words, sentence
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.model.study import Comparison, Study
from dialometer.stats.bradley_terry import bradley_terry
from dialometer.stats.win_matrix import win_matrix

MOST_REPEATS = 50


def questions_of(comparison: Comparison, found: SystemVotes) -> tuple[str, ...]:
    """The questions a declared comparison is about."""
    return tuple(name for name in found.criteria if not comparison.criteria or name in comparison.criteria)


def declared_sections(study: Study, found: SystemVotes, options: Options) -> list[Section]:
    """Declared comparisons between systems: every two of their systems in direct votes, over their questions."""
    tables, said = [], []
    for comparison in study.spec.analysis.comparisons:
        questions = questions_of(comparison, found)
        if comparison.between != "systems" or not questions:
            continue
        codes = [k for k, name in enumerate(found.names) if not comparison.levels or name in comparison.levels]
        votes = found.on(questions)
        votes = votes_where(votes, np.isin(votes.first, codes) & np.isin(votes.second, codes))
        title = sentence(comparison.name.replace("_", " "))[:-1]
        if votes.n == 0:
            said.append(f"{title}: there are no votes between {listed(found.systems[k] for k in codes)} yet.")
            continue
        matrix = win_matrix(votes)
        pairs = head_to_head_by_rater(votes, matrix, options)
        role = "the comparison that decides the study" if comparison.name == study.spec.analysis.primary else "declared"
        said.append(f"{title} ({role}): {preferred_words(pairs, options)}.")
        asked = listed(found.criterion_labels[found.criteria.index(name)] for name in questions)
        caption = f"Questions: {asked}." + (f" Hypothesis: {comparison.hypothesis}" if comparison.hypothesis else "")
        met = Met(title, pairs, bradley_terry(matrix, confidence=options.confidence))
        name = f"declared-{comparison.name}"
        tables.append(
            pairs_table(name, f"{title}: direct votes", [met], options, is_confirmatory=True, caption=caption)
        )
    if not said:
        return []
    return [Section("declared", "Declared comparisons", tuple(said), tuple(tables), is_confirmatory=True)]


def preferred_words(pairs: dict[tuple[str, str], Estimate], options: Options) -> str:
    """Who is preferred to whom, by system, and how many pairs stay open."""
    beaten: dict[str, list[str]] = {}
    n_open = 0
    for (a, b), share in pairs.items():
        if p_adjusted(share) <= 1 - options.confidence:
            winner, loser = (a, b) if share.value > 0.5 else (b, a)
            beaten.setdefault(winner, []).append(f"{loser} ({p_words(p_adjusted(share))})")
        else:
            n_open += 1
    if not beaten:
        return "no two of these systems can be told apart in direct votes"
    told = [f"{winner} is preferred to {listed(losers)}" for winner, losers in beaten.items()]
    rest = f"; {n_of(n_open, 'other pair')} cannot be told apart" if n_open else ""
    return "; ".join(told) + rest


def duplicates_sections(found: SystemVotes) -> list[Section]:
    """A chapter on repeated votes, where there are any."""
    repeats = duplicate_votes(found)
    if not repeats:
        return []
    rows: list[tuple[Cell, ...]] = [
        (
            one.rater,
            " and ".join(one.systems),
            one.item or "any",
            len(one.rows),
            "the same" if one.is_same else "different",
        )
        for one in repeats[:MOST_REPEATS]
    ]
    columns = (
        Column("rater", "Rater"),
        Column("systems", "Systems"),
        Column("item", "Item"),
        Column("n", "Votes", "count"),
        Column("vote", "Votes were"),
    )
    n_same = sum(one.is_same for one in repeats)
    said = (
        f"A rater voted more than once on the same comparison {n_of(len(repeats), 'time')}, with the same vote in {n_same}. "
        "All votes are counted. Raters are resampled whole, so that repeating a vote does not make intervals narrower, but it "
        "gives that rater more weight: exclude the session, or correct the import, if votes were sent twice by mistake."
    )
    more = (f"The first {MOST_REPEATS} of {len(repeats)}.",) if len(repeats) > MOST_REPEATS else ()
    table = Table("duplicates", "Repeated votes", columns, tuple(rows), notes=more)
    return [Section("duplicates", "Repeated votes", (said,), (table,))]
