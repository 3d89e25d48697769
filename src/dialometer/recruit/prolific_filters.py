"""Prolific's filters, made from a study's qualifications.

As documented at https://docs.prolific.com/api-reference/filters: a range filter takes ``selected_range``, a select filter the
numbers of its choices as ``selected_values``. Numbers and choices are looked up in Prolific's list, so a study names countries
and languages by their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dialometer.errors import Problem, StudyError
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.qualifications import Between, Qualifications
from dialometer.recruit.names import COUNTRIES, LANGUAGES, names_of
from dialometer.recruit.rater_list import read_rater_list
from dialometer.registry import did_you_mean

FILTERS: Mapping[str, str] = {
    "min_approval_percent": "approval_rate",
    "min_earlier_tasks": "approval_numbers",
    "max_earlier_tasks": "approval_numbers",
    "countries": "current-country-of-residence",
    "first_languages": "first-language",
    "fluent_languages": "fluent-languages",
    "platform_filters": "by their own names",
    "allow_list": "custom_allowlist",
    "block_list": "custom_blocklist",
}
"""The settings under ``qualifications`` and the filter that each becomes. There is none for levels of a language."""
RATER_LISTS = ("custom_allowlist", "custom_blocklist")
_TABLES = {"countries": COUNTRIES, "first_languages": LANGUAGES, "fluent_languages": LANGUAGES}


def filters_in_words(qualifications: Qualifications, folder: Path | None) -> list[dict[str, Any]]:
    """The filters of a draft, their choices by name."""
    filters: list[dict[str, Any]] = []
    if qualifications.min_approval_percent is not None:
        filters.append(_range("approval_rate", qualifications.min_approval_percent, 100))
    if qualifications.min_earlier_tasks or qualifications.max_earlier_tasks:
        filters.append(_range("approval_numbers", qualifications.min_earlier_tasks, qualifications.max_earlier_tasks))
    for field in _TABLES:
        if getattr(qualifications, field):
            filters.append({"filter_id": FILTERS[field], "selected_values": list(getattr(qualifications, field))})
    for name, chosen in qualifications.platform_filters.items():
        if isinstance(chosen, Between):
            filters.append(_range(name, chosen.at_least, chosen.at_most))
        else:
            filters.append({"filter_id": name, "selected_values": list(chosen)})
    for field in ("allow_list", "block_list"):
        name = getattr(qualifications, field)
        if name and folder is not None:
            listed = sorted(read_rater_list(folder, name))
            if listed:
                filters.append({"filter_id": FILTERS[field], "selected_values": listed})
    return filters


def _range(filter_id: str, lower: float | None, upper: float | None) -> dict[str, Any]:
    bounds = {"lower": lower, "upper": upper}
    return {
        "filter_id": filter_id,
        "selected_range": {k: int(v) if v == int(v) else v for k, v in bounds.items() if v is not None},
    }


def filters_in_numbers(
    filters: Sequence[Mapping[str, Any]], catalogue: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The filters as the API takes them; raises :class:`StudyError` with everything that Prolific does not know."""
    problems: list[Problem] = []
    converted = [_in_numbers(chosen, catalogue, problems) for chosen in filters]
    if problems:
        raise StudyError(problems)
    return converted


def _in_numbers(
    chosen: Mapping[str, Any], catalogue: Mapping[str, Mapping[str, Any]], problems: list[Problem]
) -> dict[str, Any]:
    filter_id = chosen["filter_id"]
    if filter_id in RATER_LISTS:
        return dict(chosen)
    field = _field_of(filter_id)
    if filter_id not in catalogue:
        problems.append(
            _problem(f"Prolific has no filter '{filter_id}'", did_you_mean(filter_id, list(catalogue)), field)
        )
        return dict(chosen)
    entry = catalogue[filter_id]
    wants = "range" if "selected_range" in chosen else "select"
    if entry.get("type") not in (None, wants):
        remedy = "give at_least or at_most" if wants == "select" else "give a list of answers"
        problems.append(_problem(f"Prolific's filter '{filter_id}' is of the kind '{entry['type']}'", remedy, field))
        return dict(chosen)
    if wants == "range":
        return {**chosen, "selected_range": dict(_bounded(chosen["selected_range"], entry))}
    choices = {str(label).casefold(): str(number) for number, label in (entry.get("choices") or {}).items()}
    numbers = []
    for name in chosen["selected_values"]:
        names = names_of(name, _TABLES[field]) if field in _TABLES else [name]
        number = next((choices[text.casefold()] for text in names if text.casefold() in choices), None)
        if number is None:
            labels = [str(label) for label in (entry.get("choices") or {}).values()]
            problems.append(
                _problem(f"Prolific's filter '{filter_id}' has no answer '{name}'", did_you_mean(name, labels), field)
            )
        else:
            numbers.append(number)
    return {**chosen, "selected_values": numbers}


def _bounded(bounds: Mapping[str, float], entry: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Both bounds of a range: the given ones, else the filter's own."""
    for bound, own in (("lower", "min"), ("upper", "max")):
        value = bounds.get(bound, entry.get(own))
        if value is not None:
            yield bound, value


def _field_of(filter_id: str) -> str:
    return next((field for field, name in FILTERS.items() if name == filter_id), "platform_filters")


def _problem(message: str, remedy: str, field: str) -> Problem:
    return Problem(message, remedy, STUDY_FILE, field=f"recruitment.qualifications.{field}")
