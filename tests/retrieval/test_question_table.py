"""Tables of questions and expected answers, and the list of those that failed."""

from __future__ import annotations

import csv
import json

import pytest

from commands import invoke
from dialometer.errors import ReadError
from dialometer.retrieval.knowledge_base import read_knowledge_base
from dialometer.retrieval.queries import read_queries
from dialometer.retrieval.question_table import is_question_table

KB = """question,answer
How do I reset my password?,Use the link below the login form.
When are you open?,We are open from nine to five.
How can I pay?,By card or by bank transfer.
"""
QUESTIONS = """Question;Expected answer
I forgot my password;Use the link below the login form.
opening hours please;We are open from nine to five.
can I pay by visa?;By card or by bank transfer.
what about Norway?;
"""


@pytest.fixture
def kb_file(tmp_path):
    (tmp_path / "kb.csv").write_text(KB)
    return tmp_path / "kb.csv"


def test_questions_come_with_their_expected_answers(tmp_path, kb_file):
    kb = read_knowledge_base(kb_file)
    (tmp_path / "q.csv").write_text(QUESTIONS + "can I pay by visa?;We are open from nine to five.\n")
    asked = read_queries(tmp_path / "q.csv", kb)
    assert asked.queries[0].text == "I forgot my password"
    by_text = {
        query.text: {kb.answers[n].text for n in right} for query, right in zip(asked.queries, asked.right, strict=True)
    }
    assert by_text["what about Norway?"] == set()
    assert by_text["can I pay by visa?"] == {"By card or by bank transfer.", "We are open from nine to five."}
    rows = [{"query": "hours?", "expected": "We are open from nine to five."}]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_queries(tmp_path / "q.jsonl", kb).right == ((kb.find("We are open from nine to five."),),)


def test_an_answer_that_the_base_does_not_hold_is_named_with_its_line(tmp_path, kb_file):
    (tmp_path / "q.csv").write_text(QUESTIONS.replace("By card or by bank", "By cash or by bank"))
    with pytest.raises(ReadError, match=r"q\.csv:4: 'By cash or by bank transfer\.'"):
        read_queries(tmp_path / "q.csv", read_knowledge_base(kb_file))


def test_dialogues_are_no_table_of_questions(tmp_path):
    (tmp_path / "d.jsonl").write_text(json.dumps({"id": "d", "turns": [{"speaker": "User", "text": "Hi"}]}))
    assert not is_question_table(tmp_path / "d.jsonl")


def test_what_failed_is_listed_with_what_was_answered(tmp_path, kb_file):
    (tmp_path / "q.csv").write_text(QUESTIONS)
    words = ("retrieval", "evaluate", kb_file, tmp_path / "q.csv", "-r", "bm25", "--resamples", "100")
    shown = invoke(*words, "--failed", tmp_path / "failed.csv")
    assert "Failed at rank 1 with BM25 q-Q: 1 question" in shown
    with (tmp_path / "failed.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["question"], row["expected"]) == ("opening hours please", "We are open from nine to five.")
    assert row["answered"]
    assert json.loads(invoke(*words, "--json"))["failed"] == {"bm25": [row["id"]]}
