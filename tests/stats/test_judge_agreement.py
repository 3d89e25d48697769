"""Agreement of a judge with raters, beside the usual coefficients of two raters and a count by hand."""

import numpy as np
import pytest

from dialometer.errors import NotEnoughData
from dialometer.stats.agreement.gwet import gwet_coefficient
from dialometer.stats.agreement.judge_agreement import judge_agreement
from dialometer.stats.agreement.kappa import cohen_kappa
from dialometer.stats.agreement.krippendorff_alpha import krippendorff_alpha


@pytest.mark.parametrize("is_ordered", [False, True])
def test_with_one_rater_it_is_the_agreement_of_two(is_ordered):
    rng = np.random.default_rng(4)
    rater = rng.integers(0, 5, 60).astype(float)
    judge = np.where(rng.random(60) < 0.6, rater, rng.integers(0, 5, 60)).astype(float)
    result = judge_agreement(rater[:, None], judge, 5, is_ordered=is_ordered, n_resamples=200)
    both = np.stack([judge, rater], axis=1)
    labels = [0.0, 1.0, 2.0, 3.0, 4.0]
    kappa = cohen_kappa(judge, rater, labels, weights="quadratic" if is_ordered else "none")
    alpha = krippendorff_alpha(both, "interval" if is_ordered else "nominal", n_resamples=0)
    gwet = gwet_coefficient(both, labels, weights="quadratic" if is_ordered else "nominal")
    assert result["kappa"].judge.value == pytest.approx(kappa.value)
    assert result["alpha"].judge.value == pytest.approx(alpha.value)
    assert result["gwet"].judge.value == pytest.approx(gwet.value)
    assert result["agreement"].judge.value == pytest.approx((judge == rater).mean())
    assert not result["kappa"].people.is_known, "one rater has no other to agree with"


def crowd(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 150)
    everyone = np.where(rng.random((150, 6)) < 0.7, truth[:, None], rng.integers(0, 3, (150, 6))).astype(float)
    ratings, judge = everyone[:, :5].copy(), everyone[:, 5]
    ratings[rng.random(ratings.shape) < 0.3] = np.nan
    return ratings, judge


def test_a_judge_who_answers_as_a_rater_does_agrees_as_raters_do():
    differences = {"kappa": [], "alpha": [], "gwet": [], "agreement": []}
    n_covered = 0
    for seed in range(20):
        result = judge_agreement(*crowd(seed), 3, is_ordered=False, n_resamples=100, seed=seed)
        for name, coefficient in result.items():
            differences[name].append(coefficient.difference.value)
        n_covered += result["kappa"].difference.low <= 0 <= result["kappa"].difference.high
    for name, values in differences.items():
        assert abs(np.mean(values)) < 0.03, name
    assert n_covered >= 17


def test_raters_among_each_other_by_a_count_of_pairs():
    ratings, judge = crowd(5)
    pairs = [
        np.mean(
            [ratings[i, j] == ratings[i, k] for j in range(5) for k in range(5) if j != k and both(ratings, i, j, k)]
        )
        for i in range(150)
        if (~np.isnan(ratings[i])).sum() > 1
    ]
    result = judge_agreement(ratings, judge, 3, is_ordered=False, n_resamples=50)
    assert result["agreement"].people.value == pytest.approx(np.mean(pairs))


def both(ratings, item, first, second):
    return not np.isnan(ratings[item, first]) and not np.isnan(ratings[item, second])


def test_too_little_in_common():
    with pytest.raises(NotEnoughData, match="2 things judged by both"):
        judge_agreement(np.ones((2, 2)), np.ones(2), 3, is_ordered=False)
