"""The quick way of drawing multinomial counts draws from the multinomial distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dialometer.stats.ranking import bradley_terry_bootstrap as multinomial_module
from dialometer.stats.ranking.bradley_terry_bootstrap import resampled_counts

COUNTS = np.array([400, 30, 250, 5, 0, 915], dtype=np.int64)


@pytest.fixture(params=["quick", "plain"])
def draw(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(multinomial_module, "_LEAST_PER_CELL", 10**9)
    return resampled_counts(COUNTS)


def test_every_resample_has_as_many_cases_as_the_data(draw):
    drawn = draw(500, np.random.default_rng(1))
    assert drawn.shape == (500, 6)
    assert (drawn.sum(axis=1) == COUNTS.sum()).all()
    assert (drawn >= 0).all()
    assert (drawn[:, 4] == 0).all()


def test_means_and_covariances_are_multinomial(draw):
    drawn = draw(40_000, np.random.default_rng(2))
    total, share = COUNTS.sum(), COUNTS / COUNTS.sum()
    covariance = total * (np.diag(share) - np.outer(share, share))
    spread = np.sqrt(np.diagonal(covariance))
    assert np.abs(drawn.mean(axis=0) - COUNTS).max() < 5 * spread.max() / np.sqrt(40_000)
    assert np.abs(np.cov(drawn.T) - covariance).max() < 0.03 * covariance.max()


@pytest.mark.parametrize("cell", [1, 3, 5])
def test_single_cells_are_binomial(draw, cell):
    drawn = draw(20_000, np.random.default_rng(3))[:, cell]
    binomial = stats.binom(COUNTS.sum(), COUNTS[cell] / COUNTS.sum())
    edges = np.unique(binomial.ppf(np.linspace(0.05, 0.95, 10)))
    observed = np.bincount(np.searchsorted(edges, drawn), minlength=len(edges) + 1)
    expected = np.diff(np.concatenate([[0], binomial.cdf(edges), [1]])) * len(drawn)
    assert stats.chisquare(observed, expected).pvalue > 1e-4


def test_the_same_generator_gives_the_same_counts(draw):
    assert np.array_equal(draw(20, np.random.default_rng(4)), draw(20, np.random.default_rng(4)))


def test_few_cases_are_drawn_the_plain_way():
    counts = np.array([3, 1, 2], dtype=np.int64)
    drawn = resampled_counts(counts)(50, np.random.default_rng(5))
    assert np.array_equal(drawn, np.random.default_rng(5).multinomial(6, counts / 6, size=50))
