"""More questions from few: the four operations of easy data augmentation.

Wei and Zou, "EDA: Easy Data Augmentation Techniques for Boosting Performance on Text Classification Tasks", EMNLP 2019.
With ``share`` of a sentence's words: replaced by synonyms, synonyms of them inserted, swapped in place, or deleted.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dialometer.readers.containers.unpacking import Allowance, read_entry

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")

_FUNCTION_WORDS = """
a about after all also am an and any are as at be been before being but by can could did do does doing for
from had has have he her here hers him his how i if in into is it its just me more most my no nor not of off
on or other our out over own she should so some such than that the their them then there these they this those
to too under until up very was we were what when where which while who whom why will with would you your yours
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words that are never replaced: a question is told by them."""


OPENERS = (
    "Okay.",
    "Oh nice.",
    "That's cool.",
    "So",
    "And",
    "I see.",
    "Yes.",
    "Oh really?",
    "Wow.",
    "Right.",
    "Great.",
    "Interesting.",
    "Yeah.",
    "Well,",
)
"""What people say before they ask; recorded questions come without it."""


class Synonyms(Protocol):
    """Where other words for a word come from."""

    def synonyms(self, word: str) -> list[str]:
        """Other words, the best first; empty where none is known."""


class NoSynonyms:
    """Knows none: augmentation then only swaps and deletes."""

    def synonyms(self, word: str) -> list[str]:
        return []


Operation = Callable[[list[str], int, Synonyms, np.random.Generator], list[str]]


def replace_words(words: list[str], n: int, source: Synonyms, rng: np.random.Generator) -> list[str]:
    """Synonym replacement: up to ``n`` distinct content words, everywhere they occur."""
    out = list(words)
    content = _content(words)
    n_replaced = 0
    for number in rng.permutation(len(content)):
        others = source.synonyms(content[number])
        if others:
            new = others[int(rng.integers(len(others)))]
            out = [_WORD.sub(new, word, count=1) if _bare(word) == content[number] else word for word in out]
            n_replaced += 1
        if n_replaced >= n:
            break
    return out


def insert_words(words: list[str], n: int, source: Synonyms, rng: np.random.Generator) -> list[str]:
    """Random insertion: ``n`` times a synonym of one of the content words, anywhere."""
    out = list(words)
    content = [word for word in _content(words) if source.synonyms(word)]
    for _ in range(n if content else 0):
        others = source.synonyms(content[int(rng.integers(len(content)))])
        out.insert(int(rng.integers(len(out) + 1)), others[int(rng.integers(len(others)))])
    return out


def swap_words(words: list[str], n: int, _source: Synonyms, rng: np.random.Generator) -> list[str]:
    """Random swap: ``n`` times two words change places."""
    out = list(words)
    for _ in range(n if len(out) > 1 else 0):
        first, other = rng.choice(len(out), size=2, replace=False)
        out[first], out[other] = out[other], out[first]
    return out


def delete_words(words: list[str], n: int, _source: Synonyms, rng: np.random.Generator) -> list[str]:
    """Random deletion: every word goes with the same probability, so that ``n`` go on average; one always stays."""
    share = n / len(words)
    kept = [word for word in words if rng.random() >= share]
    return kept or [words[int(rng.integers(len(words)))]]


OPERATIONS: tuple[Operation, ...] = (replace_words, insert_words, swap_words, delete_words)


def augment(
    text: str, n: int, rng: np.random.Generator, source: Synonyms | None = None, *, share: float = 0.1
) -> list[str]:
    """``n`` variants of a text, drawn as the authors' program draws them (``eda.py`` of eda_nlp): a quarter of them and one more
    by each operation, of which ``n`` are kept by lot. The same generator state gives the same variants.

    Capitals and punctuation stay, which that program removes: encoders without capitals read the same words.
    """
    words = text.split()
    if not words:
        return [text] * n
    n_changed = max(1, int(share * len(words)))
    known = source or NoSynonyms()
    variants = [
        " ".join(operation(words, n_changed, known, rng)) for operation in OPERATIONS for _ in range(n // 4 + 1)
    ]
    return [variants[k] for k in rng.permutation(len(variants))[:n]]


def one_variant(text: str, rng: np.random.Generator, source: Synonyms | None = None, *, share: float = 0.1) -> str:
    """One variant by an operation drawn by lot."""
    words = text.split()
    if not words:
        return text
    operation = OPERATIONS[int(rng.integers(len(OPERATIONS)))]
    return " ".join(operation(words, max(1, int(share * len(words))), source or NoSynonyms(), rng))


def _bare(word: str) -> str:
    match = _WORD.search(word)
    return match.group().lower() if match else ""


def _content(words: Sequence[str]) -> list[str]:
    """Distinct content words in order, without punctuation."""
    return [word for word in dict.fromkeys(map(_bare, words)) if word and word not in FUNCTION_WORDS]


class NearestWords:
    """A stand-in for synonyms where WordNet is missing: neighbours in the encoder's own word vectors, whole words only."""

    def __init__(self, tokenizer: Any, network: Any, *, n_nearest: int = 5, least_cosine: float = 0.35) -> None:
        vocabulary = tokenizer.get_vocab()
        whole = {
            word: number for word, number in vocabulary.items() if word.isalpha() and word.islower() and len(word) > 2
        }
        table = network.get_input_embeddings().weight.detach().float().cpu().numpy()
        self.words = sorted(whole)
        vectors = table[[whole[word] for word in self.words]]
        vectors = vectors - vectors.mean(axis=0)
        self.vectors: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        self.number = {word: row for row, word in enumerate(self.words)}
        self.n_nearest = n_nearest
        self.least_cosine = least_cosine
        self._known: dict[str, list[str]] = {}

    def synonyms(self, word: str) -> list[str]:
        """The nearest other words, nearest first; none for a word the encoder cuts into pieces."""
        lower = word.lower()
        if lower not in self._known:
            self._known[lower] = self._near(lower)
        return self._known[lower]

    def _near(self, word: str) -> list[str]:
        row = self.number.get(word)
        if row is None:
            return []
        cosines = self.vectors @ self.vectors[row]
        cosines[row] = -1
        best = np.argpartition(-cosines, self.n_nearest)[: self.n_nearest]
        best = best[np.lexsort((best, -cosines[best]))]
        return [self.words[other] for other in best if cosines[other] >= self.least_cosine]


# Synonyms from WordNet, read from its own database files, wherever they already are on this machine.
#
# Looked for in the folders named by ``WNSEARCHDIR`` and ``WNHOME``, in NLTK's data (``NLTK_DATA`` and its usual places) and where
# Unix packages put it. Nothing is fetched. Format: wndb(5WN) of Princeton WordNet.


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
        members = dict.fromkeys(
            member for sense in self._senses.get(lemma, ()) for member in self._members.get(sense, ())
        )
        return [member.replace("_", " ") for member in members if member.lower() != lemma]


def _lines(place: Path, name: str) -> Iterator[str]:
    """The entries of one file; lines of the licence begin with two spaces."""
    if place.suffix == ".zip":
        with zipfile.ZipFile(place) as archive:
            inner = next((entry for entry in archive.namelist() if entry.endswith(f"/{name}")), None)
            text = read_entry(archive, inner, Allowance(place)).decode("utf-8") if inner else ""
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


@cache
def _wordnet() -> WordNet | None:
    place = find_wordnet()
    return WordNet(place) if place else None


def synonym_source(tokenizer: Any, network: Any) -> Synonyms:
    """WordNet where it is found on this machine, read once; else the encoder's nearest words."""
    return _wordnet() or NearestWords(tokenizer, network)
