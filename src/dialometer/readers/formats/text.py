"""Plain text: ``A: …`` lines, as people write dialogues down."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from dialometer.model.dialogue import Role
from dialometer.readers.problems import Problems
from dialometer.readers.reader import KNOWN_SPEAKERS, READERS, DialogueDraft, Head, Reader, TurnDraft
from dialometer.readers.source import SourceFile

_TURN = re.compile(r"(?P<speaker>[^\s:#][^:]{0,59}):(?P<text>.*)")
_HEADER = re.compile(r"#\s*(?P<id>.*)")


@READERS.register("text")
class TextReader(Reader):
    """Dialogues apart by blank lines or ``# id`` lines; indented lines go on with the turn before."""

    suffixes: ClassVar[tuple[str, ...]] = (".txt", ".text")
    speakers: ClassVar[Mapping[str, Role]] = {
        **KNOWN_SPEAKERS,
        "A": "person",
        "B": "person",
        "Bot": "agent",
        "System": "agent",
    }

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """A first line that is a turn or a header, in a file not named as something else."""
        is_named_otherwise = head.suffix in {".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".yaml", ".yml", ".html"}
        line = head.first_line
        is_turn = bool(_TURN.fullmatch(line)) and not line.startswith(("{", "["))
        return not is_named_otherwise and (is_turn or line.startswith("# "))

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """One draft per block; a block without a header is called after the file and its number."""
        draft: DialogueDraft | None = None
        n = 0
        for number, line in source.lines(problems):
            header = _HEADER.fullmatch(line)
            if not line.strip():
                if draft is not None and (draft.turns or draft.faults):  # a header waits for its turns
                    yield draft
                    draft = None
                continue
            if header or draft is None:
                if draft is not None:
                    yield draft
                n += 1
                draft = DialogueDraft(header["id"] if header else f"{source.stem}-{n}", [], line=number)
            if not header:
                _add(draft, line, number, problems)
        if draft is not None:
            yield draft


def _add(draft: DialogueDraft, line: str, number: int, problems: Problems) -> None:
    """Add a line to the draft: a turn of its own or the next line of the turn before."""
    turn = _TURN.fullmatch(line)
    if line[0].isspace() and draft.turns:
        draft.turns[-1].text = f"{draft.turns[-1].text}\n{line.strip()}"
    elif turn:
        draft.turns.append(TurnDraft(turn["speaker"], turn["text"], line=number))
    else:
        message = "an indented line without a turn before it" if line[0].isspace() else "a line without a speaker"
        remedy = "begin a turn with 'NAME: ', indent lines that continue it"
        draft.faults.append(problems.problem(message, remedy=remedy, line=number, column=1))
