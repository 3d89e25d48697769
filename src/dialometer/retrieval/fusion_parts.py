"""What the fused retriever weighs: nearness by question and by answer in three forms of the turn, and shared words.

========================  ===========================================================================
``question:turn``         cosine with the answer's nearest recorded question
``answer:turn``           cosine with the answer itself
``question:sentences``    the same for the best single sentence of the turn
``answer:sentences``
``question:context``      the same with the end of the turn before
``answer:context``
``words``                 TF-IDF cosine of short letter sequences with the nearest recorded question
========================  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dialometer.retrieval.forms import FORMS, Formed, formed
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retrievers.tfidf import FittedTfidf, Tfidf
from dialometer.retrieval.vectors import QuestionVectors, cosines

if TYPE_CHECKING:
    from dialometer.retrieval.text_encoder import TextEncoder

Floats = NDArray[np.float32]

ENCODED = tuple(f"{side}:{form}" for form in FORMS for side in ("question", "answer"))
PARTS = (*ENCODED, "words")


@dataclass(frozen=True)
class PreparedParts:
    """A batch of queries: vectors of its texts in every form, and its words."""

    forms: dict[str, tuple[Floats, Formed]]
    words: Any
    n_queries: int


class FusionParts:
    """All parts over one knowledge base and one encoder."""

    def __init__(self, kb: KnowledgeBase, encoder: TextEncoder) -> None:
        self.kb = kb
        self.encoder = encoder
        self.questions = QuestionVectors(kb, encoder.encode(kb.questions, "Encoding questions"))
        self.answers = encoder.encode(kb.texts, "Encoding answers")
        self.words = FittedTfidf(Tfidf(analyzer="char_wb", shortest=2, longest=5), kb)

    def prepare(self, queries: Sequence[Query]) -> PreparedParts:
        """Every text is encoded once, in whichever forms it occurs."""
        forms = {form: formed(queries, form) for form in FORMS}
        vectors = self.encoder.encode([text for form in forms.values() for text in form.texts])
        ends = np.cumsum([len(form.texts) for form in forms.values()])
        pieces = np.split(vectors, ends[:-1])
        return PreparedParts(
            {name: (piece, form) for (name, form), piece in zip(forms.items(), pieces, strict=True)},
            self.words.prepare(queries),
            len(queries),
        )

    def part(self, name: str, prepared: PreparedParts, first: int, last: int) -> Floats:
        """One part's scores, questions by answers; 0 where an answer has no recorded question."""
        if name == "words":
            return np.nan_to_num(self.words.block(prepared.words, first, last), nan=0.0)
        side, _, form = name.partition(":")
        vectors, texts = prepared.forms[form]
        if side == "answer":
            return texts.best(cosines(vectors, self.answers[first:last]))
        return texts.best(np.nan_to_num(self.questions.best(vectors, first, last), nan=0.0))

    def all(self, queries: Sequence[Query]) -> Floats:
        """Every part's scores of every answer: questions by answers by parts, for learning the weights."""
        prepared = self.prepare(queries)
        n_answers = len(self.kb.answers)
        return np.stack([self.part(name, prepared, 0, n_answers) for name in PARTS], axis=-1).astype(np.float32)
