"""Pages for making a study with anything typed, dropped or written into files by hand: no page fails, nothing leaves the folder."""

import gzip
import io
import socket
import zipfile

import pytest
import yaml

from dialometer.design.templates import copy_template
from dialometer.design.versions import Versions, hash_of
from dialometer.web.dashboard.pages.form import STEPS
from dialometer.web.dashboard.pages.making import plain_file_name
from dialometer.web.dashboard.running_studies import StudyFolders

LONG = "9" * 5000
MARK = "<script>alert(1)</script>"


@pytest.fixture
def draft(tmp_path):
    copy_template("strategies", tmp_path / "studies" / "pairs")
    return tmp_path / "studies" / "pairs"


@pytest.fixture
def site(make_site, draft):
    return make_site(StudyFolders(parent=str(draft.parent)))


@pytest.fixture
def ada(site):
    return site.owner()


MAKING = tuple(
    f"/studies/pairs/{page}" for page in ("form/systems", "add-items", "responses", "pairs", "pairs/1", "files")
)
"""Pages that read a draft before it is known to be in order."""


def test_numbers_of_any_length_in_addresses(ada, site):
    for path in (
        f"/studies/pairs/preview/{LONG}/0/s",
        f"/studies/pairs/pairs/{LONG}",
        f"/studies/pairs/add-items/{LONG}/s",
        f"/studies/pairs/raters/{LONG}",
        f"/studies/pairs/versions/{LONG}",
        "/studies/pairs/versions/²",
        f"/review/pairs/{LONG}/x",
    ):
        assert ada.client.get(f"/dashboard{path}").status_code in (403, 404), path[:60]
        stranger = site.visitor().client.get(f"/dashboard{path}", follow_redirects=False)
        assert stranger.status_code in (303, 403), path[:60]


def test_numbers_of_any_length_in_the_form_of_a_pair(ada):
    for form in (
        {"speaker.²": "User"},
        {f"speaker.{LONG}": "User"},
        {"speaker.0": "User", "was.0": LONG, "a.0": "x"},
        {"_do": f"turn {LONG}"},
        {"_do": "drop ²"},
        {"line": LONG},
    ):
        for path in ("/studies/pairs/pairs/1", "/studies/pairs/pairs/look"):
            assert ada.post(path, form).status < 500, (str(form)[:60], path)
    assert ada.get("/studies/pairs/add-items", n=LONG, c0=LONG).status == 200


def test_drafts_of_any_shape_are_opened(ada, draft):
    study = draft / "study.yaml"
    spec = yaml.safe_load(study.read_text(encoding="utf-8"))
    for key in ("systems", "items", "speakers", "criteria", "scales", "texts", "live", "design"):
        for value in (5, [5], {"a": 5}):
            study.write_text(yaml.safe_dump(spec | {key: value}))
            for path in MAKING:
                assert ada.get(path).status < 500, (key, value, path)


LINES = (
    '{"id": "x", "a": {"turns": 5}, "b": {"turns": "abc"}}',
    '{"id": "x", "a": {"turns": [5, {"speaker": [], "text": {}}]}, "b": []}',
    '{"id": 5, "a": 5, "b": 5, "breaches": [1], "block": 7}',
    '{"id": "\\ud800", "a": {"turns": [{"speaker": "User", "text": "\\ud800"}]}}',
    '{"id": "x", "context": [5]}',
    "[" * 5000,
    "5",
)


def test_items_of_any_shape_are_opened(ada, draft):
    typed = {"line": "1", "speaker.0": "User", "was.0": "0", "a.0": "Hello"}
    for line in LINES:
        (draft / "items.jsonl").write_text(f"{line}\n")
        for path in MAKING:
            assert ada.get(path).status < 500, (line[:80], path)
        for path in ("/studies/pairs/pairs/look", "/studies/pairs/pairs/1"):
            assert ada.post(path, typed).status < 500, (line[:80], path)


def test_no_version_is_read_from_outside_its_folder(ada, draft):
    """What a form names as the text that was edited is a hash, never a path."""
    secret = draft.parent / "secret.gz"
    secret.write_bytes(gzip.compress(b"title: kept from editors\n"))
    assert Versions(draft).content("../../secret") is None
    form = {"file": "study.yaml", "text": "x", "base": "../../secret"}
    assert ada.post("/studies/pairs/files", form).status == 409
    assert "kept from editors" not in ada.page
    Versions(draft).save("study.yaml", b"name: pairs\n", "ada", 1)
    assert Versions(draft).content(hash_of(b"name: pairs\n")) == b"name: pairs\n"


def test_dropped_files_may_be_called_anything(ada, draft):
    before = {path for path in draft.parent.rglob("*") if ".versions" not in path.parts}
    for name in ("𝒜" * 90 + ".csv", "../../../x.csv", "..", "\x00.csv", ".hidden", "a/b\\c.csv", ""):
        plain = plain_file_name(name, "file")
        assert len(plain.encode()) <= 255, name
        assert not set("/\\\x00") & set(plain), name
        assert not plain.startswith("."), name
        ada.post("/studies/pairs/add-items", files={"file": (name, b"id,context\n1,Hello\n")})
        assert ada.status < 500, (name, ada.text)
        assert {path for path in draft.parent.rglob("*") if ".versions" not in path.parts} == before, name


def test_nothing_that_was_typed_or_dropped_is_markup(ada, draft):
    """Texts, names of files and of columns, and what agents would be told, on every page for making a study."""
    study = draft / "study.yaml"
    spec = yaml.safe_load(study.read_text(encoding="utf-8"))
    spec |= {"title": MARK, "description": MARK, "contact": MARK, "authors": [MARK]}
    spec["criteria"][0] |= {"question": MARK}
    study.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    (draft / "consent.md").write_text(f'# {MARK}\n\n{MARK} [x](javascript:alert(1)) ![y](x" onerror="alert(1))\n')
    ada.post("/studies/pairs/add-items", files={"file": (f"{MARK}.csv", f"id,{MARK}\n{MARK},{MARK}\n".encode())})
    ada.post("/studies/pairs/files", {"file": "notes.md", "text": MARK})
    for path in (*MAKING, "/", "/studies/pairs/versions/1", "/studies/pairs/review", "/studies/pairs/preview/0/0/s"):
        ada.get(path)
        assert ada.status == 200, (path, ada.text)
        assert MARK not in ada.page, path
        assert 'href="javascript:' not in ada.page, path
        assert 'onerror="' not in ada.page, path


def test_agents_of_a_draft_reach_nothing_inside(ada, draft, monkeypatch):
    """Responses are asked for by the server: its own services and passwords are not an editor's."""
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    study = draft / "study.yaml"
    spec = yaml.safe_load(study.read_text(encoding="utf-8"))
    with socket.create_server(("127.0.0.1", 0)) as inside:
        inside.settimeout(0.2)
        url = f"http://127.0.0.1:{inside.getsockname()[1]}/"
        for options in ({"url": url}, {"url": "https://example.org/", "headers": {"X": "${PGPASSWORD}"}}):
            agent = {"type": "http", "options": options}
            spec["systems"] = [{"name": system["name"], "agent": agent} for system in spec["systems"]]
            study.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
            names = [system["name"] for system in spec["systems"]]
            assert ada.post("/studies/pairs/responses", {"system": names, "pasted": "Hello?"}).status == 422
            assert "s3cret" not in ada.page
        with pytest.raises(TimeoutError):
            inside.accept()
    assert not (draft / ".versions" / "jobs").exists()


def test_links_out_of_the_folder_are_no_files_of_the_study(ada, draft, tmp_path):
    """Somebody who could make one, on a machine that several people use, would read what only the server can."""
    (tmp_path / "secret.txt").write_text("s3cret")
    for name in ("notes.md", "list.txt"):
        (draft / name).symlink_to(tmp_path / "secret.txt")
    (draft / "own.txt").symlink_to(draft / "consent.md")
    for name, status in (("own.txt", 200), ("notes.md", 404), ("list.txt", 404)):
        assert ada.client.get(f"/dashboard/studies/pairs/files/{name}").status_code == status, name
    assert "s3cret" not in ada.client.get("/dashboard/studies/pairs/files").text


@pytest.mark.parametrize("name", ["study.yaml", "items.jsonl", "consent.md"])
def test_files_that_are_no_utf8_are_opened(ada, draft, name):
    """Put into the folder by hand, by a program of Windows."""
    path = draft / name
    path.write_bytes(path.read_bytes().replace(b"e", b"\xe9", 5))
    forms = [f"/studies/pairs/form/{step}" for step in STEPS]
    for page in (
        *MAKING,
        *forms,
        "/",
        f"/studies/pairs/files/{name}",
        "/studies/pairs/languages",
        "/studies/pairs/review",
    ):
        assert ada.get(page).status < 500, page
    text = {"file": name, "text": "x", "base": "0" * 64, f"_text:{name}": "new", "csrf": ada.csrf}
    for page in ("files", "form/texts", "languages", "add-items"):
        assert ada.post(f"/studies/pairs/{page}", {**text, "language": "de"}).status < 500, page


@pytest.mark.parametrize("name", ["items.jsonl", "consent.md"])
def test_links_out_of_the_folder_are_not_read_by_forms(ada, draft, tmp_path, name):
    (tmp_path / "secret.txt").write_text('{"id": "s3cret", "context": [{"speaker": "User", "text": "s3cret"}]}\n')
    (draft / name).unlink()
    (draft / name).symlink_to(tmp_path / "secret.txt")
    for page in (*MAKING, *(f"/studies/pairs/form/{step}" for step in STEPS)):
        assert ada.get(page).status < 500, page
        assert "s3cret" not in ada.page, page


def test_what_a_version_held_leaves_with_nobody(ada, site, draft):
    """A key that was pasted into a file and removed again is in a version still: only editors see those."""
    for text in ("The key is s3cret.", "The key is gone."):
        ada.post("/studies/pairs/files", {"file": "notes.md", "text": text})
        assert ada.status == 200
    viewer = site.member("viewer")
    for path in ("versions", "versions/1", "versions/2"):
        assert viewer.get(f"/studies/pairs/{path}").status == 403
    for path in ("study.zip", "files", "review"):
        response = viewer.client.get(f"/dashboard/studies/pairs/{path}")
        assert response.status_code == 200, path
        names = zipfile.ZipFile(io.BytesIO(response.content)).namelist() if path == "study.zip" else []
        assert not any(".versions" in name for name in names)
        assert b"s3cret" not in response.content, path
    for path in (
        "/pairs/.versions/log.jsonl",
        "/dashboard/studies/pairs/files/.versions",
        "/pairs/media/..%2flog.jsonl",
    ):
        assert site.visitor().client.get(path, follow_redirects=False).status_code in (303, 403, 404), path
