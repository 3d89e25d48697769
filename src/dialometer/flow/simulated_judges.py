"""Simulated judges: programs that see the same truth as simulated raters, with the noise and the bias that the study file declares."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from dialometer.design.lock import fingerprint
from dialometer.model.item import CandidateItem, Item
from dialometer.model.judges import Judge, SimulatedJudge
from dialometer.model.session import Answer, Judgment
from dialometer.model.study import Criterion, Study
from dialometer.simulate.rater import Habits, keyed_normal, number_use
from dialometer.simulate.truth import Truth
from dialometer.storage.imports import ImportedSession
from dialometer.storage.store import Store

NAME_PART, NAME_QUESTION = "model", "name"
"""Where a session of a judge keeps the judge's name."""


def simulate_judges(study: Study, store: Store, truth: Truth, *, seed: int, at_ms: int) -> dict[str, int]:
    """Stores the judgments of every judge that declares how it is simulated; says how many each gave. Once for each seed."""
    known = {session.id for session in store.sessions.all(source="model")}
    counts: dict[str, int] = {}
    version = store.studies.register(study.spec.name, fingerprint(study), study.spec.model_dump_json(), at_ms)
    for judge in study.spec.judges:
        digest = hashlib.sha256(f"{judge.model_dump_json()} {seed} {fingerprint(study)}".encode()).hexdigest()
        session = f"judge-{digest[:24]}"
        if judge.simulated is None or session in known:
            continue
        # A session holds one answer on each thing: choices in the other order are a session of their own.
        orders = (session, f"{session}x")
        judgments = list(_judgments(study, judge, judge.simulated, truth, orders, at_ms, seed))
        came = [
            ImportedSession(
                id=name, rater=judge.name if name == session else f"{judge.name}#x", condition=study.cells[0],
                judgments=[judgment for judgment in judgments if judgment.session_id == name],
                answers=[Answer(session_id=name, part=NAME_PART, question=NAME_QUESTION, value=judge.name)],
                started_at_ms=at_ms, finished_at_ms=at_ms, source="model",
            )
            for name in orders
        ]  # fmt: skip
        store.imports.add(
            [one for one in came if one.judgments], file_name=f"simulated judge {judge.name}", sha256=digest, format="simulated",
            study_version=version, at_ms=at_ms, platform="model",
        )  # fmt: skip
        counts[judge.name] = len(judgments)
    return counts


def _judgments(
    study: Study, judge: Judge, habits: SimulatedJudge, truth: Truth, sessions: tuple[str, str], at_ms: int, seed: int
) -> Iterator[Judgment]:
    for item in study.rated_items:
        if judge.items != "all" and item.id not in judge.items:
            continue
        block = next((own for own in study.blocks if own.name == item.block), study.blocks[0])
        for criterion in study.block_criteria(block):
            for order, system, value in _answers(study, item, criterion, judge, habits, truth, seed):
                side = order.index(value if value in order else system) + 1 if (value in order or system) else 0
                yield Judgment(
                    session_id=sessions[not system and order != tuple(item.systems)], item_id=item.id, system=system,
                    criterion=criterion.name, value=value,
                    scale=study.scale_for(criterion, study.presentation(study.cells[0], block)).type, block=block.name,
                    side=side, order=order, shown_at_ms=at_ms, answered_at_ms=at_ms,
                )  # fmt: skip


def _answers(
    study: Study, item: Item, criterion: Criterion, judge: Judge, habits: SimulatedJudge, truth: Truth, seed: int
) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    """The order of systems, the system judged (none for a choice) and the answer."""
    scale = study.scale_for(criterion, study.presentation(study.cells[0]))
    systems = ("",) if isinstance(item, CandidateItem) else tuple(item.systems)
    seen = {
        system: habits.slope * truth.quality(item.id, criterion.name, system)
        + habits.lifts.get(system, 0.0)
        + habits.noise_sd * keyed_normal(seed, "judge", judge.name, item.id, criterion.name, system)
        for system in systems
    }
    if not scale.compares:
        use = number_use(Habits(), np.array(np.log(Habits().free_modulus)), None)
        for system in systems:
            value = scale.simulate(np.array(seen[system]), use)
            if value is not None:
                yield systems, system, scale.parse(value.item())
        return
    if len(systems) != 2 or scale.choice_form != "one":
        return
    for order in (systems, systems[::-1]) if judge.orders == "both" else (systems,):
        gap = seen[order[0]] + habits.first_place - seen[order[1]]
        yield order, "", order[0] if gap > 0 else order[1]
