"""Every screen of every template without scripts: drawn, filled in, refused with everything kept, accepted, stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plain_browser import Form, PlainBrowser
from starlette.testclient import TestClient
from walking import STUDIES, TEMPLATES, copy_study, shorten

from dialometer.design.load import load_study
from dialometer.storage.store import Store
from dialometer.web.study_app import create_app

RIGHT = {"who_is_judged": "Speaker 2 in each conversation", "reading_check": "2", "look": "No"}
NAMES = [
    "anchoring",
    "strategies",
    "acute",
    "best-worst",
    "avatar",
    "chat",
    "arena",
    "likert",
    "replies",
    "turns",
    "arabic",
]


def fill(form: Form) -> None:
    """Puts a valid answer into every control."""
    groups: dict[str, list[str]] = {}
    n_ranks = 0
    for control in form.controls:
        if control.kind == "radio":
            groups.setdefault(control.name, []).append(control.value)
        elif control.kind == "checkbox":
            control.is_chosen = control.value == form.values(control.name)[0]
        elif control.kind == "select":
            control.value = "Egypt"
        elif control.kind == "textarea":
            control.value = "Two lines <b>&amp;\nall kept"
        elif control.kind == "text" and control.mode == "numeric" and "." in control.name:
            n_ranks += 1
            control.value = str(n_ranks)
        elif control.kind == "text" and control.mode:
            control.value = "42" if control.name != "mood" else "1,5"
        elif control.kind == "text" and not control.name.endswith(".other"):
            control.value = 'say "hi"'
    for name, values in groups.items():
        own = RIGHT.get(name)
        form.choose(name, own if own in values else values[-1] if name.endswith(".worst") else values[0])


def answers_of(form: Form) -> list[tuple[str, str]]:
    own = {"csrf", "screen", "token", "shown_at_ms", "first_input_at_ms", "focus_lost_n", "focus_lost_s", "device"}
    return [pair for pair in form.sent() if pair[0] not in own]


def refuse_once(browser: PlainBrowser) -> None:
    """Sends the screen with one answer missing; the page must come back with all the others."""
    form = browser.form()
    fill(form)
    needed = [c for c in form.controls if c.kind == "radio" and c.is_chosen] or [
        c for c in form.controls if c.kind == "text" and c.mode
    ]
    if not needed:
        return
    if needed[0].kind == "radio":
        needed[0].is_chosen = False
    else:
        needed[0].value = "no number"
    sent = answers_of(form)
    browser.send(form)
    assert browser.status == 422
    assert len(browser.page.errors) == 1
    assert answers_of(browser.form()) == sent


@pytest.mark.parametrize("name", NAMES)
def test_every_condition_can_be_answered_without_scripts(name: str, tmp_path: Path) -> None:
    is_template = (TEMPLATES / name).exists()
    study = load_study(copy_study(name, tmp_path, shorten) if is_template else STUDIES / name)
    with Store.open(tmp_path / "walk.db") as store:
        with TestClient(create_app(study, store)) as client:
            for _cell in study.cells:
                client.cookies.clear()
                walk(PlainBrowser(client), study.spec.language)
        sessions = list(store.sessions.all())
        assert {session.draw.cell for session in sessions} == set(range(len(study.cells)))
        for session in sessions:
            assert session.state == "completed"
            assert store.records.of_session(session.id).judgments


def walk(browser: PlainBrowser, language: str) -> None:
    browser.open("/")
    browser.send(browser.page.forms[0])
    seen: set[str] = set()
    for _ in range(80):
        assert len(browser.page.headings) == 1
        assert browser.page.headings[0]
        assert not browser.page.inline, "the pages hold no scripts or styles of their own"
        assert browser.page.language == language
        if not browser.is_at_screen:
            break
        key = browser.form().screen
        if key.startswith("chat"):
            for text in ("Hello there", "I read a lot"):
                say = browser.form("say")
                next(c for c in say.controls if c.name == "text").value = text
                browser.send(say)
                assert text in browser.html
        if key not in seen:
            seen.add(key)
            refuse_once(browser)
        form = browser.form()
        fill(form)
        wanted = {"consent": ("consent", "agree"), "more": ("more", "no")}.get(key.split("/")[0])
        browser.send(form, wanted)
        assert browser.status == 200, browser.page.errors
    assert not browser.is_at_screen
    assert {key.split("/")[0] for key in seen} >= {"consent", "instructions", "item"}


def test_markup_in_dialogues_and_texts_shows_as_markup(tmp_path: Path) -> None:
    study = load_study(STUDIES / "replies")
    with Store.open(tmp_path / "walk.db") as store, TestClient(create_app(study, store)) as client:
        browser = PlainBrowser(client)
        browser.open("/")
        browser.send(browser.page.forms[0])
        assert "&lt;b&gt;not bold&lt;/b&gt;" in browser.html
        assert '<a href="https://example.org/" target="_blank" rel="noopener noreferrer">link</a>' in browser.html
        while browser.form().screen != f"item/{study.shown_ids['r1']}":
            form = browser.form()
            fill(form)
            browser.send(form)
        assert "&lt;script&gt;alert(&#39;no&#39;)&lt;/script&gt; Parcels" in browser.html
        assert "&lt;i&gt;as always&lt;/i&gt;" in browser.html
        assert "<i>as always" not in browser.html


@pytest.mark.parametrize("anchor", ["none", "number", "text", "both"])
def test_the_anchor_is_shown_as_the_condition_says(anchor: str, tmp_path: Path) -> None:
    def change(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
        shorten(spec, items)
        spec["design"]["factors"] = []
        spec["analysis"] = {}
        spec["presentation"] |= {"anchor": anchor, "anchor_values": {"readability": 100, "coherence": 80}}

    study = load_study(copy_study("anchoring", tmp_path, change))
    with Store.open(tmp_path / "walk.db") as store, TestClient(create_app(study, store)) as client:
        browser = PlainBrowser(client)
        browser.open("/")
        browser.send(browser.page.forms[0])
        while not browser.form().screen.startswith("practice"):
            form = browser.form()
            fill(form)
            browser.send(form)
        standard = study.practice_items[0].standard  # type: ignore[union-attr]
        assert standard
        assert (standard in browser.html) == (anchor in ("text", "both"))
        assert ("Value of the standard response for Coherence: 80" in browser.html) == (anchor == "both")
        assert ("Coherence: compare with the value 80" in browser.html) == (anchor == "number")
        assert "Your task is to rate the responses below on Readability and Coherence." in browser.html


def as_a_whole(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
    spec["items"]["rate"] = "whole"


def two_replies(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
    spec["systems"] = spec["systems"][:2]
    spec["scales"]["order"] = {"type": "pairwise", "allow_tie": True, "allow_cannot_tell": True}
    for item in items:
        del item["responses"]["cedar"]


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [("turns", as_a_whole, {"lobby"}), ("replies", two_replies, {"", "alder", "birch"})],
)
def test_whole_dialogues_and_pairs_of_responses(name: str, change: Any, expected: set[str], tmp_path: Path) -> None:
    study = load_study(copy_study(name, tmp_path, change))
    with Store.open(tmp_path / "walk.db") as store:
        with TestClient(create_app(study, store)) as client:
            walk(PlainBrowser(client), "en")
        (session,) = store.sessions.all()
        assert {judgment.system for judgment in store.records.of_session(session.id).judgments} == expected


def test_no_system_is_named(tmp_path: Path) -> None:
    """What a rater's browser receives never says whose response it shows."""
    study = load_study(STUDIES / "replies")
    with Store.open(tmp_path / "walk.db") as store, TestClient(create_app(study, store)) as client:
        browser = PlainBrowser(client)
        browser.open("/")
        browser.send(browser.page.forms[0])
        while browser.is_at_screen:
            assert not any(system.name in browser.html for system in study.spec.systems), browser.form().screen
            form = browser.form()
            fill(form)
            browser.send(form)
