"""Which parts of the fused retriever help, by cross-validation over dialogues: ``python -m bench.retrieval_parts --train``.

Every dialogue of the Margarita corpus is asked twice. "As shipped" asks the whole knowledge base, into which many of these very
questions were recorded. "New" asks what is left without the questions that the dialogue repeats, with everything that learns
trained on that rest: so it goes for visitors to come. Questions none of whose right answers keeps a recorded question are left
out there, since in use every answer has one. Weights that score a dialogue come from the other dialogues.

Without ``--train`` only what needs no training is measured. Training takes minutes on a GPU (``--jobs 11`` runs all dialogues at
once) and hours on a CPU; ``--scores FOLDER`` keeps what was scored and reads it again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dialometer.neural.encoder import TextEncoder
from dialometer.neural.work import Work
from dialometer.retrieval.fusion import PARTS, CandidateLists, FusionParts, candidate_lists, choose_weights
from dialometer.retrieval.knowledge_base import KnowledgeBase, read_knowledge_base
from dialometer.retrieval.queries import Query, QuerySet, read_queries, repeated_questions
from dialometer.retrieval.retriever import make_retriever, top_k
from dialometer.retrieval.retrievers.answer_ranker import BELOW, AnswerRanker
from dialometer.retrieval.retrievers.fused import DEFAULT_READ_WEIGHT, DEFAULT_WEIGHTS, Fused
from dialometer.stats.retrieval.metrics import compare_questions, ranks_from_scores, reciprocal_rank, success_at

Floats = npt.NDArray[np.float32]
Marks = npt.NDArray[np.bool_]
SHIPPED = "as shipped"
CUTS = (1, 2, 10)
N_READ = 10
PLAIN = ("tfidf", "bm25", "encoder", "encoder-answer", "mixed", "context")
PLAIN_NAMES = "TF-IDF q-Q", "BM25 q-Q", "encoder q-Q", "encoder q-A", "encoder q-Q + 0.3 q-A", "the same + context"


@dataclass(frozen=True)
class Job:
    """One dialogue (or all, as shipped), and what is to be scored for it."""

    name: str
    kb_file: str
    dialogues_file: str
    work: Work
    model: str = ""
    folder: str = ""
    """Where scores of trained models are kept, if anywhere."""

    @property
    def file(self) -> Path | None:
        """The scores kept for this job."""
        return Path(self.folder) / f"{self.name.replace(' ', '-')}.npz" if self.folder else None


def repeated_by(job: Job, kb: KnowledgeBase, asked: QuerySet) -> tuple[list[int], list[int]]:
    """The recorded questions that must be left out while a dialogue is asked, and the rows of its own questions."""
    if job.name == SHIPPED:
        return [], list(range(len(asked)))
    rows = [row for row, dialogue in enumerate(asked.dialogues) if dialogue == job.name]
    gone = repeated_questions(kb, [asked.queries[row] for row in rows], TextEncoder(job.model, job.work))
    return gone.tolist(), rows


def opened(job: Job) -> tuple[KnowledgeBase, list[Query], dict[str, Any]]:
    """What may be known, what is asked, and the scores so far."""
    kb = read_knowledge_base(job.kb_file)
    asked = read_queries(job.dialogues_file, kb)
    gone, rows = repeated_by(job, kb, asked)
    known = kb.without_questions(gone)
    queries = [asked.queries[row] for row in rows]
    return known, queries, {"rows": np.array(rows), "gone": np.array(gone), "has_question": known.n_questions_of > 0}


def scored(job: Job) -> dict[str, Any]:
    """Scores of what needs no training: each plain retriever's, and the parts' with the encoder as it is."""
    known, queries, found = opened(job)
    found["base"] = FusionParts(known, TextEncoder(job.model, job.work)).all(queries)
    for name in PLAIN:
        options = {} if name in ("tfidf", "bm25") else {"model": job.model}
        found[name] = make_retriever(name, options).fit(known, job.work).scores(queries)
    print(f"asked: {job.name}", file=sys.stderr, flush=True)
    return found


def trained(job: Job) -> dict[str, Any]:
    """Scores of what is trained: the parts' with a trained encoder, and the ranker's."""
    if job.file and job.file.is_file():
        with np.load(job.file) as held:
            return dict(held)
    known, queries, found = opened(job)
    found["tuned"] = Fused(model=job.model).fit_parts(known, job.work)[0].all(queries)
    found["ranker"] = AnswerRanker(model=job.model).fit(known, job.work).scores(queries)
    if job.file:
        job.file.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(job.file, **found)
    print(f"trained and asked: {job.name}", file=sys.stderr, flush=True)
    return found


class Asking:
    """Both conditions side by side, with the marks and the groups of the questions."""

    def __init__(self, asked: QuerySet, found: dict[str, dict[str, Any]], n_answers: int) -> None:
        self.right = asked.relevance(n_answers)
        self.dialogue = np.array(asked.dialogues)
        self.found = found
        self.has_question = np.ones((len(asked), n_answers), dtype=bool)
        for name, one in found.items():
            if name != SHIPPED:
                self.has_question[one["rows"]] = one["has_question"]
        self.is_told = (self.right & self.has_question).any(axis=1)

    def pair(self, key: str) -> tuple[Floats, Floats]:
        """Scores as shipped and new."""
        shipped = np.asarray(self.found[SHIPPED][key], dtype=np.float32)
        new = np.empty_like(shipped)
        for name, one in self.found.items():
            if name != SHIPPED:
                new[one["rows"]] = one[key]
        return shipped, new

    def weighed(self, key: str, parts: Sequence[str]) -> tuple[Floats, Floats]:
        """Weighted sums, the weights of a dialogue from the other dialogues in both conditions."""
        columns = [PARTS.index(part) for part in parts]
        shipped, new = (scores[:, :, columns] for scores in self.pair(key))
        return self._across(shipped, new)

    def _across(self, shipped: Floats, new: Floats) -> tuple[Floats, Floats]:
        out = np.empty(self.right.shape, dtype=np.float32), np.empty(self.right.shape, dtype=np.float32)
        for name in np.unique(self.dialogue):
            is_out = self.dialogue == name
            both = [~is_out, ~is_out & self.is_told]
            scores = np.concatenate([shipped[both[0]], new[both[1]]])
            lists = candidate_lists(scores, np.concatenate([self.right[rows] for rows in both]))
            weights = choose_weights(lists, [str(d) for rows in both for d in self.dialogue[rows]])
            for one, given in zip(out, (shipped, new), strict=True):
                one[is_out] = given[is_out] @ weights.astype(np.float32)
        return out

    def read_again(self, scores: tuple[Floats, Floats], weight: float | None) -> tuple[Floats, Floats]:
        """The first ten put into the order of the ranker's weighed score; without a weight, one from the other dialogues."""
        ranker = self.pair("ranker")
        out = tuple(one.copy() for one in scores)
        first = [top_k(one, N_READ).answers for one in scores]
        at = np.arange(len(self.right))[:, None]
        own = [one[at, places] for one, places in zip(scores, first, strict=True)]
        read = [np.where(one < -BELOW / 2, 0, one)[at, places] for one, places in zip(ranker, first, strict=True)]
        for name in np.unique(self.dialogue):
            rows = self.dialogue == name
            used = self._read_weight(own, read, first, ~rows) if weight is None else weight
            for k, one in enumerate(out):
                again = own[k][rows] + np.float32(used) * read[k][rows]
                lift = np.maximum(own[k][rows].min(axis=1) - again.min(axis=1), 0)[:, None]
                one[np.flatnonzero(rows)[:, None], first[k][rows]] = again + lift
        return out[0], out[1]

    def _read_weight(self, own: list[Floats], read: list[Floats], first: list[Any], rows: Marks) -> float:
        at = np.arange(len(self.right))[:, None]
        scores = np.concatenate([np.stack([own[k], read[k]], axis=-1)[rows] for k in (0, 1)])
        right = np.concatenate([self.right[at, first[k]][rows] for k in (0, 1)])
        lists = CandidateLists(scores, right, np.ones(right.shape, dtype=bool))
        by_own, by_read = choose_weights(lists, [str(d) for _ in (0, 1) for d in self.dialogue[rows]])
        return max(0.0, float(by_read / by_own)) if by_own > 0 else 0.0

    def rates(self, scores: tuple[Floats, Floats]) -> list[float]:
        """Success rates in percent: as shipped over all questions, new over those it can be told for."""
        rows = (np.ones(len(self.right), dtype=bool), self.is_told)
        return [
            100 * float(np.mean(success_at(ranks_from_scores(np.round(one, 4)[some], self.right[some]), k)))
            for one, some in zip(scores, rows, strict=True)
            for k in CUTS
        ]

    def against(self, scores: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> str:
        """Difference in the reciprocal rank of new questions, with a paired test."""
        one, two = (
            reciprocal_rank(ranks_from_scores(np.round(s[1], 4)[self.is_told], self.right[self.is_told]))
            for s in (scores, other)
        )
        if np.array_equal(one, two):
            return " none"
        found = compare_questions(100 * one, 100 * two)
        return f"{found.value:+5.1f} [{found.low:+.1f}, {found.high:+.1f}]"


def rows_of(asking: Asking, *, is_trained: bool) -> list[tuple[str, tuple[Floats, Floats]]]:
    """What is compared; the row "all parts" is what the others are held against."""
    rows = [(name, asking.pair(key)) for key, name in zip(PLAIN, PLAIN_NAMES, strict=True)]
    rows.append(("all parts, encoder as it is", asking.weighed("base", PARTS)))
    if not is_trained:
        return rows
    rows.append(("answer ranker q-A 1:10", asking.pair("ranker")))
    rows += [
        (f"trained encoder: {name}", asking.weighed("tuned", PARTS[:n])) for name, n in (("q-Q", 1), ("q-Q, q-A", 2))
    ]
    everything = asking.weighed("tuned", PARTS)
    rows.append(("all parts", everything))
    for name, gone in (
        ("sentences", ("question:sentences", "answer:sentences")),
        ("context", ("question:context", "answer:context")),
        ("words", ("words",)),
        ("q-A", tuple(part for part in PARTS if part.startswith("answer"))),
    ):
        rows.append((f"all parts without {name}", asking.weighed("tuned", [p for p in PARTS if p not in gone])))
    rows.append(("all parts, first ten re-ranked", asking.read_again(everything, None)))
    weights = np.array([DEFAULT_WEIGHTS.get(part, 0.0) for part in PARTS], dtype=np.float32)
    fixed = tuple(scores @ weights for scores in asking.pair("tuned"))
    rows.append(("default weights: fused", (fixed[0], fixed[1])))
    rows.append(("default weights: fused, n_read=10", asking.read_again((fixed[0], fixed[1]), DEFAULT_READ_WEIGHT)))
    return rows


def run(work: Callable[[Job], dict[str, Any]], jobs: list[Job], n_jobs: int) -> dict[str, dict[str, Any]]:
    """All jobs, several at a time where that is asked for."""
    if n_jobs == 1:
        return {job.name: work(job) for job in jobs}
    with ProcessPoolExecutor(n_jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        return dict(zip([job.name for job in jobs], pool.map(work, jobs), strict=True))


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval_parts")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DIALOMETER_DATA", "")) / "mdc")
    parser.add_argument("--train", action="store_true", help="measure what is trained, too")
    parser.add_argument("--only-train", action="store_true", help="fill the folder of scores and end")
    parser.add_argument("--scores", default="", help="folder that keeps the scores of trained models")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--cache", type=Path, default=None)
    parser.add_argument("--model", default="")
    return parser.parse_args(list(arguments))


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table."""
    chosen = parsed(arguments)
    files = chosen.data / "knowledge_base.csv", chosen.data / "dialogues_dev.csv"
    if not all(file.is_file() for file in files):
        print("skipped: DIALOMETER_DATA does not name a folder with mdc/")
        return 0
    kb = read_knowledge_base(files[0])
    asked = read_queries(files[1], kb)
    with tempfile.TemporaryDirectory() as folder:
        work = Work(chosen.device, cache=chosen.cache or Path(folder))
        names = [SHIPPED, *sorted(set(asked.dialogues))]
        jobs = [Job(name, str(files[0]), str(files[1]), work, chosen.model, chosen.scores) for name in names]
        is_trained = chosen.train or chosen.only_train
        found = run(trained, jobs, chosen.jobs) if is_trained else {name: {} for name in names}
        if chosen.only_train:
            return 0
        for name, one in run(scored, jobs, 1).items():
            found[name] |= one
    asking = Asking(asked, found, len(kb.answers))
    show(asking, rows_of(asking, is_trained=is_trained))
    return 0


def show(asking: Asking, rows: list[tuple[str, tuple[Floats, Floats]]]) -> None:
    """The table, with the difference in reciprocal rank from all parts together."""
    named = dict(rows)
    base = named.get("all parts", named["all parts, encoder as it is"])
    gone = {int(question) for one in asking.found.values() for question in one["gone"]}
    print(f"{len(gone)} recorded questions are repeated by a dialogue")
    print(
        f"{len(asking.right)} questions as shipped, {int(asking.is_told.sum())} new; success rates in percent, and the"
    )
    print("difference of 100 x MRR (new questions) from all parts together, with a 95% interval over questions\n")
    print(f"{'':34} {'as shipped':^20} {'new questions':^20}")
    print(f"{'retriever':34} {'@1':>6} {'@2':>6} {'@10':>6} {'@1':>6} {'@2':>6} {'@10':>6}   difference")
    for name, scores in rows:
        cells = " ".join(f"{rate:6.1f}" for rate in asking.rates(scores))
        told = "" if scores is base else asking.against(scores, base)
        print(f"{name:34} {cells}   {told}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
