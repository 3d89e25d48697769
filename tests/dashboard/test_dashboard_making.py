"""Making a study in the browser: the folder is the truth, and its problems are those of the command line."""

import io
import json
import re
import threading
import zipfile
from pathlib import Path

import pytest
from dashboard_cases import KEY

from commands import run
from dialometer.design.load import load_study
from dialometer.design.lock import freeze, read_lock, verify
from dialometer.design.templates import all_about_templates, template_folder, template_names
from dialometer.design.versions import Versions
from dialometer.errors import DialometerError
from dialometer.storage.access.audit_log import AuditLog
from dialometer.web.dashboard.pages import making
from dialometer.web.dashboard.running_studies import StudyFolders

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def ada(site):
    return site.owner()


def make(ada, name="films", template="likert", title=""):
    return ada.post("/new", {"name": name, "title": title, "from": f"template:{template}"})


@pytest.mark.parametrize("template", template_names())
def test_every_template_becomes_a_study(ada, site, studies_folder, template):
    make(ada, "films", template, 'Of "films": and more')
    assert ada.status == 200, ada.text
    study = load_study(studies_folder / "films")
    assert (study.spec.name, study.spec.title) == ("films", 'Of "films": and more')
    assert "No errors." in ada.text
    shown = {"about.json", "picture.webp"}  # for those who choose a template
    assert {p.name for p in (studies_folder / "films").iterdir()} == {
        p.name for p in template_folder(template).iterdir()
    } - shown
    assert site.client.get("/films/").status_code == 403, "a draft is not open to raters"


@pytest.mark.parametrize(
    "name", ["", "1st", "a/b", "../up", "desk", "dashboard", "API", "likert", "LIKERT", "a" * 65, "ä", "a b"]
)
def test_names_that_cannot_be(ada, studies_folder, name):
    before = sorted(p.name for p in studies_folder.parent.rglob("*"))
    assert make(ada, name).status == 422
    assert sorted(p.name for p in studies_folder.parent.rglob("*")) == before


def test_templates_and_studies_that_are_not_there(ada):
    assert ada.post("/new", {"name": "films", "from": "template:../../etc"}).status == 422
    assert ada.post("/new", {"name": "films", "from": "study:../../etc"}).status == 404
    assert ada.post("/new", {"name": "films"}).status == 422


def test_texts_are_edited_and_checked_like_on_the_command_line(ada, studies_folder):
    make(ada)
    folder = studies_folder / "films"
    ada.get("/studies/films/files/study.yaml")
    text = (folder / "study.yaml").read_text()
    broken = text.replace("seed:", "sead:").replace("type: likert", "type: likkert", 1)
    ada.post("/studies/films/files", {"file": "study.yaml", "text": broken.replace("\n", "\r\n")})
    assert (folder / "study.yaml").read_text() == broken
    told = json.loads(run("check", folder, "--json", code=1).stdout)["problems"]
    assert told
    for problem in told:
        assert problem["message"] in ada.text
        assert f"{problem['file']}:{problem['line']}" in ada.text
        assert problem["remedy"] in ada.text
    assert ada.post("/studies/films/freeze").status == 422
    assert told[0]["message"] in ada.text
    ada.get("/studies/films/files/study.yaml")
    ada.post("/studies/films/files", {"file": "study.yaml", "text": text})
    assert "No errors." in ada.text
    ada.post("/studies/films/files", {"file": "consent.md", "text": "# Consent\n\nÄ, 漢字, <b>"})
    assert (folder / "consent.md").read_text(encoding="utf-8") == "# Consent\n\nÄ, 漢字, <b>"
    assert "&lt;b&gt;" in ada.get("/studies/films/files/consent.md").page


def test_items_are_uploaded(ada, studies_folder):
    make(ada)
    lines = (studies_folder / "films" / "items.jsonl").read_text().splitlines()
    good = "\n".join(lines[:6]).encode() + b"\n"
    upload = {"items": ("my own name.jsonl", good, "application/jsonl")}
    ada.post("/studies/films/files", {"items_as": "items.jsonl"}, files=upload)
    assert "Saved items.jsonl" in ada.text
    assert (studies_folder / "films" / "items.jsonl").read_bytes() == good
    bad = {"items": ("x.jsonl", b'{"id": "one"\n', "application/jsonl")}
    ada.post("/studies/films/files", {"items_as": "items.jsonl"}, files=bad)
    assert "items.jsonl:1" in ada.text
    assert "to fix" in ada.text
    text = good.decode().replace("a", "ä")
    for encoding in ("cp1252", "utf-16", "utf-8-sig"):
        upload = {"items": ("x.jsonl", text.encode(encoding), "text/plain")}
        ada.post("/studies/films/files", {"items_as": "items.jsonl"}, files=upload)
        assert (studies_folder / "films" / "items.jsonl").read_text(encoding="utf-8") == text
    damaged = {"items": ("x.jsonl", b"\xff\xff\x00", "text/plain")}
    assert ada.post("/studies/films/files", {"items_as": "items.jsonl"}, files=damaged).status == 422
    assert "known encoding" in ada.text
    assert ada.post("/studies/films/files", {}).status == 422


@pytest.mark.parametrize(
    "name",
    [
        "../outside.md",
        "/etc/passwd.md",
        "a/b.md",
        ".hidden.md",
        "study.lock.json",
        "run.py",
        "x.md\x00.txt",
        "..md",
        "study.db",
    ],
)
def test_files_stay_in_their_folder(ada, studies_folder, name):
    make(ada)
    before = {p: p.stat().st_mtime_ns for p in studies_folder.parent.rglob("*") if p.is_file() and ".db" not in p.name}
    assert ada.post("/studies/films/files", {"file": name, "text": "x"}).status == 422
    after = {p: p.stat().st_mtime_ns for p in studies_folder.parent.rglob("*") if p.is_file() and ".db" not in p.name}
    assert after == before
    for path in (
        "/studies/films/files/study.db",
        "/studies/likert/files/study.db",
        "/studies/likert/files/.serving.json",
    ):
        assert ada.get(path).status == 404


def test_what_is_saved_while_a_study_is_frozen_does_not_change_it(ada, studies_folder, monkeypatch):
    """Items take seconds to read: whoever began to save them before the freezing would write over a frozen study."""
    make(ada, "films", "likert")
    folder = studies_folder / "films"
    said = []

    def save():
        with pytest.raises(DialometerError, match="a frozen study is not changed") as caught:
            Versions(folder).save("consent.md", b"other", "bob", 1)
        said.append(caught.value)

    saving = threading.Thread(target=save)

    def freeze_slowly(*words):
        saving.start()
        saving.join(0.3)
        assert saving.is_alive(), "it waits until the study is frozen"
        return freeze(*words)

    monkeypatch.setattr(making, "freeze", freeze_slowly)
    before = (folder / "consent.md").read_bytes()
    ada.post("/studies/films/freeze")
    saving.join(120)
    assert len(said) == 1
    assert "Frozen." in ada.text
    assert (folder / "consent.md").read_bytes() == before
    assert verify(load_study(folder), folder)


def test_freezing_and_starting(ada, site, studies_folder):
    make(ada, "films", "likert")
    ada.post("/studies/films/freeze")
    assert "Frozen." in ada.text
    assert "state-not_started" in ada.page
    assert len(read_lock(studies_folder / "films")) == 1
    body = {"external_id": "r", "source": "simulated"}
    head = {"authorization": f"Bearer {KEY}"}
    assert site.client.post("/films/api/v1/sessions", json=body, headers=head).json()["reason"] == "not_started"
    assert ada.post("/studies/films/files", {"file": "consent.md", "text": "other"}).status == 422
    assert "frozen study is not changed" in ada.text
    assert ada.post("/studies/films/files/consent.md/delete").status == 422
    ada.get("/studies/films/control")
    ada.post("/studies/films/control", {"what": "start", "reason": "go"})
    assert "running" in ada.text
    assert site.client.post("/films/api/v1/sessions", json=body, headers=head).status_code in (200, 201)
    assert "Start" in site.client.get("/films/").text
    what = [deed.what for deed in AuditLog(site.accounts.database).newest(50)]
    assert "froze the study" in what
    assert "made the study" in what


def test_a_copy_has_no_data_and_no_lock(ada, studies_folder):
    ada.get("/new")
    ada.post("/new", {"name": "second", "title": "", "from": "study:likert"})
    copied = {p.name for p in (studies_folder / "second").iterdir()}
    assert "study.db" not in copied
    assert "study.lock.json" not in copied
    assert load_study(studies_folder / "second").spec.name == "second"


def test_the_folder_can_be_downloaded(ada, studies_folder):
    ada.get("/studies/likert/study.zip")
    with zipfile.ZipFile(io.BytesIO(ada.response.content)) as archive:
        names = archive.namelist()
        assert "likert/study.yaml" in names
        assert "likert/study.lock.json" in names
        assert not any("db" in name.rsplit(".", 1)[-1] for name in names)
        for name in names:
            assert archive.read(name) == (studies_folder / name).read_bytes()
    first = ada.response.content
    assert ada.get("/studies/likert/study.zip").response.content == first


def test_removing_a_file_of_a_draft(ada, studies_folder):
    make(ada)
    (studies_folder / "films" / "notes.txt").write_text("x")
    ada.get("/studies/films/files/notes.txt")
    ada.post("/studies/films/files/notes.txt/delete")
    assert "Removed notes.txt" in ada.text
    assert not (studies_folder / "films" / "notes.txt").exists()
    assert ada.post("/studies/films/files/notes.txt/delete").status == 404


def test_a_study_of_the_command_line_is_changed_on_disk_only(make_site, studies_folder):
    site = make_site(StudyFolders((str(studies_folder / "draft"),)))
    ada = site.owner()
    ada.get("/studies/draft/files")
    assert "changed on disk" in ada.text
    assert ada.post("/studies/draft/files", {"file": "consent.md", "text": "x"}).status == 422
    assert ada.post("/new", {"name": "films", "from": "template:likert"}).status == 422
    assert "dialometer serve" in ada.text


def test_what_cannot_be_opened_stays_a_draft(ada, site, studies_folder, monkeypatch):
    make(ada)
    from dialometer.errors import AgentError

    def fail(*_args, **_more):
        raise AgentError("the agent is not there", remedy="start it")

    monkeypatch.setattr("dialometer.web.dashboard.running_studies.create_app", fail)
    ada.get("/studies/films/files")
    assert ada.post("/studies/films/freeze").status == 422
    assert "The agent is not there — start it" in ada.text
    assert not (studies_folder / "films" / "study.lock.json").exists()


@pytest.mark.parametrize("seed", ["08", "9" * 5000, "!!bool x"])
def test_a_draft_that_cannot_be_read_is_one_row_of_the_dashboard(ada, studies_folder, seed):
    path = studies_folder / "draft" / "study.yaml"
    path.write_text(re.sub(r"(?m)^seed:.*$", f"seed: {seed}", path.read_text()))
    assert ada.get("/").status == 200
    assert ("problem to fix" in ada.text) == (seed != "08")
    assert ada.get("/studies/draft/files").status == 200


def test_a_check_that_fails_is_a_problem_of_that_draft_alone(ada, studies_folder, monkeypatch):
    monkeypatch.setattr("dialometer.web.dashboard.running_studies.check_all", lambda *_: 1 / 0)
    (studies_folder / "draft" / "consent.md").write_text("# Changed\n")
    assert ada.get("/").status == 200
    assert "1 problem to fix" in ada.text
    assert "likert" in ada.text
    ada.get("/studies/draft/files")
    assert ada.status == 200
    assert "the study cannot be checked (reference " in ada.text.lower()


SECRET = ("invitations.txt", "people.csv", "prolific.json", "blocked.txt")


@pytest.mark.parametrize("is_broken", [False, True])
def test_secrets_beside_a_study_do_not_leave_with_it(site, ada, studies_folder, is_broken):
    for name in SECRET:
        (studies_folder / "draft" / name).write_text("s3cret\n")
    path = studies_folder / "draft" / "study.yaml"
    lists = "recruitment:\n  qualifications: {block_list: blocked.txt}\n"
    path.write_text(("seed: [\n" if is_broken else "") + path.read_text().replace("recruitment:\n", lists, 1))
    viewer = site.member("viewer")
    for visitor in (ada, viewer):
        visitor.get("/studies/draft/study.zip")
        with zipfile.ZipFile(io.BytesIO(visitor.response.content)) as archive:
            names = {name.partition("/")[2] for name in archive.namelist()}
        assert {"study.yaml", "consent.md"} <= names
        assert not names & set(SECRET)
        assert ("items.jsonl" in names) != is_broken
    for name in SECRET:
        assert viewer.get(f"/studies/draft/files/{name}").status == 404
        assert ada.get(f"/studies/draft/files/{name}").status == 200


def test_two_people_who_edit_one_file_lose_nothing(ada, site, studies_folder):
    make(ada)
    path = studies_folder / "films" / "consent.md"
    path.write_text("# Consent\n\nFirst.\n\nSecond.\n\nThird.\n")
    form = {"file": "consent.md", "base": _base(ada.get("/studies/films/files/consent.md"))}
    told = ada.post("/studies/films/files/consent.md/editing", {"base": form["base"]}).response.json()
    assert told == {"others": [], "saved_by": None}
    ada.get("/studies/films/files/consent.md")
    ada.post("/studies/films/files", {**form, "text": path.read_text().replace("First", "Ada's first")})
    ada.post("/studies/films/files", {**form, "text": "# Consent\n\nFirst.\n\nSecond.\n\nAnother third.\n"})
    assert "it holds both changes now" in ada.text
    assert path.read_text() == "# Consent\n\nAda's first.\n\nSecond.\n\nAnother third.\n"
    ada.post("/studies/films/files", {**form, "text": "# Consent\n\nMy own first.\n\nSecond.\n\nThird.\n"})
    assert ada.status == 409
    assert "not saved yet" in ada.text
    assert "My own first." in ada.page
    assert "Ada's first" in path.read_text(), "what was saved stays"
    ada.post("/studies/films/files", {**form, "base": _base(ada), "text": "# Consent\n\nMy own first.\n"})
    assert path.read_text() == "# Consent\n\nMy own first.\n"


def test_versions_are_seen_and_restored(ada, studies_folder):
    make(ada)
    path = studies_folder / "films" / "consent.md"
    original = path.read_text()
    ada.get("/studies/films/files/consent.md")
    ada.post("/studies/films/files", {"file": "consent.md", "text": "# Shorter\n", "base": _base(ada)})
    ada.get("/studies/films/versions")
    assert "changed in the folder" in ada.text
    ada.get("/studies/films/versions/2")
    assert "+ # Shorter" in ada.text
    assert "Nothing: this is what the file holds now." in ada.text
    ada.get("/studies/films/versions/1")
    ada.post("/studies/films/versions/1/restore")
    assert path.read_text() == original
    ada.post("/studies/films/files/consent.md/delete")
    assert not path.exists()
    ada.get("/studies/films/versions/3")
    ada.post("/studies/films/versions/3/restore")
    assert path.read_text() == original
    for wrong in ("0", "9", "x", "-1", "²"):
        assert ada.get(f"/studies/films/versions/{wrong}").status == 404
    ada.post("/studies/films/freeze")
    assert ada.post("/studies/films/versions/1/restore").status == 422
    assert ".versions" not in ada.client.get("/dashboard/studies/films/study.zip").text


def _base(ada):
    return re.search(r'name="base" value="([0-9a-f]*)"', ada.page)[1]


def test_templates_are_shown_by_picture_and_question(ada):
    ada.get("/new")
    table = dict(
        re.findall(
            r"^\| \[`([\w-]+)`\]\(#[\w-]+\) \| ([^|]+?) \|", (DOCS / "reference" / "templates.md").read_text(), re.M
        )
    )
    assert [one.name for one in all_about_templates()] == list(table), "in the order of the documentation"
    for one in all_about_templates():
        assert one.question == table[one.name]
        assert one.question in ada.text
        answer = ada.client.get(f"/dashboard/new/{one.name}.webp")
        assert answer.content[:4] == b"RIFF", f"run scripts/template_pictures.py for {one.name}"
    assert ada.get("/new/none.webp").status == 404


def test_a_study_of_ones_own_systems(ada, studies_folder):
    table = b"question;old;new\nHow far is it?;Two miles.;About two miles, half an hour on foot.\n"
    table += b"Is it open?;Yes.;Yes, until six.\nWhat does it cost?;Ten.;Ten euros for adults.\n"
    form = {"name": "mine", "from": "template:compare"}
    ada.post("/new", form, files={"own_1": ("../My answers.csv", table, "text/csv")})
    assert ada.status == 200, ada.text
    assert "Made the study mine." in ada.text
    study = load_study(studies_folder / "mine")
    assert [system.name for system in study.spec.systems] == ["old", "new"]
    assert len(study.rated_items) == 3
    wrong = {"own_1": ("answers.csv", b"question\nOnly one column\n", "text/csv")}
    assert ada.post("/new", {**form, "name": "other"}, files=wrong).status == 422
    assert "answers.csv" in ada.text.lower()
    assert "/tmp" not in ada.text
    assert ada.post("/new", {"name": "other", "from": "template:chat"}, files=wrong).status == 422
    assert not (studies_folder / "other").exists()
