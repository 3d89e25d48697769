"""Whether every session holds the screens it has passed, and each screen its answers."""

from __future__ import annotations

from collections.abc import Iterator

from dialometer.design.lock import fingerprint
from dialometer.flow.screens import build_screen
from dialometer.flow.steps import Path, Paths
from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.storage.store import Store

SKIPPED = ("comprehension", "more")
"""Screens that a session can pass without submitting them: later attempts, and asking for more again."""


def unfinished_screens(study: Study, store: Store) -> tuple[list[str], int, int]:
    """Problems in sentences, how many sessions were looked at, and how many belong to another version of the study."""
    versions = {version.id: version.fingerprint for version in store.studies.versions()}
    own = fingerprint(study)
    paths = Paths(study, n_kept=64)
    sessions = store.sessions.all()  # before their screens: a running server adds to both
    screens = store.submissions.screens_by_session()
    judged: dict[str, set[tuple[str, str]]] = {}
    for judgment in store.records.judgments():
        judged.setdefault(judgment.session_id, set()).add((judgment.item_id, judgment.criterion))
    problems: list[str] = []
    n_seen = n_other = 0
    for session in sessions:
        if session.source == "imported" or not session.rater_id:  # without a rater: erased
            continue
        if versions.get(session.study_version) != own:
            n_other += 1
            continue
        path = paths.of(session.draw)
        missing = list(_missing(study, session, path, screens.get(session.id, set()), judged.get(session.id, set())))
        if missing and not store.sessions.get(session.id).rater_id:
            continue  # a running server erased it after the sessions were read
        n_seen += 1
        problems += missing
    return problems, n_seen, n_other


def _missing(
    study: Study, session: Session, path: Path, screens: set[str], judged: set[tuple[str, str]]
) -> Iterator[str]:
    for index, step in enumerate(path.steps[: session.step]):
        if step.kind not in SKIPPED and step.key not in screens:
            yield f"session {session.ordinal} has passed the screen {step.key}, which is not stored"
        elif step.kind == "item" and step.task is not None:
            wanted = {(step.task.item_id, criterion) for criterion in step.criteria}
            if wanted <= judged:
                continue
            fields = build_screen(study, path, index, is_shown=False).fields
            required = {field.name.split(".", 1)[0] for field in fields if field.is_required}
            lacking = sorted(criterion for item, criterion in wanted - judged if criterion in required)
            if lacking:
                yield f"session {session.ordinal} has no judgment on {', '.join(lacking)} of {step.task.item_id}"
