"""A study from its folder: begun, filled by simulated raters, read as a table, and planned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from dialometer.analysis.base.data import load_data
from dialometer.analysis.planning.power import PowerAnalysis
from dialometer.analysis.planning.power_report import power_report
from dialometer.analysis.planning.simulated_study import Assumptions
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.errors import DialometerError, UnknownName
from dialometer.flow.engine import Flow, now_ms
from dialometer.flow.simulated import EngineAccess
from dialometer.model.file_names import DATABASE_FILE
from dialometer.model.report import Report
from dialometer.model.study import Study
from dialometer.neural.engines import LOCAL, InProcesses
from dialometer.public.frames import DataTable
from dialometer.quality.gold import gold_items
from dialometer.registry import did_you_mean
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth, keep_truth
from dialometer.storage.store import Store, open_collected


def new_study(template: str, folder: str | Path) -> Study:
    """A complete study in a new folder, from a template such as ``anchoring``, ``strategies``, ``avatar`` or ``chat``."""
    copy_template(template, Path(folder))
    return load_study(Path(folder))


def simulate_raters(folder: str | Path, n_raters: int = 30, *, seed: int = 1, database: str = "") -> pl.DataFrame:
    """A dry run: raters whose truth is known answer the study in a folder. Gives the judgments that count.

    The same as ``dialometer simulate`` does with its usual habits. A study that holds judgments already is refused, so that
    simulated raters never stand beside people unasked.
    """
    study = load_study(Path(folder))
    with Store.open(database or Path(folder) / DATABASE_FILE) as store:
        if next(iter(store.sessions.all()), None) is not None:
            remedy = "make a new folder with new_study, or read what is there with read_judgments"
            raise DialometerError("the study holds sessions already", where=str(folder), remedy=remedy)
        access, truth, habits = EngineAccess(Flow(study, store)), draw_truth(study, seed), Habits()
        keep_truth(Path(folder), truth, seed=seed, n_raters=n_raters, habits=habits)
        simulate(study, access, truth, n_raters=n_raters, seed=seed, start_ms=now_ms(), habits=habits)
    return read_judgments(folder, database=database)


def read_judgments(
    folder: str | Path,
    *,
    database: str = "",
    sources: Sequence[str] = (),
    about: Sequence[str] = (),
    with_gold: bool = False,
) -> DataTable:
    """The judgments of a study that count in its analysis, one row each: rater, item, system, criterion, value, choice …

    Practice, gold items (unless ``with_gold``), excluded raters and withdrawn sessions are left out. Without ``sources``
    (``person``, ``imported``, ``simulated``, ``model``) it is people's judgments, or simulated ones where there are no others.
    ``about`` names keys of the items' metadata, such as ``language`` of imported battles, that become columns, so that
    judgments can be split by them.
    """
    study = load_study(Path(folder))
    with open_collected(Path(folder), database) as store:
        judgments = load_data(study, store, sources=tuple(sources)).judgments
    if not with_gold:
        judgments = judgments.filter(~pl.col("item").is_in(sorted(gold_items(study))))
    for name in about:
        judgments = judgments.with_columns(_about_items(study, judgments["item"], name))
    return DataTable(judgments)


def _about_items(study: Study, items: pl.Series, name: str) -> pl.Series:
    """What the items' metadata say under one key, for each judgment; lists and objects as JSON."""
    known = {item.id: item.metadata[name] for item in study.items if name in item.metadata}
    if not known:
        keys = sorted({key for item in study.items for key in item.metadata})
        raise UnknownName(f"no item has '{name}' in its metadata", remedy=did_you_mean(name, keys))
    values = [known.get(item) for item in items.to_list()]
    written = [json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value for value in values]
    return pl.Series(name, written, strict=False)


def power(
    folder: str | Path,
    effect: float = 0.5,
    *,
    raters: Sequence[int] = (10, 20, 40, 80),
    items: Sequence[int] = (),
    target: float = 0.8,
    alpha: float = 0.05,
    n_simulations: int = 200,
    seed: int = 1,
    n_processes: int = 1,
    needs_all: bool = False,
    item_sd: float = 0.6,
    rater_sd: float = 0.35,
    taste_sd: float = 0.3,
    careless: float = 0.05,
) -> Report:
    """How many raters the study in a folder needs to find an effect, by simulating it with its declared analysis.

    The effect between systems is the difference between the best and the worst in standard deviations of quality; between levels of
    a factor it is Cohen's d of raters' mean ratings. ``item_sd``, ``rater_sd`` and ``taste_sd`` are how much systems differ
    from item to item, raters in leniency, and raters in their opinion of a system; ``careless`` is the share of raters who
    mostly answer at random. With ``needs_all`` every test of the primary comparison must be significant, else any of them.
    """
    study = load_study(Path(folder))
    assumed = Assumptions(item_sd=item_sd, rater_sd=rater_sd, taste_sd=taste_sd, careless=careless)
    engine = InProcesses(n_processes) if n_processes != 1 else LOCAL
    analysis = PowerAnalysis(
        study,
        effect,
        alpha=alpha,
        target=target,
        n_simulations=n_simulations,
        seed=seed,
        engine=engine,
        assumed=assumed,
        needs_all=needs_all,
    )
    try:
        result = analysis.run(sorted(raters), sorted(items))
    finally:
        if isinstance(engine, InProcesses):
            engine.close()
    return power_report(study, result, n_simulations=n_simulations, seed=seed, alpha=alpha, assumed=assumed)
