"""Arguments and results of tools are cut to what a person reads: a result can have megabytes."""

from __future__ import annotations

from dataclasses import dataclass

from dialometer.model.dialogue import Turn

MAX_SHOWN = 4_000
"""Characters of arguments or of a result on a screen; the items keep all of it."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The beginning of a text, and how long all of it is."""

    text: str
    n_chars: int

    @property
    def is_cut(self) -> bool:
        """Whether something is missing."""
        return self.n_chars > len(self.text)


def cut(text: str) -> Cut:
    """A text as it is shown."""
    return Cut(text[:MAX_SHOWN], len(text))


def in_words(turn: Turn) -> str:
    """A turn where only text can be shown: its tool calls before and its media after what was said, in brackets."""
    steps = []
    for call in turn.tool_calls:
        arguments = f" with {cut(call.arguments).text}" if call.arguments else ""
        result = f"; result: {cut(call.result).text}" if call.result is not None else ""
        steps.append(f"[used the tool {call.name}{arguments}{result}]")
    files = [f"[{entry.kind}: {entry.alt or entry.path}]" for entry in turn.media]
    return "\n".join(part for part in (*steps, turn.text, *files) if part)
