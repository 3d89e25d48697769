"""Recorded questions that a dialogue repeats: a knowledge base is often filled from the very dialogues it is then tried on.

Where that is so, asking those dialogues flatters every retriever that compares questions. Leaving the repeated questions out
shows how it will do with visitors who ask in their own words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dialometer.retrieval.forms import formed
from dialometer.retrieval.knowledge_base import Ints, KnowledgeBase
from dialometer.retrieval.queries import Query

if TYPE_CHECKING:
    from dialometer.retrieval.text_encoder import TextEncoder

SAME_TURN = 0.9
SAME_SENTENCE = 0.95
"""Cosines of the packaged encoder from which on two texts say the same; a single sentence must agree more."""


def repeated_questions(kb: KnowledgeBase, queries: Sequence[Query], encoder: TextEncoder) -> Ints:
    """Numbers of the recorded questions that some query, or one of its sentences, says almost word for word."""
    recorded = encoder.encode(kb.questions)
    is_repeated = np.zeros(len(kb.questions), dtype=bool)
    for form, limit in (("turn", SAME_TURN), ("sentences", SAME_SENTENCE)):
        texts = formed(queries, "turn" if form == "turn" else "sentences").texts
        for start in range(0, len(texts), 256):
            is_repeated |= (encoder.encode(texts[start : start + 256]) @ recorded.T > limit).any(axis=0)
    return np.flatnonzero(is_repeated).astype(np.int64)
