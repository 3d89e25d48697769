"""Topics: the shares of a context beside scikit-learn's, and that topics are found again."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.decomposition import LatentDirichletAllocation

from dialometer.errors import DialometerError
from dialometer.generators.topics import TopicModel, fit_topics


@pytest.fixture(scope="module")
def fitted():
    """scikit-learn's model of counts with three plain topics, and ours with its weights."""
    rng = np.random.default_rng(5)
    shares = np.repeat(np.eye(3), 10, axis=1) * 0.9 + 0.1 / 3
    rows = np.array([rng.multinomial(12, shares[k % 3] / shares[k % 3].sum()) for k in range(200)])
    model = LatentDirichletAllocation(n_components=3, learning_method="online", random_state=0, max_iter=5).fit(rows)
    return (
        model,
        TopicModel(model.components_.astype(np.float32), np.arange(30) + 5, float(model.doc_topic_prior_)),
        rows,
    )


def test_shares_of_topics_are_those_of_scikit_learn(fitted):
    """``LatentDirichletAllocation.transform`` with its own tolerance; rows of equal content give equal shares."""
    model, ours, rows = fitted
    texts = [np.repeat(np.arange(30) + 5, row) for row in rows]
    theirs = model.transform(csr_matrix(rows))
    np.testing.assert_allclose(ours.mixtures(texts), theirs, atol=2e-3)
    assert (ours.topics_of(texts) == theirs.argmax(axis=1)).all()


def test_words_that_are_no_topic_words_change_nothing(fitted):
    _, ours, rows = fitted
    text = np.repeat(np.arange(30) + 5, rows[0])
    with_others = np.concatenate([text, [0, 1, 4, 35, 4000]])
    np.testing.assert_allclose(ours.mixtures([with_others]), ours.mixtures([text]))
    np.testing.assert_allclose(ours.mixtures([[1, 2]]), np.full((1, 3), 1 / 3))
    assert ours.mixtures([[1], [2]]).shape == (2, 3)


def test_the_words_of_a_topic_belong_together(corpus):
    words = {corpus.vocabulary.pieces[t].strip() for t in corpus.topics.words}
    assert {"guitar", "oven", "striker"} <= words
    assert not {"the", "You", "said"} & words
    best = corpus.topics.top_words(5)
    assert best.shape == (3, 5)
    assert all(len(set(row)) == 5 for row in best.tolist())


def test_topics_need_words(corpus):
    with pytest.raises(DialometerError, match="too few for 500 topics"):
        fit_topics(corpus.split("train"), corpus.vocabulary, n_topics=500)
