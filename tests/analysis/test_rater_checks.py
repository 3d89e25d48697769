"""Signs of careless raters: the same numbers as rater by rater, and the careless ones among simulated raters are named."""

import itertools
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import load_data
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import numeric_measures
from dialometer.analysis.families.common.rater_signs import (
    FAR,
    choice_frame,
    correlation_frame,
    gold_frame,
    monotony_frame,
    pace_frame,
    robust_z,
)
from dialometer.analysis.families.common.raters import Raters, _why, raters_section
from dialometer.design.load import load_study
from dialometer.model.report import Table
from dialometer.model.session import SessionRecord
from dialometer.quality.gold import Gold
from dialometer.simulate.rater import Habits, draw_rater
from dialometer.stats.observations import cross
from dialometer.storage.store import Store

OPTIONS = Options(confidence=0.95, n_resamples=200, seed=3, correction="holm")


def test_correlation_with_the_rest_equals_scipy(template, quick):
    study = template("likert")
    data = quick(study, n_raters=12)
    measures = numeric_measures(data)
    only = measures.criteria[0]
    table = cross(only.y, only.target, only.rater)
    single = type(measures)(study, measures.book, (only,), only, ())
    signs = {row["rater"]: row for row in correlation_frame(single, 0.95).iter_rows(named=True)}
    for column, code in enumerate(table.raters):
        own, others = table.ratings[:, column], np.delete(table.ratings, column, axis=1)
        is_shared = ~np.isnan(own) & ~np.isnan(others).all(axis=1)
        expected = stats.pearsonr(own[is_shared], np.nanmean(others[is_shared], axis=1))
        row = signs[only.book.raters[code]]
        assert row["agreement"] == pytest.approx(expected.statistic, abs=1e-9)
        interval = expected.confidence_interval()
        assert (row["agreement_low"], row["agreement_high"]) == pytest.approx((interval.low, interval.high), abs=1e-9)
        assert row["n_shared"] == is_shared.sum()


def test_choices_like_the_rest(template, quick):
    data = quick(template("acute"), n_raters=14)
    criterion = data.judgments["criterion"][0]
    data = replace(data, judgments=data.judgments.filter(pl.col("criterion") == criterion))
    rows = data.rated
    assert len(rows) < len(data.judgments), "gold items are not in agreement"
    chosen = {(row["rater"], row["item"]): row["choice"] for row in rows.iter_rows(named=True)}
    signs = {row["rater"]: row for row in choice_frame(data, 0.95).iter_rows(named=True)}
    for name, row in signs.items():
        shares = []
        for (rater, item), choice in chosen.items():
            others = [other for (who, what), other in chosen.items() if what == item and who != name]
            if rater == name and others:
                shares.append(others.count(choice) / len(others))
        low, high = proportion_confint(sum(shares), len(shares), method="wilson")
        assert row["agreement"] == pytest.approx(np.mean(shares), abs=1e-9)
        assert (row["agreement_low"], row["agreement_high"]) == pytest.approx((low, high), abs=1e-9)
        assert row["n_shared"] == len(shares)


def test_pace_and_monotony(template, quick):
    data = quick(template("likert"), n_raters=9)
    rng = np.random.default_rng(2)
    names = data.judgments["rater"].unique().sort()
    usual = data.judgments["rater"].replace_strict(names, np.exp(rng.normal(0, 1, len(names))))
    rows = data.judgments.with_columns(pl.Series("duration_s", rng.gamma(3, 4, len(data.judgments))) * usual)
    pace = pace_frame(rows).sort("rater")
    logs = [np.median(np.log(rows.filter(pl.col("rater") == name)["duration_s"])) for name in pace["rater"]]
    expected = (logs - np.median(logs)) / stats.median_abs_deviation(logs, scale="normal")
    assert pace["median_s"].to_list() == pytest.approx(np.exp(logs))
    assert pace["pace_z"].to_list() == pytest.approx(expected, rel=1e-9)
    only = rows.filter(pl.col("criterion") == "fluency").sort("rater", "position", "side")
    for row in monotony_frame(only).iter_rows(named=True):
        given = only.filter(pl.col("rater") == row["rater"])["value"].to_list()
        assert row["same_share"] == pytest.approx(max(map(given.count, given)) / len(given))
        assert row["longest_run"] == max(len(list(run)) for _, run in itertools.groupby(given))


def test_fast_and_slow_raters_stand_out():
    rng = np.random.default_rng(1)
    pace = {f"r{k:02}": 10.0 * math.exp(rng.normal(0, 0.2)) for k in range(20)} | {"r00": 0.3, "r01": 200.0}
    rows = [(name, seconds) for name, typical in pace.items() for seconds in typical * np.exp(rng.normal(0, 0.1, 15))]
    table = pl.DataFrame(rows, schema=["rater", "duration_s"], orient="row")
    z = dict(pace_frame(table).select("rater", "pace_z").iter_rows())
    assert [name for name in sorted(z) if z[name] < -FAR] == ["r00"]
    assert [name for name in sorted(z) if z[name] > FAR] == ["r01"]


def test_times_that_say_nothing_are_left_out():
    table = pl.DataFrame({"rater": ["a", "a", "b", "b", "c"], "duration_s": [1.0, 0.0, 2.0, None, -1.0]})
    pace = {row["rater"]: row for row in pace_frame(table).iter_rows(named=True)}
    assert set(pace) == {"a", "b"}
    assert pace["a"]["median_s"] == pytest.approx(1.0)
    assert math.isnan(pace["a"]["pace_z"])  # two raters: no measure of spread
    assert np.isnan(robust_z(np.array([5.0, 5.0, 9.0]))).all()


@pytest.mark.parametrize("name", ["likert", "rubric"])
def test_gold_answers_are_judged_as_the_rule_does(walked, name):
    folder = walked(name, 12)
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        data = load_data(study, store)
        every = pl.concat([data.judgments, data.set_aside])
        found = {row["rater"]: row for row in gold_frame(study, every).iter_rows(named=True)}
        rules = [rule for rule in study.spec.quality if isinstance(rule, Gold)]
        for session in store.sessions.all():
            record = SessionRecord(judgments=tuple(j for j in store.records.judgments(session.id) if not j.is_practice))
            failed = [one.reason for rule in rules for one in rule.findings(study, session, record)]
            has_failed = bool(failed)
            assert not any("{" in reason for reason in failed), "an answer of several parts is not written out"
            row = found.get(f"R{session.ordinal:04d}")
            if row is not None:
                assert row["n_gold"] == 4
                assert (row["n_right"] < row["n_gold"]) == has_failed


def test_of_few_raters_who_are_much_alike_none_is_listed_for_agreement():
    """A distance in robust standard deviations says nothing where it lies within the interval of the rater's own agreement."""
    alike = {"agreement_z": -5.0, "n_shared": 12, "agreement": 0.80, "agreement_low": 0.39, "agreement_high": 0.95}
    assert not _why(alike, {"agreement": 0.82}, is_correlation=True)
    assert _why({**alike, "agreement_high": 0.81}, {"agreement": 0.82}, is_correlation=True) == [
        "agrees far less with the rest than other raters do"
    ]


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
    data = replace(data, judgments=data.judgments.with_columns(values))
    section = raters_section(data, OPTIONS)
    table = next(part for part in section.parts if isinstance(part, Table) and part.name == "raters_to_look_at")
    reasons = {row[0]: row[-1] for row in table.rows}
    assert "100% of the answers are the same" in reasons["R0003"]
    report = analyse(study, data, n_resamples=100)
    told = next(section for section in report.sections if section.name == "distribution").paragraphs
    assert any("always the same number by R0003" in paragraph for paragraph in told)


def answers_frame(rows):
    """A table with the columns of answers alone."""
    kinds = {"value": pl.Float64, "side": pl.Int32, "position": pl.Int32}
    kinds |= dict.fromkeys(("system", "order", "choice", "answer"), pl.String)
    empty = {"system": "", "order": "", "choice": None, "answer": "", "value": None}
    return pl.DataFrame([{**empty, **row} for row in rows], schema_overrides=kinds)


def choices_frame(chosen, orders, side=0):
    """One rater's choices on one criterion among systems in the orders shown."""
    rows = [
        {"rater": "R1", "criterion": "c", "position": n, "side": side, "choice": choice, "order": order}
        for n, (choice, order) in enumerate(zip(chosen, orders, strict=True), start=1)
    ]
    return answers_frame(rows)


def test_a_choice_counts_by_its_position_on_the_screen():
    orders = ["|".join(order) for order in itertools.permutations("abc")] * 2
    best = monotony_frame(choices_frame(["a"] * 12, orders)).row(0, named=True)
    assert (best["same_share"], best["same_system_share"]) == (pytest.approx(1 / 3), 1.0), "always the best system"
    left = monotony_frame(choices_frame([order[0] for order in orders], orders)).row(0, named=True)
    assert (left["same_share"], left["longest_run"]) == (1.0, 12), "always the first of the screen"
    ties = monotony_frame(choices_frame(["tie"] * 12, orders)).row(0, named=True)
    assert (ties["same_share"], ties["n_placed"], ties["n_between"]) == (1.0, 0, 12)
    unknown = monotony_frame(choices_frame(["a"] * 12, [""] * 12), systems={"a", "b"})
    assert not len(unknown), "nobody knows where an imported choice was shown"


def test_a_label_of_one_system_is_an_answer_and_no_position():
    rows = [
        {"rater": "R1", "criterion": "c", "position": n, "side": side, "system": "ab"[side - 1], "order": "a|b"}
        | {"choice": "fine", "answer": '"fine"'}
        for n in range(6)
        for side in (1, 2)
    ]
    found = monotony_frame(answers_frame(rows)).row(0, named=True)
    assert (found["same_share"], found["n_between"]) == (1.0, 0)


def looked_at(section):
    """Raters to look at with the reasons."""
    tables = [part for part in section.parts if isinstance(part, Table) and part.name == "raters_to_look_at"]
    return {row[0]: row[-1] for table in tables for row in table.rows}


def test_who_prefers_a_system_that_was_always_on_one_side_is_not_accused(template, quick):
    data = quick(template("pairs"), n_raters=8)
    rows, mine = data.judgments, pl.col("rater").is_in(["R0002", "R0003"])
    first, second = (system.name for system in data.study.spec.systems)
    is_second = (pl.col("rater") == "R0003") & (pl.col("position") % 2 == 0)
    order = pl.when(~mine).then("order").when(is_second).then(pl.lit(f"{second}|{first}"))
    rows = rows.with_columns(order.otherwise(pl.lit(f"{first}|{second}")).alias("order"))
    left = pl.col("order").str.split("|").list.first()
    rows = rows.with_columns(
        pl.when(mine).then(left).otherwise("choice").alias("choice"),
        pl.when(mine).then(1).otherwise("side").alias("side"),
    )
    reasons = looked_at(raters_section(replace(data, judgments=rows), OPTIONS))
    said = "100% of the choices are for the same position on the screen"
    assert said in reasons["R0003"], "the first of the screen, whichever system it is"
    assert said not in reasons.get("R0002", "")


def test_raters_of_other_pairs_are_no_others(template, quick):
    """In an arena raters see other pairs on one item: by hand, among those who saw the same two."""
    data = quick(template("arena"), n_raters=24)
    seen = {}
    for row in data.rated.iter_rows(named=True):
        key = (row["item"], row["criterion"], frozenset(row["order"].split("|")))
        seen.setdefault(key, []).append((row["rater"], row["choice"]))
    shares = {}
    for judged in seen.values():
        for rater, choice in judged:
            others = [other for who, other in judged if who != rater]
            if others:
                shares.setdefault(rater, []).append(others.count(choice) / len(others))
    found = {row["rater"]: row["agreement"] for row in choice_frame(data, 0.95).iter_rows(named=True)}
    assert found == pytest.approx({rater: np.mean(own) for rater, own in shares.items()})


def test_criteria_take_degrees_of_freedom(template, quick):
    """Fisher's interval with n - criteria - 2 in place of n - 3, as one mean is estimated for each criterion."""
    measures = numeric_measures(quick(template("likert"), n_raters=8))
    assert len(measures.criteria) == 3
    for row in correlation_frame(measures, 0.95).iter_rows(named=True):
        half = stats.norm.ppf(0.975) / math.sqrt(row["n_shared"] - 3 - 2)
        ends = np.tanh(np.arctanh(row["agreement"]) + np.array([-half, half]))
        assert (row["agreement_low"], row["agreement_high"]) == pytest.approx(tuple(ends))
    few = numeric_measures(quick(template("chat"), n_raters=20))
    two = type(few)(few.study, few.book, few.criteria[:2], few.criteria[0], ())
    table = correlation_frame(two, 0.95).filter(pl.col("agreement").is_not_nan())
    assert len(table) > 10
    assert table["n_shared"].max() == 4, "two criteria of two dialogues: no degree of freedom is left"
    assert table["agreement_low"].is_nan().all()


def test_few_answers_make_nobody_suspicious(template, quick):
    """With 15 items no correlation below .51 is significant: careful raters of equal agreement are not listed for that."""
    study = template("avatar")
    data = quick(study, n_raters=20, seed=4, habits=Habits(noise_sd=0.9))
    reasons = looked_at(raters_section(data, OPTIONS))
    assert sum("no significant agreement" in why for why in reasons.values()) <= 1


def test_small_differences_of_pace_are_no_reason():
    """A rater 27% faster than others who are nearly equal is not fast; one who takes less than half as long is."""
    paces = {f"r{k}": 33.0 + 0.2 * k for k in range(8)} | {"brisk": 24.1, "fast": 12.0}
    rows = [(name, seconds) for name, seconds in paces.items() for _ in range(5)]
    z = dict(
        pace_frame(pl.DataFrame(rows, schema=["rater", "duration_s"], orient="row"))
        .select("rater", "pace_z")
        .iter_rows()
    )
    assert [name for name in z if z[name] < -FAR] == ["fast"]


def test_only_what_was_checked_is_said_to_be_usual(template, quick):
    section = raters_section(quick(template("chat"), n_raters=8), OPTIONS)
    words = next(text for text in section.paragraphs if text.startswith("No rater is unusual"))
    checked, missing = words.split(" Not checked: ")
    assert "agreement" not in checked
    assert "agreement (no rater shares 10 answers with others)" in missing
    assert "gold answers (there are none)" in missing


def test_gold_answers_are_a_method_only_where_there_are_gold_items(template, quick):
    named = {}
    for name in ("likert", "chat"):
        study = template(name)
        named[name] = Raters().run(quick(study, n_raters=4), OPTIONS).methods[0].method
    assert "gold answers" in named["likert"]
    assert "gold" not in named["chat"]


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
    frame = answers_frame(rows)
    shuffled = [frame.sample(fraction=1, shuffle=True, seed=n) for n in range(8)]
    found = {str(monotony_frame(one).sort("rater")["same_share"].to_list()) for one in shuffled}
    assert len(found) == 1
