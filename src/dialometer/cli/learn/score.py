"""dialometer learn score: how good each dialogue of a file is, by a trained evaluator."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from dialometer.cli.learn._shared import EvaluatorDir, read_whole
from dialometer.cli.options import Address, AsJson, Device, EngineName, Speakers

if TYPE_CHECKING:
    from dialometer.learned.data.evaluator import DialogueScores, Evaluator

MANY = 20_000
"""Dialogues from which an evaluator of the best recipe scores in several processes of one machine: most of its work is in Python."""
UNLIKE = 0.25
"""Share of dialogues unlike the training dialogues from which this is said; in new dialogues of the same kind it is about 0.05."""


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="score", epilog="Example: dialometer learn score chats.jsonl --evaluator evaluator --out scores.csv"
    )
    def score_(
        dialogues: Annotated[
            Path, typer.Argument(metavar="DIALOGUES", help="File of dialogues, rated or not.", show_default=False)
        ],
        evaluator: EvaluatorDir = Path("evaluator"),
        out: Annotated[Path | None, typer.Option("--out", "-o", help="Write all scores to this CSV file.")] = None,
        engine: EngineName = "local",
        address: Address = "",
        speed: Annotated[
            str,
            typer.Option(
                "--speed",
                help="On a processor: exact, quick (8 bits), or auto: quick for thousands whose order it keeps.",
            ),
        ] = "auto",
        top: Annotated[int, typer.Option("--top", min=1, help="How many of the best and the worst are shown.")] = 10,
        device: Device = "auto",
        as_json: AsJson = False,
        speakers: Speakers = None,  # noqa: ARG001 - holds while the verb runs
    ) -> None:
        """Score dialogues. A score of 0 is a typical training dialogue; a difference is the log of the odds to be better.

        The deviation says how far the evaluator's models differ, or how unsure an evaluator of the best recipe is; it is empty
        for a single model of the published one.
        """
        from dialometer.cli.console import working
        from dialometer.errors import UnknownName
        from dialometer.learned.data.evaluator import read_about
        from dialometer.learned.evaluators import GAUSSIAN, Speed, load_evaluator, score_dialogues
        from dialometer.neural.device import choose_device
        from dialometer.neural.engines import LOCAL, InProcesses, engine_of
        from dialometer.registry import did_you_mean

        if speed not in (known := get_args(Speed)):
            raise UnknownName(f"there is no speed '{speed}'", remedy=did_you_mean(speed, list(known)))
        kind = read_about(evaluator).get("kind")
        given = read_whole(dialogues)
        has_much = len(given) >= MANY and kind == GAUSSIAN and choose_device(device) == "cpu"
        local = InProcesses() if has_much else LOCAL
        with working(device, None) as work, engine_of(engine, address, local=local) as opened:
            scores = score_dialogues(
                evaluator,
                given,
                device=device,
                speed=cast("Speed", speed),
                engine=opened,
                report=lambda n, total: work.report("Scoring", n, total),
            )
        rows: list[dict[str, Any]] = [
            {"id": dialogue.id, "score": float(score), "deviation": None if math.isnan(spread) else float(spread)}
            for dialogue, score, spread in zip(given, scores.values, scores.deviations, strict=True)
        ]
        if out is not None:
            _write(out, rows)
        if as_json:
            typer.echo(json.dumps(rows, ensure_ascii=False))
            return
        _show(rows, top)
        if len(given) > 1:
            _warn(load_evaluator(evaluator, device), scores)


def _warn(evaluator: Evaluator, scores: DialogueScores) -> None:
    """How often the evaluator expects to be right on these dialogues, and whether they are of another kind than its own."""
    from dialometer.cli.console import results
    from dialometer.learned.experiments.own_data import expected_accuracy

    expected = expected_accuracy(scores)
    text = f"By its own probabilities it names the better of two of them in {expected.value:.0%} of cases."
    unlike = float(evaluator.is_unlike_training(scores).mean())
    if unlike > UNLIKE:
        text += (
            f" {unlike:.0%} of them are unlike the dialogues it was trained on: check it on some ratings of your own, "
            "dialometer learn evaluate RATINGS --evaluator."
        )
    results.print(text, soft_wrap=True)


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    import csv

    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["id", "score", "deviation"])
        writer.writeheader()
        writer.writerows(rows)


def _show(rows: list[dict[str, Any]], top: int) -> None:
    from rich.table import Table

    from dialometer.cli.console import results

    ordered = sorted(rows, key=lambda row: -row["score"])
    shown = ordered if len(ordered) <= 2 * top else [*ordered[:top], None, *ordered[-top:]]
    table = Table("dialogue", "score", "deviation", box=None, pad_edge=False, header_style="bold")
    for row in shown:
        if row is None:
            table.add_row("…", "", "")
        else:
            spread = row["deviation"]
            table.add_row(str(row["id"]), f"{row['score']:+.2f}", "" if spread is None else f"{spread:.2f}")
    results.print(table)
    results.print(f"\n{len(rows):,} dialogues, the best first.")
