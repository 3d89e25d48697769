"""The alternative annotator test beside plain loops that follow the paper line by line."""

import math

import numpy as np
import pytest
from scipy import stats

from dialometer.errors import NotEnoughData
from dialometer.stats.agreement.alternative_annotator import alternative_annotator_test


def labels(rng, n_items=80, n_raters=4, right=0.7, n_classes=3):
    truth = rng.integers(0, n_classes, n_items)
    is_right = rng.random((n_items, n_raters)) < right
    return truth, np.where(is_right, truth[:, None], rng.integers(0, n_classes, (n_items, n_raters))).astype(float)


def by_the_paper(ratings, judge, kind, epsilon, q=0.05):
    """Calderon et al. 2025, section 3, with loops; raters with at least 30 items."""

    def score(guess, others):
        if kind == "labels":
            return np.mean([guess == other for other in others])
        return -math.sqrt(np.mean([(guess - other) ** 2 for other in others]))

    n_items, n_raters = ratings.shape
    p_values, advantage = {}, {}
    for j in range(n_raters):
        wins_judge, wins_rater = [], []
        for i in range(n_items):
            others = [ratings[i, k] for k in range(n_raters) if k != j and not np.isnan(ratings[i, k])]
            if np.isnan(ratings[i, j]) or np.isnan(judge[i]) or not others:
                continue
            of_judge, of_rater = score(judge[i], others), score(ratings[i, j], others)
            wins_judge.append(of_judge >= of_rater - 1e-12)
            wins_rater.append(of_rater >= of_judge - 1e-12)
        if len(wins_judge) < 30:
            continue
        advantage[j] = np.mean(wins_judge)
        difference = np.array(wins_rater, float) - np.array(wins_judge, float)
        p_values[j] = stats.ttest_1samp(difference, epsilon, alternative="less").pvalue
    ordered = sorted(p_values, key=p_values.get)
    m = len(ordered)
    harmonic = sum(1 / k for k in range(1, m + 1))
    n_rejected = max((k for k in range(1, m + 1) if p_values[ordered[k - 1]] <= k * q / (m * harmonic)), default=0)
    return p_values, advantage, n_rejected / m


@pytest.mark.parametrize("kind", ["labels", "numbers"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("right", [0.4, 0.7, 0.95])
def test_the_numbers_are_those_of_the_paper(kind, epsilon, right):
    rng = np.random.default_rng(int(100 * right))
    truth, ratings = labels(rng, n_classes=5 if kind == "numbers" else 3)
    ratings[rng.random(ratings.shape) < 0.1] = np.nan
    judge = np.where(rng.random(len(truth)) < right, truth, rng.integers(0, 3, len(truth))).astype(float)
    judge[:3] = np.nan
    result = alternative_annotator_test(ratings, judge, kind=kind, epsilon=epsilon)
    p_values, advantage, omega = by_the_paper(ratings, judge, kind, epsilon)
    for rater in result.raters:
        assert rater.p_value == pytest.approx(p_values[rater.rater], rel=1e-9)
        assert rater.judge_wins == pytest.approx(advantage[rater.rater])
    assert result.omega == pytest.approx(omega)
    assert result.passes is (omega >= 0.5)


def test_a_judge_who_knows_the_truth_passes_and_one_who_guesses_does_not():
    truth, ratings = labels(np.random.default_rng(1))
    good = alternative_annotator_test(ratings, truth.astype(float))
    guess = np.random.default_rng(2).integers(0, 3, len(truth)).astype(float)
    bad = alternative_annotator_test(ratings, guess)
    assert good.passes
    assert good.omega == 1
    assert good.difference.low > 0
    assert not bad.passes
    assert bad.difference.high < 0


def test_a_crowd_whose_raters_saw_few_items_each_is_tested_as_a_whole():
    rng = np.random.default_rng(3)
    truth, full = labels(rng, n_items=120, n_raters=60, right=0.6)
    ratings = np.full(full.shape, np.nan)
    for item in range(len(truth)):
        chosen = rng.permutation(60)[:3]
        ratings[item, chosen] = full[item, chosen]
    result = alternative_annotator_test(ratings, truth.astype(float))
    assert not result.is_by_rater
    assert result.passes
    assert result.difference.details == {"n_raters": 60, "n_items": 120}


def test_the_pooled_test_keeps_its_level_where_the_judge_is_one_of_the_raters():
    """A judge drawn as the raters are wins as often as they do: the interval of the difference covers zero."""
    n_covered = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        _, full = labels(rng, n_items=60, n_raters=13, right=0.6)
        ratings, judge = full[:, :12].copy(), full[:, 12]
        ratings[rng.random(ratings.shape) < 0.6] = np.nan
        difference = alternative_annotator_test(ratings, judge).difference
        n_covered += difference.low <= 0 <= difference.high
    assert n_covered >= 51  # 95 % would be 57


def test_nothing_in_common():
    with pytest.raises(NotEnoughData, match="two raters"):
        alternative_annotator_test([[1.0, np.nan], [np.nan, 2.0]], [1.0, 2.0])
