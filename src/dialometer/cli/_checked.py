"""The whole check of a study folder, agents included."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialometer.errors import Problem
    from dialometer.model.study import Study


def check_all(folder: Path) -> tuple[Study | None, list[Problem]]:
    """The study if it can be understood, and every problem, sorted by file and line."""
    from dialometer.design.check import check_study
    from dialometer.flow.agent_check import agent_problems

    study, problems = check_study(folder)
    if study is not None:
        problems = sorted(problems + agent_problems(study), key=lambda p: (p.file, p.line, p.column))
    return study, problems
