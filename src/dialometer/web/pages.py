"""The pages a rater sees, drawn from screens. Knows how things look; what is shown and stored is the flow's business."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined

from dialometer.design.protocol import estimate_minutes
from dialometer.flow.chat import MAX_MESSAGE_LENGTH
from dialometer.flow.engine import Flow
from dialometer.flow.screens import CONSENT_FIELD, MORE_FIELD, Screen, fill
from dialometer.model.dialogue import Turn
from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.web.contents import Contents, back_step
from dialometer.web.forms import OTHER, typed_answers
from dialometer.web.language import Language
from dialometer.web.layout import make_controls
from dialometer.web.prose import render_prose

MANY_OPTIONS = 12
"""From here on a single choice is a list to open instead of a column of buttons."""

_SCALE_SCRIPTS = {"slider": "slider.js", "ranking": "ranking.js", "text": "writing.js", "choice": "writing.js"}
MESSAGES = (
    "full",
    "paused",
    "blocked",
    "invitation",
    "no_session",
    "elsewhere",
    "not_found",
    "expired",
    "busy",
    "too_large",
    "error",
)
"""The kinds of pages that end a visit or explain why nothing can be shown."""


class Pages:
    """The pages of one study in its language. Raises :class:`StudyError` where the study's wording fits no page."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.language = Language(study.spec.language, study.spec.wording)
        self._contents = Contents(study, self.language)
        self._env = Environment(
            loader=PackageLoader("dialometer.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._env.filters["number"] = lambda value: f"{value:g}"
        self._env.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False)
        self._env.globals.update(
            t=self.language.text,
            tn=self.language.count,
            forms=self.language.forms,
            lang=self.language,
            study=study.spec,
            OTHER=OTHER,
            MANY_OPTIONS=MANY_OPTIONS,
            MAX_MESSAGE_LENGTH=MAX_MESSAGE_LENGTH,
        )

    # screens

    def render_screen(
        self,
        flow: Flow,
        session: Session,
        screen: Screen,
        *,
        csrf: str,
        token: str,
        errors: Mapping[str, str] | None = None,
        typed: Mapping[str, object] | None = None,
        chat: Sequence[Turn] | None = None,
        root_path: str = "",
        return_url: str = "",
        code: str | None = None,
        withdrawal_code: str = "",
    ) -> str:
        """One screen of a session: what was typed stands in the fields, errors stand at the fields that caused them.

        ``return_url``, ``code`` and ``withdrawal_code`` belong to the last screen; the study's own code is shown where
        none is given.
        """
        if screen.kind == "done":
            return self.render_message(
                screen.state, root_path=root_path, return_url=return_url, code=code, withdrawal_code=withdrawal_code
            )
        told = {name: self.language.explain(message) for name, message in (errors or {}).items()}
        controls = make_controls(screen, typed_answers(screen, typed or {}), told)
        context: dict[str, Any] = {
            "screen": screen,
            "csrf": csrf,
            "token": token,
            "shown_at_ms": flow.clock(),
            "session_mark": hashlib.sha256(session.id.encode()).hexdigest()[:12],
            "controls": controls,
            "errors": told,
            "progress": self._contents.progress(flow, session, screen),
            "back_step": back_step(flow, session, screen),
            "is_earlier": screen.step < session.step,
            "group_error": told.get(CONSENT_FIELD) or told.get(MORE_FIELD) or "",
        }
        template, more = self._contents.of(flow, session, screen, controls, chat)
        context |= more
        scripts = ["timing.js", "draft.js", "send.js", "keys.js", "tabs.js", *self._scripts(screen)]
        return self._render(template, root_path, scripts=scripts, **context)

    @staticmethod
    def _scripts(screen: Screen) -> list[str]:
        scripts = {_SCALE_SCRIPTS[f.scale.type] for f in screen.fields if f.scale.type in _SCALE_SCRIPTS}
        if screen.deadline_s is not None:
            scripts.add("countdown.js")
        if screen.kind == "chat":
            scripts.add("chat.js")
        return sorted(scripts)

    # other pages

    def render_start(self, *, csrf: str, root_path: str = "", error: str = "") -> str:
        """The page on which a rater without platform or invitation begins."""
        recruitment = self.study.spec.recruitment
        return self._render(
            "start.html",
            root_path,
            heading=self.study.spec.title,
            csrf=csrf,
            minutes=math.ceil(recruitment.minutes or estimate_minutes(self.study)),
            pay=f"{recruitment.pay_cents / 100:.2f} {recruitment.currency}" if recruitment.pay_cents else "",
            error=self.language.explain(error) if error else "",
            scripts=["send.js"],
        )

    def render_withdraw(self, *, csrf: str, root_path: str = "", is_unknown: bool = False) -> str:
        """The form on which a rater withdraws; ``is_unknown`` says that no session has the code that was typed."""
        heading = self.language.text("withdraw.title")
        # Sent plainly, without a script: the answer is a page of its own, and sending it twice does no harm.
        return self._render("withdraw.html", root_path, heading=heading, csrf=csrf, is_unknown=is_unknown, scripts=[])

    def render_message(
        self,
        kind: str,
        *,
        root_path: str = "",
        return_url: str = "",
        code: str | None = None,
        detail: str = "",
        withdrawal_code: str = "",
    ) -> str:
        """A page that ends a session (its state) or says why nothing can be shown (one of :data:`MESSAGES`)."""
        family = "message" if kind in MESSAGES else "done"
        if family == "done" and kind not in ("completed", "declined", "screened_out", "stale", "withdrawn"):
            family, kind = "message", "error"
        recruitment = self.study.spec.recruitment
        own_code = {"completed": recruitment.completion_code, "screened_out": recruitment.screen_out_code}.get(kind, "")
        debriefing = None
        if kind == "completed":
            text = self.study.texts.get(self.study.spec.texts.debriefing, "")
            debriefing = render_prose(fill(self.study, self.study.spec.presentation, text)) if text else None
        heading = (
            debriefing.heading if debriefing and debriefing.heading else self.language.text(f"{family}.{kind}.title")
        )
        return self._render(
            "message.html",
            root_path,
            heading=heading,
            kind=kind,
            text=self.language.text(f"{family}.{kind}.text"),
            detail=detail,
            debriefing=debriefing,
            code=own_code if code is None else code,
            withdrawal_code=withdrawal_code,
            return_url=return_url if urlsplit(return_url).scheme in ("https", "http") else "",
            may_reload=kind in ("error", "busy", "expired", "elsewhere", "paused"),
            scripts=["ending.js"] if family == "done" else [],
        )

    def render_wizard(self, *, csrf: str, root_path: str = "", is_locked: bool = False) -> str:
        """The console from which a person answers raters in place of the agent."""
        if is_locked:
            return self._render(
                "message.html",
                root_path,
                heading=self.language.text("wizard.locked.title"),
                kind="locked",
                text=self.language.text("wizard.locked.text"),
                detail="",
                debriefing=None,
                code="",
                withdrawal_code="",
                return_url="",
                may_reload=False,
                scripts=[],
            )
        heading = self.language.text("wizard.title")
        return self._render("wizard.html", root_path, heading=heading, csrf=csrf, scripts=["wizard.js"])

    def _render(self, template: str, root_path: str, **context: Any) -> str:
        root = root_path.rstrip("/")
        return self._env.get_template(template).render(
            root=root,
            asset=lambda name: f"{root}/static/{name}?v={static_version()}",
            **context,
        )


@cache
def static_version() -> str:
    """Changes with any file of the folder, so that browsers may keep the files for good."""
    digest = hashlib.sha256()
    for file in sorted(files("dialometer.web").joinpath("static").iterdir(), key=lambda file: file.name):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:10]
