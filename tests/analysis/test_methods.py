"""Transcripts beside a wizard: the same strategies by two methods, with simulated raters in both."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import yaml

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import load_data
from dialometer.analysis.base.family import Options
from dialometer.analysis.families.common.methods import compare_methods, method_result
from dialometer.analysis.families.conversations.self_ratings import ConversationRatings
from dialometer.design.load import check_study, load_study
from dialometer.design.templates import copy_template
from dialometer.errors import FlowError, NotEnoughData
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.model.report import Table
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

OPTIONS = Options(confidence=0.95, n_resamples=100, seed=1, correction="holm")
START_MS = 1_800_000_000_000


def collected(folder, template, n_raters):
    copy_template(template, folder)
    study = load_study(folder)
    store = Store.open(folder / "study.db")
    flow = Flow(study, store, clock=lambda: START_MS)
    truth = draw_truth(study, 1, spread=0.8)
    habits = Habits(careless_share=0)
    simulate(study, EngineAccess(flow), truth, n_raters=n_raters, seed=1, start_ms=START_MS, habits=habits)
    return study, store


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The data of a study of transcripts and of one with a wizard."""
    folder = tmp_path_factory.mktemp("methods")
    loaded = []
    for template, n_raters in (("strategies", 8), ("wizard", 4)):
        study, store = collected(folder / template, template, n_raters)
        with store:
            loaded.append(load_data(study, store))
    return loaded


def tables(report):
    return {part.name: part for section in report.sections for part in section.parts if isinstance(part, Table)}


def test_one_report_compares_results_minutes_and_cost(both):
    report = compare_methods(both, OPTIONS)
    assert "of one person with transcript pairs and" in report.summary.answer
    assert "of two people with Wizard of Oz" in report.summary.answer
    assert "simulated" in report.summary.warnings[0]
    rows = tables(report)["methods"].rows
    assert [row[0] for row in rows] == ["empathy", "formality", "facing", "vocabulary", "alignment"]
    for _, transcripts, wizard, gap, _ in rows:
        assert gap.value == pytest.approx(transcripts.value - wizard.value)
    effort = {row[0]: row for row in tables(report)["effort"].rows}
    assert effort["Wizard of Oz"][3] == 2
    assert effort["Wizard of Oz"][2].value > 2 * effort["Transcript pairs"][2].value
    assert effort["Transcript pairs"][6] == "1.60 USD"


def test_preferences_in_conversations_are_counted_by_hand(both):
    wizard = both[1]
    rows = wizard.judgments.select("rater", "item", "criterion", "value")
    wide = rows.pivot(on="item", index=["rater", "criterion"], values="value")
    gap = (wide["empathy-experimental"] - wide["empathy-control"]).to_numpy()
    found = method_result(wizard, OPTIONS).preference("empathy", 0.95)
    assert found.value == pytest.approx(np.sum(gap > 0) / np.sum(gap != 0))


def test_the_wizard_is_paid_as_told(both):
    cheap, dear = (
        float(tables(compare_methods(both, OPTIONS, helper_pay_per_hour=pay))["effort"].rows[1][6].split()[0])
        for pay in (0, 60)
    )
    minutes = method_result(both[1], OPTIONS).minutes.value
    assert cheap == pytest.approx(6.50)
    assert dear - cheap == pytest.approx(minutes, abs=0.01)  # 60 an hour is one a minute


def test_studies_without_common_strategies_are_refused(both):
    data, spec = both[1], both[1].study.spec
    blocks = [block.model_copy(update={"name": f"other_{block.name}"}) for block in spec.design.blocks]
    design = spec.design.model_copy(update={"blocks": blocks})
    items = tuple(replace(item, block=f"other_{item.block}") for item in data.study.items)
    other = replace(data.study, spec=spec.model_copy(update={"design": design}), items=items)
    with pytest.raises(NotEnoughData, match="share no strategy"):
        compare_methods([both[0], replace(data, study=other)], OPTIONS)


def test_a_strategy_is_compared_with_the_control_on_its_own_task(both):
    wizard = both[1]
    comparison = next(one for one in wizard.study.spec.analysis.comparisons if one.name == "facing")
    tests = ConversationRatings().primary_tests(wizard, comparison, OPTIONS)
    ease = next(test for name, test in tests.items() if name.startswith("Ease"))
    means = wizard.judgments.filter(pl.col("criterion") == "ease").group_by("item").agg(pl.col("value").mean())
    by_item = dict(means.iter_rows())
    assert abs(ease.value) == pytest.approx(abs(by_item["facing-experimental"] - by_item["facing-control"]))


def test_the_wizards_report_has_satisfaction_and_no_holes(both):
    report = analyse(both[1].study, both[1], n_resamples=100)
    people = next(section for section in report.sections if section.name == "people")
    assert any("satisfaction with the study" in text and "of 5 on average" in text for text in people.paragraphs)


def test_a_simulated_wizard_without_suggestions_says_so(tmp_path):
    copy_template("wizard", tmp_path / "w")
    file = tmp_path / "w" / "study.yaml"
    spec = yaml.safe_load(file.read_text())
    for system in spec["systems"]:
        system["agent"] = {"type": "wizard"}
    file.write_text(yaml.safe_dump(spec))
    study = load_study(tmp_path / "w")
    with Store.open(tmp_path / "w.db") as store, pytest.raises(FlowError, match="a simulated wizard only sends"):
        access = EngineAccess(Flow(study, store))
        simulate(study, access, draw_truth(study, 1), n_raters=1, seed=1, start_ms=START_MS)


def test_ready_questions_are_written_out_and_unknown_ones_named(tmp_path):
    copy_template("strategies", tmp_path / "s")
    asked = {question.name: question for question in load_study(tmp_path / "s").spec.post_questionnaire}
    assert asked["contributor_satisfaction"].scale == "contributor_satisfaction"
    file = tmp_path / "s" / "study.yaml"
    file.write_text(file.read_text().replace("- contributor_satisfaction", "- contributor_satisfied"))
    study, problems = check_study(tmp_path / "s")
    assert study is None
    assert "no ready question 'contributor_satisfied'" in problems[0].message
    assert "contributor_satisfaction" in problems[0].remedy
    assert problems[0].line > 100
