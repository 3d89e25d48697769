"""Whole sessions in a real browser, from the start page to completion: by mouse, by finger, by keyboard alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page
from walking import DESKTOP, PHONE, KeyboardRater, Rater, Served, copy_study, shorten

pytestmark = pytest.mark.browser

TEMPLATES = ["anchoring", "strategies", "acute", "best-worst", "avatar", "chat", "likert", "rubric", "mqm", "arena"]
OTHERS = ["replies", "turns", "arabic"]
RIGHT = {"who_is_judged": "Speaker 2 in each conversation", "reading_check": "2", "look": "No"}
WAYS: dict[str, tuple[type[Rater], dict[str, Any]]] = {
    "mouse": (Rater, DESKTOP),
    "finger": (Rater, PHONE),
    "keyboard": (KeyboardRater, DESKTOP),
    "keyboard-phone": (KeyboardRater, PHONE),
}
# Each template by mouse and by keyboard, on a desktop and on a phone; where a phone shows other things, by finger too.
# Slow are those that test_accessibility walks by mouse as well, and by keyboard those whose fields others have.
WALKS = [
    *((name, "mouse") for name in ("acute", "best-worst")),
    *((name, "keyboard-phone") for name in ("best-worst", "chat")),
    *(
        pytest.param(name, way, marks=pytest.mark.slow)
        for way, names in (
            ("mouse", ("anchoring", "strategies", "avatar", "chat", "rubric", "mqm", "arena", "likert")),
            ("keyboard-phone", ("anchoring", "strategies", "acute", "avatar", "likert", "rubric", "mqm", "arena")),
        )
        for name in names
    ),
    ("best-worst", "finger"),
    ("arena", "finger"),
    pytest.param("replies", "finger", marks=pytest.mark.slow),
    ("replies", "keyboard"),
    ("turns", "finger"),
    ("arabic", "keyboard"),
    ("arabic", "finger"),
]


@pytest.mark.parametrize(("name", "way"), WALKS)
def test_a_session_can_be_walked(
    name: str, way: str, tmp_path: Path, serve: Callable[..., Served], open_page: Callable[..., Page]
) -> None:
    """Every judgment that the screens ask for is stored once, and the session is complete. Of the screening only its answers are
    stored. No screen is called by the id of its item."""
    kind, device = WAYS[way]
    served = serve(copy_study(name, tmp_path, shorten if name in TEMPLATES else lambda spec, items: None))
    rater = kind(open_page(**device), right=RIGHT)
    rater.walk(served.url)
    assert not rater.page.query_selector("#answers"), rater.page.inner_text("main")
    (session,) = served.store.sessions.all()
    assert session.state == "completed"
    record = served.store.records.of_session(session.id)
    seen = [screen for screen in rater.seen if screen != "screening"]
    assert sorted(visit.screen for visit in record.visits) == sorted(map(served.study.own_key, seen))
    shown_ids = served.study.shown_ids.values()
    assert {screen.split("/")[1] for screen in seen if screen.startswith(("item/", "practice/", "chat/"))} <= {
        *shown_ids
    }
    assert record.judgments
    keys = [(j.item_id, j.criterion, j.system, j.turn, j.is_practice) for j in record.judgments]
    assert len(keys) == len(set(keys))
    assert {visit.device for visit in record.visits} == {"phone" if device is PHONE else "desktop"}
    assert all(visit.first_input_at_ms is not None for visit in record.visits)
