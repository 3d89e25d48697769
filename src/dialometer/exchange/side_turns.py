"""The conversations of a row as turns of an item."""

from __future__ import annotations

from typing import Any

from dialometer.exchange.import_format import Intake
from dialometer.model.dialogue import Turn
from dialometer.readers.chats import CHAT_SPEAKERS, Chat
from dialometer.readers.draft_check import DraftChecker
from dialometer.readers.reader import DialogueDraft

EMPTY_TURNS = "turns without text"


class SideTurns:
    """Turns messages into turns; what cannot be read is reported to the intake, turns without text are counted."""

    def __init__(self, intake: Intake) -> None:
        self.intake = intake
        self._checker = DraftChecker(intake.problems, known=CHAT_SPEAKERS, declared={}, empty_turns="leave_out")

    def turns(
        self, messages: list[Any] | None, line: int, field: str, *, n_responses: int | None = None
    ) -> tuple[Turn, ...]:
        """The turns; with ``n_responses`` only up to that response, where raters saw no more of the conversation."""
        draft = DialogueDraft(f"{line}.{field}.{self._checker.n_drafts}", [], line=line)
        Chat(draft, self.intake.problems).read(messages or [], field)
        kept = [turn for turn in draft.turns if turn.text or turn.tool_calls or turn.media]
        if len(kept) < len(draft.turns):
            self.intake.left_out[EMPTY_TURNS] += len(draft.turns) - len(kept)
        draft.turns = kept
        if not kept and not draft.faults:
            return ()
        dialogue = self._checker.dialogue(draft)
        turns = dialogue.turns if dialogue is not None else ()
        ends = [number for number, turn in enumerate(turns, start=1) if turn.role == "agent"]
        return turns[: ends[n_responses - 1]] if n_responses and len(ends) > n_responses else turns
