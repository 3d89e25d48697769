"""The whole of CMADE on noisy ratings: the encoder fine-tuned, stage 1 included, on some cells of ``bench.noise_map``.

ConvAI2's ratings are taken for the truth, a share of the training ratings is made wrong, and each recipe trains the packaged
encoder: on all pairs of raw ratings, by stages 2 and 3, by all three stages, and by all three with nothing dropped in the third.
Development and stopping ratings are true in the cells with experts and as noisy as the others in those without. Every split has
draws and a seed of its own.

``python -m bench.noise_map_trained FOLDER --split 0`` computes the cells of one split that are not there (a minute or two on a
GPU); without ``--split`` it prints the table of all that are: accuracy on test pairs three points or more apart at matched
length, in %, mean over splits, and differences with one standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench._sources import convai2
from bench.noise_map import SEED, NoiseCell
from dialometer.learned.cmade.fit import FitOptions
from dialometer.learned.cmade.materials import from_split
from dialometer.learned.cmade.stages import StageRun
from dialometer.learned.data.measures import accuracy, paired_difference
from dialometer.learned.data.pairs import numbered_gap_pairs
from dialometer.learned.data.rated import RatedDialogue
from dialometer.learned.data.splits import DataSplit, grouped_splits, rows_of
from dialometer.learned.experiments.noise import flip
from dialometer.learned.experiments.trained_rows import TRAINED, TrainedRows
from dialometer.neural.device import choose_device

N_SPLITS = 3
NAMES = ("pairwise", "2-3", "1-2-3", "1-2-nothing")
CELLS = (
    *(("uniform", 0.0, size, True) for size in (300, 1000)),
    *(("uniform", share, 1000, True) for share in (0.2, 0.4)),
    *((kind, 0.6, size, True) for size in (300, 1000) for kind in ("uniform", "J-shaped")),
    *((kind, 0.6, 1000, False) for kind in ("uniform", "J-shaped")),
)
"""Kind of noise, share of wrong ratings, training dialogues, and whether the development ratings are true."""


def measure(rated: Sequence[RatedDialogue], split: DataSplit, cell: NoiseCell, device: str) -> dict[str, float]:
    """The accuracy of each recipe in one cell, and the share that stage 3 drops."""
    rng = np.random.default_rng([SEED, cell.split, cell.size])
    kept = [split.train[int(n)] for n in rng.permutation(len(split.train))[: cell.size]]
    noisy = {row.id: row.rating for row in rated}
    parts = [kept] if cell.has_experts else [kept, [*split.development, *split.stopping]]
    for part in parts if cell.share else ():
        wrong, _ = flip(np.array([noisy[name] for name in part]), cell.share, cell.kind, rng)
        noisy |= dict(zip(part, wrong.tolist(), strict=True))
    seen = [replace(row, rating=noisy[row.id]) for row in rated]
    data = from_split(seen, replace(split, train=tuple(kept)))
    trained = TrainedRows(data, FitOptions(), StageRun(), choose_device(device), cell.split)
    test = rows_of(rated, split.test)
    pairs = numbered_gap_pairs(test, 3, 2)
    found: dict[str, float] = {}
    for row in TRAINED:
        if row.name in NAMES:
            scored = trained.score(row, [one.dialogue for one in test])
            found[row.name] = accuracy(scored.scores, pairs)
            if row.name == "1-2-3":
                found["dropped"] = float(scored.dropped or 0.0)
    return found


def compute(folder: Path, split: int, device: str) -> None:
    """The cells of one split, each kept as soon as it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"trained-{split}.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    rated = convai2()
    splits = grouped_splits(rated, N_SPLITS, seed=SEED)
    for given in CELLS:
        cell = NoiseCell(*given, split)  # type: ignore[arg-type]
        if str(cell) not in kept:
            kept[str(cell)] = measure(rated, splits[split], cell, device)
            path.write_text(json.dumps(kept), encoding="utf-8")
            print(cell, kept[str(cell)], flush=True)


def show(folder: Path) -> None:
    """The table of what is there."""
    found: dict[str, dict[str, float]] = {}
    for path in sorted(folder.glob("trained-*.json")):
        found |= json.loads(path.read_text(encoding="utf-8"))
    labels = {row.name: row.label for row in TRAINED}
    heads = ["noise", "share", "dialogues", "development ratings", *(labels[name] for name in NAMES)]
    heads += ["stages 2 + 3 − pairwise", "CMADE − pairwise", "dropped", "splits"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for kind, share, size, has_experts in CELLS:
        cells = [NoiseCell(kind, share, size, has_experts, split) for split in range(N_SPLITS)]  # type: ignore[arg-type]
        rows = [found[str(cell)] for cell in cells if str(cell) in found]
        if not rows:
            continue
        name, trusted = kind if share else "none", "true" if has_experts else "as noisy"
        line = [name, f"{share:.0%}", f"{size:,}", trusted]
        line += [f"{100 * np.mean([row[way] for row in rows]):.1f}" for way in NAMES]
        for way in NAMES[1:3]:
            apart = paired_difference([row[way] for row in rows], [row["pairwise"] for row in rows])
            line.append(f"{100 * apart.value:+.1f} ± {100 * float(apart.details['standard_error']):.1f}")
        line += [f"{np.mean([row['dropped'] for row in rows]):.0%}", str(len(rows))]
        print("| " + " | ".join(line) + " |")


def main() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--split", type=int)
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    if given.split is None:
        show(given.folder)
    else:
        compute(given.folder, given.split, given.device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
