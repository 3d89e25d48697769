"""What parts of a study are called in a report: the study's own labels, else words for the usual settings."""

from __future__ import annotations

from dialometer.model.study import Criterion, Factor, Level, Study

ANCHOR_WORDS = {
    "none": "no anchor",
    "number": "anchor (number)",
    "text": "anchor (text)",
    "both": "anchor (text and number)",
}
LAYOUT_WORDS = {"together": "criteria together", "one_per_screen": "one criterion per screen"}


def system_label(study: Study, name: str) -> str:
    """The system's label, else its name."""
    return next((s.label or s.name for s in study.spec.systems if s.name == name), name)


def criterion_label(study: Study, name: str) -> str:
    """The criterion's label, else its name."""
    criterion = study.criteria_by_name.get(name)
    return (criterion.label or criterion.name) if isinstance(criterion, Criterion) else name


def factor_label(factor: Factor) -> str:
    """The factor's label, else its name."""
    return factor.label or factor.name


def level_label(level: Level) -> str:
    """The level's label, else words for what it sets, else its name."""
    if level.label:
        return level.label
    if level.set.anchor is not None:
        return ANCHOR_WORDS[level.set.anchor]
    if level.set.layout is not None:
        return LAYOUT_WORDS[level.set.layout]
    if level.set.deadline_s is not None:
        return f"within {level.set.deadline_s:g} s"
    return level.name


def factor_named(study: Study, name: str) -> Factor | None:
    """The factor of that name."""
    return next((factor for factor in study.spec.design.factors if factor.name == name), None)


def is_anchor(factor: Factor) -> bool:
    """Whether the factor changes what raters see as an anchor: then the report speaks of anchoring."""
    return len({level.set.anchor for level in factor.levels}) > 1


def baseline(factor: Factor) -> Level:
    """The level the others are compared with: without an anchor where there is one, else the first."""
    return next((level for level in factor.levels if level.set.anchor == "none"), factor.levels[0])


def cell_names(study: Study) -> list[str]:
    """Every condition in words, in the order of ``Study.cells``."""
    names = []
    for condition in study.cells:
        words = []
        for factor in study.spec.design.factors:
            level = next(level for level in factor.levels if level.name == condition[factor.name])
            words.append(level_label(level))
        names.append(", ".join(words) or "all raters")
    return names


def question_text(study: Study, name: str) -> str:
    """The text of a question in any questionnaire, else its name."""
    spec = study.spec
    for question in (*spec.screening, *spec.pre_questionnaire, *spec.post_questionnaire):
        if question.name == name:
            return question.text
    return name
