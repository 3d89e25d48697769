"""Backing up, restoring and verifying a study from the command line."""

import json
import shutil
import sqlite3
import subprocess
import sys
import zipfile

import psycopg
import pytest
from typer.testing import CliRunner

from commands import invoke, result_of
from dialometer.cli import build_app
from dialometer.errors import DialometerError
from dialometer.exchange.backups.packing import opened_backup
from dialometer.storage import Store
from dialometer.storage.safety.acknowledged import ACKNOWLEDGED_FILE, AcknowledgementLog
from dialometer.web.dashboard.running_studies import StudyFolders

HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT * FROM sessions").fetchall()
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A study with two raters, and its backup."""
    folder = tmp_path_factory.mktemp("backups")
    invoke("new", "acute", folder / "s")
    invoke("simulate", folder / "s", "--raters", 2)
    invoke("backup", folder / "s", "--to", folder / "b.zip")
    return folder


@pytest.fixture
def study(collected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(collected / "b.zip", tmp_path / "b.zip")
    return shutil.copytree(collected / "s", tmp_path / "s")


def n_sessions(folder):
    with sqlite3.connect(folder / "study.db") as connection:
        found = connection.execute("SELECT count(*) FROM sessions").fetchone()[0]
    connection.close()
    return found


def refused(*words, answer=""):
    done = CliRunner().invoke(build_app(), [str(word) for word in words], input=answer)
    assert done.exit_code != 0
    return f"{done.output}{done.exception}"


def test_a_backup_says_what_it_holds_and_leaves_secrets_out(study):
    (study / "invitations.txt").write_text("secret\n")
    (study / ".serving.json").write_text("{}")
    (study / "report").mkdir()
    (study / "report" / "report.json").write_text("{}")
    told = invoke("backup", study, "--to", "plain.zip")
    assert "2 sessions" in told
    assert "invitations.txt" in told
    made = json.loads(invoke("backup", study, "--to", "all.zip", "--with-secrets", "--json"))
    assert made["holds"]["sessions"] == 2
    names = [zipfile.ZipFile(file).namelist() for file in ("plain.zip", "all.zip")]
    assert "files/study.yaml" in names[0]
    assert [name for name in names[1] if name not in names[0]] == ["files/invitations.txt"]
    assert not [name for name in names[1] if "report" in name or "serving" in name or name.endswith("-wal")]
    assert "a file already" in refused("backup", study, "--to", "b.zip")


def test_a_restore_brings_back_exactly_the_backup_although_a_log_was_left(study):
    """Copied by hand, the log of the later state brought 400 rows back instead of 120."""
    invoke("simulate", study, "--raters", 4)
    with Store.open(study / "study.db") as store:  # as a kill leaves it: the newest rows in the log
        # A withdrawal after the backup holds for the restored state too.
        store.withdrawals.withdraw(store.sessions.all()[0].id, 1)
        store.control.set_state("paused", by="test", reason="", at_ms=1)
        for end in ("-wal", "-shm"):
            shutil.copyfile(study / f"study.db{end}", study / f"kept{end}")
    for end in ("-wal", "-shm"):
        (study / f"kept{end}").rename(study / f"study.db{end}")
    (study / ACKNOWLEDGED_FILE).write_text("")
    assert "4 sessions" in refused("restore", "b.zip", study, answer="n\n")
    assert n_sessions(study) == 4
    told = invoke("restore", "b.zip", study, "--yes")
    assert "What was there before is in" in told
    assert "erased again: 1 session" in told
    assert n_sessions(study) == 2
    with Store.open(study / "study.db") as store:
        assert [session.state == "withdrawn" for session in store.sessions.all()] == [True, False]
    aside = next(study.glob("before-restore-*"))
    assert {"study.db", "study.db-wal", "study.db-shm", ACKNOWLEDGED_FILE} <= {path.name for path in aside.iterdir()}
    assert n_sessions(aside) == 4
    assert "All that was collected is there" in invoke("verify", study)


def test_a_restore_into_a_new_folder_needs_no_question(study, tmp_path):
    invoke("restore", "b.zip", "new/place")
    assert n_sessions(tmp_path / "new" / "place") == 2
    assert (tmp_path / "new" / "place" / "study.yaml").read_bytes() == (study / "study.yaml").read_bytes()


def add_account(file, name):
    with Store.open(file) as store:
        store.accounts.make_link(name, "owner", by="test", expires_at_ms=9)
        store.accounts.use_link(name, name, "hash", 1)


def test_a_folder_of_studies_is_backed_up_with_its_accounts(study, tmp_path):
    (tmp_path / "all").mkdir()
    study.rename(tmp_path / "all" / "one")
    shutil.copytree(tmp_path / "all" / "one", tmp_path / "all" / "two", ignore=shutil.ignore_patterns("study.db*"))
    add_account(tmp_path / "all" / "dashboard.db", "ada")
    told = invoke("backup", "all", "--to", "kept")
    assert "accounts of the dashboard" in told
    assert "no backup: two" in told
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["dashboard.zip", "one.zip"]
    add_account(tmp_path / "all" / "dashboard.db", "eve")
    assert "moved aside" in refused("restore", "kept", "all", answer="n\n")
    invoke("restore", "kept", "all", "--yes")
    invoke("restore", "kept", "new")
    for place in ("all", "new"):
        assert n_sessions(tmp_path / place / "one") == 2
        with Store.open(tmp_path / place / "dashboard.db") as store:
            assert [account.name for account in store.accounts.all()] == ["ada"]
    assert "{study}" in refused("backup", "all", "--database", "postgresql://x/y")


def test_one_damaged_study_does_not_keep_the_others_from_their_backups(study, tmp_path):
    (tmp_path / "all").mkdir()
    study.rename(tmp_path / "all" / "sound")
    shutil.copytree(tmp_path / "all" / "sound", tmp_path / "all" / "broken")
    (tmp_path / "all" / "broken" / "study.db").write_bytes(b"no database at all" * 1000)
    add_account(tmp_path / "all" / "dashboard.db", "ada")
    assert "no backup of broken" in refused("backup", "all", "--to", "kept")
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["dashboard.zip", "sound.zip"]
    told = json.loads(result_of("backup", "all", "--to", "more", "--json").stdout)
    assert (list(told["failed"]), len(told["backups"])) == (["broken"], 2)


@pytest.mark.postgres
def test_drafts_have_no_database_on_a_server_yet(study, postgres_url, tmp_path):
    server, _, name = postgres_url.rpartition("/")
    invoke("restore", "b.zip", tmp_path / "all" / name, "--database", postgres_url)
    invoke("freeze", tmp_path / "all" / name)
    invoke("new", "acute", tmp_path / "all" / "draft")
    done = result_of("backup", "all", "--to", "kept", "--database", f"{server}/{{study}}", "--json")
    told = json.loads(done.stdout)
    assert [kept["holds"]["sessions"] for kept in told["backups"]] == [2]
    assert told["without_data"] == ["draft"]
    assert list(told["failed"]) == ["dashboard"], "nobody has made accounts there"


@pytest.mark.postgres
def test_a_folder_of_studies_moves_to_postgresql_as_the_runbook_says(study, postgres_server, tmp_path):
    with psycopg.connect(postgres_server("postgres"), autocommit=True) as connection:
        for name in ("field", "dashboard"):
            connection.execute(f"CREATE DATABASE {name}")
    everything = tmp_path / "all"
    everything.mkdir()
    study.rename(everything / "field")
    add_account(everything / "dashboard.db", "ada")
    invoke("control", everything / "field", "pause", "--reason", "moving")
    invoke("backup", everything, "--to", "move")
    address = postgres_server("{study}")
    invoke("restore", "move", everything, "--yes", "--database", address)
    assert "All that was collected" in invoke("verify", everything / "field", "--database", postgres_server("field"))
    held = StudyFolders(parent=str(everything), database=address)
    with Store.open(held.database_of("field"), create=False) as moved:
        assert len(moved.sessions.all()) == 2
        assert moved.control.current().state == "paused"
    with Store.open(held.accounts_database(), create=False) as moved:
        assert [account.name for account in moved.accounts.all()] == ["ada"]
    told = json.loads(invoke("backup", everything, "--to", "again", "--database", address, "--json"))
    assert (len(told["backups"]), told["failed"]) == (2, {})


@pytest.mark.postgres
def test_a_backup_moves_a_study_to_postgresql_and_back(study, postgres_url, tmp_path):
    invoke("restore", "b.zip", study, "--database", postgres_url)
    with Store.open(postgres_url, create=False) as moved, Store.open(study / "study.db") as own:
        assert list(moved.records.judgments()) == list(own.records.judgments())
    invoke("simulate", study, "--raters", 3, "--database", postgres_url)
    assert "All that was collected" in invoke("verify", study, "--database", postgres_url)
    made = json.loads(invoke("backup", study, "--database", postgres_url, "--to", "c.zip", "--json"))
    assert (made["database"], made["holds"]["sessions"]) == ("postgresql", 3)
    with Store.open(postgres_url, create=False) as used:
        used.withdrawals.withdraw(used.sessions.all()[0].id, 1)
        assert "the database is in use by" in refused("restore", "b.zip", study, "--yes", "--database", postgres_url)
    assert "before_restore_" in invoke("restore", "b.zip", study, "--yes", "--database", postgres_url)
    with Store.open(postgres_url, create=False) as store:
        assert [session.state == "withdrawn" for session in store.sessions.all()] == [True, False]


def test_no_restore_under_a_running_server(study):
    command = [sys.executable, "-c", HOLD, str(study / "study.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        server.stdout.readline()
        assert "a server is running on this study" in refused("restore", "b.zip", study, "--yes")
        server.stdin.close()
    assert n_sessions(study) == 2
    assert not list(study.glob("before-restore-*"))


def test_a_backup_that_is_not_whole_is_refused(study, tmp_path):
    with zipfile.ZipFile("b.zip") as packed:
        entries = {name: packed.read(name) for name in packed.namelist()}
    manifest = json.loads(entries["backup.json"])
    outside = {**manifest, "files": {**manifest["files"], "files/../../x": ""}}
    both = {**manifest, "files": {**manifest["files"], "files/study.yaml/inside": ""}}
    emptied = {**manifest, "holds": {**manifest["holds"], "sessions": 3}}
    for name, change in {
        "is not as it was written": {"files/study.yaml": entries["files/study.yaml"] + b"x"},
        "is not a backup of a study": {"backup.json": b"{}"},
        "not a backup of a study": {"backup.json": json.dumps(outside).encode()},
        "does not hold what the backup says": {"backup.json": json.dumps(emptied).encode()},
        "the backup cannot be opened": {"backup.json": json.dumps(both).encode(), "files/study.yaml/inside": b"x"},
    }.items():
        with zipfile.ZipFile("changed.zip", "w") as packed:
            for entry, content in (entries | change).items():
                packed.writestr(entry, content)
        with pytest.raises(DialometerError, match=name), opened_backup(tmp_path / "changed.zip", tmp_path):
            pass
    (tmp_path / "cut.zip").write_bytes((tmp_path / "b.zip").read_bytes()[:-500])
    assert "the backup cannot be opened" in refused("restore", "cut.zip", "new")
    assert not (tmp_path / "new").exists()


def test_an_emptied_database_is_noticed_by_serve_status_and_verify(study):
    log = AcknowledgementLog(study / ACKNOWLEDGED_FILE)
    with Store.open(study / "study.db") as store, store.database.reading() as connection:
        rows = connection.exec_driver_sql("SELECT session_id, token FROM submissions").fetchall()
    log.add([tuple(row) for row in rows])
    log.close()
    assert f"{len(rows)} acknowledged screens are stored" in invoke("verify", study)
    (study / "study.db").unlink()
    assert "--start-empty" in refused("serve", study, "--port", 0)
    assert "screens are not in the database" in invoke("status", study)
    assert f"{len(rows)} of {len(rows)} acknowledged screens are not in the" in refused("verify", study)


def test_status_warns_where_a_copy_would_miss_the_log(study):
    assert "alone lacks" not in invoke("status", study)
    with Store.open(study / "study.db") as store:
        store.control.set_state("paused", by="test", reason="", at_ms=1)
        assert "alone lacks" in invoke("status", study)
