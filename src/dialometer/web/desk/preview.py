"""A study as raters of one condition see it, page by page. Nothing is stored: there is no store."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from dialometer.design.assign import draw_session
from dialometer.errors import AssignmentError, FlowError
from dialometer.flow.engine import Flow, now_ms
from dialometer.model.session import Session, Snapshot
from dialometer.model.study import Study
from dialometer.storage.store import Store


class NoStore:
    """Stands where a store would be; the one thing it can do is to keep nothing."""

    def register_study(self, *_: object) -> int:
        """A study that is only looked at has no number."""
        return 0

    def __getattr__(self, name: str) -> object:
        raise FlowError("a preview stores nothing", remedy="take part by the study's own link to try that")


class Preview:
    """One condition of a study, walked through by somebody who only looks."""

    def __init__(self, study: Study, cell: int) -> None:
        self.study = study
        self.cell = cell
        self.flow = Flow(study, cast(Store, NoStore()))
        others = frozenset(range(len(study.cells))) - {cell}
        try:
            draw = draw_session(study, Snapshot(ordinal=1, closed_cells=others))
        except AssignmentError as error:
            raise FlowError(
                f"this condition gives raters nothing to do: {error.message}", remedy="look at the study's design"
            ) from error
        began = now_ms()
        self.session = Session(
            id="preview",
            rater_id="preview",
            ordinal=1,
            condition=study.cells[cell],
            draw=draw,
            started_at_ms=began,
            last_seen_at_ms=began,
        )

    @property
    def n_steps(self) -> int:
        """How many screens there are."""
        return len(self.flow.path(self.session).steps)

    def at(self, step: int) -> Session:
        """The session standing at a step."""
        at_ms = now_ms()
        return replace(self.session, step=min(step, self.n_steps), started_at_ms=at_ms, last_seen_at_ms=at_ms)

    def keys(self) -> list[tuple[int, str]]:
        """Every step with what kind of screen it is, for a list to choose from."""
        names = []
        for i, step in enumerate(self.flow.path(self.session).steps):
            about = f" {step.task.item_id}" if step.task is not None else ""
            kind = "practice" if step.task is not None and step.task.is_practice else step.kind
            names.append((i, f"{i + 1}. {kind.replace('_', ' ')}{about}"))
        return names
