"""Criteria and published questionnaires that may be used freely, each with its source, to be put into a study file as they are.

Unlike ready questions (``design/ready_questions.py``), which a study file names, these are written out in it: somebody who takes
a published instrument wants to see, translate and cite what raters read.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from dialometer.design.ready_questions import PARTS
from dialometer.errors import UnknownName
from dialometer.registry import did_you_mean

PLACES = ("criteria", *PARTS)
"""Lists of the study file into which something can be put."""


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """Some criteria or questions that belong together, with their scales."""

    name: str
    label: str
    source: str
    licence: str
    scales: dict[str, Any]
    entries: list[dict[str, Any]]


@cache
def library(part: str) -> dict[str, LibraryEntry]:
    """What can be put into a list of the study file."""
    whole = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    listed = whole["criteria" if part == "criteria" else "questionnaires"] if part in PLACES else {}
    return {name: LibraryEntry(name=name, **{"licence": "", **entry}) for name, entry in listed.items()}


def insert(data: dict[str, Any], part: str, name: str) -> list[str]:
    """Puts an entry with its scales into the data of a study file; returns what it had already, which stays as it is.

    A scale of the study that has the wanted name but says something else stays, and the new one gets another name.
    """
    known = library(part)
    if name not in known:
        raise UnknownName(f"the library has no '{name}' for {part}", remedy=did_you_mean(name, list(known)))
    entry = copy.deepcopy(known[name])
    scales = data.setdefault("scales", {}) or {}
    data["scales"] = scales
    called = {wanted: _placed(scales, wanted, scale) for wanted, scale in entry.scales.items()}
    listed = data.get(part) or []
    data[part] = listed
    there = {criterion if isinstance(criterion, str) else criterion.get("name") for criterion in listed}
    for criterion in entry.entries:
        if criterion["name"] not in there:
            listed.append({**criterion, "scale": called[criterion["scale"]], "source": entry.source})
    return [criterion["name"] for criterion in entry.entries if criterion["name"] in there]


def _placed(scales: dict[str, Any], wanted: str, scale: Any) -> str:
    name, number = wanted, 2
    while name in scales and scales[name] != scale:
        name, number = f"{wanted}_{number}", number + 1
    scales[name] = scale
    return name
