"""Adaptive assignment: what counts as open, chances with a floor, and weights with which intervals hold."""

import numpy as np
import pytest

from dialometer.stats.sequential.adaptive import LEAST, draw_weight, openness_of_ratings, openness_of_votes, set_chances


def test_leaders_are_open_and_equal_losers_are_not():
    n = np.full(4, 200.0)
    means = np.array([4.0, 3.95, 2.0, 2.0])
    openness = openness_of_ratings(n, n * means, n * (means**2 + 1))
    assert openness[0, 1] > 0.5
    assert openness[2, 3] == openness[0, 2] == LEAST
    assert openness == pytest.approx(openness.T)
    named = np.zeros((4, 4), dtype=bool)
    named[2, 3] = named[3, 2] = True
    assert openness_of_ratings(n, n * means, n * (means**2 + 1), named)[2, 3] == pytest.approx(1)
    assert openness_of_ratings(n, n * means, n * (means**2 + 1), named)[0, 1] == 0


def test_systems_that_never_met_are_compared_through_others():
    won, tied = np.zeros((2, 3, 3))
    won[0, 1], won[1, 0], won[1, 2], won[2, 1] = 90, 10, 90, 10
    openness = openness_of_votes(won, tied)
    assert openness[0, 2] == LEAST
    assert openness_of_votes(0 * won, tied) == pytest.approx(1 - np.eye(3)), "without votes everything is open"


def test_every_set_keeps_its_chance():
    openness = np.array([[0, 0.9, 0.01], [0.9, 0, 0.01], [0.01, 0.01, 0]])
    chances = set_chances(openness, [(0, 1), (0, 2), (1, 2)], 0.3)
    assert chances.sum() == pytest.approx(1)
    assert chances[0] == pytest.approx(0.1 + 0.7 * 0.9 / 0.92)
    assert set_chances(openness, [(0,), (1,), (2,)], 0.3)[2] == pytest.approx(0.1 + 0.7 * 0.02 / 1.84)
    assert set_chances(0 * openness, [(0,), (1,)], 0.3).tolist() == [0.5, 0.5]
    assert draw_weight(1 / 3, 3) == 1
    assert draw_weight(0.1, 3) == pytest.approx((1 / 0.3) ** 0.5)


def test_weighted_intervals_hold_where_plain_ones_lean_to_one_side():
    """Two equal arms, 4,000 studies of 300 answers: the arm that is ahead gets nine answers in ten."""
    rng = np.random.default_rng(1)
    n_studies, n = 4000, 300
    sums, counts = np.zeros((n_studies, 2)), np.full((n_studies, 2), 1e-9)
    parts = {power: np.zeros((n_studies, 2, 3)) for power in (0.0, 0.5)}  # weights, weighted answers, squares
    rows = np.arange(n_studies)
    for _ in range(n):
        ahead = (sums[:, 1] / counts[:, 1] > sums[:, 0] / counts[:, 0]) * 1
        arm = np.where(rng.random(n_studies) < 0.2, rng.integers(0, 2, n_studies), ahead)
        chance = np.where(arm == ahead, 0.9, 0.1)
        y = rng.normal(size=n_studies)
        sums[rows, arm] += y
        counts[rows, arm] += 1
        for power, part in parts.items():
            w = (2 * chance) ** -power
            part[rows, arm] += np.column_stack([w, w * y, (w * y) ** 2])
    held, tilt = {}, {}
    for power, part in parts.items():
        z = part[:, 0, 1] / np.sqrt(part[:, 0, 2])
        held[power] = float(np.mean(np.abs(z) <= 1.96))
        tilt[power] = float(np.mean(z < -1.645) - np.mean(z > 1.645))
    assert held[0.5] == pytest.approx(0.95, abs=0.012), held
    assert abs(tilt[0.5]) < 0.02 < tilt[0.0], tilt
