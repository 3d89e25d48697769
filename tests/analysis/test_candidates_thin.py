"""Candidates with thin data: every lack becomes a sentence, the rest of the report still appears."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from judged_data import judged_data
from report_parts import by_name, said, tables_of


def make_data(study, rows):
    """Study data from (rater, item, criterion, value); every rater has finished."""
    raters, items, criteria, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = {"rater": raters, "item": items, "criterion": criteria, "value": map(float, values)}
    return judged_data(study, {name: list(column) for name, column in columns.items()})


def make_study(folder, change=lambda item: item, text=lambda text: text):
    copy_template("avatar", folder)
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    (folder / "items.jsonl").write_text("".join(json.dumps(change(item)) + "\n" for item in items))
    (folder / "study.yaml").write_text(text((folder / "study.yaml").read_text()))
    return load_study(folder)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("thin") / "avatar")


def ratings(study, *, n_per_item, value=None, seed=0, n_raters=12):
    rng = np.random.default_rng(seed)
    rows = []
    for item in study.rated_items:
        for rater in rng.permutation(n_raters)[:n_per_item]:
            given = value if value is not None else rng.integers(1, 6)
            rows.append((f"R{rater + 1:04d}", item.id, "fit", given))
    return rows


def test_one_rater_per_candidate(study):
    report = analyse(study, make_data(study, ratings(study, n_per_item=1)), n_resamples=200)
    sections = by_name(report)
    assert "two raters" in sections["candidate_agreement"].problem
    assert "ratings" in sections["versatile"].problem
    assert not sections["first_answers"].problem
    assert not sections["retrieval"].problem
    assert all(row[1].is_known for row in tables_of(report)["first_answers"].rows)


def test_two_ratings_leave_nothing_to_choose(study):
    report = analyse(study, make_data(study, ratings(study, n_per_item=2)), n_resamples=200)
    assert [row[0] for row in tables_of(report)["candidate_agreement"].rows] == ["random two"]
    assert "nothing to choose from" in said(report)


def test_all_ratings_equal(study):
    report = analyse(study, make_data(study, ratings(study, n_per_item=3, value=4)), n_resamples=200)
    shown = tables_of(report)
    assert all(not row[1].is_known for row in shown["candidate_agreement"].rows)
    assert "Kappa cannot be computed" in said(report)
    assert all(row[1].value == 4 for row in shown["first_answers"].rows)
    assert "are tied (4.00 on the scale" in report.summary.answer
    assert all(row[4] is None for row in shown["first_answers_pairs"].rows)  # no test of differences that are all zero
    assert "nan" not in said(report).lower().replace("finance", "")


def test_no_gold(tmp_path):
    study = make_study(
        tmp_path / "avatar",
        lambda item: {**item, "is_gold": False},
        lambda text: text.replace(
            "  - rule: gold\n    acceptable:\n      - {criterion: fit, at_least: 4}\n", ""
        ).replace("    n_allowed_failures: 0\n    action: exclude\n", ""),
    )
    report = analyse(study, make_data(study, ratings(study, n_per_item=3)), n_resamples=200)
    shown = tables_of(report)
    assert "retrieval_crowd" in shown
    assert "retrieval_maker" not in shown
    assert "of_gold" not in [column.name for column in shown["first_answers"].columns]
    assert "is_gold" in said(report)
    assert "excludes nobody by gold answers" in said(report)
    assert "disagreements" not in [section.name for section in report.sections]
    assert "right for the person who recorded it" not in said(report)
    assert "A knowledge base that was recorded" not in said(report)
    assert "for the maker" not in report.summary.answer


def test_no_ranks(tmp_path):
    study = make_study(tmp_path / "avatar", lambda item: {**item, "ranks": {}})
    report = analyse(study, make_data(study, ratings(study, n_per_item=3)), n_resamples=200)
    sections = by_name(report)
    assert "at which rank" in sections["first_answers"].problem
    assert "at which rank" in report.summary.answer
    assert not sections["candidate_agreement"].problem
    assert not sections["versatile"].problem


def test_one_system(tmp_path):
    study = make_study(
        tmp_path / "avatar",
        lambda item: {**item, "ranks": {k: v for k, v in item["ranks"].items() if k == "encoder"}},
        lambda text: text.replace("levels: [tfidf, bm25, encoder, random]", "levels: [encoder]").replace(
            "      expected: encoder > tfidf, bm25 > random\n", ""
        ),
    )
    report = analyse(study, make_data(study, ratings(study, n_per_item=3)), n_resamples=200)
    assert "one system only" in report.summary.certainty
    assert not by_name(report)["retrieval"].problem


def test_one_rater_in_all(study):
    rows = [("R0001", item.id, "fit", 1 + k % 5) for k, item in enumerate(study.rated_items)]
    report = analyse(study, make_data(study, rows), n_resamples=200)
    mean = tables_of(report)["first_answers"].rows[1][1]
    assert mean.is_known
    assert not mean.has_interval
    assert any("one rater" in note for note in mean.notes)


def test_unjudged_candidates_are_said(study):
    rows = [row for k, row in enumerate(ratings(study, n_per_item=3)) if k % 9 >= 3]
    report = analyse(study, make_data(study, rows), n_resamples=200)
    n_missing = len(study.rated_items) - len({row[1] for row in rows})
    assert n_missing > 20
    assert any(
        f"{n_missing} candidates" in warning and "count as wrong" in warning for warning in report.summary.warnings
    )
    assert "is not in the pool or has no rating" in said(report)
    shown = tables_of(report)["retrieval_unjudged"]
    least, most = ([c.name for c in shown.columns].index(name) for name in ("least", "most"))
    assert any(row[least].value < row[most].value for row in shown.rows)


def test_questions_nobody_rated_are_left_out_not_failed(study):
    rows = [row for row in ratings(study, n_per_item=3) if not row[1].startswith(("q01-", "q02-"))]
    report = analyse(study, make_data(study, rows), n_resamples=200)
    shown = tables_of(report)["retrieval_crowd"]
    assert any("2 questions without any rated candidate excluded" in note for note in shown.notes)
    alone = [row for row in tables_of(report)["retrieval_unjudged"].rows if row[1] == 1]
    assert {row[2].n for row in alone} == {28}


def test_two_criteria_each_get_their_sections(tmp_path):
    second = "  - name: warmth\n    label: Warmth\n    question: How warm is the last response?\n    scale: fit_5\n\npresentation:"
    study = make_study(tmp_path / "avatar", text=lambda text: text.replace("presentation:", second, 1))
    rows = ratings(study, n_per_item=3)
    rows += [(rater, item, "warmth", 6 - value) for rater, item, _, value in rows]
    report = analyse(study, make_data(study, rows), n_resamples=200)
    names = list(by_name(report))
    assert {"fit_first_answers", "warmth_first_answers", "warmth_retrieval"} <= set(names)
    assert by_name(report)["warmth_first_answers"].title.startswith("Warmth:")
    shown = tables_of(report)
    warmth = {row[0]: row[1].value for row in shown["warmth_first_answers"].rows}
    assert len(warmth) == len(shown["fit_first_answers"].rows)
    for retriever, fit, *_ in shown["fit_first_answers"].rows:
        assert fit.value + warmth[retriever] == pytest.approx(6)
    assert shown["fit_first_answers_pairs"].is_confirmatory
    assert not shown["warmth_first_answers_other_pairs"].is_confirmatory


def test_raters_on_different_scales_are_not_mixed(tmp_path):
    wide = "  fit_7: {type: likert, points: 7}\n  english:"
    factor = (
        "design:\n  factors:\n    - name: width\n      levels:\n        - {name: narrow}\n"
        "        - {name: wide, set: {scales: {fit: fit_7}}}\n"
    )
    study = make_study(
        tmp_path / "avatar",
        text=lambda text: text.replace("  english:", wide, 1).replace("design:\n", factor, 1),
    )
    data = make_data(study, ratings(study, n_per_item=3))
    data = replace(data, judgments=data.judgments.with_columns(pl.lit("narrow").alias("factor_width")))
    report = analyse(study, data, n_resamples=200)
    assert "different scales" in said(report)


def test_no_judgments_at_all(study):
    report = analyse(study, make_data(study, []), n_resamples=200)
    assert "no judgments" in said(report)
