"""Questions that need the turns before them: what the rule proposes, how marks are read, and groups in an evaluation."""

import json
from dataclasses import replace

import pytest

from dialometer.errors import DialometerError, ReadError
from dialometer.model.dialogue import Turn
from dialometer.retrieval.evaluation import Resampling, evaluate, judges_of
from dialometer.retrieval.knowledge_base import read_knowledge_base
from dialometer.retrieval.queries import Query, read_queries
from dialometer.retrieval.questions.coreference import MarksError, proposals, proposed, read_marks, write_marks
from dialometer.retrieval.questions.question_groups import WITH, WITHOUT, coreference_groups, group_scores
from dialometer.stats.retrieval.metrics import ranks_from_lists

BEFORE = (Turn("User", "Hi.", "user"), Turn("Agent", "I worked with Oddvar in Paris and New York.", "agent"))


@pytest.mark.parametrize(
    "text",
    [
        "What sort of person was he?",
        "Which one did you prefer?",
        "Why?",
        "And you?",
        "OK. Did you like it?",
        "Is that when you came here?",
        "All those four years?",
        "Are they proud of you?",
        "How did you get out there?",
        "Would you feel the same way?",
    ],
)
def test_a_question_that_points_back_is_proposed(text):
    assert proposed(Query(text, BEFORE, "q"))


@pytest.mark.parametrize(
    "text",
    [
        "How old are you?",
        "That's nice. Where are you from?",
        "Is it hard to learn Arabic?",
        "Do you know that you are famous?",
        "Is there a library?",
        "When does this semester start?",
        "Did your parents visit, and did they like Abu Dhabi?",
        "Oh, I see.",
    ],
)
def test_a_question_that_stands_alone_is_not(text):
    assert proposed(Query(text, BEFORE, "q")) == ""


def test_the_first_question_of_a_dialogue_has_nothing_to_point_to():
    assert proposed(Query("Why?", (), "q")) == ""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "kb.csv").write_text(
        "id,question,answer\na1,Who are you?,I am Ann.\na2,Why?,Because.\n", encoding="utf-8"
    )
    turns = [("User", "Who are you?"), ("Agent", "I am Ann."), ("User", "Why?"), ("Agent", "Because.")]
    row = {
        "id": "d1",
        "turns": [{"speaker": speaker, "text": text} for speaker, text in turns],
        "metadata": {"exchanges": [{"answers": ["a1"]}, {"answers": ["a2"], "coreference": True}]},
    }
    (tmp_path / "d.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    return tmp_path


def test_marks_of_dialogues_and_of_tables(files):
    kb = read_knowledge_base(files / "kb.csv")
    asked = read_queries(files / "d.jsonl", kb)
    assert [query.coreference for query in asked.queries] == [None, True]
    marks = proposals(asked)
    assert [(mark.is_marked, mark.because) for mark in marks] == [(False, ""), (True, "")]
    risky = [replace(mark, query=replace(mark.query, text="=1+1")) for mark in marks]
    write_marks(files / "risky.csv", risky)
    assert (files / "risky.csv").read_text(encoding="utf-8").count(",'=1+1,") == 2
    write_marks(files / "marks.csv", marks)
    written = (files / "marks.csv").read_text(encoding="utf-8")
    (files / "marks.csv").write_text(written.replace("d1-2,yes", "d1-2,no"), encoding="utf-8")
    assert [query.coreference for query in read_marks(files / "marks.csv", asked).queries] == [False, False]
    (files / "marks.csv").write_text("question,coreference\nd9,yes\nd1-1,maybe\n", encoding="utf-8")
    with pytest.raises(MarksError) as caught:
        read_marks(files / "marks.csv", asked)
    assert "marks.csv:2: unknown question 'd9'" in str(caught.value)
    assert "marks.csv:3: 'maybe' is neither yes nor no" in str(caught.value)


def test_a_mark_that_is_neither_true_nor_false_is_refused(files):
    text = (files / "d.jsonl").read_text(encoding="utf-8").replace("true", '"often"')
    (files / "d.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(ReadError, match="the coreference mark 'often' in 'd1' is neither true nor false"):
        read_queries(files / "d.jsonl", read_knowledge_base(files / "kb.csv"))


def test_the_corpus_may_have_a_column_of_marks(tmp_path, files):
    head = "Mode,Conversation,Exchange,Q,A,BA1,Coreference\n"
    (tmp_path / "m.csv").write_text(
        head + "PER,1,1,Who are you?,Ann.,I am Ann.,no\nPER,1,2,Why?,So.,Because.,yes\n", encoding="utf-8"
    )
    asked = read_queries(tmp_path / "m.csv", read_knowledge_base(files / "kb.csv"))
    assert [query.coreference for query in asked.queries] == [False, True]


def test_metrics_of_both_groups_are_those_of_their_questions(files):
    kb = read_knowledge_base(files / "kb.csv")
    asked = read_queries(files / "d.jsonl", kb)
    with pytest.raises(DialometerError, match="no question is marked"):
        coreference_groups(asked.subset([0]))
    (files / "marks.csv").write_text("question,coreference\nd1-1,no\n", encoding="utf-8")
    marked = read_marks(files / "marks.csv", asked)
    judges = judges_of(marked, 2)
    ann, because = kb.find("a1"), kb.find("a2")
    ranks = {"x": [ranks_from_lists([[ann, because], [ann, because]], judges[0].relevant)]}
    evaluation = evaluate(ranks, marked, judges, resampling=Resampling(n_resamples=100))
    scores = {one.group: one for one in group_scores(evaluation, marked, coreference_groups(marked))}
    assert scores[WITHOUT].answerable["SR@1"].value == 1
    assert (scores[WITH].answerable["SR@1"].value, scores[WITH].answerable["MRR"].value) == (0, 0.5)
    assert (scores[WITH].n_answerable, scores[WITHOUT].n_answerable) == (1, 1)
