"""Retrieval measures by peers in an environment of their own: run by ``bench.retrieval``, prints what it found as JSON.

Called as ``python _retrieval_peers.py NAME FOLDER``; the folder holds ``scores.npy`` and ``right.npy``.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def as_dicts(folder: Path) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """What both peers take: dictionaries of dictionaries. Making them is not timed."""
    scores, right = np.load(folder / "scores.npy"), np.load(folder / "right.npy")
    names = [f"d{k}" for k in range(scores.shape[1])]
    qrels = {f"q{row}": {names[k]: 1 for k in np.flatnonzero(marks).tolist()} for row, marks in enumerate(right)}
    run = {f"q{row}": dict(zip(names, line, strict=True)) for row, line in enumerate(scores.tolist())}
    return qrels, run


def ranx(folder: Path) -> dict[str, Any]:
    """``evaluate(Qrels(qrels), Run(run), metrics)``; its compiled functions are warmed up before."""
    from ranx import Qrels, Run, evaluate  # noqa: PLC0415

    metrics = ["recall@1", "recall@2", "recall@10", "mrr", "map", "hit_rate@1", "hit_rate@2", "hit_rate@10"]
    qrels, run = as_dicts(folder)
    some = list(qrels)[:50]
    evaluate(Qrels({q: qrels[q] for q in some}), Run({q: run[q] for q in some}), metrics)
    start = time.perf_counter(), time.process_time()
    made = Qrels(qrels), Run(run)
    between = time.perf_counter()
    found = evaluate(*made, metrics)
    return {
        "clock_s": time.perf_counter() - start[0],
        "cpu_s": time.process_time() - start[1],
        "measures_only_s": time.perf_counter() - between,
        "values": [float(found[name]) for name in metrics],
    }


def ir_measures(folder: Path) -> dict[str, Any]:
    """``calc_aggregate(measures, qrels, run)``, which calls trec_eval's code."""
    import ir_measures as peer  # noqa: PLC0415
    from ir_measures import AP, RR, R, Success  # noqa: PLC0415

    measures = [R @ 1, R @ 2, R @ 10, RR, AP, Success @ 1, Success @ 2, Success @ 10]
    qrels, run = as_dicts(folder)
    start = time.perf_counter(), time.process_time()
    found = peer.calc_aggregate(measures, qrels, run)
    return {
        "clock_s": time.perf_counter() - start[0],
        "cpu_s": time.process_time() - start[1],
        "values": [float(found[measure]) for measure in measures],
    }


if __name__ == "__main__":
    print(json.dumps({"ranx": ranx, "ir-measures": ir_measures}[sys.argv[1]](Path(sys.argv[2]))))
