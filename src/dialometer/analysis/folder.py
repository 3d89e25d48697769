"""From a study's folder to its report in one call, for notebooks and scripts."""

from __future__ import annotations

from pathlib import Path

from dialometer.analysis.choose import analyse
from dialometer.design.load import load_study
from dialometer.model.places import DATABASE_FILE
from dialometer.model.report import Report
from dialometer.storage.store import Store


def analyse_folder(
    folder: str | Path, *, database: str = "", seed: int | None = None, n_resamples: int | None = None
) -> Report:
    """The report of the study in a folder, from the database beside it or the one named (``postgresql://…``)."""
    study = load_study(Path(folder))
    with Store.open(database or Path(folder) / DATABASE_FILE, create=False) as store:
        return analyse(study, store, seed=seed, n_resamples=n_resamples)
