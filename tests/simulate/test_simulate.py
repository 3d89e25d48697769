"""Simulated raters: the truth they carry comes out, and an interruption loses nothing."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from commands import run as dialometer
from dialometer.design.assign import build_plan
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template, template_names
from dialometer.errors import AgentError
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store
from dialometer.storage.table import long_table

START_MS = 1_800_000_000_000


def run(folder, *, n_raters=16, seed=1, habits=None, database=None, **truth_settings):
    study = load_study(folder)
    truth = draw_truth(study, seed, **truth_settings)
    store = Store.open(database or folder / "study.db")
    flow = Flow(study, store, clock=lambda: START_MS)
    progress = simulate(
        study, EngineAccess(flow), truth, n_raters=n_raters, seed=seed, start_ms=START_MS, habits=habits
    )
    return study, truth, store, progress


def table_of(store):
    return long_table(store.records.judgment_batches()).filter(~pl.col("is_practice"))


@pytest.fixture
def folder(tmp_path):
    def make(name, n_items=None):
        path = tmp_path / f"{name}-{len(list(tmp_path.iterdir()))}"
        copy_template(name, path)
        if n_items is not None:  # the first is for practice
            lines = (path / "items.jsonl").read_text().splitlines(keepends=True)
            (path / "items.jsonl").write_text("".join(lines[: n_items + 1]))
        return path

    return make


@pytest.mark.parametrize("name", template_names())
def test_every_template_can_be_simulated(folder, name, study_url):
    _, _, store, progress = run(folder(name), n_raters=3, database=study_url)
    with store:
        assert progress.n_finished == progress.n_arrived > 0
        frame = table_of(store)
        assert len(frame) > 0
        assert frame["duration_s"].min() > 0
        assert set(frame["source"]) == {"simulated"}


@pytest.mark.slow
def test_system_differences_are_recovered_from_magnitudes(folder):
    habits = Habits(careless_share=0, position_bias=0)
    study, truth, store, _ = run(folder("anchoring"), n_raters=40, habits=habits, spread=0.8)
    with store:
        frame = table_of(store).with_columns(pl.col("value").log().alias("log"))
    for criterion in ("readability", "coherence"):
        rows = frame.filter((pl.col("criterion") == criterion) & (pl.col("factor_anchor") == "none"))
        means = dict(rows.group_by("system").agg(pl.col("log").mean()).iter_rows())
        for a, b in (("thred", "seq2seq"), ("hred", "seq2seq")):
            expected = habits.slope * np.mean(
                [truth.quality(i.id, criterion, a) - truth.quality(i.id, criterion, b) for i in study.rated_items]
            )
            assert means[a] - means[b] == pytest.approx(expected, abs=0.05)


def test_the_anchor_pulls_and_steadies(folder):
    for pull, pulled in ((0.0, False), (0.7, True)):
        _, _, store, _ = run(
            folder("anchoring", n_items=8),
            n_raters=40,
            seed=3,
            habits=Habits(anchor_pull=pull, careless_share=0),
        )
        with store:
            frame = table_of(store)
        raters = frame.group_by("rater", "factor_anchor").agg(pl.col("value").log().mean().alias("m"))
        spread = {a: raters.filter(pl.col("factor_anchor") == a)["m"].std() for a in ("none", "both")}
        centre = {a: raters.filter(pl.col("factor_anchor") == a)["m"].mean() for a in ("none", "both")}
        assert (spread["both"] < 0.6 * spread["none"]) == pulled
        if pulled:
            assert abs(centre["both"] - np.log(80)) < 0.3


def test_position_bias_favours_the_first_place(folder):
    shares = []
    for bias, name in ((0.0, "acute"), (1.0, "strategies")):
        _, _, store, _ = run(folder(name), n_raters=30, habits=Habits(position_bias=bias, careless_share=0), spread=0.0)
        with store:
            frame = table_of(store)
        shares.append((frame["side"] == 1).mean())
    assert abs(shares[0] - 0.5) < 0.06
    assert shares[1] > 0.7


def test_careless_raters_are_caught_by_gold(folder):
    _, _, store, _ = run(folder("avatar"), n_raters=24, habits=Habits(careless_share=0.5))
    with store:
        excluded = {session.ordinal for session in store.sessions.all() if session.is_excluded}
        frame = table_of(store)
    assert excluded
    fast = frame.group_by("rater").agg(pl.col("duration_s").median()).sort("duration_s")["rater"].to_list()
    assert {int(rater[1:]) for rater in fast[: len(excluded) // 2]} & excluded


def test_drop_outs_leave_and_their_places_are_filled(folder):
    path = folder("strategies")
    text = (path / "study.yaml").read_text()
    (path / "study.yaml").write_text(re.sub(r"stale_after_minutes: .*", "stale_after_minutes: 5", text))
    _, _, store, progress = run(path, n_raters=40, habits=Habits(drop_out=0.4))
    with store:
        assert 8 <= progress.n_left <= 26
        states = {state for (_, state) in store.counts.session_counts()}
        assert "stale" in states
        assert progress.n_finished + progress.n_left == 40


def test_the_same_seed_gives_the_same_judgments_on_both_databases(folder, tmp_path, study_url):
    frames = []
    for number, database in enumerate((None, study_url)):
        path = tmp_path / f"copy{number}"
        copy_template("strategies", path)
        _, _, store, _ = run(path, n_raters=6, database=database)
        with store:
            frames.append(table_of(store).drop("judgment").sort("rater", "position", "criterion"))
    assert frames[0].equals(frames[1])


def test_plans_can_be_rebuilt_from_the_database(folder):
    study, _, store, _ = run(folder("strategies"), n_raters=5)
    with store:
        for session in store.sessions.all():
            plan = build_plan(study, session.draw)
            assert dict(plan.condition) == dict(session.condition)
            stored = {
                (j.item_id, j.position, j.order) for j in store.records.judgments(session.id) if not j.is_practice
            }
            assert stored == {(t.item_id, t.position, t.systems) for t in plan.tasks if not t.is_practice}


def test_killing_the_process_loses_no_acknowledged_judgment(folder):
    """kill -9 in the middle: what was told as stored is there, and running again ends with the same data as an undisturbed run."""
    path = folder("anchoring")
    options = ("--raters", "3", "--seed", "5")
    command = [sys.executable, "-m", "dialometer", "simulate", str(path), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    told = 0
    assert process.stderr is not None
    for line in process.stderr:
        told = json.loads(line)["judgments_stored"]
        if told > 400:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    with Store.open(path / "study.db") as store:
        assert store.check() == []
        n_stored = sum(1 for _ in store.records.judgments())
        assert n_stored >= told > 400
        assert not any(session.state == "completed" for session in store.sessions.all()) or n_stored < 3 * 306
    dialometer("simulate", path, *options)
    with Store.open(path / "study.db") as store:
        frame = table_of(store)
    undisturbed = path.parent / "undisturbed"
    copy_template("anchoring", undisturbed)
    dialometer("simulate", undisturbed, *options)
    with Store.open(undisturbed / "study.db") as store:
        other = table_of(store)
    columns = ["rater", "item", "system", "criterion", "value", "position", "side"]
    assert frame.select(columns).sort(columns).equals(other.select(columns).sort(columns))


def test_conversations_are_judged_by_the_system_they_were_with(folder):
    study, truth, store, _ = run(folder("chat"), n_raters=30, habits=Habits(careless_share=0), spread=0.8, item_sd=0.0)
    with store:
        means = dict(
            table_of(store)
            .filter(pl.col("criterion") == "overall")
            .group_by("system")
            .agg(pl.col("value").mean())
            .iter_rows()
        )
    better, worse = sorted(means, key=lambda system: -truth.systems["overall"][system])
    assert means[better] > means[worse] + 0.5
    assert set(means) == {system.name for system in study.spec.systems}


def test_conversations_go_on_after_an_agent_was_down(folder, monkeypatch):
    """A run that ends because an agent does not answer can be repeated; the conversations are those of an undisturbed run."""
    path = folder("chat")
    study = load_study(path)
    truth = draw_truth(study, 1)

    def talks(store):
        sessions = store.sessions.all()
        return {
            (session.ordinal, item.id): [
                (turn.role, turn.text) for turn in store.conversations.turns(session.id, item.id)
            ]
            for session in sessions
            for item in study.items
        }

    def go(access):
        simulate(study, access, truth, n_raters=2, seed=1, start_ms=START_MS, habits=Habits(careless_share=0))

    with Store.open(path / "undisturbed.db", create=True) as store:
        go(EngineAccess(Flow(study, store, clock=lambda: START_MS)))
        expected = talks(store)
    with Store.open(path / "study.db", create=True) as store:
        access = EngineAccess(Flow(study, store, clock=lambda: START_MS))
        agent = access.chats.agent(study.spec.systems[0].name)
        answers, calls = type(agent).reply, []

        def reply(self, history, seed):
            calls.append(len(history))
            if len(calls) == 3:
                raise AgentError("the agent is down")
            return answers(self, history, seed=seed)

        monkeypatch.setattr(type(agent), "reply", reply)
        with pytest.raises(AgentError, match="down"):
            go(access)
        assert any(turns and turns[-1][0] == "user" for turns in talks(store).values())
        go(access)
        assert talks(store) == expected
