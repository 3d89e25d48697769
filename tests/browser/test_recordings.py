"""Recorded answers in a real browser: played after a gesture, with captions, beside their text; and the rating page."""

from __future__ import annotations

import base64
import json
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from test_accessibility import STILL, examine
from walking import Rater, Served, copy_study, shorten

from dialometer.retrieval.avatar import Avatar
from dialometer.retrieval.knowledge_base import read_knowledge_base
from dialometer.retrieval.retriever import make_retriever
from dialometer.web.rater.avatar import create_avatar_app
from loopback import serving_app

pytestmark = pytest.mark.browser
PLAYED = "player => player.readyState > 0 && (!player.paused || player.ended || player.currentTime > 0)"
FILM = """async () => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 32;
  const pen = canvas.getContext("2d");
  const recorder = new MediaRecorder(canvas.captureStream(20), { mimeType: "video/webm" });
  const parts = [];
  recorder.ondataavailable = (event) => parts.push(event.data);
  const ended = new Promise((done) => { recorder.onstop = done; });
  recorder.start();
  for (let k = 0; k < 12; k++) {
    pen.fillStyle = k % 2 ? "teal" : "white";
    pen.fillRect(0, 0, 32, 32);
    await new Promise((done) => setTimeout(done, 50));
  }
  recorder.stop();
  await ended;
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  return btoa(String.fromCharCode(...bytes));
}"""


def write_sound(path: Path) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8000)
        file.writeframes(bytes(128 + (20 if k // 10 % 2 else -20) for k in range(8000)))


def test_an_avatar_plays_its_answer_after_a_gesture(tmp_path: Path, open_page: Callable[..., Page]) -> None:
    page = open_page(**STILL)
    (tmp_path / "film.webm").write_bytes(base64.b64decode(page.evaluate(FILM)))
    write_sound(tmp_path / "sound.wav")
    captions = "WEBVTT\n\n00:00.000 --> 00:05.000\nI grew up in Moldova.\n"
    (tmp_path / "film.vtt").write_text(captions, encoding="utf-8")
    rows = [
        {
            "answer": "I grew up in Moldova.",
            "questions": ["Where are you from?"],
            "media": "film.webm",
            "captions": "film.vtt",
        },
        {"answer": "One brother.", "questions": ["Do you have siblings?"], "media": "sound.wav"},
    ]
    (tmp_path / "kb.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    avatar = Avatar(make_retriever("tfidf").fit(read_knowledge_base(tmp_path / "kb.jsonl")))
    with serving_app(create_avatar_app(avatar, title="Margarita")) as port:
        page.goto(f"http://127.0.0.1:{port}/")
        page.fill("#message", "Where are you from?")
        page.keyboard.press("Enter")
        film = page.locator("video.recording")
        expect(film).to_be_visible()
        page.wait_for_function(f"() => ({PLAYED})(document.querySelector('video'))")
        page.wait_for_function("() => document.querySelector('video').textTracks[0].cues?.length === 1")
        assert film.evaluate("player => player.textTracks[0].mode") == "showing"
        expect(page.locator(".turn .said").nth(1)).to_have_text("I grew up in Moldova.")
        examine(page, "avatar with a film")
        page.fill("#message", "Do you have siblings?")
        page.locator("#at-once").uncheck()
        page.click("#say button")
        sound = page.locator("audio.recording")
        expect(sound).to_be_visible()
        page.wait_for_function("() => document.querySelector('audio').readyState > 0")
        assert sound.evaluate("player => player.paused && player.currentTime === 0")
        assert film.evaluate("player => player.paused")
        page.reload()  # no gesture on this page yet: nothing plays, the buttons are there
        expect(page.locator("video.recording")).to_have_attribute("controls", "")
        assert page.evaluate("() => [...document.querySelectorAll('video, audio')].every(player => player.paused)")
        expect(page.locator("#at-once")).not_to_be_checked()
        examine(page, "avatar with recordings")


def test_a_candidate_is_rated_with_its_recording(
    tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    def change(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
        shorten(spec, items)
        for item in items:
            item["candidate"]["media"] = "sound.wav"

    folder = copy_study("avatar", tmp_path, change)
    write_sound(folder / "sound.wav")
    served = serve(folder)
    page = open_page(**STILL)
    rater = Rater(page)
    rater.begin(served.url)
    while not page.query_selector(".candidate"):
        rater.one_screen()
    player = page.locator(".candidate audio.recording")
    expect(player).to_be_visible()
    page.wait_for_function("() => document.querySelector('audio').readyState > 0")
    assert player.evaluate("player => player.paused")
    assert page.locator(".candidate .said").inner_text()
    examine(page, "candidate with a recording")
