"""Retrievers on disk: a folder with the options, the knowledge base and the files of trained models."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dialometer._version import __version__
from dialometer.errors import DialometerError
from dialometer.neural.work import QUIET, Work
from dialometer.readers.recordings import copy_recordings
from dialometer.retrieval.knowledge_base import KnowledgeBase, read_knowledge_base
from dialometer.retrieval.retriever import FittedRetriever, make_retriever, retriever_name

CONFIG_FILE = "retriever.json"
KB_FILE = "knowledge_base.jsonl"


def save_retriever(fitted: FittedRetriever, folder: Path) -> None:
    """Write a retriever; an older one in the folder is replaced once the new one is complete. Recordings come along."""
    folder.mkdir(parents=True, exist_ok=True)
    write_knowledge_base(fitted.kb, folder / KB_FILE)
    if fitted.kb.folder is not None:
        copy_recordings(fitted.kb.recordings, fitted.kb.folder, folder)
    fitted.save_into(folder)
    config = {
        "retriever": retriever_name(fitted.options),
        "options": fitted.options.model_dump(mode="json"),
        "knowledge_base": fitted.kb.fingerprint,
        "dialometer": __version__,
    }
    partial = folder / f"{CONFIG_FILE}.part"
    partial.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    partial.replace(folder / CONFIG_FILE)


def load_retriever(folder: Path, work: Work = QUIET) -> FittedRetriever:
    """The retriever that :func:`save` wrote, ready to rank."""
    config = read_config(folder)
    kb = read_knowledge_base(folder / KB_FILE)
    if kb.fingerprint != config.get("knowledge_base"):
        raise DialometerError(
            "the knowledge base was changed after the retriever was trained",
            where=str(folder / KB_FILE),
            remedy="train again with the changed knowledge base",
        )
    return make_retriever(config["retriever"], config.get("options")).load(kb, folder, work)


def is_saved(folder: Path) -> bool:
    """Whether a folder holds a saved retriever."""
    return (folder / CONFIG_FILE).is_file()


def read_config(folder: Path) -> dict[str, Any]:
    """What a saved retriever is: its name and options."""
    path = folder / CONFIG_FILE
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        remedy = "name a folder that 'dialometer retrieval train --out' wrote"
        raise DialometerError("no saved retriever", where=str(path), remedy=remedy) from error
    if not isinstance(config, dict) or not isinstance(config.get("retriever"), str):
        raise DialometerError("not the description of a retriever", where=str(path), remedy="train it again")
    return config


def write_knowledge_base(kb: KnowledgeBase, path: Path) -> None:
    """One answer per line, in our own form."""
    questions: dict[int, list[str]] = {}
    for question, answer in zip(kb.pair_question, kb.pair_answer, strict=True):
        questions.setdefault(int(answer), []).append(kb.questions[question])
    with path.open("w", encoding="utf-8") as file:
        for number, answer in enumerate(kb.answers):
            row = {"id": answer.id, "answer": answer.text, "questions": questions.get(number, [])}
            row |= answer.recording.as_json() if answer.recording else {}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


# Trained models: a folder is complete once it says what it was trained from, and is then never trained again.

DONE_FILE = "training.json"
CHECKPOINT_FILE = "checkpoint.pt"


def is_done(folder: Path, name: str) -> bool:
    """Whether the folder holds the complete model of this name (the fingerprint of all it depends on)."""
    path = folder / DONE_FILE
    if not path.is_file():
        return False
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False  # a file that is cut or changed says nothing: it is trained again
    return isinstance(about, dict) and about.get("name") == name


def mark_done(folder: Path, name: str, about: Mapping[str, Any]) -> None:
    """Written last, after the model's files; the checkpoint has then served its purpose."""
    partial = folder / f"{DONE_FILE}.part"
    partial.write_text(json.dumps({"name": name, **about}, indent=2) + "\n", encoding="utf-8")
    partial.replace(folder / DONE_FILE)
    (folder / CHECKPOINT_FILE).unlink(missing_ok=True)


def copy_model(source: Path, target: Path) -> None:
    """A trained model's folder, copied beside what belongs to it."""
    if source.resolve() != target.resolve():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("checkpoint*"))
