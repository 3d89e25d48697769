"""An archive gives the same numbers again, byte for byte; nothing in it names a rater; a changed one is refused."""

from __future__ import annotations

import json
import shutil
import zipfile

import pytest
import yaml

from commands import invoke as dialometer
from dialometer.analysis.base.data import load_data, load_exported
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.exchange.exports.archive import opened_archive
from dialometer.exchange.exports.export import export_study
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

TEMPLATES = ("acute", "anchoring", "avatar", "best-worst", "likert", "strategies", "chat")
RESAMPLES = ("--resamples", "100")
START_MS = 1_760_000_000_000


def collected(folder, template, n_raters=6):
    copy_template(template, folder)
    study = load_study(folder)
    habits = Habits(careless_share=0.4, drop_out=0.3)
    with Store.open(folder / "study.db") as store:
        door = EngineAccess(Flow(study, store))
        simulate(study, door, draw_truth(study, 7), n_raters=n_raters, seed=7, start_ms=START_MS, habits=habits)
    return study


@pytest.fixture(scope="module")
def archived(tmp_path_factory):
    """A study that was collected and its archive beside it; to be read only."""
    folder = tmp_path_factory.mktemp("archived") / "study"
    collected(folder, "acute", 4)
    dialometer("archive", folder, *RESAMPLES)
    return folder, folder.with_name("study-archive.zip")


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_files_of_an_export_hold_the_same_data_as_the_database(tmp_path, template):
    from polars.testing import assert_frame_equal

    study = collected(tmp_path / "study", template, 5)
    with Store.open(tmp_path / "study" / "study.db") as store:
        export_study(study, store, tmp_path / "out", include_practice=True)
        stored = load_data(study, store)
    read = load_exported(study, tmp_path / "out")
    for name in ("judgments", "sessions", "answers", "findings", "set_aside", "chats", "by_models"):
        assert_frame_equal(getattr(stored, name), getattr(read, name), check_exact=True)
    assert (stored.sources, stored.n_left_out) == (read.sources, read.n_left_out)
    (tmp_path / "out" / "flags.csv").rename(tmp_path / "out" / "findings.csv")  # as in archives of 0.1.0
    assert_frame_equal(load_exported(study, tmp_path / "out").findings, stored.findings, check_exact=True)


@pytest.mark.parametrize(
    "template",
    [pytest.param("acute", marks=pytest.mark.slow), pytest.param("likert", marks=pytest.mark.slow), "strategies"],
)
def test_a_report_from_the_archive_has_the_same_tables_as_one_from_the_database(tmp_path, template):
    folder = tmp_path / "study"
    collected(folder, template, 8)
    dialometer("report", folder, "--format", "csv", *RESAMPLES)
    told = json.loads(dialometer("archive", folder, *RESAMPLES, "--json"))
    assert told["archive"] == str(tmp_path / "study-archive.zip")
    shutil.rmtree(folder / "judge", ignore_errors=True)
    for file in folder.glob("study.db*"):
        file.unlink()
    again = json.loads(dialometer("report", told["archive"], "--format", "csv", "--json"))
    assert again["compared"]["differing"] == []
    assert again["compared"]["n_same"] == told["n_tables"] > 3
    first = {path.name: path.read_bytes() for path in (folder / "report").rglob("*.csv")}
    second = {path.name: path.read_bytes() for path in (tmp_path / "study-archive-report").rglob("*.csv")}
    assert first == second
    assert again["answer"] == told["answer"]


def test_other_settings_are_told_to_differ(archived, tmp_path):
    told = dialometer("report", archived[1], "--seed", 5, "--format", "csv", "--out", tmp_path / "report")
    assert "these differ" in told
    assert "Other settings" in told


def test_the_same_data_give_the_same_archive(archived, tmp_path):
    folder, first = archived
    dialometer("archive", folder, "--out", tmp_path / first.name, *RESAMPLES)
    assert (tmp_path / first.name).read_bytes() == first.read_bytes()


def test_an_archive_holds_what_it_promises(tmp_path):
    folder = tmp_path / "study"
    collected(folder, "acute", 4)
    path = folder / "study.yaml"
    path.write_text(path.read_text() + "\nauthors: ['Lovelace, Ada', The Difference Lab]\nlicence: CC-BY-4.0\n")
    dialometer("freeze", folder)
    dialometer("archive", folder, *RESAMPLES)
    with opened_archive(tmp_path / "study-archive.zip") as (inside, manifest):
        assert manifest["study"]["was_frozen"]
        assert (inside / "study" / "study.lock.json").read_bytes() == (folder / "study.lock.json").read_bytes()
        cited = yaml.safe_load((inside / "CITATION.cff").read_text())
        assert cited["authors"] == [
            {"family-names": "Lovelace", "given-names": "Ada"},
            {"name": "The Difference Lab"},
        ]
        assert (cited["cff-version"], cited["type"], cited["license"]) == ("1.2.0", "dataset", "CC-BY-4.0")
        assert cited["date-released"] == "2025-10-09"
        software = json.loads((inside / "environment.json").read_text())
        assert "numpy" in software["packages"]
        assert f"numpy=={software['packages']['numpy']}" in (inside / "requirements.txt").read_text()
        assert "dialometer report study-archive.zip" in (inside / "README.md").read_text()
        for name in ("data/judgments.csv", "data/data_dictionary.md", "report/index.html", "report/report.json"):
            assert (inside / name).stat().st_size > 0


def test_nothing_in_an_archive_names_a_rater(tmp_path):
    folder = tmp_path / "study"
    copy_template("acute", folder)
    path = folder / "study.yaml"
    spec = yaml.safe_load(path.read_text())
    spec["quality"] += [{"rule": "block_list", "file": "blocked.txt", "raters": ["PID-blocked-inline"]}]
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    (folder / "blocked.txt").write_text("PID-blocked-listed\n")
    (folder / "invitations.txt").write_text("token-of-ada # Ada Lovelace\n")
    (folder / "prolific.json").write_text('{"study_id": "5f0c-on-prolific"}')
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        flow = Flow(study, store)
        person = flow.arrive(platform="prolific", external_id="PID-secret", params={"SESSION_ID": "SES-secret"})
        simulate(study, EngineAccess(flow), draw_truth(study, 7), n_raters=4, seed=7, start_ms=START_MS)
    told = json.loads(dialometer("archive", folder, *RESAMPLES, "--json"))
    assert sorted(told["withheld"]) == ["blocked.txt", "study.yaml"]
    with zipfile.ZipFile(told["archive"]) as packed:
        content = b"".join(packed.read(name) for name in packed.namelist())
        assert not [name for name in packed.namelist() if "study.db" in name or "invitations" in name]
    for word in ("PID-", "SES-secret", "token-of-ada", "Lovelace", "5f0c-on-prolific", person.session.id, person.token):
        assert word.encode() not in content, word
    again = json.loads(dialometer("report", told["archive"], "--format", "csv", "--json"))
    assert again["compared"]["differing"] == []


def test_who_withdrew_is_in_no_archive(tmp_path):
    folder = tmp_path / "study"
    collected(folder, "acute", 5)
    with Store.open(folder / "study.db") as store:
        gone = next(session for session in store.sessions.all() if session.state == "completed")
        texts = [json.dumps(answer.value) for answer in store.records.answers(gone.id)]
        code = store.withdrawals.code(gone.id, "the browser's token")
    dialometer("privacy", folder, "--withdraw", code, "--yes")
    dialometer("archive", folder, *RESAMPLES)
    with opened_archive(tmp_path / "study-archive.zip") as (inside, _):
        name = f"S{gone.ordinal:04d}"
        lines = [line for line in (inside / "data" / "sessions.csv").read_text().splitlines() if name in line]
        assert len(lines) == 1
        assert ",withdrawn," in lines[0]
        for table in ("judgments", "answers", "screens", "flags"):
            assert name not in (inside / "data" / f"{table}.csv").read_text()
    assert texts
    again = json.loads(dialometer("report", tmp_path / "study-archive.zip", "--format", "csv", "--json"))
    assert again["compared"]["differing"] == []


def rewritten(source, target, change):
    with zipfile.ZipFile(source) as packed, zipfile.ZipFile(target, "w") as made:
        for name in packed.namelist():
            made.writestr(*change(name, packed.read(name)))


def test_a_changed_or_foreign_archive_is_refused(archived, tmp_path):
    _, source = archived
    changes = {
        "changed.zip": (lambda n, c: (n, c.replace(b",1,", b",2,") if n == "data/judgments.csv" else c), "not as they"),
        "foreign.zip": (lambda n, c: (n.replace("archive.json", "other.json"), c), "not an archive of a study"),
        "newer.zip": (
            lambda n, c: (n, c.replace(b'"dialometer_archive": 1', b'"dialometer_archive": 9')),
            "has the format 9",
        ),
        "climbing.zip": (lambda n, c: (n.replace("README.md", "../README.md"), c), "none of ours"),
    }
    for name, (change, words) in changes.items():
        rewritten(source, tmp_path / name, change)
        assert words in dialometer("report", tmp_path / name, fails=True), name
    assert not (tmp_path.parent / "README.md").exists()
    (tmp_path / "cut.zip").write_bytes(source.read_bytes()[:-200])
    assert dialometer("report", tmp_path / "cut.zip", fails=True)


def test_an_empty_study_says_so(tmp_path):
    copy_template("acute", tmp_path / "study")
    assert "nothing has been collected" in dialometer("archive", tmp_path / "study", fails=True)
