"""A model takes part: raters one after the other or side by side, screen by screen, until each session is over."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from dialometer.errors import AnswersRejected
from dialometer.flow.engine import now_ms
from dialometer.flow.screens import CONSENT_FIELD, MORE_FIELD
from dialometer.judges.access import JudgeAccess, Shown
from dialometer.judges.asking import GaveUp, Prompting
from dialometer.judges.model_client import ModelClient, Usage
from dialometer.judges.prompt import message_prompt, system_prompt
from dialometer.model.dialogue import Turn
from dialometer.model.study import Study

MAX_SCREENS = 10_000
GIVEN_UP = "given up"


@dataclass
class JudgeProgress:
    """How far a run has come; handed to the caller after every stored screen."""

    n_raters: int = 0
    n_done: int = 0
    n_judgments: int = 0
    n_refused: int = 0
    states: dict[str, int] = field(default_factory=dict)
    given_up: list[str] = field(default_factory=list)
    spent: Usage = field(default_factory=Usage)


@dataclass
class ModelRater:
    """One model in one study. Running it again goes on where it stopped: sessions are found by the raters' names."""

    study: Study
    access: JudgeAccess
    prompting: Prompting
    n_parallel: int = 1
    name: str = ""
    """The judge's name; the model's by default."""
    language: str = ""
    """In which of the study's languages it reads; the first by default."""

    @property
    def client(self) -> ModelClient:
        """The model."""
        return self.prompting.client

    def rater_name(self, number: int) -> str:
        """The name under which a rater is known: the judge's, and a number from 1."""
        return f"{self.name or self.client.model.model}#{number}"

    def run(self, n_raters: int, report: Callable[[JudgeProgress], None] | None = None) -> JudgeProgress:
        """Lets so many raters take part. A rater whose model gives no usable answer is left where it stands.

        All arrive first, one after the other, so that what is drawn for them does not depend on who is faster.
        """
        progress = JudgeProgress(n_raters=n_raters, spent=self.client.spent)
        lock = Lock()

        def report_progress(n_judgments: int = 0, state: str = "") -> None:
            with lock:
                progress.n_judgments += n_judgments
                if state:
                    progress.n_done += 1
                    progress.states[state] = progress.states.get(state, 0) + 1
                if report is not None:
                    report(progress)

        sessions = {
            number: self.access.arrive(self.rater_name(number), self.language) for number in range(1, n_raters + 1)
        }
        progress.n_refused = sum(session is None for session in sessions.values())

        def take_part(number: int, session: str) -> None:
            try:
                state = self._walk(session, number, report_progress)
            except (GaveUp, AnswersRejected) as error:
                with lock:
                    progress.given_up.append(f"{self.rater_name(number)}: {error.message}")
                state = GIVEN_UP
            report_progress(state=state)

        with ThreadPoolExecutor(self.n_parallel, thread_name_prefix="rater") as pool:
            jobs = [pool.submit(take_part, number, session) for number, session in sessions.items() if session]
            try:
                for job in as_completed(jobs):
                    job.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return progress

    def _walk(self, session: str, number: int, report_progress: Callable[[int], None]) -> str:
        """One rater's way to the end; returns how the session ended."""
        instructions = self._instructions(session)
        for _ in range(MAX_SCREENS):
            shown = self.access.screen(session)
            if shown["kind"] == "done":
                return str(shown["state"])
            if shown["kind"] == "instructions":
                instructions = shown["text"]
                self.client.note(session, instructions)
            shown_at_ms = now_ms()
            if shown["kind"] == "chat":
                self._talk(session, number, shown, instructions)
                shown = self.access.screen(session)
            answers = self._answers(shown, number, instructions)
            token = f"judge-{session}-{shown['screen']}"
            report_progress(self.access.submit(session, shown["screen"], answers, shown_at_ms, token))
        raise GaveUp("the session has no end")

    def _instructions(self, session: str) -> str:
        """What this session was told on its instructions screen, for when it is resumed behind it."""
        noted = self.client.noted(session)
        study = self.study.in_language(self.language)
        return study.texts.get(study.spec.texts.instructions, "") if noted is None else noted

    def _answers(self, shown: Shown, number: int, instructions: str) -> dict[str, Any]:
        """What is sent for a screen. What concerns only people is decided here, not by the model."""
        match shown["kind"]:
            case "consent":
                return {CONSENT_FIELD: "agree"}
            case "more":
                return {MORE_FIELD: "no"}
        fixed = self._fixed(shown)
        fields = [field for field in shown["fields"] if field["name"] not in fixed]
        if not fields:
            return fixed
        about = {"rater": self.rater_name(number), "screen": self.study.own_key(shown["screen"])}
        return fixed | self.prompting.ask({**shown, "fields": fields}, instructions, seed=number, about=about).values

    def _fixed(self, shown: Shown) -> dict[str, Any]:
        """Screening is about people: a program is let in by whoever runs it."""
        if shown["kind"] != "screening":
            return {}
        accepted = {question.name: question.accept for question in self.study.spec.screening if question.accept}
        return {name: accepted[name][0] for name in (field["name"] for field in shown["fields"]) if name in accepted}

    def _talk(self, session: str, number: int, shown: Shown, instructions: str) -> None:
        """The conversation before a rating: as many messages as the study asks for at least."""
        item = shown["item"]
        system = system_prompt(instructions, self.prompting.persona, self.prompting.guidance)
        if any(turns[-1]["role"] == "user" for turns in _spoken(shown)):
            self.access.wait_for_reply(session, item["id"])
            shown = self.access.screen(session)
        while _n_said(shown) < item["min_turns"]:
            key = self.study.own_key(shown["screen"])
            about = {"rater": self.rater_name(number), "screen": key, "attempt": 1}
            prompt = Turn("User", message_prompt(shown), "user")
            reply = self.client.ask(system, [prompt], seed=number, about=about)
            if not reply.text:
                raise GaveUp(f"no message for {key}: {reply.refusal or 'it was cut off'}")
            self.access.say(session, item["id"], reply.text[:2000])
            shown = self.access.screen(session)


def _spoken(shown: Shown) -> list[list[dict[str, str]]]:
    """What was said so far: one conversation, or the two of an arena."""
    sides = [option["turns"] for option in shown["item"]["options"]] or [shown["chat"] or []]
    return [turns for turns in sides if turns]


def _n_said(shown: Shown) -> int:
    """How many messages the rater has written, on the side with fewer of them."""
    return min((sum(turn["role"] == "user" for turn in turns) for turns in _spoken(shown)), default=0)
