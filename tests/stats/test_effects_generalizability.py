"""Variance components against Brennan's published tables and lme4, and decision studies against their formulas."""

import dataclasses

import numpy as np
import pytest

from crossed_ratings import crossed
from dialometer.errors import NotEnoughData
from dialometer.stats.effects import generalizability
from dialometer.stats.effects.generalizability import cheapest_design, g_study, raters_needed
from r_checks import run_r

# Brennan (2001), Generalizability Theory, synthetic data set 3: persons x items x occasions; a row is an occasion's item.
CROSSED = """2455442306 6559346458 7648546447 5766675556 2655462656 5747547658 5557677658 5756485436"""
# Synthetic data set 4: persons x (raters nested in tasks), four raters for each of three tasks.
NESTED = """5937937594 6345243894 5735937584 5733757783 5753737763 3531735565 4534365566 5553737455 6765245355
            7753755287 3513515111 3265324111"""


def table(text):
    return np.array([[int(x) for x in row] for row in text.split()])


def test_a_crossed_design_as_published():
    """Brennan (2001), Table 3.2."""
    scores = table(CROSSED)
    occasion, item = np.repeat([0, 1], 40), np.repeat([0, 1, 2, 3] * 2, 10)
    study = g_study(scores.ravel(), np.tile(range(10), 8), item, occasion)
    published = {
        "system": 0.5528, "item": 0.4417, "rater": 0.0074, "system:item": 0.5750, "system:rater": 0.1009,
        "item:rater": 0.1565, "residual": 0.9352,
    }  # fmt: skip
    assert study.components == pytest.approx(published, abs=5e-5)
    assert study.generalizability(2, 4) == pytest.approx(0.64, abs=5e-3)
    assert study.dependability(2, 4) == pytest.approx(0.55, abs=5e-3)


def test_a_nested_design_as_published():
    """Brennan (2001), Table 3.3: what cannot be told apart is one part, and is named."""
    scores = table(NESTED)
    rater = np.repeat(range(12), 10)
    study = g_study(scores.ravel(), np.tile(range(10), 12), rater // 4, rater)
    published = {"system": 0.4731, "item": 0.3252, "item:rater": 0.6475, "system:item": 0.5596, "residual": 2.3802}
    assert study.components == pytest.approx(published, abs=5e-5)
    assert study.generalizability(12, 3, 1) == pytest.approx(0.55, abs=5e-3)
    assert study.dependability(12, 3, 1) == pytest.approx(0.46, abs=5e-3)
    assert study.joined == (("system:rater", "residual"), ("rater", "item:rater"))


def with_holes():
    y, s, r, i = crossed()
    kept = np.random.default_rng(3).random(len(y)) < 0.6
    return y[kept], s[kept], i[kept], r[kept]


def test_ratings_with_holes_as_by_lme4():
    """lme4 1.1.31: lmer(y ~ 1 + (1|s) + (1|i) + (1|r) + (1|s:i) + (1|s:r) + (1|i:r)) on these ratings."""
    study = g_study(*with_holes())
    assert study.method == "REML"
    found = {
        "system": 0.083436698, "system:item": 0.053813441, "system:rater": 0.064452057, "item:rater": 0.0,
        "item": 0.068947587, "rater": 0.177277332, "residual": 1.264371903,
    }  # fmt: skip
    assert study.components == pytest.approx(found, abs=1e-5)


def test_lme4_agrees_where_it_is_installed(tmp_path):
    y, s, i, r = with_holes()
    kept = r < 25
    columns = [c[kept] for c in (y, s, i, r)]
    path = tmp_path / "ratings.csv"
    np.savetxt(path, np.column_stack(columns), fmt="%d", delimiter=",", header="y,s,i,r", comments="")
    script = (
        f"d<-read.csv('{path}');m<-suppressMessages(lmer(y~1+(1|s)+(1|i)+(1|r)+(1|s:i)+(1|s:r)+(1|i:r),data=d));"
        "v<-as.data.frame(VarCorr(m));"
        "cat(v$vcov[match(c('s','s:i','s:r','i:r','i','r','Residual'),v$grp)])"
    )
    (variances,) = run_r(script, "lme4")
    assert list(g_study(*columns).components.values()) == pytest.approx(variances, abs=2e-4)


def test_a_plan_is_as_precise_as_it_says():
    y, system, item, rater = with_holes()
    study = g_study(y, system, item, rater)
    parts = study.components
    # A plan has the holes of the study: on each item that a rater sees, so many of the systems are judged.
    share = len(y) / (len(set(system)) * len(set(zip(item, rater, strict=True))))
    assert study.share_of_load == pytest.approx(share)
    by_hand = parts["system:item"] / 30 + parts["system:rater"] / 50 + parts["residual"] / (50 * 12 * share)
    assert study.contrast_error(50, 30, 12) ** 2 == pytest.approx(2 * by_hand)
    n = raters_needed(study, 0.15, 30, 12)
    assert study.contrast_error(n, 30, 12) <= 0.15 < study.contrast_error(n - 1, 30, 12)
    assert raters_needed(study, 0.05, 20, 20) is None
    best = cheapest_design(study, 0.2, items_per_rater=10, most_items=40, cost_per_item=0.3)
    costs = [
        raters * min(items, 10) * 0.3
        for items in range(5, 41)
        for raters in range(5, 200)
        if study.contrast_error(raters, items, 10) <= 0.2
    ]
    assert best.cost == pytest.approx(min(costs))
    assert best.error <= 0.2
    assert cheapest_design(study, 0.01, items_per_rater=10, most_items=40) is None


def test_a_plan_where_items_show_one_system_each_is_as_precise_as_simulated_differences():
    """Raters judge 8 of 16 items, four of each system; the true variances are known."""
    rater, item = np.array([(r, (2 * r + k) % 16) for r in range(8) for k in range(8)]).T
    system = item % 2
    rng = np.random.default_rng(5)
    study = g_study(rng.normal(size=len(item)), system, item, rater)
    assert (study.share_of_items, study.share_of_raters, study.share_of_load) == (0.5, 1.0, 0.5)
    true = dataclasses.replace(study, components={"system:item": 1.0, "system:rater": 0.5, "residual": 2.0})
    gaps = []
    for _ in range(4000):
        y = rng.normal(size=16)[item] + np.sqrt(0.5) * rng.normal(size=(2, 8))[system, rater]
        y += np.sqrt(2) * rng.normal(size=len(y))
        gaps.append(y[system == 0].mean() - y[system == 1].mean())
    assert true.contrast_error(8, 16, 8) == pytest.approx(np.std(gaps), rel=0.05)
    assert true.contrast_error(8, 16, 8) ** 2 == pytest.approx(2 * (1 / 8 + 0.5 / 8 + 2 / 32))
    n = raters_needed(true, 0.7, 16, 8)
    assert true.contrast_error(n, 16, 8) <= 0.7 < true.contrast_error(n - 1, 16, 8)


def test_raters_who_see_one_system_each_or_one_system_an_item():
    """Shares of a design where raters belong to one system, and of one where each screen shows one system."""
    rater, item = np.divmod(np.arange(24), 6)
    y = np.random.default_rng(1).normal(size=24)
    of_rater, of_screen = (g_study(y, system, item, rater) for system in (rater % 2, (rater + item) % 2))
    assert (of_rater.share_of_items, of_rater.share_of_raters, of_rater.share_of_load) == (1.0, 0.5, 0.5)
    assert (of_screen.share_of_items, of_screen.share_of_raters, of_screen.share_of_load) == (1.0, 1.0, 0.5)


def test_moments_of_a_large_design_are_near(monkeypatch):
    """Henderson's first method is unbiased; on these ratings it is near REML."""
    exact = g_study(*with_holes()).components
    monkeypatch.setattr(generalizability, "MOST_CELLS", 10)
    near = g_study(*with_holes())
    assert "Henderson" in near.method
    assert near.components == pytest.approx(exact, abs=0.03)


def test_too_little_is_refused():
    with pytest.raises(NotEnoughData, match="two of each"):
        g_study([1, 2, 3, 4.0], [0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 1])
