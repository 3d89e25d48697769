"""The statistics that only this family needs, against independent implementations and by calibration."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from dialometer.analysis.base.family import Options
from dialometer.analysis.families.candidates.first_answers import crossed_means
from dialometer.analysis.shared.correlation import clustered_spearman
from dialometer.analysis.shared.ranking import adjusted_pairs, difference, lead, lead_words, pair_rows
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.bootstrap import NO_SPREAD, bootstrap_clusters
from dialometer.stats.bootstrap.means import bootstrap_mean

OPTIONS = Options(confidence=0.95, n_resamples=500, seed=7, correction="holm")


def crossed_sample(rng, *, n_raters=14, n_questions=25, per_question=3, spread=(0.5, 0.8, 0.6)):
    """Ratings with rater, question and residual effects around 3; each question is rated by some of the raters."""
    rater_sd, question_sd, noise_sd = spread
    of_rater, of_question = rng.normal(0, rater_sd, n_raters), rng.normal(0, question_sd, n_questions)
    question = np.repeat(np.arange(n_questions), per_question)
    rater = np.concatenate([rng.permutation(n_raters)[:per_question] for _ in range(n_questions)])
    value = 3 + of_rater[rater] + of_question[question] + rng.normal(0, noise_sd, len(rater))
    return value, rater.astype(np.int64), question.astype(np.int64)


def test_crossed_means_equal_the_bootstrap_of_stats_where_they_overlap():
    value, rater, question = crossed_sample(np.random.default_rng(1))
    found = crossed_means(
        value, rater, question, [np.ones(len(value))], n_resamples=4000, seed=1, confidence=0.95
    ).mean(0)
    other = bootstrap_mean(value, raters=rater, items=question, n_resamples=4000, seed=2)
    assert found.value == pytest.approx(other.value)
    assert found.low == pytest.approx(other.low, abs=0.05)
    assert found.high == pytest.approx(other.high, abs=0.05)


def test_crossed_means_weigh_as_told():
    value, rater, question = crossed_sample(np.random.default_rng(2))
    weight = np.random.default_rng(3).random(len(value)) * (question < 12)
    found = crossed_means(value, rater, question, [weight], n_resamples=100, seed=1, confidence=0.95)
    assert found.means[0] == pytest.approx(np.average(value, weights=weight))
    assert found.n[0] == np.count_nonzero(weight)


def test_ratios_share_their_draws():
    """A group beside itself is always 1, whatever is drawn, so that there is no interval to give."""
    value, rater, question = crossed_sample(np.random.default_rng(4))
    weights = [np.ones(len(value)), np.ones(len(value)), np.zeros(len(value))]
    found = crossed_means(value, rater, question, weights, n_resamples=200, seed=1, confidence=0.95)
    same = found.ratio(0, 1)
    assert same.value == pytest.approx(1)
    assert same.notes == (NO_SPREAD,)
    assert not found.ratio(0, 2).is_known
    assert not found.mean(2).is_known


def test_crossed_intervals_hold_the_truth_at_least_as_often_as_they_say():
    rng = np.random.default_rng(8)
    hits = 0
    for seed in range(150):
        value, rater, question = crossed_sample(rng)
        found = crossed_means(
            value, rater, question, [np.ones(len(value))], n_resamples=300, seed=seed, confidence=0.9
        ).mean(0)
        hits += found.low <= 3 <= found.high
    assert 0.86 <= hits / 150 <= 0.99


def test_spearman_is_scipys_and_its_interval_that_of_plain_resampling():
    rng = np.random.default_rng(5)
    cluster = np.repeat(np.arange(40), 4)
    first = rng.integers(1, 11, 160).astype(float)
    second = np.round(0.3 * first + rng.normal(0, 2, 160) + rng.normal(0, 1, 40)[cluster], 1)
    found = clustered_spearman(first, second, cluster, OPTIONS, resampled="questions")
    assert found.value == pytest.approx(stats.spearmanr(first, second).statistic)
    slow = bootstrap_clusters(
        lambda rows: stats.spearmanr(first[rows], second[rows]).statistic,
        cluster,
        method="rho",
        n_resamples=1500,
        seed=3,
    )
    assert found.low == pytest.approx(slow.low, abs=0.04)
    assert found.high == pytest.approx(slow.high, abs=0.04)


def test_spearman_says_why_it_cannot():
    assert "does not vary" in clustered_spearman([1, 1, 1], [1, 2, 3], [1, 2, 3], OPTIONS, resampled="raters").notes[0]
    assert "at least three" in clustered_spearman([1, 2], [1, 2], [1, 2], OPTIONS, resampled="raters").notes[0]
    few = clustered_spearman([1, 2, 3, 4], [1, 3, 2, 4], [1, 1, 2, 2], OPTIONS, resampled="raters")
    assert few.is_known
    assert not few.has_interval
    gaps = clustered_spearman([1, np.nan, 3, 4, 5], [1, 2, np.nan, 3, 2], range(5), OPTIONS, resampled="raters")
    assert gaps.n == 3


def gap(value, p):
    return Estimate(value, 30, "difference", low=value - 0.2, high=value + 0.2, p_value=p)


def test_the_leader_is_told_from_those_it_beats_only():
    scores = {name: Estimate(value, 30, "mean") for name, value in (("a", 3.0), ("b", 4.0), ("c", 3.9))}
    pairs = adjusted_pairs(
        {("a", "b"): gap(-1.0, 0.001), ("a", "c"): gap(-0.9, 0.002), ("b", "c"): gap(0.1, 0.6)}, "holm"
    )
    found = lead(scores, pairs, confidence=0.95)
    assert (found.best, found.behind, found.level) == ("b", ("a",), ("c",))
    assert not found.is_clear
    words = lead_words(found, pairs, "holm")
    assert "b is ahead of a (p\u00a0=\u00a0.003)" in words
    assert "does not differ significantly from c (p\u00a0=\u00a0.600)" in words
    level = dataclasses.replace(found, behind=(), level=("a", "c"))
    assert "b does not differ significantly from a (p\u00a0=\u00a0.003) or c (p\u00a0=\u00a0.600)" in lead_words(
        level, pairs, "holm"
    )
    assert difference(pairs, "b", "a").value == 1.0
    assert difference(pairs, "b", "a").low == pytest.approx(0.8)
    assert difference(pairs, "a", "d") is None
    rows = pair_rows(pairs, "holm")
    assert [row[:2] for row in rows] == [("b", "a"), ("c", "a"), ("b", "c")]
    assert all(row[2].value > 0 for row in rows)


def test_shared_first_places_are_named():
    scores = {"a": Estimate(0.8, 30, "share"), "b": Estimate(0.8, 30, "share"), "c": unknown("share", "no data")}
    pairs = adjusted_pairs({("a", "b"): unknown("test", "no pair differs")}, "holm")
    found = lead(scores, pairs, confidence=0.95)
    assert found.first == ("a", "b")
    assert found.level == ("b",)
    assert lead({"c": scores["c"]}, {}, confidence=0.95) is None
    alone = lead({"a": scores["a"]}, {}, confidence=0.95)
    assert lead_words(alone, {}, "holm") == "a is the only one with a score."


def test_rounding_does_not_show():
    pairs = adjusted_pairs({("a", "b"): Estimate(0.3, 30, "difference", low=4e-17, high=0.6, p_value=0.05)}, "none")
    assert pairs["a", "b"].low == 0.0
    assert math.isclose(pairs["a", "b"].details["p_adjusted"], 0.05)
