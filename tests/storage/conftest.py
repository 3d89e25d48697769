"""A store with a registered study, on each database."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# The modules beside this one are shared by the tests here and by the processes they start, so both must find them.
sys.path.insert(0, str(Path(__file__).parent))

from storage_cases import register
from storage_processes import join_crew

from dialometer.storage import Store


@pytest.fixture
def store(study_url: str) -> Iterator[Store]:
    with Store.open(study_url) as opened:
        register(opened)
        yield opened


class Crew:
    """Processes of their own that begin a piece of work at the same moment."""

    n = 6

    def __init__(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.pool = spawn.Pool(self.n, initializer=join_crew, initargs=(spawn.Barrier(self.n),))

    def at_once(self, work: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What each of the processes gives back."""
        jobs = [self.pool.apply_async(work, arguments) for _ in range(self.n)]
        return [job.get(timeout=600) for job in jobs]


@pytest.fixture(scope="session")
def crew() -> Iterator[Crew]:
    started = Crew()
    with started.pool:
        yield started
    started.pool.join()
