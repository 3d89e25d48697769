"""dialometer learn curve: what leaving ratings out does, the least valuable first or at random."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialometer.cli.learn._shared import (
    Criterion,
    FeaturesOf,
    OutFolder,
    RatingsPath,
    ScaleEnds,
    command_line,
    features_of,
    read,
    write_report,
)
from dialometer.cli.options import AsJson, Cache, Database, Device, Seed


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="curve", epilog="Example: dialometer learn curve ratings.jsonl --splits 10 --out curve")
    def curve_(
        ratings: RatingsPath,
        out: OutFolder = Path("curve"),
        evaluator: FeaturesOf = None,
        neighbours: Annotated[
            str, typer.Option("--neighbours", help="Values of K, separated by commas.")
        ] = "1,5,25,50,100",
        splits: Annotated[int, typer.Option("--splits", min=2, help="Splits by user into training and test.")] = 10,
        is_length_matched: Annotated[
            bool, typer.Option("--length-matched/--any-length", help="Test pairs of about the same length only.")
        ] = True,
        k: Annotated[int, typer.Option("--k", min=1, help="Nearest neighbours for the values.")] = 50,
        seed: Seed = 0,
        device: Device = "auto",
        cache: Cache = None,
        scale: ScaleEnds = "1,5",
        criterion: Criterion = "",
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Remove ratings step by step, those of the lowest Shapley value first or at random, and measure what is left.

        An evaluator that was trained on the same ratings has seen the test dialogues; without **--evaluator** nothing is
        trained.
        """
        from dialometer.cli.console import working
        from dialometer.errors import DialometerError
        from dialometer.learned.data.splits import grouped_splits
        from dialometer.learned.experiments.inspect_reports import curve_report
        from dialometer.learned.experiments.noise import removal_steps

        try:
            ks = sorted({int(part) for part in neighbours.split(",")})
        except ValueError:
            ks = []
        if not ks or ks[0] < 1:
            raise DialometerError(
                f"--neighbours needs whole numbers from 1, not '{neighbours}'",
                remedy="write it as in --neighbours 1,5,25",
            )
        rated = read(ratings, scale, criterion, database).rated
        with working(device, cache) as work:
            steps = removal_steps(
                rated,
                features_of(rated, evaluator, work),
                grouped_splits(rated, splits, seed=seed),
                ks=ks,
                k_shapley=k,
                is_length_matched=is_length_matched,
                seed=seed,
                report=lambda n, total: work.report("Splits", n, total),
            )
        pairs = "pairs rated 3 points or more apart" + (", of about the same length" if is_length_matched else "")
        facts = {"seed": seed, "n_ratings": len(rated), "n_splits": splits, "k_of_values": k}
        made = curve_report(steps, data=ratings.name, command=command_line(), pairs=pairs, facts=facts)
        write_report(made, out, as_json=as_json)
