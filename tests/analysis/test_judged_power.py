"""Planning with a judge: what it saves is what theory says, and a useless one saves nothing."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from dialometer.analysis.planning import judged_power as planning
from dialometer.analysis.planning.judged_power import BOTH, PEOPLE, JudgedPlan, judged_power, tried
from dialometer.errors import DialometerError


def test_intervals_narrow_as_theory_says(monkeypatch):
    """Every judgment on an item and by a rater of its own: the variance falls by rho^2 times the share of items without people."""
    monkeypatch.setattr(planning, "TASTE_SHARE", 0.0)
    point = tried(JudgedPlan(0.7, 0.2, n_judged=1000, per_rater=1, n_simulations=60), 200)
    wanted = math.sqrt(1 - 0.7**2 * (1 - 200 / 1000))
    assert point.half_width[BOTH] / point.half_width[PEOPLE] == pytest.approx(wanted, abs=0.03)
    assert point.worth == pytest.approx(200 / wanted**2, rel=0.08)


def test_a_useless_judge_saves_nothing():
    point = tried(JudgedPlan(0.0, 0.5, 200, 10, n_simulations=30), 60)
    assert point.half_width[BOTH] == pytest.approx(point.half_width[PEOPLE], rel=0.05)
    assert point.worth == pytest.approx(60, rel=0.1)


def test_a_good_judge_saves_human_judgments():
    power = judged_power(JudgedPlan(0.9, 0.35, 400, 10, n_simulations=30), [40, 80, 160])
    assert power.smallest[BOTH] < power.smallest[PEOPLE]
    assert f"With this judge {power.smallest[BOTH]:,} human judgments" in planning.answer_words(power)
    hopeless = judged_power(JudgedPlan(0.5, 0.0, 100, 10, n_simulations=10), [40])
    assert "Not even 40" in planning.answer_words(hopeless)


def test_an_impossible_agreement_is_refused():
    with pytest.raises(DialometerError, match="not between 0 and"):
        JudgedPlan(1.0, 0.5, 100, 10)


def test_agreement_is_that_of_differences_on_the_same_items():
    rng = np.random.default_rng(1)
    people = [(f"r{r}", f"i{i}", s, float(rng.normal())) for r in range(3) for i in range(40) for s in "ab"]
    judges = [(f"i{i}", s, float(rng.normal())) for i in range(60) for s in "ab"]
    criterion = SimpleNamespace(
        is_choice=False,
        people=pl.DataFrame(people, schema=["rater", "item", "group", "value"], orient="row"),
        judges=pl.DataFrame(judges, schema=["item", "group", "value"], orient="row"),
    )
    (found,) = planning._matched(criterion, ["a", "b"])
    human = {(r, i): 0.0 for r, i, _, _ in people}
    for r, i, s, value in people:
        human[r, i] += value if s == "a" else -value
    score = {i: 0.0 for i, _, _ in judges}
    for i, s, value in judges:
        score[i] += value if s == "a" else -value
    wanted = np.corrcoef(list(human.values()), [score[i] for _, i in human])[0, 1]
    assert found.select(pl.corr("person", "judge")).item() == pytest.approx(wanted)
    assert len(found) == 120
