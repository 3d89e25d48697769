"""Human raters corrected by judges in a report: from the template's study file to tables, verdict and warnings."""

import math
from dataclasses import replace

import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import load_data
from dialometer.analysis.base.family import Options
from dialometer.analysis.families.judged.report import _JudgedRun
from dialometer.analysis.families.judged.scores import judged_criteria
from dialometer.analysis.shared.comparisons import deciding_family, primary_comparison
from dialometer.design.load import load_study
from dialometer.design.templates import template_folder
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.flow.simulated_judges import simulate_judges
from dialometer.model.judges import Judge, SimulatedJudge
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store
from report_parts import rows_of, table_of

SEED, START_MS = 2, 1_700_000_000_000


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The template with sixteen simulated raters and its simulated judge."""
    study = load_study(template_folder("judged"))
    truth = draw_truth(study, SEED, item_sd=1.0)
    with Store.open(tmp_path_factory.mktemp("judged") / "study.db") as store:
        simulate(study, EngineAccess(Flow(study, store)), truth, n_raters=16, seed=SEED, start_ms=START_MS)
        assert simulate_judges(study, store, truth, seed=SEED, at_ms=START_MS) == {"reader": 192}
        assert simulate_judges(study, store, truth, seed=SEED, at_ms=START_MS) == {}
        chances = {
            chance for session in store.sessions.all(source="simulated") for chance in session.draw.chances.values()
        }
        assert chances == {0.25}
        yield load_data(study, store)


def test_a_judge_that_makes_the_interval_wider_is_not_said_to_make_it_narrower(data):
    run = _JudgedRun(data, Options(confidence=0.95, n_resamples=100, seed=1, correction="holm"))
    wide = [
        replace(one, both=replace(one.both, low=one.people.low - 0.1, high=one.people.high + 0.1)) for one in run.found
    ]
    run.__dict__["found"] = wide
    assert "The interval is no narrower with the judge than for raters alone." in run.certainty()


def of_raters(data, n):
    """The same with judgments of the first raters only."""
    names = sorted(set(data.judgments["rater"]))[:n]
    return replace(data, judgments=data.judgments.filter(pl.col("rater").is_in(names)))


def test_one_rater_is_no_sample_of_raters(data):
    report = analyse(data.study, of_raters(data, 1), n_resamples=100)
    assert "which is not tested, since one rater says nothing about others" in report.summary.answer
    assert "narrower" not in report.summary.certainty
    for name, column in (("judged_ratings", "both"), ("judged_ratings_systems", "people")):
        row = rows_of(table_of(report, name))[0]
        assert row[column].is_known
        assert not row[column].has_interval
        assert (row["narrower"], row["worth"]) == (None, None)


def test_fixed_items_are_another_choice_with_numbers_of_its_own(data):
    report = analyse(data.study, data, n_resamples=100)
    estimates = {row["choice"]: row["estimate"] for row in rows_of(table_of(report, "sensitivity"))}
    fixed, declared = estimates["Items: fixed (these items only)"], estimates["Confirmatory analysis"]
    assert fixed.high - fixed.low < declared.high - declared.low


def test_raters_who_all_say_the_same_leave_nothing_to_test(data):
    same = replace(data, judgments=data.judgments.with_columns(value=pl.lit(4.0)))
    assert analyse(data.study, same, n_resamples=100).summary.answer.endswith("since all judgments are equal.")


def test_intervals_end_where_the_scale_ends(data):
    """Two raters on a scale from 1 to 7: Student's t alone reaches from -6 to 14."""
    report = analyse(data.study, of_raters(data, 2), n_resamples=100)
    for row in rows_of(table_of(report, "judged_ratings_systems")):
        assert all(1 <= row[name].low < row[name].high <= 7 for name in ("people", "judge", "both"))
    (row,) = rows_of(table_of(report, "judged_ratings"))
    assert all(-6 <= row[name].low < row[name].high <= 6 for name in ("people", "judge", "both"))


def test_the_report_answers_with_the_corrected_estimate(data):
    report = analyse(data.study, data, n_resamples=100)
    assert (
        report.summary.answer == "Hypothesis supported: Guided is rated 1.15 points higher than Brief on Helpfulness."
    )
    assert report.summary.certainty.startswith("The 95% confidence interval of the difference is ")
    assert "By the variance of the estimate, the judge is worth about" in report.summary.certainty
    assert "16 raters judged 24 items; their answers are corrected by reader, which scored" in report.summary.certainty
    assert not any("not in this report" in warning for warning in report.summary.warnings)
    tables = {table.name: table for table in report.tables()}
    (row,) = tables["judged_ratings"].rows
    cells = dict(zip([column.name for column in tables["judged_ratings"].columns], row, strict=True))
    assert (cells["first"], cells["second"]) == ("Guided", "Brief"), "as the sentences have it"
    assert cells["judge"].value > cells["both"].value > 0  # the judge likes guided responses too much
    assert cells["both"].low - 0.5 < 1.0 < cells["both"].high
    assert cells["narrower"] > 0.2
    assert cells["worth"].value > 1.5 * cells["n"]
    assert cells["worth"].low < cells["worth"].value < cells["worth"].high
    assert math.isnan(cells["judge"].p_value)
    assert {row[1] for row in tables["judged_ratings_systems"].rows} == {"Brief", "Guided"}
    assert report.summary.figure is not None
    assert report.summary.figure.name == "judged"
    assert report.summary.verdicts[0].result == "supported"
    alone = next(section for section in report.sections if section.title == "The same comparisons by raters alone")
    assert alone.paragraphs[-1].startswith("These are the tests of a study without judges.")


def test_the_verdict_is_that_of_the_corrected_test(data):
    options, comparison = Options.declared(data.study), primary_comparison(data.study)
    family = deciding_family(data.study, comparison)
    (test,) = family.primary_tests(data, comparison, options).values()
    (corrected,) = judged_criteria(data, options)[0].pairs.values()
    assert (test.value, test.low, test.p_value) == (corrected.both.value, corrected.both.low, corrected.both.p_value)


def test_repeated_sessions_of_a_judge_are_one_judge(data):
    """The same judgments twice over, as of a second session: nothing gets more certain."""
    twice = replace(
        data, by_models=pl.concat([data.by_models, data.by_models.with_columns(pl.lit("again").alias("session"))])
    )
    options = Options.declared(data.study)
    (once,), (again,) = (judged_criteria(part, options)[0].pairs.values() for part in (data, twice))
    assert once == again


def test_without_its_judge_the_report_is_that_of_raters_alone(data):
    silent = replace(data, by_models=data.by_models.clear())
    report = analyse(data.study, silent, n_resamples=100)
    assert any("reader, of which no judgments are stored" in warning for warning in report.summary.warnings)
    (corrected,) = judged_criteria(silent, Options.declared(data.study))[0].pairs.values()
    assert corrected.both.value == corrected.people.value
    assert "adds nothing" in report.summary.certainty


def test_studies_without_declared_judges_are_left_alone():
    likert = load_study(template_folder("likert"))
    assert type(deciding_family(likert)).__name__ == "Ratings"


def test_only_the_corrected_tests_are_confirmatory(data):
    report = analyse(data.study, data, n_resamples=100)
    assert [section.name for section in report.sections if section.is_confirmatory] == ["judged"]
    assert {table.name for table in report.tables() if table.is_confirmatory} == {"hypotheses", "judged_ratings"}
    assert not any("another source" in str(row) for row in report.summary.exclusions.rows)


def test_an_evaluator_trained_here_is_warned_of_unless_it_was_cross_fitted(data):
    judges = [judge.model_copy(update={"trained_on": "this"}) for judge in data.study.spec.judges]
    study = replace(data.study, spec=data.study.spec.model_copy(update={"judges": judges}))
    told = analyse(study, replace(data, study=study), n_resamples=100)
    assert any("not cross-fitted" in warning for warning in told.summary.warnings)
    name = data.answers.filter((pl.col("part") == "model") & (pl.col("question") == "name"))
    folds = name.with_columns(pl.lit("folds").alias("question"), pl.lit("5").alias("text"), pl.lit(5.0).alias("value"))
    fitted = replace(data, study=study, answers=pl.concat([data.answers, folds.select(data.answers.columns)]))
    report = analyse(study, fitted, n_resamples=100)
    assert not any("cross-fitted" in warning for warning in report.summary.warnings)
    section = next(section for section in report.sections if section.name == "judged")
    assert any("in 5 folds" in paragraph for paragraph in section.paragraphs)


def test_simulated_judges_choose_in_both_orders(tmp_path):
    """One session for each order, one judge in the analysis; with a preference for places, some choices flip."""
    base = load_study(template_folder("acute"))
    judge = Judge(name="quick", kind="scores", simulated=SimulatedJudge(first_place=1.0))
    study = replace(base, spec=base.spec.model_copy(update={"judges": [judge]}))
    with Store.open(tmp_path / "study.db") as store:
        truth = draw_truth(study, SEED)
        [n] = simulate_judges(study, store, truth, seed=SEED, at_ms=START_MS).values()
        assert simulate_judges(study, store, truth, seed=SEED, at_ms=START_MS) == {}
        assert len(store.sessions.all(source="model")) == 2
        found = load_data(study, store, sources=("model",)).judgments
    assert set(found["rater"]) == {"quick"}
    assert len(found) == n / 2
    assert 0 < (found["choice"] == "tie").sum() < len(found)
