"""Beside ``dialometer learn evaluate``: does the best recipe carry over to another domain, and to dialogues that decided nothing?

``python scripts/evaluator_checks.py transfer`` trains on ConvAI2 and asks which of two chats with movie recommenders left its
user satisfied (CRSArena-Dial). ``python scripts/evaluator_checks.py halves FOLDER`` reads the scores that
``learn evaluate --out FOLDER`` wrote and measures them on pairs within each half of the groups: only the first half was looked
at while the recipe was made. ``python scripts/evaluator_checks.py quick EVALUATOR`` scores ConvAI2 dialogues with a trained
evaluator in single precision and in 8 bits.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from dialometer.learned.data.measures import accuracy, paired_difference
from dialometer.learned.data.pairs import NumberedPairs, numbered_gap_pairs
from dialometer.learned.data.rated import RatedDialogue, read_rated
from dialometer.learned.data.splits import groups_of, read_splits, rows_of
from dialometer.learned.evaluators import load_evaluator
from dialometer.learned.experiments.plain_rows import gaussian_rows, plain_rows
from dialometer.neural.work import QUIET
from dialometer.readers import read_dialogues

DATA = Path(os.environ.get("DIALOMETER_DATA", "data"))
_HALVES_SEED = 12345


def transfer() -> None:
    """Accuracy on pairs of a satisfied and a frustrated user, and on votes of users who talked with two systems."""
    rated = read_rated(DATA / "convai2")
    chats = list(read_dialogues(DATA / "crs_arena" / "crs_arena_dial_open.json.gz"))
    test = [RatedDialogue(chat, 3.0, None, "crs_arena", None) for chat in chats]
    feelings = np.array([chat.metadata["sentiment"] for chat in chats])
    good, bad = np.flatnonzero(feelings == "satisfied"), np.flatnonzero(feelings == "frustrated")
    felt = NumberedPairs(np.repeat(good, len(bad)), np.tile(bad, len(good)))
    voted = _votes({chat.id: number for number, chat in enumerate(chats)})
    print(f"{len(chats)} chats, {len(felt)} pairs by satisfaction, {len(voted)} by votes")
    every = [*rated, *test]
    for one in (*plain_rows(every, QUIET), *gaussian_rows(every, QUIET)):
        if one.row.name in ("best-weighted", "best-lowest", "best-random"):
            continue
        scores = one.score(rated, test)
        print(f"{one.row.label:34} satisfied {accuracy(scores, felt):.1%}  votes {accuracy(scores, voted):.1%}")


def _votes(place: dict[str, int]) -> NumberedPairs:
    better, worse = [], []
    with (DATA / "crs_arena" / "votes_open.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            names = {system: f"{system}_{row['user_id']}" for system in (row["crs1"], row["crs2"])}
            if len(names) == 2 and row["vote"] in names and all(name in place for name in names.values()):
                won = names.pop(row["vote"])
                better.append(place[won])
                worse.append(place[names.popitem()[1]])
    return NumberedPairs(np.array(better, dtype=np.int64), np.array(worse, dtype=np.int64))


def halves(folder: Path, first: str = "best", second: str = "tfidf-ridge") -> None:
    """The difference of two rows on pairs within each half of the groups."""
    rated = read_rated(DATA / "convai2")
    half = _half_of_groups(rated)
    splits = read_splits(folder / "grouped-splits.json", rated)
    scores = {}
    for line in (folder / "grouped.jsonl").read_text(encoding="utf-8").splitlines()[1:]:
        record = json.loads(line)
        scores[record["split"], record["row"]] = np.array(record["scores"])
    for number, name in enumerate(("looked at", "not looked at")):
        found: dict[str, list[float]] = {first: [], second: []}
        for split in splits:
            test = rows_of(rated, split.test)
            inside = [n for n, one in enumerate(test) if half[one.id] == number]
            pairs = numbered_gap_pairs([test[n] for n in inside], 3, 2)
            for row, values in found.items():
                values.append(accuracy(scores[split.name, row][inside], pairs))
        apart = paired_difference(found[first], found[second])
        error = apart.details["standard_error"]
        means = ", ".join(f"{row} {np.mean(values):.1%}" for row, values in found.items())
        print(f"half {name}: {means}, difference {100 * apart.value:+.1f} ± {100 * error:.1f}")


def _half_of_groups(rated: list[RatedDialogue]) -> dict[str, int]:
    groups = groups_of(rated)
    rng = np.random.default_rng(_HALVES_SEED)
    half: dict[str, int] = {}
    for source in sorted({one.source for one in rated}):
        names = sorted({group for one, group in zip(rated, groups, strict=True) if one.source == source})
        for place, number in enumerate(rng.permutation(len(names))):
            half[names[number]] = place % 2
    return {one.id: half[group] for one, group in zip(rated, groups, strict=True)}


def quick(folder: Path, n: int = 250) -> None:
    """Whether 8 bits keep the order of dialogues, and what they cost."""
    rated = read_rated(DATA / "convai2")
    some = [rated[place].dialogue for place in np.random.default_rng(1).permutation(len(rated))[:n]]
    exact = load_evaluator(folder, "cpu")
    scores, seconds = [], []
    for evaluator in (exact, exact.in_eight_bits()):
        begin = time.process_time()
        scores.append(evaluator.score(some).values)
        seconds.append(time.process_time() - begin)
    ranks = [np.argsort(np.argsort(one)) for one in scores]
    same = float(np.corrcoef(ranks[0], ranks[1])[0, 1])
    print(
        f"{n} dialogues: rank correlation {same:.3f}, processor time {seconds[0]:.1f} s and {seconds[1]:.1f} s in 8 bits"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["transfer"]:
        transfer()
    elif sys.argv[1:2] == ["halves"] and len(sys.argv) == 3:
        halves(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["quick"] and len(sys.argv) == 3:
        quick(Path(sys.argv[2]))
    else:
        print(__doc__)
