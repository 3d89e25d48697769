"""dialometer retrieval train: a retriever fitted, calibrated and kept in a folder, ready to talk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.interruption import continues
from dialometer.cli.options import AsJson, Cache, Device, Seed
from dialometer.cli.retrieval._shared import Cost, KbFile, LearnFrom, Lenient

if TYPE_CHECKING:
    from dialometer.retrieval.training.train_retriever import TrainedRetriever


CUTS = (1, 2, 10)


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="train",
        epilog="Example: dialometer retrieval train kb.csv --out avatar -r fused --learn-from dialogues.jsonl",
    )
    def train(
        kb_file: KbFile,
        out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the retriever is kept.")],
        retriever: Annotated[
            str, typer.Option("--retriever", "-r", help="Name, or name:option=value,… (dialometer retrieval list).")
        ] = "fused",
        learn_from: LearnFrom = None,
        calibrate_on: Annotated[
            Path | None,
            typer.Option("--calibrate-on", help="Dialogues with marked answers that it does not learn from."),
        ] = None,
        folds: Annotated[
            int,
            typer.Option("--folds", min=0, help="Folds of cross-validation, which trains once per fold; 0 for none."),
        ] = 3,
        cost_of_wrong: Cost = 1.0,
        seed: Seed = 0,
        device: Device = "auto",
        cache: Cache = None,
        lenient: Lenient = False,
        as_json: AsJson = False,
    ) -> None:
        """Train a retriever on a knowledge base, find the confidence at which it should answer, and save it.

        Cross-validation finds the weights of the fused retriever and the confidence of any; with --calibrate-on the
        confidence comes from those dialogues instead. An interrupted training continues where it stopped.
        """
        from dialometer.cli.console import errors, working
        from dialometer.cli.retrieval._shared import read_lessons
        from dialometer.errors import DialometerError
        from dialometer.retrieval.knowledge_base import read_knowledge_base
        from dialometer.retrieval.saving import is_saved
        from dialometer.retrieval.selection import select_one
        from dialometer.retrieval.training.train_retriever import train_retriever

        if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not is_saved(out))):
            raise DialometerError(f"'{out}' exists and holds something else", remedy="choose another folder")
        if folds == 1:
            raise DialometerError("one fold leaves nothing to learn from", remedy="use --folds 0, or 2 and more")
        selected = select_one(retriever)
        kb = read_knowledge_base(kb_file)
        lessons = read_lessons(learn_from, kb, lenient=lenient) if learn_from else None
        held_out = read_lessons(calibrate_on, kb, lenient=lenient) if calibrate_on else None
        if lessons and held_out and set(lessons.queries) & set(held_out.queries):
            raise DialometerError(
                "some dialogues would be both learned from and calibrated on", remedy="name different ones"
            )
        with continues(), working(device, cache) as work:
            if folds and selected.is_trained:
                _keep(train_retriever(kb, selected, lessons, work, n_folds=0), out)
                errors.print(
                    f"A first version is saved in {out}. Cross-validation continues, to find the confidence at which it should answer."
                )
            trained = train_retriever(
                kb,
                selected,
                lessons,
                work,
                held_out=held_out,
                n_folds=folds,
                seed=seed,
                cost_of_wrong=cost_of_wrong,
                cuts=CUTS,
            )
        _keep(trained, out)
        _print_result(trained, out, as_json=as_json)


def _keep(trained: TrainedRetriever, folder: Path) -> None:
    """The retriever and its calibration; one of an earlier training goes where there is no new one."""
    from dialometer.retrieval.avatar import CALIBRATION_FILE, save_calibration
    from dialometer.retrieval.saving import save_retriever

    save_retriever(trained.fitted, folder)
    (folder / CALIBRATION_FILE).unlink(missing_ok=True)
    if trained.calibration is not None:
        save_calibration(trained.calibration, folder)


def _print_result(trained: TrainedRetriever, folder: Path, *, as_json: bool) -> None:
    from dialometer.cli.console import results
    from dialometer.cli.retrieval._tables import show_parts, show_trade_off

    if as_json:
        content = {
            "folder": str(folder),
            "options": trained.fitted.options.model_dump(mode="json"),
            "calibration": trained.calibration.as_json() if trained.calibration else None,
            "parts": {name: dict(zip((f"SR@{k}" for k in CUTS), rates, strict=True)) for name, rates in trained.parts},
        }
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    if trained.parts:
        show_parts(trained.parts, CUTS)
        results.print()
    if trained.calibration:
        show_trade_off(trained.calibration)
    results.print(f"\nSaved in [bold]{folder}[/]. Talk to it: dialometer retrieval chat {folder}", soft_wrap=True)
