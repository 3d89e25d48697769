"""Strategies with several levels and crossed strategies: known utilities come out, and tests keep their level."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.special import expit

from dialometer.analysis.base.family import ANALYSES, Options
from dialometer.analysis.families.pairs.choices import PairChoices, pair_items
from dialometer.analysis.families.pairs.factors import crossed_effects, factors_section, has_factors
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template

OPTIONS = Options(confidence=0.95, n_resamples=300, seed=1, correction="holm")
STYLES, EMPATHIES = ("informal", "formal"), ("low", "high")
UTILITY = {("informal", "low"): 0.0, ("formal", "low"): 0.7, ("informal", "high"): 0.4, ("formal", "high"): 2.0}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("factors") / "strategies"
    copy_template("strategies", path)
    return load_study(path)


def crossed_study(template, versions, *, control=None):
    """The template's pairs, one for each version, with levels in their metadata."""
    items = []
    for item, version in zip(pair_items(template), versions, strict=False):
        metadata = {"factors": dict(zip(("style", "empathy"), version, strict=True))}
        if control is not None:
            metadata["control_factors"] = dict(zip(("style", "empathy"), control, strict=True))
        items.append(dataclasses.replace(item, metadata=metadata))
    return dataclasses.replace(template, items=tuple(items))


def choices_of(study, win, *, n_raters, n_questions=2, seed=0, spread=0.0):
    """Every rater judges every pair on every question; ``win(levels)`` is the log odds of the experimental version."""
    rng = np.random.default_rng(seed)
    items = pair_items(study)
    lean = rng.normal(0, spread, n_raters) if spread else np.zeros(n_raters)
    rater, item, question = (
        a.ravel()
        for a in np.meshgrid(np.arange(n_raters), np.arange(len(items)), np.arange(n_questions), indexing="ij")
    )
    odds = np.array([win(tuple(one.metadata["factors"].values())) for one in items])[item] + lean[rater]
    signed = np.where(rng.random(len(rater)) < expit(odds), 1.0, -1.0)
    return PairChoices(
        strategies=("all",),
        questions=tuple(f"q{k}" for k in range(n_questions)),
        items=tuple(one.id for one in items),
        strategy_labels=("all",),
        question_labels=tuple(f"q{k}" for k in range(n_questions)),
        signed=signed,
        chose_first=np.full(len(signed), np.nan),
        rater=rater,
        strategy=np.zeros(len(signed), dtype=np.int64),
        question=question,
        item=item,
        drawn=item,
        rater_names=np.array([f"R{k}" for k in range(n_raters)]),
    )


def test_main_effects_and_interaction_with_a_control_apart(template):
    """Control has utility 0.5 of its own; effects are contrasts of the four versions."""
    study = crossed_study(template, list(itertools.product(STYLES, EMPATHIES)))
    found = crossed_effects(study, choices_of(study, lambda v: UTILITY[v] - 0.5, n_raters=400), OPTIONS)
    assert found.versions[0] == "control"
    effects = {effect.result.label: effect.result.here for effect in found.effects}
    style = effects["style: formal rather than informal"]
    both = effects["style: formal rather than informal × empathy: high rather than low"]
    truth_style = (UTILITY["formal", "low"] + UTILITY["formal", "high"] - UTILITY["informal", "high"]) / 2
    truth_both = UTILITY["formal", "high"] - UTILITY["formal", "low"] - UTILITY["informal", "high"]
    assert style.low < truth_style < style.high
    assert both.low < truth_both < both.high
    assert both.p_value < 0.001


def test_the_control_as_one_of_the_combinations(template):
    """Three pairs against the plain version are enough for both main effects and the interaction."""
    versions = [v for v in UTILITY if v != ("informal", "low")]
    study = crossed_study(template, versions, control=("informal", "low"))
    found = crossed_effects(study, choices_of(study, UTILITY.get, n_raters=400, seed=3), OPTIONS)
    assert "control" not in found.versions
    assert found.missing == ()
    for effect, truth in zip(found.effects, (1.15, 0.85, 0.9), strict=True):
        assert effect.result.here.low < truth < effect.result.here.high
    preferred = found.effects[0].preferred
    assert preferred.value == pytest.approx(expit(found.effects[0].result.value))


def test_without_the_controls_levels_a_missing_combination_is_said(template):
    versions = [v for v in UTILITY if v != ("informal", "low")]
    study = crossed_study(template, versions)
    section = factors_section(study, choices_of(study, UTILITY.get, n_raters=40), OPTIONS)
    told = " ".join(section.paragraphs)
    assert "1 combination of levels was never shown (informal + low)" in told
    assert "control_factors" in told
    assert [part.name for part in section.parts] == ["versions", "versions-figure"]


def test_levels_of_one_factor_find_the_best(template):
    levels = ("slight", "clear", "strong")
    items = [
        dataclasses.replace(item, metadata={"factors": {"formality": level}})
        for item, level in zip(pair_items(template), levels, strict=False)
    ]
    study = dataclasses.replace(template, items=tuple(items))
    odds = {("slight",): 0.2, ("clear",): 1.5, ("strong",): -0.8}
    section = factors_section(study, choices_of(study, odds.get, n_raters=120), OPTIONS)
    assert section.paragraphs[0].startswith("The version clear has the highest utility in these transcript pairs.")
    effects = next(part for part in section.parts if part.name == "factor-effects")
    assert [row[0] for row in effects.rows] == [
        "formality: clear rather than slight",
        "formality: strong rather than slight",
    ]


def test_the_family_reports_factors_only_where_items_name_them(template):
    study = crossed_study(template, list(itertools.product(STYLES, EMPATHIES)))
    assert has_factors(study)
    assert not has_factors(template)
    assert ANALYSES.get("transcript_pairs").fits(study)


def test_one_rater_makes_a_sentence(template):
    study = crossed_study(template, list(itertools.product(STYLES, EMPATHIES)))
    with pytest.raises(Exception, match="at least two raters"):
        crossed_effects(study, choices_of(study, lambda v: 0.0, n_raters=1), OPTIONS)


def test_interaction_tests_keep_their_level_when_raters_lean(template):
    """Raters lean towards change or away from it; nothing interacts in truth."""
    study = crossed_study(template, list(itertools.product(STYLES, EMPATHIES)))
    options = dataclasses.replace(OPTIONS, n_resamples=120)
    n_sims, n_false, n_held = 160, 0, 0
    for seed in range(n_sims):
        choices = choices_of(study, lambda v: 0.6 * (v[0] == "formal"), n_raters=25, seed=seed, spread=0.8)
        effects = crossed_effects(study, choices, options).effects
        n_false += effects[2].result.here.p_value <= 0.05
        n_held += effects[1].result.here.low <= 0.0 <= effects[1].result.here.high
    assert n_false / n_sims < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_sims)
    assert n_held / n_sims > 0.95 - 3 * np.sqrt(0.05 * 0.95 / n_sims) - 0.03


def repeated(template, n_pairs):
    """Each of the four versions in several pairs with the control."""
    first = pair_items(template)[0]
    items = [
        dataclasses.replace(
            first, id=f"{style}-{empathy}-{k}", metadata={"factors": {"style": style, "empathy": empathy}}
        )
        for style, empathy in itertools.product(STYLES, EMPATHIES)
        for k in range(n_pairs)
    ]
    return dataclasses.replace(template, items=tuple(items))


def test_one_pair_of_each_version_is_about_these_pairs_only(template):
    study = crossed_study(template, list(itertools.product(STYLES, EMPATHIES)))
    choices = choices_of(study, lambda v: UTILITY[v] - 0.5, n_raters=60)
    effect = crossed_effects(study, choices, OPTIONS).effects[0].result
    assert np.isnan(effect.general.p_value)
    assert "one transcript pair only" in effect.general.notes[-1]
    section = factors_section(study, choices, OPTIONS)
    assert "of choices in these transcript pairs, all else equal" in section.paragraphs[1]


def test_effects_in_general_are_not_found_in_pairs_that_differ_by_chance(template):
    """Pairs differ, versions do not: over raters alone nearly half of the effects are significant."""
    study = repeated(template, 3)
    rng = np.random.default_rng(8)
    n_sims, n_general, n_here = 40, 0, 0
    for seed in range(n_sims):
        levels = dict(zip((item.id for item in study.items), rng.normal(0, 0.8, len(study.items)), strict=True))
        choices = choices_of(study, lambda v: 0.0, n_raters=25, seed=seed)
        odds = np.array([levels[name] for name in choices.items])[choices.item]
        signed = np.where(rng.random(choices.n) < expit(odds), 1.0, -1.0)
        effects = crossed_effects(study, dataclasses.replace(choices, signed=signed), OPTIONS).effects
        n_general += sum(effect.result.general.p_value <= 0.05 for effect in effects)
        n_here += sum(effect.result.here.p_value <= 0.05 for effect in effects)
    assert n_general <= 0.05 * 3 * n_sims + 3 * np.sqrt(0.05 * 0.95 * 3 * n_sims)
    assert n_here > 0.25 * 3 * n_sims


def test_effects_that_every_pair_shows_hold_in_general(template):
    study = repeated(template, 4)
    choices = choices_of(study, lambda v: UTILITY[v] - 0.5, n_raters=60)
    style = crossed_effects(study, choices, OPTIONS).effects[0].result
    assert style.reach == "general"
    assert style.general.low < 1.15 < style.general.high
    assert style.general.value == pytest.approx(style.here.value)
