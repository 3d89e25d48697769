"""TF-IDF against scikit-learn's TfidfVectorizer."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from dialometer.neural.tfidf import WORD, fit_tfidf

TEXTS = [
    "What is your name? What is it, really?",
    "My name is Margarita and I come from Abu Dhabi.",
    "And what is your name, if I may ask, from there?",
    "  Do you  like\tmusic, or a film?  Do you?",
    "Ça va, à bientôt! I don't know.",
    "",
    "?!",
    "a",
]
NEW = ["What music do you know?", "nothing shared here: zzz", "", "Is it NAME name name?"]


@pytest.mark.parametrize("analyzer", ["word", "char_wb"])
@pytest.mark.parametrize("ngrams", [(1, 1), (1, 2), (2, 4), (1, 5)])
@pytest.mark.parametrize("is_sublinear", [False, True])
@pytest.mark.parametrize("min_texts", [1, 2])
@pytest.mark.parametrize("token", [WORD, r"[\w']+"])
def test_equals_scikit_learn(analyzer, ngrams, is_sublinear, min_texts, token):
    peer = TfidfVectorizer(
        analyzer=analyzer,
        ngram_range=ngrams,
        sublinear_tf=is_sublinear,
        min_df=min_texts,
        token_pattern=token if analyzer == "word" else r"(?u)\b\w\w+\b",
    ).fit(TEXTS)
    own = fit_tfidf(
        TEXTS, analyzer=analyzer, ngrams=ngrams, is_sublinear=is_sublinear, min_texts=min_texts, token=token
    )
    assert own is not None
    assert own.vocabulary == peer.vocabulary_
    np.testing.assert_allclose(own.idf, peer.idf_, rtol=1e-14)
    for texts in (TEXTS, NEW):
        np.testing.assert_allclose(own(texts).toarray(), peer.transform(texts).toarray(), rtol=1e-12, atol=1e-15)


def test_no_shared_term_is_no_vocabulary():
    assert fit_tfidf(["one two", "three four"], min_texts=2) is None
    assert fit_tfidf([]) is None
    assert fit_tfidf(["?", ""]) is None
