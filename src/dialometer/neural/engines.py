"""Where work that falls into parts is done: in this process, or on a Ray cluster when one machine is not enough.

Parts and the order in which their results come back do not depend on the engine, so both give the same numbers.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

from dialometer.errors import DialometerError
from dialometer.registry import did_you_mean

Shared = TypeVar("Shared")
Part = TypeVar("Part")
Result = TypeVar("Result")


class Engine(Protocol):
    """Does one piece of work for every part, all of which need the same ``shared`` data."""

    def run(self, work: Callable[[Shared, Part], Result], shared: Shared, parts: Iterable[Part]) -> Iterator[Result]:
        """Results in the order of the parts, as they become ready. ``work`` is a function of a module.

        Parts are taken as they are needed, so that those of a large file need not be in memory together.
        """
        ...


class Local:
    """One part after the other in this process."""

    def __repr__(self) -> str:
        return "LOCAL"

    def run(self, work: Callable[[Shared, Part], Result], shared: Shared, parts: Iterable[Part]) -> Iterator[Result]:
        return (work(shared, part) for part in parts)


class InThreads:
    """Parts in threads of this process, for work that holds no lock: compiled loops and matrix products.

    Each thread computes its products alone. Linear algebra that shares one product among threads makes them wait for each
    other, which costs more than it gains as soon as other programs want the processor too.
    """

    def run(self, work: Callable[[Shared, Part], Result], shared: Shared, parts: Iterable[Part]) -> Iterator[Result]:
        n_threads = n_threads_allowed()
        if n_threads < 2:
            yield from (work(shared, part) for part in parts)
            return
        waiting: deque[Future[Result]] = deque()
        with single_products(), ThreadPoolExecutor(n_threads) as threads:
            for part in parts:
                if len(waiting) > n_threads:
                    yield waiting.popleft().result()
                waiting.append(threads.submit(work, shared, part))
            while waiting:
                yield waiting.popleft().result()


def n_threads_allowed() -> int:
    """How many threads to use: OMP_NUM_THREADS where it is set, as linear algebra does and Ray for its workers."""
    setting = os.environ.get("OMP_NUM_THREADS", "")
    return int(setting) if setting.isdigit() and int(setting) else os.cpu_count() or 1


def single_products() -> AbstractContextManager[Any]:
    """Linear algebra in one thread: small products are many times slower when several threads share each of them."""
    library: Any = importlib.import_module("threadpoolctl")  # comes with scikit-learn
    limits: AbstractContextManager[Any] = library.threadpool_limits(1, user_api="blas")
    return limits


class InProcesses:
    """Parts in processes of this machine, for work in Python itself; each computes with one thread."""

    def __init__(self, n_processes: int = 0) -> None:
        self.n_processes = n_processes or os.cpu_count() or 1
        self._pool: ProcessPoolExecutor | None = None

    def run(self, work: Callable[[Shared, Part], Result], shared: Shared, parts: Iterable[Part]) -> Iterator[Result]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.n_processes, get_context("spawn"), initializer=one_thread)
        waiting: deque[Future[Result]] = deque()
        for part in parts:
            if len(waiting) > 2 * self.n_processes:
                yield waiting.popleft().result()
            waiting.append(self._pool.submit(work, shared, part))
        while waiting:
            yield waiting.popleft().result()

    def close(self) -> None:
        """Ends the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def one_thread() -> None:
    """From here on numpy and polars compute with one thread in this process, where they are not loaded yet."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ[name] = "1"


class OnRay:
    """Parts on the workers of a Ray cluster; what they share is sent to each machine once.

    ``address`` names a running cluster (RAY_ADDRESS is heeded too); without one, a small Ray is started on this machine
    with ``n_workers``, and ended by :meth:`close`. No more than two parts a worker wait in memory.
    """

    def __init__(self, address: str = "", n_workers: int = 0) -> None:
        try:
            import ray  # noqa: PLC0415 (an extra, and very heavy)
        except ImportError as error:
            raise DialometerError("Ray is not installed", remedy="pip install 'dialometer[ray]'") from error
        self._ray: Any = ray
        self._is_own = not ray.is_initialized()
        if self._is_own:
            where = address or os.environ.get("RAY_ADDRESS", "")
            options: dict[str, Any] = {"address": where} if where else {"num_cpus": n_workers or None}
            if not where:
                options |= {"include_dashboard": False, "address": "local"}
            try:
                ray.init(log_to_driver=False, logging_level=logging.ERROR, configure_logging=False, **options)
            except (ConnectionError, OSError, RuntimeError, ValueError) as error:
                raise DialometerError(
                    f"Ray cannot be reached or started: {error}",
                    where=where,
                    remedy="check the address, or leave --engine ray out",
                ) from error

    @property
    def n_workers(self) -> int:
        """How many parts run at a time."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def run(self, work: Callable[[Shared, Part], Result], shared: Shared, parts: Iterable[Part]) -> Iterator[Result]:
        remote = self._ray.remote(max_retries=2)(_one_part)
        kept = self._ray.put(shared)
        waiting: list[Any] = []
        for part in parts:
            if len(waiting) == 2 * self.n_workers:
                yield self._ray.get(waiting.pop(0))
            waiting.append(remote.remote(work, kept, part))
        while waiting:
            yield self._ray.get(waiting.pop(0))

    def close(self) -> None:
        """Ends the Ray that was started here; a cluster that was there before is left alone."""
        if self._is_own and self._ray.is_initialized():
            self._ray.shutdown()

    def __enter__(self) -> OnRay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


LOCAL: Engine = Local()
THREADS: Engine = InThreads()
ENGINES = ("local", "ray")


def open_engine(name: str, *, address: str = "", n_workers: int = 0) -> Engine:
    """The engine of that name; one on Ray must be closed by its user."""
    if name == "local":
        return LOCAL
    if name == "ray":
        return OnRay(address, n_workers)
    raise DialometerError(f"unknown engine '{name}'", remedy=did_you_mean(name, list(ENGINES)))


@contextmanager
def engine_of(name: str, address: str = "", *, local: Engine = LOCAL) -> Iterator[Engine]:
    """The engine of that name, ended afterwards where it was started here; ``local`` is what works on this machine."""
    opened = local if name == "local" else open_engine(name, address=address)
    try:
        yield opened
    finally:
        if isinstance(opened, OnRay | InProcesses):
            opened.close()


def _one_part(work: Callable[[Any, Any], Any], shared: Any, part: Any) -> Any:
    return work(shared, part)
