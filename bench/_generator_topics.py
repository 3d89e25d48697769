"""What topic words do in THRED: how often people say them, and what is lost when the bot is told another topic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench._generator_training import STRATEGIES
from dialometer.generators.batches import ExampleBatch, by_length, examples_of
from dialometer.generators.bot import Bot
from dialometer.generators.corpus import Corpus
from dialometer.generators.filters import words_of
from dialometer.generators.measures import Sample, asked_about
from dialometer.generators.training import losses
from dialometer.generators.vocabulary import PAD

N_EXAMPLES = 4000


def show_topics(out: Path, corpus: Corpus, device: str) -> None:
    """For each THRED of a folder (they may know more or fewer topic words) what its topic words do, beside HRED."""
    for folder in sorted(out.glob("thred*")):
        _show_one(folder, out / "hred", corpus, device)


@torch.inference_mode()
def _show_one(topical_bot: Path, plain_bot: Path, corpus: Corpus, device: str) -> None:
    """Perplexity of HRED and THRED on topic words and on others, and of THRED with the topics of other conversations."""
    thred, hred = Bot.load(topical_bot, device), Bot.load(plain_bot, device)
    split = corpus.split("test")
    rng = np.random.default_rng(1)
    rows = rng.choice(split.examples, min(N_EXAMPLES, len(split.examples)), replace=False)
    swapped = dict(zip(rows.tolist(), np.asarray(split.topics)[rng.permutation(rows)].tolist(), strict=True))
    lost: dict[str, list[Tensor]] = {"hred": [], "thred": [], "another topic": []}
    is_topic_word: list[Tensor] = []
    is_changed: list[Tensor] = []
    for part in by_length(split, rows, 64, thred.model.shape.n_turns):
        batch = examples_of(split, part, thred.model.shape.window).to(thred.device)
        is_token = batch.targets != PAD
        words = thred.model.topic_words[batch.topics]  # (B, K)
        is_topic_word.append((batch.targets[:, :, None] == words[:, None, :]).any(dim=-1)[is_token])
        others = torch.tensor([swapped[row] for row in part.tolist()], device=thred.device)
        is_changed.append((others != batch.topics)[:, None].expand_as(is_token)[is_token])
        lost["hred"].append(_lost(hred, batch)[is_token])
        lost["thred"].append(_lost(thred, batch)[is_token])
        lost["another topic"].append(_lost(thred, replace(batch, topics=others))[is_token])
    joined = {name: torch.cat(parts) for name, parts in lost.items()}
    topical = torch.cat(is_topic_word)
    print(
        f"\n{topical_bot.name}: {len(rows)} examples; {topical.float().mean():.1%} of the tokens are among the words of "
        "their context's topic;"
    )
    print(
        f"{torch.cat(is_changed).float().mean():.1%} of the tokens belong to contexts whose swapped topic is another one\n"
    )
    print("| perplexity | all tokens | topic words | other tokens |")
    print("|---|---|---|---|")
    for name, values in joined.items():
        print(f"| {name} | {_ppl(values)} | {_ppl(values[topical])} | {_ppl(values[~topical])} |")
    _show_said((plain_bot, topical_bot), corpus, thred)


def _show_said(bots: Sequence[Path], corpus: Corpus, thred: Bot) -> None:
    """How many of the words that bots said are words of the context's topic."""
    split = corpus.split("test")
    pieces = np.array([piece.strip().lower() for piece in corpus.vocabulary.pieces])
    words = [set(row) for row in pieces[thred.model.topic_words.cpu().numpy()].tolist()]
    print("\n| words of the topic among those said | " + " | ".join(STRATEGIES) + " |")
    print("|---" * (len(STRATEGIES) + 1) + "|")
    for folder in bots:
        cells = []
        for strategy in STRATEGIES:
            sample = Sample.read(folder / f"{strategy}.json")
            topics = np.asarray(split.topics)[asked_about(split, len(sample.responses))]
            said = [
                word in words[topic]
                for text, topic in zip(sample.responses, topics.tolist(), strict=True)
                for word in words_of(text)
            ]
            cells.append(f"{np.mean(said):.2%}")
        print(f"| {folder.name} | " + " | ".join(cells) + " |")


def _lost(bot: Bot, batch: ExampleBatch) -> Any:
    return losses(bot.model(batch), batch.targets, reduction="none").view(batch.targets.shape)


def _ppl(values: Tensor) -> str:
    return f"{math.exp(float(values.double().mean())):.2f}"
