"""Lexical retrievers beside scikit-learn, rank-bm25 and bm25s, and the compiled search beside the full product."""

import numpy as np
import pytest
from rank_bm25 import BM25Okapi
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from dialometer.retrieval.knowledge_base import Answer, assemble
from dialometer.retrieval.retriever import as_queries, make_retriever
from dialometer.retrieval.retrievers import bm25
from dialometer.retrieval.retrievers.bm25 import words

QUESTIONS = ["Where did you grow up?", "what do you study", "favourite dish, please?", "xyzzy"]


def best_question_of(kb, per_question):
    """For every answer the highest value among its own questions, found pair by pair; nan where it has none."""
    out = np.full((len(per_question), len(kb.answers)), np.nan)
    for question, answer in zip(kb.pair_question, kb.pair_answer, strict=True):
        out[:, answer] = np.fmax(out[:, answer], per_question[:, question])
    return out


def test_tfidf_is_the_cosine_of_scikit_learns_vectors(kb):
    """``TfidfVectorizer().fit(questions)`` and ``cosine_similarity`` of scikit-learn 1.9, as in the paper."""
    vectors = TfidfVectorizer().fit(kb.questions)
    cosines = cosine_similarity(vectors.transform(QUESTIONS), vectors.transform(kb.questions))
    ours = make_retriever("tfidf").fit(kb).scores(QUESTIONS)
    np.testing.assert_allclose(ours, best_question_of(kb, cosines), atol=1e-6)


def lucene_by_hand(kb, question, k1=1.5, b=0.75):
    """BM25 as Lucene defines it, word by word: ln(1 + (N - n + 0.5) / (n + 0.5)) * tf / (tf + k1 (1 - b + b len / mean))."""
    texts = [words(text) for text in kb.questions]
    mean = np.mean([len(text) for text in texts])
    out = np.zeros(len(texts))
    for word in words(question):
        n_with = sum(word in text for text in texts)
        idf = np.log(1 + (len(texts) - n_with + 0.5) / (n_with + 0.5))
        for row, text in enumerate(texts):
            tf = text.count(word)
            out[row] += idf * tf / (tf + k1 * (1 - b + b * len(text) / mean))
    return out


def test_bm25_is_lucenes_formula_word_by_word(kb):
    by_hand = np.stack([lucene_by_hand(kb, question) for question in QUESTIONS])
    ours = make_retriever("bm25").fit(kb).scores(QUESTIONS)
    np.testing.assert_allclose(ours, best_question_of(kb, by_hand), atol=1e-5)


def test_bm25_of_one_question_is_bm25s_own_score(kb):
    """``bm25s.BM25(method="lucene").get_scores(tokens)`` of bm25s 0.3."""
    import bm25s

    peer = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    peer.index([words(text) for text in kb.questions], show_progress=False)
    theirs = np.stack([peer.get_scores([w for w in words(q) if w in peer.vocab_dict]) for q in QUESTIONS[:3]])
    ours = make_retriever("bm25").fit(kb).scores(QUESTIONS[:3])
    np.testing.assert_allclose(ours, best_question_of(kb, theirs), atol=1e-5)


def test_bm25_orders_questions_as_rank_bm25_does_where_idf_agrees():
    """``BM25Okapi.get_scores``: its idf differs from Lucene's and its scores by the factor k1 + 1, so one query word at a time
    (a constant idf) must give proportional scores."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list("abcdefghijklmnop"), size=rng.integers(2, 9))) for _ in range(60)]
    kb = assemble([Answer(f"{k}", f"{k:03d}") for k in range(60)], [(f"{t} u{k}", k) for k, t in enumerate(texts)])
    peer = BM25Okapi([words(text) for text in kb.questions])
    fitted = make_retriever("bm25").fit(kb)
    for word in "acf":
        theirs = peer.get_scores([word])
        ours = fitted.scores([word])[0]
        held = theirs > 0
        assert held.any()
        assert np.array_equal(ours > 0, held)
        np.testing.assert_allclose(ours[held] / ours[held].max(), theirs[held] / theirs[held].max(), atol=2e-5)


@pytest.fixture(scope="module")
def large():
    """3,000 questions of few words, many of them alike, one in four shared by two answers."""
    rng = np.random.default_rng(5)
    vocabulary = np.array([f"w{k}" for k in range(120)])
    share = 1 / np.arange(1, 121)
    drawn = [" ".join(rng.choice(vocabulary, size=rng.integers(1, 7), p=share / share.sum())) for _ in range(3000)]
    pairs = [(text, int(rng.integers(900))) for text in drawn]
    pairs += [(text, int(rng.integers(900))) for text in drawn[::4]]
    kb = assemble([Answer(f"{k}", f"answer {k:04d}") for k in range(910)], pairs)
    asked = [" ".join(rng.choice(vocabulary, size=rng.integers(1, 9))) for _ in range(150)]
    return kb, [*asked, "unheard of", "w0 w0 w0"]


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 10, 100])
def test_the_compiled_search_finds_what_the_full_product_finds(large, k, monkeypatch):
    kb, asked = large
    fitted = make_retriever("bm25").fit(kb)
    full = fitted.rank(asked, k)
    monkeypatch.setattr(bm25, "BATCH_FROM", 0)
    quick = fitted.rank(asked, k)
    np.testing.assert_allclose(quick.scores, full.scores, atol=2e-5)
    same = quick.answers == full.answers
    assert (
        same.mean() > 0.999
    )  # sums of the same weights may differ in the sixth decimal, and then two answers change places
    rows, places = np.nonzero(~same)
    assert all(
        full.scores[r, p] == pytest.approx(quick.scores[r, p], abs=2e-5) for r, p in zip(rows, places, strict=True)
    )


@pytest.mark.slow
def test_the_compiled_search_gives_the_same_with_any_number_of_threads(large):
    kb, asked = large
    fitted = make_retriever("bm25").fit(kb)
    tokens = fitted.known_words(as_queries(asked))
    one, two = fitted.search(tokens, 10, n_threads=1), fitted.search(tokens, 10, n_threads=2)
    np.testing.assert_array_equal(one.answers, two.answers)
    np.testing.assert_array_equal(one.scores, two.scores)


def test_no_word_in_common_scores_zero_and_ranks_by_number(kb):
    ranking = make_retriever("bm25").fit(kb).rank(["xyzzy"], 3)
    assert ranking.scores.tolist() == [[0.0, 0.0, 0.0]]
    assert ranking.answers.tolist() == [sorted(ranking.answers[0].tolist())]
