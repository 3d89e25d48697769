"""Factorial effects: contrasts of cell means, degenerate designs, and what is said about them."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats
from statsmodels.stats.anova import anova_lm

from dialometer.errors import DialometerError
from dialometer.stats.effects.factorial import factorial_effects

LEVELS = {"anchor": ["none", "both"], "layout": ["together", "one_per_screen"]}


def draw_study(seed=1, n_raters=24, n_items=10, share=1.0, anchor_effect=0.4, interaction=0.0):
    rng = np.random.default_rng(seed)
    rater, item = np.divmod(np.flatnonzero(rng.random(n_raters * n_items) < share), n_items)
    a, b = np.arange(n_raters) % 2, (np.arange(n_raters) // 2) % 2
    y = anchor_effect * a[rater] + interaction * (a * b)[rater] + 0.5 * rng.normal(size=n_raters)[rater]
    y = y + 0.7 * rng.normal(size=n_items)[item] + rng.normal(size=len(rater))
    factors = {"anchor": np.array(LEVELS["anchor"])[a[rater]], "layout": np.array(LEVELS["layout"])[b[rater]]}
    return y, factors, rater, item


def test_balanced_effects_are_those_of_anova_on_rater_means():
    y, factors, rater, item = draw_study(interaction=0.3)
    model = factorial_effects(y, factors, rater, item, levels=LEVELS)
    means = (
        pd.DataFrame({"y": y, "rater": rater, **factors})
        .groupby(["rater", "anchor", "layout"], as_index=False)
        .y.mean()
    )
    table = anova_lm(smf.ols("y ~ C(anchor, Sum) * C(layout, Sum)", means).fit(), typ=3)
    rows = ["C(anchor, Sum)", "C(layout, Sum)", "C(anchor, Sum):C(layout, Sum)"]
    effects = model.effects()
    assert list(effects) == ["anchor", "layout", "anchor:layout"]
    for estimate, row in zip(effects.values(), rows, strict=True):
        assert estimate.statistic**2 == pytest.approx(table.loc[row, "F"], rel=1e-6)
        assert estimate.p_value == pytest.approx(table.loc[row, "PR(>F)"], rel=1e-4)
        assert estimate.df[0] == pytest.approx(20, rel=1e-5)
        assert "crossed random raters and items" in estimate.method
        assert "Satterthwaite" in estimate.interval_method
    cell = means.groupby(["anchor", "layout"]).y.mean()
    none, both = cell["none"], cell["both"]
    assert effects["anchor"].value == pytest.approx(both.mean() - none.mean())
    difference = (both - none)["one_per_screen"] - (both - none)["together"]
    assert effects["anchor:layout"].value == pytest.approx(difference)


def test_comparisons_and_means():
    y, factors, rater, item = draw_study(2, share=0.6)
    model = factorial_effects(y, factors, rater, item, levels=LEVELS)
    main = model.compare({"anchor": "both"}, {"anchor": "none"})
    effect = model.effect("anchor")
    assert (main.value, main.low, main.high) == pytest.approx((effect.value, effect.low, effect.high))
    simple = [
        model.compare({"anchor": "both", "layout": layout}, {"anchor": "none", "layout": layout}).value
        for layout in LEVELS["layout"]
    ]
    assert effect.value == pytest.approx(np.mean(simple))
    assert model.effect("anchor:layout").value == pytest.approx(simple[1] - simple[0])
    means = [model.mean({"anchor": level}).value for level in LEVELS["anchor"]]
    assert effect.value == pytest.approx(means[1] - means[0])
    assert model.mean().value == pytest.approx(np.mean(means))
    assert model.mean().label == "all conditions"
    with pytest.raises(DialometerError, match="no level"):
        model.mean({"anchor": "text"})
    with pytest.raises(DialometerError, match="no factor"):
        model.mean({"colour": "red"})
    with pytest.raises(DialometerError, match="unknown term"):
        model.effect("colour")


def test_logs_are_told_as_ratios():
    y, factors, rater, item = draw_study(3)
    model = factorial_effects(y, factors, rater, item, levels=LEVELS, is_log=True)
    effect, mean = model.effect("anchor"), model.mean({"anchor": "both"})
    assert effect.details["ratio"] == pytest.approx(math.exp(effect.value))
    assert effect.details["ratio_low"] == pytest.approx(math.exp(effect.low))
    assert mean.details["geometric_mean"] == pytest.approx(math.exp(mean.value))
    assert effect.unit == "log"


def test_three_levels_have_an_f_test():
    rng = np.random.default_rng(5)
    rater, item = np.divmod(np.arange(30 * 6), 6)
    group = np.array(list("xyz"))[np.arange(30) % 3]
    y = rng.normal(size=30)[rater] + rng.normal(size=6)[item] + rng.normal(size=180) + (group == "z")[rater]
    estimate = factorial_effects(y, {"group": group[rater]}, rater, item).effect("group")
    means = y.reshape(30, 6).mean(axis=1)
    peer = stats.f_oneway(*(means[group == level] for level in "xyz"))
    assert estimate.statistic == pytest.approx(peer.statistic, rel=1e-6)
    assert estimate.p_value == pytest.approx(peer.pvalue, rel=1e-4)
    cells = np.array([means[group == level].mean() for level in "xyz"])
    assert estimate.value == pytest.approx(cells.std())
    assert estimate.df == pytest.approx((2, 27), rel=1e-4)


def test_order_of_rows_and_names_of_raters_do_not_matter():
    y, factors, rater, item = draw_study(6, share=0.5)
    order = np.random.default_rng(0).permutation(len(y))
    names = np.array([f"rater {n}" for n in range(24)])
    one = factorial_effects(y, factors, rater, item).effect("anchor")
    moved = {name: labels[order] for name, labels in factors.items()}
    two = factorial_effects(y[order], moved, names[rater][order], item[order].astype(str)).effect("anchor")
    assert (two.value, two.p_value) == pytest.approx((one.value, one.p_value), rel=1e-6)


def test_empty_cells_are_named():
    y, factors, rater, item = draw_study(7)
    kept = factors["layout"] == "together"
    cut = {name: labels[kept] for name, labels in factors.items()}
    model = factorial_effects(y[kept], cut, rater[kept], item[kept], levels=LEVELS)
    effect = model.effect("anchor:layout")
    assert not effect.is_known
    assert "both, one_per_screen" in effect.notes[0]
    assert "recruit" in effect.notes[0]
    together = {"layout": "together"}
    simple = model.compare({"anchor": "both", **together}, {"anchor": "none", **together})
    assert simple.has_interval


def test_nothing_to_compare_is_unknown():
    y, factors, rater, item = draw_study(8)
    assert not factorial_effects(np.full(len(y), np.nan), factors, rater, item).effect("anchor").is_known
    assert not factorial_effects(np.ones(len(y)), factors, rater, item).effect("anchor").is_known
    few = rater < 4
    cut = {name: labels[few] for name, labels in factors.items()}
    assert "second rater" in factorial_effects(y[few], cut, rater[few], item[few]).effect("anchor").notes[0]
    with pytest.raises(DialometerError, match="one level"):
        factorial_effects(y, {"anchor": np.full(len(y), "none")}, rater, item)
    with pytest.raises(DialometerError, match="has levels"):
        factorial_effects(y, factors, rater, item, levels={"anchor": ["none", "text"]})


def test_missing_judgments_and_raters_in_several_conditions_are_said():
    y, factors, rater, item = draw_study(9)
    y[:3] = np.nan
    assert "3 missing answers excluded" in factorial_effects(y, factors, rater, item).effect("anchor").notes
    mixed = factorial_effects(y, factors, item, rater).effect("anchor")
    assert any("several conditions" in note for note in mixed.notes)


def test_type_one_error_of_the_interaction():
    n_runs, rejected = 300, 0
    for seed in range(n_runs):
        y, factors, rater, item = draw_study(500 + seed, 12, 6, share=0.7, anchor_effect=0.0)
        rejected += factorial_effects(y, factors, rater, item).effect("anchor:layout").p_value < 0.05
    assert 0.02 < rejected / n_runs < 0.085


def test_effects_that_vary_from_item_to_item_do_not_pass_for_a_general_effect():
    """Six items whose level effects vary around zero: other items would give another mean, so few effects are claimed."""
    rng = np.random.default_rng(21)
    n_raters, n_items, n_studies = 60, 6, 150
    level, layout = np.arange(n_raters) % 2, np.arange(n_raters) // 2 % 2
    found = {"general": 0, "these items": 0, "interaction": 0}
    for _ in range(n_studies):
        own = 0.3 * rng.normal(size=(4, n_items))
        y = rng.normal(size=n_items) + 0.4 * rng.normal(size=(n_raters, 1)) + own[2 * level + layout]
        y = y + 0.7 * rng.normal(size=y.shape)
        rater, item = (index.ravel() for index in np.indices(y.shape))
        factors = {"anchor": level[rater], "layout": layout[rater]}
        general = factorial_effects(y.ravel(), factors, rater, item)
        fixed = factorial_effects(y.ravel(), factors, rater, item, has_fixed_items=True)
        found["general"] += general.effect("anchor").p_value < 0.05
        found["interaction"] += general.effect("anchor:layout").p_value < 0.05
        found["these items"] += fixed.effect("anchor").p_value < 0.05
        assert general.effect("anchor").value == fixed.effect("anchor").value
    limit = 0.05 * n_studies + 2 * np.sqrt(n_studies * 0.05 * 0.95)
    assert found["general"] <= limit
    assert found["interaction"] <= limit
    assert found["these items"] > limit
