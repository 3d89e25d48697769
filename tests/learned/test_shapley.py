"""Closed-form values equal what enumeration over all subsets gives."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.learned.cmade.neighbours import distance_blocks, knn_smooth, standardise
from dialometer.learned.cmade.shapley import knn_shapley


@pytest.fixture(scope="module", autouse=True)
def _two_threads():
    """Parts go to two threads, as on any machine where nobody says otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "2")
        yield


def utility(subset, features, ratings, development, pairs, k):
    """Equation 3 of the paper, averaged over pairs, computed literally."""
    if not subset:
        return 0.0
    rated = []
    for query in development:
        near = sorted(subset, key=lambda i: (float(np.sum((features[i] - query) ** 2)), i))[:k]
        rated.append(sum(ratings[i] for i in near) / k)
    return float(np.mean([rated[better] - rated[worse] for better, worse in pairs]))


def enumerated(features, ratings, development, pairs, k):
    n = len(ratings)
    values = np.zeros(n)
    cache = {}

    def worth(subset):
        key = tuple(sorted(subset))
        if key not in cache:
            cache[key] = utility(key, features, ratings, development, pairs, k)
        return cache[key]

    for i in range(n):
        others = [j for j in range(n) if j != i]
        for size in range(n):
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            for subset in itertools.combinations(others, size):
                values[i] += weight * (worth((*subset, i)) - worth(subset))
    return values


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 10), k=st.integers(1, 12), n_dev=st.integers(2, 4), seed=st.integers(0, 10_000))
def test_equal_to_enumeration_over_all_subsets(n, k, n_dev, seed):
    rng = np.random.default_rng(seed)
    features, development = rng.normal(size=(n, 3)), rng.normal(size=(n_dev, 3))
    ratings = rng.integers(1, 6, n).astype(float)
    every = list(itertools.permutations(range(n_dev), 2))
    pairs = [every[i] for i in rng.integers(0, len(every), 3)]
    if all(p == q[::-1] for p, q in itertools.combinations(pairs, 2)):
        pairs = pairs[:1]
    closed = knn_shapley(features, ratings, development, pairs, k)
    np.testing.assert_allclose(closed, enumerated(features, ratings, development, pairs, k), atol=1e-9)


def test_values_add_up_to_the_utility_of_all():
    rng = np.random.default_rng(1)
    features, development = rng.normal(size=(300, 8)), rng.normal(size=(20, 8))
    ratings = rng.integers(1, 6, 300).astype(float)
    pairs = [(int(a), int(b)) for a, b in rng.integers(0, 20, (30, 2)) if a != b]
    values = knn_shapley(features, ratings, development, pairs, 10)
    assert values.sum() == pytest.approx(utility(range(300), features, ratings, development, pairs, 10))


def test_small_blocks_give_the_same():
    rng = np.random.default_rng(2)
    features, development = rng.normal(size=(500, 16)), rng.normal(size=(300, 16))
    ratings = rng.integers(1, 6, 500).astype(float)
    pairs = [(i, i + 150) for i in range(150)]
    told = []
    whole = knn_shapley(features, ratings, development, pairs, 25)
    parts = knn_shapley(
        features,
        ratings,
        development,
        pairs,
        25,
        block_bytes=4 * 500 * 20,
        report=lambda done, n: told.append((done, n)),
    )
    np.testing.assert_allclose(whole, parts, atol=1e-6)
    assert told == [(75, 300), (150, 300), (225, 300), (300, 300)]


def test_flipped_ratings_near_the_pairs_get_negative_values():
    """Two clusters, good and bad: ratings against their cluster hurt, ratings with it help."""
    rng = np.random.default_rng(3)
    is_good = rng.random(400) < 0.5
    features = rng.normal(size=(400, 5)) + 3.0 * is_good[:, None]
    ratings = np.where(is_good, 5.0, 1.0)
    is_flipped = rng.random(400) < 0.2
    ratings[is_flipped] = 6 - ratings[is_flipped]
    development = np.vstack([rng.normal(size=(10, 5)) + 3.0, rng.normal(size=(10, 5))])
    values = knn_shapley(features, ratings - 3, development, [(i, i + 10) for i in range(10)], 20)
    assert np.mean(values[is_flipped] < 0) > 0.95
    assert np.mean(values[~is_flipped] > 0) > 0.95


def test_bad_pairs_are_refused():
    features = np.zeros((3, 2))
    with pytest.raises(DialometerError, match="does not name two"):
        knn_shapley(features, np.ones(3), np.zeros((2, 2)), [(0, 5)])
    with pytest.raises(NotEnoughData, match="no expert pairs"):
        knn_shapley(features, np.ones(3), np.zeros((2, 2)), [])


def test_smoothing_is_the_mean_of_the_nearest_others():
    rng = np.random.default_rng(4)
    features, ratings = rng.normal(size=(60, 4)), rng.integers(1, 6, 60).astype(float)
    smoothed = knn_smooth(features, ratings, 7)
    for i in range(60):
        distances = np.sum((features - features[i]) ** 2, axis=1)
        near = [j for j in np.argsort(distances) if j != i][:7]
        assert smoothed[i] == pytest.approx(ratings[near].mean())
    with_self = knn_smooth(features, ratings, 1, is_self_included=True)
    np.testing.assert_array_equal(with_self, ratings)
    with pytest.raises(NotEnoughData, match="too few"):
        knn_smooth(features, ratings, 60)


def test_dead_dimensions_do_not_decide_who_is_near():
    rng = np.random.default_rng(5)
    live = rng.normal(size=(100, 3))
    dead = 1e-9 * rng.normal(size=(100, 2)) + 4.0
    scaled = standardise(np.hstack([live, dead, np.zeros((100, 1))]))
    assert np.isfinite(scaled).all()
    assert np.abs(scaled[:, 3:]).max() < 1e-3
    alone = standardise(live)
    for whole, part in zip(distance_blocks(scaled, scaled), distance_blocks(alone, alone), strict=True):
        np.testing.assert_allclose(whole[1], part[1], atol=1e-3)


@pytest.mark.parametrize("is_compiled", [True, False])
def test_plain_numpy_gives_what_the_compiled_loops_give(is_compiled, monkeypatch):
    """Ties included: points that are equally far count in the order they come."""
    from dialometer.learned.cmade import neighbours, shapley

    rng = np.random.default_rng(6)
    features, development = rng.integers(0, 3, (200, 4)).astype(float), rng.integers(0, 3, (30, 4)).astype(float)
    ratings = rng.integers(1, 6, 200).astype(float)
    pairs = [(n, n + 15) for n in range(15)]
    for module in (neighbours, shapley):
        monkeypatch.setattr(module, "is_compiled", lambda: is_compiled)
    values = knn_shapley(features, ratings, development, pairs, 10)
    expected = np.zeros(200)
    for query, sign in [(n, 1) for n in range(15)] + [(n, -1) for n in range(15, 30)]:
        order = np.argsort(((features - development[query]) ** 2).sum(axis=1), kind="stable")
        s = ratings[order[-1]] * 10 / (10 * 200)
        expected[order[-1]] += sign * s / 15
        for m in range(199, 0, -1):
            s += (ratings[order[m - 1]] - ratings[order[m]]) / 10 * min(10, m) / m
            expected[order[m - 1]] += sign * s / 15
    np.testing.assert_allclose(values, expected, atol=1e-12)
    numbers, distances = neighbours.nearest(features, 7)
    for row in range(200):
        exact = ((features - features[row]) ** 2).sum(axis=1)
        exact[row] = np.inf
        np.testing.assert_allclose(distances[row], np.sqrt(np.sort(exact)[:7]), atol=1e-5)
        assert row not in numbers[row]


def test_features_that_are_no_numbers_are_refused():
    features = np.ones((5, 2))
    features[3, 1] = np.nan
    with pytest.raises(DialometerError, match="dialogue number 4 are not finite"):
        knn_shapley(features, np.arange(5.0), np.ones((2, 2)), [(0, 1)])
    with pytest.raises(DialometerError, match="5 dialogues have 4 ratings"):
        knn_shapley(np.ones((5, 2)), np.arange(4.0), np.ones((2, 2)), [(0, 1)])
