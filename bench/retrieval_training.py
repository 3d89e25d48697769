"""Trains the encoders of ``bench.retrieval_trials``, all folds side by side: ``python -m bench.retrieval_training FOLDER``.

Needs torch and numpy alone, so that it runs where nothing of the project is installed but this folder.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from bench._stacked_encoder import StackedEncoder, clip_by_fold
from bench._stacked_ranker import N_READ, read, train_ranker

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
MOST_TOKENS = 64
N_VARIANTS, N_OPENED = 8, 4
FORMS = ("turn", "sentences", "context", "two turns", "asked")
POOLED = tuple(f"{side}:{form}" for form in FORMS for side in ("question", "answer"))
TOKENS = tuple(f"{side} tokens:{form}" for form in ("turn", "context") for side in ("question", "answer"))
SOFT = ("question soft:turn", "question soft:context")
GENERATED = ("generated:turn", "generated:context")
PARTS = (*POOLED, *TOKENS, *SOFT, *GENERATED)
SOFTNESS = 0.05
Step = tuple[Ints, Ints, Ints, Any, Ints]
"""Of each fold: questions as shown, others of their answers, answers, which pairs are right too, and the questions as they are."""


@dataclass(frozen=True)
class Trial:
    """How the encoders of all folds are trained."""

    name: str
    has_lessons: bool = True
    """Whether the other dialogues' questions are known."""
    n_epochs: int = 20
    learning_rate: float = 5e-5
    batch_size: int = 64
    temperature: float = 0.05
    n_frozen: int = 0
    """Lower layers that are not trained."""
    context_share: float = 0.0
    """Share of the dialogues' questions that are shown after the turn before them."""
    n_hard: int = 0
    """Wrong answers of every question that the encoder as it is confuses with the right ones."""
    has_generated: bool = False
    """Whether questions made from the answers are trained with, beside the recorded ones."""
    token_loss: float = 0.0
    """Weight of the loss of late interaction."""
    shares: tuple[float, ...] = (0.75,)
    """How far the weights go from before to after training; each is scored."""
    seed: int = 0


TRIALS = (
    Trial("today", has_lessons=False),
    Trial("lessons", shares=(0.5, 0.75, 1.0)),
    Trial("6 epochs", n_epochs=6, learning_rate=1e-4),
    Trial("8 epochs, upper half", n_epochs=8, learning_rate=1.5e-4, n_frozen=3),
    Trial("context", context_share=0.5),
    Trial("tokens", n_epochs=6, learning_rate=1e-4, context_share=0.5, token_loss=1.0),
    Trial("hard", n_epochs=6, learning_rate=1e-4, context_share=0.5, n_hard=1),
    Trial("6 epochs, context, seed 1", n_epochs=6, learning_rate=1e-4, context_share=0.5, seed=1),
    Trial("6 epochs, context", n_epochs=6, learning_rate=1e-4, context_share=0.5),
    Trial("4 epochs, context", n_epochs=4, learning_rate=2e-4, context_share=0.5),
    Trial("tokens, seed 1", context_share=0.5, token_loss=1.0, seed=1),
    Trial("6 epochs, context, seed 2", n_epochs=6, learning_rate=1e-4, context_share=0.5, seed=2),
    Trial("generated", n_epochs=6, learning_rate=1e-4, has_generated=True),
)
RANKERS = {"ranker": False, "ranker, trained": True}
"""Whether the cross-encoder begins at the trained encoder and all its wrong answers are near by it."""


class Plan:
    """What was prepared, as tensors."""

    def __init__(self, folder: Path, device: str) -> None:
        plan = json.loads((folder / "plan.json").read_text())
        self.device = device
        self.answers: list[int] = plan["answers"]
        self.generated: list[tuple[int, int]] = [(text, answer) for text, answer in plan["generated"]]
        self.forms: dict[str, list[list[int]]] = plan["forms"]
        self.folds: list[dict[str, Any]] = plan["folds"]
        self.variants = {int(key): value for key, value in plan["variants"].items()}
        self.in_context = {int(key): value for key, value in plan["in_context"].items()}
        table = np.zeros((len(plan["tokens"]) + 1, MOST_TOKENS), dtype=np.int64)
        self.length = np.zeros(len(table), dtype=np.int64)
        for row, own in enumerate(plan["tokens"]):
            table[row, : len(own)] = own
            self.length[row] = len(own)
        table[-1, 0] = 1
        self.table = torch.tensor(table, device=device)
        self.table_rows: list[list[int]] = plan["tokens"]
        self.n_questions = len(plan["right"])
        with np.load(folder / "weights.npz") as held:
            self.weights = dict(held)

    def tokens(self, texts: Ints) -> Any:
        """Tokens of numbered texts (folds by texts), as long as the longest."""
        longest = int(self.length[texts].max())
        return self.table[torch.tensor(texts, device=self.device)][:, :, :longest]


def padded(lists: Sequence[Sequence[int]], fill: int = -1) -> Ints:
    """Lists of each fold as one array."""
    out = np.full((len(lists), max(map(len, lists))), fill, dtype=np.int64)
    for row, own in enumerate(lists):
        out[row, : len(own)] = own
    return out


def batches(plan: Plan, trial: Trial, epoch: int) -> list[Step]:
    """For every step, folds by pairs: the question shown, another of its answer, the answer, and which pairs are right too."""
    key = "lessons" if trial.has_lessons else "plain"
    rows: list[list[tuple[int, int, int, int]]] = []
    answers_of: list[dict[int, set[int]]] = []
    for number, fold in enumerate(plan.folds):
        rng = np.random.default_rng([trial.seed, epoch, number])
        of_answer: dict[int, list[int]] = {}
        of_question: dict[int, set[int]] = {}
        known = [*fold[key], *(plan.generated if trial.has_generated else ())]
        for question, answer in known:
            of_answer.setdefault(answer, []).append(question)
            of_question.setdefault(question, set()).add(answer)
        own = []
        for at in rng.permutation(len(known)):
            question, answer = known[at]
            others = [other for other in of_answer[answer] if other != question]
            other = others[int(rng.integers(len(others)))] if others else question
            own.append((shown(plan, trial, question, rng), other, answer, question))
        rows.append(own)
        answers_of.append(of_question)
    shortest = min(map(len, rows))
    steps = []
    for start in range(0, shortest - shortest % trial.batch_size or shortest, trial.batch_size):
        some = [own[start : start + trial.batch_size] for own in rows]
        size = min(map(len, some))
        texts, others, answers, asked = (
            np.array([[row[column] for row in own[:size]] for own in some]) for column in range(4)
        )
        also = np.array(
            [
                [[a in of[q] for a in own] for q in qs]
                for of, own, qs in zip(answers_of, answers.tolist(), asked.tolist(), strict=True)
            ]
        )
        also[:, np.arange(size), np.arange(size)] = False
        steps.append((texts, others, answers, also, asked))
    return steps


def shown(plan: Plan, trial: Trial, question: int, rng: np.random.Generator) -> int:
    """The question as it is, varied, after an opening, or after the turn before it."""
    if question in plan.in_context and rng.random() < trial.context_share:
        return plan.in_context[question]
    lot = rng.random()
    own = plan.variants.get(question)
    if own is None:  # made from an answer
        return question
    if lot < 0.2:
        return int(own[N_VARIANTS + int(rng.integers(N_OPENED))])
    return int(own[int(rng.integers(N_VARIANTS))]) if lot < 0.7 else question


def late_interaction(asked: Any, known: Any) -> Any:
    """(folds, a, length, width) and (folds, b, length, width) to (folds, a, b): each token's best match, averaged."""
    n_tokens = (asked.abs().sum(-1) > 0).sum(-1).clamp(min=1)
    products = torch.einsum("faiw,fbjw->fabij", asked, known)
    return products.max(-1).values.sum(-1) / n_tokens[:, :, None]


def loss_of(net: Any, plan: Plan, trial: Trial, step: Step, hard: Ints | None) -> Any:
    texts, others, answers, also_right, _ = step
    n_pairs = texts.shape[1]
    answer_texts = np.array(plan.answers)[answers]
    asked, asked_tokens = net.pooled(plan.tokens(texts), dropout=0.1)
    other, other_tokens = net.pooled(plan.tokens(others), dropout=0.1)
    known, known_tokens = net.pooled(plan.tokens(answer_texts), dropout=0.1)
    also = torch.tensor(also_right, device=plan.device)
    own = torch.arange(n_pairs, device=plan.device).expand(len(texts), -1).flatten()

    def choose(scores: Any) -> Any:
        scores = (scores / trial.temperature).masked_fill(also[:, :, : scores.shape[2]], -1e4)
        return functional.cross_entropy(scores.flatten(0, 1), own) * len(texts)

    to_answer = asked @ known.transpose(1, 2)
    total = choose(asked @ other.transpose(1, 2))
    backward = (to_answer.transpose(1, 2) / trial.temperature).masked_fill(also.transpose(1, 2), -1e4)
    total = total + 0.5 * functional.cross_entropy(backward.flatten(0, 1), own) * len(texts)
    if hard is None:
        total = total + 0.5 * choose(to_answer)
    else:
        wrong, _ = net.pooled(plan.tokens(np.array(plan.answers)[hard]), dropout=0.1)
        further = (asked * wrong).sum(-1, keepdim=True)
        scores = torch.cat([to_answer.masked_fill(also, -1e4), further], 2) / trial.temperature
        total = total + 0.5 * functional.cross_entropy(scores.flatten(0, 1), own) * len(texts)
    if trial.token_loss:
        half = torch.bfloat16 if plan.device == "cuda" else torch.float32
        a, o, k = asked_tokens.to(half), other_tokens.to(half), known_tokens.to(half)
        total = total + trial.token_loss * (
            0.5 * choose(late_interaction(a, k).float()) + choose(late_interaction(a, o).float())
        )
    return total


def hard_answers(plan: Plan, trial: Trial, net: Any) -> list[dict[tuple[int, int], list[int]]]:
    """For each pair of each fold the wrong answers that the encoder as it is puts nearest to the question."""
    key = "lessons" if trial.has_lessons else "plain"
    found = []
    for number, fold in enumerate(plan.folds):
        questions = sorted({question for question, _ in fold[key]})
        right: dict[int, set[int]] = {}
        for question, answer in fold[key]:
            right.setdefault(question, set()).add(answer)
        asked = encoded(net, plan, [questions if n == number else questions[:1] for n in range(len(plan.folds))])[0]
        known = encoded(net, plan, [plan.answers] * len(plan.folds))[0]
        order = (asked[number] @ known[number].T).argsort(1, descending=True)[:, :20].cpu().numpy()
        own = {}
        for row, question in enumerate(questions):
            wrong = [int(a) for a in order[row] if a not in right[question]][:5]
            for answer in right[question]:
                own[question, answer] = wrong
        own["right"] = right
        found.append(own)
    return found


def encoded(net: Any, plan: Plan, lists: Sequence[Sequence[int]], size: int = 256) -> tuple[Any, Any]:
    """Vectors of every fold's texts, and of their tokens (16 bits on a GPU)."""
    texts = padded(lists, len(plan.table) - 1)
    longest = int(plan.length[texts].max())
    vectors, tokens = [], []
    half = torch.bfloat16 if plan.device == "cuda" else torch.float32
    with torch.inference_mode(), torch.autocast(plan.device, torch.bfloat16, enabled=plan.device == "cuda"):
        for start in range(0, texts.shape[1], size):
            mean, own = net.pooled(
                plan.table[torch.tensor(texts[:, start : start + size], device=plan.device)][:, :, :longest]
            )
            vectors.append(mean)
            tokens.append(own.to(half))
    return torch.cat(vectors, 1), torch.cat(tokens, 1)


def trained(plan: Plan, trial: Trial) -> tuple[Any, dict[str, Any]]:
    """The encoders after training, and their weights before."""
    torch.manual_seed(trial.seed)
    net = StackedEncoder(plan.weights, len(plan.folds), plan.device)
    before = {name: value.clone() for name, value in net.weights.items()}
    nearest = hard_answers(plan, trial, net) if trial.n_hard else None
    weights = net.trainable(trial.n_frozen)
    optimiser = torch.optim.AdamW(weights, lr=trial.learning_rate, weight_decay=0.01, fused=plan.device == "cuda")
    epochs = [batches(plan, trial, epoch) for epoch in range(trial.n_epochs)]
    n_total = sum(map(len, epochs))
    rng = np.random.default_rng(trial.seed)
    for done, step in enumerate(step for epoch in epochs for step in epoch):
        rate = min(1.0, (done + 1) / max(1.0, 0.1 * n_total)) * (1 - done / n_total)
        for group in optimiser.param_groups:
            group["lr"] = trial.learning_rate * rate
        optimiser.zero_grad(set_to_none=True)
        hard = None
        if nearest is not None:
            hard = hard_of(plan, step, nearest, rng)
        with torch.autocast(plan.device, torch.bfloat16, enabled=plan.device == "cuda"):
            loss = loss_of(net, plan, trial, step, hard)
        loss.backward()
        clip_by_fold(weights, 1.0)
        optimiser.step()
    for value in net.weights.values():
        value.requires_grad_(False)
    return net, before


def hard_of(plan: Plan, step: Step, nearest: list[Any], rng: np.random.Generator) -> Ints:
    """One hard wrong answer for every pair of a step."""
    out = np.zeros(step[2].shape, dtype=np.int64)
    for fold, (asked, answers) in enumerate(zip(step[4].tolist(), step[2].tolist(), strict=True)):
        for at, (question, answer) in enumerate(zip(asked, answers, strict=True)):
            wrong = nearest[fold].get((question, answer)) or [int(rng.integers(len(plan.answers)))]
            out[fold, at] = wrong[int(rng.integers(len(wrong)))]
    return out


# Scores of every part.


class AskedFold:
    """One dialogue in one form: its texts, and the pairs that are known while it is asked."""

    def __init__(self, plan: Plan, fold: dict[str, Any], form: str, key: str) -> None:
        self.rows = fold["rows"]
        counts = [len(plan.forms[form][row]) for row in self.rows]
        self.n_texts, self.n_answers, self.device = sum(counts), len(plan.answers), plan.device
        self.query_of_text = torch.tensor(np.repeat(np.arange(len(counts)), counts), device=plan.device)
        place = {question: at for at, question in enumerate(sorted({question for question, _ in fold[key]}))}
        self.n_questions = len(place)
        self.question = torch.tensor([place[question] for question, _ in fold[key]], device=plan.device)
        self.answer = torch.tensor([answer for _, answer in fold[key]], device=plan.device)

    def by_answer(self, scores: Any) -> Any:
        """The best of each answer's questions."""
        table = torch.zeros(len(scores), self.n_answers, device=self.device)
        index = self.answer.expand(len(scores), -1)
        return table.scatter_reduce(1, index, scores[:, self.question].float(), "amax", include_self=False)

    def summed(self, nearness: Any) -> Any:
        """All of an answer's questions count, the near ones most."""
        table = torch.zeros(len(nearness), self.n_answers, device=self.device)
        table.index_add_(1, self.answer, torch.exp((nearness[:, self.question] - 1) / SOFTNESS).float())
        return SOFTNESS * torch.log(table + 1e-9)

    def by_query(self, scores: Any) -> Any:
        """The best of each query's texts."""
        table = torch.zeros(len(self.rows), self.n_answers, device=self.device)
        index = self.query_of_text[:, None].expand(-1, self.n_answers)
        return table.scatter_reduce(0, index, scores.float(), "amax", include_self=False)


def of_generated(plan: Plan, nearness: Any) -> Any:
    """The best of the questions made from each answer; 0 where there is none."""
    table = torch.zeros(len(nearness), len(plan.answers), device=plan.device)
    index = torch.tensor([answer for _, answer in plan.generated], device=plan.device).expand(len(nearness), -1)
    return table.scatter_reduce(1, index, nearness.float(), "amax", include_self=False)


def scored(net: StackedEncoder, plan: Plan, trial: Trial) -> Floats:
    """Questions by answers by parts, each dialogue by the fold that did not know it."""
    key = "lessons" if trial.has_lessons else "plain"
    out = np.zeros((plan.n_questions, len(plan.answers), len(PARTS)), dtype=np.float32)
    questions = [sorted({question for question, _ in fold[key]}) for fold in plan.folds]
    known, known_tokens = encoded(net, plan, questions)
    answers, answer_tokens = encoded(net, plan, [plan.answers] * len(plan.folds))
    generated, _ = encoded(net, plan, [[text for text, _ in plan.generated]] * len(plan.folds))
    for form in FORMS:
        texts = [[text for row in fold["rows"] for text in plan.forms[form][row]] for fold in plan.folds]
        asked, asked_tokens = encoded(net, plan, texts)
        for number, fold in enumerate(plan.folds):
            own = AskedFold(plan, fold, form, key)
            vectors, tokens = asked[number, : own.n_texts], asked_tokens[number, : own.n_texts]
            nearness = vectors @ known[number, : own.n_questions].T
            parts = {
                f"question:{form}": own.by_answer(nearness),
                f"answer:{form}": vectors @ answers[number].T,
                f"question soft:{form}": own.summed(nearness),
                f"generated:{form}": of_generated(plan, vectors @ generated[number].T),
            }
            if f"question tokens:{form}" in PARTS:
                near = by_tokens(tokens, known_tokens[number, : own.n_questions])
                parts[f"question tokens:{form}"] = own.by_answer(near)
                parts[f"answer tokens:{form}"] = by_tokens(tokens, answer_tokens[number])
            for part, scores in parts.items():
                if part in PARTS:
                    out[own.rows, :, PARTS.index(part)] = own.by_query(scores).cpu().numpy()
    return out


def by_tokens(asked: Any, known: Any) -> Any:
    """Late interaction of some texts with many, a few at a time."""
    with torch.inference_mode():
        parts = [late_interaction(asked[None, start : start + 8], known[None])[0] for start in range(0, len(asked), 8)]
        return torch.cat(parts).float()


def ranked(plan: Plan, is_trained: bool) -> npt.NDArray[np.int16]:
    """Scores of a cross-encoder that reads the first answers of the encoder as it is, or trained, in both orders."""
    trial = next(own for own in TRIALS if own.name == "6 epochs")
    base = StackedEncoder(plan.weights, len(plan.folds), plan.device)
    if is_trained:
        base, before = trained(plan, trial)
        base.weights = {name: value + trial.shares[0] * (base.weights[name] - value) for name, value in before.items()}
    nearest = hard_answers(plan, trial, base)
    scores = scored(base, plan, trial)
    total = sum(scores[:, :, PARTS.index(part)] for part in ("question:turn", "answer:turn", "question:context"))
    first = np.argsort(-total, axis=1)[:, :N_READ]
    start = base.weights if is_trained else None
    net = train_ranker(plan, nearest, lambda question, rng: shown(plan, trial, question, rng), start)
    return read(net, plan, first)


def train_all(folder: Path, out: Path, device: str, names: Sequence[str], seconds: float) -> None:
    """Trains and scores trial after trial, as long as there is time."""
    started = time.monotonic()
    plan = Plan(folder, device)
    out.mkdir(parents=True, exist_ok=True)
    for trial in (Trial("as it is"), *TRIALS, *map(Trial, RANKERS)):
        if names and trial.name not in names:
            continue
        if time.monotonic() - started > seconds:
            print(f"no time left for: {trial.name}", flush=True)
            continue
        begun = time.monotonic()
        if trial.name in RANKERS:
            file = out / f"{trial.name.replace(' ', '_').replace(',', '')}.npz"
            np.savez_compressed(file, scores=ranked(plan, RANKERS[trial.name]))
            print(f"{trial.name}: {time.monotonic() - begun:.1f} s", flush=True)
            continue
        if trial.name == "as it is":
            net, before = StackedEncoder(plan.weights, len(plan.folds), device), {}
        else:
            net, before = trained(plan, trial)
        between = time.monotonic()
        after = net.weights
        for share in trial.shares if before else (1.0,):
            if before:
                net.weights = {name: value + share * (after[name] - value) for name, value in before.items()}
            scores = np.round(1000 * scored(net, plan, trial)).astype(np.int16)
            name = trial.name if len(trial.shares) == 1 else f"{trial.name}, share {share}"
            np.savez_compressed(out / f"{name.replace(' ', '_').replace(',', '')}.npz", scores=scores)
        took = between - begun, time.monotonic() - between
        print(f"{trial.name}: trained in {took[0]:.1f} s, scored in {took[1]:.1f} s", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Train and score."""
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval_training")
    parser.add_argument("folder", type=Path, help="what 'bench.retrieval_trials prepare' wrote")
    parser.add_argument("--out", type=Path, default=None, help="where scores are written; FOLDER/scores by default")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--names", default="", help="trials to run, with ; between them; all by default")
    parser.add_argument("--seconds", type=float, default=1e9, help="no trial begins later than this")
    chosen = parser.parse_args(list(arguments))
    names = [name for name in chosen.names.split(";") if name]
    train_all(chosen.folder, chosen.out or chosen.folder / "scores", chosen.device, names, chosen.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
