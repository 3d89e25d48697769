"""The best recipe on many dialogues: does the approximation keep its accuracy, and what do 100,000 dialogues cost?

``python -m bench.large_evaluator accuracy FOLDER`` compares the exact process and the sentence encoder with what takes their place
above 6,000 dialogues: 2,000 inducing dialogues, and vectors of words fitted to the encoder. On 6,000 self-dialogues with planted
faults and made-up ratings (``bench/_sources.py``; the same settings for all, tested on 2,000 dialogues of other texts), and on
grouped splits of ConvAI2's real ratings, of which 600 are inducing. ``train 100000 --out FOLDER`` trains on that many and prints the
seconds of each part; ``encode 2000`` says what the encoder would cost. ``write 1000000 FILE`` writes dialogues, ``score FILE EVALUATOR
OUT --engine ray`` scores them, and goes on where it was when it is started again after an end; ``compare`` compares two such files.
Seconds are of the clock and of the processor: on a shared machine only the latter say what the work costs.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np

from bench._sources import N_TURNS, convai2, each_planted, planted, self_dialogues
from dialometer.learned.data.measures import accuracy, paired_difference
from dialometer.learned.data.pairs import numbered_gap_pairs
from dialometer.learned.data.rated import RatedDialogue
from dialometer.learned.data.splits import grouped_splits, rows_of
from dialometer.learned.gaussian import training
from dialometer.learned.gaussian.features import FeatureTable, describe, learn_word_vectors
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
from dialometer.learned.score_file import DialogueSource, score_file
from dialometer.neural.engines import LOCAL, Engine, InProcesses, OnRay
from dialometer.neural.fast_encoding import packaged_vectors
from dialometer.neural.work import Work, default_cache
from dialometer.readers import read_dialogues

EXACT, BY_WORDS, INDUCING, INDUCING_WORDS, WITHOUT = (
    "exact",
    "exact, meaning by words",
    "inducing",
    "inducing, meaning by words",
    "inducing, without meaning",
)
WAYS = (EXACT, BY_WORDS, INDUCING, INDUCING_WORDS, WITHOUT)
N_LARGE, N_TEST, N_DRAWS, N_SPLITS = 6000, 2000, 5, 10
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


class Ways:
    """Feature tables of training and test dialogues with meaning by the encoder, and by words fitted to it on the training part."""

    def __init__(self, train: Sequence[RatedDialogue], test: Sequence[RatedDialogue]) -> None:
        work = Work(device="cpu", cache=default_cache())
        dialogues = [[row.dialogue for row in part] for part in (train, test)]
        words = learn_word_vectors(dialogues[0], work)
        self.encoded = [describe(part, work) for part in dialogues]
        self.by_words = [describe(part, word_vectors=words) for part in dialogues]

    def of(self, way: str) -> tuple[FeatureTable, FeatureTable, tuple[Aspect, ...]]:
        """Tables of one way, and the aspects that are looked at."""
        train, test = self.by_words if way in (BY_WORDS, INDUCING_WORDS) else self.encoded
        return train, test, ASPECTS[:2] if way == WITHOUT else ASPECTS


def large_draw(number: int) -> dict[str, float]:
    """One draw of 6,000 dialogues to train on and 2,000 others, of texts that training has not seen."""
    part = len(self_dialogues()) * 3 // 4
    train, test = planted(N_LARGE, SEED + number, 0, part), planted(N_TEST, SEED + 100 + number, part)
    ways, settings = Ways(train, test), KernelSettings()
    ratings, users = np.array([row.rating for row in train]), [str(row.user) for row in train]
    noise, pairs = np.full(len(train), settings.noise), numbered_gap_pairs(test, 3)
    found = {}
    for way in WAYS:
        own, other, aspects = ways.of(way)
        describer, rng = fit_describer(own, aspects), np.random.default_rng(SEED)
        known, unseen = describer(own), describer(other)
        if way in (EXACT, BY_WORDS):
            effects = settings.effect * effect_kernel(users)
            posterior = fit_process(likeness(known, known).kernel(settings), ratings, noise, effects)
        else:
            inducing = np.sort(rng.choice(len(train), training.N_INDUCING, replace=False))
            process = InducingProcess(known, inducing, settings, ratings, noise, users, folds_of(users, rng))
            posterior, known = process.posterior(), process.known
        found[way] = accuracy(posterior.predict(likeness(unseen, known).kernel(settings)), pairs)
    return found


def real_split(number: int) -> dict[str, float]:
    """One grouped split of ConvAI2: pairs three points or more apart at matched length."""
    rated = convai2()
    test = rows_of(rated, grouped_splits(rated, N_SPLITS)[number].test)
    out = {row.id for row in test}
    train = [row for row in rated if row.id not in out]
    ways = Ways(train, test)
    found = {}
    for way in WAYS:
        own, other, aspects = ways.of(way)
        with nullcontext() if way in (EXACT, BY_WORDS) else as_a_large_set():
            fitted = fit_gaussian(train, table=own, aspects=aspects)
        found[way] = accuracy(fitted.evaluator.score_table(other).values, numbered_gap_pairs(test, 3, 2))
    return found


PROBLEMS = {
    "6,000 self-dialogues with faults": (large_draw, N_DRAWS),
    "ConvAI2, grouped splits": (real_split, N_SPLITS),
}


def run_accuracy(folder: Path, only: str) -> None:
    """Computes what is not there yet (or ``only`` one of them), then prints the tables; intervals are by t over draws or splits."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[dict[str, float]]] = {}
    for name, (measure, n) in PROBLEMS.items():
        for number in range(n):
            path = folder / f"{measure.__name__}-{number}.json"
            if not path.is_file() and only in ("", path.stem):
                path.write_text(json.dumps(measure(number)), encoding="utf-8")
            if path.is_file():
                found.setdefault(name, []).append(json.loads(path.read_text(encoding="utf-8")))
    if only:
        return
    print("| trained on | " + " | ".join(WAYS) + " |\n" + "|---" * (len(WAYS) + 1) + "|")
    for name, rows in found.items():
        print(f"| {name} | " + " | ".join(f"{100 * np.mean([row[way] for row in rows]):.1f}" for way in WAYS) + " |")
    print("\n| less the exact process with the encoder | " + " | ".join(WAYS[1:]) + " |\n" + "|---" * len(WAYS) + "|")
    for name, rows in found.items():
        exact = [row[EXACT] for row in rows]
        apart = [paired_difference([row[way] for row in rows], exact) for way in WAYS[1:]]
        cells = (f"{100 * one.value:+.2f} ({100 * one.low:+.2f} to {100 * one.high:+.2f})" for one in apart)
        print(f"| {name} | " + " | ".join(cells) + " |")


def train_many(sizes: Sequence[int], aspects: Sequence[Aspect], out: Path | None) -> None:
    """Seconds of a training from rated dialogues in memory to the saved evaluator, and the most memory it took."""
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
            f"{1000 * cpu / size:.2f} ms a dialogue; {most_memory_mb():,.0f} MB at most; "
            f"{n_cores()} cores, load {os.getloadavg()[0]:.0f}; cross-validated accuracy {fitted.accuracy:.1%}",
            flush=True,
        )


def n_cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0))


def most_memory_mb() -> float:
    """The most that this process held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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


def write_many(n: int, path: Path) -> None:
    """A file of so many dialogues, which none of the evaluators was trained on."""
    with path.open("w", encoding="utf-8") as file:
        for row in each_planted(n, SEED + 1):
            turns = [{"speaker": turn.speaker, "text": turn.text} for turn in row.dialogue.turns]
            file.write(json.dumps({"id": row.id, "turns": turns}) + "\n")


def score_many(path: Path, evaluator: Path, out: Path, engine: str, n_workers: int) -> None:
    """Scores a file as ``dialometer learn score`` does, and says what that took; run again, it goes on where it was ended."""
    begin = time.perf_counter(), sum(os.times()[:4])
    source = DialogueSource.of(path, lambda: read_dialogues(path))
    read_s = time.perf_counter() - begin[0]
    where: Engine = LOCAL
    if engine != "local":
        where = InProcesses(n_workers) if engine == "processes" else OnRay("", n_workers)
    try:
        scored = score_file(evaluator, source, out=out, device="cpu", engine=where)
    finally:
        if isinstance(where, InProcesses | OnRay):
            where.close()
    cpu = sum(os.times()[:4]) - begin[1]
    n = scored.n - scored.n_known
    print(
        f"{n:,} dialogues ({scored.n_known:,} had been scored before), {engine}, {n_workers} workers: "
        f"{time.perf_counter() - begin[0]:.0f} s by the clock ({read_s:.0f} to check the file), {cpu:.0f} s of processor time, "
        f"{1000 * cpu / max(1, n):.2f} ms a dialogue, {most_memory_mb():,.0f} MB at most in the main process; "
        f"{n_cores()} cores, load {os.getloadavg()[0]:.0f}",
        flush=True,
    )


def compare(first: Path, second: Path) -> None:
    """The largest difference between the scores of two files."""
    tables = [list(csv.reader(path.open(encoding="utf-8", newline=""))) for path in (first, second)]
    n = min(len(table) for table in tables)
    same = all(a[0] == b[0] for a, b in zip(*(table[:n] for table in tables), strict=True))
    apart = max(abs(float(a[1]) - float(b[1])) for a, b in zip(*(table[1:n] for table in tables), strict=True))
    print(f"{n - 1:,} dialogues, {'the same' if same else 'OTHER'} ids: largest difference of scores {apart:.1e}")


def main() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("accuracy")
    measuring.add_argument("folder", type=Path)
    measuring.add_argument("--only", default="", help="compute one of them, such as real_split-3")
    learning = commands.add_parser("train")
    learning.add_argument("sizes", type=int, nargs="+")
    learning.add_argument("--without-meaning", action="store_true")
    learning.add_argument("--out", type=Path, help="keep the evaluators here")
    learning.add_argument("--drawn", type=int, default=training.MAX_DIALOGUES, help="read so many by the encoder")
    commands.add_parser("encode").add_argument("n", type=int)
    writing = commands.add_parser("write")
    writing.add_argument("n", type=int)
    writing.add_argument("file", type=Path)
    scoring = commands.add_parser("score")
    for name in ("file", "evaluator", "out"):
        scoring.add_argument(name, type=Path)
    scoring.add_argument("--engine", default="processes", choices=("local", "processes", "ray"))
    scoring.add_argument("--workers", type=int, default=2)
    comparing = commands.add_parser("compare")
    for name in ("first", "second"):
        comparing.add_argument(name, type=Path)
    given = parser.parse_args()
    if given.command == "accuracy":
        run_accuracy(given.folder, given.only)
    elif given.command == "train":
        training.MAX_DIALOGUES = given.drawn
        train_many(given.sizes, ASPECTS[:2] if given.without_meaning else ASPECTS, given.out)
    elif given.command == "encode":
        encode_some(given.n)
    elif given.command == "write":
        write_many(given.n, given.file)
    elif given.command == "score":
        score_many(given.file, given.evaluator, given.out, given.engine, given.workers)
    else:
        compare(given.first, given.second)
    return 0


if __name__ == "__main__":
    sys.exit(main())
