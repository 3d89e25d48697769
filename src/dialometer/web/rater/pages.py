"""The raters' pages as HTML: texts, screens, messages. What is shown and stored is decided in ``flow``."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from jinja2 import ChoiceLoader, Environment, FunctionLoader, PackageLoader, StrictUndefined

from dialometer.design.protocol import announced_minutes
from dialometer.flow.chat import MAX_MESSAGE_LENGTH
from dialometer.flow.engine import Flow
from dialometer.flow.language import Language
from dialometer.flow.screens import CONSENT_FIELD, MORE_FIELD, Screen, fill
from dialometer.markup.markdown import prepare
from dialometer.model.dialogue import Turn
from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.scales import SCALES
from dialometer.web.rater.contents import Contents, back_step, drawn_alike
from dialometer.web.rater.drawn_fields import DrawnFields
from dialometer.web.rater.drawn_screens import DrawnScreens
from dialometer.web.rater.language_choice import LanguageChoice, language_choices
from dialometer.web.rater.layout import OTHER, confirmation, doubt, make_controls, typed_answers
from dialometer.web.rater.prose import render_prose
from dialometer.web.rater.turn_drawing import TurnDrawing
from dialometer.web.server.media import shown_recording
from dialometer.web.server.static_files import static_version


def _listed(value: object) -> list[str]:
    """What a form sent under one name, however often."""
    return [value] if isinstance(value, str) else [str(part) for part in value] if isinstance(value, list) else []


def _counted() -> Callable[[object], int]:
    """Numbers for the ids of one page."""
    numbers = itertools.count(1)
    return lambda _: next(numbers)


MANY_OPTIONS = 12
"""From here on a single choice is a list to open instead of a column of buttons."""

SAME_ADDRESS = ""
"""As the address of a link: the page itself, with all that its own address says."""
MESSAGES = (
    "full",
    "paused",
    "closed",
    "not_started",
    "blocked",
    "invitation",
    "unsigned",
    "no_session",
    "elsewhere",
    "started",
    "not_found",
    "expired",
    "busy",
    "too_large",
    "error",
    "settled",
)
"""The kinds of pages that end a visit or explain why nothing can be shown."""
ASKED = {
    "resume": ("resume.title", "resume.text", "resume.button"),
    "crowded": ("crowded.title", "crowded.text", "crowded.button"),
    "adjudication": ("adjudicate.title", "adjudicate.text", "button.start"),
}
"""The pages with one button: heading, text and the button's words."""
ENDINGS = (
    "completed",
    "declined",
    "screened_out",
    "failed_comprehension",
    "failed_checks",
    "stale",
    "withdrawn",
)
"""How a session ends: its state, or why it was screened out after the study had begun."""


def _scale_template(name: str) -> str | None:
    """The template of a scale that another package brings along; its own pages come before it."""
    scale = name.removeprefix("scales/").removesuffix(".html")
    file = SCALES.get(scale).template_file() if name == f"scales/{scale}.html" and scale in SCALES else None
    return file.read_text(encoding="utf-8") if file is not None else None


class Pages:
    """The pages of one study in its language. Raises :class:`StudyError` where the study's wording fits no page."""

    def __init__(self, study: Study, *, is_preview: bool = False) -> None:
        self.study = study
        self.is_preview = is_preview
        self.language = Language(study.spec.language, study.spec.wording)
        self._contents = Contents(study, self.language)
        self._drawn_screens = DrawnScreens()
        if study.shows_markdown:
            prepare()
        self._env = Environment(
            loader=ChoiceLoader([PackageLoader("dialometer.web"), FunctionLoader(_scale_template)]),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._env.filters["option_words"] = lambda option, scale: scale.option_words(option)
        self._env.filters["number"] = lambda value: f"{value:g}"
        self._env.filters["grouped"] = lambda n: f"{n:,}".replace(",", "\u202f")
        self._env.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False)
        self._env.globals.update(
            t=self.language.text,
            tn=self.language.count,
            forms=self.language.forms,
            lang=self.language,
            study=study.spec,
            is_preview=is_preview,
            drawn_fields=DrawnFields(),
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
        ending: str = "",
        is_not_kept: bool = False,
        resume_link: str = "",
        action: str = "",
        hidden: Mapping[str, str] | None = None,
        revealed: Sequence[Sequence[str]] = (),
    ) -> str:
        """One screen of a session, with what was typed in the fields and errors beside them.

        ``return_url``, ``code``, ``withdrawal_code`` and ``ending`` (one of :data:`ENDINGS`) belong to the last screen;
        the study's own code is shown where none is given. ``is_not_kept`` says that what was sent last was too late.
        ``resume_link`` goes on in another browser. A page that comes before any session is sent to ``action`` with the
        ``hidden`` fields of its link. ``revealed`` names the two systems of each arena, where the study tells them.
        """
        if screen.kind == "done":
            return self.render_message(
                ending or screen.state,
                root_path=root_path,
                return_url=return_url,
                code=code,
                withdrawal_code=withdrawal_code,
                is_not_kept=is_not_kept,
                revealed=revealed,
            )
        values: dict[str, Any] = {
            "csrf": csrf,
            "token": token,
            "shown_at_ms": flow.clock(),
            "session_mark": hashlib.sha256(session.id.encode()).hexdigest()[:12],
            "back_step": back_step(flow, session, screen),
            "resume_link": resume_link,
            **self._contents.progress(flow, session, screen),
        }
        given: dict[str, Any] = {"errors": errors, "typed": typed, "chat": chat, "hidden": hidden, "action": action}
        is_usual = not (any(given.values()) or is_not_kept or screen.step < session.step)
        key = drawn_alike(flow, session, screen) if is_usual else None
        if key is None:
            return self._draw(flow, session, screen, values, root_path, is_not_kept=is_not_kept, **given)
        gaps = tuple(name for name, value in values.items() if value not in (None, ""))
        key = (key, gaps, root_path)
        page = self._drawn_screens.filled(key, values)
        if page is None:
            drawn_with = {**values, **{name: self._drawn_screens.gap(name) for name in gaps}}
            page = self._drawn_screens.keep(key, self._draw(flow, session, screen, drawn_with, root_path), values)
        return page

    def _draw(
        self,
        flow: Flow,
        session: Session,
        screen: Screen,
        values: Mapping[str, Any],
        root_path: str,
        *,
        errors: Mapping[str, str] | None = None,
        typed: Mapping[str, object] | None = None,
        chat: Sequence[Turn] | None = None,
        hidden: Mapping[str, str] | None = None,
        action: str = "",
        is_not_kept: bool = False,
    ) -> str:
        messages = {name: self.language.explain(message) for name, message in (errors or {}).items()}
        controls = make_controls(screen, typed_answers(screen, typed or {}), messages)
        context: dict[str, Any] = {
            **values,
            "screen": screen,
            "controls": controls,
            "errors": messages,
            "is_earlier": screen.step < session.step,
            "languages": self._languages(flow, session, root_path, action, hidden or {}),
            "confirmed": [
                confirmation(control.field, {control.field.name: control.value})
                for control in controls
                if control.error and doubt(control.field, control.value)
            ],
            "is_not_kept": is_not_kept,
            "action": action or f"{root_path.rstrip('/')}/s",
            "hidden": hidden or {},
            "opened": frozenset(_listed((typed or {}).get("opened"))),
            "has_agreed": bool(session.consent_version),
            "may_replace": self.study.spec.design.may_go_back and screen.kind == "item",
            "group_error": messages.get(CONSENT_FIELD) or messages.get(MORE_FIELD) or "",
        }
        template, more = self._contents.of(flow, session, screen, controls, chat)
        context |= more
        scripts = ["timing.js", "draft.js", "send.js", "keys.js", "tabs.js", *self._scripts(screen)]
        if messages:
            scripts.append("errors.js")
        return self._render(template, root_path, scripts=scripts, **context)

    @staticmethod
    def _scripts(screen: Screen) -> list[str]:
        scripts = {script for field in screen.fields for script in field.scale.scripts}
        if screen.item is not None and screen.item.shown.fold_words is not None:
            scripts.add("folding.js")
        if screen.deadline_s is not None:
            scripts.add("countdown.js")
        if screen.kind == "chat":
            scripts.add("arena.js" if screen.item and screen.item.kind == "arena" else "chat.js")
        return sorted(scripts)

    def _languages(
        self, flow: Flow, session: Session, root_path: str, action: str, hidden: Mapping[str, str]
    ) -> list[LanguageChoice]:
        """The languages to choose from, until the first answer; before a session begins each has an address."""
        if self.is_preview or not flow.may_change_language(session):
            return []
        return language_choices(flow.study.spec.all_languages, self.language.tag, root_path if action else None, hidden)

    # other pages

    def render_start(
        self,
        *,
        csrf: str,
        root_path: str = "",
        hidden: Mapping[str, str] | None = None,
        languages: Sequence[str] = (),
    ) -> str:
        """The page on which a rater begins where the link names nobody, or where questions come before consent."""
        recruitment = self.study.spec.recruitment
        return self._render(
            "start.html",
            root_path,
            heading=self.study.spec.title,
            csrf=csrf,
            hidden=hidden or {},
            languages=language_choices(languages, self.language.tag, root_path, hidden or {}),
            minutes=announced_minutes(self.study),
            pay=recruitment.pay if recruitment.pay_cents else "",
            scripts=["send.js"],
        )

    def render_ask(self, what: str, action: str, hidden: Mapping[str, str], *, csrf: str, root_path: str = "") -> str:
        """A page with one button (see :data:`ASKED`): going on in this browser, trying to start again, beginning to settle."""
        heading, text, button = (self.language.text(key) for key in ASKED[what])
        asked = {"heading": heading, "text": text, "button": button, "action": action, "hidden": hidden}
        return self._render("ask.html", root_path, **asked, csrf=csrf, scripts=["send.js"])

    def render_withdraw(self, *, csrf: str, root_path: str = "", code: str = "", is_unknown: bool = False) -> str:
        """The form on which a rater withdraws, with the code of the browser's own session, or one that no session has:
        that one stays in the form, to be compared and corrected."""
        heading = self.language.text("withdraw.title")
        # Sent plainly, without a script: the answer is a page of its own, and sending it twice does no harm.
        known = {"code": code, "is_unknown": is_unknown}
        return self._render("withdraw.html", root_path, heading=heading, csrf=csrf, **known, scripts=[])

    def render_unsent(self, form: Mapping[str, Sequence[str]], *, action: str, root_path: str, detail: str) -> str:
        """A page that keeps a form that could not be stored, and sends it again. It needs no database."""
        fields = [(name, value) for name, values in form.items() for value in values]
        return self._render(
            "unsent.html",
            root_path,
            heading=self.language.text("message.unsent.title"),
            text=self.language.text("message.unsent.text"),
            detail=detail,
            fields=fields,
            action=action,
            scripts=[],
        )

    def render_message(
        self,
        kind: str,
        *,
        root_path: str = "",
        return_url: str = "",
        code: str | None = None,
        detail: str = "",
        withdrawal_code: str = "",
        is_not_kept: bool = False,
        revealed: Sequence[Sequence[str]] = (),
        reload_url: str | None = None,
    ) -> str:
        """A page that ends a session (one of :data:`ENDINGS`) or says why nothing can be shown (:data:`MESSAGES`).

        Where loading the page again may help, it links to ``reload_url``, by default to the screen of the session.
        """
        family = "message" if kind in MESSAGES else "done"
        if family == "done" and kind not in ENDINGS:
            family, kind = "message", "error"
        recruitment = self.study.spec.recruitment
        is_out = kind in ("screened_out", "failed_comprehension", "failed_checks")
        own_code = recruitment.completion_code if kind == "completed" else recruitment.screen_out_code if is_out else ""
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
            may_close=is_out or kind in ("completed", "declined"),
            is_not_kept=is_not_kept,
            revealed=revealed,
            text=self.language.text(f"{family}.{kind}.text"),
            detail=detail,
            debriefing=debriefing,
            code=own_code if code is None else code,
            withdrawal_code=withdrawal_code,
            return_url=return_url if urlsplit(return_url).scheme in ("https", "http") else "",
            may_reload=kind in ("error", "busy", "expired", "elsewhere", "paused", "not_started"),
            reload_url=f"{root_path.rstrip('/')}/s" if reload_url is None else reload_url,
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
                may_close=False,
                is_not_kept=False,
                revealed=(),
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
            playing=lambda recording: shown_recording(recording, root),
            drawn=TurnDrawing(self.study, root),
            unique=_counted(),
            **{"languages": (), **context},
        )
