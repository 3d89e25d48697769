"""Studies with collected data, on either database, for the tests of export and import."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.exchange.formats import ImportOptions
from dialometer.exchange.importing import ImportResult, import_files
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.model.session import Judgment
from dialometer.model.study import Study
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

START_MS = 1_760_000_000_000
Collect = Callable[..., tuple[Study, Path]]


def _take_part(study: Study, database: str | Path, n_raters: int, habits: Habits) -> None:
    """Simulated raters of a study, stored in the database given."""
    with Store.open(database) as store:
        access, truth = EngineAccess(Flow(study, store)), draw_truth(study, 7)
        simulate(study, access, truth, n_raters=n_raters, seed=7, start_ms=START_MS, habits=habits)


@pytest.fixture(scope="session")
def collect_into(tmp_path_factory: pytest.TempPathFactory) -> Collect:
    """Makes a study from a template in a folder and lets simulated raters take part, stored in the database given.

    The same raters of the same template come once; a new SQLite file is a copy of what they left.
    """
    made: dict[tuple[object, ...], Path] = {}

    def make(folder: Path, template: str, database: str, n_raters: int = 4, **habits: float) -> tuple[Study, Path]:
        copy_template(template, folder)
        study = load_study(folder)
        if "://" in database or Path(database).exists():
            _take_part(study, database, n_raters, Habits(**habits))
            return study, folder
        key = (template, n_raters, *sorted(habits.items()))
        if key not in made:
            made[key] = tmp_path_factory.mktemp("collected") / "study.db"
            _take_part(study, made[key], n_raters, Habits(**habits))
        shutil.copy(made[key], database)
        return study, folder

    return make


@pytest.fixture
def collect(tmp_path: Path, collect_into: Collect) -> Collect:
    """The same in the test's own folder."""

    def make(template: str, database: str, *, name: str = "study", **options: float) -> tuple[Study, Path]:
        return collect_into(tmp_path / name, template, database, **options)

    return make


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def rows() -> Callable[[Path], list[dict[str, str]]]:
    """Reads a CSV file as dictionaries, with the standard library alone."""
    return read_csv


AT_MS = 1_770_000_000_000


@pytest.fixture
def bring_in(tmp_path: Path) -> Callable[..., ImportResult]:
    """Writes a text as a file and imports it into the folder 'in' (database beside it unless given)."""

    def call(
        text: str | Path,
        format: str = "long",
        *,
        name: str = "data.csv",
        folder: str = "in",
        database: str = "",
        columns: dict[str, str] | None = None,
        criteria: Sequence[str] = (),
        questions: Sequence[str] = (),
        time_format: str = "",
        is_dry_run: bool = False,
        with_rules: bool = False,
    ) -> ImportResult:
        path = text if isinstance(text, Path) else tmp_path / name
        if isinstance(text, str):
            path.write_text(text, encoding="utf-8")
        return import_files(
            tmp_path / folder,
            [path],
            database or tmp_path / f"{folder}.db",
            format=format,
            options=ImportOptions(columns or {}, criteria, questions, time_format),
            at_ms=AT_MS,
            is_dry_run=is_dry_run,
            with_rules=with_rules,
        )

    return call


@pytest.fixture
def stored(tmp_path: Path) -> Callable[..., list[Judgment]]:
    """The judgments in a database, in order."""

    def call(folder: str = "in", database: str = "") -> list[Judgment]:
        with Store.open(database or tmp_path / f"{folder}.db") as store:
            return list(store.records.judgments())

    return call
