"""Features without training: means of the sentence vectors of what the user and what the agent said.

The packaged encoder is used as it comes, in its quick form where there is one. Vectors are kept in the cache, so that looking
at the same dialogues again takes no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.fast_encoding import QuickTextEncoder, is_available, n_levels
from dialometer.model.dialogue import Dialogue
from dialometer.retrieval.embedding_cache import EmbeddingCache
from dialometer.retrieval.packaged import PACKAGED, device_of, model_path
from dialometer.retrieval.work import QUIET, Work

Floats = NDArray[np.float32]
_TEXTS_AT_A_TIME = 2048
_WHAT = "Encoding utterances"


def frozen_features(dialogues: Sequence[Dialogue], work: Work = QUIET) -> Floats:
    """For each dialogue the mean vector of the user's utterances, then that of the agent's; zeros for a side that is silent."""
    texts = list(dict.fromkeys(turn.text for dialogue in dialogues for turn in dialogue.turns))
    place = {text: number for number, text in enumerate(texts)}
    vectors = text_vectors(texts, work)
    out = np.zeros((len(dialogues), 2, vectors.shape[1]), dtype=np.float32)
    for row, dialogue in enumerate(dialogues):
        for side, is_agent in enumerate((False, True)):
            said = [place[turn.text] for turn in dialogue.turns if (turn.role == "agent") == is_agent]
            if said:
                out[row, side] = vectors[said].mean(axis=0)
    return out.reshape(len(dialogues), -1)


def text_vectors(texts: Sequence[str], work: Work = QUIET) -> Floats:
    """One vector of length one for each of the distinct ``texts``."""
    if not (is_available() and device_of(work.device) == "cpu"):
        from dialometer.retrieval.text_encoder import TextEncoder  # noqa: PLC0415 - needs torch

        return TextEncoder(PACKAGED, work).encode(texts, what=_WHAT)
    encoder = QuickTextEncoder(Path(model_path(PACKAGED)))
    folder = work.folder("embeddings")
    cache = EmbeddingCache(folder, f"packaged-8bit-{n_levels()}") if folder else None
    out = np.zeros((len(texts), encoder.width), dtype=np.float32)
    missing = cache.read(texts, out) if cache is not None else list(range(len(texts)))
    # By length, so that a portion needs little padding; the portions are what an interrupted run keeps.
    order = sorted(missing, key=lambda row: len(texts[row]))
    for _, rows in work.portions(_WHAT, order, _TEXTS_AT_A_TIME) if order else ():
        some = [texts[row] for row in rows]
        out[list(rows)] = encoder.encode(some)
        if cache is not None:
            cache.write(some, out[list(rows)])
    if cache is not None:
        cache.close()
    return out
