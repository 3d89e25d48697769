"""Regular expressions that a study file holds. They run in a process of their own, within a second.

An expression such as ``(a+)+$`` takes years for forty letters, and nothing else of a Python process runs meanwhile: one
line of a study file, or one answer to it, would end the server for everybody.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess  # nosec B404  # this Python, with a program of our own
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

LIMIT_S = 1.0
"""Processor time for one question."""
_WAIT_S = 20.0
"""For systems on which a process cannot count its own time, and machines that are very busy."""
_MAX_REMEMBERED = 1000
_TOO_SLOW = "slow"
_PROGRAM = f"""
import json, re, sys
try:
    import signal
    def stop(*_): raise TimeoutError
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGVTALRM, stop)
    begin = lambda: signal.setitimer(signal.ITIMER_VIRTUAL, {LIMIT_S})
    end = lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 0)
except (ImportError, AttributeError):
    begin = end = lambda: None
for line in sys.stdin:
    pattern, text, is_whole, flags = json.loads(line)
    try:
        begin()
        compiled = re.compile(pattern, flags)
        answer = text is None or bool((compiled.fullmatch if is_whole else compiled.search)(text))
    except TimeoutError:
        answer = {_TOO_SLOW!r}
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        answer = [str(error) or type(error).__name__]
    finally:
        end()
    print(json.dumps(answer), flush=True)
"""


def problem_of(pattern: str) -> str:
    """Why a text is no regular expression that can be used; empty where it is one."""
    answer = _compiled(pattern)
    if answer == _TOO_SLOW:
        return "it takes too long to read"
    return str(answer[0]) if isinstance(answer, list) else ""


def matches(pattern: str, text: str, *, is_whole: bool = False, flags: int = 0) -> bool | None:
    """Whether an expression is in a text, or is the whole of it; None where that takes too long to say.

    Such an expression is not tried again in this process.
    """
    if (pattern, flags) in _slow:
        return None
    answer = _ask([pattern, text, is_whole, flags])
    if answer == _TOO_SLOW and len(_slow) < _MAX_REMEMBERED:
        _slow.add((pattern, flags))
    return answer if isinstance(answer, bool) else None


_slow: set[tuple[str, int]] = set()


@lru_cache(maxsize=_MAX_REMEMBERED)
def _compiled(pattern: str) -> Any:
    return _ask([pattern, None, False, 0])


class _Matcher:
    """The process that runs expressions. It ends with this one, whose end of the pipe is closed then."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.process = subprocess.Popen(  # nosec B603  # no input of anybody is part of the command
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, question: Sequence[Any]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        waiting = threading.Timer(_WAIT_S, self.process.kill)
        waiting.start()
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        finally:
            waiting.cancel()
        return json.loads(answer) if answer else _TOO_SLOW

    def close(self) -> None:
        """Ends the other process, unless it belongs to the one that this was forked from."""
        if self.pid == os.getpid():
            with suppress(OSError):
                self.process.communicate()


_asking = threading.Lock()
_matchers: list[_Matcher] = []


def _ask(question: Sequence[Any]) -> Any:
    """One question at a time; after a fork, and after the other process has ended, another one is begun."""
    with _asking:
        if not _matchers or _matchers[0].pid != os.getpid() or _matchers[0].process.poll() is not None:
            _end()
            _matchers.append(_Matcher())
        try:
            return _matchers[0].ask(question)
        except OSError:  # it has ended while it was asked
            return _TOO_SLOW


@atexit.register
def _end() -> None:
    while _matchers:
        _matchers.pop().close()
