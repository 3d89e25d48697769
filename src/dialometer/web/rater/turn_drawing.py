"""What turns hold, as pages show it: Markdown as HTML, calls of tools cut to a readable length, media with their addresses."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dialometer.flow.engine import Flow
from dialometer.markup.markdown import render_markdown
from dialometer.model.dialogue import Media, ToolCall
from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.model.tool_steps import Cut, cut
from dialometer.readers.study_media import markdown_images
from dialometer.web.server.media import file_source


@dataclass(frozen=True, slots=True)
class ToolStep:
    """One call of a tool as a page shows it."""

    name: str
    arguments: Cut
    result: Cut | None


class TurnDrawing:
    """Draws the turns of one study for pages under one address."""

    def __init__(self, study: Study, root: str) -> None:
        self.study = study
        self.root = root

    def markdown(self, text: str) -> Markup:
        """A text as HTML that can do nothing: see :mod:`dialometer.markup.markdown`."""
        html = render_markdown(text, markdown_images(self.study), self.source)
        return Markup(html)  # nosec B704  # cleaned there

    def source(self, path: str) -> str:
        """The address of a media file."""
        return file_source(path, self.root)

    @staticmethod
    def steps(calls: Sequence[ToolCall]) -> list[ToolStep]:
        """Calls with their arguments set out over lines where they are JSON."""
        return [
            ToolStep(
                call.name, cut(_set_out(call.arguments)), None if call.result is None else cut(_set_out(call.result))
            )
            for call in calls
        ]

    def media(self, media: Sequence[Media]) -> list[tuple[str, str, str]]:
        """Kind, address and alternative text of each file."""
        return [(entry.kind, self.source(entry.path), entry.alt) for entry in media]


def reply_html(flow: Flow, session: Session, root: str, reply: str | None) -> str:
    """A live reply as pages show it where the session's condition has Markdown, else nothing."""
    render = reply_renderer(flow, session, root) if reply else None
    return render(reply) if render is not None and reply else ""


def reply_renderer(flow: Flow, session: Session, root: str) -> Callable[[str], str] | None:
    """What makes HTML of live replies where the session's condition has Markdown, else nothing."""
    item = flow.screen(session).item if flow.study.shows_markdown else None
    return TurnDrawing(flow.study, root).markdown if item is not None and item.shown.text == "markdown" else None


MAX_SET_OUT = 100_000
"""Characters; longer JSON is shown as it was written, since only its beginning is shown anyway."""


def _set_out(text: str) -> str:
    if len(text) > MAX_SET_OUT or not text.startswith(("{", "[")):
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text
