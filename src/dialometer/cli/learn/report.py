"""dialometer learn report: what an evaluator of these ratings is worth, as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialometer.cli.learn._shared import OutFolder, RatingOptions, RatingsPath, command_line, read_aspects, write_report
from dialometer.cli.options import AsJson, Cache, Device, Seed, with_option_groups


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="report",
        epilog="Examples: dialometer learn report ratings.jsonl --out evaluator-report · "
        "dialometer learn report my-study --aspects words,behaviour",
    )
    @with_option_groups
    def report_(
        ratings: RatingsPath,
        out: OutFolder = Path("evaluator-report"),
        aspects: Annotated[
            str, typer.Option("--aspects", help="What the evaluator looks at; without meaning it needs no encoder.")
        ] = "words,behaviour,meaning",
        seed: Seed = 0,
        device: Device = "auto",
        cache: Cache = None,
        *,
        source: RatingOptions,
        as_json: AsJson = False,
    ) -> None:
        """Report on an evaluator of these ratings: how often it is right on held-out users, and which ratings it does not trust.

        Trains by the best recipe, compares it with simpler judges, checks its probabilities and lists the ratings that
        are far from what similar dialogues predict.
        """
        from dialometer.cli.console import working
        from dialometer.learned.experiments.evaluator_report import evaluator_report

        looked_at = read_aspects(aspects)
        data = source.read(ratings)
        with working(device, cache) as work:
            report = evaluator_report(
                data.rated,
                aspects=looked_at,
                data=ratings.name,
                command=command_line(),
                left_out=data.n_left_out,
                seed=seed,
                work=work,
            )
        write_report(report, out, as_json=as_json)
