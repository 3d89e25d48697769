"""Lets studies talk to avatars: the agent ``retriever`` learns here how a trained retriever is loaded."""

from __future__ import annotations

from pathlib import Path

from dialometer.agents.retriever import connect
from dialometer.retrieval.avatar import Avatar, load_avatar


def _load(folder: Path, threshold: float | None) -> Avatar:
    return load_avatar(folder, threshold=threshold)


def connect_avatars() -> None:
    """To be called by whoever builds agents; loads nothing yet."""
    connect(_load)
