"""Trained models on disk: a folder is complete once it says what it was trained from, and is then never trained again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DONE_FILE = "training.json"
CHECKPOINT_FILE = "checkpoint.pt"


def is_done(folder: Path, name: str) -> bool:
    """Whether the folder holds the complete model of this name (the fingerprint of all it depends on)."""
    path = folder / DONE_FILE
    return path.is_file() and json.loads(path.read_text(encoding="utf-8")).get("name") == name


def mark_done(folder: Path, name: str, told: Mapping[str, Any]) -> None:
    """Written last, after the model's files; the checkpoint has then served its purpose."""
    partial = folder / f"{DONE_FILE}.part"
    partial.write_text(json.dumps({"name": name, **told}, indent=2) + "\n", encoding="utf-8")
    partial.replace(folder / DONE_FILE)
    (folder / CHECKPOINT_FILE).unlink(missing_ok=True)


def copy_model(source: Path, target: Path) -> None:
    """A trained model's folder, copied beside what belongs to it."""
    if source.resolve() != target.resolve():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("checkpoint*"))
