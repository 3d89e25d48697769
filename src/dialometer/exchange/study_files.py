"""A drafted study as files: study.yaml, items.jsonl and the texts, such that the study can be checked and reported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dialometer.exchange.draft import COMPARING, Draft, ItemDraft
from dialometer.exchange.guess import Scale
from dialometer.exchange.records import Condition, plain_name
from dialometer.scales import SCALES

NO_TEXT = "(This text is not part of the imported data.)"
_TEXTS = {
    "consent.md": """# {title}

The judgments in this study were collected elsewhere and imported from {files}. Whether and to what the raters agreed is
documented where the data come from, not here.

This page is a placeholder. Replace it before you ask anyone to take part.
""",
    "instructions.md": """# {title}

The judgments in this study were collected elsewhere. The instructions that raters read there are not part of the imported
data.
""",
    "debriefing.md": """# {title}

The judgments in this study were collected elsewhere; there was no debriefing here.
""",
}


class _Dumper(yaml.SafeDumper):
    """Quotes every text that could be taken for a number; readers of YAML differ in what they take for one."""


def _quoted_if_like_a_number(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if text[:1] in "+-.0123456789" else None)


_Dumper.add_representer(str, _quoted_if_like_a_number)


@dataclass(frozen=True, slots=True)
class WrittenStudy:
    """What a drafted study holds, for telling the user."""

    name: str
    files: tuple[str, ...]
    kind: str
    systems: tuple[str, ...]
    n_items: int
    n_items_without_text: int
    scales: dict[str, str]
    """Criterion to its scale in words."""
    has_guessed_scales: bool


def write_study(draft: Draft, folder: Path, name: str, sources: Sequence[str]) -> WrittenStudy:
    """Write the files of a drafted study into an existing folder."""
    writer = _StudyWriter(draft, name, sources)
    spec = writer.spec()
    head = (
        "# Written by 'dialometer import' from judgments that were collected elsewhere.\n"
        "# Scales are guessed from the values unless the data came with a dictionary: correct them where you know better.\n"
    )
    text = head + yaml.dump(spec, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    lines = [json.dumps(item, ensure_ascii=False) for item in writer.items()]
    (folder / "items.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = {"title": spec["title"], "files": ", ".join(sources)}
    for file, template in _TEXTS.items():
        (folder / file).write_text(template.format(**words), encoding="utf-8")
    has_text = [any(item.responses.values()) for item in draft.items.values()]
    return WrittenStudy(
        name=spec["name"],
        files=("study.yaml", "items.jsonl", *_TEXTS),
        kind=writer.kind,
        systems=tuple(system["name"] for system in spec["systems"]),
        n_items=len(has_text),
        n_items_without_text=has_text.count(False),
        scales=writer.scales_in_words(),
        has_guessed_scales=writer.has_guessed_scales(),
    )


class _StudyWriter:
    """Builds the parts of the study file."""

    def __init__(self, draft: Draft, name: str, sources: Sequence[str]) -> None:
        self.draft = draft
        self.name = plain_name(name, "study")
        self.sources = sources
        self.by_condition = draft.scales()
        self.scale_names: dict[str, str] = {}
        self.scales: dict[str, Scale] = {}
        self.kind = self._kind()

    def spec(self) -> dict[str, Any]:
        """The whole study file."""
        draft, declared = self.draft, self.draft.declared
        criteria = [self._criterion(text, name) for text, name in draft.criteria.names.items()]
        questions = self._questions()
        systems = [
            _without_empty(
                {
                    "name": name,
                    "label": declared.system(text, "label") or (text if text != name else ""),
                    "description": declared.system(text, "description"),
                }
            )
            for text, name in draft.systems.names.items()
        ]
        rate = {"rate": "turns"} if self.kind == "dialogue" and any(item.turns for item in draft.items.values()) else {}
        design: dict[str, Any] = {"factors": self._factors()}
        if set(draft.blocks) - {"main"}:
            design["blocks"] = [{"name": name} for name in draft.blocks]
        return {
            "dialometer": 1,
            "name": self.name,
            "title": declared.title or f"Imported judgments: {self.name}",
            "description": f"Judgments collected elsewhere, imported from {', '.join(self.sources)}.",
            "seed": 1,
            "systems": systems,
            "items": {"kind": self.kind, **rate},
            "scales": self.scales,
            "criteria": criteria,
            **questions,
            "design": {key: value for key, value in design.items() if value},
            "recruitment": {"quota": max(1, len(draft.raters))},
        }

    def _kind(self) -> str:
        """The kind of item that can hold what was judged."""
        items = list(self.draft.items.values())
        compares = any(s["type"] in COMPARING for of in self.by_condition.values() for s in of.values())
        if compares:
            return "transcript_pair" if all(len(item.responses) == 2 for item in items) else "responses"
        if self.draft.has_judgments_of_no_system:
            return "candidate"
        has_turns = any(item.turns for item in items)
        return "dialogue" if has_turns or all(len(item.responses) == 1 for item in items) else "responses"

    def _scale(self, scale: Scale, about: str) -> str:
        """The name of a scale, declared once however many criteria use it."""
        key = json.dumps(scale, sort_keys=True)
        if key not in self.scale_names:
            size = scale.get("points") or (scale.get("high") if scale["type"] == "slider" else None)
            wanted = f"{scale['type']}_{size}" if size else scale["type"]
            if scale["type"] in ("choice", "multiple") or wanted in self.scales:
                wanted = f"{scale['type']}_{about}"
            self.scale_names[key] = plain_name(wanted, "scale")
            self.scales[self.scale_names[key]] = scale
        return self.scale_names[key]

    def _criterion(self, text: str, name: str) -> dict[str, Any]:
        declared = self.draft.declared
        scale = next(of_condition[text] for of_condition in self.by_condition.values() if text in of_condition)
        label = declared.criterion(text, "label") or (text if text != name else name.replace("_", " ").capitalize())
        criterion = {
            "name": name,
            "label": label,
            "question": declared.criterion(text, "question")
            or f"{label} (as asked where the judgments were collected)",
            "definition": declared.criterion(text, "definition"),
            "scale": self._scale(scale, name),
        }
        return {**_without_empty(criterion), "is_required": False}

    def _factors(self) -> list[dict[str, Any]]:
        """Factors with at least two levels; each level sets its scales, or only carries its name."""
        factors = []
        for text, name in self.draft.factors.names.items():
            levels = self.draft.levels[text].names
            if len(levels) < 2:
                continue
            entries: list[dict[str, Any]] = []
            for level_text, level in levels.items():
                scales = self._scales_at((text, level_text))
                change = {"scales": scales} if scales else {"variables": {name: level_text}}
                entries.append(_without_empty({"name": level, "label": level_text, "set": change}))
            factors.append({"name": name, "label": text if text != name else "", "levels": entries})
        return [_without_empty(factor) for factor in factors]

    def _scales_at(self, level: tuple[str, str]) -> dict[str, str]:
        """The scales that a level uses, where that is not the same for all levels."""
        result = {}
        for text, name in self.draft.criteria.names.items():
            used: dict[str, list[Condition]] = {}
            for condition, of_condition in self.by_condition.items():
                if text in of_condition:
                    used.setdefault(json.dumps(of_condition[text], sort_keys=True), []).append(condition)
            here = [key for key, conditions in used.items() if any(level in condition for condition in conditions)]
            if len(used) > 1 and len(here) == 1:
                result[name] = self._scale(json.loads(here[0]), f"{name}_{plain_name(level[1], 'level')}")
        return result

    def _questions(self) -> dict[str, list[dict[str, Any]]]:
        keys = {"screening": "screening", "pre": "pre_questionnaire", "post": "post_questionnaire"}
        result: dict[str, list[dict[str, Any]]] = {}
        for (part, name), scale in self.draft.question_scales().items():
            text = self.draft.declared.question(part, name) or f"{name} (as asked where the judgments were collected)"
            question = {"name": plain_name(name, "question"), "text": text, "scale": self._scale(scale, name)}
            result.setdefault(keys[part], []).append({**question, "is_required": False})
        return result

    def items(self) -> list[dict[str, Any]]:
        """The items, with a placeholder for every text that the files do not have."""
        return [self._item(item) for item in self.draft.items.values()]

    def _item(self, item: ItemDraft) -> dict[str, Any]:
        names = self.draft.systems.names
        common: dict[str, Any] = {"id": item.id}
        if set(self.draft.blocks) - {"main"}:
            common["block"] = item.block or next(iter(self.draft.blocks))
        if item.is_practice:
            common["metadata"] = {"practice": True}
        context = [{"speaker": "User", "text": item.context or NO_TEXT}]
        said = {names[system]: text or NO_TEXT for system, text in item.responses.items()}
        before = context if item.context else []
        match self.kind:
            case "transcript_pair":
                sides = [
                    {"system": system, "turns": [*before, {"speaker": "Agent", "text": text}]}
                    for system, text in said.items()
                ]
                return {**common, "a": sides[0], "b": sides[1]}
            case "responses":
                shown = {name: said.get(name, NO_TEXT) for name in names.values()}
                return {**common, "context": context, "responses": shown}
            case "candidate":
                candidate = {"speaker": "Agent", "text": next(iter(said.values()), NO_TEXT)}
                return {**common, "context": context, "candidate": candidate, "ranks": dict.fromkeys(said, 1)}
            case _:
                system, text = next(iter(said.items()))
                if item.turns:  # any turn that was rated must be one of the agent's
                    before = [{"speaker": "Agent", "text": NO_TEXT}] * max(item.turns)
                return {**common, "system": system, "turns": [*before, {"speaker": "Agent", "text": text}]}

    def scales_in_words(self) -> dict[str, str]:
        """Criterion to its scale or scales, in words."""
        words: dict[str, list[str]] = {}
        for of_condition in self.by_condition.values():
            for text, scale in of_condition.items():
                described = SCALES.get(scale["type"]).model_validate(scale).describe()
                words.setdefault(self.draft.criteria.names[text], []).append(described)
        return {name: " or ".join(dict.fromkeys(several)) for name, several in words.items()}

    def has_guessed_scales(self) -> bool:
        """Whether a scale is not as a dictionary beside the data says."""
        declared = self.draft.declared
        return any(
            scale != declared.scale(text, condition)
            for condition, of_condition in self.by_condition.items()
            for text, scale in of_condition.items()
        )


def _without_empty(entries: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if value not in ("", None, [], {})}
