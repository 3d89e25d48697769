"""From files of dialogues to a prepared corpus, without ever holding it in memory.

The file is read once; what passes the filters goes to a scratch file, which is read again for the vocabulary and for the
numbered tokens. The folder appears under its name only when it is complete.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
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
from dialometer.generators.filters import Filter, Limits
from dialometer.generators.near_duplicates import Leakage, Signatures, leakage, near_duplicates
from dialometer.generators.splits import PublishedSplits, drawn_split, missing_split, no_split, says_split
from dialometer.generators.topic_files import read_topic_file
from dialometer.generators.topics import TopicModel, fit_topics
from dialometer.generators.vocabulary import END, Vocabulary
from dialometer.model.dialogue import Dialogue
from dialometer.readers import read_dialogues

Report = Callable[[str, int], None]
"""Hears what is being done and how many dialogues are done."""
_N_PER_PORTION = 256
LEAKAGE_SIMILARITY = 0.8
"""From which similarity a dialogue counts as leaked where copies are kept."""
MAX_VOCABULARY = 1 << 16


@dataclass(frozen=True, slots=True)
class Preparation:
    """How a corpus is prepared. Shares are of dialogues; ``near_duplicate`` is the similarity that counts as a copy.

    ``keeps_splits`` takes the splits that the corpus was published with. Its validation and test dialogues are then never
    excluded as copies; ``excludes_leaks`` excludes training dialogues that are copies of those. ``topic_file`` holds topics
    that were found elsewhere, instead of ``n_topics`` found here.
    """

    limits: Limits = field(default_factory=Limits)
    unwanted: frozenset[str] = frozenset()
    near_duplicate: float = 0.8
    n_tokens: int = 8000
    validation_share: float = 0.05
    test_share: float = 0.05
    n_topics: int = 50
    n_context_turns: int = 5
    seed: int = 0
    keeps_splits: bool = False
    excludes_leaks: bool = False
    topic_file: Path | None = None

    def __post_init__(self) -> None:
        if self.near_duplicate <= 0:
            raise DialometerError("the similarity of copies must be above 0", remedy="give 0.8, or 2 to keep copies")
        if not (self.validation_share > 0 and self.test_share > 0 and self.validation_share + self.test_share < 1):
            raise DialometerError("shares of validation and test must be above 0 and leave something to train on")
        if self.excludes_leaks and not self.keeps_splits:
            raise DialometerError(
                "splits drawn here have no leakage to exclude", remedy="copies are excluded by --near-duplicate"
            )
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


class _Preparing:
    def __init__(self, part: Path, options: Preparation, report: Report) -> None:
        self.part = part
        self.options = options
        self.report = report
        self.filter = Filter(options.limits, options.unwanted)
        self.scratch = part / "scratch.jsonl"
        self.signatures = part / "scratch.signatures"
        self.published = PublishedSplits()
        self.splits = bytearray()  # the number of the split of each dialogue that passed the filters
        self.leakage: list[Leakage] = []
        self.n_validation_drawn = 0
        self.n_published = 0  # dialogues whose published split is not kept
        self.given = read_topic_file(options.topic_file) if options.topic_file is not None else None
        self.n_read = 0

    def run(self, sources: Sequence[Path], format: str | None, *, lenient: bool) -> None:
        self._filter(sources, format, lenient=lenient)
        is_copy = self._published_copies(sources) if self.options.keeps_splits else self._copies()
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
                    split = self._split(dialogue, source)
                    pieces = self.filter.pieces([turn.text for turn in dialogue.turns])
                    if pieces:
                        scratch.write(json.dumps([dialogue.id, pieces], ensure_ascii=False) + "\n")
                        signatures.add([turn for piece in pieces for turn in piece])
                        self.splits.append(SPLITS.index(split))
                    if self.n_read % 1000 == 0:
                        self.report("reading", self.n_read)
        if not self.scratch.stat().st_size:
            raise NotEnoughData(
                f"none of the {self.n_read} dialogues has two turns in a row that pass the filters",
                where=", ".join(map(str, sources)),
                remedy="give dialogues of two or more turns, or loosen the filters",
            )

    def _split(self, dialogue: Dialogue, source: Path) -> str:
        if not self.options.keeps_splits:
            self.n_published += says_split(dialogue, source)
            return self._drawn(dialogue.id)
        split = self.published.of(dialogue, source)
        if split is None:
            raise no_split(dialogue, source)
        return split

    def _drawn(self, dialogue_id: str) -> str:
        options = self.options
        return drawn_split(
            dialogue_id,
            validation_share=options.validation_share,
            test_share=0.0 if options.keeps_splits else options.test_share,
            seed=options.seed,
        )

    def _copies(self) -> npt.NDArray[np.bool_]:
        is_copy = near_duplicates(self.signatures, self.options.near_duplicate)
        self.filter.removed["dialogues nearly equal to another"] = int(is_copy.sum())
        return is_copy

    def _published_copies(self, sources: Sequence[Path]) -> npt.NDArray[np.bool_]:
        """Copies among the training dialogues; what validation and test share with the training is counted."""
        told = self.published.dialogues_by_source()
        for name in ("train", "test"):
            if name not in told:
                raise missing_split(name, list(sources))
        if "validation" not in told:
            self._draw_validation()
        threshold = self.options.near_duplicate if self.options.near_duplicate <= 1 else LEAKAGE_SIMILARITY
        parts = np.frombuffer(self.splits, dtype=np.int8)
        self.leakage, is_leak = leakage(self.signatures, parts, SPLITS, threshold)
        is_copy = near_duplicates(self.signatures, self.options.near_duplicate, among=parts == SPLITS.index("train"))
        self.filter.removed["training dialogues nearly equal to another"] = int(is_copy.sum())
        if self.options.excludes_leaks:
            is_leak &= ~is_copy
            self.filter.removed["training dialogues nearly equal to one of validation or test"] = int(is_leak.sum())
            is_copy |= is_leak
        return is_copy

    def _draw_validation(self) -> None:
        """A part of the training, where the corpus was published without validation."""
        with self.scratch.open(encoding="utf-8") as scratch:
            for number, line in enumerate(scratch):
                if self.splits[number] == SPLITS.index("train"):
                    name = self._drawn(json.loads(line)[0])
                    self.splits[number] = SPLITS.index(name)
                    self.n_validation_drawn += name == "validation"

    def _kept(self, is_copy: Any) -> Iterator[tuple[str, str, list[list[str]]]]:
        """Split, id and pieces of each dialogue that is no copy, from the scratch file."""
        with self.scratch.open(encoding="utf-8") as scratch:
            for number, line in enumerate(scratch):
                if not is_copy[number]:
                    dialogue_id, pieces = json.loads(line)
                    yield SPLITS[self.splits[number]], dialogue_id, pieces

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
        options["topic_file"] = self.options.topic_file.name if self.options.topic_file else None
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
            "published_splits": self._about_splits(),
            "n_published_splits_not_kept": self.n_published,
            "given_topics": self.given.in_vocabulary(vocabulary)[1] if self.given is not None else None,
        }
        digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
        for name in SPLITS:
            with (self.part / f"{name}.tokens").open("rb") as tokens:
                digest.update(hashlib.file_digest(tokens, "sha256").digest())
        about["fingerprint"] = digest.hexdigest()[:16]
        (self.part / CORPUS_FILE).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    def _about_splits(self) -> dict[str, Any] | None:
        """What says the published splits, and what they share; None where the splits were drawn here."""
        if not self.options.keeps_splits:
            return None
        return {
            "told_by": self.published.dialogues_by_source(),
            "n_validation_drawn": self.n_validation_drawn,
            "leakage": [asdict(row) for row in self.leakage],
        }

    def _topics(self, corpus: Corpus, vocabulary: Vocabulary) -> TopicModel | None:
        """Topics found elsewhere or in the training split."""
        if self.given is not None:
            return self.given.in_vocabulary(vocabulary)[0]
        if not self.options.n_topics:
            return None
        self.report("finding topics", 0)
        return fit_topics(corpus.split("train"), vocabulary, n_topics=self.options.n_topics, seed=self.options.seed)

    def _find_topics(self, vocabulary: Vocabulary) -> None:
        """Gets the topics, then names the topic before every turn of every split."""
        corpus = load_corpus(self.part)
        model = self._topics(corpus, vocabulary)
        if model is not None:
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
