"""dialometer retrieval threshold: how sure an avatar must be to answer, and what each choice costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dialometer.cli.options import AsJson, Cache, Device
from dialometer.cli.retrieval._shared import CalibrateOn, Cost, KbOrAvatar, Lenient, OneRetriever


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="threshold", epilog="Example: dialometer retrieval threshold kb.csv --dialogues d.jsonl --svg curve.svg"
    )
    def threshold(
        kb_or_avatar: KbOrAvatar,
        retriever: OneRetriever = "mixed",
        dialogues: CalibrateOn = None,
        cost_of_wrong: Cost = 1.0,
        svg: Annotated[Path | None, typer.Option("--svg", help="Draw the curve into this file.")] = None,
        device: Device = "auto",
        cache: Cache = None,
        lenient: Lenient = False,
        as_json: AsJson = False,
    ) -> None:
        """Show for every threshold how many questions an avatar would answer, and how many of those correctly.

        Confidence is learned on the marked answers of --dialogues, or by cross-validation inside the knowledge base.
        """
        from dialometer.cli.console import results, working
        from dialometer.cli.retrieval._shared import avatar_of
        from dialometer.cli.retrieval._tables import show_trade_off
        from dialometer.errors import DialometerError
        from dialometer.retrieval.threshold import trade_off_svg

        with working(device, cache) as work:
            avatar = avatar_of(
                kb_or_avatar, retriever, dialogues, None, work, lenient=lenient, cost_of_wrong=cost_of_wrong
            )
        calibration = avatar.calibration
        if calibration is None:
            remedy = "train it with folds, or give --dialogues with marked answers"
            raise DialometerError("this avatar was never calibrated", where=str(kb_or_avatar), remedy=remedy)
        if svg is not None:
            svg.write_text(trade_off_svg(calibration), encoding="utf-8")
        if as_json:
            typer.echo(json.dumps(calibration.as_json(), indent=2))
        else:
            show_trade_off(calibration)
            if svg is not None:
                results.print(f"\nDrawn in [bold]{svg}[/]", soft_wrap=True)
