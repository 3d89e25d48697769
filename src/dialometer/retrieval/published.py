"""The retrievers of Chierici and Habash (HumEval 2021, section 4) under their own names, with their settings.

Their encoder is BERT; by default ours is the packaged all-MiniLM-L6-v2, a small BERT, and ``model`` takes any other one. Batch
sizes are ours: larger ones where there are more pairs, so that a training takes minutes on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dialometer.retrieval.retriever import Retriever, make_retriever, retriever_name


@dataclass(frozen=True)
class Published:
    """A retriever of the paper: its name there, ours for its kind, and the settings that make it what it is."""

    label: str
    kind: str
    options: Mapping[str, Any]
    usual: Mapping[str, Any]
    """Settings that the paper does not name."""

    def make(self, options: Mapping[str, Any] | None = None) -> Retriever:
        """With further options, such as the model."""
        return make_retriever(self.kind, {**self.options, **self.usual, **(options or {})})


def _classifier(negatives: int | str, batch_size: int) -> Published:
    shown = "All" if negatives == "all" else negatives
    settings = {"negatives": negatives, "n_variants": 9, "changed_share": 0.1, "n_epochs": 3}
    return Published(f"BERT q-A 1:{shown}", "classifier", settings, {"batch_size": batch_size})


PUBLISHED: dict[str, Published] = {
    "bert-q-q": Published("BERT q-Q", "encoder", {"n_layers": 0}, {}),
    "bert-q-a-1-1": _classifier(1, 32),
    "bert-q-a-1-10": _classifier(10, 32),
    "bert-q-a-1-100": _classifier(100, 256),
    "bert-q-a-1-all": _classifier("all", 1024),
}
"""By the names of the command line."""
ALL_PUBLISHED = ("random", "tfidf", "bm25", *PUBLISHED)
"""The paper's five retrievers, its two further ratios and chance; those not above are ours, which are the same."""


def published_label(retriever: Retriever) -> str:
    """What the paper calls a retriever of these settings; empty where it has none. The model may be another one."""
    kind, own = retriever_name(retriever), retriever.model_dump()
    for entry in PUBLISHED.values():
        if entry.kind == kind and all(own[name] == value for name, value in entry.options.items()):
            return entry.label
    return retriever.label if kind in ALL_PUBLISHED and retriever == type(retriever)() else ""
