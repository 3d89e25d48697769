"""Retrievers on the Margarita corpus: its published size, and success rates that no later change may lower."""

import os
from pathlib import Path

import numpy as np
import pytest

from dialometer.neural.work import Work
from dialometer.retrieval.knowledge_base import read_knowledge_base
from dialometer.retrieval.queries import read_queries
from dialometer.retrieval.retriever import make_retriever

pytestmark = pytest.mark.realdata
FOLDER = Path(os.environ.get("DIALOMETER_DATA", "")) / "mdc"


@pytest.fixture(scope="module")
def corpus():
    if not os.environ.get("DIALOMETER_DATA") or not FOLDER.is_dir():
        pytest.skip("realdata: DIALOMETER_DATA does not name a folder with mdc/")
    kb = read_knowledge_base(FOLDER / "knowledge_base.csv")
    return kb, read_queries(FOLDER / "dialogues_dev.csv", kb)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Every text is encoded once for all tests."""
    return Work(cache=tmp_path_factory.mktemp("cache"))


def success(corpus, work, name, options):
    """Share of all 340 questions with a right answer among the first 1, 2 and 10, in percent."""
    kb, asked = corpus
    ranked = make_retriever(name, options).fit(kb, work).rank(asked.queries, 10)
    pairs = list(zip(ranked.answers, asked.right, strict=True))
    return [
        100 * float(np.mean([bool(set(row[:k].tolist()) & set(right)) for row, right in pairs])) for k in (1, 2, 10)
    ]


def test_the_corpus_has_its_published_size(corpus):
    kb, asked = corpus
    assert (kb.n_pairs, len(kb.answers), len(kb.questions)) == (892, 431, 758)
    assert len(asked) == 340


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "least"),
    [
        ("tfidf", {}, (57.4, 62.1, 69.1)),
        ("bm25", {}, (57.6, 62.4, 69.7)),
        ("encoder", {}, (60.0, 66.5, 77.4)),
        ("encoder-answer", {}, (20.9, 30.9, 51.8)),
        ("mixed", {}, (60.6, 68.2, 79.1)),
        ("context", {}, (61.2, 69.4, 80.3)),
        ("fused", {"n_tuning_epochs": 0}, (62.1, 71.5, 80.6)),
    ],
)
def test_success_rates(corpus, work, name, options, least):
    """Published: TF-IDF q-Q 32.4, 40.6, 49.1; best 33.2, 45.0, 66.8 (Chierici and Habash 2021, Table 4). The floors of the
    encoder and of its mix with the answer were computed beforehand by plain transformers."""
    found = success(corpus, work, name, options)
    assert all(rate >= floor - 0.35 for rate, floor in zip(found, least, strict=True)), found  # one question is 0.29%


def test_chance_finds_next_to_nothing(corpus, work):
    """Published: 0.0, 0.3, 1.5."""
    assert success(corpus, work, "random", {})[2] < 6


def test_rankings_are_complete_and_repeatable(corpus):
    kb, asked = corpus
    fitted = make_retriever("tfidf").fit(kb)
    first, again = fitted.rank(asked.queries[:20]), fitted.rank(asked.queries[:20])
    np.testing.assert_array_equal(first.answers, again.answers)
    assert first.answers.shape[1] == len(kb.answers)
