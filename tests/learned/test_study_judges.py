"""Back into the study: noisy ratings as flags, a model's scores beside people, and both in the report."""

import csv

import numpy as np
import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import load_data
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.errors import DialometerError, NotEnoughData, ReadError, StorageError
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.learned.cross_fitting import cross_fit
from dialometer.learned.data.rated import read_rated
from dialometer.learned.experiments.rating_values import Valued, lowest
from dialometer.learned.store_in_study import RULE, flag_noisy, read_scores, store_judge
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

START_MS = 1_800_000_000_000


def collected(folder, template, n_raters):
    copy_template(template, folder)
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        door = EngineAccess(Flow(study, store, clock=lambda: START_MS))
        truth = draw_truth(study, 5)
        simulate(study, door, truth, n_raters=n_raters, seed=5, start_ms=START_MS, habits=Habits())
    return folder


@pytest.fixture
def likert(tmp_path):
    return collected(tmp_path / "likert", "likert", 12)


def report_of(folder):
    with Store.open(folder / "study.db") as store:
        return analyse(load_study(folder), store, n_resamples=100)


def people_means(folder):
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        rows = load_data(study, store).of_criterion(study.spec.criteria[0].name)
    return {(item, system): float(part["value"].mean()) for (item, system), part in rows.group_by("item", "system")}


def test_two_models_and_people_stand_in_one_table(likert):
    means = people_means(likert)
    rng = np.random.default_rng(0)
    near = {key: value + 0.2 * rng.normal() for key, value in means.items()}
    far = {key: float(rng.integers(1, 6)) for key in means}
    assert store_judge(likert, "evaluator", near) == len(means)
    store_judge(likert, "LLM judge", far)
    report = report_of(likert)
    table = next(table for table in report.tables() if table.name == "judges")
    rows = {row[1]: row for row in table.rows}
    assert list(rows)[:3] == ["One rater", "evaluator", "LLM judge"]
    rho = {who: row[-2] for who, row in rows.items()}
    assert rho["evaluator"].value > 0.8
    assert abs(rho["LLM judge"].value) < 0.6
    assert 0.3 < rho["One rater"].value < 1
    gold = load_study(likert).gold_ids
    assert rows["evaluator"][-1] == len([item for item, _ in means if item not in gold])
    # Models change nothing else: the judgments that count are people's.
    assert report.provenance["sources"] == "simulated"


def test_a_report_without_models_and_flags_says_nothing_of_them(likert):
    names = {section.name for section in report_of(likert).sections}
    assert not names & {"judges", "doubted_ratings"}


def test_scores_off_the_scale_keep_their_order_only(likert):
    means = people_means(likert)
    store_judge(likert, "log odds", {key: 1000 + value for key, value in means.items()})
    study = load_study(likert)
    with Store.open(likert / "study.db") as store:
        stored = load_data(study, store).by_models
    assert set(stored["value"]) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    laid = stored["value"].to_numpy()
    order = [means[row["item"], row["system"]] for row in stored.iter_rows(named=True)]
    assert np.corrcoef(laid, order)[0, 1] > 0.8


def test_the_same_scores_are_refused_a_second_time(likert):
    scores = dict(people_means(likert))
    store_judge(likert, "evaluator", scores)
    with pytest.raises(StorageError, match="imported before"):
        store_judge(likert, "evaluator", scores)


def test_scores_of_unknown_things_are_refused(likert):
    with pytest.raises(DialometerError, match="of nothing that can be judged"):
        store_judge(likert, "evaluator", {("nowhere", ""): 3.0})
    with pytest.raises(DialometerError, match="no criterion 'charm'"):
        store_judge(likert, "evaluator", {("nowhere", ""): 3.0}, criterion="charm")


def test_score_files_are_checked_line_by_line(tmp_path):
    file = tmp_path / "scores.csv"
    with file.open("w", newline="") as out:
        csv.writer(out).writerows([["id", "score"], ["a", "1.5"], ["a", "2"], ["b", "much"]])
    with pytest.raises(ReadError, match=r"scores\.csv:3: a second score.*\n.*scores\.csv:4: a row needs"):
        read_scores(file)
    file.write_text("item,system,score\nx,alpha,2\n")
    assert read_scores(file) == ({("x", "alpha"): 2.0}, 0)
    file.write_text("id,score,deviation\nx,2,\nmute,,\n")
    assert read_scores(file) == ({("x", ""): 2.0}, 1)
    file.write_text("id,score\n")
    with pytest.raises(NotEnoughData, match="no scores"):
        read_scores(file)


def test_noisy_ratings_come_back_as_flags_in_the_report(tmp_path):
    folder = collected(tmp_path / "chat", "chat", 10)
    rated = read_rated(folder)
    n = len(rated)
    rng = np.random.default_rng(0)
    valued = Valued(rng.normal(size=n), np.full(n, 3.0), np.array([[(row + 1) % n] for row in range(n)]), False)
    noisy = lowest(rated, valued, 3)
    assert flag_noisy(folder, noisy, at_ms=START_MS) == 3
    assert flag_noisy(folder, noisy, at_ms=START_MS) == 0
    with Store.open(folder / "study.db") as store:
        flagged = [logged for logged in store.records.findings() if logged.finding.rule == RULE]
        assert not any(session.is_excluded for session in store.sessions.all())
    assert {logged.finding.action for logged in flagged} == {"flag"}
    assert {logged.finding.details["judgment"] for logged in flagged} == {
        one.rated.dialogue.metadata["judgment"] for one in noisy
    }
    report = report_of(folder)
    table = next(table for table in report.tables() if table.name == "doubted_ratings")
    assert {(row[0], row[1]) for row in table.rows} == {
        (one.rated.user, one.rated.dialogue.metadata["item"]) for one in noisy
    }


def test_a_model_that_took_part_twice_is_one_model(likert):
    means = people_means(likert)
    store_judge(likert, "evaluator", {key: value + 0.1 for key, value in means.items()})
    store_judge(likert, "evaluator", {key: -value for key, value in means.items()})
    table = next(table for table in report_of(likert).tables() if table.name == "judges")
    assert [row[1] for row in table.rows] == ["One rater", "evaluator"]


def test_an_evaluator_of_the_studys_own_ratings_is_cross_fitted_and_stored(tmp_path):
    """Longer responses are rated higher, and the evaluator sees how long they are."""
    folder = collected(tmp_path / "judged", "judged", 16)
    with Store.open(folder / "study.db") as store:
        n_ratings = sum(not one.is_practice for one in store.records.judgments())
    fit = cross_fit(folder, n_folds=3, aspects=("behaviour",))
    assert (fit.n_ratings, fit.n_rated, fit.n_folds) == (n_ratings, 48, 3)
    assert set(fit.scores) == {(item.id, system) for item in load_study(folder).rated_items for system in item.systems}
    assert all(1 <= score <= 7 for score in fit.scores.values())
    assert fit.correlation > 0.2
    assert store_judge(folder, "evaluator", fit.scores, criterion=fit.criterion, n_folds=fit.n_folds) == 192
    with Store.open(folder / "study.db") as store:
        data = load_data(load_study(folder), store)
        assert {(a.question, a.value) for a in store.records.answers() if a.part == "model"} == {
            ("name", "evaluator"),
            ("folds", 3),
        }
    stored = dict(zip(data.by_models.select("item", "system").iter_rows(), data.by_models["value"], strict=True))
    assert stored == pytest.approx(fit.scores), (
        "expected ratings lie between the points of the scale, and stay as they are"
    )


def test_studies_without_texts_to_learn_from_are_refused(tmp_path):
    folder = collected(tmp_path / "chat", "chat", 2)
    with pytest.raises(DialometerError, match="whole dialogues or of responses only"):
        cross_fit(folder)
