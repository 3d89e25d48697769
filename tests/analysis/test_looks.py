"""Looks before the end: which raters they are about, what their tests say, and when the declared rule stops a study."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse, families
from dialometer.analysis.base.family import Options
from dialometer.analysis.planning.power import Setting, primary_tests, simulate_tests
from dialometer.analysis.planning.preregistration import preregistration
from dialometer.analysis.planning.simulated_study import Assumptions, planted, simulated_data
from dialometer.analysis.shared import verdicts
from dialometer.analysis.shared.comparisons import primary_comparison
from dialometer.analysis.shared.looks import LATER, at_look, look_data, paid_cents, resized_looks
from dialometer.analysis.shared.looks import tests_at_looks as best_tests
from dialometer.errors import StudyError
from dialometer.model.study import Study
from dialometer.stats.effects.multiplicity import look_of
from dialometer.stats.sequential.anytime import AnytimeLook
from dialometer.stats.sequential.planned import PlannedLook

SURE = Assumptions(item_sd=0.0, taste_sd=0.0, careless=0.0)


@pytest.fixture(scope="module")
def likert(template) -> Study:
    """Two systems are compared, and the items are all there is: looks come soon."""
    study = template("likert")
    two = study.spec.analysis.comparisons[0].model_copy(
        update={"levels": ["rules", "neural"], "expected": ["neural > rules"]}
    )
    return declared(study, comparisons=[two], items="fixed")


def declared(study: Study, **analysis: object) -> Study:
    made = type(study.spec.analysis).model_validate({**study.spec.analysis.model_dump(), **analysis})
    recruitment = study.spec.recruitment.model_copy(update={"quota": 40, "pay_cents": 100, "fee_percent": 0})
    return replace(study, spec=study.spec.model_copy(update={"analysis": made, "recruitment": recruitment}))


def data_of(study: Study, n: int, effect: float = 0.0, seed: int = 3):
    truth, habits, shifts = planted(study, effect, seed, SURE)
    return simulated_data(study, truth, habits, n_raters=n, seed=seed, shifts=shifts)


def primary(data):
    data, options = at_look(data, Options.declared(data.study))
    return data, options, verdicts.tested_hypotheses(data, options)[0]


def test_at_any_time_tests_are_those_of_the_confidence_sequence(likert):
    study = declared(likert, looks="anytime")
    data, options, tested = primary(data_of(study, 25, 0.5))
    n = data.judgments["rater"].n_unique()
    look = look_of(options.correction)
    assert look == AnytimeLook(n, 40, 1 - 0.95)
    fixed = verdicts.tested_hypotheses(replace(data, look=None), Options.declared(likert))[0]
    for label, test in tested.tests.items():
        alone = fixed.tests[label]
        assert test.p_value == pytest.approx(look.p_value(alone.p_value))
        assert test.details["p_this_look"] == alone.p_value
        assert test.low < alone.low < alone.high < test.high
        assert test.value == alone.value
    assert options.correction == "holm"


def test_planned_looks_are_about_the_first_raters_to_finish(likert):
    study = declared(likert, looks=[15, 25, 40])
    whole = data_of(study, 33)
    late = pl.when(pl.col("rater") == "r0001").then(10**12).otherwise(pl.col("started_at_ms"))
    whole = replace(whole, sessions=whole.sessions.with_columns(late.alias("started_at_ms")))
    data, options, _ = primary(whole)
    raters = data.judgments["rater"].unique().to_list()
    assert len(raters) == 25
    assert "r0001" not in raters  # the last to finish
    assert look_of(options.correction) == PlannedLook((15, 25), (15, 25, 40))
    assert data.n_left_out[LATER] == len(whole.judgments) - len(data.judgments)
    again, _, tested = primary(whole.of_raters(whole.raters_by_finish()[:28], "test"))
    assert again.judgments["rater"].n_unique() == 25, "what comes in between two looks changes nothing"
    assert tested.tests.keys() == primary(whole)[2].tests.keys()
    full, options, _ = primary(data_of(study, 46))
    n = full.judgments["rater"].n_unique()
    assert n > 40
    assert look_of(options.correction) == PlannedLook((15, 25, n), (15, 25, 40))
    assert full.look.unfinished == ""


@pytest.mark.parametrize(("looks", "n", "first"), [([15, 40], 11, 15), ("anytime", 8, 10)])
def test_there_are_no_results_before_the_first_look(likert, looks, n, first):
    report = analyse(declared(likert, looks=looks), data_of(declared(likert, looks=looks), n))
    assert f"The first look is at {first} raters." in report.summary.answer
    assert not report.is_finished
    assert report.summary.headlines == ()


def test_between_looks_verdicts_hold_and_the_next_look_comes_next(likert):
    """Results at a declared look are valid, so they are not worded as interim ones; simulated raters change nothing of that."""
    study = declared(likert, looks=[15, 40])
    summary = analyse(study, data_of(study, 20), n_resamples=100).summary
    assert "so far" not in summary.answer
    assert summary.next_steps[1].startswith("Continue to the next look, at 40 raters")


def test_a_study_that_is_decided_stops_and_stays_decided(likert):
    study = declared(likert, looks="anytime", stop={"every": 5})
    report = analyse(study, data_of(study, 38, 2.0), n_resamples=100)
    stopped = report.provenance["n_raters"]
    assert report.provenance["stopped"] == "decided"
    assert stopped in (10, 15, 20)
    assert f"at {stopped} raters the primary hypothesis was supported" in report.provenance["stopped_because"]
    assert report.is_finished
    assert any("not in this report" in warning for warning in report.summary.warnings)
    assert any("finished after this look" in str(row[0]) for row in report.summary.exclusions.rows)
    assert primary(data_of(study, 30, 2.0))[0].look.look.n == stopped, "who comes later changes nothing"
    (section,) = [section for section in report.sections if section.name == "looks"]
    assert section.parts[0].rows[-1][2] == "supported"
    assert any("confidence sequence" in method.method for method in report.methods)


def test_a_hopeless_study_stops(likert):
    study = declared(likert, looks=[10, 20, 30, 40], stop={"futile": 0.2})
    data, _, tested = primary(data_of(study, 36, -0.02, seed=1))
    assert data.look.stopped == "futile"
    assert tested.result == "undecided"
    assert data.look.checked[-1].chance < 0.2
    assert all(one.chance >= 0.2 for one in data.look.checked[:-1])
    assert "predicted chance" in data.look.stop_words


def test_a_study_stops_when_its_budget_is_spent(likert):
    study = declared(likert, looks="anytime", stop={"decided": False, "budget_cents": 2000, "every": 5})
    data, _, _ = primary(data_of(study, 34))
    assert data.look.stopped == "budget"
    n = data.look.look.n
    assert n in (15, 20)  # excluded raters are paid too
    whole = data_of(study, 34)
    last = whole.raters_by_finish()[n - 1]
    n_paid = whole.sessions["rater"].to_list().index(last) + 1
    assert paid_cents(whole, n) == 100 * n_paid >= 2000


def test_without_looks_nothing_changes(likert):
    data = data_of(declared(likert), 20)
    options = Options.declared(likert)
    assert at_look(data, options) == (data, options)
    assert "looks" not in [section.name for section in analyse(likert, data, n_resamples=100).sections]


def test_power_is_that_of_any_look(likert):
    study = declared(likert, looks=[10, 20, 40])
    setting = Setting(20, 20, 0.6, 0.05, seed=1, assumed=SURE)
    with_looks = simulate_tests(study, setting, range(4))
    alone = simulate_tests(declared(likert), setting, range(4))
    assert [one.keys() for one in with_looks] == [one.keys() for one in alone]
    assert resized_looks(study, 20)[1] == [5, 10, 20]
    truth, habits, shifts = planted(study, 0.6, 1, SURE)
    data = simulated_data(study, truth, habits, n_raters=20, seed=1, shifts=shifts)
    found = best_tests(data, Options.declared(study), primary_tests)
    raters, resized = data.raters_by_finish(), resized_looks(study, 20)[0]
    last = look_data(replace(data, study=resized), Options.declared(study), raters, resized.spec.analysis.looks)
    for label, test in primary_tests(last.data, last.options).items():
        assert found[label].details["p_adjusted"] <= test.details["p_adjusted"]


@pytest.mark.parametrize("name", ["acute", "strategies", "best-worst", "anchoring", "avatar", "mqm", "rubric"])
def test_every_family_of_tests_holds_at_every_look(template, name):
    """Each p-value of the primary comparison is the declared test's own, converted once."""
    study = declared(template(name), looks="anytime")
    data = data_of(study, 24, 0.5)
    here, options = at_look(data, Options.declared(study))
    comparison = primary_comparison(study)
    family = next(one for one in families(study) if one.decides(study, comparison))
    held = family.primary_tests(here, comparison, replace(options, n_resamples=100))
    alone = family.primary_tests(data, comparison, replace(Options.declared(study), n_resamples=100))
    look = look_of(options.correction)
    assert held.keys() == alone.keys()
    for label, test in held.items():
        is_margin = "lower_bound" in test.details
        wanted = look.one_sided if is_margin else look.p_value
        assert test.p_value == pytest.approx(wanted(alone[label].p_value), nan_ok=True), label
        assert test.details["p_adjusted"] >= alone[label].details["p_adjusted"] or is_margin


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("looks: [80, 40]", "in rising order"),
        ("looks: [40, 200]", "is beyond the 143 raters"),
        ("looks: [40, 80]", "is before the 143 raters"),
        ("looks: sometimes", "looks"),
        ("spending: pocock", "spent over planned looks only"),
        ("stop: {futile: 0.1}", "cannot stop early"),
        ("looks: anytime\n  stop: {decided: false}", "never stops"),
    ],
)
def test_looks_that_make_no_sense_are_refused(template, lines, words):
    with pytest.raises(StudyError, match=words):
        template("strategies", ("analysis:\n", f"analysis:\n  {lines}\n"))


def test_a_preregistration_names_the_looks(likert):
    study = declared(likert, looks=[20, 40], spending="pocock", stop={"futile": 0.1})
    text = preregistration(study, n_raters=40, power=None, methods=(), n_collected=0, frozen="")
    assert "looked at when 20 and 40 raters have finished, and at no other time" in text
    assert "Pocock-like" in text
    assert "below 10%" in text
    other = preregistration(
        declared(likert, looks="anytime"), n_raters=40, power=None, methods=(), n_collected=0, frozen=""
    )
    assert "may be looked at any time" in other
    assert "asymptotic confidence sequence" in other
