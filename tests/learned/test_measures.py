import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from dialometer.errors import NotEnoughData
from dialometer.learned.data.measures import (
    accuracy,
    accuracy_estimate,
    ends,
    hits,
    pair_kappa,
    paired_difference,
)
from dialometer.learned.data.pairs import NumberedPairs


def pairs_of(n, n_pairs, seed=0):
    rng = np.random.default_rng(seed)
    better = rng.integers(0, n, n_pairs)
    return NumberedPairs(better, (better + rng.integers(1, n, n_pairs)) % n)


def test_accuracy_counts_ties_half():
    pairs = NumberedPairs(np.array([0, 1, 2]), np.array([1, 2, 0]))
    assert hits(np.array([1.0, 0.0, 0.0]), pairs).tolist() == [1.0, 0.5, 0.0]
    assert accuracy(np.array([1.0, 0.0, 0.0]), pairs) == 0.5
    assert math.isnan(accuracy(np.array([1.0]), NumberedPairs(np.array([], int), np.array([], int))))
    with pytest.raises(NotEnoughData, match="no score"):
        hits(np.array([1.0, math.nan, 0.0]), pairs)


def test_bootstrap_over_dialogues_equals_redrawing_them_by_hand():
    """The same draws written out: dialogues are drawn, and every pair among the drawn ones is counted."""
    n = 12
    scores = np.random.default_rng(1).normal(size=n)
    pairs = pairs_of(n, 60)
    pairs = NumberedPairs(*np.unique(np.stack([pairs.better, pairs.worse]), axis=1))
    found = accuracy_estimate(scores, pairs, n_resamples=400, seed=7)
    is_pair = np.zeros((n, n), bool)
    is_pair[pairs.better, pairs.worse] = True
    right = hits(scores, pairs)
    hit = np.zeros((n, n))
    hit[pairs.better, pairs.worse] = right
    replicates = []
    for drawn in np.random.default_rng(7).integers(0, n, size=(400, n)):
        grid = np.ix_(drawn, drawn)
        replicates.append(hit[grid][is_pair[grid]].mean())
    low, high = np.quantile(replicates, [0.025, 0.975])
    assert found.value == pytest.approx(right.mean())
    assert (found.low, found.high) == pytest.approx((low, high))


def test_splits_are_kept_apart_and_groups_can_be_drawn():
    scores = [np.arange(10.0), -np.arange(10.0)]
    pairs = [pairs_of(10, 30), pairs_of(10, 30, seed=1)]
    both = accuracy_estimate(scores, pairs)
    assert both.value == pytest.approx(np.mean([accuracy(s, p) for s, p in zip(scores, pairs, strict=True)]))
    grouped = accuracy_estimate(scores[0], pairs[0], groups=[f"g{n // 2}" for n in range(10)])
    assert grouped.interval_method.endswith("groups of dialogues")
    assert not accuracy_estimate(scores[0], NumberedPairs(np.array([], int), np.array([], int))).is_known


def test_a_user_in_several_splits_is_drawn_for_all_of_them_together():
    """Everything measured twice is no more certain: the interval is that of one split, drawn alike."""
    scores, pairs = np.random.default_rng(1).normal(size=30), pairs_of(30, 200)
    users = [f"u{n // 3}" for n in range(30)]
    once = accuracy_estimate(scores, pairs, groups=users)
    twice = accuracy_estimate([scores, scores], [pairs, pairs], groups=users + users)
    assert ends(twice) == pytest.approx(ends(once))


@pytest.mark.parametrize(("n_users", "few"), [(1, "1 user or block of neighbours is"), (4, "4 users or blocks of")])
def test_few_users_have_an_accuracy_and_no_interval(n_users, few):
    scores, pairs = np.random.default_rng(1).normal(size=20), pairs_of(20, 100)
    found = accuracy_estimate(scores, pairs, groups=[f"u{n % n_users}" for n in range(20)])
    assert found.value == pytest.approx(accuracy(scores, pairs))
    assert ends(found) == [None, None]
    assert found.notes[0].startswith(few)


def test_kappa_is_that_of_scikit_learn():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=200) + np.arange(200) * 0.01
    better = rng.integers(100, 200, 500)
    pairs = NumberedPairs(better, rng.integers(0, 100, 500))
    found = pair_kappa(scores, pairs, seed=4)
    again = np.random.default_rng(4)
    is_right = again.random(500) < hits(scores, pairs)
    truth = again.random(500) < 0.5
    assert found == pytest.approx(cohen_kappa_score(truth, truth == is_right))
    assert found == pytest.approx(2 * accuracy(scores, pairs) - 1, abs=0.05)


def test_paired_difference_is_the_paired_t_test():
    """scipy.stats.ttest_rel(first, second) and its confidence_interval()."""
    rng = np.random.default_rng(2)
    first, second = rng.normal(0.75, 0.03, 10), rng.normal(0.72, 0.03, 10)
    found = paired_difference(first, second)
    peer = stats.ttest_rel(first, second)
    assert (found.statistic, found.p_value) == pytest.approx((peer.statistic, peer.pvalue))
    assert (found.low, found.high) == pytest.approx(tuple(peer.confidence_interval()))
    assert found.details["standard_error"] == pytest.approx(stats.sem(first - second))
    corrected = paired_difference(first, second, overlap=0.25)
    assert corrected.details["corrected_standard_error"] == pytest.approx(
        math.sqrt(np.var(first - second, ddof=1) * (0.1 + 0.25))
    )
    assert not paired_difference([0.5], [0.4]).is_known
