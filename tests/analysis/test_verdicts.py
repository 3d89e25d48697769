"""Verdicts on declared hypotheses, and what to do next: from tests whose outcome is known."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse, exclusions_table, unfinished
from dialometer.analysis.base.data import EXCLUDED
from dialometer.analysis.base.exclusions import excluded_raters_table
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.opening import SIMULATED, verdict_table
from dialometer.analysis.families.ratings.agreement import agreement_steps
from dialometer.analysis.shared.comparisons import between, comparison_caption
from dialometer.analysis.shared.effect_words import effect_words, flipped, readable, short_words
from dialometer.analysis.shared.next_steps import CONTRADICTED, NEW_STUDY, WRITE_UP, growth, next_steps
from dialometer.analysis.shared.verdicts import DeclaredHypothesis
from dialometer.errors import StudyError
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.report import Column, Section, Table
from dialometer.report import render
from dialometer.report.interval_bar import interval_bar
from dialometer.stats.effects.multiplicity import adjust_estimates

OPTIONS = Options(confidence=0.95, n_resamples=100, seed=1, correction="holm")


def a_test(first, second, value, p, *, about="Helpfulness", error=0.2, p_adjusted=None, **named):
    corrected = p if p_adjusted is None else p_adjusted
    estimate = Estimate(
        value,
        100,
        "difference",
        low=value - 2 * error,
        high=value + 2 * error,
        statistic=value / error,
        df=(40.0,),
        p_value=p,
        details={"p_adjusted": corrected},
    )
    return between(estimate, first, second, about=about, **named)


def hypothesis_on(study, *tests, expected=(), **named):
    comparison = Comparison(name="system_helpfulness", criteria=["helpfulness"], expected=list(expected), **named)
    return DeclaredHypothesis(study, comparison, {str(i): one for i, one in enumerate(tests)}, OPTIONS)


@pytest.fixture(scope="module")
def likert(template):
    return template("likert")


def test_directions_are_read_from_the_study_file():
    assert Comparison(name="x", expected="a > b").expected_pairs == (("a", "b"),)
    assert Comparison(name="x", expected=["a > b, c"]).expected_pairs == (("a", "b"), ("a", "c"))
    assert Comparison(name="x", expected=["a > b > c"]).expected_pairs == (("a", "b"), ("a", "c"), ("b", "c"))


@pytest.mark.parametrize(
    ("direction", "words"),
    [
        ("neural", "states no direction"),
        ("neural > rulez", "there is no system 'rulez'"),
        ("[neural > rules, rules > neural]", "cannot be both above and below"),
    ],
)
def test_a_wrong_direction_is_refused(template, direction, words):
    edit = ("      criteria: [helpfulness]\n", f"      criteria: [helpfulness]\n      expected: {direction}\n")
    with pytest.raises(StudyError, match=words):
        template("likert", edit)


def test_an_expected_difference_is_supported_contradicted_or_undecided(likert):
    up, down = a_test("neural", "rules", 0.8, 0.001), a_test("neural", "rules", -0.8, 0.001)
    unclear = a_test("neural", "rules", 0.3, 0.2)
    results = [hypothesis_on(likert, one, expected=["neural > rules"]).result for one in (up, down, unclear)]
    assert results == ["supported", "contradicted", "undecided"]
    # The other way round: the same test, named from the other side.
    assert hypothesis_on(likert, down, expected=["rules > neural"]).result == "supported"
    words = hypothesis_on(likert, down, expected=["rules > neural"]).verdict().tests
    assert words == "Rules is rated 0.80 points higher than Neural [0.40, 1.20], p\u00a0=\u00a0.001."


@pytest.mark.parametrize(
    ("value", "p", "words"),
    [
        (0.8, 0.001, "supported: Neural is rated 0.80 points higher than Rules on Helpfulness."),
        (-0.8, 0.001, "contradicted: Neural is rated 0.80 points lower than Rules on Helpfulness."),
        (
            0.3,
            0.2,
            "undecided: Neural is rated 0.30 points higher than Rules on Helpfulness, which is not significant.",
        ),
        (0.001, 0.99, "undecided: Neural and Rules are tied on Helpfulness."),
        (0.001, 0.001, "supported: Neural and Rules differ by less than 0.01 points on Helpfulness."),
    ],
)
def test_one_test_is_said_in_one_sentence(likert, value, p, words):
    test = hypothesis_on(likert, a_test("neural", "rules", value, p), expected=["neural > rules"])
    assert test.one_test_answer() == f"Hypothesis {words}"
    assert test.one_test_numbers().startswith("The 95% confidence interval of the difference is ")


def test_names_of_systems_stay_as_they_are_written(template):
    """A label in small letters keeps them after a full stop."""
    study = template("likert", ("label: Neural", "label: neural-2"))
    tests = [a_test("neural", "rules", 0.8, 0.001), a_test("neural", "retrieval", 0.7, 0.001)]
    words = hypothesis_on(study, *tests, expected=["neural > rules, retrieval"]).tests_in_words()
    assert "expected direction. neural-2 is rated 0.80 points higher" in words.replace("\u00a0", " ")


def test_a_tie_of_votes_says_what_is_estimated_to_be_level(likert):
    test = dataclasses.replace(a_test("neural", "rules", 0.001, 0.99), unit="log odds")
    tied = hypothesis_on(likert, test, expected=["neural > rules"])
    assert tied.one_test_answer() == "Hypothesis undecided: Neural and Rules are tied on Helpfulness."
    numbers = "The estimated probability that Neural is preferred is 50% (95% confidence interval 40 to 60%), p = .990."
    assert tied.one_test_numbers().replace("\u00a0", " ") == numbers


def test_what_one_test_does_not_decide_is_not_said_as_if_it_did(likert):
    one = a_test("neural", "rules", 0.8, 0.001)
    assert not hypothesis_on(likert, one, expected=["neural > rules, retrieval"]).one_test_answer()
    assert not hypothesis_on(likert, one, a_test("neural", "retrieval", 0.3, 0.2)).one_test_answer()
    assert not hypothesis_on(likert, a_test("neural", "rules", 0.8, math.nan)).one_test_answer()


def test_verdicts_on_fixed_items_say_so(likert):
    test = a_test("neural", "rules", 0.8, 0.001)
    general = hypothesis_on(likert, test, expected=["neural > rules"])
    fixed = dataclasses.replace(general, options=dataclasses.replace(OPTIONS, has_fixed_items=True))
    assert general.answer().startswith("Hypothesis supported: Neural above Rules")
    assert fixed.answer().startswith("Hypothesis supported for the items of this study: Neural above Rules")
    assert fixed.verdict().hypothesis.endswith("Tested for the items of this study only, as declared.")
    of_raters = dataclasses.replace(fixed, comparison=fixed.comparison.model_copy(update={"between": "factor"}))
    assert "items" not in of_raters.answer()


def test_non_inferiority_is_stated_as_such(likert):
    stated = hypothesis_on(
        likert, test="non_inferiority", margin=0.3, reference="rules", levels=["rules", "neural"]
    ).statement()
    assert stated == "Neural is not inferior to Rules on Helpfulness"


def test_every_expected_difference_must_be_shown(likert):
    tests = [a_test("neural", "rules", 0.8, 0.001), a_test("neural", "retrieval", 0.3, 0.2)]
    assert hypothesis_on(likert, *tests, expected=["neural > rules, retrieval"]).result == "undecided"
    assert hypothesis_on(likert, *tests, expected=["neural > rules"]).result == "supported"
    assert (
        hypothesis_on(likert, tests[0], expected=["neural > rules, retrieval"]).result == "undecided"
    )  # one has no test


def test_without_a_direction_any_difference_counts_on_each_criterion(likert):
    sure, unsure = a_test("neural", "rules", -0.8, 0.001), a_test("neural", "retrieval", 0.1, 0.6)
    elsewhere = a_test("neural", "rules", 0.1, 0.6, about="Fluency")
    assert hypothesis_on(likert, sure, unsure).result == "supported"
    assert hypothesis_on(likert, sure, unsure, elsewhere).result == "undecided"
    assert hypothesis_on(likert, unsure).result == "undecided"
    # A statement in words cannot be read: what is called supported is that there is a difference, in no direction.
    named = hypothesis_on(likert, sure, hypothesis="Neural is better.")
    assert named.answer() == "Hypothesis supported: Rules, Retrieval and Neural are not all equal on Helpfulness."
    assert (
        hypothesis_on(likert, sure, levels=["neural", "rules"]).statement() == "Rules and Neural differ on Helpfulness"
    )
    assert "any difference counts" in named.verdict().hypothesis


def test_significance_is_that_of_the_corrected_test(likert):
    one = a_test("neural", "rules", 0.8, 0.04, p_adjusted=0.12)
    assert hypothesis_on(likert, one, expected=["neural > rules"]).result == "undecided"


def test_over_how_many_tests_p_values_are_corrected_is_said(likert):
    """The expected differences are a part of the tests of a comparison; their intervals are not corrected."""
    pairs = [("neural", "rules"), ("neural", "retrieval"), ("rules", "retrieval")]
    tests = adjust_estimates([a_test(*pair, 0.42, 0.03) for pair in pairs], "holm")
    some = hypothesis_on(likert, *tests, expected=["neural > rules, retrieval"])
    assert some.verdict().tests.endswith(" p-values are corrected for all 3 tests of this comparison.")
    assert "corrected for all" not in hypothesis_on(likert, *tests).verdict().tests
    assert (
        some.headlines()[0].sentence
        == "Not significant after correction (Holm). The confidence interval is not corrected."
    )
    untested = hypothesis_on(likert, a_test("neural", "rules", 0.42, math.nan), expected=["neural > rules"])
    assert untested.headlines()[0].sentence == "Not tested."
    table = verdict_table([some.verdict()], "holm", 0.95)
    assert (
        "intervals are not: one may lie on one side of no difference although its corrected p-value is above .05."
        in (table.caption)
    )


def test_of_many_tests_the_most_telling_are_written_out(likert):
    """Where corrected p-values are all 1, the uncorrected ones say which those are."""
    tests = [
        a_test("neural", "rules", 0.1, p, about=about, p_adjusted=1.0)
        for about, p in zip("ABCDEF", (0.9, 0.8, 0.7, 0.6, 0.5, 0.3), strict=True)
    ]
    words = hypothesis_on(likert, *tests).verdict().tests
    assert [about for about in "ABCDEF" if f"{about}: " in words] == list("CDEF")
    assert words.index("F: ") < words.index("E: ") < words.index("C: ")


def test_verdicts_of_an_unfinished_study_are_interim(template, quick):
    study = template("likert", ("recruitment:\n", "recruitment:\n  quota: 60\n"))
    report = analyse(study, quick(study, n_raters=6), n_resamples=100)
    first, *_ = report.summary.verdicts
    assert report.summary.answer.startswith(f"Hypothesis {first.result} so far (6 of 60 raters): Rules, Retrieval and")
    assert report.summary.hypotheses.rows[0][1] == f"{first.result} so far"
    assert report.summary.next_steps == (
        SIMULATED,
        "Finish the study as planned (6 of 60 raters so far); do not decide from interim results.",
    )


def test_one_question_is_not_several():
    comparison = Comparison(name="x", hypothesis="A is better.")
    assert comparison_caption(comparison, ["Fluency"]) == "Question: Fluency. Hypothesis: A is better."
    assert comparison_caption(comparison, ["Fluency", "Use"]).startswith("Questions: Fluency and Use.")


@pytest.mark.parametrize(
    ("named", "unit", "words"),
    [
        (
            {},
            "",
            "Helpfulness: A is rated 0.50 points lower than B (95% confidence interval −0.90 to −0.10, p\u00a0=\u00a0.010)",
        ),
        ({"is_log": True}, "", "Helpfulness: A is rated 0.61 times as high as B"),
        ({"quantity": "percentage points"}, "", "Helpfulness: A is 50.00 percentage points lower than B"),
        ({"about": ""}, "log odds", "A is preferred to B with an estimated probability of 38%"),
        ({"quantity": "ICC"}, "", "Helpfulness: A has an ICC 0.50 lower than B"),
    ],
)
def test_one_difference_in_words(named, unit, words):
    one = a_test("a", "b", -0.5, 0.01, **{"about": "Helpfulness", **named})
    one = Estimate(**{**{f: getattr(one, f) for f in one.__slots__}, "unit": unit})
    assert effect_words(one, "A", "B", "none").startswith(words.replace("50.00", "50"))
    assert flipped(flipped(one)).value == pytest.approx(one.value)


def test_a_probability_is_shown_against_even_odds():
    """The line of a tile is at 50%, not where log odds are zero."""
    one = dataclasses.replace(a_test("a", "b", 0.59, 0.06, null=0.0), unit="log odds")
    shown, is_percent = readable(one)
    assert is_percent
    assert interval_bar(shown).reference_text == "50%"


def test_choices_between_the_same_two_are_listed_once(likert):
    shares = [
        a_test("neural", "rules", value, 0.001, about=about, error=0.02, null=0.5)
        for value, about in ((0.9, "empathy"), (0.8, "facing"))
    ]
    words = hypothesis_on(likert, *shares).verdict().tests
    assert (
        "Choices of Neural over Rules: empathy 90% [86, 94], p = .001; facing 80% [76, 84], p = .001."
        in words.replace("\u00a0", " ")
    )


def test_a_tie_reads_as_one():
    assert short_words(a_test("a", "b", 0.001, 0.99), "A", "B").startswith("A and B differ by less than 0.01 points")


def test_how_much_more_data_agrees_with_power_analysis():
    """Beside statsmodels' power of a t-test: n raters with a mean difference and a standard deviation."""
    power = pytest.importorskip("statsmodels.stats.power").TTestPower()
    for n, effect in ((20, 0.3), (40, 0.25), (12, 0.6)):
        error = 1 / math.sqrt(n)
        one = a_test("a", "b", effect, 0.2, error=error)
        one = Estimate(**{**{f: getattr(one, f) for f in one.__slots__}, "df": (n - 1.0,)})
        expected = power.solve_power(effect_size=effect, alpha=0.05, power=0.8)
        assert growth(one, 0.95) * n == pytest.approx(expected, rel=0.03)


def test_what_to_do_next_follows_from_the_verdict(likert):
    def steps(one, **named):
        primary = hypothesis_on(likert, one, **named)
        return next_steps([primary], n_raters=20, n_items=30)

    assert steps(a_test("neural", "rules", 0.8, 0.001), expected=["neural > rules"]) == (WRITE_UP,)
    assert steps(a_test("neural", "rules", -0.8, 0.001), expected=["neural > rules"]) == (WRITE_UP, CONTRADICTED)
    collect, new = steps(a_test("neural", "rules", 0.3, 0.14), expected=["neural > rules"])
    assert new == NEW_STUDY
    assert "about 71 raters and 107 items (now 20 and 30)" in collect
    against = steps(a_test("neural", "rules", -0.3, 0.14), expected=["neural > rules"])[0]
    assert against.startswith(
        "The estimate points against the expected direction (Helpfulness: Neural is rated 0.30 points lower"
    )
    assert "more than 20 times the data" in steps(a_test("neural", "rules", 0.02, 0.9))[0]
    assert "Declare the comparison" in next_steps([], 20, 30)[0]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            (-0.1, -0.3),
            "None of the 2 estimates points in the expected direction (furthest from it: Helpfulness: Neural is rated 0.30",
        ),
        ((0.1, -0.3), "1 of 2 estimates does not point in the expected direction (Helpfulness: Neural is rated 0.30"),
        (
            (-0.001, 0.3),
            "Of the 2 undecided differences, the smallest",
        ),  # it reads as no difference, in neither direction
    ],
)
def test_estimates_against_the_expected_direction_are_counted(likert, values, words):
    tests = [a_test("neural", other, value, 0.3) for other, value in zip(("rules", "retrieval"), values, strict=True)]
    step, _ = next_steps([hypothesis_on(likert, *tests, expected=["neural > rules, retrieval"])], 20, 30)
    assert step.startswith(words)
    assert ("only if the direction reverses. Keep the hypothesis as declared" in step) == (not words.startswith("Of"))


def test_what_more_data_would_show_is_named(likert):
    """Without a direction one difference is enough; with one each counts, and the smallest may be hopeless."""

    def step(*values, **named):
        others = ("rules", "retrieval")[: len(values)]
        tests = [a_test("neural", other, value, 0.3) for other, value in zip(others, values, strict=True)]
        return next_steps([hypothesis_on(likert, *tests, **named)], 20, 30)[0]

    clearest = step(0.1, 0.3)
    assert (
        "about 71 raters and 107 items (now 20 and 30) would show the clearest one (Neural against Retrieval) with"
        in clearest
    )
    assert "which is enough for this hypothesis; the others need more" in clearest
    expected = {"expected": ["neural > rules, retrieval"]}
    assert "would show each of them with 80% power." in step(0.2, 0.3, **expected)
    mixed = step(0.02, 0.3, **expected)
    assert mixed.startswith(
        "Of the 2 undecided differences, the smallest is estimated to be so small (Helpfulness: Neural is"
    )
    assert "would take about 3.5 times" in mixed
    assert "equivalence" not in mixed
    small = step(0.02, 0.03, **expected)
    assert small.startswith(
        "The 2 undecided differences are estimated to be so small (the largest: Helpfulness: Neural is rated 0.03"
    )
    assert "declare 'test: equivalence'" in small


def test_a_judge_is_asked_to_score_as_many_more_items_as_raters_judge(template):
    study = template("judged")
    primary = hypothesis_on(study, a_test("guided", "brief", 0.3, 0.14))
    step, _ = next_steps([primary], n_raters=16, n_items=24)
    assert (
        "about 57 raters (now 16), 85 items rated by them (now 24) and 340 items scored by judges (now 96) would show it"
        in step
    )


def test_tasks_that_are_no_sample_are_not_asked_for(template):
    talk = template("chat")

    def collect(**details):
        one = a_test("juno", "tak", 0.3, 0.14, about="Overall")
        one = dataclasses.replace(one, details={**one.details, **details})
        return next_steps([hypothesis_on(talk, one)], n_raters=20, n_items=2)[0]

    assert "about 71 raters (now 20) would show it" in collect()
    assert "about 71 raters and 15 tasks (now 20 and 4) would show it" in collect(n_raters=20, n_items=4)


def test_one_rater_is_asked_for_more_raters_and_not_for_less(likert):
    alone = dataclasses.replace(
        a_test("a", "b", 46.6, math.nan), low=math.nan, high=math.nan, statistic=math.nan, df=()
    )
    (step, _) = next_steps([hypothesis_on(likert, alone)], 1, 12)
    assert step == "Collect judgments of more raters: one rater says nothing about others."


def test_judgments_that_are_all_excluded_are_not_called_missing(likert, quick):
    data = quick(likert, n_raters=3)
    none = dataclasses.replace(data, judgments=data.judgments.clear())
    assert analyse(likert, none).summary.answer == "There are no judgments yet."
    practice = dataclasses.replace(none, n_left_out={"practice items": 9})
    assert analyse(likert, practice).summary.answer == "There are no judgments yet."
    excluded = analyse(likert, dataclasses.replace(none, n_left_out={EXCLUDED: 1296, "practice items": 9}))
    assert excluded.summary.answer.startswith("All 1,296 judgments are excluded")
    assert excluded.summary.answer.endswith(
        "nothing to analyse: they are from raters excluded by quality rules or by hand."
    )
    assert not excluded.summary.certainty
    assert not excluded.sections, "the answer says all of it"
    assert "quality rules" in excluded.summary.next_steps[0]
    assert excluded.summary.answer.endswith("they are from raters excluded by quality rules or by hand.")
    assert not [section.problem for section in excluded.sections if section.problem]  # the summary has said it
    by_hand = dataclasses.replace(none, sessions=data.sessions.with_columns(pl.lit(True).alias("is_excluded")))
    assert exclusions_table(by_hand).rows == (("excluded by hand", 3, ""),)
    assert "have completed it, not counting 3 excluded raters." in unfinished(by_hand)


def test_raters_who_did_not_reach_the_end_are_said_to_count(likert, quick):
    data = quick(likert, n_raters=3)
    first = data.sessions["rater"][0]
    left = pl.when(pl.col("rater") == first).then(pl.lit("active")).otherwise("state").alias("state")
    data = dataclasses.replace(data, sessions=data.sessions.with_columns(left))
    assert "2 of " in unfinished(data)
    assert unfinished(data).endswith("have completed it; judgments of 1 other count too.")
    section = next(section for section in analyse(likert, data, n_resamples=100).sections if section.name == "raters")
    assert section.paragraphs[0].startswith("3 raters gave judgments that count, 1 of them without reaching the end.")


def test_who_was_excluded_is_listed_where_all_were(likert, quick):
    data = quick(likert, n_raters=3)
    (first, second, third) = sorted(data.judgments["rater"].unique())
    told = [
        (first, "gold", "exclude", "failed"),
        (first, "attention", "exclude", "wrong"),
        (second, "gold", "exclude", "failed"),
    ]
    told.append((third, "session_time", "flag", "fast"))
    findings = pl.DataFrame(told, schema=data.findings.schema, orient="row")
    none = dataclasses.replace(
        data,
        judgments=data.judgments.clear(),
        set_aside=data.judgments,
        findings=findings,
        n_left_out={EXCLUDED: len(data.judgments)},
    )
    report = analyse(likert, none)
    (section,) = report.sections
    assert [row[0] for row in section.parts[0].rows] == [first, first, second]
    assert "the table below" in report.summary.next_steps[0]
    rows = {row[0]: row[1:] for row in report.summary.exclusions.rows}
    assert rows["excluded by the rule gold"][0] == 2
    assert rows[f"judgments of {EXCLUDED}"] == (3, len(data.judgments))  # each rater once, whatever rules say
    assert "only flagged by the rule session time, kept" not in rows  # nobody is kept
    source = pl.when(pl.col("rater") == first).then(pl.lit("model")).otherwise("source").alias("source")
    mixed = dataclasses.replace(none, sessions=none.sessions.with_columns(source))
    assert [row[0] for row in excluded_raters_table(mixed).rows] == [second], "the report is about other sources"
    assert not any("Interim results" in warning for warning in report.summary.warnings)


@pytest.mark.parametrize(
    ("p_values", "words"),
    [
        ((0.01, 0.01), "Both tests are significant. "),
        ((0.01, 0.4), "1 of 2 tests is significant. "),
        ((0.3, 0.4), "Neither test is significant. "),
    ],
)
def test_two_tests_are_counted_as_people_say_it(likert, p_values, words):
    tests = [a_test("a", "b", 1.0, p, about=about) for p, about in zip(p_values, ("Relevance", "Fluency"), strict=True)]
    assert hypothesis_on(likert, *tests).counts() == words


def test_low_agreement_asks_for_another_scale(template):
    def section(value, criterion="Fluency"):
        single, average = (Estimate(one, 60, "ICC") for one in (value / 4, value))
        columns = tuple(Column(name, name) for name in ("criterion", "icc_single", "icc_average"))
        table = Table("rating_agreement", "Agreement", columns, ((criterion, single, average),))
        return Section("rating_agreement", "Agreement", (), (table,))

    assert agreement_steps(section(0.8)) == ()
    (step,) = agreement_steps(section(0.4))
    assert step.startswith("Agreement on Fluency (ICC 0.40) is too low")
    assert "labelled points" in step
    assert "about 36 raters judge each item" in step  # Spearman-Brown: 0.8 (1 - 0.1) / (0.1 (1 - 0.8))
    for name, criterion in (("mqm", "Correctness"), ("rubric", "Rubric"), ("likert", "Fluency")):
        study = template(name)
        scale = study.spec.scales[study.spec.criteria[0].scale]
        named = section(0.4, criterion)
        (step,) = agreement_steps(named, [SimpleNamespace(label=criterion, scales=(scale,))])
        assert ("what to mark or check" in step) == (name != "likert")
        assert ("labelled points" in step) == (name == "likert")


def test_the_appendix_is_complete_and_not_part_of_the_main_report(likert, quick, tmp_path):
    report = analyse(likert, quick(likert, n_raters=8), n_resamples=100)
    assert report.appendix
    assert {section.name for section in report.main_sections} == {"declared_ratings", "systems", "rating_agreement"}
    render(report, tmp_path, formats=["html", "markdown", "csv"])
    main, _, appendix = (tmp_path / "report.md").read_text(encoding="utf-8").partition("# Appendix")
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    for section in report.appendix:
        assert f"## {section.title}" in appendix.replace("\\", "")
        assert f"## {section.title}\n" not in main
    assert page.count('<details class="more"') == len(report.appendix)
    assert (tmp_path / "tables" / "hypotheses.csv").exists()
    assert all(headline.is_confirmatory for headline in report.summary.headlines)
