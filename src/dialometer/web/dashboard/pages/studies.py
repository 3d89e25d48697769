"""All studies side by side."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from dialometer.errors import DialometerError
from dialometer.web.dashboard.dashboard import Desk, Visit, page
from dialometer.web.dashboard.numbers import StudyNumbers, count_study
from dialometer.web.dashboard.running_studies import Running


def numbers_of(desk: Desk, running: Running, at_ms: int, source: str = "") -> StudyNumbers:
    """The numbers of a study, counted at most every few seconds."""
    make = lambda: count_study(running.study, running.store, at_ms, source)  # noqa: E731
    return desk.kept(running, ("numbers", source), make)


@page("/", role="viewer")
def studies(desk: Desk, visit: Visit) -> Response:
    """Every study with how far it has come; drafts and broken ones too."""
    cards = [_card(desk, name, visit.at_ms) for name in desk.held.shelf.names()]
    return desk.show("studies.html", visit, cards=cards, may_grow=desk.held.shelf.may_grow)


def _card(desk: Desk, name: str, at_ms: int) -> dict[str, Any]:
    held = desk.held
    card: dict[str, Any] = {"name": name, "title": name, "state": "draft", "numbers": None, "problem": ""}
    try:
        if held.is_open(name):
            running = held.running(name)
            controls = desk.kept(running, "controls", running.store.controls)
            numbers = numbers_of(desk, running, at_ms)
            return card | {"title": running.study.spec.title, "state": controls.state, "numbers": numbers}
        study, problems = held.checked(name)
        n_errors = sum(problem.severity == "error" for problem in problems)
        if study is not None:
            card["title"] = study.spec.title
        if n_errors:
            card["problem"] = f"{n_errors} problem{'' if n_errors == 1 else 's'} to mend"
    except DialometerError as error:
        card |= {"state": "broken", "problem": error.message.splitlines()[0]}
    return card
