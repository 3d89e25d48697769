"""Statistics of a table of judgments by ``dm``: the same numbers as the statistics they call, and sentences where they cannot."""

import numpy as np
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as peer_fleiss
from statsmodels.stats.weightstats import ttost_paired

import dialometer as dm
from crossed_ratings import crossed
from dialometer.errors import DialometerError, UnknownName
from dialometer.stats import STATISTICS, statistic
from dialometer.stats.effects.generalizability import g_study
from dialometer.stats.effects.ordinal import fit_ordinal
from dialometer.stats.effects.rasch import many_facet_rasch


@pytest.fixture(scope="module")
def answers():
    """Thirty items with a true answer, judged by four raters; the fourth guesses."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 30)
    given = np.where(rng.random((30, 4)) < [0.9, 0.9, 0.8, 0.0], truth[:, None], rng.integers(0, 3, (30, 4)))
    item, rater = (index.ravel() for index in np.indices(given.shape))
    table = pl.DataFrame(
        {
            "rater": [f"R{code}" for code in rater],
            "item": [f"i{code:02}" for code in item],
            "criterion": "topic",
            "choice": [f"c{code}" for code in given.ravel()],
        }
    )
    return table, given, truth


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(6)
    rows = [
        (f"R{rater}", f"i{item}", system, "quality", float(rng.normal(3 + (system == "b") * 0.05, 0.4)))
        for rater in range(20)
        for item in range(1)
        for system in ("a", "b")
    ]
    return pl.DataFrame(rows, schema=["rater", "item", "system", "criterion", "value"], orient="row")


def test_fleiss_kappa_is_that_of_statsmodels(answers):
    table, given, _ = answers
    estimate = dm.fleiss_kappa(table, "topic", n_resamples=200)
    assert estimate.value == pytest.approx(peer_fleiss(aggregate_raters(given)[0]))
    assert (estimate.label, estimate.n) == ("topic", 30)
    assert dm.compute("fleiss_kappa", table, n_resamples=200).low == estimate.low
    corrected = dm.fleiss_kappa(table, interval="bca", n_resamples=200)
    assert corrected.interval_method.startswith("BCa")
    assert corrected.low < estimate.value < corrected.high


def test_models_of_raters_find_the_truth_and_the_guesser(answers):
    table, _, truth = answers
    by_confusion, by_competence = dm.dawid_skene(table), dm.mace(table)
    for model in (by_confusion, by_competence):
        right = [model.consensus[f"i{code:02}"] == f"c{answer}" for code, answer in enumerate(truth)]
        assert np.mean(right) > 0.85
    for found in (by_confusion.accuracy, by_competence.competence):
        assert min(found, key=lambda name: found[name].value) == "R3"
    assert dm.compute("mace", table)["R3"].value == by_competence.competence["R3"].value
    assert dm.compute("dawid_skene", table)["R0"] == by_confusion.accuracy["R0"]


def test_equivalence_within_raters_is_the_paired_test(ratings):
    wide = ratings.pivot(on="system", index="rater", values="value")
    for margin in (0.1, 0.3, 1.0):
        estimate = dm.equivalence(ratings, "b", "a", margin)
        p_value = ttost_paired(wide["b"].to_numpy(), wide["a"].to_numpy(), -margin, margin)[0]
        assert estimate.p_value == pytest.approx(p_value)
        assert estimate.details["is_equivalent"] == (p_value < 0.05)
        assert estimate.confidence == pytest.approx(0.9)
    with pytest.raises(DialometerError, match="margin"):
        dm.equivalence(ratings, "b", "a", 0)


def test_equivalence_of_choices_lies_around_one_half():
    rng = np.random.default_rng(2)
    choice = rng.choice(["x", "y"], 400)
    table = pl.DataFrame(
        {
            "rater": [f"R{n}" for n in np.arange(400) % 80],
            "item": [f"i{n}" for n in range(400)],
            "system": pl.Series([None] * 400, dtype=pl.String),
            "criterion": ["c"] * 400,
            "value": pl.Series([None] * 400, dtype=pl.Float64),
            "choice": choice,
            "order": ["x|y"] * 400,
        }
    )
    assert dm.equivalence(table, "x", "y", 0.15).details["is_equivalent"]
    assert not dm.equivalence(table, "x", "y", 0.02).details["is_equivalent"]


def test_any_number_of_a_table_can_be_resampled(ratings):
    estimate = dm.bootstrap(ratings, lambda rows: rows["value"].median(), interval="bca", n_resamples=300, seed=1)
    assert estimate.value == pytest.approx(np.median(ratings["value"]))
    assert estimate.low < estimate.value < estimate.high
    assert estimate.interval_method == "BCa bootstrap over raters"
    assert estimate.details["n_clusters"] == (20,)
    crossed = dm.bootstrap(ratings, lambda rows: rows["value"].mean(), by=("rater", "system"), n_resamples=100)
    assert crossed.details["n_clusters"] == (20, 2)
    with pytest.raises(UnknownName, match="no column 'person'"):
        dm.bootstrap(ratings, len, by="person")


def test_plain_columns(ratings):
    first, second = (ratings.filter(pl.col("system") == name)["value"].to_numpy() for name in ("a", "b"))
    assert dm.mann_whitney(first, second).p_value == pytest.approx(
        stats.mannwhitneyu(first, second, method="exact").pvalue
    )
    assert dm.spearman(first, second).value == pytest.approx(stats.spearmanr(first, second).statistic)
    both = dm.judged_mean(first, second[: len(first)], second).both
    assert dm.judged_mean_bootstrap(first, second[: len(first)], second).value == pytest.approx(both.value)


def test_statistics_are_listed_and_faults_are_named(ratings):
    listed = dm.statistics()
    assert {"fleiss_kappa", "dawid_skene", "mace"} <= set(listed["name"])
    assert not listed["is_in_reports"].any()
    with pytest.raises(UnknownName, match="did you mean 'fleiss_kappa'"):
        dm.compute("fleis_kappa", ratings)
    with pytest.raises(UnknownName, match="no setting 'sead'"):
        dm.compute("mace", ratings, sead=3)
    with pytest.raises(DialometerError, match="no column 'rater'"):
        dm.compute("mace", ratings.drop("rater"))
    with pytest.raises(UnknownName, match="no column 'category'"):
        dm.compute("mace", ratings.drop("value"))


@pytest.fixture
def temporary():
    """Statistics that are known for one test."""
    before = dict(STATISTICS._parts) if STATISTICS.names() else {}
    yield statistic
    STATISTICS._parts.clear()
    STATISTICS._parts.update(before)


def test_a_broken_statistic_is_named(temporary, ratings):
    @temporary("broken", title="Broken")
    def broken(value):
        return value[10**9]

    @temporary("no_estimate", title="A bare number")
    def no_estimate(value):
        return float(value.mean())

    with pytest.raises(DialometerError, match="'broken' failed: IndexError"):
        dm.compute("broken", ratings)
    with pytest.raises(DialometerError, match="'no_estimate' gave a float"):
        dm.compute("no_estimate", ratings)
    empty = dm.compute("broken", ratings.with_columns(value=pl.lit(None, pl.Float64)))
    assert not empty.is_known
    assert "no judgment has value" in empty.notes[0]


def test_models_of_ratings_are_those_of_the_statistics():
    y, s, r, i = crossed(2, 20, 8, 2)
    judgments = pl.DataFrame(
        {"criterion": "quality", "value": y, "system": np.array(["old", "new"])[s], "rater": r, "item": i}
    ).with_columns(pl.col("rater", "item").cast(pl.String))
    ordinal = dm.ordinal_model(judgments, "quality")
    fit = fit_ordinal(y, (s == 0)[:, None], {"r": r, "rs": 2 * r + s, "i": i, "is": 2 * i + s})
    assert ordinal.log_odds("old", "new")[0] == pytest.approx(fit.coefficients[0], abs=1e-6)
    assert dm.generalizability(judgments).components == pytest.approx(g_study(y, s, i, r).components)
    severities = {row.rater: row.severity.value for row in dm.rater_severity(judgments).raters}
    assert severities == pytest.approx(
        {str(row.rater): row.severity.value for row in many_facet_rasch(y, s, i, r).raters}
    )
    with pytest.raises(DialometerError, match="number"):
        dm.generalizability(judgments.with_columns(pl.lit(None, dtype=pl.Float64).alias("value")))
