"""Judges beside people: one verdict for each judge and thing, the page on trust, and reports about judges alone."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.judge_verdicts import one_verdict_each
from dialometer.analysis.families.judges import fit
from dialometer.analysis.families.judges.biases import family_of, own_systems, self_preference, style_bias
from dialometer.analysis.families.judges.compared import Compared, compared_criteria
from dialometer.analysis.families.judges.ensembles import DAWID_SKENE, MAJORITY, with_ensembles
from dialometer.analysis.families.judges.fit import calibration, fits, group_fits
from dialometer.analysis.families.judges.position import position_bias
from dialometer.analysis.families.judges.trust import CriterionTrust, _missing_words, trust_section
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.model.item import ResponsesItem
from dialometer.scales import SCALES
from judged_data import judged_data

OPTIONS = Options(confidence=0.95, n_resamples=200, seed=1, correction="holm")
LONG, SHORT = "gpt-long", "short"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Forty prompts with a long and a short response, chosen between."""
    folder = tmp_path_factory.mktemp("judges") / "study"
    copy_template("acute", folder)
    study = load_study(folder)
    items = tuple(
        ResponsesItem(
            id=f"i{n:02d}",
            context=(),
            responses={LONG: "word " * 40, SHORT: "word " * 10},
            metadata={"topic": "art" if n % 2 else "law"},
        )
        for n in range(40)
    )
    systems = [study.spec.systems[0].model_copy(update={"name": name, "label": name}) for name in (LONG, SHORT)]
    return replace(study, items=items, spec=study.spec.model_copy(update={"systems": systems, "quality": []}))


def choices(study, answers, source="person"):
    """Columns of judgments from (rater, item, choice, order)."""
    criterion = next(
        c.name for c in study.spec.criteria if study.scale_for(c, study.spec.presentation).choice_form == "one"
    )
    scale = study.scale_for(study.criteria_by_name[criterion], study.spec.presentation).type
    n = len(answers)
    rater, item, choice, order = zip(*answers, strict=True)
    sides = [o.split("|").index(c) + 1 if c in o.split("|") else 0 for c, o in zip(choice, order, strict=True)]
    return {
        "rater": rater, "session": rater, "item": item, "choice": choice, "order": order, "side": sides,
        "criterion": [criterion] * n, "scale": [scale] * n, "block": ["main"] * n, "source": [source] * n,
        "system": [""] * n,
    }  # fmt: skip


def data_of(study, people, calls, kept=()):
    data = judged_data(study, choices(study, people))
    rows = judged_data(study, choices(study, calls, "model")).judgments
    return replace(data, calls=rows, by_models=one_verdict_each(rows, kept=kept))


def two_orders(judge, item, first_order, second_order):
    return [(judge, item, first_order, f"{LONG}|{SHORT}"), (judge, item, second_order, f"{SHORT}|{LONG}")]


@pytest.fixture(scope="module")
def crowd(study):
    """Four raters who mostly see the same; a fair judge that sees it too, one that takes places, and one that loves length."""
    rng = np.random.default_rng(3)
    better = rng.choice([LONG, SHORT], 40)
    other = {LONG: SHORT, SHORT: LONG}
    people, calls = [], []
    for n, best in enumerate(better):
        for rater in "abcd":
            people.append((rater, f"i{n:02d}", best if rng.random() < 0.85 else other[best], f"{LONG}|{SHORT}"))
        says = best if rng.random() < 0.95 else other[best]
        calls += two_orders("fair", f"i{n:02d}", says, says)
        calls += two_orders("places", f"i{n:02d}", LONG, SHORT)
        calls += two_orders("gpt-4", f"i{n:02d}", LONG, LONG)
    return data_of(study, people, calls)


def test_a_judge_has_one_verdict_on_each_thing(study):
    calls = [
        *two_orders("m", "i00", LONG, LONG),
        *two_orders("m", "i01", LONG, SHORT),
        *[("m", "i02", choice, f"{LONG}|{SHORT}") for choice in (LONG, LONG, SHORT)],
        *[("m", "i03", choice, f"{LONG}|{SHORT}") for choice in (LONG, SHORT)],
    ]
    rows = judged_data(study, choices(study, calls, "model")).judgments
    verdicts = dict(one_verdict_each(rows).select("item", "choice").iter_rows())
    assert verdicts == {"i00": LONG, "i01": "tie", "i02": LONG, "i03": "tie"}
    kept = one_verdict_each(rows, kept=["m"]).filter(pl.col("item") == "i01")
    assert sorted(kept["choice"].to_list()) == sorted([LONG, SHORT])
    numbers = rows.with_columns(
        pl.lit(None, dtype=pl.String).alias("choice"), pl.col("side").cast(float).alias("value")
    )
    assert one_verdict_each(numbers).filter(pl.col("item") == "i01")["value"].to_list() == [1.0]
    assert one_verdict_each(rows.clear()).is_empty()


def test_an_item_with_several_pairs_has_a_verdict_on_each(study):
    calls = [("m", "i00", "a", "a|b"), ("m", "i00", "a", "b|a"), ("m", "i00", "c", "b|c"), ("m", "i00", "c", "c|b")]
    rows = judged_data(study, choices(study, calls, "model")).judgments
    assert sorted(one_verdict_each(rows)["choice"].to_list()) == ["a", "c"]


def test_the_page_says_who_can_be_trusted(crowd):
    section = trust_section(crowd, OPTIONS)
    by_judge = {text.split()[0]: text for text in section.paragraphs[:3]}
    assert "is as good as a human rater" in by_judge["fair"]
    assert "is worse than a human rater" in by_judge["places"]
    assert "is not shown to be as good as a human rater" in by_judge["gpt-4"]
    assert "prefers a position on the screen" not in by_judge["fair"]
    test = next(part for part in section.parts if part.name == "judges_test")
    verdicts = {row[1]: row[-1] for row in test.rows}
    assert (verdicts["fair"], verdicts["gpt-4"]) == ("as good as a rater", "not shown")
    assert {row[5] for row in test.rows} == {4}, "four raters with forty items are tested one by one"
    assert "wins at most 10 percentage points less often" in test.caption
    assert "with fewer than 3 such raters" in test.caption
    assert next(column for column in test.columns if column.name == "difference").unit == "percentage points"


def test_biases_are_found_where_they_are(crowd):
    positions = {row.judge: row for row in position_bias(crowd, OPTIONS)}
    assert positions["fair"].consistent.value == 1
    assert positions["places"].consistent.value == 0
    assert positions["places"].first.value == 1
    assert positions["places"].flips_to_first.value == 1
    assert positions["gpt-4"].first.value == 0.5
    [compared] = compared_criteria(crowd)
    length = {sway.judge: sway for sway in style_bias(crowd, compared, OPTIONS)}
    assert length["gpt-4"].of_judge.value == 1
    assert length["gpt-4"].is_found
    assert not length["fair"].is_found
    [own] = self_preference(crowd, compared, OPTIONS)
    assert (own.judge, own.is_found, own.difference.value > 0.3) == ("gpt-4", True, True)


def test_families_of_models_are_known_by_their_names(study):
    assert [family_of(name) for name in ("GPT-4o", "meta/Llama-3", "my-judge")] == ["gpt", "llama", ""]
    assert own_systems(study, "gpt-4") == {LONG}
    assert own_systems(study, "fair") == set()


def test_where_judges_agree_and_how_certain_they_are(crowd):
    [compared] = compared_criteria(crowd)
    groups = {(g.judge, g.by, g.group): g for g in group_fits(crowd, compared, OPTIONS)}
    assert groups["fair", "topic", "law"].n == 20
    easy, hard = groups["fair", "difficulty", "all raters agree"], groups["fair", "difficulty", "most agree"]
    assert easy.of_judge.value > hard.of_judge.value
    assert not easy.of_rater.is_known, "raters who all agree are what made the group"
    assert groups["fair", "topic", "law"].of_rater.is_known
    certain = {(row.judge, row.answer): row for row in calibration(crowd, compared, OPTIONS)}
    assert certain["fair", "the same answer each time"].people.value > 0.9
    assert certain["places", "answers that changed"].people.value == 0


def test_judges_together_learn_from_people_whom_to_believe(crowd):
    [compared] = compared_criteria(crowd)
    both = with_ensembles(compared, 1)
    majority = compared.majority
    right = {
        name: np.nanmean(own[~np.isnan(majority)] == majority[~np.isnan(majority)]) for name, own in both.judges.items()
    }
    assert right[DAWID_SKENE] > 0.9
    assert right[MAJORITY] < right[DAWID_SKENE], "two of three judges are useless"


def test_a_judge_who_guesses_between_many_systems_agrees_with_nobody(study):
    """Four systems in pairs: half of the guesses are right, which is no agreement, although one of four names would be a quarter."""
    rng, names = np.random.default_rng(5), "wxyz"
    pairs = [(names[k % 4], names[(k + 1 + k // 4 % 3) % 4]) for k in range(120)]
    items = tuple(
        ResponsesItem(id=f"i{n}", context=(), responses=dict.fromkeys(pair, "t")) for n, pair in enumerate(pairs)
    )
    systems = [study.spec.systems[0].model_copy(update={"name": name, "label": name}) for name in names]
    many = replace(study, items=items, spec=study.spec.model_copy(update={"systems": systems}))
    shown = ["|".join(pair) for pair in pairs]
    people = [(r, f"i{n}", rng.choice(pair), shown[n]) for n, pair in enumerate(pairs) for r in "ab"]
    calls = [("m", f"i{n}", rng.choice(pair), shown[n]) for n, pair in enumerate(pairs)]
    [compared] = compared_criteria(data_of(many, people, calls))
    found = CriterionTrust(compared, OPTIONS).agreement["m"]
    assert 0.35 < found["agreement"].judge.value < 0.65
    assert all(abs(found[name].judge.value) < 0.2 for name in ("kappa", "alpha"))


def test_rankings_are_choices_between_every_two(study):
    """Two raters and a judge that ranks as they do in one order, and the other way round in the other on the second item."""
    names = ("x", "y", "z")
    items = tuple(ResponsesItem(id=f"i{n}", context=(), responses=dict.fromkeys(names, "word")) for n in range(2))
    ranking = SCALES.get("ranking")(type="ranking")
    criterion = study.spec.criteria[0].model_copy(update={"scale": "order"})
    systems = [study.spec.systems[0].model_copy(update={"name": name, "label": name}) for name in names]
    spec = study.spec.model_copy(update={"criteria": [criterion], "scales": {"order": ranking}, "systems": systems})
    ranked = replace(study, spec=spec, items=items)

    def frame(rows, source):
        rater, item, order, answer = map(list, zip(*rows, strict=True))
        columns = {
            "rater": rater, "item": item, "order": order, "answer": [json.dumps(list(one)) for one in answer],
            "criterion": [criterion.name] * len(rows), "scale": ["ranking"] * len(rows), "system": [""] * len(rows),
            "source": [source] * len(rows), "block": ["main"] * len(rows), "choice": [one[0] for one in answer],
        }  # fmt: skip
        return judged_data(ranked, columns)

    people = [(rater, item, "x|y|z", "xyz") for rater in "ab" for item in ("i0", "i1")]
    calls = [
        ("m", "i0", "x|y|z", "xyz"),
        ("m", "i0", "z|y|x", "xzy"),
        ("m", "i1", "x|y|z", "xyz"),
        ("m", "i1", "z|y|x", "zyx"),
    ]
    models = frame(calls, "model").judgments
    data = replace(frame(people, "person"), calls=models, by_models=one_verdict_each(models))
    [compared] = compared_criteria(data)
    assert compared.is_choice
    verdicts = {
        (item, pair): compared.labels[int(label)]
        for item, pair, label in zip(
            compared.things["item"], compared.things["pair"], compared.judges["m"], strict=True
        )
    }
    assert verdicts == {
        ("i0", "x|y"): "x", ("i0", "x|z"): "x", ("i0", "y|z"): "tie",
        ("i1", "x|y"): "tie", ("i1", "x|z"): "tie", ("i1", "y|z"): "tie",
    }  # fmt: skip
    assert {compared.labels[int(label)] for label in compared.majority} == {"x", "y"}
    alone = replace(data, judgments=data.by_models, by_models=data.by_models.clear(), sources=("model",))
    table = next(t for t in analyse(ranked, alone, n_resamples=100).tables() if t.name.startswith("judge_verdicts_"))
    assert {row[0]: row[1].value for row in table.rows} == {"x": 0.75, "y": 0.375, "z": 0.375}


def test_a_report_about_judges_pools_nothing_over_calls(crowd, study):
    data = replace(crowd, judgments=crowd.by_models, by_models=crowd.by_models.clear(), sources=("model",))
    report = analyse(study, data, n_resamples=100)
    assert report.summary.answer.startswith("3 judges (fair, gpt-4 and places) judged 40 items.")
    table = next(table for table in report.tables() if table.name.startswith("judge_verdicts_"))
    assert [column.label for column in table.columns[1:]] == ["fair", "gpt-4", "places"]
    assert all(cell.n == 40 for row in table.rows for cell in row[1:]), "each item counts once"
    assert not any("rater" in section.title.lower() for section in report.sections)


def test_items_of_one_prompt_count_once_in_what_a_judge_says(crowd, study):
    of_prompts = replace(
        study, items=tuple(replace(item, metadata={"prompt": n // 4}) for n, item in enumerate(study.items))
    )
    data = replace(crowd, study=of_prompts)
    alone = replace(data, judgments=data.by_models, by_models=data.by_models.clear(), sources=("model",))
    report = analyse(of_prompts, alone, n_resamples=100)
    assert "judged 40 items of 10 prompts." in report.summary.answer
    table = next(table for table in report.tables() if table.name.startswith("judge_verdicts_"))
    assert all(cell.n == 10 for row in table.rows for cell in row[1:])
    (compared,) = compared_criteria(data)
    assert compared.things["drawn"].n_unique() == 10


def test_the_published_judge_in_both_orders(study):
    """Auto-J (Li et al., ICLR 2024) on its authors' pairs: both orders agree in 83.4 %, and both with people in 55.0 %."""
    path = Path(os.environ.get("DIALOMETER_DATA", "missing")) / "judged_pairs" / "autoj.jsonl.gz"
    if not path.exists():
        pytest.skip("DIALOMETER_DATA names no folder with judged_pairs/autoj.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as opened:
        rows = [json.loads(line) for line in opened]
    names = {"first": LONG, "second": SHORT, "tie": "tie"}
    items = tuple(
        ResponsesItem(id=row["id"], context=(), responses={LONG: row["first"], SHORT: row["second"]}) for row in rows
    )
    people = [("people", row["id"], names[row["human"]], f"{LONG}|{SHORT}") for row in rows]
    calls = [
        ("auto-j", row["id"], names[row[key]], order)
        for row in rows
        for key, order in (("judge", f"{LONG}|{SHORT}"), ("judge_exchanged", f"{SHORT}|{LONG}"))
    ]
    data = data_of(replace(study, items=items), people, calls)
    [position] = position_bias(data, OPTIONS)
    assert position.consistent.value == pytest.approx(0.834, abs=0.0005)
    assert position.consistent.n == 1392
    both_right = np.mean([row["judge"] == row["judge_exchanged"] == row["human"] for row in rows])
    assert both_right == pytest.approx(0.550, abs=0.0005)
    [compared] = compared_criteria(data)
    same = [row["judge"] if row["judge"] == row["judge_exchanged"] else "tie" for row in rows]
    expected = np.mean([verdict == row["human"] for verdict, row in zip(same, rows, strict=True)])
    assert (compared.judges["auto-j"] == compared.people[:, 0]).mean() == pytest.approx(expected)


def test_distances_of_raters_are_those_of_all_pairs():
    rng = np.random.default_rng(1)
    people = rng.normal(size=(30, 6))
    people[rng.random(people.shape) < 0.4] = np.nan
    compared = Compared("c", "C", pl.DataFrame(), (), people, {}, (), is_choice=False, is_number=True, n_in_common=30)
    judge = rng.normal(size=30)
    of_judge, of_rater = fits(compared, judge)
    for row in range(30):
        given = people[row][~np.isnan(people[row])]
        pairs = [abs(a - b) for i, a in enumerate(given) for j, b in enumerate(given) if i != j]
        assert of_rater[row] == pytest.approx(np.mean(pairs) if pairs else np.nan, nan_ok=True)
        assert of_judge[row] == pytest.approx(
            np.mean(np.abs(given - judge[row])) if len(given) else np.nan, nan_ok=True
        )


def test_very_many_things_are_sampled_down(crowd, monkeypatch):
    monkeypatch.setattr("dialometer.analysis.families.judges.compared.MOST_CELLS", 4 * 15)
    monkeypatch.setattr("dialometer.analysis.families.judges.compared.FEWEST_DRAWN", 6)
    [compared] = compared_criteria(crowd)
    assert (len(compared.things), compared.n_in_common) == (6, 40)


def test_calibration_on_few_things_has_no_interval(crowd, monkeypatch):
    """A bootstrap of two things goes from the one to the other, which says nothing about a third."""
    [compared] = compared_criteria(crowd)
    assert any(row.people.has_interval for row in calibration(crowd, compared, OPTIONS))
    monkeypatch.setattr(fit, "FEWEST", 1000)
    rows = list(calibration(crowd, compared, OPTIONS))
    assert rows
    assert not any(row.people.has_interval for row in rows)
    assert {row.people.notes for row in rows} == {(fit.TOO_FEW,)}, "one reason, also where all of them are equal"


def test_reasons_for_missing_judgments_that_are_as_frequent_are_in_alphabetical_order():
    reasons = ["timed out", "no usable answer in 3 tries (a key is missing)", "refused", "filtered", "empty"]
    answers = pl.DataFrame([("m1", "missing", f"q{k}", reason) for k, reason in enumerate(reasons)],
                           schema=["rater", "part", "question", "text"], orient="row")  # fmt: skip
    data = SimpleNamespace(answers=answers, sessions=pl.DataFrame({"rater": ["m1"], "source": ["model"]}))
    assert _missing_words(data).endswith(
        "m1: 1 (empty), m1: 1 (filtered), m1: 1 (no usable answer in 3 tries), m1: 1 (refused) and m1: 1 (timed out)."
    )
