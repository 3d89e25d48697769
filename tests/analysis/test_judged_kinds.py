"""Raters corrected by judges on choices, strengths, magnitudes and with several judges, from columns that the tests write."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.judge_verdicts import one_verdict_each
from dialometer.analysis.families.judged.scores import judged_criteria
from dialometer.design.load import load_study
from dialometer.design.templates import template_folder
from dialometer.model.item import ResponsesItem
from dialometer.model.judges import Judge, JudgedAnalysis
from dialometer.model.scale import Scale
from dialometer.scales import SCALES
from dialometer.stats.judged.means import judged_mean
from dialometer.stats.judged.strengths import (
    JudgedVotes,
    fit_logistic,
    judged_strengths,
    pair_design,
    strength_contrasts,
    tuned_weight,
)
from judged_data import judged_data

OPTIONS = Options(confidence=0.95, n_resamples=100, seed=1, correction="holm")
N, ALL = 90, 450
ITEM_CHOICE = ("item", "choice")


def study_of(systems, texts, scale, combine="mean", judges=("j0",)):
    """The template's study with other systems, items and one criterion on this scale; judges correct it."""
    base = load_study(template_folder("judged"))
    spec = base.spec.model_copy(
        update={
            "systems": [base.spec.systems[0].model_copy(update={"name": name, "label": name}) for name in systems],
            "scales": {"asked": scale},
            "criteria": [base.spec.criteria[0].model_copy(update={"scale": "asked"})],
            "judges": [Judge(name=name, kind="scores") for name in judges],
            "analysis": base.spec.analysis.model_copy(
                update={"judges": JudgedAnalysis(use=list(judges), combine=combine), "comparisons": [], "primary": None}
            ),
            "quality": [],
            "pre_questionnaire": [],
        }
    )
    items = tuple(ResponsesItem(id=f"i{n:03d}", context=(), responses=shown) for n, shown in enumerate(texts))
    return replace(base, spec=spec, items=items)


def scale_of(kind, **options) -> Scale:
    return SCALES.get(kind)(type=kind, **options)


def data_of(study, people, calls):
    """Study data from (rater, item, system, answer) of raters and of judges; choices have no system, and name what was shown."""
    scale = study.spec.scales["asked"].type

    def frame(rows, source):
        rater, item, system, answer = map(list, zip(*rows, strict=True))
        is_choice = isinstance(answer[0], str)
        shown = {one.id: "|".join(one.systems) for one in study.items}
        columns = {
            "rater": rater, "session": rater, "item": item, "system": system, "source": [source] * len(rows),
            "criterion": ["helpfulness"] * len(rows), "scale": [scale] * len(rows), "block": ["main"] * len(rows),
            "order": [shown[name] for name in item], ("choice" if is_choice else "value"): answer,
        }  # fmt: skip
        return judged_data(study, columns)

    data, models = frame(people, "person"), frame(calls, "model").judgments
    return replace(data, calls=models, by_models=one_verdict_each(models))


@pytest.fixture(scope="module")
def votes():
    """Three systems in pairs; people choose by quality and by length, a judge by a noisy view of the same."""
    rng = np.random.default_rng(8)
    names, strength = ("a", "b", "c"), {"a": 0.6, "b": 0.0, "c": -0.6}
    pairs = [(names[k % 3], names[(k + 1) % 3]) for k in range(ALL)]
    words = rng.integers(5, 60, size=(ALL, 2))
    texts = [
        {one: "word " * n for one, n in zip(pair, own, strict=True)} for pair, own in zip(pairs, words, strict=True)
    ]
    gap = np.array([strength[x] - strength[y] for x, y in pairs]) + 1.0 * (words[:, 0] - words[:, 1]) / words.sum(
        axis=1
    )
    quality = gap + rng.logistic(size=ALL)
    people = [(f"r{n}", f"i{n:03d}", "", pairs[n][0] if quality[n] > 0 else pairs[n][1]) for n in range(N)]
    seen = quality + rng.normal(scale=1.0, size=ALL)
    calls = [("j0", f"i{n:03d}", "", pairs[n][0] if seen[n] > 0 else pairs[n][1]) for n in range(ALL)]
    study = study_of(names, texts, scale_of("pairwise", allow_tie=False))
    return data_of(study, people, calls)


def arrays(data):
    """Which system comes first in the file, and the votes of people and the judge for it (1) or the other (0)."""
    order = {name: place for place, name in enumerate("abc")}
    pairs = np.array([sorted(order[s] for s in item.systems) for item in data.study.items])
    own, judged = (
        np.array([order[choice] == pairs[int(item[1:]), 0] for item, choice in frame.sort("item").select(ITEM_CHOICE).iter_rows()])
        for frame in (data.judgments, data.by_models)
    )  # fmt: skip
    return pairs, own.astype(float), judged.astype(float)


def test_shares_of_choices_are_those_of_plain_columns(votes):
    [criterion] = judged_criteria(votes, OPTIONS)
    pairs, own, judged = arrays(votes)
    here = (pairs == [0, 1]).all(axis=1)
    plain = judged_mean(
        own[here[:N]], judged[here & (np.arange(ALL) < N)], judged[here & (np.arange(ALL) >= N)], is_share=True
    )
    found = criterion.pairs["a", "b"]
    for name in ("people", "judge", "both"):
        assert getattr(found, name).value == pytest.approx(getattr(plain, name).value, abs=1e-9)
    assert found.weight == pytest.approx(plain.weight, abs=1e-9)
    assert found.narrower > 0.02


def test_strengths_in_the_report_are_those_of_the_logistic_model_that_ppi_python_checks(votes):
    """``fit_logistic`` and ``tuned_weight`` are ppi-python's (tests/stats/test_judged.py); the report must hand them the same rows."""
    [criterion] = judged_criteria(votes, OPTIONS)
    pairs, own, judged = arrays(votes)
    rows = pair_design(pairs[:, 0], pairs[:, 1], 3)
    given = JudgedVotes(rows[:N], own, judged[:N], rows[N:], judged[N:], np.arange(N), np.arange(N, ALL))
    weight = tuned_weight(given, fit_logistic(given, 1.0))
    theta = np.concatenate([[0.0], fit_logistic(given, weight)])
    assert [criterion.means[name].both.value for name in "abc"] == pytest.approx(theta - theta.mean(), abs=1e-8)
    assert all(one.narrower > 0.02 for one in criterion.means.values())
    assert criterion.means["a"].both.value > criterion.means["c"].both.value


def test_strengths_with_style_held_equal_are_in_the_report(votes):
    report = analyse(votes.study, votes, n_resamples=100)
    tables = {table.name: table for table in report.tables()}
    assert {"judged_choices", "judged_choices_systems", "judged_choices_style"} <= set(tables)
    [criterion] = judged_criteria(votes, OPTIONS)
    assert set(criterion.styled) == {"a", "b", "c"}
    plain, styled = (
        sum(one.both.high - one.both.low for one in found.values()) for found in (criterion.means, criterion.styled)
    )
    assert 0.9 < styled / plain < 1.5


def test_strengths_with_covariates_cover_over_many_studies():
    """Systems are equal and length counts: with length held equal the interval of a strength holds 0 in about 95 % of studies."""
    rng, n_covered = np.random.default_rng(9), 0
    for _ in range(150):
        first = rng.integers(0, 3, 300)
        second = (first + rng.integers(1, 3, 300)) % 3
        length = rng.normal(size=(300, 1)) + 0.5 * (first == 0)[:, None]
        quality = length[:, 0] + rng.logistic(size=300)
        judged = (quality + rng.normal(scale=1.0, size=300) > 0) * 1.0
        rows = np.hstack([pair_design(first, second, 3), length])
        given = JudgedVotes(
            rows[:120],
            (quality[:120] > 0) * 1.0,
            judged[:120],
            rows[120:],
            judged[120:],
            np.arange(120),
            np.arange(120, 300),
        )
        found = judged_strengths(given, {"a": strength_contrasts("abc", 1)["a"]})["a"].both
        n_covered += found.low <= 0 <= found.high
    assert 0.9 < n_covered / 150 < 0.99


def judges_with_confusion(rng, truth):
    """Two judges who answer by chance and one who is nearly always right."""
    other = {"a": "b", "b": "a"}
    return {
        f"j{k}": [one if rng.random() < right else other[one] for one in truth]
        for k, right in enumerate((0.5, 0.5, 0.95))
    }


@pytest.mark.parametrize("combine", ["mean", "majority", "dawid_skene"])
def test_several_judges_feed_the_corrected_estimate(combine):
    """With known tables of confusion, Dawid and Skene's model finds the good judge, and the interval gains most."""
    rng = np.random.default_rng(4)
    truth = rng.choice(["a", "b"], ALL, p=[0.6, 0.4])
    people = [(f"r{n}", f"i{n:03d}", "", truth[n] if rng.random() < 0.95 else "a") for n in range(N)]
    judges = judges_with_confusion(rng, truth)
    calls = [(name, f"i{n:03d}", "", own[n]) for name, own in judges.items() for n in range(ALL)]
    study = study_of(
        ("a", "b"), [{"a": "x", "b": "y"}] * ALL, scale_of("pairwise", allow_tie=True), combine, tuple(judges)
    )
    [criterion] = judged_criteria(data_of(study, people, calls), OPTIONS)
    found, score = criterion.pairs["a", "b"], criterion.judges.sort("item")["value"].to_numpy()
    assert criterion.problem == ""
    assert found.both.low < 0.6 < found.both.high
    agreement = np.corrcoef(score, truth == "a")[0, 1]
    if combine == "dawid_skene":
        assert agreement > 0.85
        assert found.narrower > 0.35
    else:
        assert 0.3 < agreement < 0.75
        assert 0.02 < found.narrower < 0.3


def test_an_ensemble_that_cannot_be_fitted_is_a_mean_and_is_said():
    study = study_of(
        ("a", "b"), [{"a": "x", "b": "y"}] * 30, scale_of("pairwise", allow_tie=True), "dawid_skene", ("j0", "j1")
    )
    people = [(f"r{n}", f"i{n:03d}", "", "a" if n else "b") for n in range(4)]
    calls = [(name, f"i{n:03d}", "", "ab"[n % 2]) for name in ("j0", "j1") for n in range(30)]
    data = data_of(study, people, calls)
    [criterion] = judged_criteria(data, OPTIONS)
    assert "4 rated items cannot be divided into 5 folds" in criterion.problem
    report = analyse(study, data, n_resamples=100)
    assert any("judges are averaged" in warning for warning in report.summary.warnings)


def test_magnitudes_are_compared_as_ratios():
    rng = np.random.default_rng(2)
    study = study_of(("a", "b"), [{"a": "x", "b": "y"}] * 200, scale_of("magnitude"))
    quality = rng.normal(loc=(0.3, 0.0), scale=0.4, size=(200, 2))
    modulus = rng.normal(scale=0.8, size=10)
    people = [
        (f"r{r}", f"i{n:03d}", "ab"[k], float(np.exp(3 + modulus[r] + quality[n, k] + rng.normal(scale=0.2))))
        for n in range(40) for r in (n % 10, (n + 3) % 10) for k in (0, 1)
    ]  # fmt: skip
    calls = [("j0", f"i{n:03d}", "ab"[k], float(np.exp(1 + quality[n, k]))) for n in range(200) for k in (0, 1)]
    data = data_of(study, people, calls)
    [criterion] = judged_criteria(data, OPTIONS)
    found = criterion.pairs["a", "b"]
    assert found.both.low < 0.3 < found.both.high
    assert found.narrower > 0.2
    assert criterion.test(("a", "b")).details["is_log"]
    report = analyse(study, data, n_resamples=100)
    [row] = next(table for table in report.tables() if table.name == "judged_magnitudes").rows
    assert row[5].value == pytest.approx(np.exp(found.both.value))
    assert "times" in report.summary.answer


def test_only_things_of_one_kind_are_read(votes):
    """Answers on screens with other than two responses are not choices between two."""
    three = votes.judgments.with_columns(pl.lit("a|b|c").alias("order"))
    assert judged_criteria(replace(votes, judgments=three), OPTIONS) == []
