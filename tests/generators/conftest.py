"""A tiny corpus whose responses follow from what was said two turns before, and bots trained on it for a moment."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from dialometer.generators.corpus import load_corpus
from dialometer.generators.preparing import Preparation, prepare_corpus
from dialometer.generators.training import GeneratorTraining, train

SIZES = {"embedding": 16, "hidden": 32, "n_layers": 2, "n_heads": 2, "n_topic_words": 6, "n_turns": 3, "dropout": 0.0}
QUICK = GeneratorTraining(n_epochs=3, batch_size=16, learning_rate=1e-2, n_warmup_steps=10, device="cpu")
GROUPS = tuple(
    tuple(line.split())
    for line in """guitar melody drummer concert album lyrics singer chorus
goalkeeper penalty striker stadium referee league corner defender
oven flour butter recipe pepper garlic noodle kitchen
planet comet rocket orbit galaxy telescope astronaut meteor
river harbour sailor anchor island lighthouse captain lagoon
doctor nurse hospital fever tablet surgeon bandage clinic
novel chapter author library publisher sonnet essay paragraph
tractor barley orchard stable meadow shepherd harvest barn""".splitlines()
)


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def dialogue_lines(n_dialogues=160, seed=1):
    """Two speakers name things of one topic and come back to what the other one named before."""
    rng = np.random.default_rng(seed)
    for number in range(n_dialogues):
        words = GROUPS[number % len(GROUPS)]
        named = [words[k] for k in rng.integers(0, len(words), 6)]
        turns = []
        for k, word in enumerate(named):
            turns.append(f"I like the {word}." if k < 2 else f"You said {named[k - 2]}, now I say {word}!")
        yield json.dumps({"id": f"d{number}", "turns": turns})


@pytest.fixture(scope="session")
def dialogues(tmp_path_factory):
    path = tmp_path_factory.mktemp("dialogues") / "talks.jsonl"
    path.write_text("\n".join(dialogue_lines()) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def corpus_folder(dialogues, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared") / "corpus"
    options = Preparation(
        n_tokens=560, n_topics=3, validation_share=0.15, test_share=0.15, near_duplicate=2.0, n_context_turns=3
    )
    prepare_corpus([dialogues], folder, options)
    return folder


@pytest.fixture
def corpus(corpus_folder):
    return load_corpus(corpus_folder)


@pytest.fixture(scope="session")
def bots(corpus_folder, tmp_path_factory):
    """Folders of the four models after three short epochs."""
    folder = tmp_path_factory.mktemp("bots")
    prepared = load_corpus(corpus_folder)
    for name in ("seq2seq", "hred", "thred", "transformer"):
        sizes = {**SIZES, "n_turns": 1 if name == "seq2seq" else 3, "max_turns": 3}
        train(name, prepared, folder / name, QUICK, sizes=sizes)
    return folder
