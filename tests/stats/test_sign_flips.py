"""The permutation test of a mean difference and its interval: those of scipy, one value at a time."""

import numpy as np
import pytest
from scipy import stats

from dialometer.stats.effects.permutation import permutation_paired
from dialometer.stats.retrieval.metrics import compare_questions
from dialometer.stats.retrieval.sign_flips import sign_flips


def scipy_p(differences, value):
    return stats.permutation_test(
        (differences - value,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    ).pvalue


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_holds_the_values_that_scipy_does_not_reject(seed):
    differences = np.random.default_rng(seed).normal(0.3, 0.5, size=11).round(2)
    found = sign_flips(differences, np.arange(11))
    assert found.p_value == pytest.approx(scipy_p(differences, 0.0))
    step = 1e-6
    for end, inward in ((found.low, 1), (found.high, -1)):
        assert scipy_p(differences, end + inward * step) > 0.05
        assert scipy_p(differences, end - inward * step) <= 0.05


def test_test_and_interval_never_contradict_each_other():
    """Success in the first place: most questions do not differ, where a bootstrap interval is too narrow."""
    rng = np.random.default_rng(1)
    n_rejected = 0
    for _ in range(300):
        first, second = ((rng.random(30) < share).astype(float) for share in (0.6, 0.4))
        kept = rng.random(30) < 0.6
        second = np.where(kept, first, second)
        found = compare_questions(first, second)
        if found.has_interval:
            assert (found.p_value <= 0.05) == (not found.low <= 0 <= found.high)
            assert found.low < found.value < found.high
            n_rejected += found.p_value <= 0.05
        elif found.is_known:
            assert found.p_value > 0.05
    assert n_rejected > 10


def test_five_questions_of_thirty():
    """17 [3, 30] by a bootstrap, beside p = .0625."""
    found = compare_questions(np.arange(30) < 5, np.zeros(30))
    assert found.p_value == pytest.approx(0.0625)
    assert found.low <= 0 < found.value < found.high
    assert not compare_questions(np.ones(5), np.zeros(5)).has_interval
    assert compare_questions(np.zeros(20), np.ones(20)).high == pytest.approx(
        -compare_questions(np.ones(20), np.zeros(20)).low
    )
    assert "all differences are equal" in compare_questions(np.full(9, 0.5), np.zeros(9)).notes[0]


def test_dialogues_flip_as_one_and_drawn_flips_are_near_the_complete_test():
    rng = np.random.default_rng(2)
    dialogue = np.repeat(np.arange(9), 3)
    difference = rng.normal(0.3, 0.5, size=27)
    found = sign_flips(difference, dialogue)
    sums = np.bincount(dialogue, weights=difference)
    assert found.p_value == pytest.approx(permutation_paired(sums, np.zeros(9)).p_value)
    drawn = sign_flips(difference, dialogue, n_permutations=511)
    assert drawn.p_value == pytest.approx(found.p_value, abs=0.03)
    assert (drawn.low, drawn.high) == pytest.approx((found.low, found.high), abs=0.1)


def test_the_normal_limit_is_where_drawn_flips_go(monkeypatch):
    difference = np.random.default_rng(3).normal(0.05, 0.5, size=400)
    drawn = sign_flips(difference, np.arange(400))
    monkeypatch.setattr("dialometer.stats.retrieval.sign_flips.MOST_DRAWS", 0)
    limit = sign_flips(difference, np.arange(400))
    assert limit.how == "normal limit"
    assert (limit.low, limit.high) == pytest.approx((drawn.low, drawn.high), abs=0.004)
    assert limit.p_value == pytest.approx(drawn.p_value, abs=0.01)


def test_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(4)
    inside = 0
    for seed in range(400):
        difference = rng.choice([-1.0, 0.0, 1.0], size=30, p=[0.1, 0.6, 0.3])
        found = compare_questions(difference, np.zeros(30), n_permutations=999, seed=seed)
        inside += not found.has_interval or found.low <= 0.2 <= found.high
    assert inside / 400 >= 0.93
