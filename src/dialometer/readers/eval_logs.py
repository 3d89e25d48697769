"""Logs of Inspect as it packs them: a zip (``.eval``) with a header and one JSON file for each sample, read as lines of JSON."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dialometer.errors import DialometerError
from dialometer.readers.containers.unpacking import DAMAGED, Allowance, read_entry
from dialometer.readers.containers.workbook import ZIP_MAGIC
from dialometer.readers.containers.zstandard import METHOD, read_zstandard

_HEADERS = ("header.json", "_journal/start.json", "start.json")
"""Where versions of Inspect keep what is known of the whole evaluation; the first one that is there counts."""
_SAMPLES = "samples/"
_REMEDY = "write it as JSON: inspect log convert FILE --to json --output-dir logs"


class EvalLogError(DialometerError):
    """A packed log that cannot be read."""


def is_eval_log(path: Path) -> bool:
    """Whether a file is a packed log, by its content and its name."""
    if path.suffix.lower() != ".eval" or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(ZIP_MAGIC)) == ZIP_MAGIC


def log_lines(path: Path) -> Iterator[bytes]:
    """A line of JSON for each sample: what is known of the evaluation, and a list with the one sample."""
    try:
        allowance = Allowance(path)
        with zipfile.ZipFile(path) as packed:
            names = packed.namelist()
            header = next((name for name in _HEADERS if name in names), None)
            if header is None:
                raise EvalLogError("the log has no header", where=str(path), remedy=_REMEDY)
            about = json.loads(_content(packed, header, allowance))
            known = about.get("eval") if isinstance(about, dict) else None
            for name in sorted(name for name in names if name.startswith(_SAMPLES) and name.endswith(".json")):
                sample = json.loads(_content(packed, name, allowance))
                yield json.dumps(_without_nan({"eval": known, "samples": [_needed(sample)]})).encode() + b"\n"
    except (OSError, ValueError, LookupError, RecursionError, *DAMAGED) as error:
        reason = "it is packed in a way that cannot be read here" if isinstance(error, NotImplementedError) else error
        raise EvalLogError(f"the log cannot be read: {reason}", where=str(path), remedy=_REMEDY) from error


def _content(packed: zipfile.ZipFile, name: str, allowance: Allowance) -> bytes:
    entry = packed.getinfo(name)
    is_zstandard = entry.compress_type == METHOD
    return read_zstandard(packed, entry, allowance) if is_zstandard else read_entry(packed, entry, allowance)


def _needed(sample: Any) -> Any:
    """A sample without the record of events, which repeats the messages many times over."""
    return {name: value for name, value in sample.items() if name != "events"} if isinstance(sample, dict) else sample


def _without_nan(value: Any) -> Any:
    """Python reads and writes NaN, JSON has none."""
    if isinstance(value, dict):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
