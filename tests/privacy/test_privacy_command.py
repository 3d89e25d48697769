"""dialometer privacy: nothing stored is unexplained; withdrawal and retention erase down to files and archives."""

from __future__ import annotations

import json

import pytest
import yaml

from commands import result_of
from dialometer.design.load import load_study
from dialometer.design.lock import fingerprint, part_hashes
from dialometer.design.templates import copy_template
from dialometer.exchange.exports.export import export_study
from dialometer.exchange.exports.inventory import EXPLAINED
from dialometer.flow.engine import Flow, now_ms
from dialometer.flow.simulated import view_of
from dialometer.flow.submissions import Timing
from dialometer.simulate.answering import answer_screen
from dialometer.simulate.rater import Habits, draw_rater
from dialometer.simulate.truth import draw_truth
from dialometer.storage.erasing import DAY_MS
from dialometer.storage.schema import metadata
from dialometer.storage.store import Store

SECRET = "I am Maria Quimby of Elm Street"
PERSON = "PID-5f0c-quimby"


def take_part(study, store, external_id, at_ms, remark=""):
    """A person walks through the whole study."""
    flow = Flow(study, store)
    session = flow.arrive(
        platform="prolific", external_id=external_id, params={"SESSION_ID": "s-" + external_id}, at_ms=at_ms
    ).session
    rater, truth = draw_rater(1, 3, Habits(careless_share=0)), draw_truth(study, 3)
    for n in range(80):
        session = store.sessions.get(session.id)
        screen = flow.screen(session)
        if screen.kind == "done":
            return session
        answers = answer_screen(study, truth, rater, view_of(screen))
        answers |= {field.name: remark for field in screen.fields if remark and field.scale.type == "text"}
        shown = at_ms + 60_000 * n
        flow.submit(session.id, screen.key, answers, Timing(shown, shown + 30_000), f"{session.id}-{screen.key}")
    raise AssertionError("the study has no end")


@pytest.fixture
def folder(tmp_path):
    copy_template("acute", tmp_path / "study")
    path = tmp_path / "study" / "study.yaml"
    spec = yaml.safe_load(path.read_text())
    spec["privacy"] = {"identifiers_days": 30, "answers_days": 400}
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return tmp_path / "study"


@pytest.fixture
def run(folder):
    def call(*words, fails=False):
        done = result_of("privacy", folder, *words)
        if not fails:
            assert done.exit_code == 0, done.output + repr(done.exception)
        return done

    return call


def test_every_table_is_explained():
    explained = [kept.table for kept in EXPLAINED]
    assert sorted(explained) == sorted(table.name for table in metadata.tables.values())
    assert all(kept.what and kept.why for kept in EXPLAINED)


def test_what_is_stored_is_told(folder, run):
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        take_part(study, store, PERSON, now_ms(), SECRET)
        consent = Flow(study, store).consent_version(store.sessions.all()[0])
    found = json.loads(run("--json").stdout)
    by_table = {one["table"]: one for one in found["stored"]}
    assert by_table["people"]["n_rows"] == 1
    assert by_table["people"]["kept_days"] == 30
    assert by_table["judgments"]["kept_days"] == 400
    assert found["identifiers"] == [
        {"platform": "prolific", "n_named": 1, "n_forgotten": 0, "parameters": ["SESSION_ID"]}
    ]
    assert found["consent_versions"] == {consent: 1}
    assert found["free_text_questions"] == ["reasons"]
    assert PERSON not in json.dumps(found), "the answer names nobody"
    told = run().stdout
    assert "IP addresses" in told
    assert PERSON not in told


def test_a_withdrawal_reaches_database_export_and_new_copies(folder, run, tmp_path):
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        gone = take_part(study, store, PERSON, now_ms(), SECRET)
        code = store.withdrawals.code(gone.id, "the browser's token")
        take_part(study, store, "PID-other", now_ms())
        before = export_study(study, store, folder / "export")
    files = lambda where: [path for path in where.rglob("*") if path.is_file()]  # noqa: E731
    assert any(SECRET.encode() in path.read_bytes() for path in files(folder / "export"))
    backup = folder.with_name(f"{folder.name}-backup-20260102-030405.zip")
    backup.touch()
    done = json.loads(run("--withdraw", code.lower(), "--yes", "--json").stdout)
    assert done["withdrawn"]
    assert done["judgments"] > 0
    assert done["made_before"] == [str(backup), str(folder / "export")], "copies made before are named"
    with Store.open(folder / "study.db") as store:
        after = export_study(study, store, tmp_path / "new")
        assert store.sessions.person(gone.id) is None
    for path in [*files(tmp_path / "new"), *folder.glob("study.db*")]:
        content = path.read_bytes()
        for word in (SECRET, PERSON, gone.id):
            assert word.encode() not in content or (word == gone.id and path.parent == folder), (path, word)
    assert after.states == {"completed": 1, "withdrawn": 1}, "the counts stay honest"
    assert before.n_raters == 2
    assert after.n_raters == 1
    again = json.loads(run("--withdraw", code, "--json").stdout)
    assert (again["withdrawn"], again["judgments"]) == (False, done["judgments"])


def test_a_wrong_code_erases_nothing(folder, run):
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        take_part(study, store, PERSON, now_ms())
    done = run("--withdraw", "AAAA-BBBB-CCCC-DDDD", "--yes", fails=True)
    assert done.exit_code != 0
    assert "no session of this study has the code" in str(done.exception)
    with Store.open(folder / "study.db") as store:
        assert [session.state for session in store.sessions.all()] == ["completed"]


def test_without_yes_it_asks_first(folder, run):
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        session = take_part(study, store, PERSON, now_ms())
        code = store.withdrawals.code(session.id, "the browser's token")
    assert run("--withdraw", code, fails=True).exit_code == 1
    with Store.open(folder / "study.db") as store:
        assert store.sessions.get(session.id).state == "completed"


def test_what_is_past_its_time_goes(folder, run):
    study = load_study(folder)
    now = now_ms()
    with Store.open(folder / "study.db") as store:
        old = take_part(study, store, "PID-old", now - 500 * DAY_MS, SECRET)
        named = take_part(study, store, "PID-named", now - 40 * DAY_MS)
        fresh = take_part(study, store, "PID-fresh", now - DAY_MS)
    assert "--apply-retention" in run().stdout
    done = json.loads(run("--apply-retention", "--yes", "--json").stdout)
    assert (done["identifiers_erased"], done["sessions_erased"]) == (2, 1)
    with Store.open(folder / "study.db") as store:
        assert store.sessions.get(old.id).state == "withdrawn"
        assert (store.sessions.person(named.id).external_id, dict(store.sessions.person(named.id).params)) == ("", {})
        assert list(store.records.judgments(named.id)), "what was given stays, under the pseudonym"
        assert store.sessions.person(fresh.id).external_id == "PID-fresh"
    content = b"".join(path.read_bytes() for path in folder.glob("study.db*"))
    assert b"PID-named" not in content
    assert b"PID-old" not in content
    assert SECRET.encode() not in content
    assert "Nothing is past its time limit" in run("--apply-retention", "--yes").stdout


def test_a_study_without_a_promise_says_how_to_make_one(folder, run):
    path = folder / "study.yaml"
    spec = yaml.safe_load(path.read_text())
    del spec["privacy"]
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    with Store.open(folder / "study.db"):
        pass
    assert "privacy: {identifiers_days" in str(run("--apply-retention", fails=True).exception)


def test_settings_that_came_later_leave_old_locks_valid(tmp_path):
    copy_template("acute", tmp_path / "plain")
    plain = load_study(tmp_path / "plain")
    assert "study.yaml: privacy" not in part_hashes(plain)
    path = tmp_path / "plain" / "study.yaml"
    path.write_text(path.read_text() + "\nprivacy: {}\n")
    assert fingerprint(load_study(tmp_path / "plain")) == fingerprint(plain)
    path.write_text(path.read_text().replace("privacy: {}", "privacy: {answers_days: 3}"))
    assert fingerprint(load_study(tmp_path / "plain")) != fingerprint(plain)
