"""Questions that screening asks where a platform cannot filter: country, first language, level of a language.

Options include others than those that are accepted, so that the question does not tell its answer. They are asked in English;
a study in another language asks its own, under the same names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dialometer.model.study import Question, StudySpec
from dialometer.recruit.names import COUNTRIES, LANGUAGES, known_name
from dialometer.recruit.platform import Platform

LARGE_COUNTRIES = ("AU", "BR", "CA", "DE", "ES", "FR", "GB", "IN", "IT", "JP", "MX", "NG", "PH", "PL", "US", "ZA")
LARGE_LANGUAGES = ("ar", "bn", "de", "en", "es", "fr", "hi", "it", "ja", "pl", "pt", "ru", "tr", "zh")
LEVELS = {
    "A1": "A few words and phrases (A1)",
    "A2": "Simple, everyday conversations (A2)",
    "B1": "Most everyday situations (B1)",
    "B2": "Fluent conversations and long texts (B2)",
    "C1": "Almost everything, with ease (C1)",
    "C2": "Everything, like a first language (C2)",
}
NO_KNOWLEDGE = "Not at all"
FLUENT = "C1"


@dataclass(frozen=True, slots=True)
class ScreeningQuestion:
    """A question with the options that it shows; ``field`` is the qualification that it checks."""

    field: str
    question: Question
    options: tuple[str, ...]


def screening_questions(spec: StudySpec, platform: Platform) -> list[ScreeningQuestion]:
    """The questions to add to a study's screening: what its platform cannot filter and the study does not ask itself."""
    if not spec.language.lower().startswith("en"):
        return []
    own = {question.name for question in spec.screening}
    return [entry for entry in _wanted(spec, platform) if entry.question.name not in own]


def asked_in_screening(spec: StudySpec, platform: Platform) -> set[str]:
    """Qualifications that screening makes sure of, by questions of the study or added ones."""
    names = {question.name for question in spec.screening if question.accept is not None}
    names |= {added.question.name for added in screening_questions(spec, platform)}
    entries = _wanted(spec, platform)
    fields = {row.field for row in entries}
    return {f for f in fields if all(row.question.name in names for row in entries if row.field == f)}


def _wanted(spec: StudySpec, platform: Platform) -> list[ScreeningQuestion]:
    q = spec.recruitment.qualifications
    rows: list[ScreeningQuestion] = []
    if q.countries and "countries" not in platform.qualifications:
        accepted = [known_name(name, COUNTRIES) or name for name in q.countries]
        options = sorted({*accepted, *(COUNTRIES[code] for code in LARGE_COUNTRIES)})
        rows.append(_one_of("countries", "country_of_residence", "In which country do you live?", accepted, options))
    if q.first_languages and "first_languages" not in platform.qualifications:
        accepted = [known_name(name, LANGUAGES) or name for name in q.first_languages]
        options = sorted({*accepted, *(LANGUAGES[code] for code in LARGE_LANGUAGES)})
        rows.append(_one_of("first_languages", "first_language", "What is your first language?", accepted, options))
    if len(q.fluent_languages) == 1 and "fluent_languages" not in platform.qualifications:
        rows.append(_level("fluent_languages", q.fluent_languages[0], FLUENT))
    if "levels" not in platform.qualifications:
        rows += [_level("levels", language, level) for language, level in q.levels.items()]
    by_name = {row.question.name: row for row in rows}  # a level goes before "fluent" in the same language
    return list(by_name.values())


def _one_of(field: str, name: str, text: str, accepted: list[str], options: list[str]) -> ScreeningQuestion:
    question = Question(name=name, text=text, scale=f"screening_{name}", accept=[*accepted])
    return ScreeningQuestion(field, question, (*options, "Another one"))


def _level(field: str, language: str, lowest: str) -> ScreeningQuestion:
    usual = known_name(language, LANGUAGES) or language
    name = "level_" + re.sub(r"[^a-z0-9]+", "_", usual.lower()).strip("_")
    accepted = [text for level, text in LEVELS.items() if level >= lowest]
    text = f"What can you understand and say in {usual}?"
    question = Question(name=name, text=text, scale=f"screening_{name}", accept=[*accepted])
    return ScreeningQuestion(field, question, (NO_KNOWLEDGE, *LEVELS.values()))
