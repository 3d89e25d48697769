"""Complete studies to start from, one folder each."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from dialometer.errors import DialometerError, UnknownName
from dialometer.model.file_names import STUDY_FILE
from dialometer.registry import did_you_mean

_HERE = Path(__file__).parent


def template_names() -> list[str]:
    """All templates in alphabetical order."""
    return sorted(folder.name for folder in _HERE.iterdir() if (folder / STUDY_FILE).is_file())


def template_folder(name: str) -> Path:
    """Where a template stands."""
    if name not in template_names():
        raise UnknownName(f"there is no template '{name}'", remedy=did_you_mean(name, template_names()))
    return _HERE / name


@dataclass(frozen=True, slots=True)
class TemplateAbout:
    """What a template is for, for those who choose one."""

    name: str
    question: str
    picture: Path | None


def all_about_templates() -> list[TemplateAbout]:
    """The templates by the questions that they answer, the most asked first."""
    templates: list[tuple[int, TemplateAbout]] = []
    for name in template_names():
        about, picture = _HERE / name / "about.json", _HERE / name / "picture.webp"
        content = json.loads(about.read_text(encoding="utf-8")) if about.is_file() else {}
        entry = TemplateAbout(name, content.get("question", ""), picture if picture.is_file() else None)
        templates.append((content.get("place", len(templates) + 100), entry))
    return [entry for _, entry in sorted(templates, key=lambda numbered: numbered[0])]


def copy_template(name: str, target: Path) -> list[Path]:
    """Copies a template into a new or empty folder; never overwrites."""
    source = template_folder(name)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DialometerError(f"'{target}' exists and is not an empty folder", remedy="choose another name")
    target.mkdir(parents=True, exist_ok=True)
    copied = []
    for path in sorted(source.iterdir()):
        if path.is_file() and path.suffix in (".yaml", ".jsonl", ".md", ".txt"):
            shutil.copyfile(path, target / path.name)
            copied.append(target / path.name)
    return copied
