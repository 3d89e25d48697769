"""Under which noise would CMADE's stages win? Real dialogues, ratings made wrong on purpose: kind × share × number of dialogues.

ConvAI2's ratings are taken for the truth and a share of the training ratings is made wrong: changed to any other (uniform) or
drawn from a J, as careless users rate. Test dialogues keep their ratings. Development dialogues, by whose pairs ratings are
valued, keep theirs too in one table, which is the paper's situation with its experts, and have as many wrong ones in the other.
What is compared learns from the same features (behaviour and meaning) by the same ridge regression, so that only the treatment of
ratings differs: raw; smoothed over 50 neighbours (stage 2); negative Shapley values dropped (stage 3); as many dropped at
random; the development ratings simply added to the training ratings, which is what else they could be used for; and the
wrong ones dropped, which only a simulation can. The Gaussian process of the best recipe, which drops nothing, stands beside
them. The encoder is not fine-tuned here, so stage 1 plays no part.

``python -m bench.noise_map FOLDER`` computes what is not in the folder and prints the map: accuracy on test pairs three points
or more apart at matched length, mean over splits, in %.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench._sources import convai2
from dialometer.learned.cmade.neighbours import knn_smooth, standardise
from dialometer.learned.cmade.shapley import knn_shapley
from dialometer.learned.data.measures import accuracy
from dialometer.learned.data.pairs import NumberedPairs, numbered_gap_pairs
from dialometer.learned.data.splits import grouped_splits
from dialometer.learned.experiments.noise import KINDS, Kind, flip, ridge_scores
from dialometer.learned.gaussian.features import describe
from dialometer.learned.gaussian.kernel import KernelSettings, fit_describer, fit_process, likeness, quality_space
from dialometer.neural.work import Work, default_cache

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SHARES = (0.0, 0.2, 0.4, 0.6)
SIZES = (300, 1000)
N_SPLITS = 3
K = 50
STRENGTHS = (30.0, 100.0, 300.0, 1000.0)
RAW, SMOOTHED, VALUED, RANDOM, ADDED, ORACLE, PROCESS = (
    "raw ratings",
    "smoothed (stage 2)",
    "negative value dropped (stage 3)",
    "as many at random",
    "raw + development ratings",
    "wrong ones dropped",
    "Gaussian process",
)
SEED = 22


@dataclass(frozen=True)
class NoiseCell:
    """Which ratings are wrong, how many there are, and whether the development ratings are true."""

    kind: Kind
    share: float
    size: int
    has_experts: bool
    split: int


def cells() -> list[NoiseCell]:
    """All cells; without noise the kinds are one."""
    kinds: list[tuple[Kind, float]] = [(KINDS[0], 0.0)]
    kinds += [(kind, share) for kind in KINDS for share in SHARES if share]
    every = itertools.product(range(N_SPLITS), (True, False), SIZES, kinds)
    return [NoiseCell(*kind, size, has_experts, split) for split, has_experts, size, kind in every]


class NoiseMap:
    """The dialogues, their features and splits."""

    def __init__(self) -> None:
        self.rated = convai2()
        dialogues = [row.dialogue for row in self.rated]
        self.table = describe(dialogues, Work(device="cpu", cache=default_cache()))
        self.ratings = np.array([row.rating for row in self.rated])
        self.features = standardise(quality_space(self.table))
        self.splits = grouped_splits(self.rated, N_SPLITS, seed=SEED)
        self.place = {row.id: number for number, row in enumerate(self.rated)}

    def measure(self, cell: NoiseCell) -> dict[str, float]:
        """The accuracy of each way to learn from the noisy ratings, and the share that stage 3 drops."""
        split = self.splits[cell.split]
        rng = np.random.default_rng([SEED, cell.split, cell.size])
        train = self._numbers(split.train)[rng.permutation(len(split.train))[: cell.size]]
        development, test = self._numbers((*split.development, *split.stopping)), self._numbers(split.test)
        observed, is_wrong = self.ratings[train], np.zeros(len(train), dtype=bool)
        if cell.share:
            observed, is_wrong = flip(observed, cell.share, cell.kind, rng)
        features, trusted = self.features, self.ratings[development]
        if cell.share and not cell.has_experts:
            trusted, _ = flip(trusted, cell.share, cell.kind, rng)
        points, judged = features[train], self._pairs(development, trusted)
        values = knn_shapley(points, observed, features[development], np.column_stack([judged.better, judged.worse]), K)
        is_kept = values >= 0
        ways = {
            RAW: (observed, np.ones(len(train), dtype=bool)),
            SMOOTHED: (knn_smooth(points, observed, K), np.ones(len(train), dtype=bool)),
            VALUED: (observed, is_kept),
            RANDOM: (observed, rng.permutation(is_kept)),
            ORACLE: (observed, ~is_wrong),
        }
        pairs = self._pairs(test, self.ratings[test])
        found: dict[str, float] = {}
        strengths: dict[str, float] = {}
        for name, (ratings, kept) in ways.items():
            tried = [
                accuracy(ridge_scores(points[kept], ratings[kept], features[development], strength), judged)
                for strength in STRENGTHS
            ]
            strengths[name] = STRENGTHS[int(np.argmax(tried))]
            found[name] = accuracy(ridge_scores(points[kept], ratings[kept], features[test], strengths[name]), pairs)
        both, known = np.concatenate([train, development]), np.concatenate([observed, trusted])
        found[ADDED] = accuracy(ridge_scores(features[both], known, features[test], strengths[RAW]), pairs)
        if cell.has_experts:
            found[PROCESS] = accuracy(self._process(train, observed, test), pairs)
        return found | {"dropped": float(1 - is_kept.mean())}

    def _process(self, train: Ints, observed: Floats, test: Ints) -> Floats:
        describer, settings = fit_describer(self.table.rows(train)), KernelSettings()
        known = describer(self.table.rows(train))
        noise = np.full(len(train), settings.noise)
        posterior = fit_process(likeness(known, known).kernel(settings), observed, noise)
        return posterior.predict(likeness(describer(self.table.rows(test)), known).kernel(settings))

    def _numbers(self, ids: Sequence[str]) -> Ints:
        return np.array([self.place[name] for name in ids], dtype=np.int64)

    def _pairs(self, numbers: Ints, ratings: Floats) -> NumberedPairs:
        rated = [replace(self.rated[int(n)], rating=float(own)) for n, own in zip(numbers, ratings, strict=True)]
        return numbered_gap_pairs(rated, 3, 2)


def compute(path: Path) -> dict[str, dict[str, float]]:
    """All cells, kept as soon as each is there."""
    kept: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    left = [cell for cell in cells() if str(cell) not in kept]
    noise_map = NoiseMap() if left else None
    for cell in left:
        assert noise_map is not None
        kept[str(cell)] = noise_map.measure(cell)
        path.write_text(json.dumps(kept), encoding="utf-8")
    return kept


def show(kept: dict[str, dict[str, float]]) -> None:
    """Two tables: with true development ratings, and with as many wrong ones among them as in training."""
    for has_experts in (True, False):
        ways = [RAW, SMOOTHED, VALUED, RANDOM, ADDED, ORACLE] + [PROCESS] * has_experts
        print(f"\n{'True development ratings' if has_experts else 'Development ratings as noisy'}:\n")
        print("| noise | share | dialogues | " + " | ".join(ways) + " | stage 3 − raw | dropped |")
        print("|---" * (len(ways) + 5) + "|")
        for cell in cells()[: len(cells()) // N_SPLITS // 2]:
            names = [str(replace(cell, split=n, has_experts=has_experts)) for n in range(N_SPLITS)]
            found = [kept[name] for name in names if name in kept]
            values = [f"{100 * np.mean([one[way] for one in found]):.1f}" for way in ways]
            apart = 100 * np.array([one[VALUED] - one[RAW] for one in found])
            gain = f"{apart.mean():+.1f} ± {apart.std(ddof=1) / np.sqrt(len(found)):.1f}"
            dropped = f"{100 * np.mean([one['dropped'] for one in found]):.0f}%"
            name = cell.kind if cell.share else "none"
            print(f"| {name} | {cell.share:.0%} | {cell.size:,} | " + " | ".join([*values, gain, dropped]) + " |")


def main() -> int:
    """Computes once, prints always."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    show(compute(folder / "noise-map.json"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
