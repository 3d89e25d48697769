"""Signs of careless raters: the same numbers as rater by rater, and the careless ones among simulated raters are named."""

import numpy as np
import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import load_data
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import numeric_measures
from dialometer.analysis.families.common.raters import (
    choice_frame,
    correlation_frame,
    gold_frame,
    monotony_frame,
    pace_frame,
    raters_section,
)
from dialometer.design.load import load_study
from dialometer.model.report import Table
from dialometer.model.session import SessionRecord
from dialometer.quality.gold import Gold
from dialometer.simulate.rater import Habits, draw_rater
from dialometer.stats.agreement.rater_agreement import correlation_with_rest, exact_agreement_with_rest
from dialometer.stats.agreement.raters import answer_times, straight_lining
from dialometer.stats.ratings import cross
from dialometer.storage.store import Store

OPTIONS = Options(confidence=0.95, n_resamples=200, seed=3, correction="holm")


def test_correlation_with_the_rest(template, quick):
    study = template("likert")
    data = quick(study, n_raters=12)
    measures = numeric_measures(data)
    only = measures.criteria[0]
    table = cross(only.y, only.target, only.rater)
    expected = correlation_with_rest(table.ratings, [only.book.raters[code] for code in table.raters])
    one = type(measures)(study, measures.book, (only,), only, ())
    found = {row["rater"]: row for row in correlation_frame(one, 0.95).iter_rows(named=True)}
    for name, estimate in expected.items():
        assert found[name]["agreement"] == pytest.approx(estimate.value, abs=1e-9)
        assert found[name]["agreement_low"] == pytest.approx(estimate.low, abs=1e-9)
        assert found[name]["agreement_high"] == pytest.approx(estimate.high, abs=1e-9)
        assert found[name]["n_shared"] == estimate.n


def test_choices_like_the_rest(template, quick):
    data = quick(template("acute"), n_raters=14)
    criterion = data.judgments["criterion"][0]
    data = type(data)(**{**vars(data), "judgments": data.judgments.filter(pl.col("criterion") == criterion)})
    rows = data.judgments
    codes = {choice: float(place) for place, choice in enumerate(sorted(set(rows["choice"])))}
    table = cross([codes[c] for c in rows["choice"]], rows["item"].to_numpy(), rows["rater"].to_numpy())
    expected = exact_agreement_with_rest(table.ratings, list(table.raters))
    found = {row["rater"]: row for row in choice_frame(data, 0.95).iter_rows(named=True)}
    for name, estimate in expected.items():
        if estimate.is_known:
            assert found[name]["agreement"] == pytest.approx(estimate.value, abs=1e-9)
            assert found[name]["agreement_low"] == pytest.approx(estimate.low, abs=1e-9)


def test_pace_and_monotony(template, quick):
    data = quick(template("likert"), n_raters=9)
    rng = np.random.default_rng(2)
    rows = data.judgments.with_columns(pl.Series("duration_s", rng.gamma(3, 4, len(data.judgments))))
    expected = answer_times(rows["rater"].to_list(), rows["duration_s"].to_list())
    for row in pace_frame(rows).iter_rows(named=True):
        assert row["median_s"] == pytest.approx(expected[row["rater"]].median_s)
        assert row["pace_z"] == pytest.approx(expected[row["rater"]].robust_z.value)
    only = rows.filter(pl.col("criterion") == "fluency").sort("rater", "position", "side")
    lined = straight_lining(only["rater"].to_list(), only["value"].to_list())
    for row in monotony_frame(only).iter_rows(named=True):
        assert row["same_share"] == pytest.approx(lined[row["rater"]].share_at_mode.value)
        assert row["longest_run"] == lined[row["rater"]].longest_run


def test_gold_answers_are_judged_as_the_rule_does(walked):
    folder = walked("likert", 12)
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        data = load_data(study, store)
        every = pl.concat([data.judgments, data.set_aside])
        found = {row["rater"]: row for row in gold_frame(study, every).iter_rows(named=True)}
        rules = [rule for rule in study.spec.quality if isinstance(rule, Gold)]
        for session in store.sessions():
            record = SessionRecord(judgments=tuple(j for j in store.judgments(session.id) if not j.is_practice))
            has_failed = any(rule.findings(study, session, record) for rule in rules)
            row = found.get(f"R{session.ordinal:04d}")
            if row is not None:
                assert row["n_gold"] == 4
                assert (row["n_right"] < row["n_gold"]) == has_failed


def test_careless_raters_are_named(template, quick):
    study = template("anchoring")
    habits = Habits(careless_share=0.15, careless_rate=0.95)
    section = raters_section(quick(study, n_raters=40, seed=5, habits=habits), OPTIONS)
    careless = {f"R{n:04d}" for n in range(1, 41) if draw_rater(n, 5, habits).is_careless}
    table = next(part for part in section.parts if isinstance(part, Table) and part.name == "raters_to_look_at")
    assert careless
    assert careless <= {row[0] for row in table.rows}
    assert len(table.rows) <= len(careless) + 2


def test_every_report_has_its_raters(template, quick):
    for name in ("anchoring", "likert", "acute", "best-worst"):
        study = template(name)
        report = analyse(study, quick(study, n_raters=8), n_resamples=100)
        section = next(section for section in report.sections if section.name == "raters")
        assert not section.problem
        assert "8 raters" in section.paragraphs[0]


def test_a_rater_who_always_says_the_same_is_named(template, quick):
    study = template("likert")
    data = quick(study, n_raters=12)
    values = pl.when(pl.col("rater") == "R0003").then(4.0).otherwise(pl.col("value")).alias("value")
    data = type(data)(**{**vars(data), "judgments": data.judgments.with_columns(values)})
    section = raters_section(data, OPTIONS)
    table = next(part for part in section.parts if isinstance(part, Table) and part.name == "raters_to_look_at")
    reasons = {row[0]: row[-1] for row in table.rows}
    assert "100% of the answers are the same" in reasons["R0003"]
    report = analyse(study, data, n_resamples=100)
    told = next(section for section in report.sections if section.name == "distribution").paragraphs
    assert any("always the same number by R0003" in paragraph for paragraph in told)


def test_the_same_judgments_give_the_same_digits():
    """Groups come in another order in every process, as rows do here; what is computed from them must not show it."""
    rows = [
        {
            "rater": f"R{r}",
            "criterion": f"c{c}",
            "position": i,
            "side": 0,
            "value": float((i * i * (c + 2) + r) % (4 + c)),
        }
        for r in range(200)
        for c in range(3)
        for i in range(11 + r % 9)
    ]
    kinds = {"value": pl.Float64, "choice": pl.String, "answer": pl.String, "side": pl.Int32, "position": pl.Int32}
    frame = pl.DataFrame([{**row, "choice": None, "answer": ""} for row in rows], schema_overrides=kinds)
    shuffled = [frame.sample(fraction=1, shuffle=True, seed=n) for n in range(8)]
    found = {str(monotony_frame(one).sort("rater")["same_share"].to_list()) for one in shuffled}
    assert len(found) == 1
