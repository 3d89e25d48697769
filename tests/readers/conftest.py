"""Small files made in the tests, and what a reading says about them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialometer.errors import Problem, ReadError
from dialometer.readers import read_dialogues


@pytest.fixture
def a_file(tmp_path: Path) -> Callable[[str, Any], Path]:
    """Write text, bytes or (as one JSON document) anything else under a name; gzipped where it ends in .gz."""

    def write(name: str, content: Any) -> Path:
        path = tmp_path / name
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        data = text.encode() if isinstance(text, str) else text
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


@pytest.fixture
def problems_in() -> Callable[..., list[Problem]]:
    """All problems that reading a file to its end reports."""

    def read(path: Path, format: str | None = None, **how: Any) -> list[Problem]:
        with pytest.raises(ReadError) as caught:
            list(read_dialogues(path, format, **how))
        return list(caught.value.problems)

    return read
