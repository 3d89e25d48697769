"""A study of one's own systems: a template whose example systems, items and numbers are replaced by files of outputs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dialometer.design.edit_yaml import edited
from dialometer.design.positions import parse_yaml
from dialometer.errors import DialometerError
from dialometer.exchange.own_systems.dialogue_outputs import holds_responses, read_pairs
from dialometer.exchange.own_systems.study_of_kind import (
    CENTS_PER_MINUTE,
    KINDS,
    S_AROUND,
    S_PER_ANSWER,
    WORDS_PER_S,
    formatted,
    is_of_responses,
    item_texts,
    study_from_files,
    written_from,
)
from dialometer.exchange.own_systems.system_outputs import SystemOutputs, read_outputs
from dialometer.model.file_names import STUDY_FILE

TEMPLATES = ("compare", "pairs", "anchoring")
"""Those whose texts fit any domain, or whose texts are adapted here."""
PROVENANCE_SUFFIX = ".provenance.json"
"""Beside responses that bots gave: which models, and how they were decoded."""
NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
S_PER_ITEM = 18  # of the anchoring template: less cannot be read
MINUTES_PER_ITEM = 1.2
HEAD = r"^# Two versions of an assistant.*\n(?:^#.*\n)*"
"""The remarks of a template about its own example."""


def study_from_outputs(
    template: str,
    files: Sequence[Path],
    folder: Path,
    *,
    systems: Sequence[str] = (),
    n_items: int | None = None,
) -> tuple[list[Path], list[str]]:
    """Copies the template, puts the items in, and adapts the study, its texts and its rules. The files, and what was assumed."""
    if template == "ratings" and is_of_responses(files):
        template = "compare"
    if template in KINDS and template != "chat":
        return study_from_files(template, files, folder, systems=systems, n_items=n_items)
    if template not in TEMPLATES:
        raise DialometerError(
            f"the texts of the template '{template}' are about its own systems",
            where="--responses",
            remedy="use 'ratings' (responses or transcripts one by one), 'pairs' (two systems side by side), 'best-worst', "
            "'candidates' or 'anchoring' (magnitude estimation with anchors)",
        )
    outputs = _outputs(template, files, systems, n_items)
    beside = files[0].with_name(files[0].name + PROVENANCE_SUFFIX)
    about = json.loads(beside.read_text(encoding="utf-8"))["systems"] if beside.is_file() else {}
    if template == "anchoring":
        _require_standards(outputs, files[0])
    more: list[Path] = []

    def change(folder: Path) -> None:
        path = folder / STUDY_FILE
        adapt = {"anchoring": _anchoring, "pairs": _pairs}.get(template, _compare)
        path.write_text(
            adapt(_own_systems(path.read_text(encoding="utf-8"), outputs, about), outputs), encoding="utf-8"
        )
        rows = (json.dumps(item, ensure_ascii=False) + "\n" for item in outputs.items)
        (folder / "items.jsonl").write_text("".join(rows), encoding="utf-8")
        if beside.is_file():
            more.append(folder / "responses.provenance.json")
            shutil.copyfile(beside, more[-1])
        if template == "anchoring":
            for name in ("consent.md", "instructions.md"):
                text = (folder / name).read_text(encoding="utf-8")
                (folder / name).write_text(_wording(text, outputs), encoding="utf-8")

    return [*written_from(template, folder, change), *more], outputs.notes


def _outputs(template: str, files: Sequence[Path], systems: Sequence[str], n_items: int | None) -> SystemOutputs:
    if template == "pairs" and len(files) == 2 and not any(holds_responses(file) for file in files):
        return read_pairs(files, n_items=n_items)
    outputs = read_outputs(files, systems=systems, n_items=n_items)
    if template == "pairs" and len(outputs.systems) != 2:
        raise DialometerError(
            f"a pair has two sides, but there are {len(outputs.systems)} systems: {', '.join(outputs.systems.values())}",
            where=str(files[0]),
            remedy="name two of them with --systems, or use the template 'compare'",
        )
    return outputs


def _require_standards(outputs: SystemOutputs, path: Path) -> None:
    for item in outputs.items:
        if not item.get("standard"):
            raise DialometerError(
                f"item '{item['id']}' has no standard response, which is the anchor of this study",
                where=str(path),
                remedy="take contexts from dialogues, add 'standard', or use the template 'compare'",
            )


def _replaced(text: str, changes: Sequence[tuple[str, str]]) -> str:
    for pattern, new in changes:
        text = re.sub(pattern, new.replace("\\", r"\\"), text, flags=re.MULTILINE)
    return text


def _own_systems(text: str, outputs: SystemOutputs, about: Mapping[str, Any]) -> str:
    """The template's study file with these systems and speakers; its remarks stay."""
    declared = []
    for name, label in outputs.systems.items():
        known = about.get(name, {})
        entry = {"name": name, "label": known.get("label", label), "description": known.get("about", "")}
        declared.append({key: value for key, value in entry.items() if (value and value != name) or key == "name"})
    spec = parse_yaml(text, "").data
    for comparison in spec["analysis"]["comparisons"]:
        if comparison["between"] == "systems":
            comparison["levels"] = list(outputs.systems)
    number = NUMBERS.get(len(outputs.systems), len(outputs.systems))
    spec |= {"systems": declared, "speakers": dict(outputs.speakers)}
    shown = formatted(outputs)
    if shown:
        spec["presentation"] = {**spec.get("presentation", {}), **shown}
    return edited(text, spec).replace("The three systems differ", f"The {number} systems differ")


def _compare(text: str, outputs: SystemOutputs) -> str:
    """Fewer items than the template gives, minutes by the length of the texts, pay by the minutes."""
    n_ratings = 2 * len(outputs.systems)
    return _replaced(
        _measured(text, outputs, n_ratings), ((HEAD, "# Responses of these systems, rated one by one.\n"),)
    )


def _pairs(text: str, outputs: SystemOutputs) -> str:
    """The kind of the items, and the same numbers."""
    kind = "transcript_pair\n  file: items.jsonl\n  pairs: free"
    return _replaced(
        _measured(text, outputs, 2),
        (
            (HEAD, "# What these two systems said, compared side by side.\n"),
            (kind, kind if outputs.kind == "transcript_pair" else f"{outputs.kind}\n  file: items.jsonl"),
        ),
    )


def _measured(text: str, outputs: SystemOutputs, n_answers: int) -> str:
    """How many items a rater gets, how long reading and answering takes, and what that pays."""
    n_practice, n_rated = _counts(outputs)
    words = sum(len(shown.split()) for item in outputs.items for shown in item_texts(item))
    n_shown = min(12, n_rated)
    s_per_item = words / len(outputs.items) / WORDS_PER_S + n_answers * S_PER_ANSWER
    minutes = max(2, round((n_shown * s_per_item + S_AROUND) / 60))
    return _replaced(
        text,
        (
            (r"items_per_rater: \d+", f"items_per_rater: {n_shown}"),
            (r"after_item: 4", f"after_item: {min(4, n_shown)}"),
            (r"n_practice_items: 0", f"n_practice_items: {n_practice}"),
            (r"^  minutes: \d+", f"  minutes: {minutes}"),
            (r"^  pay_cents: \d+", f"  pay_cents: {minutes * CENTS_PER_MINUTE}"),
            (r"\n  Takes the (?:output files|transcripts or outputs) of your own.*$", ""),
        ),
    )


def _anchoring(text: str, outputs: SystemOutputs) -> str:
    """The numbers that depend on how many items there are."""
    n_practice, n_rated = _counts(outputs)
    return _replaced(
        text,
        (
            (r"n_practice_items: \d+", f"n_practice_items: {n_practice}"),
            (
                r"at_least_s: 900 .*$",
                f"at_least_s: {S_PER_ITEM * n_rated}  # nobody reads {n_rated} conversations in less",
            ),
            (r"^  minutes: 60", f"  minutes: {max(1, round(MINUTES_PER_ITEM * n_rated))}"),
            (
                r"Conversations and responses are made up for this\n# template; replace items.jsonl by the output of your own .*$",
                "The responses are those of trained models;\n# responses.provenance.json says of which, and how they were made.",
            ),
        ),
    )


def _wording(text: str, outputs: SystemOutputs) -> str:
    """Consent and instructions of the anchoring template with the right numbers."""
    n_practice, n_rated = _counts(outputs)
    number = NUMBERS.get(len(outputs.systems), str(len(outputs.systems)))
    text = re.sub(r"\bthree(?= (?:\*\*responses\*\*|responses|possible responses))", number, text)
    text = text.replace(", as you might find it in an online forum", "").replace("Forum English is", "The English is")
    text = re.sub(r"\b50(?= (?:short )?conversations)", str(n_rated), text)
    if not n_practice:
        text = re.sub(
            r"You begin with \*\*one conversation for practice\*\*; its numbers are not counted. After that there are (\d+)",
            r"There are \1",
            text,
        )
    elif n_practice > 1:
        text = text.replace(
            "**one conversation for practice**; its", f"**{n_practice} conversations for practice**; their"
        )
    return text


def _counts(outputs: SystemOutputs) -> tuple[int, int]:
    """Items for practice, and items that count."""
    n_practice = sum(bool((item.get("metadata") or {}).get("practice")) for item in outputs.items)
    return n_practice, len(outputs.items) - n_practice
