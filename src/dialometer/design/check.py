"""The whole check of a study: what the loader finds, and for controlled pairs their rules."""

from __future__ import annotations

from pathlib import Path

from dialometer.design.load import read_study
from dialometer.design.pairs import pair_problems
from dialometer.errors import Problem
from dialometer.model.study import Study


def check_study(folder: Path) -> tuple[Study | None, list[Problem]]:
    """The study if it can be understood, and every problem, sorted by file and line."""
    study, problems = read_study(folder)
    if study is not None:
        problems = problems + pair_problems(study)
    return study, sorted(problems, key=lambda p: (p.file, p.line, p.column))
