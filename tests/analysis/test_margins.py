"""Declared equivalence and non-inferiority, from the study file to the report, for every kind of choice."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.family import Options
from dialometer.analysis.planning.power import Setting, simulate_tests
from dialometer.analysis.planning.simulated_study import resized
from dialometer.analysis.shared.comparisons import deciding_family, primary_comparison
from dialometer.analysis.shared.equivalence import answer_words, decided, plan_words, shown_with_margin, verdict
from dialometer.design.load import check_study
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.simulate.truth import Truth

EQUAL = Truth({}, item_sd=0.0)
OPTIONS = Options(confidence=0.95, n_resamples=100, seed=1, correction="holm")


def with_test(study, **changes):
    """The study with its primary comparison declared otherwise."""
    analysis = study.spec.analysis
    comparisons = [c.model_copy(update=changes) if c.name == analysis.primary else c for c in analysis.comparisons]
    spec = study.spec.model_copy(update={"analysis": analysis.model_copy(update={"comparisons": comparisons})})
    return replace(study, spec=spec)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "margin", "tight"),
    [("likert", 0.9, 0.01), ("acute", 0.3, 0.005), ("best-worst", 0.6, 0.005), ("strategies", 0.35, 0.005)],
)
def test_equal_systems_are_equivalent_within_a_wide_margin_and_not_within_a_tight_one(
    template, quick, name, margin, tight
):
    for given, is_shown in ((margin, True), (tight, False)):
        plain = resized(template(name), 50) if name == "strategies" else template(name)
        study = with_test(plain, test="equivalence", margin=given)
        data = quick(study, n_raters=80, truth=EQUAL)
        tests = deciding_family(study).primary_tests(data, primary_comparison(study), OPTIONS)
        assert {test.details["p_adjusted"] < 0.05 for test in tests.values()} == {is_shown}
        report = analyse(study, data, n_resamples=100)
        words = report.summary.answer
        assert ("equivalent within" in words) == is_shown
        assert ("is not shown for" in words) != is_shown
        section = next(section for section in report.sections if section.name == "margins")
        table = section.parts[0]
        assert {row[-1] for row in table.rows} == {"equivalent" if is_shown else "not shown to be equivalent"}
        shown = {row[0]: row[-2] for row in table.rows}
        assert shown == {label: test.details["p_adjusted"] for label, test in tests.items()}
        assert [headline.label for headline in report.summary.headlines] == list(tests)[:3]


def test_non_inferiority_has_a_direction_and_only_pairs_with_the_reference(template, quick):
    study = with_test(template("likert"), test="non_inferiority", margin=0.6, reference="rules")
    means = {"rules": 0.0, "retrieval": 1.5, "neural": -1.5}
    truth = Truth({c.name: means for c in study.spec.criteria}, item_sd=0.0)
    report = analyse(study, quick(study, n_raters=40, truth=truth), n_resamples=100)
    rows = next(section for section in report.sections if section.name == "margins").parts[0].rows
    results = {row[0]: row[-1] for row in rows}
    assert len(results) == 2
    assert {label: result for label, result in results.items() if "Retrieval" in label}.popitem()[1] == "not inferior"
    assert {label: result for label, result in results.items() if "Neural" in label}.popitem()[1] == "inferior"
    assert "Non-inferiority" in report.summary.answer
    stated = {verdict.is_primary: verdict.hypothesis for verdict in report.summary.verdicts}
    assert "within the margin" not in stated[True]


def test_one_pair_reads_as_a_sentence():
    made = Estimate(0.5, 20, "mean", df=(19.0,), details={"standard_error": 0.1, "first": "a", "second": "b"})
    inferior = Comparison(name="c", test="non_inferiority", margin=0.3, reference="b")
    tests = decided({"Fluency: A against B": made}, inferior, OPTIONS)
    assert answer_words(tests, inferior).startswith("Fluency: A is not inferior to B, with a margin of 0.3")
    same = Comparison(name="c", test="equivalence", margin=0.9)
    tests = decided({"Fluency: A against B": made}, same, OPTIONS)
    assert answer_words(tests, same).startswith("Fluency: A and B are equivalent within 0.9")


def test_ratios_are_tested_as_logarithms(template, quick):
    study = with_test(template("anchoring"), test="equivalence", margin=3.0)
    data = quick(study, n_raters=60, truth=EQUAL)
    tests = deciding_family(study).primary_tests(data, primary_comparison(study), OPTIONS)
    for test in tests.values():
        error, df = test.details["standard_error"], test.df[0]
        t = (math.log(3) - abs(test.value)) / error
        assert test.p_value == pytest.approx(stats.t.sf(t, df))
    report = analyse(study, data, n_resamples=100)
    table = next(section for section in report.sections if section.name == "margins").parts[0]
    assert [column.label for column in table.columns][1] == "Ratio"
    assert all(row[1].value > 0 for row in table.rows)


def test_a_margin_that_is_not_declared_leaves_the_difference(template, quick):
    study = template("likert")
    report = analyse(study, quick(study, n_raters=20, truth=EQUAL), n_resamples=100)
    assert not any(section.name == "margins" for section in report.sections)
    assert "equivalent" not in report.summary.answer


def test_verdicts():
    comparison = Comparison(name="c", test="equivalence", margin=0.5)
    made = Estimate(0.0, 20, "mean", df=(19.0,), details={"standard_error": 0.1, "first": "a", "second": "b"})
    words = {}
    for value in (0.0, 0.45, 1.0):
        tested = decided({"x": replace(made, value=value)}, comparison, OPTIONS)["x"]
        words[value] = verdict(tested, comparison)
    assert words == {
        0.0: "equivalent",
        0.45: "not shown to be equivalent",
        1.0: "different by more than the margin",
    }
    assert "90% confidence interval" in plan_words(comparison, 0.95)
    assert plan_words(Comparison(name="c"), 0.95) == ""


@pytest.mark.slow
def test_power_is_that_of_the_declared_test(template):
    """With no true difference, equivalence within a wide margin is found more often by more raters."""
    study = with_test(template("likert"), test="equivalence", margin=0.9, levels=["rules", "retrieval"])
    shares = []
    for n_raters in (4, 60):
        found = simulate_tests(study, Setting(n_raters, 20, 0.0, 0.05, 3), range(20))
        shares.append(np.mean([all(p < 0.05 for p in one.values()) for one in found]))
    assert shares[1] > shares[0] + 0.2


@pytest.mark.parametrize(
    ("lines", "message", "remedy"),
    [
        ("test: equivalence", "needs a margin", "add 'margin:'"),
        ("margin: 0.3", "no meaning in a test of a difference", "test: equivalence"),
        ("{test: equivalence, margin: 7}", "as long as the scale", "less than 6"),
        ("{test: non_inferiority, margin: 0.3}", "needs a reference", "reference:"),
        ("{test: non_inferiority, margin: 0.3, reference: ruels}", "no system 'ruels'", "rules"),
        ("{test: equivalence, margin: 0.3, reference: rules}", "no direction", "non_inferiority"),
    ],
)
def test_check_names_the_line_and_the_remedy(tmp_path, lines, message, remedy):
    from dialometer.design.templates import copy_template

    folder = tmp_path / "likert"
    copy_template("likert", folder)
    path = folder / "study.yaml"
    text = path.read_text(encoding="utf-8")
    keys = lines.strip("{}").split(", ")
    path.write_text(
        text.replace(
            "      criteria: [helpfulness]\n", "      criteria: [helpfulness]\n" + "".join(f"      {k}\n" for k in keys)
        ),
        encoding="utf-8",
    )
    found = [problem for problem in check_study(folder)[1] if message in problem.message]
    assert found, [str(problem) for problem in check_study(folder)[1]]
    assert remedy in found[0].remedy
    assert found[0].line > 190


def test_the_preregistration_states_margin_and_interval(template):
    from dialometer.analysis.planning.preregistration import preregistration

    study = with_test(template("likert"), test="non_inferiority", margin=0.4, reference="rules")
    text = preregistration(study, n_raters=20, power=None, methods=(), n_collected=0, frozen="")
    assert "Test of non-inferiority to rules with a margin of 0.4: one-sided at 0.05" in text


def test_an_interval_of_a_share_ends_at_100_percent():
    shown, is_share = shown_with_margin(Estimate(0.98, 6, "mean", 0.95, 1.01, details={"null": 0.5}))
    assert is_share
    assert (shown.low, shown.high) == (0.95, 1.0)
