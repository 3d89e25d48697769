"""Parquet and Arrow files, and folders of the ``datasets`` library, as lines of JSON: what every reader and importer can read.

``datasets`` writes Arrow *streams* (``data-00000-of-00001.arrow`` beside ``dataset_info.json``), one folder for each split;
repositories of data sets hold Parquet files. All are read by polars, part by part, from this computer only.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import re
import subprocess  # nosec B404  # see _tried_elsewhere
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialometer.errors import DialometerError
from dialometer.readers.containers.unpacking import Allowance

if TYPE_CHECKING:
    import polars as pl

N_PER_PART = 2_000
"""Rows that are unpacked at a time."""
MAX_FILES = 10_000
SUFFIXES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_PARQUET, _ARROW_FILE, _ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
_INFO, _STATE, _DICT = "dataset_info.json", "state.json", "dataset_dict.json"
SPLIT = "split"
_PART = re.compile(r"\d{3,}|^(train|test|validation|valid|dev|eval)\b")
"""How the parts of one data set are called."""
_REMEDY = "copy or download it again; pandas or polars should be able to open it"


class ColumnarError(DialometerError):
    """A Parquet or Arrow file, or a folder of them, that cannot be read."""


@dataclass(frozen=True, slots=True)
class ColumnarPart:
    """One file of a data set, the split that it belongs to, and the names behind numbered labels."""

    path: Path
    split: str = ""
    labels: dict[str, list[str]] = field(default_factory=dict)


def is_columnar(path: Path) -> bool:
    """Whether a path is a Parquet or Arrow file, or a folder with such files, by content and name."""
    if path.is_dir():
        return _is_one_set(path) or bool(_split_folders(path))
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(8)
    is_stream = head.startswith(_ARROW_STREAM) and path.suffix.lower() in SUFFIXES
    return head.startswith((_PARQUET, _ARROW_FILE)) or is_stream


def _is_one_set(folder: Path) -> bool:
    """Whether the files of a folder are one data set: saved by ``datasets``, or the numbered parts or splits of one."""
    files = _files(folder)
    if not files or (folder / _STATE).is_file() or (folder / _INFO).is_file():
        return bool(files)
    rest = [file for file in folder.iterdir() if file.is_file() and file not in files]
    is_alone = all(file.name.startswith(".") or file.suffix.lower() in (".md", ".txt", "") for file in rest)
    return is_alone and (len(files) == 1 or all(_PART.search(file.stem) for file in files))


def parts_of(path: Path) -> list[ColumnarPart]:
    """The files that a path stands for, in order."""
    if path.is_file():
        return [ColumnarPart(path)]
    own = _files(path)
    if own:
        labels = _labels(path)
        return [ColumnarPart(file, _split_in_name(file), labels) for file in own]
    parts = [
        ColumnarPart(file, folder.name if folder.name != "data" else _split_in_name(file), _labels(folder))
        for folder in _split_folders(path)
        for file in _files(folder)
    ]
    if not parts:
        raise ColumnarError("the folder holds no Parquet or Arrow files", where=str(path), remedy=_REMEDY)
    return parts


def described(parts: list[ColumnarPart]) -> str:
    """In words, what a path was read as."""
    kind = "Parquet" if parts[0].path.suffix.lower() in (".parquet", ".pq") else "Arrow"
    splits = list(dict.fromkeys(part.split for part in parts if part.split))
    files = f"{len(parts)} {kind} files" if len(parts) > 1 else kind
    if len(splits) < 2:
        return f"read from {files}"
    return f"read from {files}, splits {', '.join(splits)} (kept as '{SPLIT}')"


def json_lines(parts: list[ColumnarPart]) -> Iterator[bytes]:
    """The rows of all files as JSON objects, a line each; some lines at a time."""
    several = len({part.split for part in parts}) > 1
    for part in parts:
        allowance = Allowance(part.path)
        with _errors_in_words(part.path):
            for frame in row_frames(part.path):
                allowance.take(int(frame.estimated_size()))
                yield _as_lines(_with_labels(frame, part, has_splits=several))


def _files(folder: Path) -> list[Path]:
    files = [file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file()]
    files = [file for file in files if not file.name.startswith(("cache-", "tmp"))]  # what datasets computed on the way
    if len(files) > MAX_FILES:
        raise ColumnarError(f"the folder holds {len(files):,} files", where=str(folder), remedy="join them first")
    in_manifest = _named_files(folder)
    return sorted(file for file in files if not in_manifest or file.name in in_manifest)


def _named_files(folder: Path) -> set[str]:
    """The files that ``state.json`` lists, where there is one: others in the folder are left from earlier."""
    state = _json(folder / _STATE)
    listed = state.get("_data_files", []) if isinstance(state, dict) else []
    return {str(entry.get("filename")) for entry in listed if isinstance(entry, dict)}


def _split_folders(path: Path) -> list[Path]:
    """Folders with the splits of a data set, in the order that it names them."""
    known = _json(path / _DICT)
    names = known.get("splits", []) if isinstance(known, dict) else []
    listed = [path / str(name) for name in names if isinstance(name, str) and Path(name).name == name]
    if not listed:
        listed = sorted(folder for folder in path.iterdir() if folder.is_dir() and not folder.name.startswith("."))
        listed = [folder for folder in listed[:MAX_FILES] if folder.name == "data" or (folder / _STATE).is_file()]
    return [folder for folder in listed if folder.is_dir() and _is_one_set(folder)]


def _split_in_name(file: Path) -> str:
    """``train`` in ``train-00000-of-00002.parquet``; empty where the name tells none."""
    name, _, rest = file.stem.partition("-")
    return name if rest.replace("-of-", "").isdigit() and name != "data" else ""


def _labels(folder: Path) -> dict[str, list[str]]:
    """Names of classes by column, where ``dataset_info.json`` has them: the file itself holds numbers."""
    info = _json(folder / _INFO)
    features = info.get("features") if isinstance(info, dict) else None
    return {
        str(column): [str(name) for name in about["names"]]
        for column, about in (features.items() if isinstance(features, dict) else ())
        if isinstance(about, dict) and about.get("_type") == "ClassLabel" and isinstance(about.get("names"), list)
    }


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def row_frames(path: Path) -> Iterator[pl.DataFrame]:
    """The rows of one file in parts; what polars cannot read is an error in words, a panic of its native code too."""
    stat = path.stat()
    if why_not := _tried_elsewhere(str(path.resolve()), stat.st_mtime_ns, stat.st_size):
        raise _unreadable(path, ValueError(why_not))
    with _errors_in_words(path):
        yield from _read(path)


@lru_cache(maxsize=256)
def _tried_elsewhere(path: str, _mtime_ns: int, _n_bytes: int) -> str:
    """Reads a file in another process first; empty where that went well, else why not.

    A damaged file can make polars' native code end the whole process (it asks for more memory than there is, and stops), and
    that must not be a server, or a session with other work in it.
    """
    return _TRIAL.of(path)


IDLE_S = 10.0
"""After so long without a file the process that tries them ends by itself."""


class _Trial:
    """One process that tries the files of a command, one after the other: starting it takes longer than most files."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        """Whose process it is: one that was forked has none of its own yet."""
        self._lock = threading.Lock()

    def of(self, path: str) -> str:
        """Why a file cannot be read; empty where it can."""
        with self._lock:
            message = self._try_in_process(path) if self._process is not None and self._owner == os.getpid() else None
            if message is None:  # there was none, or it has ended: by itself, or by a file that a new one ends by too
                self.end()
                self._process, self._owner = _started(), os.getpid()
                message = self._try_in_process(path)
            if message is None:
                self.end()
                return "it is damaged"
            return message

    def _try_in_process(self, path: str) -> str | None:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return None
        try:
            process.stdin.write(json.dumps(path).encode("ascii") + b"\n")
            process.stdin.flush()
        except OSError:
            return None
        answer = process.stdout.readline()
        return str(json.loads(answer)) if answer.endswith(b"\n") else None

    def end(self) -> None:
        """Ends the process, where there is one."""
        if self._process is not None and self._owner == os.getpid():
            self._process.kill()
            self._process.communicate()
        self._process = None


_TRIAL = _Trial()
atexit.register(_TRIAL.end)


def _started() -> subprocess.Popen[bytes]:
    code = "from dialometer.readers.containers.columnar import try_files; try_files()"
    return subprocess.Popen(  # nosec B603  # this Python and a fixed program
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def try_files() -> None:
    """What the process does: for each path on its input all rows, one part after the other; says how it went."""
    while True:
        idle = threading.Timer(IDLE_S, os._exit, (0,))
        idle.daemon = True
        idle.start()
        line = sys.stdin.buffer.readline()
        idle.cancel()
        if not line:
            os._exit(0)
        sys.stdout.buffer.write(json.dumps(_problem(Path(json.loads(line)))).encode("ascii") + b"\n")
        sys.stdout.flush()


def _problem(path: Path) -> str:
    try:
        with _errors_in_words(path):
            for frame in _read(path):
                _as_lines(frame)
    except DialometerError as error:
        return str(error.__cause__ or error).partition("\n")[0][:200].strip() or "it is damaged"
    return ""


def _read(path: Path) -> Iterator[pl.DataFrame]:
    import polars as pl  # noqa: PLC0415 - heavy, and only these files need it

    with path.open("rb") as file:
        head = file.read(8)
    if head.startswith(_ARROW_STREAM):
        rows = pl.read_ipc_stream(path).lazy()  # a stream has no index, so it is read whole
    else:
        rows = pl.scan_parquet(path) if head.startswith(_PARQUET) else pl.scan_ipc(path)
    n_rows = rows.select(pl.len()).collect().item()
    for start in range(0, n_rows, N_PER_PART):
        yield rows.slice(start, N_PER_PART).collect()


@contextmanager
def _errors_in_words(path: Path) -> Iterator[None]:
    """What polars cannot read is an error in words, a panic of its native code too."""
    import polars as pl  # noqa: PLC0415

    try:
        yield
    except (pl.exceptions.PolarsError, OSError, ValueError, OverflowError) as error:
        raise _unreadable(path, error) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: BaseException) -> ColumnarError:
    first = next(iter(str(error).splitlines()), "") or type(error).__name__
    kind = "Parquet" if path.suffix.lower() in (".parquet", ".pq") else "Arrow"
    return ColumnarError(f"the {kind} file cannot be read: {first[:200]}", where=str(path), remedy=_REMEDY)


def _with_labels(frame: pl.DataFrame, part: ColumnarPart, *, has_splits: bool) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415

    for column, names in part.labels.items():
        if column in frame.columns and frame[column].dtype.is_integer():
            known = pl.col(column).replace_strict(list(range(len(names))), names, default=None, return_dtype=pl.String)
            frame = frame.with_columns(known)
    if has_splits and SPLIT not in frame.columns:
        frame = frame.with_columns(pl.lit(part.split or None, dtype=pl.String).alias(SPLIT))
    return frame


def _as_lines(frame: pl.DataFrame) -> bytes:
    if all(_is_plain(kind) for kind in frame.schema.values()):
        return frame.write_ndjson().encode()
    return b"".join(
        json.dumps(_plain(row), ensure_ascii=False, allow_nan=False).encode() + b"\n"
        for row in frame.iter_rows(named=True)
    )


def _is_plain(kind: Any) -> bool:
    """Whether polars writes a type as the JSON that it is."""
    import polars as pl  # noqa: PLC0415

    if isinstance(kind, pl.List):
        return _is_plain(kind.inner)
    if isinstance(kind, pl.Struct):
        return all(_is_plain(inner.dtype) for inner in kind.fields)
    return (kind.is_numeric() and not kind.is_decimal()) or kind in (pl.String, pl.Boolean, pl.Null)


def _plain(value: Any) -> Any:
    """A value as JSON can hold it: times in ISO 8601, no NaN, and of bytes only how many there are."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return f"({len(value):,} bytes)"
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if value is None or isinstance(value, str | int | bool):
        return value
    with suppress(TypeError, ValueError):
        return float(value)
    return str(value)
