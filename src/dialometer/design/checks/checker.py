"""Collects problems with the place of the key that caused each; what several checks look through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from dialometer.design.positions import Path, Positioned
from dialometer.errors import Problem
from dialometer.model.design import Change
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.study import Question, Study
from dialometer.registry import did_you_mean


class Checker:
    """Collects problems with the place of the key that caused each."""

    def __init__(self, study: Study, source: Positioned) -> None:
        self.study = study
        self.spec = study.spec
        self.source = source
        self.problems: list[Problem] = []

    def add(self, path: Path, message: str, remedy: str, severity: Literal["error", "warning"] = "error") -> None:
        line, column = self.source.at(path)
        self.problems.append(Problem(message, remedy, STUDY_FILE, line, column, ".".join(map(str, path)), severity))

    def add_item(
        self, line: int, message: str, remedy: str, field: str = "", severity: Literal["error", "warning"] = "error"
    ) -> None:
        self.problems.append(Problem(message, remedy, self.spec.items.file, line, 0, field, severity))

    def known(self, name: str, names: Iterable[str], noun: str, path: Path) -> bool:
        known = list(names)
        if name in known:
            return True
        self.add(path, f"there is no {noun} '{name}'", did_you_mean(name, known))
        return False

    def drop_repeats(self) -> None:
        """What every condition has in common is said once."""
        self.problems = list(dict.fromkeys(self.problems))

    def questions(self) -> Iterator[tuple[Path, Question]]:
        for part in ("screening", "pre_questionnaire", "post_questionnaire"):
            for i, question in enumerate(getattr(self.spec, part)):
                yield (part, i), question

    def changes(self) -> Iterator[tuple[Path, Change]]:
        for i, factor in enumerate(self.spec.design.factors):
            for j, level in enumerate(factor.levels):
                yield ("design", "factors", i, "levels", j, "set"), level.set
        for i, block in enumerate(self.spec.design.blocks):
            yield ("design", "blocks", i, "set"), block.set
