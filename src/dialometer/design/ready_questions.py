"""Questions about raters that many studies ask, with their scales: a study file names them and need not write them out.

``post_questionnaire: [contributor_satisfaction]`` stands for the whole question. The study that is loaded, frozen and exported has it
written out.
"""

from __future__ import annotations

from typing import Any

from dialometer.design.positions import Positioned
from dialometer.errors import Problem
from dialometer.registry import did_you_mean

PARTS = ("pre_questionnaire", "post_questionnaire")
SATISFACTION = "contributor_satisfaction"
"""How satisfied contributors are with the task, from 1 to 5, as crowd platforms ask (4.8 in Guerini et al., SCAI 2018)."""
_HOW_OFTEN = ["Never", "A few times a year", "Every month", "Every week", "Every day"]
READY: dict[str, tuple[str, dict[str, Any]]] = {
    SATISFACTION: (
        "All in all, how satisfied were you with taking part in this study?",
        {
            "type": "likert",
            "points": 5,
            "labels": {
                1: "Very dissatisfied",
                2: "Dissatisfied",
                3: "Neither satisfied nor dissatisfied",
                4: "Satisfied",
                5: "Very satisfied",
            },
        },
    ),
    "gender": (
        "Which of these describes you best?",
        {"type": "choice", "options": ["Woman", "Man", "Non-binary", "I prefer not to say"], "allow_other": True},
    ),
    "age_band": ("How old are you?", {"type": "choice", "options": ["18-24", "25-34", "35-49", "50 or older"]}),
    "chatbot_experience": (
        "How often do you use a chat or voice assistant?",
        {"type": "choice", "options": _HOW_OFTEN},
    ),
    "comment": (
        "Is there anything that you would like to tell us about this study?",
        {"type": "text", "multiline": True, "max_length": 1000},
    ),
}
OPTIONAL = ("comment",)


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
                text, scale = READY[question]
                scales.setdefault(question, scale)
                optional = {"is_required": False} if question in OPTIONAL else {}
                written.append({"name": question, "text": text, "scale": question, **optional})
            else:
                line, column = source.at((part, i))
                remedy = f"{did_you_mean(question, list(READY))}, or write the question with name, text and scale"
                message = f"there is no ready question '{question}'"
                problems.append(Problem(message, remedy, file, line, column, f"{part}.{i}"))
        data[part] = written
    if scales:
        data["scales"] = scales
    return data, problems
