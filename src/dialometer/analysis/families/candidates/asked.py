"""What was asked: with which words the questions of a study begin (Chierici and Habash 2021, figure 2)."""

from __future__ import annotations

from dialometer.analysis.base.wording import listed, n_of
from dialometer.analysis.families.candidates.pool import Pool
from dialometer.model.report import Column, Section, Table
from dialometer.retrieval.questions.first_words import first_words, words_figure

MOST_SHOWN = 15


def asked_section(name: str, pool: Pool) -> Section:
    """The first three words of the turn before each candidate, as a tree and in numbers."""
    words = first_words(pool.question_texts)
    if not words.counts:
        return Section(name, "What was asked", ("The items hold no texts of questions.",))
    totals = words.totals()
    repeated = [f"“{word}” ({n})" for word, n in list(totals.items())[:5] if n > 1]
    most = f", most often {listed(repeated)}" if repeated else ""
    rows = tuple((word, n, n / words.n_texts) for word, n in list(totals.items())[:MOST_SHOWN])
    n_more = len(totals) - len(rows)
    table = Table(
        name,
        "First words of the questions",
        (Column("word", "First word"), Column("n", "Questions", "count"), Column("share", "Share", "percent")),
        rows,
        notes=(f"{n_of(n_more, 'further word')} not shown.",) if n_more else (),
    )
    text = f"{n_of(words.n_texts, 'different question')} begin with {n_of(len(totals), 'different word')}{most}."
    if pool.is_gold.any():  # somebody recorded the answers
        text += " A knowledge base that was recorded with other beginnings will be asked what it has not seen."
    return Section(
        name,
        "What was asked",
        (text,),
        (words_figure(f"{name}_figure", "How questions begin", words), table),
    )
