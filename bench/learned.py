"""The learned evaluator's arithmetic beside peers, in one run: ``python -m bench.learned [ROW …]``.

pyDVL and cleanlab need environments of their own; they are made on first use in the folder named by DIALOMETER_PEERS (a
temporary one if unset). Values are compared before times wherever a peer computes the same thing. A peer that would take
minutes is timed on a part of the work that it does one by one; the table says on which.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dialometer.learned.cmade.pairwise import all_pairs_lambdas
from dialometer.learned.cmade.shapley import knn_shapley

K = 50
N_DEVELOPMENT = 400
PEERS = {"pydvl": ["numpy<2", "pydvl"], "cleanlab": ["cleanlab", "datasets"]}
Floats = npt.NDArray[np.float64]
Row = dict[str, Any]


class Took(NamedTuple):
    """Seconds by the clock and of processor time; the latter counts every thread, and no waiting for other programs."""

    clock_s: float
    cpu_s: float

    def times(self, factor: float) -> Took:
        return Took(self.clock_s * factor, self.cpu_s * factor)


def best_of(repeats: int, work: Callable[[], object]) -> Took:
    """The fastest of some runs: the one least disturbed by other programs."""
    clock, cpu = [], []
    for _ in range(repeats):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        work()
        clock.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - begin_cpu)
    return Took(min(clock), min(cpu))


def row(work: str, peer: str, ours: Took, theirs: Took, floor: float, note: str = "") -> Row:
    return {
        "work": work,
        "peer": peer,
        "ours_s": ours.clock_s,
        "peer_s": theirs.clock_s,
        "ratio": theirs.clock_s / ours.clock_s,
        "cpu_ratio": theirs.cpu_s / ours.cpu_s,
        "floor": floor,
        "note": note,
    }


def peer_python(name: str) -> Path:
    """The interpreter of a peer's environment, made and filled where it is missing."""
    folder = Path(os.environ.get("DIALOMETER_PEERS", Path(tempfile.gettempdir()) / "dialometer-peers")) / name
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"making an environment for {name} …", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS[name]], check=True)
        (folder / "ready").touch()
    return python


def ask_peer(name: str, folder: Path, python: Path | None = None) -> Took:
    """What a peer measured in its own process."""
    script = Path(__file__).with_name("_learned_peers.py")
    done = subprocess.run(
        [python or peer_python(name), script, name, folder], check=True, capture_output=True, text=True
    )
    return Took(*json.loads(done.stdout.splitlines()[-1]))


class Data:
    """Rated dialogues in a feature space, development dialogues half of which the experts preferred."""

    def __init__(self, n: int, d: int, n_development: int = N_DEVELOPMENT) -> None:
        rng = np.random.default_rng(7)
        self.features = rng.normal(size=(n, d)).astype(np.float32)
        self.ratings = rng.integers(0, 2, n)
        self.development = rng.normal(size=(n_development, d)).astype(np.float32)
        half = n_development // 2
        self.pairs = [(i, i + half) for i in range(half)]
        self.wanted = np.repeat([1, 0], half)

    def save(self, folder: Path, n_development: int = 0) -> None:
        """For a peer; of fewer development dialogues, as many of each kind."""
        half, part = len(self.pairs), (n_development or 2 * len(self.pairs)) // 2
        used = np.r_[0:part, half : half + part]
        np.save(folder / "features.npy", self.features)
        np.save(folder / "labels.npy", self.ratings)
        np.save(folder / "development.npy", self.development[used])
        np.save(folder / "wanted.npy", self.wanted[used])

    def ours(self, n_development: int = 0) -> Floats:
        pairs = self.pairs[: n_development // 2] if n_development else self.pairs
        return knn_shapley(self.features, self.ratings, self.development, pairs, K)


def plain_loop(data: Data) -> Floats:
    """Theorem 1 as printed, in Python: distances, a sort and the recursion for each development dialogue."""
    values = np.zeros(len(data.ratings))
    n = len(values)
    for better, worse in data.pairs:
        for query, sign in ((better, 1), (worse, -1)):
            order = np.argsort(np.linalg.norm(data.features - data.development[query], axis=1), kind="stable")
            s = data.ratings[order[-1]] / n
            values[order[-1]] += sign * s
            for m in range(n - 1, 0, -1):
                s += (data.ratings[order[m - 1]] - data.ratings[order[m]]) / K * min(K, m) / m
                values[order[m - 1]] += sign * s
    return values / len(data.pairs)


def check_pydvl(data: Data, theirs: Floats, n_development: int) -> None:
    """With two classes, ours and pyDVL's mean over development dialogues differ by a known shift and factor only."""
    n_pairs = n_development // 2
    shift = min(K, len(data.ratings)) / (K * len(data.ratings))
    expected = (data.ours(n_development) * n_pairs + n_pairs * shift) / n_development
    worst = float(np.abs(expected - theirs).max())
    if worst > 1e-9:
        # Two points at almost the same distance may change places where distances are rounded differently.
        n_off = int((np.abs(expected - theirs) > 1e-9).sum())
        print(f"{n_off} of {len(theirs)} values differ, by {worst:.1e} at most", file=sys.stderr)
        if worst > 1e-5 or np.corrcoef(expected, theirs)[0, 1] < 0.999999:
            raise SystemExit("values differ from pyDVL's; timing them would mean nothing")


def small_rows() -> list[Row]:
    data = Data(3608, 768)
    np.testing.assert_allclose(data.ours(), plain_loop(data), atol=1e-6)
    with tempfile.TemporaryDirectory() as folder:
        data.save(Path(folder))
        pydvl_took = ask_peer("pydvl", Path(folder))
        check_pydvl(data, np.load(Path(folder) / "pydvl.npy"), N_DEVELOPMENT)
        cleanlab_took = ask_peer("cleanlab", Path(folder))
    ours_took = best_of(7, data.ours)
    loop_took = best_of(1, lambda: plain_loop(data))
    title = f"KNN-Shapley, 3,608 ratings, d = 768, {N_DEVELOPMENT} development dialogues"
    return [
        row(title, "plain loop", ours_took, loop_took, 40),
        row(title, "pyDVL", ours_took, pydvl_took, 30),
        row(title, "cleanlab", ours_took, cleanlab_took, 8, "its own task: all ratings are its development set"),
    ]


def large_rows() -> list[Row]:
    data = Data(100_000, 384)
    n_timed = 20
    with tempfile.TemporaryDirectory() as folder:
        data.save(Path(folder), n_timed)
        pydvl_took = ask_peer("pydvl", Path(folder)).times(N_DEVELOPMENT / n_timed)
        check_pydvl(data, np.load(Path(folder) / "pydvl.npy"), n_timed)
    title = f"KNN-Shapley, 100,000 ratings, d = 384, {N_DEVELOPMENT} development dialogues"
    note = f"peer timed on {n_timed} development dialogues, scaled"
    return [row(title, "pyDVL", best_of(3, data.ours), pydvl_took, 60, note)]


@contextmanager
def watched_memory(peak: dict[str, float]) -> Iterator[None]:
    """Notes how much memory of its own (not counting mapped files) the process grows by, in GB."""
    ended = threading.Event()

    def own() -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 2**20

    before = own()

    def watch() -> None:
        while not ended.wait(0.05):
            peak["gb"] = max(peak.get("gb", 0.0), own() - before)

    thread = threading.Thread(target=watch)
    thread.start()
    yield
    ended.set()
    thread.join()


def million_rows(n: int = 1_000_000, d: int = 384, n_development: int = 128) -> list[Row]:
    """A file that is mapped into memory; the peer does only the two things that cannot be left out."""
    rng = np.random.default_rng(8)
    small = Data(10, d, n_development)
    ratings = rng.integers(1, 6, n).astype(np.float64)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "features.npy"
        features = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=(n, d))
        for start in range(0, n, 50_000):
            features[start : start + 50_000] = rng.standard_normal((min(50_000, n - start), d), dtype=np.float32)
        features.flush()
        features = np.load(file, mmap_mode="r")

        def product_and(sort: Callable[[Any], Any]) -> None:
            for start in range(0, n_development, 64):
                for one in small.development[start : start + 64] @ features.T:
                    sort(one)

        told: list[tuple[int, int]] = []
        peak: dict[str, float] = {}
        with watched_memory(peak):
            ours_took = best_of(
                2,
                lambda: knn_shapley(
                    features, ratings, small.development, small.pairs, K, report=lambda *now: told.append(now)
                ),
            )
        sort_took = best_of(1, lambda: product_and(np.sort))
        order_took = best_of(1, lambda: product_and(np.argsort))
    title = f"KNN-Shapley, {n:,} ratings, d = {d}, {n_development} development dialogues"
    note = f"at most 2.5 x slower allowed; {peak['gb']:.1f} GB of memory beside the mapped file, progress told {len(told)} times"
    return [
        row(title, "matrix product + numpy.sort", ours_took, sort_took, 0.4, note),
        row(
            title,
            "matrix product + numpy.argsort",
            ours_took,
            order_took,
            0.4,
            "the order is needed, not only the sorted values",
        ),
    ]


def blocked_lambdas(outputs: Floats, ratings: Floats, n_rows: int, block: int = 250) -> Floats:
    """Theorem 2 by blocks of all pairs in numpy, for the first rows."""
    result = np.empty(n_rows)
    for start in range(0, n_rows, block):
        rows = slice(start, start + block)
        wins = 1.0 / (1.0 + np.exp(outputs[None, :] - outputs[rows, None]))
        gap = ratings[rows, None] - ratings[None, :]
        result[rows] = np.where(gap > 0, wins - 1.0, np.where(gap < 0, wins, 0.0)).sum(axis=1)
    return result


def lambda_rows() -> list[Row]:
    n, n_timed = 100_000, 1000
    rng = np.random.default_rng(9)
    outputs = 2 * rng.normal(size=n)
    rows = []
    for kind, ratings in (("5 levels", rng.integers(1, 6, n).astype(float)), ("smoothed ratings", rng.random(n))):
        found: list[Floats] = []
        peer = best_of(1, lambda r=ratings, f=found: f.append(blocked_lambdas(outputs, r, n_timed))).times(n / n_timed)
        worst = float(np.abs(all_pairs_lambdas(outputs, ratings)[0][:n_timed] - found[0]).max())
        if worst > 1e-6:
            raise SystemExit(f"lambdas differ by {worst:.1e}; timing them would mean nothing")
        ours = best_of(3, lambda r=ratings: all_pairs_lambdas(outputs, r))
        note = f"largest difference {worst:.0e}; peer timed on {n_timed:,} dialogues, scaled"
        rows.append(row(f"all-pairs gradient, 100,000 dialogues, {kind}", "blocked numpy", ours, peer, 100, note))
    return rows


ROWS: dict[str, Callable[[], list[Row]]] = {
    "small": small_rows,
    "large": large_rows,
    "million": million_rows,
    "lambdas": lambda_rows,
}


def rows(wanted: list[str] | None = None) -> list[Row]:
    """What was timed: seconds here and there, their ratio, and the floor it must not fall below."""
    return [line for name in wanted or ROWS for line in ROWS[name]()]


def print_rows(table: list[Row]) -> int:
    """The table; 1 where a ratio lies below its floor by the clock and by processor time."""
    print(f"{'work':66} {'peer':32} {'ours':>9} {'peer':>9} {'ratio':>8} {'by cpu':>8} {'floor':>6}  note", flush=True)
    for line in table:
        print(
            f"{line['work']:66} {line['peer']:32} {line['ours_s']:8.3f}s {line['peer_s']:8.2f}s "
            f"{line['ratio']:7.1f}x {line['cpu_ratio']:7.1f}x {line['floor']:>6g}  {line['note']}"
        )
    return int(any(max(line["ratio"], line["cpu_ratio"]) < line["floor"] for line in table))


def main() -> int:
    """Every row, or those named."""
    return print_rows(rows([name for name in sys.argv[1:] if name in ROWS]))


if __name__ == "__main__":
    sys.exit(main())
