"""Power: nothing planted is found at the nominal rate, more raters find more, and a known case agrees with the formula."""

import json

import numpy as np
import pytest
from scipy import stats

from commands import result_of
from dialometer.analysis.planning.power import DEFAULT, PowerAnalysis, PowerPoint, PowerResult, Setting, simulate_tests
from dialometer.analysis.planning.power_report import advice_words, answer_words
from dialometer.analysis.planning.simulated_study import Assumptions, n_items_of, planted, resized
from dialometer.analysis.shared.comparisons import primary_comparison
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template, template_folder, template_names
from dialometer.errors import DialometerError
from dialometer.neural.engines import LOCAL, InProcesses
from dialometer.stats.clustered.proportion import proportion


def study_of(name):
    return load_study(template_folder(name))


ENOUGH_ITEMS = {"strategies": 50}
"""Ten transcript pairs a strategy, so that a preference in general is found without luck."""


def share_found(name, n_raters, effect, n=40, alpha=0.05, assumed=DEFAULT):
    study = study_of(name)
    n_items = ENOUGH_ITEMS.get(name, n_items_of(study))
    found = simulate_tests(study, Setting(n_raters, n_items, effect, alpha, 3, assumed), range(n))
    return np.mean([any(p < alpha for p in one.values()) for one in found])


@pytest.mark.parametrize(
    "name",
    ["strategies", "chat", *(pytest.param(name, marks=pytest.mark.slow) for name in ("likert", "best-worst", "acute"))],
)
def test_nothing_planted_is_found_at_the_nominal_rate(name):
    """40 studies without any effect: 2 expected at 5 %; more than 8 happen less than once in 5,000 times."""
    assert share_found(name, 16, 0.0) <= 8 / 40


@pytest.mark.parametrize("name", template_names())
def test_every_template_has_a_power(name):
    assert share_found(name, 30, 3.0, n=3) == 1


def test_more_raters_find_more():
    assumed = Assumptions(item_sd=0.1)
    few, many = (share_found("strategies", n, 0.25, assumed=assumed) for n in (10, 80))
    assert many > few + 0.2


def test_too_few_transcript_pairs_have_no_power_whatever_the_raters():
    study = study_of("strategies")
    found = simulate_tests(study, Setting(200, 10, 3.0, 0.05, 3), range(2))
    assert all(p > 0.05 for one in found for p in one.values())


@pytest.mark.slow
def test_a_factor_between_raters_agrees_with_the_two_sample_formula():
    """Rater means dominate, so the power is near that of a t-test on them (d = 0.8, 30 per level)."""
    study = study_of("anchoring")
    spec = study.spec
    one = [c.model_copy(update={"criteria": ["readability"]}) for c in spec.analysis.comparisons]
    study = type(study)(
        spec.model_copy(update={"analysis": spec.analysis.model_copy(update={"comparisons": one})}),
        study.items,
        study.texts,
    )
    assert primary_comparison(study).between == "factor"
    found = simulate_tests(study, Setting(60, 10, 0.8, 0.05, 1), range(100))
    share = np.mean([next(iter(one.values())) < 0.05 for one in found])
    df, nc = 58, 0.8 * np.sqrt(60 / 4)
    cut = stats.t.ppf(0.975, df)
    expected = stats.nct.sf(cut, df, nc) + stats.nct.cdf(-cut, df, nc)
    assert share == pytest.approx(expected, abs=0.12)


def test_items_are_cut_or_repeated_evenly():
    study = study_of("strategies")
    assert n_items_of(study) == 30
    assert n_items_of(resized(study, 5)) == 5
    larger = resized(study, 20)
    assert len({item.id for item in larger.rated_items}) == 20
    assert larger.practice_items == study.practice_items
    assert {len(larger.block_items(block)) for block in larger.blocks} == {4}
    with pytest.raises(DialometerError, match="too few"):
        resized(study, 3)


def test_the_planted_effect_is_the_asked_one():
    truth, _, shifts = planted(study_of("likert"), 0.6, 1)
    means = truth.systems["relevance"]
    assert max(means.values()) - min(means.values()) == pytest.approx(0.6)
    assert shifts == {}
    _, _, shifts = planted(study_of("anchoring"), 0.6, 1)
    assert set(shifts) == {2, 3}


@pytest.mark.slow
def test_the_search_finds_the_smallest_design_and_processes_do_not_matter():
    study = resized(study_of("strategies"), ENOUGH_ITEMS["strategies"])
    results = []
    processes = InProcesses(2)
    for engine in (LOCAL, processes):
        results.append(PowerAnalysis(study, 0.8, n_simulations=20, seed=2, engine=engine).run([8, 40]))
    processes.close()
    assert results[0] == results[1]
    smallest = results[0].smallest
    assert smallest is not None
    assert 8 < smallest.setting.n_raters <= 40
    assert smallest.power.value >= 0.8
    below = [p for p in results[0].points if p.setting.n_raters < smallest.setting.n_raters]
    assert all(p.power.value < 0.8 for p in below)


@pytest.mark.slow
def test_the_command(tmp_path):
    copy_template("strategies", tmp_path / "s")
    file = tmp_path / "s" / "study.yaml"
    file.write_text(file.read_text().replace("  correction: holm", "  correction: holm\n  items: fixed"))
    arguments = [
        "power",
        str(tmp_path / "s"),
        "--effect",
        "0.8",
        "--raters",
        "10,40",
        "--simulations",
        "20",
        "--processes",
        "1",
        "--json",
    ]
    done = result_of(*arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["smallest"] is not None
    assert [p["cost_cents"] for p in found["points"]] == [p["raters"] * 160 for p in found["points"]]
    assert (tmp_path / "s" / "power" / "index.html").stat().st_size > 10_000
    judged = [
        "--judges",
        "--agreement",
        "0.8",
        "--judgments",
        "40,160",
        "--simulations",
        "20",
        "--judged-items",
        "200",
        "--json",
    ]
    found = json.loads(result_of("power", tmp_path / "s", *judged).stdout)
    assert found["with_judge"] < found["people"]
    assert "declares no judges" in str(result_of("power", tmp_path / "s", "--judges").exception)
    wrong = result_of("power", tmp_path / "s", "--raters", "many")
    assert "not a list of numbers" in str(wrong.exception)


def test_a_test_that_could_not_be_made_is_not_significant():
    """One transcript pair per strategy leaves no test of a general claim, however many raters read it."""
    study = study_of("strategies")
    found = simulate_tests(study, Setting(30, 5, 2.0, 0.05, 1), range(5))
    assert not any(p <= 0.05 for one in found for p in one.values())


def test_more_items_are_tried_where_no_number_of_raters_is_enough():
    study = resized(study_of("strategies"), 10)
    analysis = PowerAnalysis(study, 1.5, n_simulations=10, seed=2, needs_all=True)
    result = analysis.run([20])
    assert result.smallest is None
    assert result.limit is not None
    assert result.limit.setting.n_raters == 100
    assert all(point.all_tests.value <= point.power.value for point in result.points)
    words = answer_words(study, result) + advice_words(study, result)
    assert words.startswith("With 2 transcript pairs per block, no number of raters up to 100 reaches 80% power")
    assert "more raters alone do not help" in words
    if result.with_items is not None:
        assert f"{result.with_items.setting.n_items // 5} transcript pairs per block reach" in words


def test_what_reads_as_the_target_reaches_it():
    """A power that is written as 80% is enough for 80%, in the search, the table and the sentence."""

    def point(n_hits):
        share = proportion(n_hits, 200, label="any difference")
        return PowerPoint(Setting(800, 20, 0.5, 0.05, 1), share, share, {"a": share}, None, "")

    assert point(159).power.value < 0.8
    assert point(159).is_enough(0.8, needs_all=False)
    assert not point(158).is_enough(0.8, needs_all=False)
    study = study_of("likert")
    close = PowerResult("quality", 0.5, 0.8, (point(158),), None, limit=point(158))
    assert answer_words(study, close).startswith("With 20 items, no number of raters up to 800 reaches 80% power")
    assert advice_words(study, close).startswith("800 raters reach 79% (73% to 84%), which is close.")


@pytest.mark.parametrize(
    ("labels", "needs_all", "significant"),
    [
        ("a", False, "the test is significant"),
        ("abc", False, "at least one of the 3 tests is significant"),
        ("abc", True, "all 3 tests are significant"),
    ],
)
def test_the_power_of_the_smallest_design_is_a_whole_sentence(labels, needs_all, significant):
    share = proportion(332, 400, label="any difference")
    point = PowerPoint(Setting(30, 20, 0.5, 0.05, 1), share, share, dict.fromkeys(labels, share), 24_000, "EUR")
    result = PowerResult("quality", 0.5, 0.8, (point,), point, needs_all=needs_all)
    assert advice_words(study_of("likert"), result) == (
        f"The power is 83% (79% to 86%): in that share of 400 simulated studies with 20 items, {significant}. "
        "The raters cost 240.00 EUR."
    )


def test_fixed_items_are_no_sample():
    """With ``items: fixed`` the claim is about these items: power is that of raters alone, and much higher."""
    study = study_of("strategies")
    declared = study.spec.analysis.model_copy(update={"items": "fixed"})
    fixed = type(study)(study.spec.model_copy(update={"analysis": declared}), study.items, study.texts)
    shares = []
    for one in (study, fixed):
        found = simulate_tests(one, Setting(40, 10, 0.8, 0.05, 1), range(20))
        shares.append(np.mean([any(p <= 0.05 for p in tests.values()) for tests in found]))
    assert shares[1] > shares[0] + 0.4


def test_gold_and_practice_items_are_no_items():
    assert n_items_of(study_of("likert")) == 20
    assert n_items_of(study_of("acute")) == 24
    assert n_items_of(study_of("avatar")) == 30
    larger = resized(study_of("acute"), 48)
    assert n_items_of(larger) == 48
    assert larger.gold_ids == study_of("acute").gold_ids
