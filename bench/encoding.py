"""Encoding on a processor beside sentence-transformers as it comes: ``python -m bench.encoding``.

With DIALOMETER_DATA the texts are ConvAI2's and the ranking is that of scores fitted to its ratings; without, texts are made
up and the ranking is along the directions in which they differ most. Both sides read at most 256 tokens of a text.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.learned import Row, ask_peer, best_of, print_rows, row

N_DIALOGUES, N_UTTERANCES = 120, 1500
N_RANKED = 400
SPEARMAN = 0.98
Floats = npt.NDArray[np.float64]


def texts() -> tuple[list[str], list[str], Floats | None]:
    """Whole dialogues, single utterances, and the dialogues' ratings where there are any."""
    if data := os.environ.get("DIALOMETER_DATA"):
        from dialometer.learned.data.rated import read_rated  # noqa: PLC0415

        rated = read_rated(Path(data) / "convai2")
        drawn = [rated[n] for n in np.random.default_rng(0).permutation(len(rated))[:N_RANKED]]
        whole = ["\n".join(turn.text for turn in one.dialogue.turns) for one in drawn]
        single = list(dict.fromkeys(turn.text for one in drawn for turn in one.dialogue.turns))
        return whole, single[:N_UTTERANCES], np.array([one.rating for one in drawn])
    rng = np.random.default_rng(0)
    words = np.array(
        [
            "hello",
            "thanks",
            "weather",
            "music",
            "guitar",
            "awful",
            "great",
            "sorry",
            "boring",
            "movie",
            "dog",
            "coffee",
            "book",
            "rain",
            "stop",
        ]
    )
    single = [" ".join(rng.choice(words, rng.integers(3, 15))) for _ in range(N_UTTERANCES)]
    whole = ["\n".join(rng.choice(single, rng.integers(8, 20))) for _ in range(N_RANKED)]
    return whole, single, None


def ranks(values: Floats) -> Floats:
    return np.argsort(np.argsort(values)).astype(np.float64)


def spearman_of(exact: Floats, quick: Floats, ratings: Floats | None) -> float:
    """Rank correlation of the scores of dialogues that the scores were not fitted to."""
    half = len(exact) // 2
    centre = exact[:half].mean(axis=0)
    if ratings is None:
        direction = np.linalg.svd(exact[:half] - centre, full_matrices=False)[2][0]
    else:
        x, y = exact[:half] - centre, ratings[:half] - ratings[:half].mean()
        direction = np.linalg.solve(x.T @ x + 1.0 * np.eye(x.shape[1]), x.T @ y)
    first, second = ((part[half:] - centre) @ direction for part in (exact, quick))
    return float(np.corrcoef(ranks(first), ranks(second))[0, 1])


def rows() -> list[Row]:
    from dialometer.neural.fast_encoding import QuickTextEncoder  # noqa: PLC0415
    from dialometer.neural.pretrained import PACKAGED, model_path  # noqa: PLC0415

    whole, single, ratings = texts()
    folder = Path(model_path(PACKAGED))
    quick = QuickTextEncoder(folder)
    found: list[Row] = []
    for name, some, floor in (("dialogues", whole[:N_DIALOGUES], 1.6), ("short utterances", single, 1.9)):
        with tempfile.TemporaryDirectory() as place:
            work: dict[str, Any] = {"model": str(folder), "texts": some}
            (Path(place) / "texts.json").write_text(json.dumps(work))
            theirs = ask_peer("encode", Path(place), Path(sys.executable))
            exact = np.load(Path(place) / "encode.npy")
        quick.encode(some[:8])
        ours = best_of(3, lambda some=some: quick.encode(some))
        cosine = float((exact * quick.encode(some)).sum(axis=1).mean())
        found.append(
            row(
                f"encoding {len(some):,} {name} on a processor",
                "sentence-transformers encode",
                ours,
                theirs,
                floor,
                f"mean cosine {cosine:.3f}",
            )
        )
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "texts.json").write_text(json.dumps({"model": str(folder), "texts": whole}))
        ask_peer("encode", Path(place), Path(sys.executable))
        exact = np.load(Path(place) / "encode.npy").astype(np.float64)
    same = spearman_of(exact, quick.encode(whole).astype(np.float64), ratings)
    found[0]["note"] += f"; ranking of {len(whole) - len(whole) // 2} dialogues: Spearman {same:.3f}"
    if same < SPEARMAN:
        raise SystemExit(f"the ranking of dialogues differs: Spearman {same:.3f}, at least {SPEARMAN} is promised")
    return found


def main() -> int:
    """Print the table; 1 where a ratio lies below its floor."""
    return print_rows(rows())


if __name__ == "__main__":
    sys.exit(main())
