"""The fused retriever: forms of a turn, weights by conditional logit beside statsmodels, and cross-validation that leaks nothing."""

import warnings

import numpy as np
import pytest

from dialometer.errors import NotEnoughData
from dialometer.model.dialogue import Turn
from dialometer.retrieval.fusion import (
    PARTS,
    CandidateLists,
    candidate_lists,
    choose_weights,
    fit_weights,
    log_chance,
)
from dialometer.retrieval.knowledge_base import Answer, assemble
from dialometer.retrieval.queries import Query, QuerySet, represent, sentences, with_context
from dialometer.retrieval.retriever import make_retriever
from dialometer.retrieval.retrievers.fused import DEFAULT_WEIGHTS


def drawn_lists(n=400, n_candidates=6, weights=(2.0, -1.0, 0.0), seed=0):
    """Questions whose one right answer is drawn by the softmax of weighted scores."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, n_candidates, len(weights))).astype(np.float32)
    total = scores @ np.array(weights) + rng.gumbel(size=(n, n_candidates))
    right = np.zeros((n, n_candidates), dtype=bool)
    right[np.arange(n), total.argmax(axis=1)] = True
    return CandidateLists(scores, right, np.ones_like(right))


def test_weights_are_those_of_a_conditional_logit():
    """``statsmodels.discrete.conditional_models.ConditionalLogit(y, x, groups=question).fit()`` of statsmodels 0.14."""
    from statsmodels.discrete.conditional_models import ConditionalLogit

    lists = drawn_lists()
    n, n_candidates, n_parts = lists.scores.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = ConditionalLogit(
            lists.right.ravel().astype(int),
            lists.scores.reshape(-1, n_parts).astype(float),
            groups=np.repeat(np.arange(n), n_candidates),
        ).fit(disp=False)
    np.testing.assert_allclose(fit_weights(lists, 1e-9), peer.params, atol=2e-3)
    np.testing.assert_allclose(fit_weights(lists, 1e-9), [2.0, -1.0, 0.0], atol=0.3)


def test_several_right_answers_share_the_probability():
    lists = drawn_lists(5)
    lists.right[:, :2] = True
    weights = np.array([0.5, 0.2, 0.1])
    chances = np.exp(lists.scores @ weights)
    chances /= chances.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(log_chance(lists, weights), np.log((chances * lists.right).sum(axis=1)), rtol=1e-5)


def test_a_penalty_pulls_weights_to_zero_and_groups_choose_it():
    lists = drawn_lists(60, weights=(0.0, 0.0, 0.0))
    assert np.abs(fit_weights(lists, 1e4)).max() < 0.01
    groups = [f"d{row % 6}" for row in range(60)]
    assert np.abs(choose_weights(lists, groups, (1e-6, 1e4))).max() < 0.01  # nothing to learn: the penalty wins
    strong = drawn_lists(300)
    assert choose_weights(strong, [f"d{row % 6}" for row in range(300)], (1e-6, 1e4))[0] > 1.5


def test_questions_without_a_right_answer_teach_nothing():
    lists = drawn_lists(100)
    lists.right[50:] = False
    np.testing.assert_allclose(fit_weights(lists, 1.0), fit_weights(lists.subset(np.arange(50)), 1.0), atol=1e-4)
    lists.right[:] = False
    with pytest.raises(NotEnoughData):
        fit_weights(lists, 1.0)


def test_candidates_of_many_answers_hold_the_best_of_every_part_and_the_right_ones():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(10, 300, 2)).astype(np.float32)
    right = np.zeros((10, 300), dtype=bool)
    right[np.arange(10), scores[:, :, 0].argmin(axis=1)] = True
    lists = candidate_lists(scores, right, n_best=5)
    assert lists.scores.shape[1] <= 11
    assert lists.right.sum(axis=1).tolist() == [1] * 10
    for row in range(10):
        held = lists.scores[row][lists.held[row]]
        for part in range(2):
            assert set(np.sort(scores[row, :, part])[-5:]) <= set(held[:, part])


def test_turns_are_cut_into_sentences():
    assert sentences("That's nice. Where are you from?") == ["That's nice.", "Where are you from?"]
    assert sentences("So… what now") == ["So", "what now"]
    assert sentences("?!") == ["?!"]


def test_context_is_the_end_of_the_turn_before():
    said = (Turn("user", "Rome or Paris?"), Turn("avatar", "x" * 500 + " Both are lovely."))
    text = with_context(Query("Which one did you prefer?", said))
    assert text.endswith("Both are lovely. Which one did you prefer?")
    assert len(text) < 240
    assert with_context(Query("Hello")) == "Hello"


def test_a_forms_score_is_the_best_of_its_texts():
    form = represent([Query("One. Two."), Query("Three"), Query("Four? Five! Six.")], "sentences")
    assert form.texts == ["One.", "Two.", "Three", "Four?", "Five!", "Six."]
    scores = np.array([[1], [2], [0], [5], [4], [6]], dtype=np.float32)
    assert form.best(scores).ravel().tolist() == [2, 0, 6]


@pytest.fixture(scope="module")
def asked(kb):
    """Four short dialogues; the answer to a follow-up depends on what was said."""
    texts = [
        ("Hey! Where do you come from?", "I grew up in Chisinau, in Moldova."),
        ("Your degree?", "I studied economics in Abu Dhabi."),
    ]
    queries, dialogues, right = [], [], []
    for number in range(4):
        said = ()
        for text, answer in texts if number % 2 else reversed(texts):
            queries.append(Query(text, said, f"{number}-{len(said)}"))
            dialogues.append(f"d{number}")
            right.append((kb.find(answer),))
            said = (*said, Turn("user", text), Turn("avatar", answer))
    return QuerySet(tuple(queries), tuple(dialogues), tuple(right), ("",) * len(queries))


@pytest.fixture(scope="module")
def options(tiny_model):
    return make_retriever("fused", {"model": str(tiny_model), "n_tuning_epochs": 1, "n_read": 3, "negatives": 2})


def test_fused_scores_are_the_weighted_sum_of_its_parts(kb, options):
    fitted = options.model_copy(update={"n_read": 0}).fit(kb)
    queries = [Query("Where are you from? Tell me."), Query("Bye")]
    parts = fitted.parts.all(queries)
    assert parts.shape == (2, len(kb.answers), len(PARTS))
    expected = parts @ np.array([DEFAULT_WEIGHTS[part] for part in PARTS])
    np.testing.assert_allclose(fitted.scores(queries), expected, atol=2e-3)


def test_the_first_ten_are_read_again_and_stay_the_first_ten(kb, options):
    fitted = options.model_copy(update={"read_weight": 50.0}).fit(kb)
    queries = ["Where are you from?", "Bye", "Any food?"]
    before = options.model_copy(update={"n_read": 0}).fit(kb).rank(queries).answers
    after = fitted.rank(queries)
    for old, new in zip(before, after.answers, strict=True):
        assert set(new[:3].tolist()) == set(old[:3].tolist())
        assert new[3:].tolist() == old[3:].tolist()
    read = fitted.ranker.scores(
        [query for query in queries for _ in range(3)],
        [kb.texts[a] for row in after.answers[:, :3] for a in row],
    ).reshape(3, 3)
    assert np.all(np.diff(read, axis=1) <= 1e-3)  # at such a weight the ranker alone decides


def test_cross_validation_asks_only_what_was_not_learned(kb, asked, options, monkeypatch):
    from dialometer.retrieval.training import train_retriever as room

    learned = []
    original = type(options).fit_parts

    def watching(self, known, work):
        learned.append(set(known.questions))
        return original(self, known, work)

    monkeypatch.setattr(type(options), "fit_parts", watching)
    found = room.cross_validate_fused(kb, asked, options, n_folds=2)
    n_recorded = int((~found.from_dialogue).sum())
    recorded = room._fused_folds(kb, asked, 2, 0).recorded
    assert n_recorded == len(recorded) > 0
    for row in range(n_recorded):
        assert kb.questions[recorded[row]] not in learned[found.fold[row]]
    for name in set(asked.dialogues):
        rows = [row for row in range(len(asked)) if asked.dialogues[row] == name]
        assert len({int(found.fold[n_recorded + row]) for row in rows}) == 1  # dialogues are never split
    assert found.scores.shape == (len(found.fold), len(kb.answers), len(PARTS))
    assert np.isfinite(found.scores).all()
    assert not np.isnan(found.read).all()


def test_weights_of_a_fold_come_from_the_other_folds(kb, asked, options):
    from dataclasses import replace

    from dialometer.retrieval.training.train_retriever import cross_validate_fused

    found = cross_validate_fused(kb, asked, options.model_copy(update={"n_read": 0}), n_folds=2)
    rows = found.fold == 0
    turned = found.right.copy()
    turned[rows] = np.roll(turned[rows], 1, axis=1)
    other = replace(found, right=turned)
    np.testing.assert_array_equal(found.fused()[rows], other.fused()[rows])
    assert not np.array_equal(found.fused()[~rows], other.fused()[~rows])
    assert len(found.weights()) == len(PARTS)
    assert found.reranked(3).shape == found.right.shape


def test_dialogues_enrich_the_knowledge_base(kb, asked):
    from dialometer.retrieval.cross_validation import add_queries

    more = add_queries(kb, asked)
    assert len(more.questions) == len(kb.questions) + 2
    assert more.answers == kb.answers
    assert add_queries(kb, None) is kb


def test_very_many_answers_are_cross_validated_with_fewer_questions(large_answers):
    from dialometer.retrieval.training.train_retriever import MOST_CELLS, MOST_RECORDED, _fused_folds

    folds = _fused_folds(large_answers, None, 5, 0)
    assert len(folds.recorded) < MOST_RECORDED
    assert len(folds.recorded) * len(large_answers.answers) * len(PARTS) <= MOST_CELLS


@pytest.fixture
def large_answers():
    """20,000 answers with two questions each."""
    pairs = [(f"q{k}-{copy}", k) for k in range(20_000) for copy in (0, 1)]
    return assemble([Answer(f"{k}", f"{k:05d}") for k in range(20_000)], pairs)


def test_a_shortlist_gives_the_scores_of_all_answers(kb, asked, tiny_model):
    """Near enough to every answer, it ranks as the full sum does, answers without a question included."""
    from dialometer.neural.encoder import TextEncoder
    from dialometer.retrieval.fusion import FusionParts, Shortlist
    from dialometer.retrieval.retrievers.fused import FittedFused, Fused

    assert not kb.n_questions_of.all()
    parts = FusionParts(kb, TextEncoder(str(tiny_model)))
    assert parts.shortlist is None
    fitted = FittedFused(Fused(n_tuning_epochs=0), kb, parts, None)
    full = fitted.rank(asked.queries, 8)
    parts.shortlist = Shortlist(parts)
    short = fitted.rank(asked.queries, 8)
    np.testing.assert_array_equal(short.answers, full.answers)
    np.testing.assert_allclose(short.scores, full.scores, atol=2e-4)


def test_the_turn_before_of_the_same_person_is_a_representation():
    from dialometer.model.dialogue import Turn
    from dialometer.retrieval.queries import Query, texts_of

    before = (Turn("A", "Where were you born?", "user"), Turn("B", "In Rome.", "agent"))
    assert texts_of(Query("And your parents?", before), "asked") == ["Where were you born? And your parents?"]
    assert texts_of(Query("Hello."), "asked") == ["Hello."]
