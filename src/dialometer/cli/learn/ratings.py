"""dialometer learn ratings: the shape of self-reported ratings, and how far they can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialometer.cli.learn._shared import (
    FeaturesOf,
    OutFolder,
    PairsFile,
    RatingOptions,
    RatingsPath,
    command_line,
    features_of,
    read_experts,
    write_report,
)
from dialometer.cli.options import AsJson, Cache, Device, Seed, with_option_groups


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="ratings",
        epilog="Examples: dialometer learn ratings ratings.jsonl · dialometer learn ratings my-study --pairs experts.csv",
    )
    @with_option_groups
    def ratings_(
        ratings: RatingsPath,
        pairs: PairsFile = None,
        out: OutFolder = Path("ratings-report"),
        evaluator: FeaturesOf = None,
        has_features: Annotated[
            bool, typer.Option("--features/--no-features", help="Compare ratings with those of similar dialogues too.")
        ] = True,
        k: Annotated[int, typer.Option("--k", min=1, help="How many similar dialogues.")] = 50,
        seed: Seed = 0,
        device: Device = "auto",
        cache: Cache = None,
        *,
        source: RatingOptions,
        as_json: AsJson = False,
    ) -> None:
        """Look at ratings before training on them: the J shape of self-reported ratings, and disagreement by rating gap.

        With **--pairs**, experts' verdicts are set beside the ratings; without, only the ratings of similar dialogues are.
        """
        import numpy as np

        from dialometer.analysis.families.conversations.experts import ExpertPair
        from dialometer.analysis.families.conversations.rating_shape import RatingSample, ratings_report
        from dialometer.cli.console import working
        from dialometer.learned.cmade.neighbours import knn_smooth
        from dialometer.learned.data.splits import groups_of

        data = source.read(ratings)
        rated = data.rated
        experts = read_experts(pairs, rated)
        values = np.array([row.rating for row in rated])
        neighbours = None
        if has_features:
            with working(device, cache) as work:
                neighbours = knn_smooth(features_of(rated, evaluator, work), values, k)
        reference = RatingSample(
            [row.id for row in rated], values, groups_of(rated), [row.bot or "" for row in rated], neighbours
        )
        verdicts = [ExpertPair(row.first, row.second, "first" if row.first_is_better else "second") for row in experts]
        report = ratings_report(
            reference, verdicts, data=ratings.name, command=command_line(), left_out=data.n_left_out, seed=seed
        )
        write_report(report, out, as_json=as_json)
