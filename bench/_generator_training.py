"""The training of all generators, one after the other, and the tables of docs/benchmarks/generators.md made from it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from scipy.stats import t

from bench._generator_decoding import show_decoding
from dialometer.generators import measures
from dialometer.generators.bot import BOT_FILE, Bot
from dialometer.generators.corpus import Corpus
from dialometer.generators.decoding import Decoding
from dialometer.generators.measures import Sample, log_losses, take_sample
from dialometer.generators.recurrent import Cell
from dialometer.generators.training import GeneratorTraining, TrainingProgress, train

N_RESPONSES = 4000
LEARNING_RATE = 1.5e-3
N_TURNS = 5
STRATEGIES = ("greedy", "beam", "sample")
TURNS_FILE = "turns.json"
"""Written last: a folder with it is done."""


def train_one(
    entry: str,
    corpus: Corpus,
    out: Path,
    given_sizes: Mapping[str, int],
    *,
    n_responses: int = N_RESPONSES,
    follow: Callable[[TrainingProgress], None] = lambda _: None,
    **settings: Any,
) -> None:
    """``NAME``, ``NAME:turns``, ``NAME@topic words`` or ``NAME+lstm+none``: trains it, then scores and answers the test split.

    What an interrupted run has written is not made again: a training continues from its checkpoint, and answers stay.
    """
    whole, _, n_topic_words = entry.partition("@")
    whole, _, turns = whole.partition(":")
    name, *built = whole.split("+")
    folder = out / re.sub("[:+@]", "-", entry)

    def hear(progress: TrainingProgress) -> None:
        follow(progress)
        if progress.validation_perplexity is not None:
            print(
                f"{entry:14} epoch {progress.epoch + 1:2}  loss {progress.loss:.3f}  validation perplexity "
                f"{progress.validation_perplexity:7.2f}  {progress.tokens_per_s:9,.0f} tokens/s",
                flush=True,
            )

    sizes: dict[str, Any] = {**given_sizes}
    sizes |= {"n_turns": int(turns)} if turns else {}
    sizes |= {"n_topic_words": int(n_topic_words)} if n_topic_words else {}
    sizes |= {"cell" if choice in get_args(Cell) else "attention": choice for choice in built}
    chosen = GeneratorTraining(**{"learning_rate": LEARNING_RATE, "patience": 3, **settings})
    if not (folder / BOT_FILE).is_file():
        train(name, corpus, folder, chosen, sizes=sizes, report=hear)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if not (folder / TURNS_FILE).is_file():
        answer(folder, corpus, chosen.device, n_responses)


def answer(folder: Path, corpus: Corpus, device: str, n_responses: int) -> None:
    """Writes what the tables are made from beside the bot."""
    bot = Bot.load(folder, device)
    for strategy in STRATEGIES:
        n_asked = n_responses if strategy != "beam" else n_responses // 4
        sample = take_sample(bot, corpus, Decoding(strategy), n_responses=n_asked)  # type: ignore[arg-type]
        sample.write(folder / f"{strategy}.json")
    print(f"{folder.name:14} test perplexity {_perplexity(sample):.2f}", flush=True)
    (folder / TURNS_FILE).write_text(json.dumps(by_turns(bot, corpus)), encoding="utf-8")


def by_turns(bot: Bot, corpus: Corpus) -> dict[str, list[list[float]]]:
    """Losses and tokens per dialogue when the bot is shown its last 1, 2, … turns, on examples that have five or more.

    THRED's topic is always found in five turns.
    """
    split = corpus.split("test")
    rows = split.examples[np.asarray(split.places[split.examples]) >= N_TURNS]
    return {
        str(n_turns): [list(values) for values in log_losses(bot, split, rows=rows, n_turns=n_turns)]
        for n_turns in range(1, bot.model.shape.n_turns + 1)
    }


def show_table(out: Path) -> None:
    """What was trained into a folder, as the tables of the documentation."""
    seeds = sorted(out.glob("seed-*"))
    if seeds:
        show_seeds(seeds)
        return
    folders = [folder for folder in sorted(out.iterdir()) if (folder / "greedy.json").is_file()]
    _show_training(folders)
    _show_turns(folders)
    _show_responses(folders)


def show_seeds(seeds: list[Path]) -> None:
    """Models trained several times: the mean over seeds, with a 95% t interval of what another seed may give."""
    names = [folder.name for folder in sorted(seeds[0].iterdir()) if (folder / "greedy.json").is_file()]
    samples = {name: [Sample.read(seed / name / "greedy.json") for seed in seeds] for name in names}
    print("| model | test perplexity by seed | mean | over Seq2Seq's |\n|---|---|---|---|")
    for name, of_seeds in samples.items():
        found = [_perplexity(sample) for sample in of_seeds]
        ratios = [value / _perplexity(first) for value, first in zip(found, samples["seq2seq"], strict=True)]
        print(f"| {name} | {' '.join(f'{v:.2f}' for v in found)} | {over_seeds(found, 2)} | {over_seeds(ratios, 3)} |")
    print(
        "\n| model | decoding | distinct-1 | distinct-2 | different responses | dull | words |\n|---|---|---|---|---|---|---|"
    )
    for strategy in STRATEGIES:
        for name in names:
            measured = [
                measures.measure(Sample.read(seed / name / f"{strategy}.json"), n_resamples=2) for seed in seeds
            ]
            keys = ("distinct_1", "distinct_2", "unique_responses", "dull_share", "length_words")
            cells = [over_seeds([float(found[key].value) for found in measured], 4) for key in keys]
            print(f"| {name} | {strategy} | " + " | ".join(cells) + " |")
    if all((seed / name / "decoding.json").is_file() for seed in seeds for name in names):
        show_decoding(seeds, names)


def over_seeds(values: Sequence[float], digits: int) -> str:
    """The mean over seeds with its 95% t interval."""
    mean, n = float(np.mean(values)), len(values)
    half = float(t.ppf(0.975, n - 1)) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return f"{mean:.{digits}f} [{mean - half:.{digits}f}, {mean + half:.{digits}f}]"


def _perplexity(sample: Sample) -> float:
    return math.exp(sum(sample.log_loss) / sum(sample.n_tokens))


def _show_training(folders: list[Path]) -> None:
    print(
        "| model | parameters | epochs | validation perplexity by epoch | tokens/s | time | test perplexity | to seq2seq |"
    )
    print("|---|---|---|---|---|---|---|---|")
    samples = {folder: Sample.read(folder / "greedy.json") for folder in folders}
    first = next((samples[folder] for folder in folders if folder.name == "seq2seq"), None)
    for folder, sample in samples.items():
        record = sample.about["record"]
        log = [json.loads(line) for line in (folder / "training.jsonl").read_text(encoding="utf-8").splitlines()]
        per_epoch = " ".join(f"{entry['validation_perplexity']:.1f}" for entry in log)
        ratio = "" if first is None else str(measures.perplexity_ratio(sample, first))
        print(
            f"| {folder.name} | {sample.about['n_parameters'] / 1e6:.1f} M | {len(log)} | {per_epoch} | "
            f"{record['tokens_per_s']:,} | {record['seconds']:.0f} s | {measures.perplexity(sample)} | {ratio} |"
        )


def _show_turns(folders: list[Path]) -> None:
    print("\n| model | " + " | ".join(f"last {n} turns" for n in range(1, N_TURNS + 1)) + " |")
    print("|---" * (N_TURNS + 1) + "|")
    for folder in folders:
        found = json.loads((folder / TURNS_FILE).read_text(encoding="utf-8"))
        cells = [f"{math.exp(sum(lost) / sum(n)):.2f}" for lost, n in found.values()]
        print(f"| {folder.name} | " + " | ".join([*cells, *[""] * (N_TURNS - len(cells))]) + " |")


def _show_responses(folders: list[Path]) -> None:
    print("\n| model | decoding | distinct-1 | distinct-2 | different responses | dull | words | BLEU | ROUGE-L |")
    print("|---|---|---|---|---|---|---|---|---|")
    for strategy in STRATEGIES:
        for folder in folders:
            found = measures.measure(Sample.read(folder / f"{strategy}.json"), n_resamples=1000)
            keys = ("distinct_1", "distinct_2", "unique_responses", "dull_share", "length_words", "bleu", "rouge_l")
            print(f"| {folder.name} | {strategy} | " + " | ".join(str(found[key]) for key in keys) + " |")
