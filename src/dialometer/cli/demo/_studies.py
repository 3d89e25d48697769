"""The reports of the demo, and the commands that make them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dialometer.model.file_names import STUDY_FILE

REPORTS = "reports"
STUDIES = "studies"
SEED = 1
N_RESAMPLES = 400
"""Enough for a demonstration; reports of real studies use what the study declares."""
N_TALKS = 400


Command = tuple[str, ...]


@dataclass(frozen=True)
class DemoReport:
    """A report and the commands that make it; ``{study}``, ``{folder}`` and ``{out}`` are filled in."""

    name: str
    title: str
    about: str
    commands: Sequence[Command]
    pages: Sequence[tuple[str, str]] = (("Open the report", "index.html"),)
    """Links to files in the report's folder: their text and the file."""

    def steps(self, study: Path, out: Path) -> list[list[str]]:
        """The arguments of every command, in order."""
        inside = "" if study.parent == Path() else f"{study.parent}{os.sep}"
        filled = {"study": study, "folder": inside, "out": out}
        return [[part.format(**filled) for part in command] for command in self.commands]

    def shown(self) -> list[list[str]]:
        """The commands as one would type them, each option together with its value."""
        return [_together(step) for step in self.steps(Path(self.name), Path(f"{self.name}-report"))]


def _together(step: Sequence[str]) -> list[str]:
    parts = ["dialometer"]
    for part in step:
        if parts[-1].startswith("--") and " " not in parts[-1]:
            parts[-1] += f" {part}"
        else:
            parts.append(part)
    return parts


def _study(template: str, n_raters: int) -> tuple[Command, ...]:
    """A study from a template, simulated raters, and its report."""
    return (
        ("new", template, "{study}"),
        ("freeze", "{study}"),
        ("simulate", "{study}", "--raters", str(n_raters), "--seed", str(SEED)),
        ("report", "{study}", "--out", "{out}", "--format", "html", "--resamples", str(N_RESAMPLES)),
    )


def _evaluator() -> tuple[Command, ...]:
    """Simulated rated conversations, an evaluator trained on them, what it is worth, and the ratings it doubts.

    Words and behaviour need no encoder, so nothing has to be installed for it.
    """
    aspects = "words,behaviour"
    talks, evaluator = "{folder}talks.jsonl", "{folder}evaluator"
    return (
        ("learn", "simulate", talks, "--dialogues", str(N_TALKS), "--seed", str(SEED)),
        ("learn", "train", talks, "--recipe", "best", "--aspects", aspects, "--out", evaluator),
        ("learn", "noisy", talks, "--evaluator", evaluator, "--out", "{out}/noisy.html"),
        ("learn", "report", talks, "--aspects", aspects, "--out", "{out}"),
    )


DEMO_REPORTS = (
    DemoReport(
        "strategies",
        "Controlled transcript pairs",
        "Which interaction strategy do raters prefer, before anybody builds it?",
        _study("strategies", 145),
    ),
    DemoReport(
        "evaluator",
        "An evaluator learned from ratings",
        "Can a model learn from noisy ratings which of two dialogues is better, and which ratings not to trust?",
        _evaluator(),
        (("Open the report", "index.html"), ("Read the ratings in doubt", "noisy.html")),
    ),
    DemoReport(
        "avatar",
        "Retrieved answers judged by a crowd",
        "How good are the answers of an avatar, and who agrees?",
        _study("avatar", 20),
    ),
    DemoReport(
        "anchoring",
        "A bias audit of ratings",
        "Do a shown number and a standard response pull ratings, and make raters agree?",
        _study("anchoring", 80),
    ),
)
LIVE = "live"
LIVE_TEMPLATE = "strategies"
CHAT = "talk"
PROMPTS = (
    "You are a friendly assistant who talks about films. Answer in two sentences and end with a question.",
    "You are an expert on films. Answer in one short sentence.",
)
"""One small model as two systems."""


def add_chat(folder: Path) -> bool:
    """A study of live chats with a language model on this machine; False where none is installed."""
    import importlib.util

    from dialometer.agents.local_server import SMOLLM2, find_weights
    from dialometer.design.edit_yaml import yaml_text
    from dialometer.design.positions import parse_yaml
    from dialometer.design.templates import copy_template

    try:
        find_weights(SMOLLM2)
    except ValueError:
        return False
    if importlib.util.find_spec("xllamacpp") is None:
        return False
    copy_template("chat", folder)
    path = folder / STUDY_FILE
    spec = parse_yaml(path.read_text(encoding="utf-8"), "").data
    for system, prompt in zip(spec["systems"], PROMPTS, strict=True):
        system["agent"] = {"type": "local", "options": {"system_prompt": prompt, "max_tokens": 80}}
    path.write_text(yaml_text(spec), encoding="utf-8")
    return True


"""The study that visitors take part in while simulated raters arrive."""


class ReportMaker:
    """Runs the commands that the page shows; :meth:`stop` leaves no process behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failed: dict[str, str] = {}
        self.n_done: dict[str, int] = {}
        """How many commands have ended, for every report that has begun."""
        self._running: set[subprocess.Popen[str]] = set()
        self._is_stopped = False
        self._lock = threading.Lock()

    def make(self, line: DemoReport) -> None:
        """Makes one report; an error is kept in ``failed``."""
        self.n_done[line.name] = 0
        # More threads do not speed up small matrices, and the pages need the rest of the machine.
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        for step in line.steps(self.folder / STUDIES / line.name, self.folder / REPORTS / line.name):
            with self._lock:
                if self._is_stopped:
                    return
                command = [sys.executable, "-m", "dialometer", *step]
                work = subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
                )
                self._running.add(work)
            output = work.communicate()[0].strip().splitlines()
            self._running.discard(work)
            if work.returncode:
                self.failed[line.name] = output[-1] if output else f"{step[0]} ended with {work.returncode}"
                return
            self.n_done[line.name] += 1

    def make_all_in_background(self, n_at_once: int) -> None:
        """Makes all reports while the caller continues."""
        left = iter(DEMO_REPORTS)

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
        """Ends the running commands."""
        with self._lock:
            self._is_stopped = True
            running = list(self._running)
        for work in running:
            work.kill()
        for work in running:
            work.wait()


def report_page(line: DemoReport, folder: Path) -> Path:
    """The first page of a report."""
    return folder / REPORTS / line.name / "index.html"
