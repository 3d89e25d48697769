"""The avatar template's knowledge base and dialogues, and the commands as people type them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dialometer.retrieval.kb_reading import read_knowledge_base
from dialometer.retrieval.queries import read_asked

sys.path.insert(0, str(Path(__file__).parent))

from retrieval_files import DIALOGUES, KB


@pytest.fixture(scope="session")
def kb() -> Any:
    return read_knowledge_base(KB)


@pytest.fixture(scope="session")
def asked(kb: Any) -> Any:
    return read_asked(DIALOGUES, kb)


@pytest.fixture(scope="session")
def type_in() -> Any:
    """Runs ``dialometer`` with arguments; gives what it printed."""

    def run(*arguments: Any, cwd: Path, code: int = 0, given: str = "") -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "dialometer", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=cwd,
            input=given,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def judged(type_in: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pooled study with simulated raters."""
    folder = tmp_path_factory.mktemp("judged")
    names = ("-r", "bm25", "-r", "tfidf", "-r", "random")
    type_in("retrieval", "pool", KB, DIALOGUES, "--out", "pooled", *names, "--depth", 3, "--seed", 5, cwd=folder)
    type_in("simulate", "pooled", "--raters", 60, "--seed", 1, cwd=folder)
    return folder / "pooled"
