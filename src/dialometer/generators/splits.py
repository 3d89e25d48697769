"""Which dialogues a model learns from and which it is measured on: splits drawn here, or those that a corpus was published with."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path

from dialometer.errors import DialometerError
from dialometer.generators.corpus import SPLITS
from dialometer.model.dialogue import Dialogue

SPLIT_FIELD = "split"
_NAMES = {
    **dict.fromkeys(("train", "training", "trn"), "train"),
    **dict.fromkeys(("valid", "validation", "val", "dev", "devel", "development"), "validation"),
    **dict.fromkeys(("test", "testing", "tst"), "test"),
}
_HOW = f"name the files train, valid and test, or give each dialogue a '{SPLIT_FIELD}' (a column, or a field of its metadata)"


def drawn_split(dialogue_id: str, *, validation_share: float, test_share: float, seed: int) -> str:
    """The split of a dialogue: a function of its id and the seed alone, so that more data never moves old dialogues."""
    digest = hashlib.sha256(f"{seed}\0{dialogue_id}".encode()).digest()
    draw = int.from_bytes(digest[:8], "big") / 2**64
    if draw < test_share:
        return "test"
    return "validation" if draw < test_share + validation_share else "train"


def split_in_name(path: Path) -> str | None:
    """The split that a file's name says, such as ``reddit_valid.tsv``, or the folder ``train``; None where neither says one."""
    said = {_NAMES[word] for word in re.split(r"[^a-z]+", path.name.lower()) if word in _NAMES}
    if len(said) > 1:
        raise DialometerError(
            f"the name of '{path}' says two splits: {' and '.join(sorted(said))}", remedy="rename the file"
        )
    return said.pop() if said else _NAMES.get(path.parent.name.lower())


def says_split(dialogue: Dialogue, source: Path) -> bool:
    """Whether a dialogue's metadata or file name says a published split."""
    words = (*re.split(r"[^a-z]+", source.name.lower()), str(dialogue.metadata.get(SPLIT_FIELD, "")).strip().lower())
    return any(word in _NAMES for word in words)


class PublishedSplits:
    """Reads the split of each dialogue from its metadata or its file's name, and counts who said it."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        """Dialogues by split and by what says so: the name of a file, or the field of a file."""

    def of(self, dialogue: Dialogue, source: Path) -> str | None:
        """The split, or None where nothing says it. A name and a field that contradict each other are an error."""
        by_name = split_in_name(source)
        given = dialogue.metadata.get(SPLIT_FIELD)
        if given is None or not str(given).strip():
            return self._counted(by_name, source.name)
        by_field = _NAMES.get(str(given).strip().lower())
        where = f"{source}, dialogue '{dialogue.id}'"
        if by_field is None:
            raise DialometerError(f"'{given}' is not a split", where=where, remedy=f"use {', '.join(SPLITS)}")
        if by_name is not None and by_name != by_field:
            raise DialometerError(
                f"the file's name says '{by_name}' and its field '{SPLIT_FIELD}' says '{by_field}'",
                where=where,
                remedy="rename the file or correct the field",
            )
        return self._counted(by_field, f"{source.name}, field '{SPLIT_FIELD}'")

    def _counted(self, split: str | None, said_by: str) -> str | None:
        if split is not None:
            self.counts[split, said_by] += 1
        return split

    def dialogues_by_source(self) -> dict[str, dict[str, int]]:
        """For each split what says it, with the number of dialogues."""
        return {
            name: {said_by: n for (split, said_by), n in self.counts.items() if split == name}
            for name in SPLITS
            if any(split == name for split, _ in self.counts)
        }


def no_split(dialogue: Dialogue, source: Path) -> DialometerError:
    """For a dialogue whose published split nothing tells."""
    return DialometerError(
        "nothing says which split this dialogue belongs to", where=f"{source}, dialogue '{dialogue.id}'", remedy=_HOW
    )


def missing_split(name: str, sources: list[Path]) -> DialometerError:
    """For a corpus published without one of the parts that are needed."""
    return DialometerError(
        f"no dialogue is of the split '{name}'", where=", ".join(map(str, sources)), remedy=f"give its file too; {_HOW}"
    )
