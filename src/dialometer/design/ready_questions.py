"""Questions about raters that many studies ask, with their scales: a study file names them and need not write them out.

``post_questionnaire: [contributor_satisfaction]`` stands for the whole question. The study that is loaded, frozen and exported has it
written out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from dialometer.design.positions import Positioned
from dialometer.errors import Problem
from dialometer.registry import did_you_mean

PARTS = ("pre_questionnaire", "post_questionnaire")
SATISFACTION = "contributor_satisfaction"
"""How satisfied contributors are with the task, from 1 to 5, as crowd platforms ask (4.8 in Guerini et al., SCAI 2018)."""
READY: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
"""Text and scale of each, by name."""


def with_ready_questions(data: dict[str, Any], source: Positioned, file: str) -> tuple[dict[str, Any], list[Problem]]:
    """The study file's data with ready questions written out and their scales added; a name that is not ready is a problem."""
    problems: list[Problem] = []
    data = dict(data)
    scales = dict(data["scales"]) if isinstance(data.get("scales"), dict) else {}
    for part in PARTS:
        questions = data.get(part)
        if not isinstance(questions, list) or not any(isinstance(question, str) for question in questions):
            continue
        written: list[Any] = []
        for i, question in enumerate(questions):
            if not isinstance(question, str):
                written.append(question)
            elif question in READY:
                ready = READY[question]
                scales.setdefault(question, ready["scale"])
                written.append({"name": question, **ready, "scale": question})
            else:
                line, column = source.at((part, i))
                remedy = f"{did_you_mean(question, list(READY))}, or write the question with name, text and scale"
                message = f"there is no ready question '{question}'"
                problems.append(Problem(message, remedy, file, line, column, f"{part}.{i}"))
        data[part] = written
    if scales:
        data["scales"] = scales
    return data, problems
