"""Pooled candidates: the union of first answers after three turns, gold among them, nobody unchecked."""

import numpy as np
import pytest

from dialometer.errors import DialometerError
from dialometer.model.dialogue import Turn
from dialometer.retrieval.pool import handed_out, pool, window
from dialometer.retrieval.queries import Query, QuerySet
from dialometer.retrieval.retriever import RankedAnswers, make_retriever


def turns(text):
    """``uau`` is user, agent, user; texts count from 1."""
    roles = {"u": "user", "a": "agent"}
    return tuple(Turn(roles[letter], f"{letter}{n}", roles[letter]) for n, letter in enumerate(text, 1))


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        ("", ["now"]),
        ("a", ["now"]),  # a greeting of the avatar is no question
        ("ua", ["u1", "a2", "now"]),
        ("uaua", ["u3", "a4", "now"]),
        ("uaa", ["now"]),  # two turns of the avatar: no window of three begins with a question
        ("uu", ["u1", "u2", "now"]),
    ],
)
def test_the_window_begins_with_a_question_and_ends_with_the_one_asked(before, shown):
    found = window(Query("now", turns(before)))
    assert [turn["text"] for turn in found] == shown
    assert found[0]["speaker"] == found[-1]["speaker"] == "A"


@pytest.fixture(scope="module")
def rankings(kb, asked):
    return {name: make_retriever(name).fit(kb).rank(asked.queries, 10) for name in ("bm25", "tfidf")}


def test_the_union_of_the_first_ten_with_ranks(kb, asked, rankings):
    items = pool(kb, asked, rankings, seed=1)
    for row, query in enumerate(asked.queries):
        own = {i["metadata"]["answer"]: i for i in items if i["metadata"]["question"] == query.id}
        wanted = {kb.answers[n].id for ranking in rankings.values() for n in ranking.answers[row].tolist() if n >= 0}
        right = {kb.answers[n].id for n in asked.right[row]}
        assert set(own) == wanted | right
        assert {name for name, item in own.items() if item["is_gold"]} == right
        for name, ranking in rankings.items():
            told = {item["ranks"][name]: answer for answer, item in own.items() if name in item["ranks"]}
            there = [kb.answers[n].id for n in ranking.answers[row].tolist() if n >= 0]
            assert [told[rank] for rank in sorted(told)] == there


def test_the_order_tells_nothing_and_is_drawn_from_the_seed(kb, asked, rankings):
    first, again, other = (pool(kb, asked, rankings, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert [item["candidate"] for item in first] != [item["candidate"] for item in other]
    places = [
        number
        for query in asked.queries
        for number, item in enumerate([i for i in first if i["metadata"]["question"] == query.id])
        if item["is_gold"]
    ]
    assert len(set(places)) > 5  # gold does not always stand at the same place


def test_without_marks_gold_is_what_was_said(kb, asked, rankings):
    silent = QuerySet(asked.queries, asked.dialogues, ((),) * len(asked), asked.replies)
    gold = [item for item in pool(kb, silent, rankings) if item["is_gold"]]
    assert len(gold) == len(asked)
    assert {item["candidate"]["text"] for item in gold} == set(asked.replies)
    unknown = [item for item in gold if item["metadata"]["answer"].startswith("said-")]
    known = {answer.text for answer in kb.answers}
    assert all(item["ranks"] == {} for item in unknown)
    assert any(item["candidate"]["text"] not in known for item in unknown)


def test_a_retriever_that_skipped_questions_is_refused(kb, asked):
    short = RankedAnswers(np.zeros((1, 3), dtype=np.int64), np.zeros((1, 3), dtype=np.float32))
    with pytest.raises(DialometerError, match="ranked 1 of 36"):
        pool(kb, asked, {"lazy": short})


def test_everybody_gets_one_of_a_few_telling_gold_answers(kb, asked, rankings):
    items = pool(kb, asked, rankings)
    ids = handed_out(items, seed=3)
    by_id = {item["id"]: item for item in items}
    assert 1 <= len(ids) <= 24
    assert ids == handed_out(items, seed=3)
    assert all(by_id[name]["is_gold"] for name in ids)
    assert all(len(by_id[name]["candidate"]["text"].split()) >= 5 for name in ids)
    assert handed_out([item for item in items if not item["is_gold"]]) == []
