"""Small studies for the tests of the store: four cells, six items, and the screens raters send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from dialometer.model.session import Answer, Draw, Judgment, ScreenVisit, Session, Snapshot, Submission
from dialometer.storage import Store
from dialometer.storage.sessions import Patience

CONDITIONS = [{"anchor": anchor, "layout": layout} for anchor in ("none", "both") for layout in ("a", "b")]
ITEMS = tuple(f"item{n}" for n in range(6))
T0 = 1_700_000_000_000
MINUTE = 60_000


def choose_balanced(snapshot: Snapshot) -> Draw:
    """The emptiest cell, the lowest number first; the three items with the fewest places taken."""
    cell = min(range(len(CONDITIONS)), key=lambda one: (snapshot.cell_counts.get(one, 0), one))
    items = sorted(ITEMS, key=lambda item: (snapshot.item_counts.get(item, 0), item))[:3]
    return Draw(ordinal=snapshot.ordinal, cell=cell, blocks=("main",), items={"main": tuple(items)})


def register(store: Store) -> int:
    return store.studies.register("trial", "sha-1", '{"name": "trial"}', T0)


def arrive(store: Store, external_id: str | None = None, **changes: Any) -> Session:
    arguments: dict[str, Any] = {
        "session_id": uuid4().hex,
        "token": uuid4().hex,
        "platform": "link",
        "external_id": external_id,
        "params": {},
        "source": "person",
        "study_version": 1,
        "at_ms": T0,
        "choose": choose_balanced,
        "conditions": CONDITIONS,
    }
    stale = changes.pop("stale_before_ms", T0 - 120 * MINUTE)
    return store.sessions.arrive(**{"patience": Patience(stale), **arguments, **changes})


def judgment(session: Session | str, item: str, value: Any = 4, **changes: Any) -> Judgment:
    session_id = session if isinstance(session, str) else session.id
    fields: dict[str, Any] = {
        "session_id": session_id,
        "item_id": item,
        "criterion": "fluency",
        "value": value,
        "scale": "likert",
        "system": "a",
        "position": 1,
        "side": 2,
        "shown_at_ms": T0 + 1,
        "answered_at_ms": T0 + 5,
    }
    return Judgment(**fields | changes)


def answer(session: Session | str, question: str, value: Any, **changes: Any) -> Answer:
    session_id = session if isinstance(session, str) else session.id
    fields: dict[str, Any] = {"session_id": session_id, "part": "post", "question": question, "value": value}
    return Answer(**fields | changes)


def screen(
    session: Session | str,
    step: int,
    judgments: Sequence[Judgment] = (),
    answers: Sequence[Answer] = (),
    *,
    token: str = "",
    **changes: Any,
) -> Submission:
    session_id = session if isinstance(session, str) else session.id
    name = f"screen{step}"
    fields: Mapping[str, Any] = {
        "token": token or f"{session_id}/{step}",
        "session_id": session_id,
        "step": step,
        "next_step": step + 1,
        "visit": ScreenVisit(session_id=session_id, screen=name, shown_at_ms=T0, submitted_at_ms=T0 + 7000),
        "judgments": judgments,
        "answers": answers,
    }
    return Submission(**{**fields, **changes})


def places(store: Store) -> dict[str, int]:
    """Places that count, by item, over all cells."""
    counts: dict[str, int] = {}
    for (_cell, item), by_state in store.counts.item_counts().items():
        counts[item] = counts.get(item, 0) + by_state["reserved"] + by_state["done"]
    return counts


def snapshot_of(store: Store, **changes: Any) -> Snapshot:
    """What the next arrival would see; nobody arrives."""
    seen: list[Snapshot] = []

    class Enough(Exception):
        pass

    def look(snapshot: Snapshot) -> Draw:
        seen.append(snapshot)
        raise Enough

    with suppress(Enough):
        arrive(store, choose=look, **changes)
    return seen[0]
