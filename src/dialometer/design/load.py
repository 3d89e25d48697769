"""From a folder with study.yaml, items and texts to a Study; everything that is wrong is reported at once."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from dialometer.design.consistency import inconsistencies
from dialometer.design.items import ItemReader
from dialometer.design.pairs import pair_problems
from dialometer.design.positions import Positioned, explain, parse_yaml
from dialometer.design.ready_questions import with_ready_questions
from dialometer.design.translations import read_translations, translation_problems
from dialometer.errors import DialometerError, Problem, StudyError
from dialometer.folder_files import (
    MAX_ITEMS_BYTES,
    MAX_LIST_BYTES,
    MAX_TEXT_BYTES,
    FileRefused,
    read_inside,
    read_text_inside,
)
from dialometer.model.dialogue import clean_text
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.item import Item
from dialometer.model.study import Items, Study, StudySpec
from dialometer.quality import RULES
from dialometer.recruit.platforms import PLATFORMS, platform_of
from dialometer.recruit.screening_questions import screening_questions
from dialometer.registry import Registry, did_you_mean
from dialometer.scales import SCALES
from dialometer.scales.choice import Choice
from dialometer.scales.text import Text


def load_study(folder: Path | str) -> Study:
    """The study in a folder; raises :class:`StudyError` with every problem that makes it unusable."""
    study, problems = read_study(Path(folder))
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors or study is None:
        raise StudyError(errors)
    return study


def read_study(folder: Path) -> tuple[Study | None, list[Problem]]:
    """The study if it can be understood, and every problem found, warnings included."""
    path = folder / STUDY_FILE
    if not path.is_file():
        return None, [_no_study(folder)]
    try:
        text = read_text_inside(folder, STUDY_FILE)
    except FileRefused as error:
        return None, [Problem(f"the study file cannot be read: {error.message}", error.remedy, STUDY_FILE, 1, 1)]
    source = parse_yaml(text, STUDY_FILE)
    problems = list(source.problems)
    if not isinstance(source.data, dict):
        if not problems:
            problems.append(
                Problem("the study file is empty", "start from 'dialometer new TEMPLATE DIR'", STUDY_FILE, 1, 1)
            )
        return None, problems
    spec = _read_spec(source, problems)
    items, item_problems = _read_items(folder, source)
    problems += item_problems
    if spec is None:
        return None, problems
    spec = _with_screening(spec)
    texts, text_problems = _read_texts(folder, spec, source)
    translations, places, translation_faults = read_translations(folder, spec)
    study = Study(spec=spec, items=tuple(items), texts=texts, folder=folder, translations=translations)
    problems += [*text_problems, *translation_faults]
    problems += inconsistencies(study, source)
    problems += translation_problems(study, source, places)
    return study, problems


def _no_study(folder: Path) -> Problem:
    """Why a folder holds no study, told by what is there instead: nothing, a file, or other folders that are studies."""
    if folder.is_file():
        return Problem(f"'{folder}' is a file", f"name the folder of the study: {folder.parent}", str(folder))
    beside = folder if folder.is_dir() else folder.parent
    studies = sorted(path.parent.name for path in beside.glob(f"*/{STUDY_FILE}"))
    if not folder.exists():
        remedy = did_you_mean(folder.name, studies) if studies else "check the folder's name, and where you are"
        return Problem(f"there is no folder '{folder}'", remedy, str(folder))
    paths = ", ".join(str(folder / name) for name in studies[:5])
    remedy = f"name a study that is in it: {paths}" if studies else "make one with 'dialometer new TEMPLATE DIR'"
    return Problem(f"there is no {STUDY_FILE} in '{folder}'", remedy, STUDY_FILE)


def _read_spec(source: Positioned, problems: list[Problem]) -> StudySpec | None:
    data, unknown = with_ready_questions(dict(source.data), source, STUDY_FILE)
    problems += unknown
    is_whole = not unknown
    scales: dict[str, BaseModel] = {}
    for name, config in _mapping(data.get("scales")).items():
        scale = _read_part(SCALES, "type", config, ("scales", name), source, problems)
        is_whole &= scale is not None
        if scale is not None:
            scales[str(name)] = scale
    rules = []
    for i, config in enumerate(_list(data.get("quality"))):
        rule = _read_part(RULES, "rule", config, ("quality", i), source, problems)
        is_whole &= rule is not None
        if rule is not None:
            rules.append(rule)
    if isinstance(data.get("scales"), dict) and data["scales"]:
        data["scales"] = scales or {"_": Text()}
    if isinstance(data.get("quality"), list):
        data["quality"] = rules
    try:
        spec = StudySpec.model_validate(data)
    except ValidationError as error:
        problems += explain(error, StudySpec, source, STUDY_FILE)
        return None
    return spec if is_whole else None


def _with_screening(spec: StudySpec) -> StudySpec:
    """The study with questions for the qualifications that its platform cannot filter."""
    if spec.recruitment.platform not in PLATFORMS:
        return spec
    added = screening_questions(spec, platform_of(spec.recruitment))
    scales = {row.question.scale: Choice(options=list(row.options)) for row in added}
    screening = [*spec.screening, *(row.question for row in added)]
    return spec.model_copy(update={"screening": screening, "scales": {**spec.scales, **scales}}) if added else spec


def _read_part(
    registry: Registry[Any],
    key: str,
    config: Any,
    path: tuple[str | int, ...],
    source: Positioned,
    problems: list[Problem],
) -> BaseModel | None:
    """One scale or quality rule, by the class that its type or rule names."""
    line, column = source.at(path)
    field = ".".join(map(str, path))
    kind = config.get(key) if isinstance(config, dict) else None
    if not isinstance(kind, str):
        remedy = f"add '{key}:' with one of {', '.join(registry.names())}"
        problems.append(Problem(f"a {registry.kind} needs a '{key}'", remedy, STUDY_FILE, line, column, field))
        return None
    if kind not in registry:
        line, column = source.at((*path, key))
        remedy = did_you_mean(kind, registry.names())
        problems.append(
            Problem(f"unknown {registry.kind} '{kind}'", remedy, STUDY_FILE, line, column, f"{field}.{key}")
        )
        return None
    part: type[BaseModel] = registry.get(kind)
    try:
        return part.model_validate(config)
    except ValidationError as error:
        problems += explain(error, part, source, STUDY_FILE, path)
        return None


def _read_items(folder: Path, source: Positioned) -> tuple[list[Item], list[Problem]]:
    """Items are read even when other parts of the study file are broken, so that all problems show at once."""
    try:
        declared = Items.model_validate(_mapping(source.data.get("items")))
    except ValidationError:
        return [], []
    speakers = source.data.get("speakers", StudySpec.model_fields["speakers"].default)
    systems = [str(system.get("name")) for system in _list(source.data.get("systems")) if isinstance(system, dict)]
    try:
        content = read_inside(folder, declared.file, MAX_ITEMS_BYTES)
    except FileRefused as error:
        return [], [_refused("items file", declared.file, error, ("items", "file"), source)]
    # A broken file may have anything for a role, also what no key can hold.
    key = (hashlib.sha256(content).digest(), declared, repr(speakers), tuple(systems), folder)
    if key not in _items_read:
        reader = ItemReader(declared.kind, _mapping(speakers), systems, declared.file, folder)
        items = reader.read(content)
        if reader.names_files:
            return items, reader.problems
        _items_read[key] = (items, reader.problems)
        for old in list(_items_read)[:-N_KEPT]:
            _items_read.pop(old, None)
    items, problems = _items_read[key]
    return list(items), list(problems)


N_KEPT = 2
_items_read: dict[tuple[Any, ...], tuple[list[Item], list[Problem]]] = {}
"""The items read last, by their content: somebody who edits a study changes everything else far more often. Items that name
other files are read again each time, since those may have changed."""


def _refused(kind: str, name: str, error: DialometerError, path: tuple[str | int, ...], source: Positioned) -> Problem:
    """A file that is not read, told at the line that names it."""
    line, column = source.at(path)
    message = f"the {kind} '{name}' cannot be read: {error.message}"
    return Problem(message, error.remedy, STUDY_FILE, line, column, ".".join(map(str, path)))


def _read_texts(folder: Path, spec: StudySpec, source: Positioned) -> tuple[dict[str, str], list[Problem]]:
    """Every file the study names, by its name; one that is missing or empty is a problem where it is named."""
    files: list[tuple[str, tuple[str | int, ...]]] = [
        (getattr(spec.texts, key), ("texts", key)) for key in type(spec.texts).model_fields
    ]
    for i, factor in enumerate(spec.design.factors):
        for j, level in enumerate(factor.levels):
            if level.set.instructions:
                files.append((level.set.instructions, ("design", "factors", i, "levels", j, "set", "instructions")))
    for i, block in enumerate(spec.design.blocks):
        if block.set.instructions:
            files.append((block.set.instructions, ("design", "blocks", i, "set", "instructions")))
    if spec.presentation.instructions:
        files.append((spec.presentation.instructions, ("presentation", "instructions")))
    for i, rule in enumerate(spec.quality):
        name = getattr(rule, "file", "")
        if name:
            files.append((name, ("quality", i, "file")))
    texts: dict[str, str] = {}
    problems: list[Problem] = []
    for name, path in files:
        limit = MAX_LIST_BYTES if path[0] == "quality" else MAX_TEXT_BYTES
        try:
            texts[name] = clean_text(read_text_inside(folder, name, limit))
        except FileRefused as error:
            problems.append(_refused("text", name, error, path, source))
            continue
        except ValueError as error:
            refused = DialometerError(str(error), remedy="remove it from the file")
            problems.append(_refused("text", name, refused, path, source))
            continue
        if not texts[name]:
            problems.append(Problem(f"the text '{name}' is empty", "write it", name, 1, 1))
    return texts, problems


def _mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def check_study(folder: Path) -> tuple[Study | None, list[Problem]]:
    """The study if it can be understood, and every problem, sorted by file and line."""
    study, problems = read_study(folder)
    if study is not None:
        problems = problems + pair_problems(study)
    return study, sorted(problems, key=lambda p: (p.file, p.line, p.column))
