"""First words of questions and answers: counts, room in the figure, and the figure of the published study."""

import os
from pathlib import Path

import pytest

from dialometer.analysis.reproduce.avatar import FIRST_WORDS
from dialometer.retrieval.knowledge_base import read_knowledge_base
from dialometer.retrieval.questions.first_words import MOST_SHOWN, first_words, joined, words_figure, words_table

DATA = Path(os.environ.get("DIALOMETER_DATA", "")) / "mdc"
TEXTS = ["What's your name?", "What’s your age?", "what is it", "Why?", "Why?", "...", "What's your name?"]


def test_different_texts_count_once_and_apostrophes_part_words():
    found = first_words(TEXTS)
    assert found.counts == ((("what", "'s", "your"), 2), (("what", "is", "it"), 1), (("why",), 1))
    assert (found.n_texts, found.totals(), found.totals(2)) == (4, {"what": 3, "why": 1}, {"what": 2})
    assert joined(("what", "'s", "your")) == "what's your"


def test_as_many_beginnings_as_there_is_room_for():
    many = first_words([f"word{n // 2} {'a' if n % 2 else 'b'} x" for n in range(60)] + ["word1 a x, again"])
    assert len(many.shown()) == 1
    assert len(many.shown(1)) == 60 > MOST_SHOWN
    table = words_table("t", "T", first_words(TEXTS))
    assert table.rows[2] == ("why", "", "", 1, 0.25)
    figure = words_figure("f", "F", first_words(TEXTS))
    heights = {row["text"]: row["end"] - row["start"] for row in figure.spec["data"]["values"]}
    assert (heights["what  3"], heights["'s  2"], heights["why  1"]) == (3, 2, 1)
    assert "what 3; why 1" in figure.alt


@pytest.mark.realdata
@pytest.mark.skipif(not DATA.is_dir(), reason="DIALOMETER_DATA names no folder with the public data sets")
def test_counts_are_those_of_the_authors_figure():
    found = first_words(read_knowledge_base(DATA / "knowledge_base.csv").questions)
    assert found.totals(3) == FIRST_WORDS
    assert dict(found.shown(3))["what", "'s", "your"] == 20
