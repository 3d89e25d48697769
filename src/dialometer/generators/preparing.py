"""From files of dialogues to a prepared corpus, without ever holding it in memory.

The file is read once; what passes the filters goes to a scratch file, which is read again for the vocabulary and for the
numbered tokens. The folder appears under its name only when it is complete.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from dialometer._version import __version__
from dialometer.errors import DialometerError, NotEnoughData
from dialometer.generators.corpus import (
    ARRAYS,
    CORPUS_FILE,
    FORM,
    SPLITS,
    TOKENIZER_FILE,
    TOPICS_FILE,
    Corpus,
    load_corpus,
)
from dialometer.generators.filters import Filter, Limits, words_of
from dialometer.generators.topics import fit_topics
from dialometer.generators.vocabulary import END, Vocabulary
from dialometer.readers import read_dialogues

# Dialogues that were (almost) seen before: MinHash signatures on disk, compared band by band.
#
# Broder 1997: the share of equal minima of two sets under random hashes estimates their Jaccard similarity. Signatures are
# cut into bands; two dialogues that agree in a whole band are compared in full. Memory holds one band of the corpus at a time
# (eight bytes a dialogue), so that a corpus of millions of dialogues needs no more than some hundred megabytes.


N_HASHES = 64
N_BANDS = 16
_PRIME = np.uint64((1 << 61) - 1)
_SHINGLE = 3
_MASK = np.uint64((1 << 32) - 1)
_MIX = np.random.default_rng(1729).integers(1 << 40, 1 << 62, N_HASHES, dtype=np.uint64) | np.uint64(1)


class Signatures:
    """Signatures of dialogues, appended one by one to a scratch file."""

    def __init__(self, path: Path, *, seed: int = 0) -> None:
        rng = np.random.default_rng([seed, 7919])
        self.path = path
        self._factor = rng.integers(1, 1 << 29, N_HASHES, dtype=np.uint64)[:, None]
        self._shift = rng.integers(0, 1 << 29, N_HASHES, dtype=np.uint64)[:, None]
        self._file = path.open("wb")

    def __enter__(self) -> Signatures:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def add(self, turns: Sequence[str]) -> None:
        """The next dialogue."""
        self._file.write(self.of(turns).tobytes())

    def of(self, turns: Sequence[str]) -> npt.NDArray[np.uint32]:
        """Smallest hash of the dialogue's word triples under each of the hash functions."""
        words = [word for turn in turns for word in words_of(turn)]
        shingles = {" ".join(words[i : i + _SHINGLE]) for i in range(max(1, len(words) - _SHINGLE + 1))}
        keys = np.array([zlib.crc32(shingle.encode()) for shingle in shingles], dtype=np.uint64)[None, :]
        # factor * key stays under 2^61, so the sum cannot overflow before it is reduced
        hashed = (self._factor * keys + self._shift) % _PRIME
        return np.asarray((hashed & _MASK).min(axis=1), dtype=np.uint32)


def near_duplicates(path: Path, threshold: float) -> npt.NDArray[np.bool_]:
    """For each dialogue whether an earlier one is at least as similar as ``threshold`` (1 means equal signatures)."""
    size = path.stat().st_size // (N_HASHES * 4)
    is_copy = np.zeros(size, dtype=bool)
    if not size:
        return is_copy
    signatures = np.memmap(path, dtype=np.uint32, mode="r", shape=(size, N_HASHES))
    n_rows = N_HASHES // N_BANDS
    for band in range(N_BANDS):
        part = signatures[:, band * n_rows : (band + 1) * n_rows].astype(np.uint64)
        keys = (part * _MIX[:n_rows]).sum(axis=1, dtype=np.uint64)  # overflow wraps; equal bands stay equal
        order = np.argsort(keys, kind="stable")
        same = keys[order][1:] == keys[order][:-1]
        for group in _runs(order, same):
            _mark(signatures, group, is_copy, threshold)
    return is_copy


def _runs(order: npt.NDArray[np.int64], same: npt.NDArray[np.bool_]) -> list[npt.NDArray[np.int64]]:
    """Groups of dialogues whose band is equal, two or more in each."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], same.astype(np.int8), [0]])))
    return [order[start : end + 1] for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _mark(
    signatures: npt.NDArray[np.uint32],
    group: npt.NDArray[np.int64],
    is_copy: npt.NDArray[np.bool_],
    threshold: float,
) -> None:
    """Mark those of a group that are near an earlier one which itself is kept."""
    members = np.sort(group[~is_copy[group]])
    while len(members) > 1:
        first, rest = members[0], members[1:]
        alike = np.mean(signatures[rest] == signatures[first], axis=1) >= threshold
        is_copy[rest[alike]] = True
        members = rest[~alike]


Report = Callable[[str, int], None]
"""Hears what is being done and how many dialogues are done."""
_N_PER_PORTION = 256
MAX_VOCABULARY = 1 << 16


@dataclass(frozen=True, slots=True)
class Preparation:
    """How a corpus is prepared. Shares are of dialogues; ``near_duplicate`` is the similarity that counts as a copy."""

    limits: Limits = field(default_factory=Limits)
    unwanted: frozenset[str] = frozenset()
    near_duplicate: float = 0.8
    n_tokens: int = 8000
    validation_share: float = 0.05
    test_share: float = 0.05
    n_topics: int = 50
    n_context_turns: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.near_duplicate <= 0:
            raise DialometerError("the similarity of copies must be above 0", remedy="give 0.8, or 2 to keep copies")
        if not (self.validation_share > 0 and self.test_share > 0 and self.validation_share + self.test_share < 1):
            raise DialometerError("shares of validation and test must be above 0 and leave something to train on")
        if self.n_tokens > MAX_VOCABULARY:
            raise DialometerError(f"a vocabulary has at most {MAX_VOCABULARY} tokens", remedy="ask for fewer")


def _silent(what: str, n_done: int) -> None:
    """Tells nobody."""


def prepare_corpus(
    sources: Sequence[Path],
    folder: Path,
    options: Preparation | None = None,
    *,
    format: str | None = None,
    lenient: bool = False,
    report: Report = _silent,
) -> Corpus:
    """Reads the files, filters, splits by dialogue, numbers the tokens and fits the topics."""
    options = options or Preparation()
    if folder.exists():
        raise DialometerError(f"'{folder}' exists already", remedy="choose another folder or remove this one")
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    made = [parent for parent in part.parents if not parent.exists()]
    part.mkdir(parents=True)
    try:
        _Preparing(part, options, report).run(sources, format, lenient=lenient)
        part.replace(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        for parent in made:
            parent.rmdir()
        raise
    return load_corpus(folder)


def split_of(dialogue_id: str, options: Preparation) -> str:
    """The split of a dialogue: a function of its id and the seed alone, so that more data never moves old dialogues."""
    digest = hashlib.sha256(f"{options.seed}\0{dialogue_id}".encode()).digest()
    draw = int.from_bytes(digest[:8], "big") / 2**64
    if draw < options.test_share:
        return "test"
    return "validation" if draw < options.test_share + options.validation_share else "train"


class _Preparing:
    def __init__(self, part: Path, options: Preparation, report: Report) -> None:
        self.part = part
        self.options = options
        self.report = report
        self.filter = Filter(options.limits, options.unwanted)
        self.scratch = part / "scratch.jsonl"
        self.signatures = part / "scratch.signatures"
        self.n_read = 0

    def run(self, sources: Sequence[Path], format: str | None, *, lenient: bool) -> None:
        self._filter(sources, format, lenient=lenient)
        is_copy = near_duplicates(self.signatures, self.options.near_duplicate)
        self.filter.removed["dialogues nearly equal to another"] = int(is_copy.sum())
        vocabulary = Vocabulary.train(self._training_texts(is_copy), self.options.n_tokens)
        (self.part / TOKENIZER_FILE).write_text(vocabulary.description, encoding="utf-8")
        counts = self._number(vocabulary, is_copy)
        for name in SPLITS:
            if not counts[name]["examples"]:
                raise NotEnoughData(
                    f"no example is left for the split '{name}'",
                    where=", ".join(map(str, sources)),
                    remedy="give more dialogues of two or more turns, or loosen the filters",
                )
        self._write_about(sources, vocabulary, counts)
        self._find_topics(vocabulary)
        self.scratch.unlink()
        self.signatures.unlink()

    def _filter(self, sources: Sequence[Path], format: str | None, *, lenient: bool) -> None:
        with self.scratch.open("w", encoding="utf-8") as scratch, Signatures(self.signatures) as signatures:
            for source in sources:
                for dialogue in read_dialogues(source, format, lenient=lenient):
                    self.n_read += 1
                    pieces = self.filter.pieces([turn.text for turn in dialogue.turns])
                    if pieces:
                        scratch.write(json.dumps([dialogue.id, pieces], ensure_ascii=False) + "\n")
                        signatures.add([turn for piece in pieces for turn in piece])
                    if self.n_read % 1000 == 0:
                        self.report("reading", self.n_read)
        if not self.scratch.stat().st_size:
            raise NotEnoughData(
                f"none of the {self.n_read} dialogues has two turns in a row that pass the filters",
                where=", ".join(map(str, sources)),
                remedy="give dialogues of two or more turns, or loosen the filters",
            )

    def _kept(self, is_copy: Any) -> Iterator[tuple[str, str, list[list[str]]]]:
        """Split, id and pieces of each dialogue that is no copy, from the scratch file."""
        with self.scratch.open(encoding="utf-8") as scratch:
            for number, line in enumerate(scratch):
                if not is_copy[number]:
                    dialogue_id, pieces = json.loads(line)
                    yield split_of(dialogue_id, self.options), dialogue_id, pieces

    def _training_texts(self, is_copy: Any) -> Iterator[str]:
        for split, _, pieces in self._kept(is_copy):
            if split == "train":
                yield from (turn for piece in pieces for turn in piece)

    def _number(self, vocabulary: Vocabulary, is_copy: Any) -> dict[str, dict[str, int]]:
        """Writes the arrays of all splits in portions; gives back what there is of each."""
        with ExitStack() as stack:
            writers = {name: _Writer(name, self.part, stack) for name in SPLITS}
            for n_done, (split, dialogue_id, pieces) in enumerate(self._kept(is_copy), start=1):
                writers[split].add(dialogue_id, pieces, vocabulary)
                if n_done % 1000 == 0:
                    self.report("numbering", n_done)
            for writer in writers.values():
                writer.flush(vocabulary)
        return {name: writer.counts for name, writer in writers.items()}

    def _write_about(self, sources: Sequence[Path], vocabulary: Vocabulary, counts: dict[str, dict[str, int]]) -> None:
        options = asdict(self.options) | {"unwanted": len(self.options.unwanted)}
        about: dict[str, Any] = {
            "form": FORM,
            "dialometer": __version__,
            "sources": [source.name for source in sources],
            "options": options,
            "vocabulary": vocabulary.fingerprint,
            "n_tokens": len(vocabulary),
            "n_dialogues_read": self.n_read,
            "removed": {reason: n for reason, n in sorted(self.filter.removed.items()) if n},
            "splits": counts,
        }
        digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
        for name in SPLITS:
            with (self.part / f"{name}.tokens").open("rb") as tokens:
                digest.update(hashlib.file_digest(tokens, "sha256").digest())
        about["fingerprint"] = digest.hexdigest()[:16]
        (self.part / CORPUS_FILE).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    def _find_topics(self, vocabulary: Vocabulary) -> None:
        """Fits topics on the training split, then names the topic before every turn of every split."""
        corpus = load_corpus(self.part)
        model = None
        if self.options.n_topics:
            self.report("finding topics", 0)
            model = fit_topics(
                corpus.split("train"), vocabulary, n_topics=self.options.n_topics, seed=self.options.seed
            )
            model.save(self.part / TOPICS_FILE)
        for name in SPLITS:
            split = corpus.split(name)
            topics = np.zeros(len(split.places), dtype=ARRAYS["topics"])
            for start in range(0, len(split.examples) if model else 0, _N_PER_PORTION):
                rows = split.examples[start : start + _N_PER_PORTION]
                contexts = [np.concatenate(split.context(int(row), self.options.n_context_turns)) for row in rows]
                if model:
                    topics[rows] = model.topics_of(contexts)
            topics.tofile(self.part / f"{name}.topics")


class _Writer:
    """The growing arrays of one split."""

    def __init__(self, name: str, folder: Path, stack: ExitStack) -> None:
        kinds = [kind for kind in ARRAYS if kind != "topics"]
        self.files: dict[str, IO[bytes]] = {
            kind: stack.enter_context((folder / f"{name}.{kind}").open("wb")) for kind in kinds
        }
        self.ids = stack.enter_context((folder / f"{name}.ids").open("w", encoding="utf-8"))
        (folder / f"{name}.topics").touch()
        self.waiting: list[tuple[str, int, int]] = []
        self.counts = {"dialogues": 0, "turns": 0, "examples": 0, "words": 0, "tokens": 0}
        self._put("starts", [0])

    def add(self, dialogue_id: str, pieces: list[list[str]], vocabulary: Vocabulary) -> None:
        """One dialogue, numbered together with others."""
        self.ids.write(json.dumps(dialogue_id) + "\n")
        number = self.counts["dialogues"]
        self.counts["dialogues"] += 1
        self.waiting += [(turn, place, number) for piece in pieces for place, turn in enumerate(piece)]
        if len(self.waiting) >= _N_PER_PORTION:
            self.flush(vocabulary)

    def flush(self, vocabulary: Vocabulary) -> None:
        """Numbers and writes what waits."""
        rows = [[*tokens, END] for tokens in vocabulary.encode([turn for turn, _, _ in self.waiting])]
        places = [place for _, place, _ in self.waiting]
        ends = self.counts["tokens"] + np.cumsum([len(row) for row in rows], dtype=np.int64)
        self._put("tokens", [token for row in rows for token in row])
        self._put("starts", ends.tolist())
        self._put("places", places)
        self._put("dialogues", [number for _, _, number in self.waiting])
        self.counts["tokens"] += sum(len(row) for row in rows)
        self.counts["turns"] += len(rows)
        self.counts["examples"] += sum(place > 0 for place in places)
        self.counts["words"] += sum(len(turn.split()) for turn, _, _ in self.waiting)
        self.waiting = []

    def _put(self, kind: str, values: list[int]) -> None:
        self.files[kind].write(np.array(values, dtype=ARRAYS[kind]).tobytes())
