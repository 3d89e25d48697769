"""The real server and pages that complain when a script fails or another host is asked for anything."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request

sys.path.insert(0, str(Path(__file__).parent))

from walking import Served, serving


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Serves a study folder until the test ends."""
    with contextlib.ExitStack() as stack:
        n = 0

        def start(folder: Path, **settings: Any) -> Served:
            nonlocal n
            n += 1
            return stack.enter_context(serving(folder, tmp_path / f"served-{n}.db", **settings))

        yield start


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages in a context of their own; a failing script or a request to another host fails the test."""
    problems: list[str] = []
    contexts = []

    def watch_request(request: Request) -> None:
        if not request.url.startswith("http://127.0.0.1:"):
            problems.append(f"asked another host: {request.url}")

    def watch(page: Page) -> None:
        page.on("pageerror", lambda error: problems.append(f"script failed: {error}"))
        page.on("console", lambda message: note(message.type, message.text))

    def note(kind: str, text: str) -> None:
        # A refused form is told by its status, which Chromium reports as an error of the network.
        if kind == "error" and "Failed to load resource" not in text:
            problems.append(f"console: {text}")

    def open_one(**options: Any) -> Page:
        context = browser.new_context(**options)
        context.set_default_timeout(60_000)
        context.on("request", watch_request)
        context.on("page", watch)
        contexts.append(context)
        return context.new_page()

    yield open_one
    for context in contexts:
        context.close()
    assert not problems, problems
