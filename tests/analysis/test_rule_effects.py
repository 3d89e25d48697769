"""The effect of each rule: both sides computed again by hand from what the database holds."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import load_data
from dialometer.analysis.base.family import Options
from dialometer.analysis.families.common.rules import NAME, results, rules_section
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.model.report import Table
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

START_MS = 1_800_000_000_000
OPTIONS = Options(confidence=0.95, n_resamples=100, seed=3, correction="holm")


def collect(study, path, n_raters=30, careless=0.4):
    store = Store.open(path)
    habits = Habits(careless_share=careless)
    truth = draw_truth(study, 1)
    simulate(
        study, EngineAccess(Flow(study, store)), truth, n_raters=n_raters, seed=3, start_ms=START_MS, habits=habits
    )
    return store


@pytest.fixture
def no_answer(monkeypatch):
    """As in a study that no comparison decides: there the results with and without each rule are shown."""
    monkeypatch.setattr("dialometer.analysis.families.common.rules.is_decided", lambda study: False)


def section_of(report):
    return next(section for section in report.sections if section.name == NAME)


def table_of(report, name):
    return next(part for part in section_of(report).parts if isinstance(part, Table) and part.name == name)


@pytest.fixture
def avatar(template, tmp_path):
    study = template("avatar")
    with collect(study, tmp_path / "avatar.db") as store:
        yield study, store


def by_hand(store, system, ids, *, with_excluded):
    sessions = {s.id: s for s in store.sessions.all()}
    values = {}
    for judgment in store.records.judgments():
        session = sessions[judgment.session_id]
        if judgment.system == system and (with_excluded or not session.is_excluded) and not judgment.is_practice:
            values.setdefault(session.id, []).append(judgment.value)
    return values


def test_the_avatar_rule_is_shown_with_and_without(avatar, no_answer):
    study, store = avatar
    excluded = {s.id for s in store.sessions.all() if s.is_excluded}
    assert 2 <= len(excluded) < 30
    report = analyse(study, store, n_resamples=100)
    counts = {row[0]: row for row in table_of(report, "rule_counts").rows}
    n_lost = sum(not j.is_practice for j in store.records.judgments() if j.session_id in excluded)
    assert counts["gold"][1:] == ("excludes", len(excluded), n_lost)
    for rule, _, _criterion, label, kept, given in table_of(report, NAME).rows:
        assert rule == "gold"
        system = next((s.name for s in study.spec.systems if (s.label or s.name) == label), "")
        for estimate, with_excluded in ((kept, False), (given, True)):
            answers = by_hand(store, system, study, with_excluded=with_excluded)
            assert estimate.value == pytest.approx(np.mean([v for own in answers.values() for v in own]))
            assert estimate.n == sum(map(len, answers.values()))
            assert estimate.low < estimate.value < estimate.high


def test_a_rule_that_flags_shows_what_excluding_would_give(template, tmp_path, no_answer):
    study = template("strategies", ("at_least_s: 180, action: exclude", "at_least_s: 480, action: flag"))
    with collect(study, tmp_path / "s.db", careless=0.0) as store:
        flagged = {logged.session_id for logged in store.records.findings()}
        assert 2 <= len(flagged) < 29
        report = analyse(study, store, n_resamples=100)
        rows = table_of(report, NAME).rows
        assert all(row[1] == "only flags" for row in rows)
        criterion = study.spec.criteria[0]
        chosen = [
            (j.session_id, j.value == "experimental")
            for j in store.records.judgments()
            if j.criterion == criterion.name and not j.is_practice
        ]
        row = next(r for r in rows if r[2] == (criterion.label or criterion.name) and r[3].startswith("Experimental"))
        assert row[5].value == pytest.approx(np.mean([x for _, x in chosen]))
        assert row[4].value == pytest.approx(np.mean([x for session, x in chosen if session not in flagged]))


def methods_of(report):
    return [method.what for method in report.methods]


def test_rules_of_one_name_are_counted_each_and_raters_once(template, quick, no_answer):
    study = template("likert")
    data = quick(study, n_raters=8)
    names = sorted(data.judgments["rater"].unique())[:3]
    told = [(names[0], "gold"), (names[1], "gold"), (names[1], "attention"), (names[2], "gold")]
    findings = pl.DataFrame([(*one, "exclude", "") for one in told], schema=data.findings.schema, orient="row")
    section = rules_section(replace(data, findings=findings), OPTIONS)
    assert section.paragraphs[0].startswith("The study has 6 rules about raters, which together applied to 3 raters.")
    rows = {row[0]: row[2] for row in section.parts[0].rows}
    assert rows["gold (2 rules)"] == 3
    assert rows["attention"] == 1


def test_judgments_of_a_rule_are_those_of_its_raters_without_gold_items(template, quick, no_answer):
    """A rater whom two rules exclude is counted with both; gold items are in no result, with the rule or without it."""
    study = template("likert")
    data = quick(study, n_raters=8)
    gold = pl.col("item").is_in(sorted(study.gold_ids))
    gold_rows = data.judgments.head(6).with_columns(pl.lit(sorted(study.gold_ids)[0]).alias("item"))
    data = replace(data, judgments=pl.concat([data.judgments.filter(~gold), gold_rows]))
    rater = data.judgments["rater"][0]
    n_own = len(data.judgments.filter((pl.col("rater") == rater) & ~gold))
    told = [(rater, rule, "exclude", "") for rule in ("gold", "attention")]
    findings = pl.DataFrame(told, schema=data.findings.schema, orient="row")
    kept, lost = (data.judgments.filter(side) for side in (pl.col("rater") != rater, pl.col("rater") == rater))
    out = replace(data, findings=findings, judgments=kept, set_aside=lost)
    table = rules_section(out, OPTIONS).parts[0]
    rows = {row[0]: row[2:] for row in table.rows}
    assert rows["gold (2 rules)"] == rows["attention"] == (1, n_own)
    assert table.caption == "Judgments on gold items are not counted here."  # those of excluded raters are elsewhere
    alone = rules_section(replace(out, findings=findings.head(1)), OPTIONS).parts[1]
    assert all(row[4].n + 10 == row[5].n for row in alone.rows)


def test_what_may_change_the_answer_is_said_as_it_is(template, quick):
    data = quick(template("likert"), n_raters=8)
    names = sorted(data.judgments["rater"].unique())

    def words(*told, n_out=0):
        out = pl.col("rater").is_in(names[:n_out])
        made = pl.DataFrame([(*one, "") for one in told], schema=data.findings.schema, orient="row")
        kept, lost = data.judgments.filter(~out), data.judgments.filter(out)
        return rules_section(replace(data, findings=made, judgments=kept, set_aside=lost), OPTIONS).paragraphs[1]

    nobody = "No judgment was excluded or flagged by a rule, so the answer cannot change."
    assert words() == nobody
    assert words(("R0099", "comprehension", "screen_out")) == nobody
    flag, exclude = (names[4], "session_time", "flag"), (names[0], "gold", "exclude")
    assert words(flag).startswith("Whether the answer changes if the flagged raters are excluded is shown under")
    assert words(exclude, n_out=1).startswith(
        "Whether the answer changes without the rules that exclude raters is shown"
    )
    assert "without the rules that exclude raters or if the flagged raters are excluded is" in words(
        flag, exclude, n_out=1
    )


def test_the_method_of_rules_is_named_only_where_it_is_used(avatar, monkeypatch):
    study, store = avatar
    what = "Results with and without a quality rule"
    assert what not in methods_of(analyse(study, store, n_resamples=100))
    monkeypatch.setattr("dialometer.analysis.families.common.rules.is_decided", lambda study: False)
    assert what in methods_of(analyse(study, store, n_resamples=100))


def test_where_a_comparison_decides_its_answer_is_shown_instead(avatar):
    study, store = avatar
    report = analyse(study, store, n_resamples=100)
    assert [part.name for part in section_of(report).parts] == ["rule_counts"]
    table = next(table for table in report.tables() if table.name == "sensitivity")
    assert "Exclusions: nobody excluded" in [row[0] for row in table.rows]


def test_equal_raters_give_the_t_test_on_their_means(template, tmp_path):
    """``scipy.stats.t.interval`` on rater means, the closed form of CR2 when all answer equally often."""
    study = template("likert")
    with collect(study, tmp_path / "l.db", n_raters=12, careless=0.0) as store:
        data = load_data(study, store)
        rows = data.judgments.filter(
            (data.judgments["criterion"] == "fluency") & (data.judgments["system"] == "neural")
        )
        means = rows.group_by("rater").agg(pl.col("value").mean())["value"].to_numpy()
        assert rows.group_by("rater").len()["len"].n_unique() == 1
        low, high = stats.t.interval(0.95, len(means) - 1, np.mean(means), stats.sem(means))
        found = results(study, data.judgments, 0.95)["fluency", "neural"]
        assert (found.low, found.high) == pytest.approx((low, high))


def test_magnitudes_are_averaged_by_their_logarithms(template, tmp_path):
    study = template("anchoring", n_items=6)
    with collect(study, tmp_path / "a.db", n_raters=8, careless=0.0) as store:
        data = load_data(study, store)
        (criterion, system), found = next(
            (key, one) for key, one in results(study, data.judgments, 0.95).items() if key[1]
        )
        own = [
            j.value
            for j in store.records.judgments()
            if (j.criterion, j.system) == (criterion, system) and not j.is_practice and j.scale == "magnitude"
        ]
        if min(own) > 0:
            assert found.value == pytest.approx(stats.gmean(own))
        assert found.low < found.value < found.high
        assert math.isnan(found.p_value)


def test_best_worst_scores_add_up_to_nothing(template, tmp_path):
    study = template("best-worst")
    with collect(study, tmp_path / "b.db", n_raters=8) as store:
        found = results(study, load_data(study, store).judgments, 0.95)
        for criterion in {key[0] for key in found}:
            own = [one for key, one in found.items() if key[0] == criterion]
            assert sum(one.value * one.n for one in own) == pytest.approx(0, abs=1e-9)


def test_an_empty_study_says_so(template, tmp_path):
    study = template("avatar")
    with Store.open(tmp_path / "none.db") as store:
        Flow(study, store)
        report = analyse(study, store, n_resamples=100)
    assert NAME not in [section.name for section in report.sections]
