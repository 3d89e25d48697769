"""Agreement on sides whose order is arbitrary: Krippendorff's alpha of pairs entered both ways."""

import krippendorff
import numpy as np
import pytest

from dialometer.stats.agreement.side_agreement import side_alpha


def matrix_of(counts):
    """Units by labels as raters by units, each unit twice: once with the first two labels swapped."""
    both = np.concatenate([counts, counts[:, [1, 0, *range(2, counts.shape[1])]]])
    width = int(both.sum(axis=1).max())
    matrix = np.full((len(both), width), np.nan)
    for row, unit in zip(matrix, both.astype(int), strict=True):
        answers = np.repeat(np.arange(len(unit)), unit)
        row[: len(answers)] = answers
    return matrix.T


@pytest.mark.parametrize("n_labels", [2, 4])
def test_it_equals_alpha_of_pairs_entered_both_ways(n_labels):
    counts = np.random.default_rng(3).integers(0, 4, (30, n_labels)).astype(float)
    counts = counts[counts.sum(axis=1) >= 2]
    peer = krippendorff.alpha(matrix_of(counts), level_of_measurement="nominal", value_domain=list(range(n_labels)))
    estimate = side_alpha(counts, n_resamples=200)
    assert estimate.value == pytest.approx(peer, abs=1e-12)
    assert estimate.low < estimate.value < estimate.high


def test_the_order_of_the_sides_does_not_matter():
    counts = np.random.default_rng(4).integers(0, 5, (20, 3)).astype(float)
    turned = counts.copy()
    turned[::2, :2] = turned[::2, 1::-1]
    assert side_alpha(turned, n_resamples=50).value == pytest.approx(side_alpha(counts, n_resamples=50).value)


def test_full_agreement_is_one_and_single_votes_are_left_out():
    counts = np.array([[5.0, 0], [0, 4], [3, 0], [0, 1]])
    estimate = side_alpha(counts, n_resamples=50)
    assert estimate.value == pytest.approx(1)
    assert "1 pair judged by one rater excluded" in estimate.notes
    assert not side_alpha(np.array([[1.0, 0], [0, 1]])).is_known


def test_full_agreement_has_no_interval_without_width():
    estimate = side_alpha([[3, 0], [0, 3], [3, 0], [3, 0]], seed=1)
    assert estimate.value == pytest.approx(1)
    assert not estimate.has_interval
    assert any("every resample gave the same value" in note for note in estimate.notes)
