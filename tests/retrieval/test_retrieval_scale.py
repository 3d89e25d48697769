"""Large knowledge bases: memory stays bounded, and nobody makes a full matrix of scores."""

import tracemalloc

import numpy as np
import pytest

from dialometer.neural.work import Work
from dialometer.retrieval import retriever as rooms
from dialometer.retrieval.knowledge_base import Answer, assemble
from dialometer.retrieval.retriever import make_retriever

N_ANSWERS = 30_000


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, 5001)
    drawn = rng.choice(5000, size=(N_ANSWERS, 5), p=share / share.sum())
    questions = [" ".join(f"w{word}" for word in row) + f" u{k}" for k, row in enumerate(drawn)]
    return assemble(
        [Answer(f"{k}", f"{k:06d}") for k in range(N_ANSWERS)], list(zip(questions, range(N_ANSWERS), strict=True))
    )


@pytest.mark.parametrize("name", ["tfidf", "random"])
def test_ranking_needs_no_more_memory_than_a_block(large, name):
    fitted = make_retriever(name).fit(large)
    asked = list(large.questions[:600])
    fitted.rank(asked[:2], 10)
    tracemalloc.start()
    fitted.rank(asked, 10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    whole = len(asked) * N_ANSWERS * 4
    block = rooms.QUERY_BATCH * rooms.ANSWER_BATCH * 4
    assert block < whole / 4
    assert peak < 9 * block  # scores of one block, in a few copies


@pytest.mark.slow
def test_many_questions_find_themselves_by_bm25(large):
    ranking = make_retriever("bm25").fit(large).rank(large.questions[:3000:7], 3)
    assert ranking.answers[:, 0].tolist() == list(large.pair_answer[np.argsort(large.pair_question)][:3000:7])


def test_many_answers_are_encoded_once_in_batches(tiny_model, tmp_path):
    kb = assemble(
        [Answer(f"{k}", f"answer {k}") for k in range(5000)], [(f"question {k % 1200}", k) for k in range(5000)]
    )
    told = []
    work = Work(
        cache=tmp_path, report=lambda what, done, total: told.append((what, done, total)), n_texts_per_batch=512
    )
    options = {"model": str(tiny_model), "approximate_from": 1000}
    fitted = make_retriever("encoder", options).fit(kb, work)
    assert fitted.nearest is not None
    assert told[0] == ("Encoding questions", 0, 1200)
    assert told[-1] == ("Encoding questions", 1200, 1200)
    ranking = fitted.rank(["question 7", "question 1100"], 3)
    assert {kb.texts[a] for a in ranking.answers[0]} <= {f"answer {k}" for k in range(7, 5000, 1200)}
    n_told = len(told)
    make_retriever("encoder", options).fit(kb, work)
    assert len(told) == n_told  # all of it came from the cache
