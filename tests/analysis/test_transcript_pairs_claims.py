"""How far a claim about a strategy reaches: other raters and other transcript pairs, or the texts that were shown."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest
from scipy import stats

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import data_from_arrays
from dialometer.analysis.base.family import ANALYSES, Options
from dialometer.analysis.families.pairs.choices import pair_choices, pair_items
from dialometer.analysis.families.pairs.question_section import _question_words
from dialometer.analysis.families.pairs.results import Result, all_shares, share_result
from dialometer.analysis.planning.power import primary_tests
from dialometer.analysis.planning.simulated_study import resized
from dialometer.analysis.shared.comparisons import is_significant, p_adjusted, primary_comparison
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.model.estimate import Estimate
from dialometer.model.report import Table
from dialometer.report.render import render
from dialometer.simulate.judgment_arrays import simulate_judgments
from dialometer.simulate.rater import Habits
from dialometer.simulate.truth import Truth

OPTIONS = Options(confidence=0.95, n_resamples=200, seed=1, correction="holm")
FIXED = dataclasses.replace(OPTIONS, has_fixed_items=True)
STRATEGIES = ("empathy", "formality", "facing", "vocabulary", "alignment")
GENERAL = re.compile(r"^(Raters preferred|The (experimental|control) version is preferred)")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The template with two pairs a strategy, which are too few for claims beyond them."""
    path = tmp_path_factory.mktemp("claims") / "strategies"
    copy_template("strategies", path)
    return resized(load_study(path), 10)


def with_pairs(study, n_pairs, *, n_seen=1):
    """The template with so many pairs a strategy, of which each rater reads some."""
    sized = resized(study, n_pairs * 5)
    blocks = [block.model_copy(update={"n_items": n_seen}) for block in sized.spec.design.blocks]
    design = sized.spec.design.model_copy(update={"blocks": blocks})
    return dataclasses.replace(sized, spec=sized.spec.model_copy(update={"design": design}))


def simulated(study, *, seed, n_raters=60, effect=0.0, item_sd=0.6, taste_sd=0.0):
    means = {"control": -effect / 2, "experimental": effect / 2}
    truth = Truth({c.name: means for c in study.spec.criteria}, item_sd=item_sd, seed=seed)
    habits = Habits(careless_share=0.0, taste_sd=taste_sd)
    return data_from_arrays(study, simulate_judgments(study, truth, habits, n_raters=n_raters, seed=seed))


def run(data, options=OPTIONS):
    return ANALYSES.get("transcript_pairs").run(data, options)


def general_claims(answer):
    """Sentences of an answer that claim something about a strategy, whatever the texts."""
    return [part for part in re.split(r"(?<=\.) ", answer) if GENERAL.match(part)]


def markdown(report, folder):
    (path,) = render(report, folder, formats=["markdown"])
    return path.read_text(encoding="utf-8")


def tables(found):
    return [part for section in found.sections for part in section.parts if isinstance(part, Table)]


def test_strategies_that_do_nothing_are_not_claimed_to(study):
    """60 studies of the template with its two pairs a strategy: with each rater as the only sample 97 of 100 claimed something."""
    n_claims = n_said = n_here = 0
    for seed in range(60):
        data = simulated(study, seed=seed)
        tests = primary_tests(data, OPTIONS)
        n_claims += any(is_significant(test) for test in tests.values())
        n_here += any(is_significant(test) for test in primary_tests(data, FIXED).values())
        if seed < 8:
            found = run(data)
            n_said += bool(general_claims(found.answer)) + any(claim.is_general for claim in found.claims)
    assert n_claims <= 3 + 2 * math.sqrt(3 * 0.95)
    assert n_said == 0
    assert n_here > 50


@pytest.mark.parametrize(("n_pairs", "n_seen", "taste_sd"), [(5, 3, 0.4), (10, 5, 0.0)])
def test_more_pairs_keep_the_level_too(study, n_pairs, n_seen, taste_sd):
    sized = with_pairs(study, n_pairs, n_seen=n_seen)
    n_claims, n_held, n_sims = 0, 0.0, 50
    for seed in range(n_sims):
        data = simulated(sized, seed=100 + seed, n_raters=30, taste_sd=taste_sd)
        tests = primary_tests(data, OPTIONS).values()
        n_claims += any(is_significant(test) for test in tests)
        n_held += np.mean([test.low <= 0.5 <= test.high for test in tests])
    assert n_claims <= 0.05 * n_sims + 2 * math.sqrt(0.05 * 0.95 * n_sims)
    assert n_held / n_sims > 0.92


def test_with_enough_pairs_a_strategy_is_claimed_in_general(study):
    found = run(simulated(with_pairs(study, 10), seed=3, effect=1.2))
    assert found.answer.startswith("Raters preferred the experimental version for all 5 strategies, from ")
    assert "in general" not in found.answer
    assert [claim.is_general for claim in found.claims] == [True] * 5
    assert "ll 5 preferences are significant (largest" in found.certainty
    assert "for other raters and other transcript pairs, and all 5" in found.certainty
    assert [line.sentence for line in found.headlines[1:]] == ["Significant for other transcript pairs too."] * 2


def test_pairs_that_share_a_transcript_are_no_separate_items(study):
    """One control in several pairs: if it is weak, the strategy wins them all, which says little about other transcripts."""
    sized = with_pairs(study, 6, n_seen=3)
    ours = [item for item in sized.items if item.block == "empathy"]
    shared = {
        item.id: dataclasses.replace(item, a=dataclasses.replace(item.a, turns=ours[k // 3].a.turns))
        for k, item in enumerate(ours)
    }
    sharing = dataclasses.replace(sized, items=tuple(shared.get(item.id, item) for item in sized.items))
    data = simulated(sized, seed=5, effect=0.8)
    plain, joined = (pair_choices(dataclasses.replace(data, study=one)) for one in (sized, sharing))
    assert len(set(plain.drawn)) == 30
    assert len(set(joined.drawn)) == 26
    assert {len(set(joined.where(joined.strategy == k).drawn)) for k in range(5)} == {2, 6}
    test = primary_tests(dataclasses.replace(data, study=sharing), OPTIONS)
    before = primary_tests(data, OPTIONS)
    changed = [name for name in test if test[name].p_value != before[name].p_value]
    assert changed == ["empathy"]
    assert all(test[name].details["n_items"] == 2 and test[name].df[0] < before[name].df[0] for name in changed)
    warnings = run(dataclasses.replace(data, study=sharing)).warnings
    assert any("the 30 pairs count as 26 items" in warning for warning in warnings)
    assert not any("count as" in warning for warning in run(data).warnings)
    assert not any("count as" in warning for warning in run(dataclasses.replace(data, study=sharing), FIXED).warnings)


def test_what_holds_for_these_texts_only_is_worded_so(study):
    found = run(simulated(study, seed=2, effect=1.2, item_sd=0.1))
    assert found.answer.startswith(
        "In the two transcript pairs of each strategy, raters preferred the experimental version"
    )
    assert found.answer.endswith("two pairs are too few to say that a strategy is preferred in general.")
    assert not general_claims(found.answer)
    assert [claim.is_general for claim in found.claims] == [False] * 5
    assert found.headlines[1].sentence.startswith(
        "Not significant for other transcript pairs: two pairs are too few. Significant in these two pairs (p"
    )
    declared = next(table for table in tables(found) if table.name == "pairs-declared-strategies_preferred")
    assert [c.label for c in declared.columns if c.name in ("share", "share_here")] == [
        "Prefer experimental, in general",
        "Prefer experimental, in these pairs",
    ]
    wide = next(table for table in tables(found) if table.name == "pairs-preference")
    assert "about these very transcript pairs" in wide.notes[0]
    assert "other raters, these pairs" in json.dumps(found.figure.spec)


def test_one_pair_a_strategy_says_in_the_headline_that_it_is_about_these_texts(study):
    data = simulated(with_pairs(study, 1), seed=4, effect=1.2)
    found = run(data)
    assert found.answer.startswith("In the single transcript pair of each strategy, raters preferred")
    assert "about these texts only: one pair cannot show that a strategy is preferred in general" in found.answer
    assert "for other transcript pairs nothing can be tested" in found.certainty
    assert found.headlines[1].sentence == "Significant in this one pair; for other pairs nothing can be tested."
    assert all(math.isnan(test.p_value) for test in primary_tests(data, OPTIONS).values())
    assert found.figure.title.endswith("in these transcript pairs")


def test_fixed_items_word_every_claim_about_these_texts(study, tmp_path):
    spec = study.spec.model_copy(update={"analysis": study.spec.analysis.model_copy(update={"items": "fixed"})})
    fixed = dataclasses.replace(study, spec=spec)
    report = analyse(fixed, simulated(fixed, seed=5, effect=1.2))
    assert "transcript pairs of each strategy, raters preferred" in report.summary.answer
    assert "declares its transcript pairs as fixed" in report.summary.answer
    text = markdown(report, tmp_path)
    assert "in general" not in text
    assert "other transcript pairs" not in text.replace("how other pairs", "")
    assert not [method for method in report.methods if "jackknife" in method.method]


def same_numbers(shown, tested):
    """Whether a test is the estimate that is shown; it also carries what it compares."""
    compared = ("first", "second", "is_log", "about", "part", "quantity")
    kept = {key: value for key, value in tested.details.items() if key not in compared}
    own = dataclasses.replace(
        shown, p_value=tested.p_value
    )  # a headline shows the corrected one, which is in the details
    return own == dataclasses.replace(tested, details=kept)


@pytest.mark.parametrize("options", [OPTIONS, FIXED], ids=["sample", "fixed"])
@pytest.mark.parametrize("n_pairs", [2, 6])
def test_power_repeats_the_very_tests_that_the_report_shows(study, n_pairs, options):
    data = simulated(with_pairs(study, n_pairs), seed=6, effect=0.8, n_raters=30)
    family, comparison = ANALYSES.get("transcript_pairs"), primary_comparison(study)
    tests = family.primary_tests(data, comparison, options)
    assert tuple(tests) == STRATEGIES
    found = run(data, options)
    declared = next(table for table in tables(found) if table.name == "pairs-declared-strategies_preferred")
    names = [column.name for column in declared.columns]
    rows = [dict(zip(names, row, strict=True)) for row in declared.rows]
    for row in rows:
        assert same_numbers(row["share"], tests[row["strategy"]])
        assert row["p_adjusted"] == p_adjusted(tests[row["strategy"]])
    for headline in found.headlines[1:]:
        assert same_numbers(headline.estimate, tests[headline.label.split(": ")[1]])


def test_without_a_declared_comparison_the_headline_is_what_power_repeats(study):
    spec = study.spec.model_copy(
        update={"analysis": study.spec.analysis.model_copy(update={"comparisons": [], "primary": None})}
    )
    bare = dataclasses.replace(study, spec=spec)
    data = simulated(bare, seed=7, n_raters=20)
    tests = primary_tests(data, OPTIONS)
    found = run(data)
    assert "exploratory" in found.certainty
    for headline in found.headlines[1:]:
        assert same_numbers(headline.estimate, tests[headline.label.split(": ")[1]])


# At the edges


def answered(study, choose, n_raters):
    """Every rater reads every pair and answers as ``choose(rater, pair number)`` says."""
    rows = [
        (rater + 1, item.block, item.id, c.name, choose(rater, k, item))
        for rater in range(n_raters)
        for k, item in enumerate(pair_items(study))
        for c in study.spec.criteria
    ]
    rater, block, item, criterion, choice = map(list, zip(*rows, strict=True))
    n = len(rows)
    blank = {"system": "", "order": "control|experimental", "worst": "", "scale": "pairwise"}
    columns = {name: np.full(n, text, dtype=object) for name, text in blank.items()}
    named = {"block": block, "item": item, "criterion": criterion, "choice": choice}
    columns |= {name: np.array(values, dtype=object) for name, values in named.items()}
    numbers = {"cell": np.zeros(n, int), "position": np.ones(n, int), "side": np.ones(n, int)}
    return data_from_arrays(study, {**columns, **numbers, "rater": np.array(rater), "value": np.full(n, np.nan)})


def estimates(found):
    parts = [cell for table in tables(found) for row in table.rows for cell in row if isinstance(cell, Estimate)]
    return [*parts, *(headline.estimate for headline in found.headlines if headline.estimate is not None)]


@pytest.mark.parametrize("options", [OPTIONS, FIXED], ids=["sample", "fixed"])
@pytest.mark.parametrize(
    ("choose", "n_raters"),
    [
        pytest.param(lambda r, k, i: "experimental", 18, id="18 of 18"),
        pytest.param(lambda r, k, i: "control", 18, id="0 of 18"),
        pytest.param(lambda r, k, i: "tie", 18, id="ties only"),
        pytest.param(lambda r, k, i: "experimental", 1, id="one rater"),
        pytest.param(lambda r, k, i: ("control", "experimental")[k % 2], 18, id="each pair unanimous"),
        pytest.param(lambda r, k, i: ("control", "experimental")[(r + k) % 2], 18, id="raters alike"),
    ],
)
def test_no_interval_has_no_width_and_no_share_is_written_with_six_digits(study, choose, n_raters, options, tmp_path):
    data = answered(study, choose, n_raters)
    found = run(data, options)
    for estimate in estimates(found):
        if estimate.has_interval and estimate.unit == "share":
            assert estimate.high - estimate.low > 0.01, estimate
            assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
        assert estimate.p_value != 1.0 or estimate.value in (0.0, pytest.approx(0.5))
    text = markdown(analyse(study, data), tmp_path)
    assert not re.search(r"\d\.\d{3,}%", text)
    assert "nan" not in text.lower().split()


def test_unanimous_raters_have_exact_intervals(study):
    """18 of 18: Clopper and Pearson over the raters for these texts, over the pairs for others."""
    choices = pair_choices(answered(study, lambda *_: "experimental", 18))
    result = share_result(choices.where(choices.strategy == 0), OPTIONS)
    assert result.here.low == pytest.approx(0.025 ** (1 / 18))
    assert result.here.p_value == pytest.approx(2 * 0.5**18)
    assert result.general.low == pytest.approx(0.025 ** (1 / 2))
    assert result.general.p_value == pytest.approx(0.5)


def test_cells_are_tested_exactly_in_these_texts(study):
    """As published: a binomial test where each rater answered once."""
    data = simulated(study, seed=8, n_raters=40)
    for result in all_shares(pair_choices(data), OPTIONS).cells.values():
        k = round(result.value * result.here.n)
        assert result.here.p_value == pytest.approx(stats.binomtest(k, result.here.n).pvalue)
        assert result.general.p_value > 0.05


def test_what_is_known_of_other_pairs_is_said_with_the_questions_of_these():
    here = Estimate(0.3, 20, "homogeneity", p_value=0.001, details={"p_adjusted": 0.001})
    open_, none = (Estimate(0.3, 20, "min F'", p_value=p, details={"p_adjusted": p}) for p in (0.4, math.nan))
    words = _question_words([Result("empathy", here, open_, 6), Result("facing", here, none, 6)])
    assert "for empathy in its six transcript pairs; for other pairs it is not significant." in words
    assert "for facing in its six transcript pairs; for other pairs it cannot be tested." in words
    fixed = _question_words([Result("empathy", here, None, 6), Result("facing", here, None, 6)])
    assert fixed.endswith("for empathy and facing in the six transcript pairs of each strategy.")


def test_questions_that_cannot_be_tested_are_not_said_to_be_alike():
    untested = Result("empathy", Estimate(0.9, 20, "homogeneity"), None, 6)
    tested = Result("facing", Estimate(0.6, 20, "homogeneity", p_value=0.4, details={"p_adjusted": 0.4}), None, 6)
    words = _question_words([untested, tested])
    assert "For facing the differences between questions are not significant" in words
    assert "For empathy the answers vary too little for a test." in words


@pytest.mark.parametrize(("n_raters", "few"), [(2, "raters and transcript pairs"), (60, "transcript pairs")])
def test_what_is_too_few_is_named(study, n_raters, few):
    certainty = run(simulated(study, seed=2, n_raters=n_raters)).certainty
    assert f"or one that so few {few} cannot show" in certainty
