"""Scores of many dialogues in parts, and which of two collections is better."""

import numpy as np
import pytest

from dialometer.learned import evaluators as scoring
from dialometer.learned.cmade.evaluator import calibrated, save_evaluator
from dialometer.learned.cmade.ranknet import RankNet
from dialometer.learned.evaluators import compare_collections, mean_probability, score_dialogues


@pytest.fixture
def evaluator(make_encoder, make_dialogues):
    model = RankNet(make_encoder(), seed=1).eval()
    scores = model.scores(model.encoder.tokens(make_dialogues(40)[0]))
    order = np.argsort(scores)
    return calibrated([model], [scores], [scores], np.column_stack([order[20:], order[:20]]))


def test_parts_change_nothing(evaluator, make_dialogues, tmp_path, monkeypatch):
    dialogues, _ = make_dialogues(25, seed=3)
    save_evaluator(tmp_path / "e", evaluator, {})
    monkeypatch.setattr(scoring, "PART", 10)
    told = []
    found = score_dialogues(tmp_path / "e", dialogues, device="cpu", report=lambda n, total: told.append((n, total)))
    np.testing.assert_allclose(found.values, evaluator.score(dialogues).values, atol=1e-4)
    assert found.members.shape == (1, 25)
    assert told == [(10, 25), (20, 25), (25, 25)]


def test_eight_bits_for_many_dialogues_that_keep_their_order(evaluator, make_dialogues, tmp_path, monkeypatch):
    dialogues, _ = make_dialogues(60, seed=3)
    save_evaluator(tmp_path / "e", evaluator, {})
    exact, quick, few = (
        score_dialogues(tmp_path / "e", dialogues, device="cpu", speed=speed).values
        for speed in ("exact", "quick", "auto")
    )
    np.testing.assert_array_equal(few, exact)
    np.testing.assert_array_equal(quick, evaluator.in_eight_bits().score(dialogues).values)
    assert 0 < np.abs(quick - exact).max() < 0.3 * exact.std()
    assert np.corrcoef(np.argsort(np.argsort(exact)), np.argsort(np.argsort(quick)))[0, 1] > 0.98
    monkeypatch.setattr(scoring, "MANY", 50)
    np.testing.assert_array_equal(score_dialogues(tmp_path / "e", dialogues, device="cpu").values, quick)
    assert scoring.order_in_eight_bits(evaluator, dialogues) > 0.98
    monkeypatch.setattr(scoring, "order_in_eight_bits", lambda *_: 0.97)
    np.testing.assert_array_equal(score_dialogues(tmp_path / "e", dialogues, device="cpu").values, exact)
    # Where 8 bits are not to be had, single precision does the work.
    monkeypatch.setattr("dialometer.learned.cmade.evaluator.has_quick_form", lambda _: False)
    unable = score_dialogues(tmp_path / "e", dialogues, device="cpu", speed="quick")
    np.testing.assert_array_equal(unable.values, exact)


def test_the_mean_probability_over_all_pairs(monkeypatch):
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.5, 1, 30), rng.normal(0, 1, 20)
    expected = np.mean([1 / (1 + np.exp(b - a)) for a in first for b in second])
    found = mean_probability(first, second)
    assert found.value == pytest.approx(expected)
    assert found.low < expected < found.high
    monkeypatch.setattr("dialometer.learned.evaluators._CELLS", 100)
    again = mean_probability(first, second)
    assert (again.low, again.high) == pytest.approx((found.low, found.high))


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.7, 1, 4000), rng.normal(0, 1, 4000)
    truth = mean_probability(a, b, n_resamples=2).value
    n_hit = 0
    for seed in range(150):
        found = mean_probability(rng.choice(a, 40), rng.choice(b, 40), seed=seed, n_resamples=400)
        n_hit += found.low <= truth <= found.high
    assert 0.87 <= n_hit / 150 <= 1


def test_a_collection_beside_itself_is_even(evaluator, make_dialogues):
    dialogues, _ = make_dialogues(12)
    assert compare_collections(evaluator, dialogues, dialogues).value == pytest.approx(0.5, abs=1e-6)
