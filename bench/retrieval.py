"""Retrieval beside its peers, in one run: ``python -m bench.retrieval``, or a part of it, as in ``… bench.retrieval serving``.

Questions per second of every retriever; BM25 over 200,000 questions beside rank-bm25 and bm25s; retrieval measures for 100,000
questions of 100 answers beside ranx and ir-measures; the nearest of 200,000 vectors beside the exact search; and encoding for so
many. ranx and ir-measures need an environment of their own, made on first use in the folder named by DIALOMETER_PEERS (a
temporary one otherwise) and left out with a message where that fails. Values are compared before anything is timed.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dialometer.neural.work import Work
from dialometer.retrieval.fusion import FusionParts, Shortlist
from dialometer.retrieval.knowledge_base import Answer, KnowledgeBase, assemble, read_knowledge_base
from dialometer.retrieval.queries import Query, read_queries
from dialometer.retrieval.retriever import FittedRetriever, make_retriever
from dialometer.retrieval.retrievers.fused import FittedFused, Fused
from dialometer.retrieval.vectors import NearestQuestions, cosines
from dialometer.stats.retrieval.metrics import (
    average_precision,
    ranks_from_scores,
    recall_at,
    reciprocal_rank,
    success_at,
)

N_LARGE = 200_000
N_JUDGED = 100_000
N_PER_QUESTION = 100
N_PEER_JUDGED = 20_000
CUTS = (1, 2, 10)
SEED = 3


def best_of(repeats: int, work: Callable[[], Any]) -> float:
    """Seconds of the fastest of some runs: the one least disturbed by other programs."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def line(work: str, peer: str, ours_s: float, peer_s: float, floor: float, note: str = "") -> dict[str, Any]:
    return {"work": work, "peer": peer, "ours_s": ours_s, "peer_s": peer_s, "floor": floor, "note": note}


def corpus() -> tuple[KnowledgeBase, list[Query], str]:
    """The Margarita corpus where it is, else as many made-up questions."""
    folder = Path(os.environ.get("DIALOMETER_DATA", "")) / "mdc"
    if (folder / "knowledge_base.csv").is_file():
        kb = read_knowledge_base(folder / "knowledge_base.csv")
        return kb, list(read_queries(folder / "dialogues_dev.csv", kb).queries), "Margarita corpus"
    kb, asked = made_up(900, 340, n_words=2_000)
    return kb, [Query(text) for text in asked], "made-up questions"


def made_up(n: int, n_asked: int, n_words: int = 50_000) -> tuple[KnowledgeBase, list[str]]:
    """Questions of twelve words and queries of eight, words as rare as Zipf says."""
    rng = np.random.default_rng(SEED)
    share = 1 / np.arange(1, n_words + 1)
    words = np.array([f"w{k}" for k in range(n_words)])
    questions = [" ".join(words[row]) for row in rng.choice(n_words, size=(n, 12), p=share / share.sum())]
    asked = [" ".join(words[row]) for row in rng.choice(n_words, size=(n_asked, 8), p=share / share.sum())]
    answers = [Answer(f"a{k}", f"answer {k:06d}") for k in range(n)]
    return assemble(answers, [(text, k) for k, text in enumerate(questions)]), asked


def speeds() -> None:
    """Questions per second, one batch of all; encoders without a cache, so that every question is really encoded."""
    kb, queries, name = corpus()
    print(f"questions per second, {len(queries)} questions, {len(kb.answers)} answers ({name})\n")
    print(f"{'retriever':34} {'fit':>9} {'batch':>10} {'one by one':>11}")
    for retriever, options in (
        ("random", {}),
        ("tfidf", {}),
        ("bm25", {}),
        ("encoder", {}),
        ("encoder-answer", {}),
        ("mixed", {}),
        ("context", {}),
        ("fused", {"n_tuning_epochs": 0}),
    ):
        begin = time.perf_counter()
        fitted = make_retriever(retriever, options).fit(kb)
        fit_s = time.perf_counter() - begin
        speed(f"{retriever}{' (encoder not trained)' if options else ''}", fitted, queries, fit_s)
    speed("ranker (not trained, reads 100)", untrained_ranker(kb), queries[:10], float("nan"))


def speed(name: str, fitted: FittedRetriever, queries: Sequence[Query], fit_s: float) -> None:
    """One line: in a batch, and one question after the other as visitors ask."""
    fitted.rank(queries[:2], 10)
    together = len(queries) / best_of(2, lambda: fitted.rank(queries, 10))
    few = queries[:20]
    alone = len(few) / best_of(1, lambda: [fitted.rank([query], 10) for query in few])
    fit = "-" if np.isnan(fit_s) else f"{fit_s:.2f}s"
    print(f"{name:34} {fit:>9} {together:10,.1f} {alone:11,.1f}", flush=True)


def untrained_ranker(kb: KnowledgeBase) -> FittedRetriever:
    """As quick as a trained one."""
    from dialometer.retrieval.retrievers.answer_ranker import AnswerRanker, FittedRanker  # noqa: PLC0415
    from dialometer.retrieval.retrievers.mixed import Mixed  # noqa: PLC0415
    from dialometer.retrieval.training.ranker import CrossEncoder  # noqa: PLC0415 - imports torch

    ranker = CrossEncoder.fresh("")
    ranker.network.eval()
    return FittedRanker(AnswerRanker(), kb, ranker, Path(), Mixed().fit(kb), Work())


def bm25_rows() -> list[dict[str, Any]]:
    """Seconds per 1,000 questions."""
    import bm25s  # noqa: PLC0415
    from rank_bm25 import BM25Okapi  # noqa: PLC0415

    kb, asked = made_up(N_LARGE, 2000)
    fitted = make_retriever("bm25").fit(kb)
    texts = [text.split() for text in kb.questions]
    first = fitted.rank(asked[:20], 10)
    peer = bm25s.BM25(backend="numba")
    peer.index(texts, show_progress=False)
    tokens = [text.split() for text in asked]
    found = peer.retrieve(tokens[:20], k=10, show_progress=False)
    if np.abs(np.asarray(found.scores) - first.scores).max() > 1e-3:
        raise SystemExit("BM25 scores differ from those of bm25s; timing them would mean nothing")
    ours = best_of(3, lambda: fitted.rank(asked, 10)) / len(asked) * 1000
    theirs = best_of(2, lambda: peer.retrieve(tokens, k=10, show_progress=False)) / len(asked) * 1000
    slow = BM25Okapi(texts)

    def rank_bm25() -> None:
        for query in tokens[:3]:
            scores = slow.get_scores(query)
            np.argpartition(-scores, 10)[:10]

    title = f"BM25, {N_LARGE:,} questions, best 10, 1,000 queries of 8 words"
    return [
        line(title, "rank-bm25", ours, best_of(2, rank_bm25) / 3 * 1000, 500, "peer timed on 3 queries, times 333"),
        line(title, "bm25s (numba)", ours, theirs, 0),
    ]


def judged(n: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Scores without ties and one to three right answers for each question."""
    rng = np.random.default_rng(SEED)
    scores = rng.random((n, N_PER_QUESTION))
    right = np.zeros((n, N_PER_QUESTION), dtype=bool)
    for k in range(3):
        right[np.arange(n), rng.integers(N_PER_QUESTION, size=n)] |= rng.random(n) < (1.0, 0.5, 0.2)[k]
    return scores, right


def measures(scores: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> list[float]:
    """The eight measures of the paper, as the peers give them."""
    ranks = ranks_from_scores(scores, right)
    values = [recall_at(ranks, k) for k in CUTS]
    values += [reciprocal_rank(ranks), average_precision(ranks)]
    values += [success_at(ranks, k) for k in CUTS]
    return [float(np.mean(value)) for value in values]


def measure_rows() -> list[dict[str, Any]]:
    """From scores and marks to eight means; the peers start from dictionaries that are already made."""
    python = peer_python()
    if python is None:
        return []
    scores, right = judged(N_JUDGED)
    ours = best_of(5, lambda: measures(scores, right))
    scale = N_JUDGED / N_PEER_JUDGED
    title = f"8 measures, {N_JUDGED:,} questions x {N_PER_QUESTION} answers"
    note = f"peer timed on {N_PEER_JUDGED:,} questions, times {scale:g}"
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "scores.npy", scores[:N_PEER_JUDGED])
        np.save(Path(folder) / "right.npy", right[:N_PEER_JUDGED])
        expected = measures(scores[:N_PEER_JUDGED], right[:N_PEER_JUDGED])
        for peer in ("ranx", "ir-measures"):
            script = Path(__file__).with_name("_retrieval_peers.py")
            done = subprocess.run([python, script, peer, folder], check=True, capture_output=True, text=True)
            told = json.loads(done.stdout.splitlines()[-1])
            if np.abs(np.array(told["values"]) - expected).max() > 1e-6:
                raise SystemExit(f"measures differ from those of {peer}; timing them would mean nothing")
            rows.append(line(title, peer, ours, told["clock_s"] * scale, 30, note))
            if "measures_only_s" in told:
                again = f"{peer}, its objects made before"
                rows.append(line(title, again, ours, told["measures_only_s"] * scale, 0, note))
    return rows


def peer_python() -> Path | None:
    """The interpreter of the peers' environment, made where it is missing; None where that cannot be done."""
    folder = Path(os.environ.get("DIALOMETER_PEERS", Path(tempfile.gettempdir()) / "dialometer-peers")) / "ir"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print("making an environment for ranx and ir-measures …", file=sys.stderr, flush=True)
        try:
            venv.create(folder, with_pip=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", "ranx", "ir-measures"], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"skipped ranx and ir-measures: {error}")
            return None
        (folder / "ready").touch()
    return python


def nearest_rows() -> list[dict[str, Any]]:
    """The best 10 of 200,000 vectors for 200 queries, beside the exact product in blocks."""
    rng = np.random.default_rng(SEED)
    centres = rng.normal(size=(2_000, 384)).astype(np.float32)
    vectors = centres[rng.integers(2_000, size=N_LARGE)] + 0.5 * rng.normal(size=(N_LARGE, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = vectors[rng.integers(N_LARGE, size=200)]
    kb = assemble([Answer(f"{k}", f"{k:06d}") for k in range(N_LARGE)], [(f"q{k:06d}", k) for k in range(N_LARGE)])
    begin = time.perf_counter()
    nearest = NearestQuestions(kb, vectors)
    print(f"\nindex of {N_LARGE:,} vectors: {time.perf_counter() - begin:.0f} s")
    found = nearest.rank(queries, 10).answers

    def exact() -> npt.NDArray[np.int64]:
        best = [np.argpartition(-cosines(queries[s : s + 50], vectors), 10, axis=1)[:, :10] for s in range(0, 200, 50)]
        return np.concatenate(best)

    shared = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.tolist(), exact().tolist(), strict=True)])
    ours = best_of(3, lambda: nearest.rank(queries, 10))
    note = f"{100 * shared:.1f}% of the exact best 10 found"
    return [line(f"nearest of {N_LARGE:,}, best 10, 200 queries", "exact product", ours, best_of(2, exact), 0, note)]


class _ManyVectors:
    """An encoder that really encodes questions, and gives a large knowledge base vectors near those of the corpus."""

    def __init__(self, texts: Sequence[str]) -> None:
        from dialometer.neural.encoder import TextEncoder  # noqa: PLC0415 - imports torch

        self.own = TextEncoder(in_8_bits=True)
        self.known = self.own.encode(texts)
        self.rng = np.random.default_rng(SEED)

    def encode(self, texts: Sequence[str], what: str = "") -> npt.NDArray[np.float32]:
        if not what:
            return self.own.encode(texts)
        noise = self.rng.normal(size=(len(texts), self.known.shape[1])).astype(np.float32) / 20
        vectors = self.known[self.rng.integers(len(self.known), size=len(texts))] + noise
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def serving() -> None:
    """One question at a time of the fused retriever over 200,000 answers; nothing comes from a cache."""
    kb, asked, _ = corpus()
    questions = [kb.questions[k % len(kb.questions)] for k in range(N_LARGE)]
    pairs = [(f"{text} {k}", k) for k, text in enumerate(questions)]
    large = assemble([Answer(f"{k}", f"{k:06d}") for k in range(N_LARGE)], pairs)
    encoder: Any = _ManyVectors(kb.questions)
    parts = FusionParts(large, encoder)
    parts.shortlist = Shortlist(parts)
    fitted = FittedFused(Fused(n_tuning_epochs=0), large, parts, None)
    queries = asked[:100]
    clock, processor, short = [], [], []
    for query in queries:
        begin = time.perf_counter(), time.process_time()
        short.append(fitted.rank([query], 10).answers[0])
        clock.append(1000 * (time.perf_counter() - begin[0]))
        processor.append(1000 * (time.process_time() - begin[1]))
    begin_s = time.process_time()
    for query in queries:
        fitted.prepare([query])
    texts_ms = 1000 * (time.process_time() - begin_s) / len(queries)
    parts.shortlist = None
    begin_s = time.process_time()
    exact = [fitted.rank([query], 10).answers[0] for query in queries[:20]]
    exact_ms = 1000 * (time.process_time() - begin_s) / len(exact)
    same = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(short, exact, strict=False)])
    first = np.mean([a[0] == b[0] for a, b in zip(short, exact, strict=False)])
    print(
        f"\nfused, one question over {N_LARGE:,} answers: {np.median(clock):.0f} ms (95% within {np.quantile(clock, 0.95):.0f});"
    )
    print(
        f"of the processor {np.median(processor):.0f} ms, {texts_ms:.0f} of them encoding; all answers scored: {exact_ms:.0f} ms"
    )
    print(f"the first answer is the exact one in {100 * first:.0f}%, {100 * same:.1f}% of the exact ten are found")


def encoding() -> None:
    """A sample is timed, then the same again from the cache on disk."""
    from dialometer.neural.encoder import TextEncoder  # noqa: PLC0415 - imports torch

    kb, _, _ = corpus()
    texts = [f"{text} ({k})" for k in range(3) for text in kb.texts]
    with tempfile.TemporaryDirectory() as folder:
        encoder = TextEncoder(work=Work(cache=Path(folder)))
        encoder.encode(texts[:64])
        fresh_s = best_of(1, lambda: encoder.encode(texts[64:]))
        cached_s = best_of(3, lambda: encoder.encode(texts[64:]))
    each = len(texts) - 64
    print(f"\nencoding: {each / fresh_s:,.0f} answers per second, {each / cached_s:,.0f} from the cache on disk;")
    print(
        f"{N_LARGE:,} answers take {N_LARGE / each * fresh_s / 60:.0f} minutes once, then {N_LARGE / each * cached_s:.0f} s"
    )


def beside_peers() -> bool:
    """Prints the rows beside peers; whether every ratio reaches its floor."""
    rows = [*bm25_rows(), *measure_rows(), *nearest_rows()]
    print(f"\n{'work':62} {'peer':32} {'ours':>9} {'peer':>10} {'ratio':>9} {'floor':>6}  note")
    for row in rows:
        floor = f"{row['floor']:g}" if row["floor"] else "-"
        print(
            f"{row['work']:62} {row['peer']:32} {row['ours_s']:8.3f}s {row['peer_s']:9.2f}s "
            f"{row['peer_s'] / row['ours_s']:8.1f}x {floor:>6}  {row['note']}"
        )
    return all(row["peer_s"] / row["ours_s"] >= row["floor"] for row in rows)


PARTS: dict[str, Callable[[], bool | None]] = {
    "speeds": speeds,
    "encoding": encoding,
    "serving": serving,
    "peers": beside_peers,
}


def main(names: Sequence[str]) -> int:
    """Print everything, or the parts that are named; 1 where a ratio lies below its floor."""
    print(f"load at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    reached = [PARTS[name]() for name in names or PARTS]
    print(f"\nmost memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")
    return int(False in reached)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
