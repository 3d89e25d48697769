"""Response generators: throughput beside a plain PyTorch loop in the same run, and the training of all models.

``python -m bench.generators`` measures on a made-up corpus, on a GPU where there is one. With ``--corpus FOLDER`` it measures
on a prepared corpus, and with ``--out FOLDER`` it trains the models instead, one after the other, and lets them answer the
test split; ``--table FOLDER`` prints the tables of ``docs/benchmarks/generators.md`` from that. It says how many minutes are left,
and the same command continues what was interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench._generator_decoding import N_CONTEXTS, answer_in_many_ways, judge
from bench._generator_topics import show_topics
from bench._generator_training import LEARNING_RATE, N_RESPONSES, show_table, train_one
from dialometer.cli.console import ProgressBar
from dialometer.generators.batches import examples_of
from dialometer.generators.corpus import Corpus, load_corpus
from dialometer.generators.generator import GENERATORS, Shape, build
from dialometer.generators.training import GeneratorTraining, TrainingProgress, losses, train
from dialometer.learned.evaluators import load_evaluator
from dialometer.neural.device import choose_device

MODELS = ("seq2seq", "hred", "thred", "transformer")
N_JUDGED = 300  # contexts, of each bot and way of decoding
N_REPORTS = 3  # of 50 steps each; the first holds the compilation and is left out
FLOOR = 1.0
PAUSE_S = 30.0
TINY = {"embedding": 32, "hidden": 64, "n_layers": 2, "n_topic_words": 10}


class _Enough(Exception):
    """Ends a measured training."""


def made_up_corpus(folder: Path) -> Corpus:
    """Dialogues of made-up words whose lengths differ as those of people do."""
    from dialometer.generators.preparing import Preparation, prepare_corpus  # noqa: PLC0415 - needs scikit-learn

    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), rng.integers(4, 8))) for _ in range(400)]
    source = folder / "dialogues.jsonl"
    with source.open("w", encoding="utf-8") as file:
        for number in range(600):
            lengths = np.clip(rng.lognormal(2.2, 0.7, 10), 1, 40).astype(int)
            known = words[number % 20 :: 20]  # a twentieth of the words belongs to each topic
            turns = [" ".join(rng.choice(known, n)) for n in lengths]
            file.write(json.dumps({"id": f"d{number}", "turns": turns}) + "\n")
    return prepare_corpus([source], folder / "corpus", Preparation(n_tokens=800, n_topics=5))


def our_rate(name: str, corpus: Corpus, sizes: dict[str, Any], n_reports: int, **settings: Any) -> float:
    """Target tokens a second of the real training, after the first portion."""
    rates: list[float] = []

    def hear(progress: TrainingProgress) -> None:
        if progress.validation_perplexity is None:
            rates.append(progress.tokens_per_s)
        if len(rates) == n_reports:
            raise _Enough

    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(_Enough):
        train(name, corpus, Path(folder), GeneratorTraining(n_epochs=100, **settings), sizes=sizes, report=hear)
    return statistics.median(rates[1:] or rates)


def plain_rate(name: str, corpus: Corpus, sizes: dict[str, Any], n_steps: int, *, size: int, device: str) -> float:
    """The loop of a tutorial: shuffled batches, single precision, no compilation, one thing after the other."""
    where = torch.device(choose_device(device))
    torch.manual_seed(0)
    shape = Shape.from_json({**GENERATORS.get(name).default_shape, **sizes, "n_tokens": len(corpus.vocabulary)})
    model = build(name, shape, corpus.topics).to(where)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    split = corpus.split("train")
    loader = torch.utils.data.DataLoader(
        torch.from_numpy(split.examples),
        batch_size=size,
        shuffle=True,
        collate_fn=lambda rows: examples_of(split, torch.stack(rows).numpy(), shape.window),
    )
    n_tokens, began, step = 0, time.monotonic(), 0
    while step < n_steps:
        for batch in loader:
            step += 1
            moved = batch.to(where)
            loss = losses(model(moved), moved.targets)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            n_tokens += batch.n_targets
            if step == n_steps // 4:  # warm by now
                float(loss.detach())
                n_tokens, began = 0, time.monotonic()
            if step >= n_steps:
                break
    float(loss.detach())
    return n_tokens / (time.monotonic() - began)


def throughput(
    corpus: Corpus, sizes: dict[str, Any], *, size: int, device: str, n_reports: int, models: Sequence[str] = MODELS
) -> list[dict[str, Any]]:
    """Tokens a second of the plain loop, then with one ingredient after the other."""
    kind = choose_device(device)
    rows = []
    for name in models:
        common: dict[str, Any] = {"batch_size": size, "device": device}
        steps: dict[str, Any] = {"bucketed": {"is_mixed": False, "is_compiled": False}}
        if kind == "cuda":
            steps["and bf16"] = {"is_mixed": True, "is_compiled": False}
            steps["and compiled"] = {"is_mixed": True, "is_compiled": True}
        plain = plain_rate(name, corpus, sizes, 50 * n_reports, size=size, device=device)
        found = {"plain": plain}
        for label, change in steps.items():
            found[label] = our_rate(name, corpus, sizes, n_reports, **common, **change)
        rows.append({"model": name, **found, "ratio": max(list(found.values())[1:]) / plain})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def show_throughput(rows: list[dict[str, Any]]) -> None:
    columns = [key for key in rows[0] if key not in ("model", "ratio")]
    print(f"\n{'model':14}" + "".join(f"{column:>16}" for column in columns) + f"{'ratio':>8}   target tokens a second")
    for row in rows:
        print(f"{row['model']:14}" + "".join(f"{row[c]:16,.0f}" for c in columns) + f"{row['ratio']:7.1f}x")


def main() -> int:
    """On a made-up corpus, with tiny models; on a GPU with those of the documentation."""
    has_gpu = torch.cuda.is_available()
    with tempfile.TemporaryDirectory() as folder:
        corpus = made_up_corpus(Path(folder))
        sizes = {} if has_gpu else TINY
        rows = throughput(corpus, sizes, size=256 if has_gpu else 32, device="auto", n_reports=3 if has_gpu else 1)
    show_throughput(rows)
    return int(any(row["ratio"] < FLOOR for row in rows))


def train_all(trainings: Sequence[tuple[int, str]], sizes: dict[str, Any], given: argparse.Namespace) -> None:
    """One training after the other, with the minutes that all of them together still take."""
    is_one_seed = len({seed for seed, _ in trainings}) == 1
    corpus = load_corpus(given.corpus)
    with ProgressBar("steps", pause_s=PAUSE_S) as bar:
        for place, (seed, entry) in enumerate(trainings):

            def follow(progress: TrainingProgress, place: int = place, seed: int = seed, entry: str = entry) -> None:
                n_done = (place * progress.n_epochs + progress.epoch) * progress.n_steps + progress.step
                n_total = len(trainings) * progress.n_epochs * progress.n_steps
                what = f"Training {place + 1} of {len(trainings)}, {entry}, seed {seed}"
                bar.report(what, n_done, n_total, label="training")

            train_one(
                entry,
                corpus,
                given.out if is_one_seed else given.out / f"seed-{seed}",
                sizes,
                n_responses=given.responses,
                follow=follow,
                seed=seed,
                n_epochs=given.epochs,
                device=given.device,
                batch_size=given.size,
                learning_rate=given.rate,
                is_compiled=False if given.no_compile else None,
            )


def run() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--out", type=Path, help="train the models into this folder")
    parser.add_argument(
        "--models",
        default=",".join(MODELS),
        help="NAME, NAME:TURNS to read so many turns, NAME@WORDS with so many topic words, NAME+lstm+none for cells and attention",
    )
    parser.add_argument(
        "--seeds", default="0", help="train with each of these, into a folder each where there are several"
    )
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rate", type=float, default=LEARNING_RATE, help="highest learning rate")
    parser.add_argument("--size", type=int, default=1024, help="examples in a batch")
    parser.add_argument("--sizes", help="sizes of the models other than their own, such as embedding=64,hidden=128")
    parser.add_argument(
        "--responses", type=int, default=N_RESPONSES, help="of each trained model, a quarter with beams"
    )
    parser.add_argument("--contexts", type=int, default=N_CONTEXTS, help="answered in each way of --decoding")
    parser.add_argument("--reports", type=int, default=N_REPORTS)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--table", type=Path, help="only print the tables of what was trained into this folder")
    parser.add_argument("--topics", type=Path, help="only show what topic words do in the bots of this folder")
    parser.add_argument("--decoding", type=Path, help="only let the bots of this folder answer in many ways")
    parser.add_argument("--judge", type=Path, help="with --decoding: what this trained evaluator thinks of the answers")
    given = parser.parse_args()
    wanted = given.models.split(",")
    if given.table is not None:
        show_table(given.table)
    elif given.topics is not None:
        show_topics(given.topics, load_corpus(given.corpus), given.device)
    elif given.judge is not None:
        with ProgressBar(pause_s=PAUSE_S) as bar:
            evaluator = load_evaluator(given.judge, given.device)
            judge(given.decoding, evaluator, N_JUDGED, partial(bar.report, label="judging"))
    elif given.decoding is not None:
        with ProgressBar(pause_s=PAUSE_S) as bar:
            follow = partial(bar.report, label="answering")
            answer_in_many_ways(given.decoding, load_corpus(given.corpus), given.device, given.contexts, follow)
    elif given.corpus is None:
        return main()
    elif given.out is not None:
        seeds = [int(seed) for seed in given.seeds.split(",")]
        sizes = {
            name: int(size) for name, _, size in (one.partition("=") for one in (given.sizes or "").split(",")) if name
        }
        train_all(list(itertools.product(seeds, wanted)), sizes, given)
    else:
        common = {"size": given.size, "device": given.device, "n_reports": given.reports}
        show_throughput(throughput(load_corpus(given.corpus), {}, models=wanted, **common))
    return 0


if __name__ == "__main__":
    sys.exit(run())
