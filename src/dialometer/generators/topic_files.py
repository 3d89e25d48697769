"""Topics that were found elsewhere: plain lists of words, the text that gensim and MALLET print, tables, and numpy arrays.

A bot knows words as tokens of its vocabulary, so of a given topic only words that are one token can be used. What is lost is
counted. Nothing here unpickles: a scikit-learn or gensim model is handed over as its arrays (see docs/how-to/train-bots.md).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dialometer.errors import DialometerError
from dialometer.generators.topics import TopicModel
from dialometer.generators.vocabulary import Vocabulary
from dialometer.model.values import to_number
from dialometer.readers.containers.arrays import ArraysError, read_arrays
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import some_columns, table_rows

AS_COUNTS = 1e6
"""Probabilities become the counts of a text this long, at which the expected log probability is the logarithm itself."""
# Words and numbers have a longest form, so that a line of any length takes time in proportion to it.
_NUMBER = r"[0-9]{0,20}\.?[0-9]{1,30}(?:[eE][-+]?[0-9]{1,3})?"
_WEIGHTED = re.compile(rf'({_NUMBER})\s{{0,9}}\*\s{{0,9}}"?([^"\s*+\']{{1,99}})"?')
_COLON = re.compile(rf"(\S{{1,99}}?):({_NUMBER})(?=[\s,]|$)")
_LABEL = re.compile(r"^\s*(?:topic\s*#?\s*)?\d*\s*:\s+|^\s*topic\s*#?\s*\d+\s+", re.IGNORECASE)
_MALLET = re.compile(r"^\d+\t[0-9.,eE+-]+\t")
_TOPIC = ("topic", "topic_id")
_WORD = ("word", "term", "token")
_WEIGHT = ("weight", "beta", "probability", "phi", "p")
_REMEDY = "write one topic per line, its words in order; or see 'Topics from elsewhere' in the page on training bots"


@dataclass(frozen=True)
class FileTopics:
    """Topics by words as a file gives them; a word outside a topic has the weight 0."""

    path: Path
    weights: npt.NDArray[np.float64]
    words: tuple[str, ...]
    prior: float | npt.NDArray[np.float64]

    def in_vocabulary(self, vocabulary: Vocabulary) -> tuple[TopicModel, dict[str, Any]]:
        """The topics over the tokens of a vocabulary, and what of the file that uses.

        A word is also found in other capitals than the file's, since topic models are mostly trained on lower case.
        """
        column_of = {word: column for column, word in reversed(list(enumerate(self.words)))}
        tokens, columns = [], []
        for token, piece in enumerate(vocabulary.pieces):
            text = piece[1:]
            if piece[:1] != " " or not text:
                continue
            column = column_of.get(text, column_of.get(text.lower()))
            if column is not None:
                tokens.append(token)
                columns.append(column)
        weights = self.weights[:, columns]
        is_known = weights.sum(axis=1) > 0
        if not is_known.any():
            raise DialometerError(
                f"none of its {len(self.words):,} words is a word of the vocabulary",
                where=str(self.path),
                remedy="check its language, or prepare the corpus with more --tokens",
            )
        prior = self.prior if isinstance(self.prior, float) else self.prior[is_known]
        about = {
            "file": self.path.name,
            "sha256": hashlib.sha256(self.path.read_bytes()).hexdigest(),
            "n_topics": len(self.weights),
            "n_topics_without_known_words": int((~is_known).sum()),
            "n_words": len(self.words),
            "n_words_known": len(set(columns)),
        }
        return TopicModel(weights[is_known].astype(np.float32), np.array(tokens, dtype=np.int64), prior), about


def read_topic_file(path: Path) -> FileTopics:
    """Topics from a file: ``.npz`` with arrays, ``.csv`` or ``.tsv`` with one row per topic and word, else one topic per line."""
    try:
        if path.suffix == ".npz":
            return _of_arrays(path)
        problems = Problems(str(path))
        source = SourceFile(path)
        if path.suffix in (".csv", ".tsv", ".xlsx"):
            rows = list(_table(source, problems))
        else:
            rows = list(_lines(path, source.text(problems)))
        problems.finish()
    except OSError as error:
        raise DialometerError(f"the topics cannot be read: {error}", where=str(path), remedy=_REMEDY) from error
    if len(rows) < 2:
        raise DialometerError(f"{len(rows)} topics are too few", where=str(path), remedy=_REMEDY)
    words = tuple(dict.fromkeys(word for row in rows for word in row))
    column_of = {word: column for column, word in enumerate(words)}
    weights = np.zeros((len(rows), len(words)))
    for number, row in enumerate(rows):
        for word, weight in row.items():
            weights[number, column_of[word]] = weight
    return _checked(path, weights, words, 1.0 / len(rows))


def _lines(path: Path, text: str) -> Iterator[dict[str, float]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("# "):
            continue
        row = _line(line)
        if not row:
            raise DialometerError("no words of a topic", where=f"{path}:{number}", remedy=_REMEDY)
        yield row


def _line(line: str) -> dict[str, float]:
    """Words of one topic with their weights; without weights they fall evenly from the first word to the last."""
    weighted = _WEIGHTED.findall(line)  # gensim: (0, '0.030*"guitar" + 0.020*"album"')
    if weighted:
        return {word: float(weight) for weight, word in weighted}
    paired = _COLON.findall(line)  # guitar:0.030 album:0.020
    if paired:
        return {word: float(weight) for word, weight in paired}
    plain = _MALLET.sub("", line) if _MALLET.match(line) else _LABEL.sub("", line)
    words = list(dict.fromkeys(word for word in re.split(r"[\s,;]+", plain.strip()) if word))
    return {word: float(len(words) - place) for place, word in enumerate(words)}


def _table(source: SourceFile, problems: Problems) -> Iterator[dict[str, float]]:
    """One row per topic and word, as tidytext's ``tidy(model)`` writes: topic, term, beta."""
    rows: dict[str, dict[str, float]] = {}
    columns: tuple[str, ...] = ()
    for row in table_rows(source, problems, ()):
        if not columns:
            named = {name.strip().lower(): name for name in row.cells}
            found = [next((named[name] for name in known if name in named), "") for known in (_TOPIC, _WORD, _WEIGHT)]
            if not all(found):
                raise DialometerError(
                    f"the columns {some_columns(list(named))} are not a table of topics",
                    where=f"{source.name}:1",
                    remedy="give the columns topic, word and weight",
                )
            columns = tuple(found)
        topic, word, weight = (row.cells[column].strip() for column in columns)
        number = to_number(weight)
        if number is None:
            remedy = "write a number such as 0.03"
            raise DialometerError(f"'{weight[:40]}' is not a weight", where=f"{source.name}:{row.line}", remedy=remedy)
        rows.setdefault(topic, {})[word] = number
    yield from rows.values()


def _of_arrays(path: Path) -> FileTopics:
    """``components`` (topics by words), ``words`` and maybe ``prior``, as numpy saves them."""
    remedy = "save it with numpy.savez(file, components=…, words=numpy.array(words, dtype=str), prior=…)"
    try:
        kept = read_arrays(path, ("components", "words"))
        weights = kept["components"].astype(np.float64)
        words = tuple(str(word) for word in kept["words"].ravel().tolist())
        prior = kept["prior"].astype(np.float64) if "prior" in kept else None
    except (ArraysError, ValueError) as error:
        raise DialometerError(f"{error}", where=str(path), remedy=remedy) from error
    if weights.ndim != 2 or weights.shape[1] != len(words):
        shape = " by ".join(map(str, weights.shape))
        raise DialometerError(
            f"the components are {shape}, but there are {len(words):,} words", where=str(path), remedy=remedy
        )
    if prior is None:
        return _checked(path, weights, words, 1.0 / len(weights))
    if prior.ndim > 1 or (prior.ndim == 1 and len(prior) != len(weights)) or not (prior > 0).all():
        raise DialometerError(
            "the prior is neither one positive number nor one for each topic", where=str(path), remedy=remedy
        )
    return _checked(path, weights, words, float(prior) if prior.ndim == 0 else prior)


def _checked(
    path: Path, weights: npt.NDArray[np.float64], words: tuple[str, ...], prior: float | npt.NDArray[np.float64]
) -> FileTopics:
    """Weights are counts (variational parameters) or, where no topic sums to more than one, probabilities."""
    if not np.isfinite(weights).all() or (weights < 0).any() or not (weights.sum(axis=1) > 0).all():
        raise DialometerError(
            "a topic has negative or missing weights, or none above 0", where=str(path), remedy="check the file"
        )
    is_share = bool((weights.sum(axis=1) <= 1.001).all())
    return FileTopics(path, weights * AS_COUNTS if is_share else weights, words, prior)
