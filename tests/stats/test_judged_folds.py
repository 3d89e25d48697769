"""Judges that learned from the same ratings: without cross-fitting the interval is far too narrow, with it it holds."""

import numpy as np
import pytest

from dialometer.errors import NotEnoughData
from dialometer.stats.judged.folds import cross_fitted
from dialometer.stats.judged.means import corrected, judged_mean, judged_ratings

N, ALL, N_FEATURES = 80, 400, 40


def ridge(features, values, penalty=5.0):
    """A linear model with its mean, as a learned evaluator that can fit noise."""

    def predict(training):
        x, y = features[training], values[training]
        centre = x.mean(0)
        weights = np.linalg.solve(
            (x - centre).T @ (x - centre) + penalty * np.eye(x.shape[1]), (x - centre).T @ (y - y.mean())
        )
        return y.mean() + (features - centre) @ weights

    return predict


def drawn(rng):
    """Things with features of which five matter, and what people would say of all of them; the true mean is 0."""
    features = rng.normal(size=(ALL, N_FEATURES))
    return features, features[:, :5] @ np.full(5, 0.4) + rng.normal(size=ALL)


def test_a_judge_that_has_seen_the_ratings_is_too_sure_and_a_cross_fitted_one_is_not():
    rng = np.random.default_rng(3)
    n_studies, is_rated = 300, np.arange(ALL) < N
    covered, narrower = {"seen": 0, "cross-fitted": 0}, []
    for _ in range(n_studies):
        features, values = drawn(rng)
        predict = ridge(features, values)
        for way, scores in (
            ("seen", predict(np.flatnonzero(is_rated))),
            ("cross-fitted", cross_fitted(is_rated, predict)),
        ):
            result = judged_mean(values[:N], scores[:N], scores[N:])
            covered[way] += result.both.low <= 0 <= result.both.high
        narrower.append(result.narrower)
    shares = {way: n / n_studies for way, n in covered.items()}
    assert shares["seen"] < 0.9, shares
    assert 0.92 < shares["cross-fitted"] < 0.98, shares
    assert 0.02 < np.mean(narrower) < 0.3


def test_with_weight_one_it_is_the_published_estimate():
    """``ppi_py.crossppi_mean_pointestimate`` and ``crossppi_mean_ci`` (0.2.3), with the unlabelled scores of all models."""
    features, values = drawn(np.random.default_rng(5))
    own = []

    def predict(training):
        own.append(ridge(features, values)(training))
        return own[-1]

    scores = cross_fitted(np.arange(ALL) < N, predict, seed=1)
    rest = np.stack([one[N:] for one in own], axis=1)
    assert scores[N:] == pytest.approx(rest.mean(1))
    assert rest.mean() + (values[:N] - scores[:N]).mean() == pytest.approx(0.3317311451387077, abs=1e-9)
    assert np.sqrt(rest.mean(1).var() / (ALL - N) + (values - scores)[:N].var() / N) == pytest.approx(
        0.14473838274336398, abs=1e-9
    )
    result = judged_mean(values[:N], scores[:N], scores[N:])
    tuned = np.var(values[:N] - result.weight * scores[:N], ddof=1) / N
    tuned += result.weight**2 * np.var(scores[N:], ddof=1) / (ALL - N)
    assert result.both.details["standard_error"] == pytest.approx(np.sqrt(tuned), rel=1e-6)


def test_no_model_sees_the_item_that_it_scores():
    items = np.repeat(np.arange(30), 2)
    is_rated = items < 20
    seen = []

    def predict(training):
        seen.append(set(items[training]))
        return np.full((60, 2), len(seen) - 1.0)

    scores = cross_fitted(is_rated, predict, groups=items, n_folds=4, seed=2)
    assert all(items[thing] not in seen[int(scores[thing, 0])] for thing in np.flatnonzero(is_rated))
    assert set(scores[~is_rated].ravel()) == {1.5}, "the mean of all models"
    assert all(len(part) == 15 for part in seen)


def test_too_few_items_for_the_folds_are_refused():
    with pytest.raises(NotEnoughData, match="3 rated items cannot be divided into 5 folds"):
        cross_fitted(np.arange(9) < 3, lambda _: np.zeros(9))


def test_what_the_judge_is_worth_has_an_interval_that_holds():
    """The true factor is 1 / (1 - share of unrated things * squared correlation)."""
    rng = np.random.default_rng(6)
    truth = 1 / (1 - 0.8 * 0.6)
    inside = 0
    for _ in range(300):
        quality = rng.normal(size=200)
        people = quality[:40] * np.sqrt(0.6) + rng.normal(scale=np.sqrt(0.4), size=40)
        result = corrected(judged_ratings(people, np.arange(40), quality, np.arange(200)), {"0": 1.0})
        inside += result.n_worth_low <= 40 * truth <= result.n_worth_high
        assert result.n_worth_low <= result.n_worth <= result.n_worth_high
    assert 0.9 < inside / 300 < 0.99
