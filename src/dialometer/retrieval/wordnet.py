"""Synonyms from WordNet, read from its own database files, wherever they already are on this machine.

Looked for in the folders named by ``WNSEARCHDIR`` and ``WNHOME``, in NLTK's data (``NLTK_DATA`` and its usual places) and where
Unix packages put it. Nothing is fetched. Format: wndb(5WN) of Princeton WordNet.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
_NLTK_NAMES = ("wordnet", "wordnet31", "wordnet2022", "wordnet2021")


def candidate_places() -> Iterator[Path]:
    """Folders and archives that may hold the database, most wanted first."""
    if "WNSEARCHDIR" in os.environ:
        yield Path(os.environ["WNSEARCHDIR"])
    if "WNHOME" in os.environ:
        yield Path(os.environ["WNHOME"]) / "dict"
    named = [Path(part) for part in os.environ.get("NLTK_DATA", "").split(os.pathsep) if part]
    usual = [
        Path.home() / "nltk_data",
        *(Path(root) / "nltk_data" for root in ("/usr/share", "/usr/local/share", "/usr/lib")),
    ]
    for folder in (*named, *usual):
        for name in _NLTK_NAMES:
            yield folder / "corpora" / name
            yield folder / "corpora" / f"{name}.zip"
    yield from (Path("/usr/share/wordnet"), Path("/usr/local/WordNet-3.0/dict"), Path("/usr/share/wordnet-3.0/dict"))


def find_wordnet() -> Path | None:
    """Where WordNet is, if it is anywhere."""
    for place in candidate_places():
        if (place / "index.noun").is_file() and (place / "data.noun").is_file():
            return place
        if place.suffix == ".zip" and place.is_file() and zipfile.is_zipfile(place):
            return place
    return None


class WordNet:
    """Synonyms by word, of all its meanings, from the most common meaning on."""

    def __init__(self, place: Path) -> None:
        self._senses: dict[str, list[tuple[str, str]]] = {}
        self._members: dict[tuple[str, str], list[str]] = {}
        for part in PARTS_OF_SPEECH:
            for line in _lines(place, f"index.{part}"):
                lemma, offsets = _index_entry(line)
                self._senses.setdefault(lemma, []).extend((part, offset) for offset in offsets)
            for line in _lines(place, f"data.{part}"):
                offset, words = _data_entry(line)
                self._members[part, offset] = words

    def synonyms(self, word: str) -> list[str]:
        """Other words for a word; none where WordNet does not know it."""
        lemma = word.lower().replace(" ", "_")
        found = dict.fromkeys(
            member for sense in self._senses.get(lemma, ()) for member in self._members.get(sense, ())
        )
        return [member.replace("_", " ") for member in found if member.lower() != lemma]


def _lines(place: Path, name: str) -> Iterator[str]:
    """The entries of one file; lines of the licence begin with two spaces."""
    if place.suffix == ".zip":
        with zipfile.ZipFile(place) as archive:
            inner = next((entry for entry in archive.namelist() if entry.endswith(f"/{name}")), None)
            text = archive.read(inner).decode("utf-8") if inner else ""
    else:
        path = place / name
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return (line for line in text.splitlines() if line and not line.startswith("  "))


def _index_entry(line: str) -> tuple[str, list[str]]:
    """``lemma pos n_synsets n_pointers [pointer …] n_senses n_tagged offset …``."""
    fields = line.split()
    n_synsets = int(fields[2])
    return fields[0].lower(), fields[-n_synsets:]


def _data_entry(line: str) -> tuple[str, list[str]]:
    """``offset lex_file type n_words(hex) word lex_id [word lex_id …] …``; adjectives may carry a marker such as ``(a)``."""
    fields = line.split()
    n_words = int(fields[3], 16)
    return fields[0], [fields[4 + 2 * i].partition("(")[0] for i in range(n_words)]
