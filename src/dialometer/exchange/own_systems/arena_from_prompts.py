"""A live arena from a folder of prompts and a file of systems: complete, with neutral texts and the declared analysis."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dialometer.design.edit_yaml import yaml_text
from dialometer.design.positions import parse_yaml
from dialometer.errors import DialometerError
from dialometer.exchange.own_systems.study_of_kind import written_from
from dialometer.exchange.own_systems.system_outputs import plain_name, read_prompts
from dialometer.model.file_names import STUDY_FILE

SUFFIXES = (".txt", ".md")
MOST_PER_RATER = 4
_ABOUT = "We compare computer programs that answer questions in writing. We want to know which of them people would rather ask."
_DEBRIEFING = """# Thank you!

You have reached the end of the study.

## What we wanted to know

You talked with computer programs that answer questions. We compare them by your votes. Which two you met each time, and which
of them was A, was decided by lot, so that neither names nor places could play a part.

## Your data and your questions

If you no longer want your conversations and votes to be used, have them deleted with your withdrawal code; it is shown
on this page. If you would like to hear about the results, write to {{contact}}.
"""


def read_prompt_texts(path: Path) -> dict[str, str]:
    """Prompts by id: every text file of a folder, named like its file, or those of one file as ``respond`` reads it."""
    if not path.is_dir():
        items = read_prompts(path)[0]
        longer = next((item["id"] for item in items if len(item["context"]) > 1), None)
        if longer is not None:
            raise DialometerError(
                f"the prompt '{longer}' has several turns, but raters begin the conversation themselves",
                where=str(path),
                remedy="give each prompt as one message",
            )
        return {item["id"]: item["context"][0]["text"] for item in items}
    texts: dict[str, str] = {}
    for file in sorted(path.iterdir()):
        if file.suffix in SUFFIXES and file.is_file():
            text = " ".join(file.read_text(encoding="utf-8-sig", errors="replace").split())
            if not text:
                raise DialometerError(
                    "the file is empty", where=str(file), remedy="write the prompt, or remove the file"
                )
            name = plain_name(file.stem) or file.stem
            if name in texts:
                raise DialometerError(f"two files are called '{name}'", where=str(file), remedy="rename one")
            texts[name] = text
    if not texts:
        raise DialometerError(
            "the folder has no prompts",
            where=str(path),
            remedy=f"one file per prompt, ending in {' or '.join(SUFFIXES)}",
        )
    return texts


def arena_from_prompts(prompts: Path, declared: Mapping[str, Any], folder: Path) -> list[Path]:
    """Writes the study. ``declared`` is what a file of systems holds: ``systems`` with their agents, perhaps ``live``."""
    texts = read_prompt_texts(prompts)
    names = [str(system["name"]) for system in declared["systems"]]
    if len(names) < 2:
        raise DialometerError("two systems meet in an arena", where="--agents", remedy="declare at least two systems")

    def change(folder: Path) -> None:
        n_given = min(MOST_PER_RATER, len(texts))
        spec = parse_yaml((folder / STUDY_FILE).read_text(encoding="utf-8"), "").data
        spec |= _changes(spec, declared, names, n_given)
        head = "# A live arena of your own systems: raters write to two of them at once and vote.\n"
        (folder / STUDY_FILE).write_text(head + yaml_text(spec), encoding="utf-8")
        items = "".join(json.dumps(_item(*entry), ensure_ascii=False) + "\n" for entry in texts.items())
        (folder / "items.jsonl").write_text(items, encoding="utf-8")
        _write_texts(folder, n_given)

    return written_from("arena", folder, change)


def _changes(
    spec: Mapping[str, Any], declared: Mapping[str, Any], names: Sequence[str], n_given: int
) -> dict[str, Any]:
    criteria = [criterion["name"] for criterion in spec["criteria"]]
    comparisons = [
        {
            "name": f"{name}_votes",
            "between": "systems",
            "levels": list(names),
            "criteria": [name],
            "hypothesis": f"The systems differ in how often they are preferred ({name}).",
        }
        for name in criteria
    ]
    return {
        "title": "Two assistants, one question",
        "name": "arena",
        "description": "A live arena: raters write to two systems at once, side by side and without their names, and vote.",
        **{key: declared[key] for key in ("systems", "live") if declared.get(key)},
        "arena": {"messages": "same", "pairs": "balanced" if len(names) == 2 else "uncertain", "reveal": "never"},
        "design": {**spec["design"], "items_per_rater": n_given},
        "analysis": {**spec["analysis"], "comparisons": comparisons},
    }


def _item(name: str, text: str) -> dict[str, Any]:
    return {
        "id": name,
        "scenario": f"Begin with this question, in your own words if you like: {text}",
        "min_turns": 1,
        "max_turns": 12,
        "metadata": {"prompt": text, "simulated_messages": [text]},
    }


def _write_texts(folder: Path, n_given: int) -> None:
    """The template's texts without what is about its own systems and situations."""
    consent = (folder / "consent.md").read_text(encoding="utf-8")
    begin = consent.index("We compare computer programs")
    end = consent.index("## What you will do")
    consent = f"{consent[:begin]}{_ABOUT}\n\n{consent[end:]}"
    counted = "one question" if n_given == 1 else f"{n_given} questions"
    changes = (
        ("three situations. In each you", f"{counted}. For each you"),
        ("at least two\nmessages in each situation", "at least one\nmessage for each"),
    )
    (folder / "consent.md").write_text(_replaced(consent, changes), encoding="utf-8")
    text = (folder / "instructions.md").read_text(encoding="utf-8")
    of_instructions = (
        ("**three situations**", f"**{counted}**"),
        ("In each you talk", "For each you talk"),
        ("from one situation to the next", "from one question to the next"),
        ("**Read the situation**", "**Read the question**"),
        ("after two messages at the earliest", "after one message at the earliest"),
    )
    (folder / "instructions.md").write_text(_replaced(text, of_instructions), encoding="utf-8")
    (folder / "debriefing.md").write_text(_DEBRIEFING, encoding="utf-8")


def _replaced(text: str, changes: Sequence[tuple[str, str]]) -> str:
    """Each passage once; a passage that the template no longer has is a mistake of ours, never left as it is."""
    for old, new in changes:
        if old not in text:
            raise AssertionError(f"the template 'arena' no longer says '{old}'")
        text = text.replace(old, new)
    return text
