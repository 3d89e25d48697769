"""dialometer learn score: how good each dialogue of a file is, by a trained evaluator."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from dialometer.cli.interruption import continues
from dialometer.cli.learn._shared import EvaluatorDir, read_each, tell_mute
from dialometer.cli.options import Address, AsJson, Device, EngineName, Speakers

if TYPE_CHECKING:
    from dialometer.learned.data.evaluator import DialogueScores, Evaluator
    from dialometer.learned.score_file import Row, ScoredFile

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
        out: Annotated[
            Path | None,
            typer.Option(
                "--out", "-o", help="Write all scores to this CSV file; run again, an interrupted run continues."
            ),
        ] = None,
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
        """Score dialogues. A score of 0 is a typical training dialogue; a difference is the log odds of being better.

        The deviation says how far the evaluator's models differ, or how unsure an evaluator of the best recipe is; it is empty
        for a single model of the published one. The familiarity, in the file, is the share of the variance of a dialogue's
        quality that the training dialogues explain: near 0, the evaluator does not know. A dialogue without a turn of an agent
        has no score.
        """
        from dialometer.cli.console import results, working
        from dialometer.errors import UnknownName
        from dialometer.learned.data.evaluator import read_about
        from dialometer.learned.evaluators import GAUSSIAN, Speed, load_evaluator
        from dialometer.learned.score_file import DialogueSource, score_file
        from dialometer.neural.device import choose_device
        from dialometer.neural.engines import LOCAL, InProcesses, engine_of
        from dialometer.registry import did_you_mean

        if speed not in (known := get_args(Speed)):
            raise UnknownName(f"there is no speed '{speed}'", remedy=did_you_mean(speed, list(known)))
        kind = read_about(evaluator).get("kind")
        source = DialogueSource.of(dialogues, lambda: read_each(dialogues))
        has_much = source.n >= MANY and kind == GAUSSIAN and choose_device(device) == "cpu"
        local = InProcesses() if has_much else LOCAL
        keeping = continues() if out is not None else nullcontext()
        with keeping, working(device, None) as work, engine_of(engine, address, local=local) as opened:
            scored = score_file(
                evaluator,
                source,
                out=out,
                device=device,
                speed=cast("Speed", speed),
                engine=opened,
                work=work,
                n_ends=2 * top,
                keeps_rows=as_json,
            )
        tell_mute(scored.mute, "and so without a score")
        if as_json:
            typer.echo(json.dumps([_record(row) for row in scored.rows or ()], ensure_ascii=False))
            return
        _show(scored, top)
        if scored.n_known:
            results.print(f"{scored.n_known:,} of them had been scored by a run that was interrupted.")
        if len(scored.scores.values) > 1:
            _warn(load_evaluator(evaluator, device), scored.scores)


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


def _record(row: Row) -> dict[str, Any]:
    """A row for programs; a number that is not known is null."""
    from dialometer.learned.score_file import COLUMNS

    known = [None if isinstance(value, float) and math.isnan(value) else value for value in row]
    return dict(zip(COLUMNS, known, strict=True))


def _show(scored: ScoredFile, top: int) -> None:
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.report.numbers import write_signed

    best = [row for _, _, row in sorted(scored.best, reverse=True)]
    worst = [row for _, _, row in sorted(scored.worst)]
    n_scored = scored.n - len(scored.mute)
    shown = best if n_scored <= 2 * top else [*best[:top], None, *worst[-top:]]
    table = Table("dialogue", "score", "deviation", box=None, pad_edge=False, header_style="bold")
    for row in shown:
        if row is None:
            table.add_row("…", "", "")
        else:
            name, score, spread, _ = row
            table.add_row(name, write_signed(score, 2), "" if math.isnan(spread) else f"{spread:.2f}")
    results.print(table)
    results.print(f"\n{n_scored:,} dialogues, the best first.")
