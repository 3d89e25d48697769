"""Values of all ratings, the removal curve and injected noise on dialogues whose quality is known."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.learned.cmade.neighbours import nearest, standardise
from dialometer.learned.data.pairs import DialoguePair
from dialometer.learned.data.rated import RatedDialogue
from dialometer.learned.data.splits import grouped_splits
from dialometer.learned.experiments.inspect_reports import curve_report, mean_over, noise_report
from dialometer.learned.experiments.noise import (
    DETECTORS,
    DISTANCE,
    HIGHEST,
    LOSS,
    LOWEST,
    OBSERVED,
    POSITIVE,
    RANDOM,
    SHAPLEY,
    TOGETHER,
    auc,
    auc_within,
    flip,
    knn_ratings,
    neighbour_order,
    noise_experiment,
    out_of_fold_loss,
    removal_steps,
    ridge_scores,
)
from dialometer.learned.experiments.rating_values import fold_numbers, lowest, noisy_page, noisy_rows, value_ratings
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.report import render


def rated_dialogues(n=300, seed=0, noise=0.25):
    """Ratings from a hidden quality that two of six features show; some ratings are turned round."""
    rng = np.random.default_rng(seed)
    quality = rng.integers(1, 6, n).astype(float)
    features = rng.normal(size=(n, 6)).astype(np.float32)
    features[:, :2] += 2.0 * quality[:, None]
    is_noisy = rng.random(n) < noise
    ratings = np.where(is_noisy, 6 - quality, quality)
    rated = []
    for number in range(n):
        turns = tuple(Turn("Bot", f"<b>{number} & {k}</b>", "agent" if k % 2 else "user") for k in range(6))
        rated.append(
            RatedDialogue(Dialogue(f"d{number}", turns), float(ratings[number]), f"u{number % 60}", "made", "bot")
        )
    return rated, features, quality, is_noisy & (quality != 3)


def test_auc_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    scores, is_positive = np.round(rng.normal(size=200), 1), rng.random(200) < 0.3
    assert auc(scores, is_positive) == pytest.approx(roc_auc_score(is_positive, scores))
    assert np.isnan(auc(scores, np.zeros(200, dtype=bool)))


def test_within_one_rating_the_rating_itself_tells_nothing():
    rng = np.random.default_rng(1)
    observed = rng.integers(1, 6, 400).astype(float)
    is_positive = rng.random(400) < observed / 6
    assert auc(observed, is_positive) > 0.65
    assert auc_within(observed, is_positive, observed) == pytest.approx(0.5)


@pytest.mark.parametrize("kind", ["uniform", "J-shaped"])
def test_flips_change_what_they_say(kind):
    rng = np.random.default_rng(2)
    ratings = rng.integers(1, 6, 5000).astype(float)
    observed, is_flipped = flip(ratings, 0.3, kind, rng)
    assert is_flipped.sum() == 1500
    assert (observed[~is_flipped] == ratings[~is_flipped]).all()
    assert (observed[is_flipped] != ratings[is_flipped]).all()
    to_top = np.mean(observed[is_flipped & (ratings == 3)] == 5)
    expected = 0.25 if kind == "uniform" else 0.5 / 0.9
    assert to_top == pytest.approx(expected, abs=0.06)


def test_shares_that_are_none_are_refused():
    with pytest.raises(DialometerError, match=r"share of 1\.5"):
        flip(np.array([1.0, 2.0]), 1.5, "uniform", np.random.default_rng(0))
    with pytest.raises(NotEnoughData, match="all ratings are equal"):
        flip(np.ones(5), 0.2, "uniform", np.random.default_rng(0))


def test_loss_is_high_where_the_rating_contradicts_the_features():
    rated, features, _, is_noisy = rated_dialogues()
    observed = np.array([one.rating for one in rated])
    loss = out_of_fold_loss(features, observed, np.arange(len(rated)) % 5)
    assert loss.min() >= 0
    assert auc(loss, is_noisy) > 0.8


def test_good_features_find_injected_noise_and_controls_stand_beside_them():
    rated, features, _, _ = rated_dialogues(noise=0.0)
    told = []
    found = noise_experiment(rated, features, n_repetitions=3, k=15, report=lambda *now: told.append(now))
    assert told[-1] == (3, 3)
    mean = {
        (kind, name): np.mean([one.within for one in found if one.kind == kind and one.detector == name])
        for kind in ("uniform", "J-shaped")
        for name in DETECTORS
    }
    for kind in ("uniform", "J-shaped"):
        for name in (DISTANCE, LOSS, TOGETHER, POSITIVE):
            assert mean[kind, name] > 0.85
        assert mean[kind, SHAPLEY] > 0.7
        assert mean[kind, OBSERVED] == pytest.approx(0.5)
    again = noise_experiment(rated, features, n_repetitions=3, k=15)
    assert again == found


def test_values_find_noisy_ratings_of_other_users():
    rated, features, _, is_noisy = rated_dialogues()
    valued = value_ratings(rated, standardise(features), k=15)
    assert auc(-valued.values, is_noisy) > 0.8
    assert not valued.is_expert
    numbers, distances = nearest(standardise(features), 15)
    np.testing.assert_array_equal(valued.neighbours, numbers)
    assert (np.diff(distances, axis=1) >= 0).all()


def test_experts_value_the_ratings_of_others_only():
    rated, features, quality, is_noisy = rated_dialogues()
    order = np.argsort(quality[:40], kind="stable")
    pairs = [DialoguePair(f"d{high}", f"d{low}", True) for low, high in zip(order[:15], order[-15:], strict=True)]
    valued = value_ratings(rated, standardise(features), pairs, k=15)
    named = {int(name[1:]) for pair in pairs for name in (pair.first, pair.second)}
    assert set(np.flatnonzero(np.isnan(valued.values))) == named
    known = ~np.isnan(valued.values)
    assert auc(-valued.values[known], is_noisy[known]) > 0.75


def test_folds_keep_users_together_and_are_of_like_size():
    groups = [f"u{n % 17}" for n in range(300)]
    folds = fold_numbers(groups, 5, np.random.default_rng(0))
    assert all(len({int(f) for f, g in zip(folds, groups, strict=True) if g == name}) == 1 for name in set(groups))
    assert np.ptp(np.bincount(folds)) <= 20
    with pytest.raises(NotEnoughData, match="too few for 5 folds"):
        fold_numbers(["a", "b"], 5, np.random.default_rng(0))


def test_ratings_by_the_nearest_that_are_kept():
    rng = np.random.default_rng(3)
    points, queries = rng.normal(size=(50, 3)).astype(np.float32), rng.normal(size=(7, 3)).astype(np.float32)
    ratings, is_kept = rng.integers(1, 6, 50).astype(float), rng.random(50) < 0.5
    found = knn_ratings(neighbour_order(queries, points), ratings, is_kept, (1, 5, 40))
    assert set(found) == {1, 5}
    for row, query in enumerate(queries):
        distances = np.where(is_kept, np.linalg.norm(points - query, axis=1), np.inf)
        for k, predicted in found.items():
            assert predicted[row] == pytest.approx(ratings[np.argsort(distances)[:k]].mean())


@pytest.fixture(scope="module")
def steps():
    rated, features, _, _ = rated_dialogues(n=400, noise=0.35)
    return removal_steps(
        rated,
        features,
        grouped_splits(rated, 3, development_share=0.2),
        ks=(1, 5),
        shares=(0.0, 0.1, 0.2, 0.3),
        k_shapley=15,
        n_random=3,
    )


def test_removing_the_least_valuable_helps_and_at_random_does_not(steps):
    def mean(way, share):
        return np.mean([one.accuracy for one in steps if one.way == way and one.share == share and one.k == 5])

    assert mean(LOWEST, 0.0) == pytest.approx(mean(RANDOM, 0.0))
    assert mean(LOWEST, 0.2) > mean(LOWEST, 0.0) + 0.02
    assert abs(mean(RANDOM, 0.2) - mean(RANDOM, 0.0)) < 0.05


def test_reports_can_be_rendered(steps, tmp_path):
    curve = curve_report(steps, data="made", command="dialometer learn curve made", pairs="pairs", facts={"seed": 0})
    assert "20%" in render(curve, tmp_path / "curve", formats=["markdown"])[0].read_text()
    assert {row[0] for row in curve.tables()[0].rows} == {"K = 1", "K = 5", "linear model, retrained"}
    rated, features, _, _ = rated_dialogues(120)
    found = noise_experiment(rated, features, n_repetitions=2, k=5)
    noise = noise_report(found, data="made", command="dialometer learn noise made", share=0.2, facts={"seed": 0})
    assert len(noise.tables()[0].rows) == 2 * len(DETECTORS)
    assert "AUC" in render(noise, tmp_path / "noise", formats=["html"])[0].read_text()


def test_mean_over_repetitions_is_that_of_a_t_test():
    from scipy import stats

    values = [0.6, 0.7, 0.65, 0.72]
    one = mean_over([*values, float("nan")], "repetitions")
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert (one.value, one.low, one.high) == pytest.approx((np.mean(values), low, high))
    assert not mean_over([], "splits").is_known


def test_the_page_shows_each_doubt_with_its_neighbours():
    rated, features, _, is_noisy = rated_dialogues()
    valued = value_ratings(rated, standardise(features), k=15)
    found = lowest(rated, valued, 10)
    assert [one.value for one in found] == sorted(valued.values)[:10]
    assert np.mean([is_noisy[int(one.rated.id[1:])] for one in found]) >= 0.9
    page = noisy_page(found, valued, title="Ratings of <made>", command="dialometer learn noisy made")
    assert "Ratings of &lt;made&gt;" in page
    assert "<b>0 & 0</b>" not in page
    assert page.count('<details class="near">') == 50
    assert "prefers-color-scheme:dark" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    rows = noisy_rows(found)
    assert rows[0]["reason"].startswith(f"rated {rows[0]['rating']:g} of 5, while the 15 nearest")


def test_helpful_ratings_are_never_on_the_page():
    rated, features, _, _ = rated_dialogues(100, noise=0.0)
    valued = value_ratings(rated, standardise(features), k=10)
    assert all(one.value < 0 for one in lowest(rated, valued, 100))


@pytest.mark.parametrize("n", [20, 90])
def test_the_linear_model_is_ridge_regression(n):
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(n)
    x, y, queries = rng.normal(size=(n, 30)), rng.normal(size=n), rng.normal(size=(8, 30))
    expected = Ridge(alpha=7.0).fit(x, y).predict(queries)
    assert ridge_scores(x, y, queries, 7.0) == pytest.approx(expected, abs=1e-9)


def test_the_highest_values_are_missed_most(steps):
    """Removing what helps most must hurt more than removing what helps least."""
    means = {way: np.mean([s.accuracy for s in steps if s.way == way and s.share > 0]) for way in (LOWEST, HIGHEST)}
    assert means[LOWEST] > means[HIGHEST]
