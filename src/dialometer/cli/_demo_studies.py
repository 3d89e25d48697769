"""What the demo shows: which studies, how they are made, and the report of each."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPORTS = "reports"
STUDIES = "studies"
SEED = 1
N_RESAMPLES = 400
"""Enough for a demonstration; reports of real studies use what the study declares."""


@dataclass(frozen=True)
class Line:
    """One line of work: a study made from a template, and the commands that make its report."""

    name: str
    template: str
    n_raters: int
    title: str
    about: str
    commands: Sequence[Sequence[str]]
    """What follows after the simulated raters; ``{study}`` and ``{out}`` are filled in."""

    def steps(self, study: Path, out: Path) -> list[list[str]]:
        """The arguments of every command, in order."""
        filled = [[part.format(study=study, out=out) for part in command] for command in self.commands]
        simulated = ["simulate", str(study), "--raters", str(self.n_raters), "--seed", str(SEED)]
        return [["new", self.template, str(study)], ["freeze", str(study)], simulated, *filled]

    def shown(self) -> list[str]:
        """The commands as somebody would type them."""
        return [" ".join(["dialometer", *step]) for step in self.steps(Path(self.name), Path(f"{self.name}-report"))]


_REPORT = ("report", "{study}", "--out", "{out}", "--format", "html", "--resamples", str(N_RESAMPLES))
LINES = (
    Line(
        "strategies", "strategies", 60, "Controlled transcript pairs",
        "Which interaction strategy do people prefer, before anybody builds it?", (_REPORT,),
    ),
    Line(
        "avatar", "avatar", 30, "Retrieved answers judged by a crowd",
        "How good are the answers of an avatar, and who agrees?", (_REPORT,),
    ),
    Line(
        "anchoring", "anchoring", 40, "A bias audit of ratings",
        "Do a shown number and a standard response pull ratings, and make raters agree?", (_REPORT,),
    ),
    Line(
        "evaluator", "chat", 60, "Ratings for a learned evaluator",
        "What people say of their own conversations, and how far a model may believe it.",
        (("learn", "ratings", "{study}", "--out", "{out}", "--no-features"),),
    ),
)  # fmt: skip
LIVE = Line("live", "strategies", 0, "A running study", "Take part, and watch it fill.", ())
"""The study that visitors take part in while simulated raters arrive."""


class Workshop:
    """Makes studies and their reports by the commands that the page shows; :meth:`stop` leaves no process behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failed: dict[str, str] = {}
        self._running: set[subprocess.Popen[str]] = set()
        self._is_stopped = False
        self._lock = threading.Lock()

    def make(self, line: Line) -> None:
        """One study with its report; what went wrong stands in ``failed``."""
        for step in line.steps(self.folder / STUDIES / line.name, self.folder / REPORTS / line.name):
            with self._lock:
                if self._is_stopped:
                    return
                command = [sys.executable, "-m", "dialometer", *step]
                work = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                self._running.add(work)
            said = work.communicate()[0].strip().splitlines()
            self._running.discard(work)
            if work.returncode:
                self.failed[line.name] = said[-1] if said else f"{step[0]} ended with {work.returncode}"
                return

    def make_all_aside(self, n_at_once: int) -> None:
        """All lines, while the caller goes on."""
        left = iter(LINES)

        def work() -> None:
            while True:
                with self._lock:
                    line = next(left, None)
                if line is None:
                    return
                self.make(line)

        for _ in range(n_at_once):
            threading.Thread(target=work, daemon=True).start()

    def stop(self) -> None:
        """Ends what is under way."""
        with self._lock:
            self._is_stopped = True
            running = list(self._running)
        for work in running:
            work.kill()
        for work in running:
            work.wait()


def report_page(line: Line, folder: Path) -> Path:
    """Where the report of a line begins."""
    return folder / REPORTS / line.name / "index.html"
