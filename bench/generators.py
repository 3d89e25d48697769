"""Response generators: throughput beside a plain PyTorch loop in the same run, and the training of all models.

``python -m bench.generators`` measures on a made-up corpus, on a GPU where there is one. With ``--corpus FOLDER`` it measures
on a prepared corpus, and with ``--out FOLDER`` it also trains every model, all at the same time on one device, speaks for
the test split and prints the table that stands in ``docs/explanation/generators.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dialometer.generators import measures
from dialometer.generators.batches import examples_of
from dialometer.generators.bot import Bot
from dialometer.generators.corpus import Corpus, load_corpus
from dialometer.generators.decoding import Decoding
from dialometer.generators.device import choose_device
from dialometer.generators.generator import GENERATORS, Shape, build
from dialometer.generators.loss import losses
from dialometer.generators.sample import Sample, take_sample
from dialometer.generators.settings import Progress, Settings
from dialometer.generators.train import train

MODELS = ("seq2seq", "hred", "thred", "transformer")
N_REPORTS = 4  # of 50 steps each; the first holds the compilation and is left out
FLOOR = 1.0
N_RESPONSES = 4000
LEARNING_RATE = 1.5e-3
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

    def hear(progress: Progress) -> None:
        if progress.validation_perplexity is None:
            rates.append(progress.tokens_per_s)
        if len(rates) == n_reports:
            raise _Enough

    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(_Enough):
        train(name, corpus, Path(folder), Settings(n_epochs=100, **settings), sizes=sizes, report=hear)
    return statistics.median(rates[1:] or rates)


def plain_rate(name: str, corpus: Corpus, sizes: dict[str, Any], n_steps: int, *, size: int, device: str) -> float:
    """The loop of a tutorial: shuffled batches, single precision, no compilation, one thing after the other."""
    where = choose_device(device)
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
    kind = choose_device(device).type
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


def train_all(
    corpus_folder: Path, out: Path, wanted: list[str], epochs: int, minutes: float, device: str, size: int
) -> None:
    """Every model in a process of its own, all on one device: none of them fills it alone."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 2) // len(wanted)))}
    running = []
    for entry in wanted:
        command = [sys.executable, "-m", "bench.generators", "--corpus", str(corpus_folder), "--out", str(out)]
        command += ["--one", entry, "--epochs", str(epochs), "--minutes", str(minutes), "--device", device]
        command += ["--size", str(size)]
        running.append(subprocess.Popen(command, env=environment))
    failed = [entry for entry, process in zip(wanted, running, strict=True) if process.wait()]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def train_one(entry: str, corpus: Corpus, out: Path, epochs: int, minutes: float, device: str, size: int) -> None:
    """``NAME`` or ``NAME:turns``; trains, then speaks for the test split."""
    name, _, turns = entry.partition(":")
    sizes = {"n_turns": int(turns)} if turns else {}
    folder = out / entry.replace(":", "-")

    def hear(progress: Progress) -> None:
        if progress.validation_perplexity is not None:
            print(
                f"{entry:14} epoch {progress.epoch + 1:2}  loss {progress.loss:.3f}  validation perplexity "
                f"{progress.validation_perplexity:7.2f}  {progress.tokens_per_s:9,.0f} tokens/s",
                flush=True,
            )

    settings = Settings(
        n_epochs=epochs, device=device, max_minutes=minutes, batch_size=size, learning_rate=LEARNING_RATE
    )
    train(name, corpus, folder, settings, sizes=sizes, report=hear)
    bot = Bot.load(folder, device)
    for decoding in (Decoding("greedy"), Decoding("sample"), Decoding("beam")):
        n_responses = N_RESPONSES if decoding.strategy != "beam" else N_RESPONSES // 4
        sample = take_sample(bot, corpus, decoding, n_responses=n_responses)
        sample.write(folder / f"{decoding.strategy}.json")
    perplexity = math.exp(sum(sample.log_loss) / sum(sample.n_tokens))
    print(f"{entry:14} test perplexity {perplexity:.2f}", flush=True)


def show_table(out: Path) -> None:
    """What was trained into a folder, as the tables of the documentation."""
    print("| model | parameters | epochs | validation perplexity by epoch | tokens/s | time | test perplexity |")
    print("|---|---|---|---|---|---|---|")
    folders = [folder for folder in sorted(out.iterdir()) if (folder / "greedy.json").is_file()]
    for folder in folders:
        sample = Sample.read(folder / "greedy.json")
        record = sample.about["record"]
        log = [json.loads(line) for line in (folder / "training.jsonl").read_text(encoding="utf-8").splitlines()]
        per_epoch = " ".join(f"{entry['validation_perplexity']:.1f}" for entry in log)
        print(
            f"| {folder.name} | {sample.about['n_parameters'] / 1e6:.1f} M | {len(log)} | {per_epoch} | "
            f"{record['tokens_per_s']:,} | {record['seconds']:.0f} s | {measures.perplexity(sample)} |"
        )
    print("\n| model | decoding | distinct-1 | distinct-2 | different responses | dull | words | BLEU | ROUGE-L |")
    print("|---|---|---|---|---|---|---|---|---|")
    for strategy in ("greedy", "beam", "sample"):
        for folder in folders:
            found = measures.measure(Sample.read(folder / f"{strategy}.json"), n_resamples=1000)
            keys = ("distinct_1", "distinct_2", "unique_responses", "dull_share", "length_words", "bleu", "rouge_l")
            print(f"| {folder.name} | {strategy} | " + " | ".join(str(found[key]) for key in keys) + " |")


def run() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--models", default=",".join((*MODELS, "seq2seq:5")))
    parser.add_argument("--one", default="")
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--reports", type=int, default=N_REPORTS)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--no-throughput", action="store_true")
    parser.add_argument("--table", type=Path, help="only print the tables of what was trained into this folder")
    given = parser.parse_args()
    if given.table is not None:
        show_table(given.table)
        return 0
    if given.corpus is None:
        return main()
    corpus = load_corpus(given.corpus)
    if given.one:
        train_one(given.one, corpus, given.out, given.epochs, given.minutes, given.device, given.size)
        return 0
    if given.out is not None:
        train_all(
            given.corpus, given.out, given.models.split(","), given.epochs, given.minutes, given.device, given.size
        )
    if not given.no_throughput:
        models = [entry for entry in given.models.split(",") if ":" not in entry]
        rows = throughput(corpus, {}, size=given.size, device=given.device, n_reports=given.reports, models=models)
        show_throughput(rows)
    return 0


if __name__ == "__main__":
    sys.exit(run())
