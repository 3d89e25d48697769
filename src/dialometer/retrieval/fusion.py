"""What the fused retriever weighs: nearness by question and by answer in four representations of the turn, and shared words.

========================  ===========================================================================
``question:turn``         cosine with the answer's nearest recorded question
``answer:turn``           cosine with the answer itself
``question:sentences``    the same for the best single sentence of the turn
``answer:sentences``
``question:context``      the same with the end of the turn before
``answer:context``
``question:asked``        the same with the end of what the same person said before
``answer:asked``
``words``                 TF-IDF cosine of short letter sequences with the nearest recorded question
========================  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import NotEnoughData
from dialometer.neural.engines import single_products
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import REPRESENTATIONS, Query, QueryTexts, represent
from dialometer.retrieval.retrievers.tfidf import FittedTfidf, TfidfRetriever
from dialometer.retrieval.vectors import QuestionVectors, cosines

if TYPE_CHECKING:
    from dialometer.neural.encoder import TextEncoder


Float32s = NDArray[np.float32]
Ints = NDArray[np.int64]

ENCODED = tuple(f"{side}:{kind}" for kind in REPRESENTATIONS for side in ("question", "answer"))
PARTS = (*ENCODED, "words")
SHORTLIST_FROM = 50_000
"""Answers from which on only those near the question are scored: all of them would take half a second and more."""
N_NEAR = 256
"""How many recorded questions with their answers the search of a shortlist finds."""
PER_CODE = 4
"""Numbers of a vector that share a code."""
BLOCK = 16_384
"""Vectors that are put into it at a time."""


@dataclass(frozen=True)
class PreparedParts:
    """A batch of queries: vectors of its texts in every representation, and its words."""

    encoded: dict[str, tuple[Float32s, QueryTexts]]
    words: Any
    n_queries: int


class FusionParts:
    """All parts over one knowledge base and one encoder."""

    def __init__(self, kb: KnowledgeBase, encoder: TextEncoder) -> None:
        self.kb = kb
        self.encoder = encoder
        self.questions = QuestionVectors(kb, encoder.encode(kb.questions, "Encoding questions"))
        self.answers = encoder.encode(kb.texts, "Encoding answers")
        self.words = FittedTfidf(TfidfRetriever(analyzer="char_wb", shortest=2, longest=5), kb)
        self.shortlist = Shortlist(self) if len(kb.answers) >= SHORTLIST_FROM else None

    def prepare(self, queries: Sequence[Query]) -> PreparedParts:
        """Every text is encoded once, in whichever representations it occurs."""
        represented = {kind: represent(queries, kind) for kind in REPRESENTATIONS}
        texts = [text for own in represented.values() for text in own.texts]
        vectors = self.encoder.encode(texts)
        ends = np.cumsum([len(own.texts) for own in represented.values()])
        pieces = np.split(vectors, ends[:-1])
        return PreparedParts(
            {kind: (piece, own) for (kind, own), piece in zip(represented.items(), pieces, strict=True)},
            self.words.prepare(queries),
            len(queries),
        )

    def part(self, name: str, prepared: PreparedParts, first: int, last: int) -> Float32s:
        """One part's scores, questions by answers; 0 where an answer has no recorded question."""
        if name == "words":
            return np.nan_to_num(self.words.score_block(prepared.words, first, last), nan=0.0)
        side, _, kind = name.partition(":")
        vectors, texts = prepared.encoded[kind]
        if side == "answer":
            return texts.best(cosines(vectors, self.answers[first:last]))
        return texts.best(np.nan_to_num(self.questions.best(vectors, first, last), nan=0.0))

    def all(self, queries: Sequence[Query]) -> Float32s:
        """Every part's scores of every answer: questions by answers by parts, for learning the weights."""
        prepared = self.prepare(queries)
        n_answers = len(self.kb.answers)
        return np.stack([self.part(name, prepared, 0, n_answers) for name in PARTS], axis=-1).astype(np.float32)


class Shortlist:
    """Where answers are very many: those whose encoded parts sum up highest, then scored exactly with all parts.

    Each recorded question stands with its answer as one long vector. Its product with the weighted sums of the query's vectors is
    the sum of the encoded parts, as long as one question of an answer is the nearest in all of them; so the search misses hardly
    any answer that all parts together put first. A turn of several sentences is searched once for each. Four numbers of a vector
    share one code of 4 bits (product quantisation: Andre, Kermarrec and Le Scouarnec, VLDB 2015), so that 200,000 are searched
    in a millisecond.
    """

    def __init__(self, parts: FusionParts, n_near: int = N_NEAR) -> None:
        import faiss  # noqa: PLC0415 - heavy

        self.parts = parts
        self.n_near = n_near
        self.has_question = parts.kb.n_questions_of > 0
        unasked = np.flatnonzero(~self.has_question)
        self._answer = np.concatenate([parts.kb.pair_answer, unasked]).astype(np.int64)
        width = parts.answers.shape[1]
        self._index: Any = faiss.IndexPQFastScan(2 * width, 2 * width // PER_CODE, 4, faiss.METRIC_INNER_PRODUCT)
        n_pairs = len(parts.kb.pair_answer)
        for first in range(0, len(self._answer), BLOCK):
            rows = np.arange(first, min(first + BLOCK, len(self._answer)))
            block = np.zeros((len(rows), 2 * width), dtype=np.float32)
            is_pair = rows < n_pairs
            block[is_pair, :width] = parts.questions.vectors[parts.kb.pair_question[rows[is_pair]]]
            block[:, width:] = parts.answers[self._answer[rows]]
            if not first:
                self._index.train(block)
            self._index.add(block)

    def _near(self, own: Mapping[str, Float32s], weights: Mapping[str, float]) -> Ints:
        """Answers near one query, in order."""
        n_texts = max(map(len, own.values()))
        sums = [
            sum(
                np.float32(weights.get(f"{side}:{kind}", 0.0)) * np.resize(vectors, (n_texts, vectors.shape[1]))
                for kind, vectors in own.items()
            )
            for side in ("question", "answer")
        ]
        queries = np.ascontiguousarray(np.hstack(sums), dtype=np.float32)
        found = self._index.search(queries, min(self.n_near, len(self._answer)))[1]
        return np.unique(self._answer[found])

    def scores(self, prepared: PreparedParts, row: int, weights: Mapping[str, float]) -> tuple[Ints, Float32s]:
        """Candidates of one query in order, and their weighted sums."""
        own = {kind: texts.of(row, vectors) for kind, (vectors, texts) in prepared.encoded.items()}
        found = self._near(own, weights)
        is_asked = self.has_question[found]
        recorded, starts = self.parts.questions.by_answer.questions_of(found[is_asked])
        questions, answers = self.parts.questions.vectors[recorded], self.parts.answers[found]
        total = np.zeros(len(found), dtype=np.float32)
        for name in PARTS:
            weight, (side, _, kind) = weights.get(name, 0.0), name.partition(":")
            if not weight:
                continue
            if name == "words":
                scores = self.parts.words.question_scores(prepared.words[row], recorded)
            else:
                scores = cosines(own[kind], answers if side == "answer" else questions)
            best = scores.max(axis=0)
            if side == "answer":
                total += np.float32(weight) * best
            elif len(starts):
                total[is_asked] += np.float32(weight) * np.maximum.reduceat(best, starts)
        return found, np.asarray(np.round(total, 4))


# How much each part counts: weights that make the right answers most probable, chosen by cross-validation.
#
# Conditional logit (McFadden 1974) over the candidates of a question: the probability of an answer is the softmax of its weighted
# scores, and the weights maximise the probability that falls on the right answers, less a penalty on their squares.

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]
PENALTIES = (0.3, 3.0, 30.0)
MOST_CANDIDATES = 100


@dataclass(frozen=True)
class CandidateLists:
    """Scores of candidates (questions by candidates by parts), which are right, and which are candidates at all."""

    scores: NDArray[np.float32]
    right: Marks
    held: Marks

    def subset(self, rows: NDArray[np.int64] | Marks) -> CandidateLists:
        """Some of the questions."""
        return CandidateLists(self.scores[rows], self.right[rows], self.held[rows])


def candidate_lists(scores: NDArray[np.float32], right: Marks, *, n_best: int = 20) -> CandidateLists:
    """Candidates of each question: the best of every part and all that are right, where there are too many answers."""
    n_questions, n_answers, n_parts = scores.shape
    if n_answers <= MOST_CANDIDATES:
        return CandidateLists(scores, right, np.ones_like(right))
    chosen = right.copy()
    for part in range(n_parts):
        best = np.argpartition(-scores[:, :, part], n_best, axis=1)[:, :n_best]
        np.put_along_axis(chosen, best, True, axis=1)
    width = int(chosen.sum(axis=1).max())
    columns = np.argsort(~chosen, axis=1, kind="stable")[:, :width]
    rows = np.arange(n_questions)[:, None]
    return CandidateLists(scores[rows, columns], right[rows, columns], chosen[rows, columns])


def fit_weights(lists: CandidateLists, penalty: float) -> Floats:
    """Weights on the scores as they are; the penalty acts on weights of scores of equal spread."""
    from scipy.optimize import minimize  # noqa: PLC0415 - heavy

    is_answerable: Marks = np.asarray(lists.right.any(axis=1))
    if not is_answerable.any():
        raise NotEnoughData("no question has a right answer", remedy="weights need marked answers")
    answerable = lists.subset(is_answerable)
    spread = answerable.scores[answerable.held].std(axis=0).astype(np.float64)
    spread[spread == 0] = 1.0
    scaled = answerable.scores / spread.astype(np.float32)

    def cost(weights: Floats) -> tuple[float, Floats]:
        chance, own = _chances(scaled, weights, answerable)
        value = -np.log(np.maximum((chance * answerable.right).sum(axis=1), 1e-300)).sum()
        slope = np.einsum("qa,qap->p", chance - own, scaled, dtype=np.float64)
        return value + penalty * float(weights @ weights), slope + 2 * penalty * weights

    solution = minimize(cost, np.zeros(scaled.shape[2]), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    return np.asarray(solution.x / spread)


def _chances(scaled: NDArray[np.float32], weights: Floats, lists: CandidateLists) -> tuple[Floats, Floats]:
    """Probability of every candidate, and the same among right answers only."""
    total = np.where(lists.held, scaled @ weights.astype(np.float32), -np.inf).astype(np.float64)
    total -= total.max(axis=1, keepdims=True)
    chance = np.exp(total)
    among = np.where(lists.right, chance, 0.0)
    share = among / np.maximum(among.sum(axis=1, keepdims=True), 1e-300)
    return chance / chance.sum(axis=1, keepdims=True), share


def log_chance(lists: CandidateLists, weights: Floats) -> Floats:
    """Log probability that falls on the right answers of each question; nan where none is right."""
    chance, _ = _chances(lists.scores, weights, lists)
    log_chances = np.log(np.maximum((chance * lists.right).sum(axis=1), 1e-300))
    return np.where(lists.right.any(axis=1), log_chances, np.nan)


def choose_weights(lists: CandidateLists, groups: Sequence[str], penalties: Sequence[float] = PENALTIES) -> Floats:
    """Weights with the penalty that predicts held-out groups (dialogues) best."""
    import scipy.optimize  # noqa: F401, PLC0415 - heavy; before its linear algebra is limited to one thread

    with single_products():
        return fit_weights(lists, _best_penalty(lists, groups, penalties))


def _best_penalty(lists: CandidateLists, groups: Sequence[str], penalties: Sequence[float]) -> float:
    names = sorted(set(groups))
    if len(names) < 2 or len(penalties) == 1:
        return penalties[0]
    of_row = np.array(groups)
    parts = [names[start::3] for start in range(min(3, len(names)))]
    totals = []
    for penalty in penalties:
        total = 0.0
        for part in parts:
            is_out = np.isin(of_row, part)
            if not lists.right[~is_out].any():
                continue
            weights = fit_weights(lists.subset(~is_out), penalty)
            total += float(np.nansum(log_chance(lists.subset(is_out), weights)))
        totals.append(total)
    return penalties[int(np.argmax(totals))]
