"""Conversations with tabs between the turns, one per line: the format of the Reddit corpus used with THRED.

Reference: Dziri et al., "Augmenting neural response generation with context-aware topical attention", 2018; the format is
described with their code: turns apart by tabs, and topic words, where there are any, after the last turn and ``  |  ``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from dialometer.model.dialogue import Role
from dialometer.readers.paired_chats import is_battle, is_preference
from dialometer.readers.problems import Problems
from dialometer.readers.reader import READERS, DialogueDraft, EmptyTurns, Head, Reader, TurnDraft
from dialometer.readers.source import SourceFile

_TOPIC_MARK = "  |  "
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,60}")
"""What columns are called: a line of nothing else is the header of a table."""


@READERS.register("thred")
class ThredReader(Reader):
    """``turn⇥turn⇥turn  |  topic words``; the speakers A and B take turns, A begins. Topic words become metadata."""

    empty_turns: ClassVar[EmptyTurns] = "leave_out"
    speakers: ClassVar[Mapping[str, Role]] = {"A": "person", "B": "person"}

    @classmethod
    def recognises(cls, head: Head) -> bool:
        """A tab in the first line of a file that is no table with the columns of another format."""
        line = head.first_line
        names = set(head.columns("\t"))
        is_other = head.record is not None or {"dialogue_id", "speaker", "text"} <= names
        is_other |= (
            is_battle(names) or is_preference(names) or (head.suffix == ".tsv" and all(map(_NAME.fullmatch, names)))
        )
        return "\t" in line and not is_other and head.suffix not in {".json", ".jsonl", ".csv"}

    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """One draft per line that is not blank, called after the file and the line."""
        for number, line in source.lines(problems):
            if not line.strip():
                continue
            talk, mark, words = line.rpartition(_TOPIC_MARK)
            turns = (talk if mark else line).split("\t")
            metadata = {"topic_words": words.split()} if mark else {}
            yield DialogueDraft(
                f"{source.stem}-{number}",
                [TurnDraft("AB"[i % 2], text, text_key=f"turn {i + 1}") for i, text in enumerate(turns)],
                line=number,
                metadata=metadata,
            )
