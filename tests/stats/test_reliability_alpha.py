import warnings

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialometer.errors import UnknownName
from dialometer.stats.agreement.fleiss import fleiss_kappa, label_counts, percent_agreement
from dialometer.stats.agreement.krippendorff_alpha import krippendorff_alpha

LEVELS = ["nominal", "ordinal", "interval", "ratio"]
NAN = np.nan
# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section C: four observers, twelve units.
PUBLISHED_DATA = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T
PUBLISHED = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849, "ratio": 0.797}


def simulated(seed, n=40, k=5, holes=0.2, decimals=0):
    rng = np.random.default_rng(seed)
    ratings = np.round(np.clip(3 + rng.normal(size=(n, 1)) + 0.8 * rng.normal(size=(n, k)), 1, 5), decimals)
    ratings[rng.random(ratings.shape) < holes] = NAN
    return ratings


@pytest.mark.parametrize("level", LEVELS)
def test_published_example(level):
    assert krippendorff_alpha(PUBLISHED_DATA, level).value == pytest.approx(PUBLISHED[level], abs=0.0006)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("seed", range(4))
def test_equals_the_krippendorff_package(level, seed):
    ratings = simulated(seed, holes=0.15 * seed, decimals=seed % 2)
    peer = krippendorff.alpha(reliability_data=ratings.T, level_of_measurement=level)
    assert krippendorff_alpha(ratings, level, n_resamples=0).value == pytest.approx(peer, abs=1e-10)


@pytest.mark.parametrize("level", LEVELS)
def test_replicates_equal_refitting_every_resample(level, monkeypatch):
    ratings = simulated(5, n=15)
    seen = []
    import dialometer.stats.agreement.krippendorff_alpha as module

    plain = module.draw_counts
    monkeypatch.setattr(module, "draw_counts", lambda *args: seen.append(plain(*args)) or seen[-1])
    result = krippendorff_alpha(ratings, level, n_resamples=40, seed=2)
    pairable = ratings[(~np.isnan(ratings)).sum(axis=1) >= 2]
    refitted = []
    for row in np.concatenate(seen).astype(int):
        drawn = pairable[np.repeat(np.arange(len(pairable)), row)]
        refitted.append(krippendorff.alpha(reliability_data=drawn.T, level_of_measurement=level))
    np.testing.assert_allclose([result.low, result.high], np.quantile(refitted, [0.025, 0.975]), atol=1e-10)


def test_interval_covers():
    rng = np.random.default_rng(3)
    hits = 0
    for trial in range(150):  # interval alpha estimates the one-way ICC, here 0.5
        ratings = rng.normal(size=(60, 1)) + rng.normal(size=(60, 4))
        result = krippendorff_alpha(ratings, "interval", n_resamples=300, seed=trial)
        hits += result.low <= 0.5 <= result.high
    assert hits / 150 > 0.88  # nominal 0.95


def test_words_take_their_order_from_the_labels():
    labels = ["poor", "fair", "good"]
    ratings = np.array([["poor", "fair"], ["good", "good"], ["fair", "fair"], ["poor", None]], dtype=object)
    numbers = np.array([[0, 1], [2, 2], [1, 1], [0, NAN]])
    for level in ("nominal", "ordinal"):
        words = krippendorff_alpha(ratings, level, labels=labels, n_resamples=0)
        assert words.value == krippendorff_alpha(numbers, level, n_resamples=0).value
    scale = krippendorff_alpha([[1, 2], [4, 4], [2, 2]], "interval", labels=[1, 2, 4], n_resamples=0)
    assert scale.value == pytest.approx(krippendorff_alpha([[1, 2], [4, 4], [2, 2]], "interval", n_resamples=0).value)


@settings(max_examples=30)
@given(st.integers(0, 9999), st.floats(0.1, 20), st.floats(-30, 30))
def test_invariances(seed, scale, shift):
    ratings = simulated(seed, n=12)
    values = {level: krippendorff_alpha(ratings, level, n_resamples=0).value for level in LEVELS}
    moved = krippendorff_alpha(ratings * scale + shift, "interval", n_resamples=0).value
    assert moved == pytest.approx(values["interval"], abs=1e-8)
    assert krippendorff_alpha(ratings * scale, "ratio", n_resamples=0).value == pytest.approx(values["ratio"], abs=1e-8)
    assert krippendorff_alpha(ratings**3, "ordinal", n_resamples=0).value == pytest.approx(values["ordinal"], abs=1e-9)
    permuted = ratings[:, np.random.default_rng(seed).permutation(5)]
    for level in LEVELS:
        assert krippendorff_alpha(permuted, level, n_resamples=0).value == pytest.approx(values[level], abs=1e-9)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("ratings", "why"),
    [
        (np.full((4, 3), 2.0), "every rating is 2"),
        (np.full((4, 3), NAN), "no item has two ratings"),
        (np.ones((4, 1)), "no item has two ratings"),
        (np.empty((0, 3)), "no item has two ratings"),
    ],
)
def test_degenerate_is_unknown(level, ratings, why):
    result = krippendorff_alpha(ratings, level)
    assert not result.is_known
    assert why in result.notes[0]


def test_one_item_has_a_value_but_no_interval():
    result = krippendorff_alpha([[1, 2, 2]], "interval")
    assert result.value == pytest.approx(
        krippendorff.alpha(reliability_data=[[1], [2], [2]], level_of_measurement="interval")
    )
    assert not result.has_interval
    with pytest.raises(UnknownName, match="ordinal"):
        krippendorff_alpha([[1, 2]], "ordinl")


# Counts of 14 raters on ten items and five labels, the worked example of Fleiss' kappa in many texts; kappa 0.210.
TEXTBOOK = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def test_fleiss_textbook_example():
    result = fleiss_kappa(TEXTBOOK)
    assert round(result.value, 3) == 0.210
    assert result.low < result.value < result.high
    assert result.p_value < 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_fleiss_equals_statsmodels(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from statsmodels.stats.inter_rater import aggregate_raters
        from statsmodels.stats.inter_rater import fleiss_kappa as peer

        ratings = simulated(seed, holes=0.0).astype(int)
        expected = peer(aggregate_raters(ratings)[0])
    assert fleiss_kappa(label_counts(ratings, [1, 2, 3, 4, 5])).value == pytest.approx(expected, abs=1e-12)


def test_fleiss_null_error_is_the_spread_under_chance():
    rng = np.random.default_rng(4)
    z = [
        fleiss_kappa(label_counts(rng.integers(1, 4, (40, 5)), [1, 2, 3]), n_resamples=2).statistic for _ in range(400)
    ]
    assert np.std(z) == pytest.approx(1, abs=0.12)


def test_fleiss_unequal_numbers_and_degenerate():
    ratings = simulated(6, holes=0.3)
    result = fleiss_kappa(label_counts(ratings, [1, 2, 3, 4, 5]))
    assert result.is_known
    assert np.isnan(result.p_value)
    assert not fleiss_kappa(label_counts(np.full((5, 3), 2), [1, 2])).is_known
    assert not fleiss_kappa(label_counts(np.full((5, 3), NAN), [1, 2])).is_known
    assert not fleiss_kappa(label_counts([[1, 2]], [1, 2])).is_known


def test_percent_agreement_by_hand():
    ratings = [[1, 1, 2], [3, 3, 3], [1, 2, NAN], [2, NAN, NAN]]
    exact = percent_agreement(ratings, [1, 2, 3])
    assert exact.value == pytest.approx((1 / 3 + 1 + 0) / 3)
    assert exact.n == 3
    assert "1 of 4 items excluded" in exact.notes[0]
    assert percent_agreement(ratings, [1, 2, 3], within=1).value == 1
    assert not percent_agreement([[1, NAN]], [1, 2]).is_known


def test_percent_agreement_of_two_raters_covers_and_has_a_way_out_at_the_border():
    rng = np.random.default_rng(5)
    hits = 0
    for trial in range(150):
        first = rng.integers(0, 2, 60)
        second = np.where(rng.random(60) < 0.8, first, 1 - first)
        result = percent_agreement(np.stack([first, second], axis=1), [0, 1], n_resamples=300, seed=trial)
        hits += result.low <= 0.8 <= result.high
    assert hits / 150 > 0.87
    whole = percent_agreement([[1, 1], [2, 2], [1, 1]], [1, 2])
    assert (whole.value, whole.high) == (1, 1)
    assert whole.low == pytest.approx(
        0.4385, abs=1e-4
    )  # Wilson, 3 of 3: statsmodels proportion_confint(3, 3, method="wilson")
    assert whole.interval_method == "Wilson"
