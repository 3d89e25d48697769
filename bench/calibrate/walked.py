"""A study as it really runs: simulated raters on every screen, quality rules at work, judgments in a database."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.calibrate.cells import Cell, cached_study
from dialometer.analysis.base.data import StudyData, load_data
from dialometer.analysis.planning.simulated_study import planted
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.simulate.run import simulate
from dialometer.simulate.screen_view import Visit
from dialometer.storage.store import Store

START_MS = 1_790_000_000_000


class Shifted(EngineAccess):
    """Raters in some conditions give larger magnitudes: an effect of the condition, planted where answers are sent."""

    def __init__(self, flow: Flow, shifts: Mapping[int, float], slope: float) -> None:
        super().__init__(flow)
        self.factor = {cell: math.exp(slope * shift) for cell, shift in shifts.items()}
        self.store, self.criteria = flow.store, {criterion.name for criterion in flow.study.spec.criteria}

    def submit(self, visits: Sequence[Visit]) -> tuple[int, int]:
        return super().submit([self._shifted(visit) for visit in visits])

    def _shifted(self, visit: Visit) -> Visit:
        session = self.store.sessions.get(visit.session)
        factor = self.factor.get(session.draw.cell, 1.0) if session is not None else 1.0
        if factor == 1.0:
            return visit
        answers: dict[str, Any] = {
            name: value * factor if name.split(".", 1)[0] in self.criteria and isinstance(value, int | float) else value
            for name, value in visit.answers.items()
        }
        return replace(visit, answers=answers)


def walked(cell: Cell, seed: int) -> StudyData:
    """The data of one study that raters walked through. Places are not limited, so that all of them find one."""
    study = cached_study(cell.design, cell.n_items)
    design = study.spec.design.model_copy(update={"judgments_per_item": None})
    recruitment = study.spec.recruitment.model_copy(update={"quota": None})
    study = replace(
        study, spec=study.spec.model_copy(update={"design": design, "recruitment": recruitment, "seed": seed})
    )
    truth, habits, shifts = planted(study, cell.effect, seed, cell.assumed)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "walked.db", create=True) as store:
        access = Shifted(Flow(study, store), shifts, habits.slope)
        simulate(study, access, truth, n_raters=cell.n_raters, seed=seed, start_ms=START_MS, habits=habits)
        return load_data(study, store)
