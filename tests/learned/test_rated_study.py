"""Judgments of a study go in directly: conversations that simulated raters held and rated."""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.errors import DialometerError, NotEnoughData
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.learned.data.rated import read_rated
from dialometer.learned.data.splits import groups_of
from dialometer.model.dialogue import Turn
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

START_MS = 1_800_000_000_000


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rated") / "chat"
    copy_template("chat", folder)
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        flow = Flow(study, store, clock=lambda: START_MS)
        door = EngineAccess(flow)
        simulate(study, door, draw_truth(study, 5), n_raters=12, seed=5, start_ms=START_MS, habits=Habits())
    return folder


def test_conversations_of_a_study(collected):
    rated = read_rated(collected)
    with Store.open(collected / "study.db") as store:
        spoken = {(turn.role, turn.text) for turn in store.conversations.turns()}
    assert len(rated) > 10
    assert {one.bot for one in rated} == {"juno", "tak"}
    assert all(one.id == f"{one.user}/{one.dialogue.metadata['item']}" for one in rated)
    assert all((turn.role, turn.text) in spoken for one in rated for turn in one.dialogue.turns)
    assert all(1 <= one.rating <= 5 for one in rated)


def test_another_criterion_by_name(collected):
    by_name = {one.id: one.rating for one in read_rated(collected, criterion="understood")}
    overall = {one.id: one.rating for one in read_rated(collected)}
    assert set(by_name) == set(overall)
    assert by_name != overall
    with pytest.raises(DialometerError, match=r"'charm' is not in this study .*overall"):
        read_rated(collected, criterion="charm")


def test_conversations_are_grouped_by_their_rater(collected):
    rated = read_rated(collected)
    # Simulated raters all say the same; people do not.
    assert {group.split()[0] for group in groups_of(rated)} == {"item"}
    own = [
        replace(one, dialogue=replace(one.dialogue, turns=(*one.dialogue.turns, Turn("User", one.id, "user"))))
        for one in rated
    ]
    assert groups_of(own) == [f"user {one.user}" for one in own]


def test_a_study_without_judgments(collected, tmp_path):
    shutil.copytree(collected, tmp_path / "copy", ignore=shutil.ignore_patterns("study.db*"))
    with pytest.raises(NotEnoughData, match="nothing has been collected"):
        read_rated(tmp_path / "copy")


def test_a_study_that_rates_no_dialogues(tmp_path):
    copy_template("anchoring", tmp_path / "anchoring")
    with pytest.raises(DialometerError, match="does not rate whole dialogues"):
        read_rated(tmp_path / "anchoring")


def with_sources(collected, folder, sources):
    """A copy of the study in which some sessions come from others than simulated raters."""
    shutil.copytree(collected, folder)
    with closing(sqlite3.connect(folder / "study.db")) as database, database:
        ids = [row[0] for row in database.execute("SELECT id FROM sessions ORDER BY ordinal")]
        for number, one in enumerate(ids):
            database.execute("UPDATE sessions SET source = ? WHERE id = ?", (sources(number), one))
    return folder


def test_nothing_is_learned_from_models(collected, tmp_path):
    mixed = read_rated(with_sources(collected, tmp_path / "mixed", lambda n: "model" if n % 2 else "simulated"))
    every = {one.user for one in read_rated(collected)}
    assert {one.user for one in mixed} < every
    alone = with_sources(collected, tmp_path / "models", lambda _: "model")
    with pytest.raises(NotEnoughData, match=r"no human rater has given a judgment .* models are not learned from"):
        read_rated(alone)


def test_people_come_before_simulated_raters(collected, tmp_path):
    kinds = ("person", "simulated", "model")
    found = read_rated(with_sources(collected, tmp_path / "people", lambda n: kinds[n % 3]))
    alone = with_sources(collected, tmp_path / "only", lambda n: "person" if n % 3 == 0 else "model")
    assert [one.id for one in found] == [one.id for one in read_rated(alone)]
    assert len(found) < len(read_rated(collected))
