"""The avatar template's knowledge base and dialogues, and the commands as people type them."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from dialometer.cli import main
from dialometer.retrieval.knowledge_base import read_knowledge_base
from dialometer.retrieval.queries import read_queries

sys.path.insert(0, str(Path(__file__).parent))

from retrieval_files import DIALOGUES, KB


@pytest.fixture(scope="session")
def kb() -> Any:
    return read_knowledge_base(KB)


@pytest.fixture(scope="session")
def asked(kb: Any) -> Any:
    return read_queries(DIALOGUES, kb)


@dataclass(frozen=True)
class Done:
    """What a command printed."""

    stdout: str
    stderr: str


def typed(*arguments: Any, cwd: Path, code: int = 0, given: str = "") -> Done:
    """``dialometer`` with arguments, by its own entry point in this process: starting Python anew takes longer than the work."""
    out, err = io.StringIO(), io.StringIO()
    ended = 0
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["dialometer", *map(str, arguments)]),
        mock.patch.object(sys, "stdin", io.StringIO(given)),
    ):
        try:
            main()
        except SystemExit as left:
            ended = left.code if isinstance(left.code, int) else 0
    assert ended == code, out.getvalue() + err.getvalue()
    return Done(out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def type_in() -> Any:
    """Runs ``dialometer`` with arguments; gives what it printed."""
    return typed


@pytest.fixture(scope="session")
def judged(type_in: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pooled study with simulated raters."""
    folder = tmp_path_factory.mktemp("judged")
    names = ("-r", "bm25", "-r", "tfidf", "-r", "random")
    type_in("retrieval", "pool", KB, DIALOGUES, "--out", "pooled", *names, "--depth", 3, "--seed", 5, cwd=folder)
    type_in("simulate", "pooled", "--raters", 60, "--seed", 1, cwd=folder)
    return folder / "pooled"
