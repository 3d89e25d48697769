"""Retrievers as people name them: by name, with options, in groups, or by the folder of a trained one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dialometer.errors import DialometerError
from dialometer.neural.work import Work
from dialometer.registry import did_you_mean
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.published import ALL_PUBLISHED, PUBLISHED
from dialometer.retrieval.retriever import RETRIEVERS, FittedRetriever, Retriever, make_retriever
from dialometer.retrieval.saving import is_saved, load_retriever, read_config

Selected = Mapping[str, Retriever | Path]
"""By the name they were selected with: options to fit with, or the folder of a trained retriever."""

CROWD = "crowd"
"""The crowd's mean rating as a retriever: it needs ratings, so no group includes it."""
CLASSIFIER = "classifier"
"""Hours on a CPU: of the groups, only ``published`` includes it, by the paper's names."""
FROM_SIMPLE = ("random", "bm25", "tfidf", "encoder-answer", "encoder", "mixed", "context", "ranker", "fused")


def select_retrievers(names: Iterable[str]) -> dict[str, Retriever | Path]:
    """From ``name``, ``name:option=value,…``, a folder, ``untrained``, ``all`` or ``published``; commas join several.

    A name may be one of the paper's (``bert-q-a-1-100``).
    """
    selected: dict[str, Retriever | Path] = {}
    usual = [name for name in RETRIEVERS.names() if name not in (CROWD, CLASSIFIER)]
    for wanted in [part for name in names for part in _parts(name)]:
        if wanted == "published":
            selected |= {name: _made(name) for name in ALL_PUBLISHED}
        elif wanted in ("all", "untrained"):
            kept = [name for name in usual if wanted == "all" or not RETRIEVERS.get(name).is_trained]
            selected |= {name: make_retriever(name) for name in from_simple(kept)}
        elif is_saved(Path(wanted)):
            selected[wanted] = Path(wanted)
        else:
            name, _, options = wanted.partition(":")
            selected[wanted] = _made(name, _options(options))
    return selected


def _made(name: str, options: Mapping[str, Any] | None = None) -> Retriever:
    """A retriever by the paper's name for it or by ours."""
    if name in PUBLISHED:
        return PUBLISHED[name].make(options)
    if name not in RETRIEVERS.names():
        raise DialometerError(
            f"unknown retriever '{name}'", remedy=did_you_mean(name, [*RETRIEVERS.names(), *PUBLISHED])
        )
    return make_retriever(name, dict(options or {}))


def select_one(name: str) -> Retriever:
    """A single retriever that is fitted now."""
    selected = list(select_retrievers([name]).values())
    if len(selected) != 1 or isinstance(selected[0], Path):
        raise DialometerError(f"'{name}' is not one retriever", remedy="see dialometer retrieval list")
    return selected[0]


def from_simple(names: Iterable[str]) -> list[str]:
    """Names of retrievers from the simplest to the fused one; those of other packages come after ours."""

    def order(name: str) -> tuple[bool, int, str]:
        place = FROM_SIMPLE.index(name) if name in FROM_SIMPLE else len(FROM_SIMPLE)
        return RETRIEVERS.get(name).is_trained, place, name

    return sorted(names, key=order)


def _parts(text: str) -> list[str]:
    """Names separated by commas; a name with options stands alone, since options have commas too."""
    return [text] if ":" in text or Path(text).exists() else [part.strip() for part in text.split(",") if part.strip()]


def _options(text: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, sign, value = part.partition("=")
        if not sign:
            remedy = "write name:option=value, as in ranker:negatives=100"
            raise DialometerError(f"'{part}' is not an option", remedy=remedy)
        try:
            options[key.strip()] = json.loads(value)
        except ValueError:
            options[key.strip()] = value.strip()
    return options


def fit_or_load(retriever: Retriever | Path, kb: KnowledgeBase, work: Work) -> FittedRetriever:
    """A trained retriever from its folder, or one fitted now."""
    if not isinstance(retriever, Path):
        return retriever.fit(kb, work)
    fitted = load_retriever(retriever, work)
    if fitted.kb.texts != kb.texts:
        remedy = "evaluate it with the knowledge base it was trained on"
        raise DialometerError("the retriever was trained on other answers", where=str(retriever), remedy=remedy)
    return fitted


def retriever_label(name: str, retriever: Retriever | Path) -> str:
    """A retriever's name in tables, for what it was selected with."""
    if isinstance(retriever, Path):
        return retriever.name
    kind, _, options = name.partition(":")
    label = PUBLISHED[kind].label if kind in PUBLISHED else retriever.label
    return f"{label} ({options})" if options else label


def retriever_about(retriever: Retriever | Path) -> str:
    """What a retriever does, in a sentence."""
    if isinstance(retriever, Path):
        return RETRIEVERS.get(read_config(retriever)["retriever"]).about
    return retriever.about
