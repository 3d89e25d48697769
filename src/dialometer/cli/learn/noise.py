"""dialometer learn noise: change ratings on purpose and see which detector finds them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialometer.cli.learn._shared import (
    FeaturesOf,
    OutFolder,
    RatingOptions,
    RatingsPath,
    command_line,
    features_of,
    write_report,
)
from dialometer.cli.options import AsJson, Cache, Device, Seed, with_option_groups


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="noise", epilog="Example: dialometer learn noise ratings.jsonl --share 0.2 --repetitions 10")
    @with_option_groups
    def noise_(
        ratings: RatingsPath,
        out: OutFolder = Path("noise"),
        evaluator: FeaturesOf = None,
        share: Annotated[float, typer.Option("--share", help="Share of the ratings that are changed.")] = 0.2,
        repetitions: Annotated[int, typer.Option("--repetitions", min=2, help="How often it is tried.")] = 10,
        k: Annotated[int, typer.Option("--k", min=1, help="Nearest neighbours.")] = 50,
        seed: Seed = 0,
        device: Device = "auto",
        cache: Cache = None,
        *,
        source: RatingOptions,
        as_json: AsJson = False,
    ) -> None:
        """Change a share of the ratings, uniformly or towards a J, and measure how well each detector finds the changed ones.

        Detectors: Shapley value, distance to the smoothed rating, loss, and their combination. Controls: the observed rating
        alone, and a feature that carries the true rating.
        """
        from dialometer.cli.console import working
        from dialometer.learned.experiments.inspect_reports import noise_report
        from dialometer.learned.experiments.noise import check_share, noise_experiment

        check_share(share)
        rated = source.read(ratings).rated
        with working(device, cache) as work:
            detections = noise_experiment(
                rated,
                features_of(rated, evaluator, work),
                share=share,
                n_repetitions=repetitions,
                k=k,
                seed=seed,
                report=lambda n, total: work.report("Repetitions", n, total),
            )
        facts = {"seed": seed, "n_ratings": len(rated), "n_repetitions": repetitions, "k": k}
        report = noise_report(detections, data=ratings.name, command=command_line(), share=share, facts=facts)
        write_report(report, out, as_json=as_json)
