"""Leaderboards: strengths that made the votes come out again, and what cannot be ranked is said."""

import csv
import dataclasses
import json
import math
import os
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.special import expit

from dialometer.analysis.base.choose import analyse, families
from dialometer.analysis.base.data import ANSWER_COLUMNS, data_from_arrays
from dialometer.analysis.base.family import ANALYSES, Options
from dialometer.analysis.families.votes.agreement import choice_counts
from dialometer.analysis.families.votes.rankings import rank_systems
from dialometer.analysis.families.votes.style_sections import WORTH, style_method
from dialometer.analysis.families.votes.system_votes import _rankings, duplicate_votes, system_votes
from dialometer.analysis.shared.comparisons import first_places_words, p_adjusted
from dialometer.analysis.shared.effect_words import flipped, readable
from dialometer.analysis.shared.subgroups import RaterGroups, groups_test, no_difference_words
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.model.estimate import Estimate
from dialometer.model.item import PairItem, ResponsesItem, Transcript
from dialometer.model.report import Column, Figure, Section, Table
from dialometer.model.study import System
from dialometer.simulate.judgment_arrays import simulate_judgments
from dialometer.simulate.rater import Habits
from dialometer.simulate.truth import Truth
from dialometer.stats.ranking.bradley_terry import bradley_terry
from dialometer.stats.ranking.votes import Votes, code_votes, win_matrix
from report_parts import rows_of, table_of

OPTIONS = Options(confidence=0.95, n_resamples=300, seed=1, correction="holm")
SYSTEMS = ("fern", "moss", "reed", "clove")
CRITERIA = ("engagingness", "interestingness", "humanness", "knowledge")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("acute") / "acute"
    copy_template("acute", path)
    return load_study(path)


def rows_from(study, strengths, *, n_raters, position=0.0, tie=0.0, seed=0, criteria=CRITERIA, per_rater=8, spread=0.0):
    """Votes by the Bradley-Terry model (with Davidson's ties), on the template's pairs."""
    rng = np.random.default_rng(seed)
    items = [item for item in study.rated_items if not item.metadata.get("gold")]
    rows = []
    for rater in range(n_raters):
        own = dict(zip(SYSTEMS, rng.normal(0, spread, 4), strict=True)) if spread else dict.fromkeys(SYSTEMS, 0.0)
        for place, k in enumerate(rng.permutation(len(items))[:per_rater], start=1):
            item = items[k]
            first, second = (item.a.system, item.b.system)[:: rng.choice([1, -1])]
            for criterion in criteria:
                gap = strengths[first] + own[first] - strengths[second] - own[second] + position
                up, down = math.exp(gap / 2), math.exp(-gap / 2)
                draw = rng.random() * (up + down + tie)
                choice = first if draw < up else second if draw < up + down else "tie"
                side = {first: 1, second: 2}.get(choice, 0)
                rows.append((rater + 1, item.id, criterion, place, side, f"{first}|{second}", choice))
    return rows


def data_of(study, rows, *, scale="pairwise", answers=None):
    rater, item, criterion, position, side, order, choice = map(list, zip(*rows, strict=True))
    n = len(rows)
    data = data_from_arrays(
        study,
        {
            "rater": np.array(rater),
            "cell": np.zeros(n, dtype=np.int64),
            "block": np.full(n, "main", dtype=object),
            "item": np.array(item, dtype=object),
            "system": np.full(n, "", dtype=object),
            "criterion": np.array(criterion, dtype=object),
            "scale": np.full(n, scale, dtype=object),
            "position": np.array(position),
            "side": np.array(side),
            "order": np.array(order, dtype=object),
            "value": np.full(n, np.nan),
            "choice": np.array(choice, dtype=object),
            "worst": np.full(n, "", dtype=object),
        },
    )
    if answers is None:
        return data
    return dataclasses.replace(data, judgments=data.judgments.with_columns(pl.Series("answer", answers)))


def run(data, options=OPTIONS):
    return ANALYSES.get("leaderboard").run(data, options)


def table(found, name):
    return table_of(found, f"leaderboard-{name}")


SIGNIFICANT_IN_ARENA = 1
TRUE = {"fern": 1.2, "moss": -0.4, "reed": 0.1, "clove": -0.9}


def test_the_design_chooses_the_family(study):
    assert type(families(study)[0]).__name__ == "Leaderboard"
    assert not ANALYSES.get("transcript_pairs").fits(study)


def test_strengths_and_places_are_recovered(study):
    found = run(data_of(study, rows_from(study, TRUE, n_raters=60)))
    board = rows_of(table(found, "board"))
    assert [row["system"] for row in board] == ["Fern", "Reed", "Moss", "Clove"]
    for row in board:
        truth = TRUE[row["system"].lower()]
        assert row["strength"].low < truth < row["strength"].high
        others = [expit(truth - value) for name, value in TRUE.items() if name != row["system"].lower()]
        assert row["wins_share"].low < np.mean(others) < row["wins_share"].high
    assert (
        found.answer
        == "Fern is the best of 4 systems on Engagingness, with an estimated win rate of 80% against the others."
        or (found.answer.startswith("Fern is the best of 4 systems on Engagingness, with an estimated win rate of "))
    )
    assert "The comparison is confirmatory (declared in advance)." in found.certainty
    questions = table(found, "questions")
    assert [column.label for column in questions.columns[1:]] == [
        "Engagingness",
        "Interestingness",
        "Humanness",
        "Knowledge",
        "All questions",
    ]


def test_gold_systems_are_not_ranked_but_named(study):
    rows = rows_from(study, TRUE, n_raters=10)
    gold = next(item for item in study.rated_items if item.metadata.get("gold"))
    rows += [(1, gold.id, c, 9, 1, f"{gold.a.system}|{gold.b.system}", gold.a.system) for c in CRITERIA]
    data = data_of(study, rows)
    votes = system_votes(data)
    assert votes.systems == ("Fern", "Moss", "Reed", "Clove")
    assert votes.votes.n == len(rows) - 4
    assert any(
        "Check (sensible) and Check (faulty) are used only for practice or checks" in warning
        for warning in run(data).warnings
    )


def test_the_advantage_of_the_first_place_is_taken_out(study):
    data = data_of(study, rows_from(study, TRUE, n_raters=120, position=0.8))
    one = rank_systems(system_votes(data).votes, "all", OPTIONS, is_order_drawn=True)
    assert one.position.low < 0.8 < one.position.high
    assert one.position.p_value < 0.001
    strength = one.strengths["Fern"].value - one.strengths["Clove"].value
    assert strength == pytest.approx(TRUE["fern"] - TRUE["clove"], abs=0.35)
    assert "mattered for" in next(s for s in run(data).sections if s.name == "leaderboard-model").paragraphs[0]


def test_points_of_the_first_position_stand_beside_what_equal_systems_would_give(study):
    """Both count ties as half wins: Davidson's model, integrated here by hand."""
    data = data_of(study, rows_from(study, TRUE, n_raters=40, tie=0.8, position=0.6))
    found = run(data)
    shown = table(found, "position")
    row = next(row for row in rows_of(shown) if row["question"] == "Engagingness")
    one = rank_systems(system_votes(data).on(("engagingness",)), "one", OPTIONS, is_order_drawn=True)
    ahead, tied = np.exp(one.position.value / 2), one.tie.value
    assert row["first_expected"] == pytest.approx((ahead + tied / 2) / (ahead + 1 / ahead + tied))
    outcome = one.votes.outcome
    assert row["first_points"] == pytest.approx(((outcome == 1) + (outcome == 0) / 2).mean())
    assert shown.notes[0] == "A win is one point, a tie half a point, in both columns."


def test_two_level_systems_are_tied_and_neither_comes_first(study):
    """Every vote and its opposite: the two win equally often."""
    rows = [row for row in rows_from(study, TRUE, n_raters=12) if set(row[5].split("|")) == {"fern", "reed"}]
    other = {"fern": "reed", "reed": "fern"}
    rows += [(row[0] + 12, *row[1:4], 3 - row[4], row[5], other[row[6]]) for row in rows]
    words = next(s for s in run(data_of(study, rows)).sections if s.name == "leaderboard-questions").paragraphs
    assert len(words) == len(CRITERIA)
    assert all(
        re.search(r": (Fern and Reed|Reed and Fern) are tied, with an estimated win rate of 50%", w) for w in words
    )


def test_where_one_comes_first_is_said_without_the_ties():
    assert first_places_words({"a": "Fern", "b": "Fern"}) == "Fern comes first on every question."
    assert first_places_words({"a": "Fern", "b": ""}) == "Fern comes first on a."
    assert first_places_words({"a": "", "b": ""}) == ""


def test_columns_of_further_leaderboards_are_explained_once(study):
    found = run(data_of(study, rows_from(study, TRUE, n_raters=12)))
    caption = table(found, "board-1").caption
    assert caption.endswith("transcripts. The columns are those of “Leaderboard: Engagingness”.")


def test_where_nobody_tied_nothing_is_said_of_ties(study):
    found = run(data_of(study, rows_from(study, TRUE, n_raters=12)))
    assert "tie" not in [column.name for column in table(found, "position").columns]
    words = str([found.sections, found.methods, found.figure, found.answer])
    assert not re.search(r"(?<!')\b([Tt]ies?|Davidson)\b(?!')", words), "but for names of details, in quotes"
    tied = str(run(data_of(study, rows_from(study, TRUE, n_raters=12, tie=0.6))).methods)
    assert "Davidson 1970" in tied


def test_what_the_leaderboard_shows_is_explained(study):
    found = run(data_of(study, rows_from(study, TRUE, n_raters=12)))
    caption = table(found, "board").caption
    assert "the share of 10,000 draws from the estimated sampling distribution of the strengths" in caption
    assert "the tests of each pair of systems leave open" in caption
    assert "dashed line: 50%, the average. “Rank”: the ranks that the tests leave open." in found.figure.caption
    figures = [part for section in found.sections for part in section.parts if isinstance(part, Figure)]
    assert next(part for part in figures if part.name.endswith("questions-figure")).caption


def test_methods_of_style_name_the_covariates_that_were_used():
    worth = Estimate(0.4, 90, "Bradley-Terry", interval_method="two-way jackknife over raters, Student's t")
    columns = (Column("feature", ""), Column("worth", "", "estimate"), Column("p", "", "p_value"))
    shown = Table(WORTH, "", columns, (("Length (words)", worth, 0.1), ("Headings", worth, 0.2)))
    method = style_method(Section("style", "", parts=(shown,)))
    assert method.method == (
        "Bradley-Terry, relative differences as covariates (length (words) and headings), two-way jackknife over raters, Student's t"
    )


def test_ties_get_a_parameter_of_their_own(study):
    data = data_of(study, rows_from(study, TRUE, n_raters=100, tie=0.8))
    one = rank_systems(system_votes(data).votes, "all", OPTIONS, is_order_drawn=True)
    assert one.tie.low < 0.8 < one.tie.high
    assert "Davidson" in one.fit.method
    assert one.wins["Fern"].value == pytest.approx(one.fit.beats_average["Fern"].value)


def test_direct_votes_are_exact_where_each_rater_votes_once_and_over_raters_and_items_elsewhere(study):
    rows = rows_from(study, TRUE, n_raters=40, per_rater=1, criteria=("engagingness",))
    alone = dataclasses.replace(system_votes(data_of(study, rows)).votes, item=None, items=())
    once = rank_systems(alone, "q", OPTIONS, is_order_drawn=True)
    for share in once.pairs.values():
        if share.is_known:
            wins, losses = share.details["wins"], share.details["losses"]
            assert share.p_value == pytest.approx(stats.binomtest(wins, wins + losses).pvalue)
    often = rank_systems(
        system_votes(data_of(study, rows_from(study, TRUE, n_raters=12))).votes, "q", OPTIONS, is_order_drawn=True
    )
    assert all("raters and items" in share.method for share in often.pairs.values())
    assert all(share.low < share.value < share.high or share.value in (0, 1) for share in often.pairs.values())
    shown = table(run(data_of(study, rows_from(study, TRUE, n_raters=12))), "head-to-head")
    assert "p" not in [column.name for column in shown.columns]


def test_a_system_that_never_wins_is_named_and_the_fit_labelled(study):
    rows = [
        (*row[:-1], next(name for name in row[5].split("|") if name != "clove"))
        if "clove" in row[5]
        else row
        for row in rows_from(study, TRUE, n_raters=20)
    ]  # fmt: skip
    found = run(data_of(study, rows))
    assert any("never preferred to, nor tied with, any of the rest: Clove" in warning for warning in found.warnings)
    assert "regularised fit" in found.certainty
    board = next(s for s in found.sections if s.name == "leaderboard-board")
    assert "regularised" in " ".join(board.paragraphs)
    assert "regularised Bradley-Terry" in next(c.label for c in board.parts[0].columns if c.name == "strength")
    assert rows_of(board.parts[0])[-1]["system"] == "Clove"


@pytest.mark.parametrize("n_raters", [1, 2, 7])
@pytest.mark.parametrize("kind", ["all ties", "first wins always", "cannot tell mostly"])
def test_degenerate_votes_give_sentences(study, kind, n_raters):
    rows = rows_from(study, dict.fromkeys(SYSTEMS, 0.0), n_raters=n_raters)
    for k, row in enumerate(rows):
        first = row[5].split("|")[0]
        choice = {"all ties": "tie", "first wins always": first}.get(kind, "cannot_tell" if k % 5 else first)
        rows[k] = (*row[:-1], choice)
    report = analyse(study, data_of(study, rows), n_resamples=150)
    assert report.summary.answer
    assert report.summary.certainty
    for one in report.sections:
        assert one.problem or one.parts or one.paragraphs
        for part in one.parts:
            if isinstance(part, Table):
                assert not any(isinstance(c, float) and math.isnan(c) for row in part.rows for c in row)


def test_all_ties_name_no_best_system(study):
    rows = [(*row[:-1], "tie") for row in rows_from(study, TRUE, n_raters=8)]
    found = run(data_of(study, rows))
    assert found.answer.startswith("No best system on Engagingness can be named")
    agreement = next(section for section in found.sections if section.name == "leaderboard-agreement")
    assert "answers are all the same" in agreement.paragraphs[0]
    assert rows_of(table(found, "agreement"))[0]["agreeing"].value == 1


def test_one_rater_cannot_speak_for_others(study):
    found = run(data_of(study, rows_from(study, TRUE, n_raters=1)))
    assert "one rater says nothing about others" in found.answer
    assert [row["rank_interval"] for row in rows_of(table(found, "board"))] == [""] * len(
        rows_of(table(found, "board"))
    )


def test_nobody_can_tell_is_not_a_crash(study):
    rows = [(*row[:-1], "cannot_tell") for row in rows_from(study, TRUE, n_raters=4)]
    report = analyse(study, data_of(study, rows))
    assert report.summary.answer.endswith("Not enough data.")


def test_a_system_without_votes_is_left_open(study):
    rows = [row for row in rows_from(study, TRUE, n_raters=20) if "moss" not in row[5]]
    found = run(data_of(study, rows))
    assert any("no votes on Moss" in warning for warning in found.warnings)
    assert next(row for row in rows_of(table(found, "board")) if row["system"] == "Moss")["rank"] is None


def test_wins_that_run_in_a_circle_are_said(study):
    circle = {("fern", "moss"): "fern", ("moss", "reed"): "moss", ("fern", "reed"): "reed"}
    rng = np.random.default_rng(0)
    rows = []
    for row in rows_from(study, dict.fromkeys(SYSTEMS, 0.0), n_raters=40):
        pair = tuple(sorted(row[5].split("|"), key=SYSTEMS.index))
        rows.append((*row[:-1], circle[pair] if pair in circle and rng.random() < 0.9 else row[-1]))
    told = next(s for s in run(data_of(study, rows)).sections if s.name == "leaderboard-head-to-head").paragraphs
    assert "run in a circle" in told[1]


def test_subgroups_compare_points(study):
    data = data_of(study, rows_from(study, TRUE, n_raters=30))
    raters = data.sessions["rater"].to_list()
    rows = [(r, "post", "chatbot_experience", "", ("Never", "Every day")[k % 2], None) for k, r in enumerate(raters)]
    data = dataclasses.replace(data, answers=pl.DataFrame(rows, schema=ANSWER_COLUMNS, orient="row"))
    found = run(data)
    assert (
        "“p (groups differ)” is the smallest p-value of all pairs"
        in table(found, "subgroup-chatbot_experience").caption
    )
    assert "subgroups of raters" in [method.what for method in found.methods]
    shown = rows_of(table(found, "subgroup-chatbot_experience"))
    votes = system_votes(data).votes
    fern = next(row for row in shown if row["system"] == "Fern")
    met = (votes.first == 0) | (votes.second == 0)
    even = np.array([raters.index(votes.raters[k]) % 2 == 0 for k in votes.rater])
    won = np.where(votes.first == 0, votes.outcome == 1, votes.outcome == -1)
    assert fern["group-0"].value == pytest.approx(won[met & even].mean())


def ranking_study(study):
    """Items with four responses each, ranked as a whole."""
    from dialometer.scales.ranking import Ranking

    items = tuple(
        ResponsesItem(id=f"r{k}", context=(), responses={name: f"{name} {k}" for name in SYSTEMS}) for k in range(6)
    )
    spec = study.spec.model_copy(
        update={
            "items": study.spec.items.model_copy(update={"kind": "responses"}),
            "systems": [s for s in study.spec.systems if s.name in SYSTEMS],
            "scales": {**study.spec.scales, "which": Ranking()},
            "quality": [],
        }
    )
    return dataclasses.replace(study, spec=spec, items=items)


def test_a_ranking_is_all_its_pairs(study):
    other = ranking_study(study)
    rng = np.random.default_rng(1)
    rows, answers, first, second, winner, rater = [], [], [], [], [], []
    for k in range(30):
        for item in other.items:
            worth = {name: TRUE[name] + rng.gumbel() for name in SYSTEMS}
            ranked = sorted(SYSTEMS, key=lambda name: -worth[name])
            shown = [SYSTEMS[i] for i in rng.permutation(4)]
            rows.append((k + 1, item.id, "engagingness", 1, 0, "|".join(shown), ""))
            answers.append(json.dumps(ranked))
            for i in range(4):
                for j in range(i + 1, 4):
                    a, b = sorted((ranked[i], ranked[j]), key=shown.index)
                    first.append(a), second.append(b), winner.append(ranked[i]), rater.append(f"R{k + 1:04d}")
    data = data_of(other, rows, scale="ranking", answers=answers)
    votes = system_votes(data)
    assert votes.has_rankings
    assert votes.votes.n == 30 * 6 * 6
    expected = bradley_terry(
        win_matrix(code_votes(first, second, winner, rater=rater, systems=SYSTEMS)), position_effect=True
    )
    one = rank_systems(votes.votes, "q", OPTIONS, is_order_drawn=True)
    for name in SYSTEMS:
        assert one.strengths[name.capitalize()].value == pytest.approx(expected.strengths[name].value, abs=1e-9)
        truth = TRUE[name] - np.mean(list(TRUE.values()))
        assert one.strengths[name.capitalize()].low < truth < one.strengths[name.capitalize()].high
    assert ANALYSES.get("leaderboard").fits(other)
    told = next(s for s in run(data).sections if s.name == "leaderboard-model").paragraphs
    assert any("broken into all their pairs" in paragraph for paragraph in told)


def test_votes_of_rankings_are_in_the_order_of_the_judgments():
    """What is drawn from votes, such as orders for Elo, is else another at every report of the same data."""
    rng = np.random.default_rng(1)
    shown = ["|".join(rng.permutation(SYSTEMS)) for _ in range(8)]
    frame = pl.DataFrame(
        {
            "rater": [f"r{k}" for k in range(8)],
            "criterion": "q",
            "item": "i",
            "answer": [json.dumps(rng.permutation(SYSTEMS).tolist()) for _ in range(8)],
            "order": shown,
        }
    )
    assert _rankings(frame)["rater"].to_list() == [f"r{k}" for k in range(8) for _ in range(6)]


def test_repeated_votes_are_found(study):
    rows = rows_from(study, TRUE, n_raters=6, per_rater=3)
    changed = next(name for name in rows[0][5].split("|") if name != rows[0][-1])
    found = duplicate_votes(system_votes(data_of(study, [*rows, rows[5], (*rows[0][:-1], changed)])))
    assert sorted((one.rater, one.is_same) for one in found) == [("R0001", False), ("R0001", True)]
    assert duplicate_votes(system_votes(data_of(study, rows))) == ()
    shown = run(data_of(study, [*rows, rows[5]]))
    assert "1 comparison received more than one vote of the same rater; see “Repeated votes”." in shown.warnings


def arena(study, rows):
    """A study of an arena: every vote is about a conversation of its own."""
    names = sorted({row["crs1"] for row in rows} | {row["crs2"] for row in rows})
    items = tuple(
        PairItem(id=f"v{k}", a=Transcript(row["crs1"], ()), b=Transcript(row["crs2"], ())) for k, row in enumerate(rows)
    )
    spec = study.spec.model_copy(
        update={
            "systems": [System(name=name) for name in names],
            "criteria": study.spec.criteria[:1],
            "analysis": type(study.spec.analysis)(),
            "quality": [],
        }
    )
    other = dataclasses.replace(study, spec=spec, items=items)
    raters = sorted({row["user_id"] for row in rows})
    votes = [
        (raters.index(r["user_id"]) + 1, f"v{k}", "engagingness", 1, 0, f"{r['crs1']}|{r['crs2']}", r["vote"])
        for k, r in enumerate(rows)
    ]
    return data_of(other, votes)


@pytest.mark.realdata
@pytest.mark.skipif(
    not os.environ.get("DIALOMETER_DATA"), reason="DIALOMETER_DATA does not name the folder of public data"
)
def test_real_votes_of_an_arena(study):
    """CRSArena-Dial: two systems cannot be placed, one rater voted twice, and nothing is called the best."""
    path = Path(os.environ["DIALOMETER_DATA"]) / "crs_arena" / "votes_open.csv"
    with path.open(encoding="utf-8", newline="") as file:
        data = arena(study, list(csv.DictReader(file)))
    found = run(data)
    assert any("kbrd_opendialkg, kbrd_redial" in warning for warning in found.warnings)
    assert any("1 comparison received more than one vote" in warning for warning in found.warnings)
    assert "No comparison was declared" in found.certainty
    board = rows_of(table(found, "board"))
    assert board[0]["system"] == "chatgpt_opendialkg"
    assert {row["system"]: (row["won"], row["lost"], row["tied"]) for row in board}["chatgpt_redial"] == (15, 7, 1)
    assert "significantly ahead of crbcrs_redial, but not of chatgpt_redial" in found.answer
    tests = {(row["system"], row["against"]): row for row in rows_of(table(found, "contrasts"))}
    assert tests["chatgpt_opendialkg", "crbcrs_redial"]["p_adjusted"] == pytest.approx(0.027, abs=0.001)
    assert sum(row["p_adjusted"] <= 0.05 for row in tests.values()) == SIGNIFICANT_IN_ARENA
    agreement = next(section for section in found.sections if section.name == "leaderboard-agreement")
    assert "no two raters judged" in agreement.problem


def test_intervals_and_tests_are_calibrated_when_raters_disagree():
    """Raters have tastes of their own; intervals hold the crowd's strengths and equal systems are seldom called different."""
    rng = np.random.default_rng(8)
    options = dataclasses.replace(OPTIONS, n_resamples=200)
    n_sims, n_raters, per_rater = 60, 20, 9
    held, false, best = [], 0, 0
    for _ in range(n_sims):
        taste = rng.normal(0, 1.0, (n_raters, 3))
        rater = np.repeat(np.arange(n_raters), per_rater)
        pairs = np.array([(0, 1), (0, 2), (1, 2)])[np.tile(np.arange(per_rater) % 3, n_raters)]
        pairs = np.where((rng.random(len(pairs)) < 0.5)[:, None], pairs, pairs[:, ::-1])
        gap = taste[rater, pairs[:, 0]] - taste[rater, pairs[:, 1]]
        outcome = np.where(rng.random(len(gap)) < expit(gap), 1, -1)
        votes = Votes(
            ("a", "b", "c"), pairs[:, 0].astype(np.intp), pairs[:, 1].astype(np.intp), outcome.astype(np.intp),
            np.arange(len(gap)), tuple(f"r{k}" for k in range(n_raters)), rater.astype(np.intp),
        )  # fmt: skip
        one = rank_systems(votes, "q", options, is_order_drawn=True)
        held += [one.wins[name].low <= 0.5 <= one.wins[name].high for name in one.wins]
        false += any(p_adjusted(c) <= 0.05 for c in one.contrasts.values())
        best += not one.rivals()
    assert np.mean(held) > 0.95 - 3 * math.sqrt(0.05 * 0.95 / n_sims)
    assert false / n_sims < 0.05 + 3 * math.sqrt(0.05 * 0.95 / n_sims)
    assert best / n_sims <= 0.05


def declared(found, name="engaging_system"):
    return {(row["system"], row["against"]): row for row in rows_of(table(found, f"declared-{name}"))}


@pytest.mark.parametrize("kind", ["declared", "fixed", "two systems"])
def test_answer_headlines_table_and_power_read_the_same_tests(study, kind):
    """One model: the numbers under every claim are those of ``primary_tests``."""
    spec = study.spec.analysis
    first, *others = spec.comparisons
    if kind == "two systems":
        spec = spec.model_copy(update={"comparisons": [first.model_copy(update={"levels": ["fern", "reed"]}), *others]})
    study = dataclasses.replace(study, spec=study.spec.model_copy(update={"analysis": spec}))
    options = dataclasses.replace(OPTIONS, has_fixed_items=kind == "fixed")
    data = data_of(study, rows_from(study, TRUE, n_raters=15, spread=0.4))
    found = run(data, options)
    tests = ANALYSES.get("leaderboard").primary_tests(data, spec.comparisons[0], options)
    assert len(tests) == (1 if kind == "two systems" else 6)
    for (system, against), row in declared(found).items():
        test = tests.get(f"{system} against {against}") or tests[f"{against} against {system}"]
        assert row["p"] == pytest.approx(test.p_value)
        assert row["p_adjusted"] == pytest.approx(p_adjusted(test))
        assert row["difference"].value == pytest.approx(abs(test.value))
    for line in found.headlines:
        pair = tuple(line.label.split(" preferred to "))
        assert p_adjusted(line.estimate) == pytest.approx(declared(found)[pair]["p_adjusted"])
        assert line.estimate.value == declared(found)[pair]["preferred"].value
    beaten = [a for (s, a), row in declared(found).items() if s == "Fern" and row["p_adjusted"] <= 0.05]
    assert sorted(claim.what for claim in found.claims) == sorted(f"Fern is ahead of {name}" for name in beaten)
    best = "Fern is preferred to Reed" if kind == "two systems" else "Fern is the best"
    assert (best in found.answer) == (len(beaten) == len(table(found, "board").rows) - 1)
    if kind == "two systems":
        assert any(section.name == "leaderboard-all-systems" for section in found.sections)


def test_a_margin_is_one_of_shares_of_choices(study):
    """Equal systems and many raters: equivalent within 20 percentage points; the strongest and the weakest are not."""
    spec = study.spec.analysis
    update = {"test": "equivalence", "margin": 0.2, "levels": ["fern", "reed"]}
    for strengths, is_equivalent in ((dict.fromkeys(SYSTEMS, 0.0), True), (TRUE, False)):
        data = data_of(study, rows_from(study, strengths, n_raters=120))
        comparison = spec.comparisons[0].model_copy(update=update)
        (test,) = ANALYSES.get("leaderboard").primary_tests(data, comparison, OPTIONS).values()
        assert (p_adjusted(test) <= 0.05) == is_equivalent
        assert (0.3 < test.low < test.high < 0.7) == is_equivalent


def test_fixed_items_are_said_in_every_claim(study):
    options = dataclasses.replace(OPTIONS, has_fixed_items=True)
    data = data_of(study, rows_from(study, TRUE, n_raters=30))
    found = run(data, options)
    assert "on the 24 items shown" in found.answer
    assert "declared as fixed, so this says nothing about other items" in found.certainty
    assert all("on the 24 items shown" in line.sentence for line in found.headlines)
    assert not any(claim.is_general for claim in found.claims)
    assert "(taken as fixed)" in table(found, "board").caption
    general = run(data)
    assert "items shown" not in general.answer
    assert (
        "on 24 items that show 32 transcripts; the tests are about other raters and other items." in general.certainty
    )
    assert all(claim.is_general for claim in general.claims)


def test_one_item_is_a_claim_about_this_item(study):
    rows = rows_from(study, TRUE, n_raters=40, per_rater=24)
    item = next(row[1] for row in rows if "fern" in row[5])
    found = run(data_of(study, [row for row in rows if row[1] == item]))
    assert "on the one item shown" in found.answer
    assert "There is one item only" in found.certainty


def test_what_holds_for_these_items_only_is_said_so(study):
    """Raters agree on each item, but the items do not: a claim about these items, none about others."""
    rng = np.random.default_rng(3)
    items = [item for item in study.rated_items if not item.metadata.get("gold")]
    favours = {item.id: rng.random() < (0.8 if "fern" in (item.a.system, item.b.system) else 0.5) for item in items}
    rows = []
    for row in rows_from(study, dict.fromkeys(SYSTEMS, 0.0), n_raters=60):
        pair = sorted(row[5].split("|"), key=SYSTEMS.index)
        rows.append((*row[:-1], pair[0 if favours[row[1]] else 1] if rng.random() < 0.9 else row[-1]))
    found = run(data_of(study, rows))
    assert "No best system" in found.answer
    assert "Limited to these 24 items, Fern is " in found.certainty
    assert "to say so of other items" in found.certainty


def test_intervals_at_the_edge_have_a_width(study):
    """18 of 18 wins, and ties only."""
    rows = [row for row in rows_from(study, TRUE, n_raters=9) if set(row[5].split("|")) == {"fern", "moss"}]
    for choice in ("fern", "tie"):
        found = run(data_of(study, [(*row[:-1], choice) for row in rows]))
        for row in rows_of(table(found, "board"))[:2]:
            assert row["wins_share"].low < row["wins_share"].value < row["wins_share"].high
            assert row["strength"].high - row["strength"].low > 0.2


def test_rank_intervals_follow_from_the_tests(study):
    found = run(data_of(study, rows_from(study, TRUE, n_raters=30)))
    worse = {}
    for (system, against), row in declared(found).items():
        if row["p_adjusted"] <= 0.05:
            worse.setdefault(system, set()).add(against)
    for row in rows_of(table(found, "board")):
        low = 1 + sum(row["system"] in losers for losers in worse.values())
        high = 4 - len(worse.get(row["system"], ()))
        assert row["rank_interval"] == (f"{low}" if low == high else f"{low}–{high}")


def test_both_are_bad_counts_as_a_tie_and_is_reported(study):
    tied = rows_from(study, TRUE, n_raters=6, tie=0.6)
    n_ties = sum(row[-1] == "tie" for row in tied)
    bad = [(*row[:-1], "both_bad") if row[-1] == "tie" else row for row in tied]
    as_ties, as_bad = run(data_of(study, tied)), run(data_of(study, bad))
    assert rows_of(table(as_bad, "board")) == rows_of(table(as_ties, "board"))
    assert f"{n_ties:,} answers “both are bad”" in str(as_bad)
    assert "count as ties in the ranking" not in str(as_ties)


def test_agreement_of_raters_on_the_same_pair(study):
    rows = rows_from(study, TRUE, n_raters=15, tie=0.6)
    rows = [(*row[:-1], "cannot_tell") if k % 17 == 0 else row for k, row in enumerate(rows)]
    shown = rows_of(table(run(data_of(study, rows)), "agreement"))
    assert [row["question"] for row in shown] == ["Engagingness", "Interestingness", "Humanness", "Knowledge"]
    pairs = {}
    for rater, item, criterion, *_, choice in rows:
        if criterion == "engagingness":
            pairs.setdefault(item, []).append((rater, choice))
    same = [
        np.mean([a[1] == b[1] for k, a in enumerate(given) for b in given[k + 1 :]])
        for given in pairs.values()
        if len(given) > 1
    ]
    assert shown[0]["pairs"] == len(same)
    assert shown[0]["agreeing"].value == pytest.approx(np.mean(same))
    assert shown[0]["alpha"].value != pytest.approx(shown[0]["alpha_decided"].value)
    notes = table(run(data_of(study, rows)), "agreement").notes
    assert notes[1] == "Ties and “cannot tell” are answers of their own in the first column of alpha."
    none = [
        (*row[:-1], "cannot_tell") if k % 17 == 0 else row for k, row in enumerate(rows_from(study, TRUE, n_raters=15))
    ]
    notes = table(run(data_of(study, none)), "agreement").notes
    assert notes[1] == "“Cannot tell” is an answer of its own in the first column of alpha."


@pytest.mark.parametrize(("n_raters", "taste_sd"), [(6, 0.4), pytest.param(15, 0.0, marks=pytest.mark.slow)])
def test_equal_systems_are_seldom_called_different(study, n_raters, taste_sd):
    """The template with items that favour systems at random: at most 5 % of studies claim a difference (calibration.md)."""
    n_studies, family = 60, ANALYSES.get("leaderboard")
    comparison = study.spec.analysis.comparisons[0]
    n_false = 0
    for seed in range(n_studies):
        truth = Truth({}, item_sd=0.6, seed=seed)
        habits = Habits(careless_share=0.05, taste_sd=taste_sd)
        columns = simulate_judgments(study, truth, habits, n_raters=n_raters, seed=seed)
        tests = family.primary_tests(data_from_arrays(study, columns), comparison, OPTIONS)
        n_false += any(p_adjusted(test) <= 0.05 for test in tests.values())
    assert n_false <= stats.binom.ppf(0.99, n_studies, 0.05)


def test_groups_of_raters_are_tested_over_raters_and_items():
    """One value per rater is close to ``scipy.stats.ttest_ind(equal_var=False)``; shared items make the test more careful."""
    rng = np.random.default_rng(2)
    groups = RaterGroups("g", "G", "g", ("a", "b"), np.repeat([0, 1], 12))
    values = rng.normal(0, 1, 24) + 1.1 * groups.of_rater
    rater = np.arange(24)

    def nothing(chosen):
        return Estimate(float(values[chosen].mean()), int(chosen.sum()), "mean")

    alone = groups_test(groups, values, rater, nothing, has_items=True).test
    welch = stats.ttest_ind(values[:12], values[12:], equal_var=False).pvalue
    assert alone.p_value == pytest.approx(welch, rel=0.4)
    shared = groups_test(groups, values, rater, nothing, items=np.repeat([0, 1, 2, 3], 6), has_items=True).test
    assert shared.p_value > alone.p_value


@pytest.mark.parametrize("has_items", [True, False])
def test_one_group_is_not_compared_and_the_reason_is_in_words(has_items):
    groups = RaterGroups("g", "G", "g", ("a", "b"), np.array([0, 0, 0, 1]))
    share = Estimate(0.5, 4, "mean")
    test = groups_test(groups, np.arange(4.0), np.arange(4), lambda chosen: share, has_items=has_items).test
    assert no_difference_words([test]) == "The groups cannot be compared: fewer than two groups have two raters."


def test_two_systems_are_one_test_in_every_part(study):
    rows = [row for row in rows_from(study, TRUE, n_raters=30) if set(row[5].split("|")) == {"fern", "clove"}]
    data = data_of(study, rows)
    raters = data.sessions["rater"].to_list()
    given = [(r, "post", "chatbot_experience", "", ("Never", "Every day")[k % 2], None) for k, r in enumerate(raters)]
    data = dataclasses.replace(data, answers=pl.DataFrame(given, schema=ANSWER_COLUMNS, orient="row"))
    names = {"fern", "clove"}
    spec = study.spec.model_copy(update={"systems": [s for s in study.spec.systems if s.name in names]})
    items = tuple(item for item in study.items if set(item.systems) <= names)
    found = run(dataclasses.replace(data, study=dataclasses.replace(study, spec=spec, items=items)))
    (row,) = rows_of(table(found, "subgroup-chatbot_experience"))
    assert row["system"] == "Fern", "the other has the rest: its test would be the same, and be counted twice"
    assert row["p_adjusted"] == row["p"]
    assert "third systems" not in str(found)


def test_the_order_of_pairs_in_the_data_does_not_change_agreement(study):
    rows = rows_from(study, TRUE, n_raters=15)
    given = [(k, "one", *row[2:]) for k, row in enumerate(rows, 1)]  # one item with many pairs of systems
    counts = [choice_counts(data_of(study, rows), "engagingness") for rows in (given, given[::-1])]
    assert np.array_equal(*counts)


def test_a_difference_reads_as_the_share_that_tables_show(study):
    """With ties, a sentence about a hypothesis and the table give the same share: a tie counts half in both."""
    data = data_of(study, rows_from(study, TRUE, n_raters=15, tie=0.8))
    tests = ANALYSES.get("leaderboard").primary_tests(data, study.spec.analysis.comparisons[0], OPTIONS)
    for (first, second), row in declared(run(data, OPTIONS)).items():
        gap = tests.get(f"{first} against {second}") or flipped(tests[f"{second} against {first}"])
        assert gap.details["tie"] > 0
        assert readable(gap)[0].value == pytest.approx(row["preferred"].value, abs=1e-9)
