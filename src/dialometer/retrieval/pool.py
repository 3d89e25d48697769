"""Candidates for the crowd: what any retriever puts first, shown after the turns before it, with the right answers among them.

Chierici and Habash (HumEval 2021, section 5): the union of the first ten answers of all retrievers; a window of three turns that
begins with a question slides over the dialogue, and the candidate is the fourth. Raters who reject a gold answer are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialometer.errors import DialometerError
from dialometer.model.dialogue import Turn
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.labels.crowd_ratings import CrowdRatings
from dialometer.retrieval.queries import Query, QuerySet
from dialometer.retrieval.retriever import RankedAnswers

USER, AGENT = "A", "B"
"""Names that do not tell which of the two is recorded."""
DEPTH = 10
N_TURNS = 3
N_HANDED_OUT = 24
FEWEST_WORDS = 5


def window(query: Query, n_turns: int = N_TURNS) -> list[dict[str, str]]:
    """The last turns up to the question, beginning with one of the user's; only the question where it comes first."""
    turns: Sequence[Turn] = query.context[-(n_turns - 1) :] if n_turns > 1 else ()
    while turns and turns[0].role != "user":
        turns = turns[1:]
    before = [{"speaker": USER if turn.role == "user" else AGENT, "text": turn.text} for turn in turns]
    return [*before, {"speaker": USER, "text": query.text}]


def pool(
    kb: KnowledgeBase,
    query_set: QuerySet,
    rankings: Mapping[str, RankedAnswers],
    *,
    depth: int = DEPTH,
    seed: int = 0,
    rated: CrowdRatings | None = None,
) -> list[dict[str, Any]]:
    """Items of an avatar study. Candidates of a question stand in an order that tells nothing about their ranks.

    ``rated`` are ratings that exist already: their answers are candidates too, so that the ratings can be imported.
    Gold are the answers that the maker marked. Where the dialogues have no marks at all, gold is what the person really said,
    which is then a candidate that no retriever can find.
    """
    for name, ranking in rankings.items():
        if len(ranking) != len(query_set):
            raise DialometerError(
                f"'{name}' ranked {len(ranking)} of {len(query_set)} questions", remedy="rank them all"
            )
    rng = np.random.default_rng(seed)
    has_marks = any(query_set.right)
    items = []
    for row, query in enumerate(query_set.queries):
        ranks: dict[int, dict[str, int]] = {answer: {} for answer in query_set.right[row]}
        for name, ranking in rankings.items():
            for rank, answer in enumerate(ranking.answers[row, :depth].tolist(), start=1):
                if answer >= 0:
                    ranks.setdefault(answer, {})[name] = rank
        for answer in rated.by_question.get(query.id, ()) if rated is not None else ():
            ranks.setdefault(answer, {})
        candidates = [
            (kb.answers[answer].text, kb.answers[answer].id, ranks[answer], answer in query_set.right[row])
            for answer in sorted(ranks)
        ]
        if not has_marks and query_set.replies[row]:
            candidates = _with_reply(candidates, query_set.replies[row], query)
        recordings = {kb.answers[a].id: kb.answers[a].recording for a in ranks}
        context = window(query)
        about: dict[str, Any] = {"question": query.id, "dialogue": query_set.dialogues[row]}
        if query.coreference is not None:
            about["coreference"] = query.coreference
        for number, k in enumerate(rng.permutation(len(candidates)), start=1):
            text, answer_id, own_ranks, is_gold = candidates[k]
            recording = recordings.get(answer_id)
            items.append(
                {
                    "id": f"{query.id}-c{number}",
                    "context": context,
                    "candidate": {"speaker": AGENT, "text": text, **(recording.as_json() if recording else {})},
                    "ranks": own_ranks,
                    "is_gold": is_gold,
                    "metadata": {**about, "answer": answer_id},
                }
            )
    return items


def _with_reply(
    candidates: list[tuple[str, str, dict[str, int], bool]], reply: str, query: Query
) -> list[tuple[str, str, dict[str, int], bool]]:
    """What the person said as gold: the recorded answer with the same words, or one more candidate."""
    marked = [(text, name, ranks, text == reply) for text, name, ranks, _ in candidates]
    if any(is_gold for *_, is_gold in marked):
        return marked
    return [*marked, (reply, f"said-{query.id}", {}, True)]


def handed_out(items: Sequence[Mapping[str, Any]], n: int = N_HANDED_OUT, *, seed: int = 0) -> list[str]:
    """Ids of gold items of which every rater gets one with each batch, so that nobody goes unchecked.

    Answers of a few words ("Yes.") suit many questions and check little, so they are taken only where there are no others.
    """
    gold = [item for item in items if item["is_gold"]]
    lot = np.random.default_rng(seed).random(len(gold))
    is_short = np.array([len(item["candidate"]["text"].split()) < FEWEST_WORDS for item in gold], dtype=np.float64)
    order = np.lexsort((lot, is_short))[: min(n, max(1, len(gold) // 4))] if gold else ()
    return [gold[k]["id"] for k in sorted(order)]
