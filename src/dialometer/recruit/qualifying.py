"""How a study's qualifications are met: by the platform's filters, by questions in screening, on arrival, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dialometer.errors import Problem
from dialometer.folder_files import FileRefused
from dialometer.model.qualifications import Between, Qualifications
from dialometer.model.study import StudySpec
from dialometer.recruit.names import COUNTRIES, LANGUAGES, known_name
from dialometer.recruit.platform import Platform
from dialometer.recruit.rater_list import read_rater_list
from dialometer.recruit.screening_questions import asked_in_screening
from dialometer.registry import did_you_mean

NAMED = {"countries": COUNTRIES, "first_languages": LANGUAGES, "fluent_languages": LANGUAGES, "levels": LANGUAGES}
LISTS = ("allow_list", "block_list")
_MORE = {"countries": "country", "first_languages": "language", "fluent_languages": "language", "levels": "language"}


@dataclass(frozen=True, slots=True)
class MetQualification:
    """One qualification in words, and how it is met; ``is_met`` is False where nothing checks it."""

    field: str
    words: str
    how: str
    is_met: bool = True


def met_qualifications(spec: StudySpec, platform: Platform) -> list[MetQualification]:
    """Every qualification of a study, with what makes sure of it."""
    qualifications = spec.recruitment.qualifications
    return [
        MetQualification(field, words, *_how(field, spec, platform))
        for field in qualifications.given
        for words in in_words(qualifications, field)
    ]


def _how(field: str, spec: StudySpec, platform: Platform) -> tuple[str, bool]:
    filter_name = platform.qualifications.get(field)
    if filter_name and platform.api is not None:
        also = ", and checked on arrival" if field in LISTS else ""
        return f"filtered by {platform.label}{also}", True
    if field in LISTS and not platform.is_open:
        return "checked on arrival", True
    if filter_name:
        return f"to be set on {platform.label}: {filter_name}", True
    if field in asked_in_screening(spec, platform):
        return "asked in screening", True
    return f"not checked: {platform.label} cannot filter by it", False


def in_words(qualifications: Qualifications, field: str) -> list[str]:
    """One qualification as a reader of a protocol would say it."""
    value = getattr(qualifications, field)
    usual = [known_name(name, NAMED[field]) or name for name in value] if field in NAMED else []
    match field:
        case "min_approval_percent":
            return [f"at least {value:g}% of earlier tasks approved"]
        case "min_earlier_tasks":
            return [f"at least {value:,} earlier tasks"]
        case "max_earlier_tasks":
            return [f"at most {value:,} earlier tasks"]
        case "countries":
            return [f"lives in {_or(usual)}"]
        case "first_languages":
            return [f"first language {_or(usual)}"]
        case "fluent_languages":
            return [f"fluent in {_or(usual)}"]
        case "levels":
            return [f"{name} at level {level} or above" for name, level in zip(usual, value.values(), strict=True)]
        case "platform_filters":
            return [f"{name}: {_range(chosen)}" for name, chosen in value.items()]
        case "allow_list":
            return [f"is listed in {value}"]
        case _:
            return [f"is not listed in {value}"]


def _range(chosen: list[str] | Between) -> str:
    if isinstance(chosen, list):
        return _or(chosen)
    low = [] if chosen.at_least is None else [f"at least {chosen.at_least:g}"]
    high = [] if chosen.at_most is None else [f"at most {chosen.at_most:g}"]
    return ", ".join(low + high)


def _or(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def qualification_problems(spec: StudySpec, platform: Platform, folder: Path | None) -> Iterator[Problem]:
    """What is wrong with a study's qualifications; ``field`` names the setting under ``recruitment.qualifications``."""
    qualifications = spec.recruitment.qualifications
    for field, table in NAMED.items():
        for name in getattr(qualifications, field):
            if known_name(name, table) is None:
                remedy = did_you_mean(name, list(table.values()))
                yield Problem(f"there is no {_MORE[field]} '{name}'", remedy, field=field)
    for field in LISTS:
        if getattr(qualifications, field) and folder is not None:
            yield from _list_problems(folder, getattr(qualifications, field), field, platform)
    if qualifications.allow_list and qualifications.allow_list == qualifications.block_list:
        yield Problem("the same list allows and blocks raters", "give two lists", field="block_list")
    for met in met_qualifications(spec, platform):
        if not met.is_met:
            yield Problem(
                f"nothing checks that a rater has {met.words}"
                if "tasks" in met.words
                else f"nothing checks: {met.words}",
                f"{platform.label} cannot filter by it; {_instead(met.field)}",
                field=met.field,
                severity="warning",
            )


def _instead(field: str) -> str:
    if field in NAMED:
        return "ask it with a question under 'screening' that says which answers it accepts"
    if field in LISTS:
        return "recruit by a platform that says who each rater is"
    return "leave it out, or recruit by a platform that can, such as prolific"


def _list_problems(folder: Path, name: str, field: str, platform: Platform) -> Iterator[Problem]:
    try:
        raters = read_rater_list(folder, name)
    except FileRefused as error:
        yield Problem(f"the list '{name}' cannot be read: {error.message}", error.remedy, field=field)
        return
    strange = sorted(rater for rater in raters if not platform.is_identifier(rater))
    if strange:
        yield Problem(
            f"'{strange[0]}' in {name} is not an identifier of {platform.label}"
            + (f", and so are {len(strange) - 1} more" if len(strange) > 1 else ""),
            "copy identifiers as the platform shows them, one per line",
            field=field,
        )
