"""Which dialogues seem to be held with the same bot, where nobody wrote the bot's name down.

Bots differ in how they write: spaces before commas, emoji, capitals, stock phrases. Dialogues are clustered by the letter groups of
the agent's turns. The clusters stand in for bots when one is held out; they may split a bot, or put two alike ones together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dialometer.errors import NotEnoughData
from dialometer.learned.rated import Rated
from dialometer.learned.splits import Split, hold_out

N_STYLES = 6
_N_COMPONENTS = 30
MIN_HELD_OUT = 30


def bot_styles(rated: Sequence[Rated], n_styles: int = N_STYLES, seed: int = 0) -> list[str]:
    """The name of the bot of each dialogue where it is known, else of the cluster of its style."""
    if all(one.bot is not None for one in rated):
        return [str(one.bot) for one in rated]
    from sklearn.cluster import KMeans  # noqa: PLC0415 - an extra
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415
    from sklearn.preprocessing import normalize  # noqa: PLC0415

    texts = ["\n".join(turn.text for turn in one.dialogue.said_by("agent")) for one in rated]
    letters = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), min_df=min(5, len(texts)), sublinear_tf=True)
    matrix = letters.fit_transform(texts)
    n_components = min(_N_COMPONENTS, min(matrix.shape) - 1)
    reduced = normalize(TruncatedSVD(n_components, random_state=seed).fit_transform(matrix))
    found = KMeans(min(n_styles, len(texts)), n_init=10, random_state=seed).fit_predict(reduced)
    sizes = np.bincount(found)
    # The largest is style 1, so that names do not depend on where the clustering began.
    order = {int(style): place + 1 for place, style in enumerate(np.argsort(-sizes, kind="stable"))}
    return [f"style {order[int(style)]}" for style in found]


def held_out_bots(rated: Sequence[Rated], seed: int = 0) -> list[Split]:
    """One split for each bot (or style) with enough dialogues: trained on all the others, tested on it.

    A bot whose users have talked with all the others too cannot be held out: nobody would be left to train on.
    """
    return _held_out(rated, bot_styles(rated, seed=seed), seed)


def held_out_files(rated: Sequence[Rated], seed: int = 0) -> list[Split]:
    """One split for each file (a day of collection in ConvAI2): trained on all the others, tested on it."""
    return _held_out(rated, [one.source for one in rated], seed)


def _held_out(rated: Sequence[Rated], names: Sequence[str], seed: int) -> list[Split]:
    splits = []
    for name in sorted(set(names)):
        ids = [one.id for one, own in zip(rated, names, strict=True) if own == name]
        if not MIN_HELD_OUT <= len(ids) <= len(rated) - MIN_HELD_OUT:
            continue
        try:
            split = hold_out(rated, ids, name=name, seed=seed)
        except NotEnoughData:
            continue
        if len(split.train) >= MIN_HELD_OUT:
            splits.append(split)
    return splits
