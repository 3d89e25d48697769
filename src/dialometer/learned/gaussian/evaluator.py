"""A trained Gaussian process as an evaluator (the recipe ``best``): scores, comparisons, their uncertainty, and its folder.

The folder holds arrays and JSON only; nothing in it is executed when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError
from dialometer.learned.data.calibration import sigmoid
from dialometer.learned.data.evaluator import (
    DialogueComparison,
    DialogueScores,
    Evaluator,
    Report,
    read_about,
    write_about,
)
from dialometer.learned.gaussian.features import FeatureTable, describe
from dialometer.learned.gaussian.kernel import (
    ASPECTS,
    Described,
    Describer,
    KernelSettings,
    NormalScores,
    Posterior,
    familiarity,
    likeness,
    own_kernel,
    word_weights,
)
from dialometer.model.dialogue import Dialogue
from dialometer.neural.tfidf import Tfidf
from dialometer.neural.word_vectors import WordVectors, text_weights
from dialometer.neural.work import QUIET, Work
from dialometer.readers.containers.arrays import ArraysError, read_arrays

Floats = NDArray[np.float64]
KIND = "best"
ARRAYS = "arrays.npz"
_PART = 512
_WIDE = 1.96


class GaussianEvaluator(Evaluator):
    """One model whose uncertainty is its own: how little the training dialogues say about a dialogue like this."""

    def __init__(
        self,
        describer: Describer,
        known: Described,
        settings: KernelSettings,
        posterior: Posterior,
        *,
        centre: float,
        temperature: float,
        usual_familiarity: float = 0.0,
        word_vectors: WordVectors | None = None,
    ) -> None:
        self.describer = describer
        self.known = known
        self.settings = settings
        self.posterior = posterior
        self.centre = centre
        self.temperature = temperature
        self.usual_familiarity = usual_familiarity
        """What most training dialogues reach; one below it is unlike them."""
        self.word_vectors = word_vectors
        """What describes meaning in place of the encoder, where it was trained on many dialogues."""

    def score(self, dialogues: Sequence[Dialogue], report: Report | None = None, work: Work = QUIET) -> DialogueScores:
        """Scores; 0 is a typical training dialogue, a difference is the logarithm of odds."""
        scores = []
        for start in range(0, len(dialogues), _PART):
            part = dialogues[start : start + _PART]
            scores.append(self.score_table(self.describe(part, work)))
            if report is not None:
                report(start + len(part), len(dialogues))
        return DialogueScores.joined(scores)

    def describe(self, dialogues: Sequence[Dialogue], work: Work = QUIET) -> FeatureTable:
        """Features of dialogues as those it was trained on were described."""
        has_meaning = "meaning" in self.describer.aspects
        return describe(dialogues, work, has_meaning=has_meaning, word_vectors=self.word_vectors)

    def score_table(self, table: FeatureTable) -> DialogueScores:
        """Scores of dialogues whose features are known."""
        described = self.describer(table)
        cross = likeness(described, self.known).kernel(self.settings)
        values = (self.posterior.predict(cross) - self.centre) / self.temperature
        own = own_kernel(described, self.settings)
        spread = self.posterior.deviations(cross, own)
        deviations = spread * self.posterior.unit / self.temperature
        return DialogueScores(values, deviations, values[None, :], familiarity(spread, own))

    def is_unlike_training(self, scores: DialogueScores) -> NDArray[np.bool_]:
        """Which of the scored dialogues are unlike those it was trained on, so that little is known about them."""
        return np.asarray(scores.familiarity < self.usual_familiarity)

    def expected_ratings(self, table: FeatureTable) -> NDArray[np.float64]:
        """The rating expected of dialogues whose features are known, on the scale from 1 to 5 that training used."""
        return self.posterior.predict(likeness(self.describer(table), self.known).kernel(self.settings))

    def features(self, dialogues: Sequence[Dialogue], work: Work = QUIET) -> NDArray[np.float32]:
        """Normal scores of behaviour and meaning: a space in which neighbours are alike in quality."""
        return self.describer(self.describe(dialogues, work)).scores.astype(np.float32)

    def compare(self, first: Dialogue, second: Dialogue) -> DialogueComparison:
        """Which of two is better; ``low`` and ``high`` are the ends of a 95 % interval of the model's own uncertainty."""
        described = self.describer(self.describe([first, second]))
        cross = likeness(described, self.known).kernel(self.settings)
        values = self.posterior.predict(cross) / self.temperature
        own = likeness(described, described).kernel(self.settings)
        # The variance of a difference: that of a "dialogue" whose kernel row is the difference of the two rows.
        apart = cross[:1] - cross[1:]
        variance = np.array([own[0, 0] + own[1, 1] - 2 * own[0, 1]])
        spread = float(self.posterior.deviations(apart, variance)[0]) * self.posterior.unit / self.temperature
        gap = float(values[0] - values[1])
        chances = sigmoid(np.array([gap, gap - _WIDE * spread, gap + _WIDE * spread]))
        return DialogueComparison(float(chances[0]), float(chances[1]), float(chances[2]), 1)

    def save(self, folder: Path | str, about: Mapping[str, Any] | None = None) -> None:
        """Writes the folder; its settings come last, so that a half-written one is not taken for whole."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(folder / ARRAYS, **_arrays(self))
        content = {
            "kind": KIND,
            "aspects": list(self.describer.aspects),
            "settings": asdict(self.settings),
            "mean": self.posterior.mean,
            "centre": self.centre,
            "temperature": self.temperature,
            "usual_familiarity": self.usual_familiarity,
            "unit": self.posterior.unit,
            "words": [_words(side) for side in (self.describer.user_words, self.describer.agent_words)],
            "vector_words": _words(self.word_vectors.weights) if self.word_vectors else None,
            "about": dict(about or {}),
        }
        write_about(folder, content)

    @staticmethod
    def load(folder: Path | str) -> GaussianEvaluator:
        """The evaluator in a folder."""
        folder = Path(folder)
        content = read_about(folder)
        try:
            evaluator = _read(content, read_arrays(folder / ARRAYS))
        except (ArraysError, KeyError, ValueError, TypeError, OverflowError, AttributeError, IndexError) as error:
            remedy = "copy the folder again, or train the evaluator again"
            raise DialometerError(f"the evaluator is damaged: {error}", where=str(folder), remedy=remedy) from error
        return evaluator


def _words(side: Tfidf | None) -> list[str] | None:
    if side is None:
        return None
    return sorted(side.vocabulary, key=side.vocabulary.__getitem__)


def _arrays(evaluator: GaussianEvaluator) -> dict[str, Any]:
    factor, is_lower = evaluator.posterior.factor
    arrays: dict[str, Any] = {
        "weights": evaluator.posterior.weights,
        "factor": np.tril(factor).astype(np.float32) if is_lower else np.triu(factor).T.astype(np.float32),
        "scores": evaluator.known.scores,
        "sorted_values": evaluator.describer.normal.sorted_values,
    }
    for name, side in (("user", evaluator.describer.user_words), ("agent", evaluator.describer.agent_words)):
        if side is not None:
            arrays[f"{name}_idf"] = side.idf
    if evaluator.word_vectors is not None:
        arrays["vector_idf"] = evaluator.word_vectors.weights.idf
        arrays["word_vectors"] = evaluator.word_vectors.vectors.astype(np.float16)
        arrays["vector_mean"] = evaluator.word_vectors.mean
    for number, words in enumerate(evaluator.known.words):
        arrays |= {f"words_{number}_{part}": getattr(words, part) for part in ("data", "indices", "indptr")}
        arrays[f"words_{number}_shape"] = np.array(words.shape)
    return arrays


def _read(content: Mapping[str, Any], arrays: Mapping[str, Any]) -> GaussianEvaluator:
    """The evaluator of a folder's settings and arrays; raises ValueError, KeyError or TypeError where they do not fit."""
    from scipy import sparse  # noqa: PLC0415 - not needed to look at a folder

    numbers = {name: _finite(array, name) for name, array in arrays.items()}
    aspects = tuple(content["aspects"])
    if not aspects or not set(aspects) <= set(ASPECTS):
        raise ValueError("unknown aspects of dialogues")
    n = len(numbers["weights"])
    sorted_values, scores, factor = (_table(numbers, name) for name in ("sorted_values", "scores", "factor"))
    if (
        factor.shape != (n, n)
        or len(scores) != n
        or sorted_values.shape[1] != scores.shape[1]
        or not len(sorted_values)
    ):
        raise ValueError("its arrays do not fit each other")
    sides = [_side(words, numbers, name) for name, words in zip(("user", "agent"), content["words"], strict=True)]
    describer = Describer(aspects, sides[0], sides[1], NormalScores(sorted_values))
    known = []
    for number, side in enumerate(side for side in sides if side is not None):
        parts = tuple(numbers[f"words_{number}_{part}"] for part in ("data", "indices", "indptr"))
        if any(
            part.ndim != 1 or part.dtype.kind not in kinds for part, kinds in zip(parts, ("f", "iu", "iu"), strict=True)
        ):
            raise ValueError("its words are not a sparse table")
        words = sparse.csr_matrix(parts, shape=(n, len(side.vocabulary)))
        words.check_format(full_check=True)
        known.append(words)
    return GaussianEvaluator(
        describer,
        Described(tuple(known), scores),
        KernelSettings(**{name: _number(value) for name, value in content["settings"].items()}),
        Posterior(
            numbers["weights"], _number(content["mean"]), (factor.astype(np.float64), True), _number(content["unit"])
        ),
        centre=_number(content["centre"]),
        temperature=_number(content["temperature"]),
        usual_familiarity=_number(content.get("usual_familiarity", 0.0)),
        word_vectors=_read_word_vectors(content.get("vector_words"), numbers),
    )


def _finite(array: Any, name: str) -> Any:
    if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise ValueError(f"'{name}' does not hold numbers")
    return array


def _table(numbers: Mapping[str, Any], name: str) -> Any:
    if numbers[name].ndim != 2 or numbers[name].dtype.kind != "f":
        raise ValueError(f"'{name}' is not a table of numbers")
    return numbers[name]


def _read_word_vectors(words: Any, numbers: Mapping[str, Any]) -> WordVectors | None:
    """What describes meaning in place of the encoder; None where the encoder does."""
    if words is None:
        return None
    vectors, mean = _table(numbers, "word_vectors"), numbers["vector_mean"]
    if vectors.shape != (len(words), len(mean)):
        raise ValueError("its vectors of words do not fit their words")
    weights = text_weights(*_vocabulary(words, numbers, "vector"))
    return WordVectors(weights, vectors.astype(np.float32), mean.astype(np.float32))


def _side(words: Any, numbers: Mapping[str, Any], name: str) -> Tfidf | None:
    """The words of one side with their weights."""
    return None if words is None else word_weights(*_vocabulary(words, numbers, name))


def _vocabulary(words: Any, numbers: Mapping[str, Any], name: str) -> tuple[dict[str, int], Any]:
    """Words by their number, and their weights."""
    idf = numbers[f"{name}_idf"]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words) or idf.shape != (len(words),):
        raise ValueError(f"the words of the {name} and their weights do not fit each other")
    vocabulary = {word: number for number, word in enumerate(words)}
    if len(vocabulary) < len(words):
        raise ValueError(f"a word of the {name} is given twice")
    return vocabulary, idf


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(float(value)):
        raise ValueError(f"{str(value)[:40]!r} is not a number")
    return float(value)
