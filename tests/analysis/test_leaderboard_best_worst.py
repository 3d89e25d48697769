"""Best-worst rankings: utilities that made the choices come out again, and degenerate choices make sentences."""

import dataclasses
import math
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from dialometer.analysis.base.choose import analyse, families
from dialometer.analysis.base.data import data_from_arrays
from dialometer.analysis.base.family import ANALYSES, Options
from dialometer.analysis.families.votes.best_worst_choices import best_worst_data, rank_by_best_worst
from dialometer.analysis.shared.comparisons import p_adjusted, primary_comparison
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.model.estimate import Estimate
from dialometer.model.report import Table
from dialometer.simulate.judgment_arrays import simulate_judgments
from dialometer.simulate.rater import Habits
from dialometer.simulate.truth import Truth
from ranking_data import code_best_worst
from report_parts import rows_of, table_of

OPTIONS = Options(confidence=0.95, n_resamples=300, seed=1, correction="holm")
SYSTEMS = ("template", "retrieval", "base", "tuned")
TRUE = {"template": -0.8, "retrieval": -0.3, "base": 0.3, "tuned": 0.8}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("bw") / "best-worst"
    copy_template("best-worst", path)
    return load_study(path)


def rows_from(study, utility, *, n_raters, seed=0, spread=0.0, first_place=0.0, per_rater=12):
    """Choices by the best-worst model: the pair (best, worst) with probability proportional to exp(u_best - u_worst)."""
    rng = np.random.default_rng(seed)
    rows = []
    for rater in range(n_raters):
        own = rng.normal(0, spread, 4)
        for item in [study.rated_items[k] for k in rng.permutation(len(study.rated_items))[:per_rater]]:
            shown = [SYSTEMS[k] for k in rng.permutation(4)]
            for criterion in ("quality", "empathy"):
                u = np.array([utility[name] + own[SYSTEMS.index(name)] for name in shown])
                u[0] += first_place
                weight = np.exp(u[:, None] - u[None, :]) * (1 - np.eye(4))
                pick = rng.choice(16, p=(weight / weight.sum()).ravel())
                rows.append((rater + 1, item.id, criterion, "|".join(shown), shown[pick // 4], shown[pick % 4]))
    return rows


def data_of(study, rows):
    rater, item, criterion, order, best, worst = map(list, zip(*rows, strict=True))
    n = len(rows)
    return data_from_arrays(
        study,
        {
            "rater": np.array(rater),
            "cell": np.zeros(n, dtype=np.int64),
            "block": np.full(n, "main", dtype=object),
            "item": np.array(item, dtype=object),
            "system": np.full(n, "", dtype=object),
            "criterion": np.array(criterion, dtype=object),
            "scale": np.full(n, "best_worst", dtype=object),
            "position": np.ones(n, dtype=np.int64),
            "side": np.zeros(n, dtype=np.int64),
            "order": np.array(order, dtype=object),
            "value": np.full(n, np.nan),
            "choice": np.array(best, dtype=object),
            "worst": np.array(worst, dtype=object),
        },
    )


def run(data):
    return ANALYSES.get("best_worst").run(data, OPTIONS)


def table(found, name):
    return table_of(found, f"best-worst-{name}")


def test_the_design_chooses_the_family(study):
    assert type(families(study)[0]).__name__ == "BestWorstScaling"


def test_choices_are_coded_as_by_name(study):
    rows = rows_from(study, TRUE, n_raters=5)
    found = best_worst_data(data_of(study, rows))
    expected = code_best_worst(
        [row[3].split("|") for row in rows],
        [row[4] for row in rows],
        [row[5] for row in rows],
        rater=[f"R{row[0]:04d}" for row in rows],
        systems=SYSTEMS,
    )
    assert np.array_equal(found.choices.shown, expected.shown)
    assert np.array_equal(found.choices.best, expected.best)
    assert np.array_equal(found.choices.worst, expected.worst)
    assert found.choices.raters == expected.raters
    assert [int(p) for p in found.place] == [row[3].split("|").index(row[4]) + 1 for row in rows]


def test_utilities_and_ranks_are_recovered(study):
    found = run(data_of(study, rows_from(study, TRUE, n_raters=40)))
    board = rows_of(table(found, "board"))
    assert [row["system"] for row in board] == ["Tuned model", "Base model", "Retrieval", "Template"]
    for row, name in zip(board, ("tuned", "base", "retrieval", "template"), strict=True):
        assert row["utility"] == pytest.approx(TRUE[name], abs=0.2)
        assert row["best"] - row["worst"] == round(row["score"].value * row["shown"])
        assert row["rank_interval"] == str(row["rank"])
    assert found.answer.startswith("Tuned model is the best of 4 systems on Overall quality, with a score of ")
    assert [c.label for c in table(found, "questions").columns[1:]] == ["Overall quality", "Empathy", "All questions"]


def test_declared_differences_go_from_the_best_to_the_worst(study):
    found = run(data_of(study, rows_from(study, TRUE, n_raters=40)))
    pairs = [row[:2] for row in table(found, "declared-system_quality").rows]
    assert pairs == list(combinations(["Tuned model", "Base model", "Retrieval", "Template"], 2))
    words = next(s for s in found.sections if "declared" in s.name).paragraphs[0]
    assert words.startswith("System quality (primary): Tuned model is preferred to Base model")


def test_differences_on_fixed_items_are_those_of_rater_means(study):
    """Every rater makes equally many choices: over raters alone it is then the t-test on the raters' mean differences."""
    data = data_of(study, rows_from(study, TRUE, n_raters=15, spread=0.5))
    choices = best_worst_data(data).on(("empathy",))
    fixed = dataclasses.replace(OPTIONS, has_fixed_items=True)
    one = rank_by_best_worst(choices, "Empathy", fixed)
    gap = choices.marks()[:, 3] - choices.marks()[:, 2]
    means = [gap[choices.rater == k].mean() for k in range(15)]
    peer = stats.ttest_1samp(means, 0.0)
    tested = one.pairs["Base model", "Tuned model"]
    assert tested.value == pytest.approx(-np.mean(means))
    assert tested.p_value == pytest.approx(peer.pvalue)
    found = ANALYSES.get("best_worst").run(data, fixed)
    declared = rows_of(table(found, "declared-tuning_empathy"))
    assert len(declared) == 1
    assert declared[0]["p"] == pytest.approx(peer.pvalue)
    assert "on the 24 items of this study" in found.answer


def test_report_and_primary_tests_give_the_same_numbers(study):
    data = data_of(study, rows_from(study, TRUE, n_raters=10, spread=0.5))
    tests = ANALYSES.get("best_worst").primary_tests(data, primary_comparison(study), OPTIONS)
    found = run(data)
    rows = rows_of(table(found, "declared-system_quality"))
    assert {frozenset((r["system"] if "system" in r else r["first"], r["second"])): r["p_adjusted"] for r in rows} == {
        frozenset(label.split(" against ")): test.details["p_adjusted"] for label, test in tests.items()
    }
    ranking = rank_by_best_worst(best_worst_data(data).on(("quality",)), "Overall quality", OPTIONS)
    assert [ranking.pairs[pair].p_value for pair in ranking.pairs] == [test.p_value for test in tests.values()]
    for (first, second), gap in ranking.pairs.items():
        assert gap.value == pytest.approx(ranking.scores[first].value - ranking.scores[second].value)


def test_the_best_beats_every_other_and_ranks_follow_the_tests(study):
    data = data_of(study, rows_from(study, TRUE, n_raters=8, seed=4, per_rater=8))
    ranking = rank_by_best_worst(best_worst_data(data).on(("quality",)), "Overall quality", OPTIONS)
    first = ranking.ranked[0]
    behind = [p_adjusted(gap) <= 0.05 for pair, gap in ranking.pairs.items() if first in pair]
    assert ranking.leader.is_clear == all(behind)
    assert ranking.ranks(first) == (1, 4 - sum(behind))
    for name in ranking.ranked:
        low, high = ranking.ranks(name)
        assert low <= ranking.ranked.index(name) + 1 <= high


def test_one_item_makes_a_claim_about_it_alone(study):
    rows = [
        (rater, study.rated_items[0].id, "quality", "|".join(SYSTEMS), "tuned", "template") for rater in range(1, 31)
    ]
    turns = ("retrieval", "base")
    rows = [(*row[:4], "tuned", turns[row[0] % 2]) if row[0] % 3 == 0 else row for row in rows]
    found = run(data_of(study, rows))
    assert found.answer.startswith("On the one item shown, Tuned model is the best of 4 systems on Overall quality")
    assert found.answer.endswith("one item says nothing about others.")
    assert [row["p"] for row in rows_of(table(found, "declared-system_quality"))] == [None] * 6


def test_items_that_decide_by_themselves_are_no_general_lead(study):
    """Two items on which all raters agree: sure for these, open for others."""
    rng = np.random.default_rng(3)
    rows = [
        (rater, item.id, "quality", "|".join(SYSTEMS), "tuned", str(rng.choice(SYSTEMS[:3])))
        for rater in range(1, 41)
        for item in study.rated_items[:2]
    ]
    found = run(data_of(study, rows))
    assert found.answer.startswith("On the 2 items shown, Tuned model is the best of 4 systems")
    assert "on other items" in found.answer


def test_a_favoured_place_is_seen(study):
    data = data_of(study, rows_from(study, dict.fromkeys(SYSTEMS, 0.0), n_raters=40, first_place=0.8))
    section = next(s for s in run(data).sections if s.name == "best-worst-place")
    assert "Picked as best more or less often than by chance: position 1" in section.paragraphs[0]
    first = rows_of(section.parts[0])[0]
    assert first["best"].low > 0.25


def test_a_system_that_is_never_best_is_named(study):
    rows = rows_from(study, TRUE, n_raters=15)
    rows = [(*row[:4], row[4], "template") for row in rows if row[4] != "template"]
    found = run(data_of(study, rows))
    assert any("Not all systems can be placed" in w and "Template" in w for w in found.warnings)
    assert "regularised" in next(c.label for c in table(found, "board").columns if c.name == "utility")


@pytest.mark.parametrize("n_raters", [1, 2, 5])
@pytest.mark.parametrize("kind", ["always the same", "at random"])
def test_degenerate_choices_give_sentences(study, kind, n_raters):
    rows = rows_from(study, dict.fromkeys(SYSTEMS, 0.0), n_raters=n_raters, per_rater=3)
    if kind == "always the same":
        rows = [(*row[:4], "tuned", "template") for row in rows]
    report = analyse(study, data_of(study, rows), n_resamples=150)
    assert report.summary.answer
    for one in report.sections:
        assert one.problem or one.parts or one.paragraphs
        for part in one.parts:
            if isinstance(part, Table):
                cells = [cell for row in part.rows for cell in row]
                assert not any(isinstance(c, float) and math.isnan(c) for c in cells)
                if part.name.startswith("best-worst"):
                    estimates = [cell for cell in cells if isinstance(cell, Estimate) and cell.has_interval]
                    assert all(estimate.low < estimate.high for estimate in estimates)


def test_choices_of_what_was_not_shown_are_left_out(study):
    rows = rows_from(study, TRUE, n_raters=6)
    rows[0] = (*rows[0][:4], "tuned", "tuned")
    rows[1] = (*rows[1][:4], "nobody", "tuned")
    found = best_worst_data(data_of(study, rows))
    assert found.choices.n == len(rows) - 2
    assert found.notes == ("2 choices named systems that were not shown and were excluded.",)


def test_without_an_order_the_items_systems_are_the_set(study):
    data = data_of(study, rows_from(study, TRUE, n_raters=6))
    data = dataclasses.replace(
        data, judgments=data.judgments.with_columns(pl.lit(None, dtype=pl.String).alias("order"))
    )
    found = best_worst_data(data)
    assert (np.sort(found.choices.shown, axis=1) == np.arange(4)).all()
    section = next(s for s in run(data).sections if s.name == "best-worst-place")
    assert "do not say where each system was" in section.problem


def test_nothing_yet(study):
    data = data_of(study, rows_from(study, TRUE, n_raters=2))
    report = analyse(study, dataclasses.replace(data, judgments=data.judgments.clear()))
    assert report.summary.answer == "There are no judgments yet."


@pytest.mark.parametrize(
    ("n_raters", "taste_sd"),
    [(6, 0.0), *(pytest.param(*more, marks=pytest.mark.slow) for more in ((12, 0.4), (40, 0.0)))],
)
def test_equal_systems_are_seldom_called_different(study, n_raters, taste_sd):
    """Whole studies of the template without a difference, in which items favour systems and some raters are careless."""
    n_sims = 50
    n_false = n_answers = n_held = 0
    family = ANALYSES.get("best_worst")
    for seed in range(n_sims):
        columns = simulate_judgments(
            study, Truth({}, item_sd=0.6, seed=seed), Habits(taste_sd=taste_sd), n_raters=n_raters, seed=seed
        )
        data = data_from_arrays(study, columns)
        tests = family.primary_tests(data, primary_comparison(study), OPTIONS)
        n_false += any(p_adjusted(gap) <= 0.05 for gap in tests.values())
        one = rank_by_best_worst(best_worst_data(data).on(("quality",)), "Overall quality", OPTIONS)
        n_answers += bool(one.leader.behind)
        n_held += sum(score.low <= 0.0 <= score.high for score in one.scores.values())
    assert n_false / n_sims <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / n_sims)
    assert n_answers <= n_false
    assert n_held / (4 * n_sims) > 0.95 - 2 * math.sqrt(0.05 * 0.95 / n_sims)


@pytest.mark.parametrize(
    ("utility", "agrees"), [({name: 3 * u for name, u in TRUE.items()}, True), (dict.fromkeys(TRUE, 0.0), False)]
)
def test_the_report_says_how_far_raters_agree(study, utility, agrees):
    found = run(data_of(study, rows_from(study, utility, n_raters=10, seed=4)))
    section = next(section for section in found.sections if section.name == "best-worst-agreement")
    assert not section.in_appendix
    (quality, empathy), halves = rows_of(table(found, "agreement")), rows_of(table(found, "split_half"))
    assert quality["question"] == "Overall quality"
    assert quality["items"] == 24
    assert (quality["alpha"].low > 0.2) == agrees == (quality["best"].low > 0.3)
    assert (halves[0]["responses"].value > 0.5) == agrees
    assert "by chance 25%" in table(found, "agreement").caption
    assert len(found.next_steps) == (0 if agrees else 1)
    assert f"Empathy {empathy['alpha'].value:.2f}".replace("-", "−") in section.paragraphs[0]
