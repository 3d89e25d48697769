"""Human raters corrected by judges: numbers of ppi-python 0.2.3 and truescore 0.7.4, strata, weights, clusters, and coverage."""

import numpy as np
import pytest

from dialometer.errors import NotEnoughData
from dialometer.stats.judged.bootstrap import judged_mean_bootstrap
from dialometer.stats.judged.means import NO_WEIGHT, corrected, judged_mean, judged_ratings
from dialometer.stats.judged.strengths import (
    JudgedVotes,
    fit_logistic,
    judged_strengths,
    logistic_covariance,
    pair_design,
    strength_contrasts,
    tuned_weight,
)

N, ALL = 60, 300
PLACE = np.arange(float(ALL))
QUALITY = 1.3 * np.sin(1.7 * PLACE)
PEOPLE = QUALITY + 0.6 * np.cos(2.9 * PLACE)
JUDGE = 0.8 * QUALITY + 0.3 + 0.4 * np.sin(5.1 * PLACE + 1)


@pytest.mark.parametrize(
    ("people", "judge", "point", "weight", "error"),
    [
        (PEOPLE, JUDGE, -0.001054653469458433, 0.8515411058483805, 0.08444635605373514),
        (PEOPLE, -JUDGE, 0.003958249787113811, 0.0, 0.1298698357079117),
        ((PEOPLE > 0) * 1.0, (JUDGE > 0.2) * 1.0, 0.5972516752653738, 0.6595979363102651, 0.0417511658638608),
    ],
    ids=["good", "harmful", "votes"],
)
def test_means_are_those_of_ppi_python_and_truescore(people, judge, point, weight, error):
    """``ppi_py.ppi_mean_pointestimate(y, f, u)`` and ``truescore.correct.ppi_estimate``: point, lambda, standard error."""
    result = judged_mean(people[:N], judge[:N], judge[N:])
    assert result.both.value == pytest.approx(point, abs=1e-9)
    assert result.weight == pytest.approx(weight, abs=1e-9)
    assert result.both.details["standard_error"] == pytest.approx(error, abs=1e-9)
    assert result.people.value == pytest.approx(people[:N].mean())
    assert result.judge.value == pytest.approx(judge.mean())
    assert np.isnan(result.judge.p_value)


def test_a_harmful_judge_leaves_people_alone():
    result = judged_mean(PEOPLE[:N], -JUDGE[:N], -JUDGE[N:])
    assert NO_WEIGHT in result.both.notes
    assert (result.both.low, result.both.high) == (result.people.low, result.people.high)
    assert result.narrower == 0
    assert result.n_worth == N


def test_differences_are_those_of_the_pairs():
    """The difference of two systems on the same items is the mean of the items' differences (ppi-python: -0.01628281)."""
    second, judged = np.roll(PEOPLE, 1), np.roll(JUDGE, 1)
    items = np.tile(np.arange(ALL), 2)
    group = np.repeat(["a", "b"], ALL)
    is_rated = items < N
    data = judged_ratings(
        np.concatenate([PEOPLE, second])[is_rated],
        items[is_rated],
        np.concatenate([JUDGE, judged]),
        items,
        groups=group[is_rated],
        judge_groups=group,
    )
    result = corrected(data, {"a": 1.0, "b": -1.0})
    alone = judged_mean((PEOPLE - second)[:N], (JUDGE - judged)[:N], (JUDGE - judged)[N:])
    assert result.both.value == pytest.approx(-0.01628281, abs=1e-6)
    for own, other in ((result.both, alone.both), (result.people, alone.people), (result.judge, alone.judge)):
        assert (own.value, own.low, own.high) == pytest.approx((other.value, other.low, other.high), abs=1e-9)


def test_one_stratum_or_equal_probabilities_change_nothing():
    plain = judged_mean(PEOPLE[:N], JUDGE[:N], JUDGE[N:])
    items = np.arange(ALL)
    strata, chances = dict.fromkeys(map(str, items), "x"), np.full(N, 0.2)
    data = judged_ratings(PEOPLE[:N], items[:N], JUDGE, items, probabilities=chances, strata=strata)
    result = corrected(data, {"0": 1.0})
    assert (result.both.value, result.both.low, result.weight) == pytest.approx(
        (plain.both.value, plain.both.low, plain.weight)
    )


@pytest.mark.parametrize("n_raters", [12, 6])
def test_degrees_of_freedom_are_satterthwaites_where_raters_and_items_are_many(n_raters):
    """Each rater and each item is left out in turn here, by hand."""
    rng = np.random.default_rng(8)
    n_items = 24
    item, rater = np.repeat(np.arange(n_items), 2), np.tile(np.arange(n_raters), 2 * n_items // n_raters)
    value = rng.normal(size=n_items)[item] + rng.normal(scale=0.5, size=n_raters)[rater] + rng.normal(size=len(item))
    data = judged_ratings(value, item, rng.normal(size=5 * n_items), np.arange(5 * n_items), raters=rater)
    people = corrected(data, {"0": 1.0}).people

    def spread(cluster):
        means = [value[cluster != name].mean() for name in np.unique(cluster)]
        return (len(means) - 1) / len(means) * np.sum((np.array(means) - value.mean()) ** 2)

    over_items, over_raters = spread(item), spread(rater)
    squared = people.details["standard_error"] ** 4
    pooled = squared / (over_items**2 / (n_items - 1) + over_raters**2 / (n_raters - 1))
    assert n_raters - 1 < pooled < n_items - 1
    assert people.df == pytest.approx((pooled if n_raters == 12 else n_raters - 1,))


def test_items_of_one_prompt_are_one_draw():
    """Every item twice, with the same answers: as sure as once, and not more; with raters who judge once, as sure as by items."""
    rng = np.random.default_rng(3)
    n, n_all = 40, 200
    quality = rng.normal(size=n_all)
    value, score = quality[:n] + rng.normal(size=n), quality + rng.normal(size=n_all)
    items = np.array([f"i{k}" for k in range(n_all)])
    again = np.concatenate([items, np.char.add(items, "b")])
    rated = np.concatenate([items[:n], np.char.add(items[:n], "b")])
    prompts = {item: item.removesuffix("b") for item in again.tolist()}
    once = corrected(judged_ratings(value, items[:n], score, items), {"0": 1.0})
    twice, apart = (
        corrected(judged_ratings(np.tile(value, 2), rated, np.tile(score, 2), again, prompts=given), {"0": 1.0})
        for given in (prompts, None)
    )
    assert twice.both.value == pytest.approx(once.both.value, abs=0.3 * once.both.details["standard_error"])
    for name in ("people", "both"):
        errors = [getattr(made, name).details["standard_error"] for made in (once, twice, apart)]
        assert errors[1] == pytest.approx(errors[0], rel=0.05)
        assert errors[2] == pytest.approx(errors[0] / np.sqrt(2), rel=0.05)


def test_strata_count_by_their_items_and_not_by_their_judgments():
    """Half of the items of a stratum far above the other are judged, a twentieth of the other's."""
    items = np.arange(400)
    stratum = np.where(items < 100, "high", "low")
    value = np.where(items < 100, 10.0, 0.0) + 0.1 * np.sin(items)
    rated = np.concatenate([items[:50], items[100:115]])
    strata = dict(zip(map(str, items), stratum, strict=True))
    result = corrected(judged_ratings(value[rated], rated, value, items, strata=strata), {"0": 1.0})
    assert result.people.value == pytest.approx(2.5, abs=0.05)
    assert result.both.value == pytest.approx(value.mean(), abs=0.02)
    chances = np.where(rated < 100, 0.5, 0.05)
    weighted = corrected(judged_ratings(value[rated], rated, value, items, probabilities=chances), {"0": 1.0})
    assert weighted.people.value == pytest.approx(2.5, abs=0.05)
    assert weighted.both.value == pytest.approx(value.mean(), abs=0.3)


def test_fixed_items_that_all_were_judged_leave_the_judge_nothing():
    data = judged_ratings(PEOPLE[:N], np.arange(N), JUDGE[:N], np.arange(N), raters=np.arange(N) % 12)
    result = corrected(data, {"0": 1.0})
    assert result.weight == 0
    assert result.both.value == result.people.value


def test_things_without_a_score_and_missing_answers_are_kept_apart():
    scores = JUDGE.copy()
    scores[:5] = np.nan
    values = PEOPLE[:N].copy()
    values[5] = np.nan
    result = corrected(judged_ratings(values, np.arange(N), scores, np.arange(ALL)), {"0": 1.0})
    assert result.both.n == N - 1
    assert result.people.value == pytest.approx(np.nanmean(values))
    assert result.weight > 0.5


def test_a_thing_scored_twice_and_too_few_judgments_are_refused():
    with pytest.raises(NotEnoughData, match="twice"):
        judged_ratings(PEOPLE[:3], [0, 1, 2], JUDGE[:2], [0, 0])
    result = judged_mean(PEOPLE[:2], JUDGE[:2], JUDGE[2:])
    assert not result.both.is_known
    assert result.judge.is_known


def test_strengths_are_those_of_ppi_python():
    """``ppi_py.ppi_logistic_pointestimate`` and half the width of ``ppi_logistic_ci`` over the normal quantile."""
    design = np.stack([np.sin(PLACE), np.cos(1.3 * PLACE), np.sin(0.7 * PLACE + 0.5)], axis=1)
    vote = (np.sin(1.1 * PLACE) + design @ [0.6, -0.3, 0.2] > 0) * 1.0
    judge = np.clip(0.3 * vote + 0.3 + 0.2 * np.sin(3 * PLACE), 0, 1)
    votes = JudgedVotes(design[:N], vote[:N], judge[:N], design[N:], judge[N:], np.arange(N), np.arange(N, ALL))
    weight = tuned_weight(votes, fit_logistic(votes, 1.0))
    theta = fit_logistic(votes, weight)
    assert theta == pytest.approx([1.04433823, -0.89494169, 0.25160815], abs=1e-6)
    again = tuned_weight(votes, theta)  # the peer's interval tunes once more
    errors = np.sqrt(np.diag(logistic_covariance(votes, fit_logistic(votes, again), again)))
    assert errors == pytest.approx([0.37834069, 0.36096221, 0.35390718], abs=1e-6)


def test_two_systems_strength_is_the_log_odds_of_the_share():
    vote, judge = (PEOPLE > 0) * 1.0, (JUDGE > 0.2) * 1.0
    rows = pair_design(np.zeros(ALL, dtype=int), np.ones(ALL, dtype=int), 2)
    votes = JudgedVotes(rows[:N], vote[:N], judge[:N], rows[N:], judge[N:], np.arange(N), np.arange(N, ALL))
    result = judged_strengths(votes, strength_contrasts(["a", "b"]))
    share = result["a"].people.value * 2
    assert 1 / (1 + np.exp(-share)) == pytest.approx(vote[:N].mean(), abs=1e-9)
    assert result["a"].both.value == pytest.approx(-result["b"].both.value)
    assert result["a"].narrower > 0.1


def test_strengths_without_an_end_are_refused():
    rows = pair_design(np.zeros(20, dtype=int), np.ones(20, dtype=int), 2)
    votes = JudgedVotes(rows[:9], np.ones(9), np.ones(9), rows[9:], np.ones(11), np.arange(9), np.arange(9, 20))
    with pytest.raises(NotEnoughData, match="no end"):
        judged_strengths(votes, strength_contrasts(["a", "b"]))


def test_one_rater_says_nothing_about_others():
    rows = pair_design(np.zeros(20, dtype=int), np.ones(20, dtype=int), 2)
    vote = np.arange(20) % 2 * 1.0
    votes = JudgedVotes(
        rows[:9], vote[:9], vote[:9], rows[9:], vote[9:], np.arange(9), np.arange(9, 20), np.zeros(9, int)
    )
    with pytest.raises(NotEnoughData, match="one rater"):
        judged_strengths(votes, strength_contrasts(["a", "b"]))


@pytest.mark.parametrize("digits", [1, 12], ids=["few values", "many values"])
def test_the_bootstrap_gives_the_interval_of_the_formula(digits):
    rng = np.random.default_rng(4)
    quality = rng.normal(size=20_000)
    judge = np.round(0.8 * quality + rng.normal(scale=0.5, size=20_000), digits)
    people = quality[:400] + rng.normal(scale=0.7, size=400)
    drawn = judged_mean_bootstrap(people, judge[:400], judge[400:], n_resamples=4000, seed=1)
    formula = judged_mean(people, judge[:400], judge[400:]).both
    assert drawn.value == pytest.approx(formula.value, abs=1e-9)
    assert (drawn.low, drawn.high) == pytest.approx((formula.low, formula.high), abs=0.008)


def test_where_the_scores_of_a_judge_lie_says_nothing():
    """Squares of scores about a million left nothing of their spread, and a covariance that is none."""
    rng = np.random.default_rng(4)
    people, judge = rng.normal(size=60), rng.normal(size=12_000) / 1000
    plain, moved = (
        judged_mean_bootstrap(people, scores[:60], scores[60:], n_resamples=200) for scores in (judge, judge + 1e6)
    )
    assert (moved.value, moved.low, moved.high) == pytest.approx((plain.value, plain.low, plain.high), rel=1e-5)


@pytest.mark.parametrize("judge", ["useless", "good", "biased"])
def test_intervals_cover_with_raters_who_judge_often(judge):
    """200 studies of 100 judgments by ten raters on 50 items; the whole table is ``python -m bench.calibrate_judges``."""
    rng = np.random.default_rng(11)
    n_covered = {"both": 0, "people": 0}
    for _ in range(200):
        quality = rng.normal(size=250)
        known = {"useless": 0 * quality, "good": quality, "biased": 2 + 0.5 * quality}[judge]
        score = known + rng.normal(scale=0.5, size=250)
        item = np.repeat(np.arange(50), 2)
        rater = np.concatenate([rng.permutation(10) for _ in range(10)])
        value = quality[item] + rng.normal(scale=0.5, size=10)[rater] + rng.normal(scale=0.7, size=100)
        result = corrected(judged_ratings(value, item, score, np.arange(250), raters=rater), {"0": 1.0})
        for name in n_covered:
            estimate = getattr(result, name)
            n_covered[name] += estimate.low <= 0 <= estimate.high
    assert all(0.91 < n / 200 < 0.995 for n in n_covered.values()), n_covered
