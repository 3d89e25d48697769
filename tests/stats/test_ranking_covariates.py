"""Strengths with covariates: statsmodels' values, weights, and covariates that go with the systems."""

import numpy as np
import pytest
import statsmodels.api as sm

from dialometer.errors import NotEnoughData
from dialometer.stats.ranking.covariates import covariate_rows, distinct_covariates, fit_with_covariates, likeliest
from dialometer.stats.ranking.covariates_bootstrap import bootstrap_with_covariates
from dialometer.stats.ranking.paired_rows import PairedRows
from dialometer.stats.ranking.style import STYLE, relative_differences, style_counts
from dialometer.stats.ranking.votes import Votes


def drawn(n=400, *, seed=1, weight=None):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 4, n)
    second = (first + rng.integers(1, 4, n)) % 4
    x = rng.normal(size=(n, 2))
    strength = np.array([0.6, 0.2, -0.2, -0.6])
    chance = 1 / (1 + np.exp(-(strength[first] - strength[second] + x @ [0.5, 0.0])))
    outcome = np.where(rng.random(n) < 0.15, 0, np.where(rng.random(n) < chance, 1, -1))
    raters, items = rng.integers(0, 40, n), rng.integers(0, 30, n)
    votes = Votes(
        tuple("abcd"), first, second, outcome, np.arange(n), tuple(f"r{k}" for k in range(40)), raters,
        tuple(f"i{k}" for k in range(30)), items, weight=weight,
    )  # fmt: skip
    return votes, x


@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_values_of_statsmodels(is_weighted):
    weight = np.random.default_rng(2).uniform(0.5, 3, 400) if is_weighted else None
    votes, x = drawn(weight=weight)
    fit = fit_with_covariates(votes, x, ("length", "lists"), position_effect=True)
    sides = np.zeros((votes.n, 4))
    sides[np.arange(votes.n), votes.first] += 1
    sides[np.arange(votes.n), votes.second] -= 1
    design = np.column_stack([sides[:, 1:], np.ones(votes.n), x])  # the first system is the reference
    model = sm.GLM((votes.outcome + 1) / 2, design, family=sm.families.Binomial(), freq_weights=weight)
    params = model.fit(tol=1e-12).params
    strengths = np.array([0.0, *params[:3]])
    assert [e.value for e in fit.strengths] == pytest.approx(strengths - strengths.mean(), abs=1e-7)
    assert fit.position.value == pytest.approx(params[3], abs=1e-7)
    assert [e.value for e in fit.coefficients] == pytest.approx(params[4:], abs=1e-7)
    assert sum(e.value for e in fit.strengths) == pytest.approx(0, abs=1e-12)


def test_uncertainty_is_over_raters_and_items():
    votes, x = drawn()
    both = fit_with_covariates(votes, x, ("length", "lists"))
    raters = fit_with_covariates(votes, x, ("length", "lists"), has_fixed_items=True)
    assert "raters and items" in both.coefficients[0].interval_method
    assert "over raters," in raters.coefficients[0].interval_method
    assert both.coefficients[0].p_value < 0.001
    assert both.coefficients[1].low < 0 < both.coefficients[1].high
    assert both.order == tuple("abcd")


def test_covariates_that_go_with_the_systems_are_left_out():
    votes, x = drawn()
    of_system = np.array([3.0, 1.0, 0.0, -2.0])
    same = (of_system[votes.first] - of_system[votes.second])[:, None]
    assert distinct_covariates(votes, np.hstack([x[:, :1], same, x[:, 1:], x[:, :1] * 2])) == [0, 2]
    with pytest.raises(NotEnoughData, match="apart"):
        fit_with_covariates(votes, same, ("same",))


def test_too_little_to_say_anything():
    votes, x = drawn()
    sure = Votes(
        **{**{f: getattr(votes, f) for f in votes.__slots__}, "outcome": np.where(votes.first < votes.second, 1, -1)}
    )
    with pytest.raises(NotEnoughData, match="finite"):
        fit_with_covariates(sure, x, ("length", "lists"))
    alone = Votes(**{**{f: getattr(votes, f) for f in votes.__slots__}, "rater": np.zeros(votes.n, dtype=int)})
    with pytest.raises(NotEnoughData, match="one rater"):
        fit_with_covariates(alone, x, ("length", "lists"))


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Just four words here", (4, 0, 0, 0, 0)),
        ("# One\n\ntext\n### Two\n#hashtag", (6, 2, 0, 0, 0)),
        ("- a\n* b\n+ c\n1. d\n2) e\n-f\n3.5 is no item", (15, 0, 5, 0, 0)),
        ("**bold** and __too__ but not ** this ** nor a_b__c", (10, 0, 0, 2, 0)),
        ("```python\n# no heading\n- no item\n**x**\n```\nand `code` twice `here`", (13, 0, 0, 0, 3)),
        ("~~~\nnever closed\n# still code", (6, 0, 0, 0, 1)),
        ("", (0, 0, 0, 0, 0)),
    ],
)
def test_style_is_counted_in_markdown(text, counts):
    assert style_counts([text]) == counts
    assert style_counts([text, text]) == tuple(2 * n for n in counts)


def test_differences_are_relative():
    first, second = np.array([[30.0, 0.0], [0.0, 0.0]]), np.array([[10.0, 2.0], [5.0, 0.0]])
    assert relative_differences(first, second).tolist() == [[0.5, -1.0], [-1.0, 0.0]]
    assert len(STYLE) == 5


def test_resamples_are_fitted_as_from_zero():
    votes, x = drawn(3000)
    alone = Votes(votes.systems, votes.first, votes.second, votes.outcome, votes.row)
    boot = bootstrap_with_covariates(alone, x, ("length", "lists"), position_effect=True, n_resamples=20, seed=3)
    paired = covariate_rows(alone, x, position_effect=True)
    for child, values in zip(np.random.SeedSequence(3).spawn(20), boot.replicates, strict=True):
        rng = np.random.default_rng(child)
        times = np.bincount(rng.integers(0, alone.n, alone.n), minlength=alone.n).astype(float)
        assert values == pytest.approx(likeliest(paired, times), abs=1e-6)
    fit = fit_with_covariates(alone, x, ("length", "lists"), position_effect=True)
    assert [e.value for e in boot.coefficients] == pytest.approx([e.value for e in fit.coefficients], abs=1e-12)
    assert boot.position.interval_method == "percentile bootstrap over votes"
    assert [boot.ranks.ranks[name].value for name in "abcd"] == [1, 2, 3, 4]


def test_the_spread_of_resamples_is_that_of_what_is_drawn():
    """Beside the jackknife: over votes, over raters, and over raters and items at once."""
    votes, x = drawn(2000)
    names = ("length", "lists")
    alone = Votes(votes.systems, votes.first, votes.second, votes.outcome, votes.row)
    by_rater = Votes(**{**{f: getattr(votes, f) for f in votes.__slots__}, "item": None, "items": ()})
    for given, drawn_units, most in (
        (alone, "votes", 1.1),
        (by_rater, "raters", 1.1),
        (votes, "raters and items", 1.0001),
    ):
        boot = bootstrap_with_covariates(given, x, names, n_resamples=200, seed=1)
        jackknife = fit_with_covariates(given, x, names)
        assert boot.coefficients[0].interval_method.endswith(f"over {drawn_units}")
        widths = [
            (b.high - b.low) / (j.high - j.low)
            for b, j in zip(
                (*boot.coefficients, *boot.strengths.values()),
                (*jackknife.coefficients, *jackknife.strengths),
                strict=True,
            )
        ]
        assert 0.8 < np.mean(widths) < most


def test_votes_in_several_blocks_and_pairs_across_their_borders(monkeypatch):
    votes, x = drawn(1000)
    whole = PairedRows(votes, x)
    monkeypatch.setattr("dialometer.stats.ranking.paired_rows._BLOCK", 7)
    parts = PairedRows(votes, x)
    weight = np.random.default_rng(1).integers(0, 3, votes.n).astype(float)
    assert len(parts.blocks) == 143
    assert parts.fit(weight) == pytest.approx(whole.fit(weight), abs=1e-10)
    assert parts.gram() == pytest.approx(whole.gram())


def test_resamples_without_an_estimate_are_refused():
    votes, x = drawn(60)
    rare = Votes(
        **{
            **{f: getattr(votes, f) for f in votes.__slots__},
            "rater": np.minimum(votes.rater, 3),
            "raters": tuple("abcd"),
        }
    )
    with pytest.raises(NotEnoughData, match="of 50 resamples of the raters and items have no finite estimate"):
        bootstrap_with_covariates(rare, x, ("length", "lists"), n_resamples=50)
