"""The table of ``bench.retrieval_trials``: success rates on unseen dialogues, with intervals over dialogues."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench._boosted_lists import N_CANDIDATES, BoostedLists, best_n_trees
from bench.retrieval_training import GENERATED, PARTS, SOFT, TOKENS
from dialometer.retrieval.fusion import PARTS as FUSED
from dialometer.retrieval.fusion import candidate_lists, choose_weights
from dialometer.retrieval.retriever import top_k
from dialometer.retrieval.retrievers.fused import DEFAULT_WEIGHTS
from dialometer.retrieval.threshold import calibrate, right_of_surest
from dialometer.stats.bootstrap.means import bootstrap_mean
from dialometer.stats.retrieval.metrics import ranks_from_scores, reciprocal_rank, success_at

Floats = npt.NDArray[np.float32]
ENCODED = tuple(part for part in FUSED if part != "words")
BEFORE = {
    "question:turn": 3.0,
    "answer:turn": 1.0,
    "question:sentences": 3.0,
    "answer:sentences": 2.0,
    "question:context": 2.5,
    "answer:context": 2.0,
    "words": 0.5,
}
"""Parts and weights of the fused retriever before these trials."""
NOW = "6 epochs"


class Trials:
    """What was scored, and the questions it was scored for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        plan = json.loads((folder / "plan.json").read_text())
        self.dialogue = np.array(plan["dialogues"])
        self.n_answers = len(plan["answers"])
        self.marked = np.zeros((len(self.dialogue), self.n_answers), dtype=bool)
        for row, answers in enumerate(plan["right"]):
            self.marked[row, answers] = True
        self.counts = {key: self._counts(plan["folds"], key) for key in ("plain", "lessons")}
        with np.load(folder / "plain.npz") as held:
            self.plain = dict(held)

    def _counts(self, folds: list[dict[str, Any]], key: str) -> Floats:
        """How many questions each answer keeps while a dialogue is asked."""
        out = np.zeros(self.marked.shape, dtype=np.float32)
        for fold in folds:
            answers = [answer for _, answer in fold[key]]
            out[fold["rows"]] = np.bincount(answers, minlength=self.n_answers)
        return out

    def part(self, trial: str, name: str, key: str = "lessons") -> Floats:
        """One part of a trial; shared words are of no trial."""
        if name == "words":
            return np.asarray(self.plain["words" if key == "lessons" else "words_plain"])
        return self.parts(trial)[:, :, PARTS.index(name)]

    def parts(self, trial: str) -> Floats:
        """All parts of a trial."""
        file = self.folder / "scores" / f"{trial.replace(' ', '_').replace(',', '')}.npz"
        with np.load(file) as held:
            return np.asarray(held["scores"].astype(np.float32) / 1000)

    def stack(self, trial: str, names: Sequence[str], *more: Floats, key: str = "lessons") -> Floats:
        """Parts side by side, and further columns."""
        own = self.parts(trial)
        columns = [self.part(trial, name, key) if name == "words" else own[:, :, PARTS.index(name)] for name in names]
        return np.stack([*columns, *(np.broadcast_to(one, self.marked.shape) for one in more)], axis=-1)

    def weighed(self, stacked: Floats, key: str = "lessons") -> Floats:
        """The weights of each dialogue come from the nine others."""
        can_be_found = self.counts[key] > 0
        known = np.where(can_be_found[:, :, None], stacked, stacked.min(axis=(0, 1)) - 1)
        right = self.marked & can_be_found
        out = np.empty(self.marked.shape, dtype=np.float32)
        for name in np.unique(self.dialogue):
            is_out = self.dialogue == name
            lists = candidate_lists(known[~is_out], right[~is_out])
            weights = choose_weights(lists, self.dialogue[~is_out].tolist())
            out[is_out] = stacked[is_out] @ weights.astype(np.float32)
        return out

    def boosted(self, stacked: Floats, key: str = "lessons") -> Floats:
        """Listwise boosted trees on top of the linear weights; trees see each part, and how far it is below the question's best."""
        can_be_found = self.counts[key] > 0
        known = np.where(can_be_found[:, :, None], stacked, stacked.min(axis=(0, 1)) - 1)
        below = known - known.max(axis=1, keepdims=True)
        right = self.marked & can_be_found
        out = np.empty(self.marked.shape, dtype=np.float32)
        for name in np.unique(self.dialogue):
            is_out = self.dialogue == name
            groups = self.dialogue[~is_out].tolist()
            weights = choose_weights(candidate_lists(known[~is_out, :, : len(FUSED)], right[~is_out]), groups)
            first = known[:, :, : len(FUSED)] @ weights
            features = np.concatenate([known, below, (first - first.max(axis=1, keepdims=True))[:, :, None]], axis=-1)
            columns = np.argsort(-first, axis=1, kind="stable")[:, :N_CANDIDATES]
            rows = np.arange(len(first))[:, None]
            lists = features[rows, columns], first[rows, columns], right[rows, columns]
            known_lists = [part[~is_out] for part in lists]
            n_trees = best_n_trees(*known_lists, groups)
            moves = BoostedLists(*known_lists, n_trees).moves(lists[0][is_out], n_trees)
            out[is_out] = first[is_out]
            out[np.flatnonzero(is_out)[:, None], columns[is_out]] += 1e3 + moves
        return out

    def fixed(self, trial: str, weights: dict[str, float], key: str = "lessons") -> Floats:
        """A sum with given weights."""
        return sum((np.float32(w) * self.part(trial, name, key) for name, w in weights.items()), np.float32(0))


def rows_of(trials: Trials) -> list[tuple[str, Callable[[], Floats], str]]:
    """What is compared: its name, its scores, and whether the other dialogues are known."""
    old = tuple(BEFORE)
    rng = np.random.default_rng(0)
    prior = np.log1p(np.maximum(trials.counts["lessons"] - trials.counts["plain"], 0))

    def now(trial: str = NOW, names: Sequence[str] = FUSED, *more: Floats) -> Callable[[], Floats]:
        return lambda: trials.weighed(trials.stack(trial, names, *more))

    def without(*ends: str) -> Callable[[], Floats]:
        return now(NOW, [part for part in FUSED if not any(end in part for end in ends)])

    def averaged() -> Floats:
        seeds = ("6 epochs, context", "6 epochs, context, seed 1", "6 epochs, context, seed 2")
        return trials.weighed(np.mean([trials.stack(seed, FUSED) for seed in seeds], axis=0))

    def read(*orders: int, ranker: str = "ranker") -> Callable[[], Floats]:
        return lambda: trials.weighed(
            trials.stack(NOW, FUSED, *(reading(trials, ranker)[:, :, order] for order in orders))
        )

    def boosted(names: Sequence[str], *more: Floats) -> Callable[[], Floats]:
        return lambda: trials.boosted(trials.stack(NOW, names, *more))

    plain = [
        ("random", lambda: rng.random(trials.marked.shape).astype(np.float32), "lessons"),
        ("TF-IDF q-Q", lambda: trials.plain["tfidf"], "lessons"),
        ("BM25 q-Q", lambda: trials.plain["bm25"], "lessons"),
        ("encoder q-Q", lambda: trials.part("as it is", "question:turn"), "lessons"),
        (
            "encoder q-Q + 0.3 q-A",
            lambda: trials.fixed("as it is", {"question:turn": 1, "answer:turn": 0.3}),
            "lessons",
        ),
        ("before, no dialogues", lambda: trials.fixed("today", BEFORE, "plain"), "plain"),
        ("before, default weights", lambda: trials.fixed("lessons, share 0.75", BEFORE), "lessons"),
        ("before, fitted weights", now("lessons, share 0.75", old), "lessons"),
        ("now, fitted weights", now(), "lessons"),
        ("now, default weights", lambda: trials.fixed(NOW, dict(DEFAULT_WEIGHTS)), "lessons"),
    ]
    tried = [
        ("encoder as it is", now("as it is")),
        ("20 epochs, half the rate", now("lessons, share 0.75")),
        ("20 epochs, half of the way", now("lessons, share 0.5")),
        ("20 epochs, all of the way", now("lessons, share 1.0")),
        ("8 epochs, upper half only", now("8 epochs, upper half")),
        ("dialogues shown in context", now("6 epochs, context")),
        ("  seed 1", now("6 epochs, context, seed 1")),
        ("  seed 2", now("6 epochs, context, seed 2")),
        ("  three seeds averaged", averaged),
        ("  4 epochs", now("4 epochs, context")),
        ("  20 epochs", now("context")),
        ("  hard negatives", now("hard")),
        ("  late interaction trained", now("tokens", (*FUSED, *TOKENS))),
        ("late interaction added", now(NOW, (*FUSED, *TOKENS))),
        ("two turns before added", now(NOW, (*FUSED, "question:two turns", "answer:two turns"))),
        ("sum over questions added", now(NOW, (*FUSED, "question soft:turn", "question soft:context"))),
        ("how often right added", now(NOW, FUSED, prior)),
        ("how many questions added", now(NOW, FUSED, np.log1p(trials.counts["lessons"]))),
        ("ranker alone, both orders", lambda: reading(trials).sum(axis=2)),
        ("ranker q-A added", read(0)),
        ("ranker both orders added", read(0, 1)),
        ("ranker 2 alone, both orders", lambda: reading(trials, "ranker_trained").sum(axis=2)),
        ("ranker 2 both orders added", read(0, 1, ranker="ranker_trained")),
        ("likelihood alone", lambda: reading(trials, "likelihood")[:, :, 0]),
        ("likelihood added", read(0, ranker="likelihood")),
        ("made questions added", now(NOW, (*FUSED, *GENERATED))),
        ("made questions trained with", now("generated")),
        ("  and added", now("generated", (*FUSED, *GENERATED))),
        ("boosted trees", boosted(FUSED)),
        (
            "boosted trees, all columns",
            boosted((*FUSED, *TOKENS, *SOFT, *GENERATED), prior, np.log1p(trials.counts["lessons"])),
        ),
        ("kinds x yes/no added", now(NOW, FUSED, *kinds(trials))),
        ("own turn before removed", without(":asked")),
        ("answer before removed", without(":context")),
        ("sentences removed", without(":sentences")),
        ("words removed", without("words")),
        ("q-A removed", without("answer:")),
    ]
    return plain + [(name, scores, "lessons") for name, scores in tried]


def reading(trials: Trials, ranker: str = "ranker") -> Floats:
    """A ranker's scores; an answer that it did not read counts as the worst that it read."""
    with np.load(trials.folder / "scores" / f"{ranker}.npz") as held:
        scores = held["scores"].astype(np.float32)
    scores[scores == -30000] = np.nan
    return np.where(np.isnan(scores), np.nanmin(scores, axis=1, keepdims=True), scores) / 1000


def first_answers(trials: Trials, n: int) -> Any:
    """The first ``n`` answers to each question, by the encoder as it is."""
    scores = trials.fixed("as it is", dict(DEFAULT_WEIGHTS))
    return np.argsort(np.where(trials.counts["lessons"] > 0, -scores, np.inf), axis=1, kind="stable")[:, :n]


def kinds(trials: Trials) -> list[Floats]:
    """Answers that begin with yes or no, by whether the question begins like one for yes or no, for a fact, or neither."""
    is_kind, is_yes_no = trials.plain["kind"], trials.plain["yes_no"]
    return [(is_kind == kind)[:, None] * is_yes_no[None, :].astype(np.float32) for kind in range(3)]


def show(folder: Path, only: str = "") -> None:
    """Prints the table, or the rows whose names contain ``only``."""
    trials = Trials(folder)
    rows = rows_of(trials)
    base = next(reciprocal(trials, make(), key) for name, make, key in rows if name == "now, fitted weights")
    n_questions = len(trials.dialogue)
    n_found = {key: int((trials.marked & (counts > 0)).any(axis=1).sum()) for key, counts in trials.counts.items()}
    print(
        f"{n_questions} questions of {len(np.unique(trials.dialogue))} dialogues, each left out in turn; an answer is at hand for"
    )
    print(
        f"{n_found['lessons']} ({n_found['plain']} without the other dialogues). Percent, 95% intervals over dialogues; right of the"
    )
    print("80% answered; difference of 100 x MRR over all questions from 'now, fitted weights'.\n")
    print(f"{'':28} {'of all questions':^39} {'answer at hand':^15}")
    print(f"{'':28} {'@1':>19} {'@10':>19} {'@1':>7} {'@10':>7} {'at 80%':>7}   difference")
    for name, make, key in rows:
        if only in name:
            print(line(trials, name, make(), key, base), flush=True)


def reciprocal(trials: Trials, scores: Floats, key: str) -> npt.NDArray[np.float64]:
    """100 / rank of the first right answer; 0 where none is at hand."""
    return 100 * np.nan_to_num(reciprocal_rank(ranks(trials, scores, key)))


def ranks(trials: Trials, scores: Floats, key: str) -> Any:
    """Only answers that keep a question can be found."""
    can_be_found = trials.counts[key] > 0
    return ranks_from_scores(np.where(can_be_found, np.round(scores, 4), np.nan), trials.marked & can_be_found)


def line(trials: Trials, name: str, scores: Floats, key: str, base: npt.NDArray[np.float64]) -> str:
    """One row."""
    found = ranks(trials, scores, key)
    at_hand = (trials.marked & (trials.counts[key] > 0)).any(axis=1)
    cells, told = [], []
    for k in (1, 10):
        success = np.nan_to_num(np.asarray(success_at(found, k), dtype=np.float64))
        own = bootstrap_mean(100 * success, trials.dialogue, seed=0)
        cells.append(f"{own.value:5.1f} [{own.low:4.1f}, {own.high:4.1f}]")
        told.append(f"{100 * success[at_hand].mean():7.1f}")
    difference = reciprocal(trials, scores, key) - base
    if difference.any():
        own = bootstrap_mean(difference, trials.dialogue, seed=0)
        compared = f"{own.value:+5.1f} [{own.low:+.1f}, {own.high:+.1f}]"
    else:
        compared = ""
    return f"{name:28} {'  '.join(cells)} {' '.join(told)} {100 * precision(trials, scores, key):7.1f}   {compared}"


def precision(trials: Trials, scores: Floats, key: str) -> float:
    """Of the most confident share of questions, those answered rightly; confidence is learned on the nine other dialogues."""
    can_be_found = trials.counts[key] > 0
    ranking = top_k(np.where(can_be_found, np.round(scores, 4), np.nan), 2)
    is_right = trials.marked[np.arange(len(trials.marked)), ranking.answers[:, 0]]
    confidence = np.empty(len(is_right))
    for name in np.unique(trials.dialogue):
        own = trials.dialogue == name
        if not is_right[~own].any():
            return float("nan")
        learned = calibrate(type(ranking)(ranking.answers[~own], ranking.scores[~own]), is_right[~own])
        confidence[own] = learned.confidence(type(ranking)(ranking.answers[own], ranking.scores[own]))
    return right_of_surest(confidence, is_right)
