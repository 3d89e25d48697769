"""Criteria answered by categories: shares, differences, agreement, and how seldom equal systems are called different."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from commands import result_of
from dialometer.analysis.base.choose import analyse, analyse_folder, families
from dialometer.analysis.base.data import data_from_arrays
from dialometer.analysis.base.family import ANALYSES, Options
from dialometer.analysis.planning.power import Setting, primary_tests, simulate_tests
from dialometer.analysis.shared.comparisons import p_adjusted, primary_comparison
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.model.estimate import Estimate
from dialometer.model.report import Table
from dialometer.simulate.judgment_arrays import simulate_judgments
from dialometer.simulate.rater import Habits
from dialometer.simulate.truth import Truth
from report_parts import rows_of, table_of

OPTIONS = Options(confidence=0.95, n_resamples=200, seed=1, correction="holm")
SYSTEMS = ("template", "retrieval", "base", "tuned")
ACTS = ("Question", "Advice", "Sympathy", "Small talk")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The template for best-worst with dialogue acts in the place of choices between replies."""
    path = tmp_path_factory.mktemp("nominal") / "study"
    copy_template("best-worst", path)
    text = (path / "study.yaml").read_text()
    for best, worst in (("Best response", "Worst response"), ("Most empathetic", "Least empathetic")):
        text = text.replace(
            f"type: best_worst\n    best_label: {best}\n    worst_label: {worst}",
            f"type: choice\n    options: [{', '.join(ACTS)}]",
        )
    (path / "study.yaml").write_text(text)
    return load_study(path)


def simulated(study, *, n_raters=12, seed=1, means=None, item_sd=0.6, **habits):
    truth = Truth({c: dict(means or {}) for c in ("quality", "empathy")}, item_sd=item_sd, seed=seed)
    return data_from_arrays(study, simulate_judgments(study, truth, Habits(**habits), n_raters=n_raters, seed=seed))


def answered(study, rows):
    """Data from (rater, item, system, answer) on overall quality."""
    rater, item, system, choice = map(list, zip(*rows, strict=True))
    n = len(rows)
    fixed = {"block": "main", "criterion": "quality", "scale": "choice", "worst": "", "order": "|".join(SYSTEMS)}
    return data_from_arrays(
        study,
        {
            "rater": np.array(rater),
            "cell": np.zeros(n, dtype=np.int64),
            "item": np.array(item, dtype=object),
            "system": np.array(system, dtype=object),
            "choice": np.array(choice, dtype=object),
            "value": np.full(n, np.nan),
            "position": np.ones(n, dtype=np.int64),
            "side": np.ones(n, dtype=np.int64),
            **{name: np.full(n, value, dtype=object) for name, value in fixed.items()},
        },
    )


def table(found, name):
    return table_of(found, f"nominal-{name}")


def test_the_design_chooses_the_family_and_power_its_tests(study):
    assert type(families(study)[0]).__name__ == "Nominal"
    tests = primary_tests(simulated(study), OPTIONS)
    assert len(tests) == 6 * 4
    assert "Template against Retrieval: Question" in tests


def test_shares_are_those_of_the_answers_and_differences_their_difference(study):
    data = simulated(study, means={"template": -1.0, "tuned": 1.0})
    found = ANALYSES.get("nominal").run(data, OPTIONS)
    judgments = data.judgments.filter(data.judgments["criterion"] == "quality")
    shares = {row["group"]: row for row in rows_of(table(found, "shares-quality"))}
    for name, label in (("template", "Template"), ("tuned", "Tuned model")):
        own = judgments.filter(judgments["system"] == name)["choice"].to_list()
        for k, act in enumerate(ACTS):
            assert shares[label][f"category-{k}"].value == pytest.approx(own.count(act) / len(own))
    row = next(
        r
        for r in rows_of(table(found, "declared-system_quality"))
        if r["category"] == "Small talk" and {r["first"], r["second"]} == {"Template", "Tuned model"}
    )
    assert row["first"] == "Tuned model"
    expected = shares["Tuned model"]["category-3"].value - shares["Template"]["category-3"].value
    assert row["difference"].value == pytest.approx(expected)
    assert found.answer.startswith("The systems differ in overall quality: ")


def test_report_and_primary_tests_give_the_same_numbers(study):
    data = simulated(study, means={"tuned": 0.5})
    comparison = primary_comparison(study)
    tests = ANALYSES.get("nominal").primary_tests(data, comparison, OPTIONS)
    rows = rows_of(table(ANALYSES.get("nominal").run(data, OPTIONS), "declared-system_quality"))
    assert sorted(row["p_adjusted"] for row in rows) == sorted(p_adjusted(test) for test in tests.values())


def test_agreement_and_majorities_by_hand(study):
    a, b = study.rated_items[0].id, study.rated_items[1].id
    rows = [(1, a, "base", "Advice"), (2, a, "base", "Advice"), (3, a, "base", "Question")]
    rows += [(1, b, "base", "Sympathy"), (2, b, "base", "Sympathy"), (3, b, "base", "Sympathy")]
    found = ANALYSES.get("nominal").run(answered(study, rows), OPTIONS)
    majority = {row["item"]: row for row in rows_of(table(found, "majority-quality"))}
    assert (majority[a]["majority"], majority[a]["share"]) == ("Advice", pytest.approx(2 / 3))
    assert (majority[b]["majority"], majority[b]["n"]) == ("Sympathy", 3)
    agreement = rows_of(table(found, "agreement"))[0]
    assert agreement["agreement"].value == pytest.approx((1 / 3 + 1) / 2)
    chance = (2 / 6) ** 2 + (1 / 6) ** 2 + (3 / 6) ** 2
    assert agreement["kappa"].value == pytest.approx((2 / 3 - chance) / (1 - chance))
    by_chance = sum(share * (1 - share) for share in (1 / 6, 2 / 6, 3 / 6)) / (4 - 1)
    assert agreement["ac1"].value == pytest.approx((2 / 3 - by_chance) / (1 - by_chance))


def test_few_items_make_a_claim_about_them_alone(study):
    rows = [
        (rater, item.id, system, act if (rater + k) % 9 else "Question")
        for rater in range(1, 31)
        for k, item in enumerate(study.rated_items[:2])
        for system, act in (("base", "Advice"), ("tuned", "Sympathy"))
    ]
    found = ANALYSES.get("nominal").run(answered(study, rows), OPTIONS)
    assert found.answer.startswith("On the 2 items shown, the systems differ in overall quality: ")
    assert found.answer.endswith("for other items this is not significant.")
    fixed = ANALYSES.get("nominal").run(answered(study, rows), dataclasses.replace(OPTIONS, has_fixed_items=True))
    assert fixed.answer.startswith("The systems differ in overall quality on the 2 items of this study: ")


@pytest.mark.parametrize("n_raters", [1, 2, 5])
@pytest.mark.parametrize("n_items", [1, 2, 6])
@pytest.mark.parametrize("kind", ["all the same", "one each", "at random"])
def test_degenerate_answers_give_sentences(study, kind, n_raters, n_items):
    rng = np.random.default_rng(n_raters)
    rows = []
    for rater in range(1, n_raters + 1):
        for item in study.rated_items[:n_items]:
            for k, system in enumerate(SYSTEMS):
                act = {"all the same": ACTS[0], "one each": ACTS[k]}.get(kind, str(rng.choice(ACTS)))
                rows.append((rater, item.id, system, act))
    report = analyse(study, answered(study, rows), n_resamples=120)
    assert report.summary.answer
    for one in report.sections:
        assert one.problem or one.parts or one.paragraphs
        for part in one.parts:
            if isinstance(part, Table) and part.name.startswith("nominal"):
                cells = [cell for row in part.rows for cell in row]
                assert not any(isinstance(c, float) and math.isnan(c) for c in cells)
                estimates = [cell for cell in cells if isinstance(cell, Estimate) and cell.has_interval]
                assert all(estimate.low < estimate.high for estimate in estimates)


def test_own_words_are_one_category(study):
    items = study.rated_items[:3]
    rows = [(r, item.id, "base", "Advice") for r in range(1, 5) for item in items]
    rows[0] = (*rows[0][:3], "Mockery")
    found = ANALYSES.get("nominal").run(answered(study, rows), OPTIONS)
    assert table(found, "shares-quality").columns[-1].label == "another answer"
    assert any("Mockery" in warning for warning in found.warnings)


def test_power_repeats_these_tests(study):
    weak, strong = (
        sum(
            min(p_values.values()) < 0.05
            for p_values in simulate_tests(study, Setting(20, 24, effect, alpha=0.05, seed=1), range(6))
        )
        for effect in (0.0, 2.5)
    )
    assert weak <= 1
    assert strong >= 5


@pytest.mark.parametrize(
    ("n_raters", "taste_sd"),
    [(6, 0.4), *(pytest.param(*more, marks=pytest.mark.slow) for more in ((12, 0.0), (30, 0.0)))],
)
def test_equal_systems_are_seldom_called_different(study, n_raters, taste_sd):
    """Whole studies without a difference, in which items draw categories and some raters are careless."""
    n_sims, n_false, n_held, n_tests = 25, 0, 0, 0
    comparison = primary_comparison(study)
    for seed in range(n_sims):
        data = simulated(study, n_raters=n_raters, seed=seed, taste_sd=taste_sd)
        tests = ANALYSES.get("nominal").primary_tests(data, comparison, OPTIONS)
        n_false += any(p_adjusted(test) <= 0.05 for test in tests.values())
        n_held += sum(test.low <= 0 <= test.high for test in tests.values())
        n_tests += len(tests)
    assert n_false / n_sims <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / n_sims)
    assert n_held / n_tests > 0.95 - 2 * math.sqrt(0.05 * 0.95 / n_sims)


def test_conditions_can_be_compared(study, tmp_path):
    """A factor between raters: the same tests over its levels."""
    path = tmp_path / "factor"
    copy_template("best-worst", path)
    text = (path / "study.yaml").read_text()
    for best, worst in (("Best response", "Worst response"), ("Most empathetic", "Least empathetic")):
        text = text.replace(
            f"type: best_worst\n    best_label: {best}\n    worst_label: {worst}",
            f"type: choice\n    options: [{', '.join(ACTS)}]",
        )
    text = text.replace(
        "design:\n",
        "design:\n  factors:\n    - name: hurry\n      levels:\n        - {name: calm}\n"
        "        - {name: hurried, set: {deadline_s: 10}}\n",
    )
    text = text.replace(
        "between: systems\n      levels: [template, retrieval, base, tuned]", "between: factor\n      factor: hurry"
    )
    (path / "study.yaml").write_text(text)
    factorial = load_study(path)
    truth = Truth({}, item_sd=0.6, seed=1)
    columns = simulate_judgments(factorial, truth, Habits(), n_raters=40, seed=1, shifts={1: 1.5})
    data = data_from_arrays(factorial, columns)
    found = ANALYSES.get("nominal").run(data, OPTIONS)
    assert found.answer.startswith("The conditions differ in overall quality: ")
    assert "within 10 s gets “Small talk” more often than calm" in found.answer
    rows = rows_of(table(found, "declared-system_quality"))
    assert {(row["first"], row["second"]) for row in rows} <= {("calm", "within 10 s"), ("within 10 s", "calm")}
    assert [row["group"] for row in rows_of(table(found, "shares-quality-hurry"))] == ["calm", "within 10 s"]
    tests = primary_tests(data, OPTIONS)
    assert sorted(map(p_adjusted, tests.values())) == sorted(row["p_adjusted"] for row in rows)


def test_a_text_column_of_an_imported_table_gets_its_report(tmp_path):
    rng = np.random.default_rng(6)
    kinds = ("factual error", "off topic", "none")
    weights = {"alpha": (1, 1, 6), "beta": (6, 1, 2)}
    lines = ["worker,item,system,error_type"]
    for rater in range(10):
        for item in range(14):
            for system, weight in weights.items():
                kind = rng.choice(kinds, p=np.array(weight) / sum(weight))
                lines.append(f"w{rater},q{item},{system},{kind}")
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    folder = tmp_path / "imported"
    arguments = ["import", str(folder), str(tmp_path / "labels.csv"), "--format", "long", "--map", "rater=worker"]
    assert result_of(*arguments, "--criteria", "error_type").exit_code == 0
    report = analyse_folder(folder, n_resamples=100)
    assert report.summary.answer.startswith("The systems differ in error type: ")
    assert "beta gets “factual error” more often than alpha" in report.summary.answer
    assert {claim.is_general for claim in report.summary.claims} == {True}


def test_the_primary_criterion_decides_which_family_answers(study, tmp_path):
    path = tmp_path / "mixed"
    copy_template("likert", path)
    text = (path / "study.yaml").read_text()
    start = text.index("  relevance_5:")
    end = text.index("  fluency_5:")
    text = text[:start] + "  relevance_5: {type: choice, options: [On topic, Off topic, Rude]}\n" + text[end:]
    head, _, _ = text.partition("\nanalysis:")
    quality = head.index("\nquality:")
    tail = head.index("\nrecruitment:")
    head = head[:quality] + head[tail:]
    for criterion, family in (("relevance", "Nominal"), ("fluency", "Ratings")):
        analysis = f"analysis:\n  primary: main\n  comparisons:\n    - {{name: main, between: systems, criteria: [{criterion}]}}\n"
        (path / "study.yaml").write_text(f"{head}\n{analysis}")
        assert type(families(load_study(path))[0]).__name__ == family
