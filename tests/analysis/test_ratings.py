"""The rating report: systems in their true order, agreement, groups, order effects, and thin data."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse, families
from dialometer.analysis.base.data import ANSWER_COLUMNS, FINDING_COLUMNS, SESSION_COLUMNS, StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import numeric_measures
from dialometer.analysis.base.wording import with_interval
from dialometer.analysis.families.ratings.agreement import two_rater_kappa
from dialometer.analysis.families.ratings.spread import _without_level, order_section
from dialometer.analysis.families.ratings.system_section import best_system
from dialometer.analysis.families.ratings.systems import SystemRatings
from dialometer.design.load import load_study
from dialometer.quality.gold import gold_items
from dialometer.report import render
from dialometer.simulate.rater import Habits
from dialometer.simulate.truth import draw_truth
from dialometer.stats.agreement.kappa import cohen_kappa
from dialometer.storage.store import Store
from dialometer.storage.table import COLUMNS
from report_parts import section_of, table_of

OPTIONS = Options(confidence=0.95, n_resamples=200, seed=3, correction="holm")


@pytest.fixture(scope="module")
def whole(walked):
    folder = walked("likert", 14)
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        return analyse(study, store, n_resamples=300)


def test_the_design_chooses_the_family(template):
    names = {name: [type(family).__name__ for family in families(template(name))] for name in ("likert", "anchoring")}
    assert names["likert"][0] == "Ratings"
    assert names["anchoring"][0] == "Factors"
    assert "Ratings" not in names["anchoring"]
    assert names["likert"][-1] == "Raters"


def test_everything_is_there(whole, tmp_path):
    names = {table.name for table in whole.tables()} | {figure.name for figure in whole.figures()}
    wanted = {
        "declared_ratings", "system_means", "system_pairs", "distribution_helpfulness", "rating_agreement", "disputed",
        "ratings_by_assistant_experience", "place_on_screen", "drift", "answers", "rater_spread",
    }  # fmt: skip
    assert wanted <= names
    assert "Use of travel chatbots: groups of raters" in [section.title for section in whole.sections]
    assert not [section.title for section in whole.sections if section.problem]
    assert render(whole, tmp_path, formats=["html", "csv", "latex", "markdown", "json"])


def test_gold_items_are_not_results(whole, template, quick):
    study = template("likert")
    assert gold_items(study) == {"gold_shuttle", "gold_payment"}
    measures = numeric_measures(quick(study, n_raters=6))
    assert not set(measures.book.items) & gold_items(study)
    assert any("gold items" in str(row[0]) for row in whole.summary.exclusions.rows)


@pytest.mark.parametrize("kind", ["likert", "slider", "magnitude"])
def test_the_true_order_comes_out_on_every_scale(template, quick, kind):
    scales = {"likert": "{type: likert, points: 7}", "slider": "{type: slider}", "magnitude": "{type: magnitude}"}
    edits = [("scales:\n", f"scales:\n  own: {scales[kind]}\n")]
    edits += [(f"    scale: {old}\n", "    scale: own\n") for old in ("relevance_5", "fluency_5", "helpfulness_7")]
    study = template("likert", *edits)
    truth = draw_truth(study, 3, spread=1.2)
    report = analyse(study, quick(study, n_raters=60, seed=3, truth=truth), n_resamples=100)
    order = [row[0] for row in table_of(report, "system_means").rows]
    assert order == ["Neural", "Retrieval", "Rules"]
    assert report.summary.answer == (
        "Hypothesis supported: Rules, Retrieval and Neural are not all equal on Helpfulness. Neural is rated best on Helpfulness."
    )
    assert "the comparison is confirmatory (declared in advance)" in report.summary.certainty
    heading = {c.name: c.label for c in table_of(report, "system_pairs").columns}["estimate"]
    assert heading == ("Ratio" if kind == "magnitude" else "Difference")
    far = [row for row in table_of(report, "system_pairs").rows if row[1:3] == ("Neural", "Rules")]
    assert len(far) == 4
    assert all(row[5] < 0.001 for row in far)


def test_criteria_are_parts_of_all_criteria_together(template, quick):
    """In memory once: at a million judgments that is 64 MB."""
    measures = numeric_measures(quick(template("likert"), n_raters=6))
    start = 0
    for measure in measures.criteria:
        part = slice(start, start + len(measure.y))
        start = part.stop
        for name in ("rater", "item", "system"):
            assert np.shares_memory(getattr(measure, name), getattr(measures.overall, name)[part])
    assert start == len(measures.overall.y)


def test_systems_that_are_alike_are_not_ranked(template, quick):
    study = template("likert")
    truth = draw_truth(study, 5, spread=0.0)
    report = analyse(study, quick(study, n_raters=20, seed=5, truth=truth), n_resamples=100)
    assert "significantly" in report.summary.answer


def test_items_with_one_system_each(template, quick):
    study = template("likert")
    data = quick(study, n_raters=40, truth=draw_truth(study, 3, spread=0.9))
    names = ["rules", "retrieval", "neural"]
    items = sorted(set(data.judgments["item"]))
    of_item = {item: names[place % 3] for place, item in enumerate(items)}
    kept = data.judgments.filter(pl.col("system") == pl.col("item").replace_strict(of_item))
    measures = numeric_measures(dataclasses.replace(data, judgments=kept))
    ratings = SystemRatings(study, measures.criteria[2], OPTIONS)
    assert not ratings.is_paired
    assert ratings.layout == "apart"
    assert all("two-way jackknife" in pair.difference.method for pair in ratings.pairs)
    assert ratings.label(ratings.pairs[0].first) == "Neural"
    assert ratings.pairs[0].difference.details["standard_error"] > 0.2  # few items: honest about them


def test_one_system_is_not_compared(template, quick):
    study = template("likert")
    data = quick(study, n_raters=10)
    only = dataclasses.replace(data, judgments=data.judgments.filter(pl.col("system") == "rules"))
    report = analyse(study, only, n_resamples=100)
    assert table_of(report, "system_means").rows[0][1].is_known
    assert report.summary.answer.endswith("Systems were not compared.")
    assert report.summary.answer.count("not compared") == 1
    mean = SystemRatings(study, numeric_measures(only).criteria[2], OPTIONS).means[0]
    assert f"Rules has a mean rating of {with_interval(mean)} on Helpfulness" in report.summary.answer
    assert not any("ordered categories" in method.what for method in report.methods)


def test_one_rating_each_is_not_always_the_same_number(template, quick):
    study = template("likert")
    data = quick(study, n_raters=30)
    once = data.judgments.unique(["rater", "criterion"], keep="first", maintain_order=True)
    report = analyse(study, dataclasses.replace(data, judgments=once), n_resamples=100)
    distribution = section_of(report, "distribution")
    assert not any("always the same number" in text for text in distribution.paragraphs)
    severity = next(section for section in report.sections if section.name == "severity")
    assert "fewer than two raters gave 5 ratings" in severity.problem


def test_two_raters_get_a_weighted_kappa(template, quick):
    study = template("likert", ("items_per_rater: 10", "items_per_rater: all"))
    data = quick(study, n_raters=2)
    measure = numeric_measures(data).criteria[0]
    table = np.full((measure.n_targets, 2), np.nan)
    table[measure.target, measure.rater] = measure.y
    expected = cohen_kappa(table[:, 0], table[:, 1], [1, 2, 3, 4, 5], weights="quadratic")
    assert two_rater_kappa(measure, OPTIONS).value == expected.value
    report = analyse(study, data, n_resamples=100)
    assert "kappa" in {column.name for column in table_of(report, "rating_agreement").columns}


def test_a_favoured_place_on_the_screen_is_found(template, quick):
    study = template("likert")
    for bias, is_found in ((0.0, False), (0.8, True)):
        data = quick(study, n_raters=30, seed=6, habits=Habits(position_bias=bias, careless_share=0))
        said = order_section(data, numeric_measures(data).main, OPTIONS).paragraphs[0]
        assert ("mattered" in said) == is_found
    first = table_of(analyse(study, data, n_resamples=100), "place_on_screen").rows[0]
    assert first[2].low > 0


def test_drift_over_the_session_is_found(template, quick):
    study = template("likert", ("items_per_rater: 10", "items_per_rater: all"))
    data = quick(study, n_raters=30, seed=11)
    risen = pl.when(pl.col("position") > 12).then((pl.col("value") + 1).clip(1, 5)).otherwise(pl.col("value"))
    for rows, word in (
        (data.judgments, "did not drift significantly"),
        (data.judgments.with_columns(value=risen), "rose"),
    ):
        one = dataclasses.replace(data, judgments=rows)
        said = " ".join(order_section(one, numeric_measures(one).main, OPTIONS).paragraphs)
        assert word in said


def test_fixed_orders_cannot_be_separated(template, quick):
    study = template(
        "likert", ("item_order: random", "item_order: fixed"), ("system_order: random", "system_order: fixed")
    )
    data = quick(study, n_raters=8)
    said = " ".join(order_section(data, numeric_measures(data).main, OPTIONS).paragraphs)
    assert "was always at the same position" in said
    assert "same order for everybody" in said


def test_the_most_disputed_item_is_the_one_raters_split_on(template, quick):
    study = template("likert")
    data = quick(study, n_raters=24)
    is_split = (pl.col("item") == "t07") & (pl.col("system") == "rules") & (pl.col("criterion") == "fluency")
    number = pl.col("rater").str.slice(1).cast(pl.Int64)
    split = pl.when(is_split).then(pl.when(number % 2 == 0).then(1.0).otherwise(5.0)).otherwise(pl.col("value"))
    report = analyse(
        study, dataclasses.replace(data, judgments=data.judgments.with_columns(value=split)), n_resamples=100
    )
    rows = [row for row in table_of(report, "disputed").rows if row[0] == "Fluency"]
    assert (rows[0][1], rows[0][2]) == ("t07", "Rules")
    assert rows[0][3]  # the text itself


def test_a_rater_who_was_given_worse_items_is_not_taken_for_a_severe_one():
    rater, target = np.array([(r, t) for r in range(6) for t in range(6) if abs(r - t) < 4]).T
    y = 20.0 * target + np.array([0.0, 3.0, -2.0, 5.0, 1.0, -4.0])[rater]
    given = SimpleNamespace(y=y, rater=rater, target=target, n_targets=6, book=SimpleNamespace(raters=range(6)))
    centred = _without_level(given)
    assert all(np.ptp(centred[target == thing]) < 0.05 for thing in range(6)), "they agree but for their levels"


@pytest.mark.parametrize("n_raters", [1, 2, 3])
def test_thin_data_are_spoken_of(template, quick, n_raters, tmp_path):
    study = template("likert")
    report = analyse(study, quick(study, n_raters=n_raters), n_resamples=100)
    assert render(report, tmp_path, formats=["html"])
    if n_raters == 1:
        assert report.summary.answer.endswith("Which system is best on Helpfulness is not known.")
        assert report.summary.certainty == "One rater says nothing about others; recruit more.", "said once"
        (group,) = (section for section in report.sections if section.name == "group_assistant_experience")
        assert group.title == "Use of travel chatbots: groups of raters"
        assert group.problem.startswith("no rater has answered “How often have you used a chatbot")
        assert "recruit" in section_of(report, "system_pairs").paragraphs[0]
        assert "two of each" in " ".join(section_of(report, "rating_agreement").paragraphs)


def test_ratings_at_the_end_of_the_scale_are_pointed_out(template, quick):
    study = template("likert")
    data = quick(study, n_raters=10)
    top = (
        pl.when(pl.col("criterion") == "fluency")
        .then(pl.max_horizontal(pl.col("value"), 4.0) + 1)
        .otherwise(pl.col("value"))
    )
    report = analyse(
        study, dataclasses.replace(data, judgments=data.judgments.with_columns(value=top.clip(1, 5))), n_resamples=100
    )
    assert any("highest end of the scale" in said for said in section_of(report, "distribution").paragraphs)


def test_blocks_with_other_scales_are_kept_apart(template, quick):
    edits = [
        ("scales:\n", "scales:\n  line: {type: slider}\n"),
        (
            "design:\n  items_per_rater: 10\n",
            "design:\n  blocks:\n    - {name: points, title: Points}\n"
            "    - {name: lines, title: Lines, set: {scales: {fluency: line}}}\n  items_per_rater: all\n",
        ),
    ]
    study = template("likert", *edits, blocks=("points", "lines"))
    measures = numeric_measures(quick(study, n_raters=8))
    labels = [measure.label for measure in measures.criteria]
    assert labels == ["Relevance", "Fluency (Points)", "Fluency (Lines)", "Helpfulness"]
    assert measures.criteria[2].raw.max() > 7


def test_the_verdict_follows_the_correction(template, quick):
    study = template("likert")
    measures = numeric_measures(quick(study, n_raters=12, seed=8))
    for correction in ("none", "holm", "benjamini-hochberg"):
        ratings = SystemRatings(study, measures.main, dataclasses.replace(OPTIONS, correction=correction))
        best = best_system(ratings)
        lead = [pair for pair in ratings.pairs if pair.first == best.system]
        assert (not best.rivals) == all(pair.p_adjusted < 0.05 for pair in lead)
        assert all(pair.p_adjusted >= pair.difference.p_value for pair in lead)


def test_a_small_difference_is_no_tie_where_it_is_significant(template, quick):
    """On a scale from 0 to 0.1 a difference of 0.004 may be a large one; and means that differ are not the same."""
    study = template("likert")
    main = numeric_measures(quick(study, n_raters=30, truth=draw_truth(study, 3, spread=1.5))).main
    small = SystemRatings(study, dataclasses.replace(main, y=main.y / 5000), OPTIONS)
    best = best_system(small)
    assert not best.rivals
    assert 0 < best.next_pair.difference.value < 0.005
    assert "same mean" not in best.sentence + best.numbers
    null = numeric_measures(quick(study, n_raters=30, truth=draw_truth(study, 3, spread=0.0))).main
    assert "have nearly the same mean (difference" in (
        best_system(SystemRatings(study, dataclasses.replace(null, y=null.y / 5000), OPTIONS)).sentence
    )


DIALOGUES = """dialometer: 1
name: dialogues
title: Dialogues rated turn by turn
seed: 3
systems: [{name: alpha}, {name: beta}]
items: {kind: dialogue, file: items.jsonl, rate: turns}
scales: {line: {type: slider, low: -100, high: 100, step: 0.01}}
criteria: [{name: sense, question: "Does it make sense?", scale: line}]
"""


@pytest.fixture
def dialogues(tmp_path):
    """A study of 16 dialogues, each by one of two systems, whose turns are rated one by one."""
    (tmp_path / "study.yaml").write_text(DIALOGUES, encoding="utf-8")
    for name in ("consent", "instructions", "debriefing"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n", encoding="utf-8")
    turns = [{"speaker": speaker, "text": f"{speaker} {n}"} for n in range(3) for speaker in ("User", "Agent")]
    rows = [{"id": f"d{n:02d}", "system": ("alpha", "beta")[n % 2], "turns": turns} for n in range(16)]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return load_study(tmp_path)


def turn_ratings(study, seed, *, gap=0.0, n_raters=10):
    """Judgments with a deviation of each dialogue that its turns share: dialogues, not turns, are the sample."""
    rng = np.random.default_rng(seed)
    of_item, of_rater = rng.normal(0, 8, 16), rng.normal(0, 5, n_raters)
    columns = {name: [] for name in ("rater", "item", "system", "turn", "value")}
    for rater in range(n_raters):
        for n, item in enumerate(study.items):
            for turn in (1, 3, 5):
                values = (f"R{rater:04d}", item.id, item.system, turn)
                for name, one in zip(columns, values, strict=False):
                    columns[name].append(one)
                level = of_item[n] + of_rater[rater] + (gap if item.system == "beta" else 0.0)
                columns["value"].append(round(level + rng.normal(0, 6), 2))
    n = len(columns["rater"])
    fixed = {"criterion": "sense", "block": "main", "scale": "slider", "source": "person", "state": "completed"}
    frame = pl.DataFrame({**columns, **{name: [text] * n for name, text in fixed.items()}})
    blank = [name for name in COLUMNS if name not in frame.columns]
    frame = frame.with_columns(pl.lit(None, dtype=COLUMNS[name][0]).alias(name) for name in blank)
    frame = frame.select(pl.col(name).cast(kind, strict=False) for name, (kind, _) in COLUMNS.items())
    empty = {"sessions": SESSION_COLUMNS, "answers": ANSWER_COLUMNS, "findings": FINDING_COLUMNS}
    tables = {name: pl.DataFrame(schema=schema) for name, schema in empty.items()}
    return StudyData(study, frame, **tables, sources=("person",), n_left_out={})


def test_turns_of_a_dialogue_are_not_samples_of_their_own(dialogues):
    held = []
    for seed in range(100):
        measures = numeric_measures(turn_ratings(dialogues, seed, gap=5.0))
        pair = SystemRatings(dialogues, measures.main, OPTIONS).compare([(1, 0)])[0]
        held.append(pair.difference.low <= 5.0 <= pair.difference.high)
    assert 0.87 <= np.mean(held) <= 1.0


def test_turn_by_turn_ratings_get_a_whole_report(dialogues, tmp_path):
    report = analyse(dialogues, turn_ratings(dialogues, 3, gap=30.0), n_resamples=100)
    assert report.summary.answer == "beta is rated higher than alpha on sense."
    assert "Items show one system each" in table_of(report, "system_pairs").caption
    assert table_of(report, "rating_agreement").rows[0][2] == 48  # every turn is a thing rated
    assert "exploratory" in section_of(report, "declared_ratings").paragraphs[0]
    assert render(report, tmp_path / "out", formats=["html"])
