"""A training step beside a plain Hugging Face Trainer, and the three stages on 3,000 dialogues: ``python -m bench training``.

Both fine-tune the same encoder on the same dialogues with the same number of dialogues per step. The Trainer pads each batch
to its longest dialogue and cuts what is longer than the window; here nothing is cut, and a step compares all pairs of its
dialogues. The floor is what this project promises on a GPU, beside a Trainer that computes in 16 bits too. Without a GPU the
numbers are of a few steps and only show that the bench runs; ``python -m bench.training stages`` times the three stages there,
which takes a good twenty minutes on two cores.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dialometer.learned.cmade.encoder import load_encoder
from dialometer.learned.cmade.fit import FitOptions, fit_evaluator
from dialometer.learned.cmade.materials import prepare
from dialometer.learned.cmade.ranknet import RankNet
from dialometer.learned.cmade.training import AllPairs, CmadeTrainingOptions, train_ranknet
from dialometer.learned.data.rated import RatedDialogue, read_rated
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.neural.device import choose_device, is_half_quicker
from dialometer.neural.pretrained import model_path

FLOOR = 2.0
GROUP = 64 if choose_device("auto") == "cuda" else 8
"""Dialogues of a step; the Trainer pads them to 512 tokens, for which a small machine has no memory."""
N_STAGES = 3000
N_WARM = 4
"""Steps that are not counted, on a GPU; one is enough elsewhere."""
LIMIT_S = 60.0
TELL_EVERY_S = 60.0
ENCODER = os.environ.get("DIALOMETER_BENCH_ENCODER", "")


def made_up(n: int, rng: np.random.Generator) -> list[RatedDialogue]:
    """Dialogues with the lengths of ConvAI2 and words at random."""
    words = ["hello", "music", "dog", "you", "like", "what", "the", "work", "school", "really", "fun", "sorry", "city"]
    rated = []
    for number in range(n):
        turns = []
        for place in range(max(4, int(rng.lognormal(2.8, 0.5)))):
            text = " ".join(rng.choice(words, max(1, int(rng.poisson(8)))))
            role = "agent" if place % 2 else "user"
            turns.append(Turn(role, text, role))  # type: ignore[arg-type]
        rated.append(
            RatedDialogue(Dialogue(str(number), tuple(turns)), float(rng.integers(1, 6)), f"u{number % 400}", "f", None)
        )
    return rated


def dialogues(n: int) -> list[RatedDialogue]:
    """ConvAI2 where it is at hand, drawn again under new names up to ``n``; made up elsewhere."""
    rng = np.random.default_rng(0)
    data = os.environ.get("DIALOMETER_DATA")
    if not data or not (Path(data) / "convai2").is_dir():
        return made_up(n, rng)
    found = read_rated(Path(data) / "convai2")
    chosen = [found[place] for place in rng.integers(0, len(found), n)]
    return [
        RatedDialogue(Dialogue(f"{number}", one.dialogue.turns), one.rating, f"u{number % 400}", one.source, one.bot)
        for number, one in enumerate(chosen)
    ]


def ours(rated: list[RatedDialogue], n_steps: int, precision: str) -> float:
    """Dialogues per second, after a few steps that are not counted."""
    encoder = load_encoder(ENCODER)
    tokens = encoder.tokens([one.dialogue for one in rated])
    lesson = AllPairs(tokens, np.array([one.rating for one in rated]), GROUP)
    model = RankNet(encoder)
    warm = CmadeTrainingOptions(n_epochs=1, precision=precision, group_size=GROUP)  # type: ignore[arg-type]
    n_warm = N_WARM * GROUP if choose_device("auto") == "cuda" else GROUP
    train_ranknet(model, AllPairs(tokens[:n_warm], lesson.ratings[:n_warm], GROUP), warm)
    n_epochs = max(1, n_steps // max(1, len(rated) // GROUP))
    wait()
    begin = time.perf_counter()
    history = train_ranknet(model, lesson, warm.model_copy(update={"n_epochs": n_epochs}))
    wait()
    return len(rated) * n_epochs / (time.perf_counter() - begin) if history.n_steps else float("nan")


def trainer(rated: list[RatedDialogue], n_steps: int, *, is_half: bool) -> float:
    """The same by transformers.Trainer with dynamic padding: its loop only, tokens are cut before."""
    from transformers import (  # noqa: PLC0415 - only the peer needs it
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
    )

    path = model_path(ENCODER)
    tokenizer = AutoTokenizer.from_pretrained(path)
    network = AutoModelForSequenceClassification.from_pretrained(path, num_labels=1, dtype=torch.float32)
    texts = [f" {tokenizer.sep_token} ".join(turn.text for turn in one.dialogue.turns) for one in rated]
    cut = tokenizer(texts, truncation=True, max_length=512)
    rows = [
        {"input_ids": ids, "attention_mask": mask, "labels": one.rating}
        for ids, mask, one in zip(cut["input_ids"], cut["attention_mask"], rated, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:

        def run(some: list[dict[str, Any]], steps: int) -> float:
            arguments = TrainingArguments(
                folder,
                per_device_train_batch_size=GROUP,
                max_steps=steps,
                bf16=is_half,
                use_cpu=choose_device("auto") == "cpu",
                report_to=[],
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
            )
            loop = Trainer(network, arguments, DataCollatorWithPadding(tokenizer), train_dataset=some)  # type: ignore[arg-type]
            wait()
            begin = time.perf_counter()
            loop.train()
            wait()
            return time.perf_counter() - begin

        n_warm = N_WARM if choose_device("auto") == "cuda" else 1
        run(rows[: n_warm * GROUP], n_warm)
        return n_steps * GROUP / run(rows, n_steps)


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main() -> None:
    warnings.simplefilter("ignore")
    is_gpu = choose_device("auto") == "cuda"
    n_steps = 150 if is_gpu else 2
    rated = dialogues(50 * GROUP if is_gpu else 2 * GROUP)
    quickest = "bfloat16" if is_half_quicker(choose_device("auto")) else "float32"
    names = ("bfloat16", "float32") if is_gpu else (quickest,)
    mine = {name: ours(rated, n_steps, name) for name in names}
    peers = {name: trainer(rated, n_steps, is_half=name == "bfloat16") for name in names}
    print("| training, dialogues per second | here | Trainer with padding | times | at least |")
    print("|---|---|---|---|---|")
    digits = 0 if is_gpu else 1
    for name, speed in mine.items():
        floor = f"{FLOOR:.1f}" if is_gpu and name == "bfloat16" else ""
        print(f"| {name} | {speed:,.{digits}f} | {peers[name]:,.{digits}f} | {speed / peers[name]:.1f} | {floor} |")
    if not is_gpu:
        return
    seconds = stages()
    if mine["bfloat16"] < FLOOR * peers["bfloat16"] or seconds > LIMIT_S:
        sys.exit("a floor was missed")


def stages() -> float:
    """The three stages from ratings to a saved evaluator, with checkpoints: seconds by the clock."""
    data = prepare(dialogues(N_STAGES))
    begin, begin_cpu = time.perf_counter(), time.process_time()
    told = 0.0

    def report(what: str, n_done: int, n_total: int) -> None:
        nonlocal told
        if time.perf_counter() - told > TELL_EVERY_S:
            told = time.perf_counter()
            print(f"{told - begin:.0f} s: {what} {n_done}/{n_total}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        fitted = fit_evaluator(data, FitOptions(encoder=ENCODER), Path(folder) / "evaluator", report=report)
    seconds, cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu
    steps = {name: history["n_steps"] for name, history in fitted.about["histories"][0].items()}
    goal = f" (at most {LIMIT_S:.0f})" if choose_device("auto") == "cuda" else f", {cpu_s:.0f} s of processor time"
    print(f"\nThree stages on {N_STAGES:,} dialogues: {seconds:.1f} s{goal}, steps {steps}")
    return seconds


if __name__ == "__main__":
    stages() if sys.argv[1:] == ["stages"] else main()
