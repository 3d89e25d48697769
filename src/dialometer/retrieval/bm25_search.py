"""The best answers by BM25 without a score for every question of a large knowledge base: compiled, over bm25s' index.

Words are taken from the most to the least telling. As soon as the words that are left could not lift a question that
holds none of the words so far among the best k, only questions already met are followed up (Turtle and Flood's "max
score", 1995), which spares the long lists of "what" and "you". Each answer takes the score of its best question, and
equal scores rank by the answer's number, so the result is that of the full product, rank by rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

DECIMALS = 1e5
"""Scores are compared to five decimals: sums of the same weights in another order must stay ties."""
MARGIN = 1e-3
"""How much a bound must be beaten by, so that rounding never costs an answer its place."""


@njit(cache=True, nogil=True)
def _is_before(score: float, answer: int, other_score: float, other_answer: int) -> bool:
    return score > other_score or (score == other_score and answer < other_answer)


@njit(cache=True, nogil=True)
def _insert(scores: Any, answers: Any, n: int, score: float, answer: int) -> int:
    """Puts an answer into a list of the best so far, unless it is worse than all of a full list; the new length."""
    k = len(scores)
    if n == k and not _is_before(score, answer, scores[k - 1], answers[k - 1]):
        return n
    place = n if n < k else k - 1
    while place > 0 and _is_before(score, answer, scores[place - 1], answers[place - 1]):
        scores[place] = scores[place - 1]
        answers[place] = answers[place - 1]
        place -= 1
    scores[place] = score
    answers[place] = answer
    return n + 1 if n < k else n


@njit(cache=True, nogil=True)
def _remove(scores: Any, answers: Any, n: int, answer: int) -> int:
    """Takes an answer out of the list of the best where it stands in it; the new length."""
    for place in range(n):
        if answers[place] == answer:
            for later in range(place, n - 1):
                scores[later] = scores[later + 1]
                answers[later] = answers[later + 1]
            return n - 1
    return n


@njit(cache=True, nogil=True)
def _rest(question: int, n_left: Any, words_in: Any, weights_in: Any, first_in: Any) -> float:
    """What the words that are left add to a question, from the question's own list of words."""
    total = 0.0
    for place in range(first_in[question], first_in[question + 1]):
        times = n_left[words_in[place]]
        if times:
            total += times * weights_in[place]
    return total


@njit(cache=True, nogil=True)
def _best_answers(
    questions: Any, sums: Any, left: float, n_left: Any, words_in: Any, weights_in: Any, first_in: Any,
    pair_of: Any, pair_start: Any, best: Any, seen: Any, out_scores: Any, out_answers: Any,
) -> int:  # fmt: skip
    """The best answers of some questions; how many. Words that are left are added where they could change anything.

    ``best`` is zero before and after.
    """
    n_found = 0
    n_seen = 0
    floor = 0.0
    for question in questions:
        total = sums[question]
        if total + left < floor - MARGIN:
            continue
        if left > 0.0:
            total += _rest(question, n_left, words_in, weights_in, first_in)
        score = np.floor(total * DECIMALS + 0.5) / DECIMALS
        if score < floor:
            continue
        for place in range(pair_start[question], pair_start[question + 1]):
            answer = pair_of[place]
            if score > best[answer]:
                if best[answer] > 0.0:
                    n_found = _remove(out_scores, out_answers, n_found, answer)
                else:
                    seen[n_seen] = answer
                    n_seen += 1
                best[answer] = score
                n_found = _insert(out_scores, out_answers, n_found, score, answer)
        if n_found == len(out_scores):
            floor = out_scores[n_found - 1]
    for answer in seen[:n_seen]:
        best[answer] = 0.0
    return n_found


@njit(cache=True, nogil=True)
def _search_one(
    words: Any, data: Any, indices: Any, indptr: Any, most: Any, words_in: Any, weights_in: Any, first_in: Any,
    pair_of: Any, pair_start: Any, sums: Any, n_left: Any, best: Any, seen: Any, touched: Any,
    out_scores: Any, out_answers: Any,
) -> None:  # fmt: skip
    """One query. ``sums``, ``n_left`` and ``best`` are zero before and after; ``touched`` has room for all questions."""
    words = words[np.argsort(-most[words], kind="mergesort")]
    left = 0.0
    for word in words:
        left += most[word]
        n_left[word] += 1
    n_touched = 0
    highest = 0.0
    limit = -1.0
    for word in words:
        if limit > left + MARGIN:
            break
        for place in range(indptr[word], indptr[word + 1]):
            question = indices[place]
            before = sums[question]
            if before == 0.0:
                touched[n_touched] = question
                n_touched += 1
            sums[question] = before + data[place]
            highest = max(highest, before + data[place])
        left -= most[word]
        n_left[word] -= 1
        if highest > left > MARGIN:
            n_found = _best_answers(
                touched[:n_touched], sums, 0.0, n_left, words_in, weights_in, first_in,
                pair_of, pair_start, best, seen, out_scores, out_answers,
            )  # fmt: skip
            limit = out_scores[n_found - 1] if n_found == len(out_scores) else -1.0
    n_found = _best_answers(
        touched[:n_touched], sums, left if limit > left + MARGIN else 0.0, n_left, words_in, weights_in, first_in,
        pair_of, pair_start, best, seen, out_scores, out_answers,
    )  # fmt: skip
    out_answers[n_found:] = -1
    out_scores[n_found:] = 0.0
    for question in touched[:n_touched]:
        sums[question] = 0.0
    for word in words:
        n_left[word] = 0


@njit(cache=True, nogil=True, parallel=True)
def search(
    words: Any, starts: Any, data: Any, indices: Any, indptr: Any, most: Any, words_in: Any, weights_in: Any,
    first_in: Any, pair_of: Any, pair_start: Any, n_answers: int, k: int, n_parts: int,
) -> tuple[Any, Any]:  # fmt: skip
    """The k best answers of each query (words ``starts[i]`` to ``starts[i + 1]``) with their scores; -1 where none is left."""
    n_queries = len(starts) - 1
    scores = np.zeros((n_queries, k), dtype=np.float64)
    answers = np.full((n_queries, k), -1, dtype=np.int64)
    n_questions = len(pair_start) - 1
    for part in prange(n_parts):
        sums = np.zeros(n_questions, dtype=np.float64)
        n_left = np.zeros(len(most), dtype=np.int32)
        best = np.zeros(n_answers, dtype=np.float64)
        seen = np.empty(n_answers, dtype=np.int64)
        touched = np.empty(n_questions, dtype=np.int64)
        for query in range(part * n_queries // n_parts, (part + 1) * n_queries // n_parts):
            own = words[starts[query] : starts[query + 1]]
            _search_one(
                own, data, indices, indptr, most, words_in, weights_in, first_in, pair_of, pair_start,
                sums, n_left, best, seen, touched, scores[query], answers[query],
            )  # fmt: skip
    return scores, answers


def fill_with_unmatched(answers: NDArray[np.int64], scores: NDArray[np.float64], can_rank: NDArray[np.int64]) -> None:
    """Ends lists that are too short with answers that share no word: score 0, by number, as the full product ranks them."""
    for row in np.flatnonzero((answers == -1).any(axis=1)):
        n_found = int((answers[row] >= 0).sum())
        room = answers.shape[1] - n_found
        rest = np.setdiff1d(can_rank[: room + n_found], answers[row, :n_found])[:room]
        answers[row, n_found : n_found + len(rest)] = rest
        scores[row, n_found : n_found + len(rest)] = 0.0
        scores[row, n_found + len(rest) :] = np.nan
