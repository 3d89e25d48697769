"""Checking and opening a study folder, agents and wording included: the same for the command line and the dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dialometer.agents.access import AgentAccess
from dialometer.design.load import check_study
from dialometer.design.lock import verify
from dialometer.design.positions import parse_yaml
from dialometer.errors import Problem, StudyError
from dialometer.flow.agents import agent_problems
from dialometer.flow.language import wording_problems
from dialometer.folder_files import read_text_inside
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.study import Study, translation_file


def check_all(folder: Path, access: AgentAccess | None = None) -> tuple[Study | None, list[Problem]]:
    """The study if it can be understood, and every problem, sorted by file and line."""
    study, problems = check_study(folder)
    if study is not None:
        if study.spec.wording:
            problems += _placed(folder, wording_problems(study.spec.wording))
            for language in study.spec.languages[1:]:
                said = study.in_language(language).spec.wording
                own = {key: text for key, text in said.items() if text != study.spec.wording[key]}
                problems += [replace(problem, file=translation_file(language)) for problem in wording_problems(own)]
        problems = sorted(problems + agent_problems(study, access), key=lambda p: (p.file, p.line, p.column))
    return study, problems


def _placed(folder: Path, problems: list[Problem]) -> list[Problem]:
    """The problems at the line of the text that each one names."""
    source = parse_yaml(read_text_inside(folder, STUDY_FILE), STUDY_FILE)
    placed = []
    for problem in problems:
        key = next(
            (path[1] for path in source.positions if path[0:1] == ("wording",) and f"'{path[-1]}'" in problem.message),
            "",
        )
        line, column = source.at(("wording", key))
        placed.append(replace(problem, line=line, column=column))
    return placed


def open_study(folder: Path, access: AgentAccess | None = None) -> Study:
    """The study, refused when it has errors or was changed after it was frozen."""
    study = without_errors(*check_all(folder, access))
    verify(study, folder)
    return study


def without_errors(study: Study | None, problems: Sequence[Problem]) -> Study:
    """The study, if its check found no errors; raises :class:`StudyError`."""
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors or study is None:
        raise StudyError(errors)
    return study
