"""One question to a model until its answer can be used, or a reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dialometer.errors import AgentError
from dialometer.judges.access import Shown
from dialometer.judges.answers import Unusable, answer_schema, read_answers, reasons_first
from dialometer.judges.model_client import ModelClient, ModelReply
from dialometer.judges.prompt import again, screen_prompt, system_prompt
from dialometer.model.dialogue import Turn

N_ASKS = 3
"""How often a screen is asked before the model is given up on: the first time and two more."""
MOST_REPEATED = 4000
"""Characters of an unusable answer that the model reads again."""


class GaveUp(AgentError):
    """A model gave no usable answer to a screen: it declined, or wrote what cannot be read, however often it was asked.

    ``replies`` are what it wrote, which has cost tokens too.
    """

    def __init__(self, message: str, replies: Sequence[ModelReply] = ()) -> None:
        super().__init__(message)
        self.replies = tuple(replies)


@dataclass(frozen=True)
class JudgeAnswers:
    """A usable answer, and what it took: every reply that was needed."""

    values: dict[str, Any]
    reasons: str
    replies: tuple[ModelReply, ...]

    @property
    def duration_s(self) -> float:
        """Seconds over all replies."""
        return sum(reply.duration_s for reply in self.replies)

    @property
    def at_ms(self) -> int:
        """When the last reply came."""
        return self.replies[-1].at_ms


@dataclass
class Prompting:
    """How a model is asked. ``has_reasons``: it writes its reasons before the verdict, whether or not the study wants them."""

    client: ModelClient
    persona: str = ""
    n_asks: int = N_ASKS
    has_reasons: bool = True
    guidance: str = ""
    """What the judge is told beside the study's instructions: rubric and examples."""
    is_asked_again: bool = False
    """Whether what got no usable answer in an earlier run is asked once more."""

    def ask(self, shown: Shown, instructions: str, *, seed: int, about: dict[str, Any]) -> JudgeAnswers:
        """The answers to a screen; raises :class:`GaveUp` with the reason where there are none."""
        try:
            return self._ask(shown, instructions, seed=seed, about=about)
        except _GaveUpBefore:
            return self._ask(shown, instructions, seed=seed, about=about, is_fresh=True)

    def _ask(
        self, shown: Shown, instructions: str, *, seed: int, about: dict[str, Any], is_fresh: bool = False
    ) -> JudgeAnswers:
        """Asks until the answer can be used; each time the model reads what was wrong with the last one."""
        is_judged = shown["kind"] in ("item", "chat")
        fields = reasons_first(shown["fields"]) if self.has_reasons and is_judged else shown["fields"]
        system = system_prompt(instructions, self.persona, self.guidance)
        talk = [Turn("User", screen_prompt({**shown, "fields": fields}), "user")]
        schema = None if self.client.takes_schema is False else answer_schema(fields)
        replies: list[ModelReply] = []
        why = ""
        for attempt in range(1, self.n_asks + 1):
            entry = {**about, "attempt": attempt}
            reply = self.client.ask(system, talk, seed=seed, about=entry, schema=schema, is_fresh=is_fresh)
            replies.append(reply)
            if reply.refusal:
                why = f"the model declined: {reply.refusal}"
                break
            try:
                answers = read_answers(reply.text, fields)
            except Unusable as error:
                self.client.count_unusable()
                complaints = _with_length(error.complaints, reply)
                why = f"no usable answer in {attempt} tries ({_in_words(complaints)})"
                answer = Turn("Agent", reply.text[:MOST_REPEATED] or "(nothing)", "agent")
                talk = [*talk, answer, Turn("User", again(complaints), "user")]
            else:
                return JudgeAnswers(answers.values, answers.reasons, tuple(replies))
        if self.is_asked_again and not is_fresh and all(reply.is_cached for reply in replies):
            raise _GaveUpBefore(why, replies)
        raise GaveUp(why, replies)


class _GaveUpBefore(GaveUp):
    """As in an earlier run: nothing was sent."""


def _with_length(complaints: Mapping[str, str], reply: ModelReply) -> Mapping[str, str]:
    return {**complaints, "length": "the answer was cut off; be shorter"} if reply.is_cut_off else complaints


def _in_words(complaints: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {why}" for name, why in complaints.items())
