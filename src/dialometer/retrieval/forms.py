"""The forms in which a turn is put to a retriever: as it is, sentence by sentence, or with what was said before.

People in conversation say several things in one turn ("That's nice. Where are you from?") and leave out what the turn before
made clear ("Which one did you prefer?"). A score over a form is the best over its texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dialometer.retrieval.queries import Query

Form = Literal["turn", "sentences", "context"]
FORMS: tuple[Form, ...] = get_args(Form)

CONTEXT_CHARACTERS = 200
"""How much of the turn before is taken along, from its end: more would drown the question."""
_BREAK = re.compile(r"(?<=[.?!])\s+|\s*(?:\.\.\.|…)\s*|\n+")
_HAS_WORD = re.compile(r"\w")


def sentences(text: str) -> list[str]:
    """The sentences of a turn; the turn itself where it has no words."""
    parts = [part.strip() for part in _BREAK.split(text) if part and _HAS_WORD.search(part)]
    return parts or [text]


def with_context(query: Query, n_turns: int = 1) -> str:
    """The turn after the end of what was said before it."""
    before = " ".join(turn.text for turn in query.context[-n_turns:]) if query.context and n_turns else ""
    return f"{before[-CONTEXT_CHARACTERS:]} {query.text}".strip()


def texts_of(query: Query, form: Form) -> list[str]:
    """The texts of one query in a form."""
    if form == "turn":
        return [query.text]
    return sentences(query.text) if form == "sentences" else [with_context(query)]


@dataclass(frozen=True)
class Formed:
    """Texts of many queries one after the other, and where those of each query begin."""

    texts: list[str]
    starts: NDArray[np.int64]

    def best(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """From scores of texts to scores of queries."""
        if len(self.starts) == len(self.texts):
            return scores
        return np.asarray(np.maximum.reduceat(scores, self.starts, axis=0))


def formed(queries: Sequence[Query], form: Form) -> Formed:
    """All queries in one form."""
    texts: list[str] = []
    starts = []
    for query in queries:
        starts.append(len(texts))
        texts += texts_of(query, form)
    return Formed(texts, np.array(starts, dtype=np.int64))
