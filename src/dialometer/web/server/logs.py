"""Logs as lines of JSON without personal data: no addresses, no platform identifiers, nothing that raters typed.

Messages of exceptions are left out, because they may quote an answer; those about storage never do and are logged.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import sys
import time
import traceback
from functools import lru_cache
from typing import TextIO

from dialometer.errors import StorageError

logger = logging.getLogger("dialometer.web")
_requests: TextIO | None = None
_waiting: list[str] = []


class JsonLines(logging.Formatter):
    """One object a line: time, level, event, and the fields given as ``extra={"fields": …}``."""

    def format(self, record: logging.LogRecord) -> str:
        at = f"{_moment(int(record.created))}.{int(record.msecs):03d}Z"
        line: dict[str, object] = {"at": at, "level": record.levelname.lower(), "event": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            line |= describe(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up(level: str = "info") -> None:
    """Sends the logs of the server and of uvicorn to standard error."""
    global _requests  # noqa: PLW0603 - as the loggers are, there is one for the process
    _requests = sys.stderr if level in ("debug", "info") else None
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("dialometer", "uvicorn.error", "uvicorn"):
        target = logging.getLogger(name)
        target.handlers = [handler] if name != "uvicorn.error" else []
        target.setLevel(level.upper())
        target.propagate = name == "uvicorn.error"


def log(event: str, *, level: int = logging.INFO, **fields: object) -> None:
    """One line."""
    if logger.isEnabledFor(level):
        logger.log(level, event, extra={"fields": fields})


def log_request(method: str, route: str, status: int, duration_s: float) -> None:
    """One line for a request: as :func:`log` makes it, but by hand, because there may be thousands a second."""
    if _requests is None:
        return
    now = time.time()
    _waiting.append(
        f'{{"at": "{_moment(int(now))}.{int(now * 1000) % 1000:03d}Z", "level": "info", "event": "request", '
        f'"method": "{method}", "route": "{route}", "status": {status}, "duration_ms": {duration_s * 1000:.2f}}}\n'
    )
    if len(_waiting) == 1:
        try:
            asyncio.get_running_loop().call_soon(_write_waiting)
        except RuntimeError:  # outside a server nothing else will come
            _write_waiting()


def _write_waiting() -> None:
    """Writes the lines of several requests at once, since each write may hand the interpreter to another thread."""
    lines = "".join(_waiting)
    _waiting.clear()
    if _requests is not None:
        _requests.write(lines)


@lru_cache(maxsize=4)
def _moment(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def log_failure(error: BaseException, **fields: object) -> str:
    """Logs a failure of the server; returns the reference that the rater's page shows."""
    reference = secrets.token_hex(4)
    logger.error("failure", extra={"fields": {"reference": reference, **fields, **describe(error)}})
    return reference


def describe(error: BaseException) -> dict[str, object]:
    """What may be logged about an error: its type and where it happened."""
    frames = traceback.extract_tb(error.__traceback__)
    described: dict[str, object] = {
        "error": type(error).__name__,
        "trace": [f"{frame.filename.rsplit('/', 2)[-1]}:{frame.lineno}:{frame.name}" for frame in frames[-8:]],
    }
    if isinstance(error, StorageError):
        described["message"] = error.message
    if error.__cause__ is not None:
        described["cause"] = type(error.__cause__).__name__
    return described
