"""Dialogues with a rating each, given by the user who held them: exports of ConvAI2, and any file of dialogues with ``rating``.

A dialogue is an item that one person rated. Where the file names users or systems (``user``, ``system`` …) they are the study's
raters and systems; what else it says of a dialogue is kept with the item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from dialometer.errors import ReadError
from dialometer.exchange.formats.votes import kept_key
from dialometer.exchange.import_format import FORMATS, ImportFormat, Intake
from dialometer.exchange.records import JudgmentRecord, Record, TextRecord
from dialometer.exchange.study_draft import DEFAULT_SYSTEM
from dialometer.model.dialogue import Dialogue
from dialometer.model.values import is_missing
from dialometer.readers.dialogue_file import DECLARED, format_of, recognised_formats
from dialometer.readers.draft_check import LEFT_OUT, DraftChecker
from dialometer.readers.json_records import first_record
from dialometer.readers.participants import RATING, SYSTEM_KEYS, USER_KEYS, name_in
from dialometer.readers.reader import READERS
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import some_columns
from dialometer.scales.likert import Likert

CONVAI2 = "convai2"
CONVAI2_RATING = "eval_score"
NO_RATING = "dialogues without a rating"
NO_TEXT = "turns without text"
OWN_RATERS = "no rater is named: every dialogue counts as rated by a rater of its own"
ONE_SYSTEM = f"no system is named: all dialogues count as held with one, '{DEFAULT_SYSTEM}'"


@FORMATS.register("dialogues")
class RatedDialogues(ImportFormat):
    """One judgment for each dialogue that has a rating, with its turns as the item."""

    takes: ClassVar[frozenset[str]] = frozenset()
    summary: ClassVar[str] = (
        "dialogues with a rating each: exports of ConvAI2, or your own with 'rating' in their metadata"
    )

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """A known format of dialogues whose first one has a rating, or the place for one."""
        if not path.is_file():
            return False
        source = SourceFile(path)
        try:
            first = first_record(source.head())
            about = first.get("metadata") if isinstance(first, dict) else None
            names = {*header, *(about if isinstance(about, dict) else ())}
            return bool({RATING, CONVAI2_RATING} & names) and len(recognised_formats(source)) == 1
        except (ReadError, OSError):
            return False

    def declared(self, path: Path) -> Mapping[str, Any]:
        """ConvAI2 asked for 1 to 5 points; of other files the values tell the scale."""
        try:
            is_convai2 = recognised_formats(SourceFile(path)) == [CONVAI2]
        except (ReadError, OSError):
            return {}  # reading the file says what is wrong
        scale = Likert(points=5).model_dump(include={"type", "points"})
        return {"criteria": [{"name": RATING, "scales": [scale]}]} if is_convai2 else {}

    def records(self, intake: Intake) -> Iterator[Record]:
        """The turns of each rated dialogue, and its rating."""
        name = format_of(intake.source)
        reader = READERS.get(name)
        checker = DraftChecker(
            intake.problems,
            known=reader.speakers,
            declared=DECLARED.get() or {},
            empty_turns=reader.empty_turns,
            how_to_declare=reader.how_to_declare,
        )
        intake.used[RATING] = CONVAI2_RATING if name == CONVAI2 else RATING
        kept: dict[str, None] = {}
        for draft in reader().drafts(intake.source, intake.problems):
            dialogue = checker.dialogue(draft)
            intake.has_read(draft.line)
            if dialogue is None:
                continue
            if is_missing(dialogue.metadata.get(RATING)):
                intake.left_out[NO_RATING] += 1
                continue
            if skipped := len(dialogue.metadata.get(LEFT_OUT, ())):
                intake.left_out[NO_TEXT] += skipped
            yield from _records(dialogue, draft.line, intake, kept)
        if kept:
            intake.used["kept with the item"] = some_columns(list(kept))


def _records(dialogue: Dialogue, line: int, intake: Intake, kept: dict[str, None]) -> Iterator[Record]:
    metadata = dialogue.metadata
    rater, system = name_in(metadata, USER_KEYS), name_in(metadata, SYSTEM_KEYS)
    if rater is None:
        intake.problems.assume(OWN_RATERS)
    if system is None:
        intake.problems.assume(ONE_SYSTEM)
    about = {kept_key(key): value for key, value in metadata.items() if key != RATING and value is not None}
    kept.update(dict.fromkeys(about))
    yield TextRecord(line=line, item=dialogue.id, system=system or "", turns=dialogue.turns, about=about)
    yield JudgmentRecord(
        line=line,
        rater=rater or f"rater of {dialogue.id}",
        item=dialogue.id,
        criterion=RATING,
        raw=metadata[RATING],
        system=system or "",
        column=RATING,
    )
