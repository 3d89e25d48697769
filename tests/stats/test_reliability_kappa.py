import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from dialometer.errors import NotEnoughData, UnknownName
from dialometer.stats.agreement.kappa import (
    CONFIGURATIONS,
    cohen_kappa,
    disagreement_weights,
    kappa_from_table,
    kappa_of_pairs,
    kappa_of_tables,
)

LABELS = [1, 2, 3, 4, 5]
WEIGHTS = ["none", "linear", "quadratic"]


def pairs(seed, n=80, high=6):
    rng = np.random.default_rng(seed)
    first = rng.integers(1, high, n)
    return first, np.clip(first + rng.integers(-2, 3, n), 1, 5)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("seed", range(3))
def test_equals_scikit_learn(weights, seed):
    first, second = pairs(seed)
    peer = cohen_kappa_score(first, second, labels=LABELS, weights=None if weights == "none" else weights)
    assert cohen_kappa(first, second, LABELS, weights=weights).value == pytest.approx(peer, abs=1e-12)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_standard_errors_equal_statsmodels(weights):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from statsmodels.stats.inter_rater import cohens_kappa

        first, second = pairs(4)
        table = np.zeros((5, 5))
        np.add.at(table, (first - 1, second - 1), 1)
        name = {"none": None, "linear": "linear", "quadratic": "fc"}[weights]
        peer = cohens_kappa(table, wt=name)
    result = cohen_kappa(first, second, LABELS, weights=weights)
    assert result.value == pytest.approx(peer.kappa, abs=1e-12)
    assert result.details["standard_error"] == pytest.approx(peer.std_kappa, rel=1e-9)
    assert result.statistic == pytest.approx(peer.z_value, rel=1e-9)
    assert result.p_value == pytest.approx(peer.pvalue_two_sided, rel=1e-6, abs=1e-300)
    np.testing.assert_allclose([result.low, result.high], [peer.kappa_low, peer.kappa_upp], rtol=1e-9)


def test_labels_come_from_the_scale():
    first, second = [1, 1, 1, 4, 4, 5, 5], [1, 1, 4, 4, 5, 5, 5]  # nobody chose 2 or 3
    on_scale = cohen_kappa(first, second, LABELS, weights="quadratic").value
    assert on_scale == pytest.approx(cohen_kappa_score(first, second, labels=LABELS, weights="quadratic"))
    assert abs(on_scale - cohen_kappa_score(first, second, weights="quadratic")) > 0.03
    words = ["bad", "good"]
    assert cohen_kappa(["bad", "good", "good"], ["bad", "good", "bad"], words).value == pytest.approx(0.4)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_bootstrap_equals_drawing_pairs(weights):
    first, second = pairs(5, n=60)
    result = cohen_kappa(first, second, LABELS, weights=weights, interval="percentile", n_resamples=4000, seed=1)
    rng = np.random.default_rng(2)
    draws = rng.integers(0, 60, size=(1500, 60))
    name = None if weights == "none" else weights
    slow = [cohen_kappa_score(first[row], second[row], labels=LABELS, weights=name) for row in draws]
    np.testing.assert_allclose([result.low, result.high], np.quantile(slow, [0.025, 0.975]), atol=0.03)
    assert (result.seed, result.n_resamples) == (1, 4000)
    assert result.interval_method == "percentile bootstrap over pairs"
    assert result.p_value == cohen_kappa(first, second, LABELS, weights=weights).p_value


def test_intervals_cover():
    rng = np.random.default_rng(6)
    truth = np.array([[0.3, 0.05, 0.02], [0.05, 0.2, 0.06], [0.02, 0.05, 0.25]])
    value = float(kappa_of_tables(truth[None], disagreement_weights(3, "linear"))[0])
    hits = {"analytic": 0, "percentile": 0}
    for _ in range(200):
        table = rng.multinomial(150, truth.ravel()).reshape(3, 3)
        for interval in hits:
            result = kappa_from_table(table, weights="linear", interval=interval, n_resamples=200)
            hits[interval] += result.low <= value <= result.high
    assert min(hits.values()) / 200 > 0.9  # nominal 0.95


lists = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=40)


@settings(max_examples=60)
@given(lists, st.sampled_from(WEIGHTS))
def test_symmetric_and_bounded(drawn, weights):
    first, second = zip(*drawn, strict=True)
    one, two = cohen_kappa(first, second, LABELS, weights=weights), cohen_kappa(second, first, LABELS, weights=weights)
    if not one.is_known:
        assert not two.is_known
        assert len(set(first) | set(second)) == 1
        return
    assert one.value == pytest.approx(two.value, abs=1e-12)
    assert -1 - 1e-12 <= one.value <= 1 + 1e-12
    assert cohen_kappa(first, first, LABELS, weights=weights).value in (
        pytest.approx(1),
        pytest.approx(math.nan, nan_ok=True),
    )


@settings(max_examples=30)
@given(lists)
def test_reversed_scale_gives_the_same(drawn):
    first, second = (np.array(side) for side in zip(*drawn, strict=True))
    for weights in WEIGHTS:
        plain, turned = (
            cohen_kappa(a, b, LABELS, weights=weights).value for a, b in ((first, second), (6 - first, 6 - second))
        )
        assert plain == pytest.approx(turned, abs=1e-12, nan_ok=True)


def test_degenerate_and_misuse():
    same = cohen_kappa([3, 3, 3], [3, 3, 3], LABELS)
    assert not same.is_known
    assert "percent agreement" in same.notes[0]
    assert not cohen_kappa([], [], LABELS).is_known
    assert not cohen_kappa([np.nan, 2.0], [1.0, np.nan], LABELS).is_known
    assert "1 pairs" in cohen_kappa([1], [1], LABELS).notes[0]
    partly = cohen_kappa([1.0, 2.0, np.nan, 4.0], [1.0, 3.0, 2.0, 4.0], LABELS)
    assert partly.n == 3
    assert "1 of 4 pairs excluded" in partly.notes[0]
    with pytest.raises(NotEnoughData, match="not a label"):
        cohen_kappa([1, 9], [1, 2], LABELS)
    with pytest.raises(NotEnoughData, match="same items"):
        cohen_kappa([1, 2, 3], [1, 2], LABELS)
    with pytest.raises(UnknownName, match="quadratic"):
        cohen_kappa([1, 2], [1, 2], LABELS, weights="quadratik")


THREE = np.array([[1, 2, 5], [4, 1, 4], [5, 3, 1], [2, 2, 2], [5, 4, 2], [1, 5, 3]])


@pytest.mark.parametrize(
    ("choice", "ties", "expected"),
    [
        ("closest", "lower", [(1, 2), (4, 4), (1, 3), (2, 2), (4, 5), (1, 3)]),
        ("closest", "upper", [(1, 2), (4, 4), (3, 5), (2, 2), (4, 5), (3, 5)]),
        ("lowest", "random", [(1, 2), (1, 4), (1, 3), (2, 2), (2, 4), (1, 3)]),
        ("highest", "random", [(2, 5), (4, 4), (3, 5), (2, 2), (4, 5), (3, 5)]),
        ("furthest", "random", [(1, 5), (1, 4), (1, 5), (2, 2), (2, 5), (1, 5)]),
    ],
)
def test_chosen_pairs_by_hand(choice, ties, expected):
    result = kappa_of_pairs(THREE, LABELS, choice, ties=ties, sides="sorted", n_resamples=20, n_permutations=20)
    first, second = zip(*expected, strict=True)
    assert result.kappa.value == pytest.approx(cohen_kappa_score(first, second, labels=LABELS, weights="linear"))
    assert result.n_ambiguous == (2 if choice == "closest" else 0)


def test_sides_as_given():
    result = kappa_of_pairs(THREE, LABELS, "lowest", sides="given", n_resamples=20, n_permutations=20)
    first, second = zip((1, 2), (4, 1), (3, 1), (2, 2), (4, 2), (1, 3), strict=True)
    assert result.kappa.value == pytest.approx(cohen_kappa_score(first, second, labels=LABELS, weights="linear"))


def test_closest_of_pure_chance_looks_like_agreement_and_the_null_says_so():
    ratings = np.random.default_rng(8).integers(1, 6, size=(400, 3))
    few = {"n_resamples": 300, "n_permutations": 200, "seed": 4}
    results = {choice: kappa_of_pairs(ratings, LABELS, choice, **few) for choice in CONFIGURATIONS}
    closest = results["closest"]
    assert closest.kappa.value > 0.55
    assert closest.null.low <= closest.kappa.value <= closest.null.high
    assert closest.kappa.p_value > 0.02
    assert "shuffled" in closest.kappa.notes[-1]
    assert abs(results["random"].null.value) < 0.02
    assert abs(results["random"].kappa.value) < 0.12
    for result in results.values():
        assert result.null.low < result.null.value < result.null.high
        assert result.null.n_resamples == 200


def test_real_agreement_beats_the_null():
    rng = np.random.default_rng(9)
    ratings = np.clip(rng.integers(1, 6, size=(200, 1)) + rng.integers(-1, 2, size=(200, 3)), 1, 5)
    for choice in CONFIGURATIONS:
        result = kappa_of_pairs(ratings, LABELS, choice, n_resamples=200, n_permutations=99)
        assert result.kappa.value > result.null.high
        assert result.kappa.p_value == pytest.approx(0.01)
        assert result.kappa.low < result.kappa.value < result.kappa.high


def test_draws_start_from_the_seed():
    ratings = np.random.default_rng(10).integers(1, 6, size=(60, 3))
    one, two, three = (
        kappa_of_pairs(ratings, LABELS, "random", n_permutations=20, n_resamples=20, seed=s) for s in (1, 1, 2)
    )
    assert one == two
    assert one.kappa.value != three.kappa.value


def test_permutation_p_values_are_uniform_enough_under_chance():
    rng = np.random.default_rng(11)
    p_values = [
        kappa_of_pairs(
            rng.integers(1, 6, (60, 3)), LABELS, "closest", n_resamples=2, n_permutations=99, seed=s
        ).kappa.p_value
        for s in range(100)
    ]
    assert np.mean(np.array(p_values) <= 0.1) < 0.2
    assert 0.35 < np.mean(p_values) < 0.65


def test_items_with_other_numbers_of_ratings():
    ratings = np.array(
        [[1, 2, 5, np.nan], [4, 4, np.nan, np.nan], [3, np.nan, np.nan, np.nan], [5, 1, 4, 2], [2, 2, 3, np.nan]]
    )
    result = kappa_of_pairs(ratings, LABELS, "highest", sides="sorted", n_resamples=20, n_permutations=20)
    first, second = zip((2, 5), (4, 4), (4, 5), (2, 3), strict=True)
    assert result.kappa.value == pytest.approx(cohen_kappa_score(first, second, labels=LABELS, weights="linear"))
    assert "1 of 5 items excluded" in result.kappa.notes[0]
    assert "1 items have two ratings only" in result.kappa.notes[1]
    for choice in ("closest", "lowest", "random"):
        assert kappa_of_pairs(ratings, LABELS, choice, n_resamples=20, n_permutations=20).kappa.n == 4


def test_degenerate_pairs_and_misuse():
    for ratings in (np.full((5, 3), np.nan), np.array([[1.0, 2, 3]]), np.ones((4, 1))):
        result = kappa_of_pairs(ratings, LABELS)
        assert not result.kappa.is_known
        assert not result.null.is_known
        assert "at least 2" in result.kappa.notes[0]
    flat = kappa_of_pairs(np.full((5, 3), 4), LABELS, n_permutations=10)
    assert not flat.kappa.is_known
    assert "percent agreement" in flat.kappa.notes[0]
    with pytest.raises(UnknownName, match="closest"):
        kappa_of_pairs(THREE, LABELS, "closes")
    with pytest.raises(UnknownName, match="ties"):
        kappa_of_pairs(THREE, LABELS, ties="first")
