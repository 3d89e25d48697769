import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialometer.errors import NotEnoughData, UnknownName
from dialometer.stats.icc.crossed import icc_crossed
from dialometer.stats.icc.forms import (
    FORMS,
    form_named,
    has_mean_reliability,
    icc_of_counts,
    icc_replicates,
    spearman_brown,
)
from dialometer.stats.icc.icc import icc
from dialometer.stats.icc.one_way import icc_one_way
from dialometer.stats.observations import cross, positions, stack

# Shrout & Fleiss (1979), table 2: six targets, four judges; the coefficients are those of their table 4.
SHROUT_FLEISS = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
PUBLISHED = {"ICC(1,1)": 0.17, "ICC(2,1)": 0.29, "ICC(3,1)": 0.71, "ICC(1,k)": 0.44, "ICC(2,k)": 0.62, "ICC(3,k)": 0.91}
NAMES = [form.name for form in FORMS]


def simulated(rng, n=40, k=5, item=1.0, rater=0.5, error=1.0):
    return item * rng.normal(size=(n, 1)) + rater * rng.normal(size=(1, k)) + error * rng.normal(size=(n, k))


def pingouin_table(ratings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pandas as pd
        import pingouin

        n, k = ratings.shape
        frame = pd.DataFrame(
            {"item": np.repeat(np.arange(n), k), "rater": np.tile(np.arange(k), n), "y": ratings.ravel()}
        )
        table = pingouin.intraclass_corr(frame, targets="item", raters="rater", ratings="y")
    rows = dict(zip(table["Type"], table.to_dict("records"), strict=True))
    names = {"ICC(1,1)": "ICC(1)", "ICC(1,k)": "ICC(k)"}
    return {form_named(names.get(name, name)).name: row for name, row in rows.items()}


def every_form(ratings):
    return [(form.name, icc(ratings, form.name)) for form in FORMS]


def test_published_example():
    for name, result in every_form(SHROUT_FLEISS):
        assert round(result.value, 2) == PUBLISHED[name]
        assert result.n == 6
        assert result.details["n_raters"] == 4


@pytest.mark.parametrize("seed", range(4))
def test_equals_pingouin(seed):
    rng = np.random.default_rng(seed)
    ratings = SHROUT_FLEISS.astype(float) if seed == 0 else simulated(rng, n=10 + 7 * seed, k=2 + seed, rater=seed / 2)
    peer = pingouin_table(ratings)
    for name, result in every_form(ratings):
        row = peer[name]
        assert result.value == pytest.approx(row["ICC"], abs=1e-10)
        assert result.statistic == pytest.approx(row["F"], rel=1e-10)
        assert result.df == (row["df1"], row["df2"])
        assert result.p_value == pytest.approx(row["pval"], rel=1e-8)
        np.testing.assert_allclose(
            [result.low, result.high], row["CI95"], atol=0.00501
        )  # pingouin rounds to two digits


def test_intervals_of_r_psych():
    # As R prints for psych::ICC(SHROUT_FLEISS, lmer = FALSE), columns "lower bound" and "upper bound".
    psych = {
        "ICC(1,1)": (-0.1329323, 0.7225601),
        "ICC(2,1)": (0.0187865, 0.7610844),
        "ICC(3,1)": (0.3424648, 0.9458583),
        "ICC(1,k)": (-0.8844422, 0.9124154),
        "ICC(2,k)": (0.0711368, 0.9272320),
        "ICC(3,k)": (0.6756747, 0.9858917),
    }
    for name, bounds in psych.items():
        result = icc(SHROUT_FLEISS, name)
        np.testing.assert_allclose([result.low, result.high], bounds, atol=1e-6)


def test_both_names_lead_to_the_same_form():
    for form in FORMS:
        assert icc(SHROUT_FLEISS, form.name) == icc(SHROUT_FLEISS, form.mcgraw_wong)
    with pytest.raises(UnknownName, match=r"did you mean"):
        icc(SHROUT_FLEISS, "ICC(A,2)")


@pytest.mark.parametrize("interval", ["percentile", "bca"])
def test_weighted_sums_equal_refitting_every_resample(interval):
    ratings = simulated(np.random.default_rng(1), n=12, k=4)
    counts = np.array(
        [[2, 0, 1, 1, 1, 3, 0, 1, 1, 1, 1, 0], [1] * 12, [0, 0, 0, 0, 4, 4, 0, 0, 0, 0, 2, 2]], dtype=float
    )
    ours = icc_of_counts(ratings, counts, None)
    for index, row in enumerate(counts.astype(int)):
        drawn = ratings[np.repeat(np.arange(12), row)]
        for name in NAMES:
            assert ours[name][index] == pytest.approx(icc(drawn, name).value, abs=1e-12)
    result = icc(ratings, "ICC(3,1)", interval=interval, n_resamples=500, seed=3)
    assert result.low < result.value < result.high
    assert result.interval_method.endswith("bootstrap over items")
    assert (result.seed, result.n_resamples) == (3, 500)
    assert result.p_value == icc(ratings, "ICC(3,1)").p_value


def test_subsets_of_raters_equal_the_plain_icc_of_the_subset():
    ratings = simulated(np.random.default_rng(2), n=15, k=6)
    chosen = np.array([[1, 1, 0, 1, 0, 0], [0, 1, 1, 1, 1, 1]], dtype=float)
    ours = icc_of_counts(ratings, None, chosen)
    for index, row in enumerate(chosen.astype(bool)):
        for name in NAMES:
            assert ours[name][index] == pytest.approx(icc(ratings[:, row], name).value, abs=1e-12)


@pytest.mark.parametrize("resampled", ["items", "raters", "items and raters"])
def test_a_rater_drawn_twice_does_not_count_as_agreement(resampled):
    rng = np.random.default_rng(5)
    ratings = simulated(rng, n=60, k=6, rater=0.3)
    replicates = icc_replicates(ratings, resampled, n_resamples=4000, rng=rng)
    for name in ("ICC(1,1)", "ICC(2,1)", "ICC(3,1)"):
        # plain resampling of columns is off by about +0.1 here
        assert np.nanmean(replicates[name]) == pytest.approx(icc(ratings, name).value, abs=0.02)


@pytest.mark.parametrize(("name", "truth"), [("ICC(2,1)", 1 / 2.09), ("ICC(3,1)", 0.5)])
def test_intervals_cover(name, truth):
    rng = np.random.default_rng(8)
    hits = {"analytic": 0, "percentile": 0, "bca": 0}
    n_trials = 150
    for trial in range(n_trials):
        ratings = simulated(rng, n=40, k=8, rater=0.3)
        for interval in hits:
            drawn = "items and raters" if interval == "percentile" else "items"
            result = icc(ratings, name, interval=interval, resampled=drawn, n_resamples=300, seed=trial)
            hits[interval] += result.low <= truth <= result.high
    for interval, count in hits.items():
        assert count / n_trials > 0.87, interval  # nominal 0.95


def test_missing_cells_need_a_declared_method():
    ratings = simulated(np.random.default_rng(3), n=20, k=4)
    ratings[2, 1] = ratings[5, 1] = np.nan
    refused = icc(ratings)
    assert not refused.is_known
    assert "2 of 80 cells are missing" in refused.notes[0]
    complete = np.delete(ratings, [2, 5], axis=0)
    dropped = icc(ratings, missing="drop_items")
    assert dropped.value == icc(complete).value
    assert dropped.notes == ("2 of 20 items excluded as incomplete",)
    assert icc(ratings, missing="drop_raters").value == pytest.approx(icc(np.delete(ratings, 1, axis=1)).value)
    modelled = icc(ratings, missing="model")
    assert modelled.method == "ICC(2,1) by REML"
    assert abs(modelled.value - dropped.value) < 0.1
    one_way = icc(ratings, "ICC(1,1)", missing="model")
    assert one_way.details["n_judgments"] == 78


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "ratings",
    [
        np.ones((1, 5)),
        np.ones((5, 1)),
        np.full((6, 3), 4.0),
        np.full((4, 3), np.nan),
        np.empty((0, 3)),
        np.empty((3, 0)),
    ],
    ids=["one item", "one rater", "constant", "all missing", "no item", "no rater"],
)
def test_degenerate_ratings_are_unknown_with_a_reason(name, ratings):
    for missing in ("refuse", "drop_items", "model"):
        for interval in ("analytic", "percentile"):
            result = icc(ratings, name, missing=missing, interval=interval)
            assert not result.is_known
            assert len(result.notes[0]) > 20


def test_perfect_agreement_has_no_analytic_interval():
    ratings = np.tile(np.array([[1.0], [2.5], [4.1]]), (1, 4))
    for name in NAMES:
        result = icc(ratings, name)
        assert result.value == pytest.approx(1)
        assert not result.has_interval
        assert "no error variance" in result.notes[0]
    shifted = icc(ratings + np.array([0, 1, 2, 3]), "ICC(3,1)")
    assert shifted.value == pytest.approx(1)
    assert icc(ratings + np.array([0, 1, 2, 3]), "ICC(2,1)").value < 1


def test_negative_values_are_kept_and_explained():
    result = icc([[1, 3], [3, 1], [2, 2.2]], "ICC(3,1)")
    assert result.value < 0
    assert "no reliability" in result.notes[0]


def test_raters_who_disagree_completely_have_no_reliable_mean():
    """The mean square of items is 0: the single form is -1 / (k - 1), the average one divides by 0."""
    opposed = np.array([[1, 5], [2, 4], [3, 3], [4, 2], [5, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert spearman_brown(-1.0, 2.0) == -math.inf
        assert spearman_brown(np.array([-0.5, 0.5]), 3.0).tolist() == [-math.inf, 0.75]
        assert not has_mean_reliability(-0.5, 3.0)
        assert has_mean_reliability(-0.49, 3.0)
        means = [icc(opposed, "ICC(3,k)"), icc_one_way(opposed.ravel(), np.repeat(np.arange(5), 2), "ICC(1,k)")]
    assert icc(opposed, "ICC(3,1)").value == pytest.approx(-1)
    assert [mean.is_known for mean in means] == [False, False]
    assert all("do not differ" in mean.notes[0] for mean in means)


def test_no_reliability_of_means_exceeds_one_where_raters_are_opposed():
    """The estimated variance of the means is negative: by the formula, as in pingouin and psych, ICC(2,k) would be 5.02."""
    opposed = np.array([[1, 5], [2, 4], [3, 3], [4, 2.2], [5, 1.0]])
    peer = pingouin_table(opposed)
    assert peer["ICC(2,k)"]["ICC"] == pytest.approx(5.0205, abs=1e-4)
    assert icc(opposed, "ICC(2,1)").value == pytest.approx(peer["ICC(2,1)"]["ICC"])
    mean = icc(opposed, "ICC(2,k)")
    assert not mean.is_known
    assert "do not differ" in mean.notes[0]
    rng = np.random.default_rng(5)
    for _ in range(300):
        found = icc(rng.normal(size=(4, 3)), "ICC(2,k)")
        assert not found.is_known or found.low <= found.value <= found.high <= 1 + 1e-9


def test_misuse_is_refused():
    with pytest.raises(NotEnoughData, match="matrix of items by raters"):
        icc([1.0, 2.0])
    with pytest.raises(NotEnoughData, match="infinite"):
        icc([[1.0, np.inf], [2.0, 3.0]])
    with pytest.raises(NotEnoughData, match="percentile"):
        icc(SHROUT_FLEISS, interval="bca", resampled="items and raters")
    with pytest.raises(NotEnoughData, match="icc_crossed"):
        icc_one_way([1.0, 2.0], ["a", "b"], "ICC(2,1)")
    with pytest.raises(NotEnoughData, match="icc_one_way"):
        icc_crossed([1.0, 2.0], ["a", "b"], ["x", "y"], "ICC(1,1)")


matrices = st.integers(0, 10_000).map(lambda seed: simulated(np.random.default_rng(seed), n=8, k=3))


@settings(max_examples=30)
@given(matrices, st.lists(st.floats(-20, 20), min_size=3, max_size=3))
def test_consistency_ignores_what_raters_add(ratings, shift):
    for name in ("ICC(3,1)", "ICC(3,k)"):
        assert icc(ratings + np.array(shift), name).value == pytest.approx(icc(ratings, name).value, abs=1e-8)


@settings(max_examples=30)
@given(matrices, st.floats(-20, 20), st.floats(0.1, 10), st.randoms(use_true_random=False))
def test_units_and_order_do_not_matter(ratings, shift, scale, random):
    rows, columns = list(range(8)), list(range(3))
    random.shuffle(rows)
    random.shuffle(columns)
    for name in NAMES:
        moved = icc((ratings * scale + shift)[rows][:, columns], name)
        assert moved.value == pytest.approx(icc(ratings, name).value, abs=1e-8)


@settings(max_examples=30)
@given(matrices)
def test_average_forms_follow_from_single_forms(ratings):
    for model in "123":
        single, average = icc(ratings, f"ICC({model},1)").value, icc(ratings, f"ICC({model},k)").value
        assert average == pytest.approx(spearman_brown(single, 3), abs=1e-9)


@pytest.mark.parametrize("name", ["ICC(1,1)", "ICC(1,k)"])
def test_one_way_in_rows_equals_the_matrix_form_when_balanced(name):
    ratings = simulated(np.random.default_rng(4), n=12, k=3)
    items = np.repeat(np.arange(12), 3)
    rows, matrix = icc_one_way(ratings.ravel(), items, name), icc(ratings, name)
    for field in ("value", "low", "high", "statistic", "p_value"):
        assert getattr(rows, field) == pytest.approx(getattr(matrix, field), rel=1e-9)
    assert rows.details["k0"] == pytest.approx(3)


def test_one_way_unbalanced_by_hand_and_by_bootstrap():
    values, items = np.array([1.0, 2, 4, 4, 5, 7, 8]), np.array(list("aabbbcc"))
    count, mean = np.array([2, 3, 2]), np.array([1.5, 13 / 3, 7.5])
    between = float(count @ (mean - values.mean()) ** 2) / 2
    within = (0.5 + 2 / 3 + 0.5) / 4
    k0 = (7 - 17 / 7) / 2
    expected = (between - within) / (between + (k0 - 1) * within)
    result = icc_one_way(values, items)
    assert result.value == pytest.approx(expected)
    assert result.statistic == pytest.approx(between / within)
    rng = np.random.default_rng(0)
    items = np.repeat(np.arange(60), rng.integers(1, 6, size=60))
    values = rng.normal(size=60)[items] + rng.normal(size=len(items))
    for interval in ("percentile", "bca"):
        drawn = icc_one_way(values, items, interval=interval)
        assert drawn.low < drawn.value < drawn.high
        assert abs(drawn.low - icc_one_way(values, items).low) < 0.1


@pytest.mark.parametrize(
    ("values", "items", "why"),
    [
        ([1.0, 2.0], ["a", "a"], "1 items"),
        ([1.0, 2.0], ["a", "b"], "two judgments"),
        ([3.0] * 4, list("aabb"), "every rating is 3"),
        ([np.nan] * 4, list("aabb"), "0 items"),
        ([], [], "0 items"),
    ],
)
def test_one_way_degenerate(values, items, why):
    result = icc_one_way(values, items)
    assert not result.is_known
    assert why in result.notes[0]


def test_one_way_perfect_agreement():
    result = icc_one_way([1.0, 1.0, 5.0, 5.0, 5.0], list("aabbb"))
    assert result.value == pytest.approx(1)
    assert "never differ" in result.notes[0]


def test_layouts():
    table = cross([5.0, 3.0, 4.0], ["x", "y", "x"], ["p", "p", "q"])
    np.testing.assert_array_equal(table.ratings, [[5, 4], [3, math.nan]])
    assert (table.items, table.raters) == (("x", "y"), ("p", "q"))
    with pytest.raises(NotEnoughData, match="rater p judged item x more than once"):
        cross([1.0, 2.0], ["x", "x"], ["p", "p"])
    stacked = stack([1.0, 2.0, 3.0, 4.0, 5.0], ["x", "y", "x", "x", "y"], n_columns=2)
    np.testing.assert_array_equal(stacked.ratings, [[1, 3], [2, 5]])
    np.testing.assert_array_equal(positions(["no", None, "yes"], ["yes", "no"]), [1, math.nan, 0])
    np.testing.assert_array_equal(positions([[5, 1], [np.nan, 3]], [1, 3, 5]), [[2, 0], [math.nan, 1]])
    with pytest.raises(NotEnoughData, match="6 is not a label"):
        positions([6], [1, 2])
    with pytest.raises(NotEnoughData, match="twice"):
        positions([1], [1, 1])
