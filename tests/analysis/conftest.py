"""Studies from templates with simulated judgments: quick ones as arrays, whole ones through the database."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dialometer.analysis.base.data import StudyData, data_from_arrays
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.model.study import Study
from dialometer.simulate.judgment_arrays import simulate_judgments
from dialometer.simulate.rater import Habits
from dialometer.simulate.truth import Truth, draw_truth

START_MS = 1_800_000_000_000


def _keep_items(path: Path, n_items: int) -> None:
    """Leaves practice and so many other items in a study's file of items."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    practice = [line for line in lines if '"practice"' in line]
    rated = [line for line in lines if '"practice"' not in line]
    path.write_text("".join([*practice, *rated[:n_items]]), encoding="utf-8")


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Study]:
    """A template's study, its file edited by replacing texts; the same edits give the same object."""
    made: dict[tuple[object, ...], Study] = {}

    def make(name: str, *edits: tuple[str, str], n_items: int | None = None, blocks: tuple[str, ...] = ()) -> Study:
        key = (name, n_items, blocks, *edits)
        if key not in made:
            folder: Path = tmp_path_factory.mktemp(name) / name
            copy_template(name, folder)
            path = folder / "study.yaml"
            text = path.read_text(encoding="utf-8")
            for old, new in edits:
                assert old in text, old
                text = text.replace(old, new)
            path.write_text(text, encoding="utf-8")
            if n_items is not None:
                _keep_items(folder / "items.jsonl", n_items)
            if blocks:
                items = folder / "items.jsonl"
                rows = [json.loads(line) for line in items.read_text(encoding="utf-8").splitlines()]
                rows = [{**row, "block": blocks[place % len(blocks)]} for place, row in enumerate(rows)]
                items.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            made[key] = load_study(folder)
        return made[key]

    return make


@pytest.fixture
def quick() -> Callable[..., StudyData]:
    """Study data of simulated raters, without a database."""

    def make(
        study: Study,
        *,
        n_raters: int,
        seed: int = 1,
        truth: Truth | None = None,
        habits: Habits | None = None,
        has_times: bool = True,
    ) -> StudyData:
        truth = truth or draw_truth(study, seed)
        habits = habits or Habits(careless_share=0)
        columns = simulate_judgments(study, truth, habits, n_raters=n_raters, seed=seed)
        minutes = np.random.default_rng(seed).gamma(20, 3, n_raters) if has_times else None
        return data_from_arrays(study, columns, minutes_by_rater=minutes)

    return make


@pytest.fixture(scope="session")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The folder of a study that simulated raters walked through, database and questionnaires included; read only."""
    made: dict[tuple[object, ...], Path] = {}

    def make(
        name: str,
        n_raters: int,
        *edits: tuple[str, str],
        n_items: int | None = None,
        seed: int = 1,
        drop_out: float = 0.0,
    ) -> Path:
        from dialometer.flow.engine import Flow
        from dialometer.flow.simulated import EngineAccess
        from dialometer.simulate.run import simulate
        from dialometer.storage.store import Store

        key = (name, n_raters, n_items, seed, drop_out, *edits)
        if key not in made:
            folder: Path = tmp_path_factory.mktemp(name) / name
            copy_template(name, folder)
            path = folder / "study.yaml"
            text = path.read_text(encoding="utf-8")
            for old, new in edits:
                assert old in text, old
                text = text.replace(old, new)
            path.write_text(text, encoding="utf-8")
            if n_items is not None:
                _keep_items(folder / "items.jsonl", n_items)
            study = load_study(folder)
            with Store.open(folder / "study.db") as store:
                flow = Flow(study, store, clock=lambda: START_MS)
                habits = Habits(drop_out=drop_out)
                simulate(
                    study,
                    EngineAccess(flow),
                    draw_truth(study, seed),
                    n_raters=n_raters,
                    seed=seed,
                    start_ms=START_MS,
                    habits=habits,
                )
            made[key] = folder
        return made[key]

    return make
