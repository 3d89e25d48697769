"""Arenas from simulated raters to the report: every vote with its conversations, weights and style, from database and export."""

import polars as pl
import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import load_data, load_exported
from dialometer.analysis.families.votes.system_votes import system_votes
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.exchange.exports.export import export_study
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.model.values import BOTH_BAD, TIE
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store
from report_parts import table_of


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """An arena that draws uncertain pairs, with 12 simulated raters."""
    folder = tmp_path_factory.mktemp("arena") / "s"
    copy_template("arena", folder)
    file = folder / "study.yaml"
    file.write_text(file.read_text().replace("pairs: balanced", "pairs: uncertain"))
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        flow = Flow(study, store)
        simulate(study, EngineAccess(flow), draw_truth(study, 3), n_raters=12, seed=3, start_ms=1_800_000_000_000)
        yield study, store, folder


def test_draws_are_stored_and_weigh_the_votes(held):
    study, store, _ = held
    sessions = store.sessions.all()
    drawn = [pair for session in sessions for pair in session.draw.pairs.values()]
    assert len({pair.probability for pair in drawn}) > 5, "the rule follows the votes"
    assert all(0.2 / 3 <= pair.probability < 1 for pair in drawn)
    counted = store.records.pair_votes("overall", "simulated")
    votes = [j for j in store.records.judgments() if j.criterion == "overall"]
    one = counted["haze", "maple"]
    assert one.first == sum(j.value == "haze" and set(j.order) == {"haze", "maple"} for j in votes)
    assert one.neither == sum(j.value in (TIE, BOTH_BAD) and set(j.order) == {"haze", "maple"} for j in votes)
    assert counted["maple", "haze"].second == one.first
    data = load_data(study, store)
    given = system_votes(data)
    weights = {
        (s.ordinal, item): (3 * pair.probability) ** -0.5 for s in sessions for item, pair in s.draw.pairs.items()
    }
    expected = [
        weights[int(given.votes.raters[r][1:]), given.votes.items[i]]
        for r, i in zip(given.votes.rater, given.votes.item, strict=True)
    ]
    assert given.votes.weight.tolist() == pytest.approx(expected)


def test_conversations_are_counted_for_each_side(held):
    study, store, _ = held
    battles = load_data(study, store).battles
    assert len(battles) == 12 * 3 * 2
    turns = store.conversations.turns()
    assert battles["n_replies"].sum() == sum(turn.role == "agent" for turn in turns)
    words = sum(len(turn.text.split()) for turn in turns if turn.meta["system"] == "maple" and turn.role == "agent")
    assert battles.filter(pl.col("system") == "maple")["words"].sum() == words
    assert not battles["is_named"].any()


def test_the_report_and_the_same_from_an_export(held, tmp_path):
    study, store, _ = held
    export_study(study, store, tmp_path / "export")
    given, again = load_data(study, store), load_exported(study, tmp_path / "export")
    said = pl.read_csv(tmp_path / "export" / "chat_turns.csv").group_by("session", "item", "side").agg("turn")
    assert all(turns == list(range(len(turns))) for turns in said["turn"].to_list()), "each side counts from 0"
    key = ["rater", "item", "system"]
    assert again.battles.sort(key).equals(given.battles.sort(key))
    report = analyse(study, store, n_resamples=100)
    outcomes = table_of(report, "leaderboard-outcomes")
    assert sum(row[2] for row in outcomes.rows) == 36
    section = next(section for section in report.sections if section.name == "leaderboard-outcomes")
    assert section.paragraphs[0].startswith("Overall: 36 votes, "), "other questions are counted elsewhere"
    assert [column.name for column in outcomes.columns][5:7] == ["tied", "both_bad"]
    assert len(table_of(report, "leaderboard-conversations").rows) == 3
    assert "conversations of their own" in str(report), "raters of an arena do not judge the same things"
    assert not any("hardly agree" in step for step in report.summary.next_steps)
    assert "Assignment of raters" in [method.what for method in report.methods]
    (style,) = [section for section in report.sections if section.name.endswith("style")]
    assert "36 votes for" in style.problem, "too few votes for so many parameters"
