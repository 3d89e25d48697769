"""Recorded answers: named by the knowledge base, checked, brought along, and served only where they are named."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dialometer.design.load import load_study
from dialometer.design.lock import part_hashes
from dialometer.errors import DialometerError
from dialometer.exchange.exports import archive
from dialometer.model.dialogue import Turn
from dialometer.model.item import CandidateItem
from dialometer.model.media import Recording, address_of_file
from dialometer.retrieval.avatar import Avatar
from dialometer.retrieval.knowledge_base import KnowledgeBaseError, read_knowledge_base
from dialometer.retrieval.retriever import make_retriever
from dialometer.retrieval.saving import load_retriever, save_retriever
from dialometer.storage.store import Store
from dialometer.web.dashboard.pages import making
from dialometer.web.rater.avatar import create_avatar_app
from dialometer.web.study_app import create_app

CAPTIONS = "WEBVTT\n\n00:00.000 --> 00:01.000\nI grew up in Moldova.\n"


def write_sound(path: Path, seconds: float = 0.5) -> None:
    """A tone, as a WAV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8000)
        file.writeframes(bytes(128 + (20 if k // 10 % 2 else -20) for k in range(int(8000 * seconds))))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A knowledge base with one recorded answer of two, and a file beside it that it does not name."""
    own = tmp_path / "own"
    write_sound(own / "media" / "home town.wav")
    write_sound(own / "media" / "private.wav")
    (own / "media" / "home.vtt").write_text(CAPTIONS, encoding="utf-8")
    rows = [
        "question,answer,media,captions",
        "Where are you from?,I grew up in Moldova.,media/home town.wav,media/home.vtt",
        "Where did you grow up?,I grew up in Moldova.,,",
        "Do you have siblings?,One brother.,,",
    ]
    (own / "kb.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    turns = [{"speaker": "User", "text": "Where are you from?"}, {"speaker": "Agent", "text": "From Moldova."}]
    dialogue = {"id": "d", "turns": turns, "metadata": {"exchanges": [{"answers": ["I grew up in Moldova."]}]}}
    (own / "dialogues.jsonl").write_text(json.dumps(dialogue) + "\n", encoding="utf-8")
    return own


def test_a_knowledge_base_names_recordings(folder: Path) -> None:
    kb = read_knowledge_base(folder / "kb.csv")
    home = kb.find("I grew up in Moldova.")
    assert home is not None
    assert kb.answers[home].recording == Recording("media/home town.wav", "media/home.vtt")
    assert kb.recordings == (Recording("media/home town.wav", "media/home.vtt"),)
    assert kb.without_questions([0]).folder == kb.folder == folder.resolve()


@pytest.mark.parametrize(
    ("media", "captions", "message"),
    [
        ("../secret.wav", "", "lies outside the folder"),
        ("/etc/passwd.wav", "", "lies outside the folder"),
        (f"{'a' * 5000}.wav", "", "is missing"),
        ("C:/secret.wav", "", "lies outside the folder"),
        ("https://example.org/a.mp4", "", "is an address"),
        ("media/page.html", "", "no kind that browsers play"),
        ("media/gone.wav", "", "is missing"),
        ("media/link.wav", "", "a link to a file outside"),
        ("media/home.wav", "media/home.wav", "no kind that browsers play"),
        ("media/home.wav", "media/plain.vtt", "does not begin with WEBVTT"),
        ("", "media/plain.vtt", "captions without a recording"),
    ],
)
def test_what_cannot_be_played_is_refused_with_its_line(
    tmp_path: Path, media: str, captions: str, message: str
) -> None:
    write_sound(tmp_path / "secret.wav")
    own = tmp_path / "own"
    write_sound(own / "media" / "home.wav")
    (own / "media" / "plain.vtt").write_text("Hello", encoding="utf-8")
    (own / "media" / "link.wav").symlink_to(tmp_path / "secret.wav")
    row = {"answer": "Yes.", "questions": ["Really?"], "media": media, "captions": captions}
    (own / "kb.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(KnowledgeBaseError, match=message) as caught:
        read_knowledge_base(own / "kb.jsonl")
    assert caught.value.problems[0].line == 1
    assert caught.value.problems[0].remedy


def test_a_saved_avatar_brings_its_recordings_along(folder: Path, tmp_path: Path) -> None:
    fitted = make_retriever("tfidf").fit(read_knowledge_base(folder / "kb.csv"))
    save_retriever(fitted, tmp_path / "avatar")
    again = load_retriever(tmp_path / "avatar").kb
    assert again.recordings == fitted.kb.recordings
    for name in again.recordings[0].files:
        assert (tmp_path / "avatar" / name).read_bytes() == (folder / name).read_bytes()
    assert not (tmp_path / "avatar" / "media" / "private.wav").exists()
    save_retriever(fitted, tmp_path / "avatar")  # once more over itself


def test_an_avatar_plays_only_what_its_knowledge_base_names(folder: Path) -> None:
    avatar = Avatar(make_retriever("tfidf").fit(read_knowledge_base(folder / "kb.csv")))
    assert avatar.reply([Turn("You", "Where are you from?", "user")]).text == "I grew up in Moldova."
    client = TestClient(create_avatar_app(avatar), base_url="http://127.0.0.1")
    page = client.get("/")
    assert "media-src 'self'" in page.headers["content-security-policy"]
    token = page.text.split('data-csrf="')[1].split('"')[0]
    headers = {"accept": "application/json", "x-csrf-token": token}
    recording = client.post("/say", json={"text": "Where are you from?"}, headers=headers).json()["recording"]
    assert not recording["is_video"]
    assert "town" not in recording["source"]
    assert client.post("/say", json={"text": "Do you have siblings?"}, headers=headers).json()["recording"] is None
    page = client.get("/").text
    assert f'<audio class="recording" controls preload="metadata" src="{recording["source"]}"' in page
    assert f'<track kind="captions" src="{recording["captions"]}"' in page
    assert "autoplay" not in page

    sound = (folder / "media" / "home town.wav").read_bytes()
    whole = client.get(recording["source"])
    assert (whole.status_code, whole.headers["content-type"], whole.content) == (200, "audio/wav", sound)
    assert whole.headers["accept-ranges"] == "bytes"
    part = client.get(recording["source"], headers={"range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, sound[100:200])
    assert part.headers["content-range"] == f"bytes 100-199/{len(sound)}"
    assert client.get(recording["source"], headers={"range": "bytes=999999-"}).status_code == 416
    captions = client.get(recording["captions"])
    assert captions.headers["content-type"].startswith("text/vtt")
    assert captions.text == CAPTIONS
    for name in ("home town.wav", address_of_file("media/private.wav"), "../kb.csv", "%2e%2e%2fkb.csv", ""):
        assert client.get(f"/media/{name}").status_code == 404
    (folder / "media" / "home town.wav").unlink()
    (folder / "media" / "home town.wav").symlink_to(folder.parent / "elsewhere.wav")
    write_sound(folder.parent / "elsewhere.wav")
    assert client.get(recording["source"]).status_code == 404  # it was exchanged for a link to the outside


def test_a_pooled_study_shows_recordings(folder: Path, type_in: Any, tmp_path: Path) -> None:
    type_in(
        "retrieval",
        "pool",
        folder / "kb.csv",
        folder / "dialogues.jsonl",
        "--out",
        "study",
        "-r",
        "tfidf",
        cwd=tmp_path,
    )
    study = load_study(tmp_path / "study")
    recorded = [item.recording for item in study.items if isinstance(item, CandidateItem) and item.recording]
    assert recorded == [Recording("media/home town.wav", "media/home.vtt")]
    with Store.open(tmp_path / "s.db") as store:
        app = create_app(study, store)
        client = TestClient(app, base_url="http://127.0.0.1")
        address = f"/media/{address_of_file('media/home town.wav')}"
        assert client.get(address, headers={"range": "bytes=0-3"}).content == b"RIFF"
        assert client.get(f"/media/{address_of_file('media/private.wav')}").status_code == 404
        app.close()


def test_a_recording_outside_the_study_is_refused_with_its_line(folder: Path, type_in: Any, tmp_path: Path) -> None:
    type_in(
        "retrieval",
        "pool",
        folder / "kb.csv",
        folder / "dialogues.jsonl",
        "--out",
        "study",
        "-r",
        "tfidf",
        cwd=tmp_path,
    )
    items = tmp_path / "study" / "items.jsonl"
    items.write_text(
        items.read_text(encoding="utf-8").replace("media/home town.wav", "../own/kb.wav"), encoding="utf-8"
    )
    with pytest.raises(DialometerError, match="lies outside the folder"):
        load_study(tmp_path / "study")


def test_a_lock_holds_recordings_and_copies_of_a_study_have_them(folder: Path, type_in: Any, tmp_path: Path) -> None:
    files = (folder / "kb.csv", folder / "dialogues.jsonl")
    type_in("retrieval", "pool", *files, "--out", "study", "-r", "tfidf", cwd=tmp_path)
    study = load_study(tmp_path / "study")
    before = part_hashes(study)
    assert "media/home town.wav" in before
    for copied in (archive.copy_study(study, tmp_path / "archived")[0].folder, tmp_path / "second"):
        if not copied.exists():
            making.copy_study(tmp_path / "study", copied)
        assert load_study(copied).recordings == study.recordings
    sound = tmp_path / "study" / "media" / "home town.wav"
    sound.unlink()
    write_sound(sound, seconds=0.7)
    changed = {name for name, digest in part_hashes(load_study(tmp_path / "study")).items() if digest != before[name]}
    assert changed == {"media/home town.wav"}
