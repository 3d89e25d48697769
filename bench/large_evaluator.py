"""The best recipe on many dialogues: does the approximation keep its accuracy, and what do 100,000 dialogues cost?

``python -m bench.large_evaluator accuracy FOLDER`` compares the exact process with 2,000 inducing dialogues on 6,000
self-dialogues with planted faults and made-up ratings (``bench/_sources.py``; words and behaviour, the same settings for both,
tested on 2,000 dialogues of other texts), and on grouped splits of ConvAI2's real ratings, of which 600 are inducing, with and
without meaning, whose sentence encoder is most of the cost. ``python -m bench.large_evaluator train 10000 30000`` trains on
that many and prints the seconds of each part; ``encode 2000`` says what the sentence encoder adds to that. ``python -m
bench.large_evaluator score 20000 EVALUATOR --ray`` scores that many in this process and on Ray and compares the numbers.
Seconds are of the clock and of the processor: on a shared machine only the latter say what the work costs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np

from bench._sources import N_TURNS, convai2, planted, self_dialogues
from dialometer.learned.data.measures import accuracy, paired_difference
from dialometer.learned.data.pairs import numbered_gap_pairs
from dialometer.learned.data.splits import grouped_splits, rows_of
from dialometer.learned.evaluators import score_dialogues
from dialometer.learned.gaussian import training
from dialometer.learned.gaussian.features import describe
from dialometer.learned.gaussian.inducing import InducingProcess
from dialometer.learned.gaussian.kernel import (
    ASPECTS,
    Aspect,
    KernelSettings,
    effect_kernel,
    fit_describer,
    fit_process,
    likeness,
)
from dialometer.learned.gaussian.training import fit_gaussian, folds_of, save_gaussian
from dialometer.neural.engines import OnRay
from dialometer.neural.fast_encoding import packaged_vectors
from dialometer.neural.work import Work, default_cache

WAYS = ("exact", "inducing", "inducing, without meaning")
N_LARGE, N_TEST, N_DRAWS, N_SPLITS = 6000, 2000, 5, 3
N_REAL = 600
SEED = 22


@contextmanager
def as_a_large_set() -> Iterator[None]:
    """Within it, ConvAI2's dialogues are learned as more than 6,000 are, with fewer of everything in proportion."""
    kept = training.MAX_DIALOGUES, training.N_INDUCING, training.N_CHOOSING
    training.MAX_DIALOGUES, training.N_INDUCING, training.N_CHOOSING = 2 * N_REAL, N_REAL, N_REAL
    try:
        yield
    finally:
        training.MAX_DIALOGUES, training.N_INDUCING, training.N_CHOOSING = kept


def large_draw(number: int) -> dict[str, float]:
    """One draw of 6,000 dialogues to train on and 2,000 others, of texts that training has not seen."""
    part = len(self_dialogues()) * 3 // 4
    train, test = planted(N_LARGE, SEED + number, 0, part), planted(N_TEST, SEED + 100 + number, part)
    tables = [describe([row.dialogue for row in rated], has_meaning=False) for rated in (train, test)]
    describer, settings = fit_describer(tables[0], ("words", "behaviour")), KernelSettings()
    known, unseen = describer(tables[0]), describer(tables[1])
    ratings, users = np.array([row.rating for row in train]), [str(row.user) for row in train]
    noise, rng = np.full(len(train), settings.noise), np.random.default_rng(SEED)
    pairs = numbered_gap_pairs(test, 3)
    inducing = np.sort(rng.choice(len(train), training.N_INDUCING, replace=False))
    process = InducingProcess(known, inducing, settings, ratings, noise, users, folds_of(users, rng))
    few = process.posterior().predict(likeness(unseen, process.known).kernel(settings))
    whole = fit_process(likeness(known, known).kernel(settings), ratings, noise, settings.effect * effect_kernel(users))
    exact = whole.predict(likeness(unseen, known).kernel(settings))
    return {WAYS[0]: accuracy(exact, pairs), WAYS[1]: accuracy(few, pairs)}


def real_split(number: int) -> dict[str, float]:
    """One grouped split of ConvAI2: pairs three points or more apart at matched length."""
    work = Work(device="cpu", cache=default_cache())
    rated = convai2()
    test = rows_of(rated, grouped_splits(rated, N_SPLITS)[number].test)
    out = {row.id for row in test}
    train = [row for row in rated if row.id not in out]
    tables = [describe([row.dialogue for row in part], work) for part in (train, test)]
    found = {}
    for way in WAYS:
        aspects = ASPECTS if way != WAYS[2] else ASPECTS[:2]
        with nullcontext() if way == WAYS[0] else as_a_large_set():
            fitted = fit_gaussian(train, table=tables[0], aspects=aspects)
        found[way] = accuracy(fitted.evaluator.score_table(tables[1]).values, numbered_gap_pairs(test, 3, 2))
    return found


PROBLEMS = {
    "6,000 self-dialogues with faults": (large_draw, N_DRAWS),
    "ConvAI2, grouped splits": (real_split, N_SPLITS),
}


def run_accuracy(folder: Path) -> None:
    """Computes what is not there yet, then prints the table; intervals are of the paired differences, by t over draws or splits."""
    folder.mkdir(parents=True, exist_ok=True)
    print("| trained on | " + " | ".join(WAYS) + " | inducing − exact | without meaning − exact |\n" + "|---" * 6 + "|")
    for name, (measure, n) in PROBLEMS.items():
        found = []
        for number in range(n):
            path = folder / f"{measure.__name__}-{number}.json"
            if not path.is_file():
                path.write_text(json.dumps(measure(number)), encoding="utf-8")
            found.append(json.loads(path.read_text(encoding="utf-8")))
        by_way = {way: [one[way] for one in found] for way in WAYS if way in found[0]}
        apart = [paired_difference(values, by_way[WAYS[0]]) for way, values in by_way.items() if way != WAYS[0]]
        cells = [f"{100 * np.mean(values):.1f}" for values in by_way.values()] + [""] * (3 - len(by_way))
        cells += [f"{100 * one.value:+.2f} ({100 * one.low:+.2f} to {100 * one.high:+.2f})" for one in apart]
        print(f"| {name} | " + " | ".join(cells) + " |" + " |" * (2 - len(apart)), flush=True)


def train_many(sizes: Sequence[int], aspects: Sequence[Aspect], out: Path | None) -> None:
    """Seconds of a training from rated dialogues in memory to the saved evaluator."""
    for size in sizes:
        rated = planted(size, SEED)
        steps: dict[str, list[float]] = {}

        def report(what: str, n_done: int, n_total: int, steps: dict[str, list[float]] = steps) -> None:  # noqa: ARG001
            now = [time.perf_counter(), time.process_time()]
            steps.setdefault(what, [*now, *now])[2:] = now

        begin = time.perf_counter(), time.process_time()
        fitted = fit_gaussian(rated, aspects=aspects, work=Work(device="cpu", report=report))
        with tempfile.TemporaryDirectory() as place:
            save_gaussian((out or Path(place)) / str(size), fitted)
        clock, cpu = time.perf_counter() - begin[0], time.process_time() - begin[1]
        parts = ", ".join(f"{what.lower()} {spent[3] - spent[1]:.0f}" for what, spent in steps.items())
        print(
            f"{size:,} dialogues: {clock:.0f} s by the clock, {cpu:.0f} s of processor time ({parts}); "
            f"{1000 * cpu / size:.2f} ms a dialogue; load {os.getloadavg()[0]:.0f}; cross-validated accuracy {fitted.accuracy:.1%}",
            flush=True,
        )


def encode_some(n: int) -> None:
    """What the sentence encoder costs, and how many distinct utterances a dialogue has."""
    talks = self_dialogues()
    texts = list(dict.fromkeys(text for talk in talks for text in talk[:N_TURNS]))
    some = [texts[int(k)] for k in np.random.default_rng(SEED).permutation(len(texts))[:n]]
    packaged_vectors(some[:64])
    begin = time.process_time()
    packaged_vectors(some)
    cost_s = (time.process_time() - begin) / n
    share = len(texts) / len(talks)
    print(
        f"{1000 * cost_s:.2f} ms of processor time an utterance; {share:.1f} distinct ones a dialogue, so "
        f"{100_000 * share * cost_s / 2 / 60:.0f} minutes of two cores for 100,000 dialogues; load {os.getloadavg()[0]:.0f}"
    )


def score_many(n: int, evaluator: Path, *, has_ray: bool) -> None:
    """Seconds of scoring, and whether Ray gives the same numbers."""
    dialogues = [row.dialogue for row in planted(n, SEED + 1)]
    begin = time.perf_counter(), time.process_time()
    scores = score_dialogues(evaluator, dialogues)
    cpu = time.process_time() - begin[1]
    print(
        f"{n:,} dialogues: {time.perf_counter() - begin[0]:.0f} s by the clock, {cpu:.0f} s of processor time, "
        f"{1000 * cpu / n:.2f} ms a dialogue, {1e6 * cpu / n / 2 / 60:.0f} minutes of two cores for 1,000,000; "
        f"load {os.getloadavg()[0]:.0f}",
        flush=True,
    )
    if has_ray:
        with OnRay(n_workers=2) as engine:
            again = score_dialogues(evaluator, dialogues, engine=engine)
        apart = float(np.abs(again.values - scores.values).max())
        print(f"On Ray with two workers: largest difference of scores {apart:.1e}", flush=True)


def main() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("accuracy")
    measuring.add_argument("folder", type=Path)
    learning = commands.add_parser("train")
    learning.add_argument("sizes", type=int, nargs="+")
    learning.add_argument("--meaning", action="store_true", help="with sentence vectors, which take most of the time")
    learning.add_argument("--out", type=Path, help="keep the evaluators here")
    commands.add_parser("encode").add_argument("n", type=int)
    scoring = commands.add_parser("score")
    scoring.add_argument("n", type=int)
    scoring.add_argument("evaluator", type=Path)
    scoring.add_argument("--ray", action="store_true")
    given = parser.parse_args()
    if given.command == "accuracy":
        run_accuracy(given.folder)
    elif given.command == "train":
        train_many(given.sizes, ASPECTS if given.meaning else ASPECTS[:2], given.out)
    elif given.command == "encode":
        encode_some(given.n)
    else:
        score_many(given.n, given.evaluator, has_ray=given.ray)
    return 0


if __name__ == "__main__":
    sys.exit(main())
