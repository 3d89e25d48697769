"""dialometer learn noisy: the ratings with the lowest value, as a page to read through and as flags of a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dialometer.cli.learn._shared import (
    FeaturesOf,
    PairsFile,
    RatingOptions,
    RatingsPath,
    command_line,
    features_of,
    read_experts,
)
from dialometer.cli.options import Address, AsJson, Cache, Device, EngineName, Seed, with_option_groups
from dialometer.model.file_names import STUDY_FILE


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="noisy",
        epilog="Examples: dialometer learn noisy ratings.jsonl --out noisy.html · dialometer learn noisy my-study --flag",
    )
    @with_option_groups
    def noisy_(
        ratings: RatingsPath,
        pairs: PairsFile = None,
        out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page.")] = Path("noisy.html"),
        top: Annotated[int, typer.Option("--top", min=1, help="How many ratings.")] = 30,
        is_flagged: Annotated[
            bool, typer.Option("--flag", help="Write them into the study as quality flags; its report shows them.")
        ] = False,
        evaluator: FeaturesOf = None,
        k: Annotated[int, typer.Option("--k", min=1, help="Nearest neighbours.")] = 50,
        seed: Seed = 0,
        engine: EngineName = "local",
        address: Address = "",
        device: Device = "auto",
        cache: Cache = None,
        *,
        source: RatingOptions,
        as_json: AsJson = False,
    ) -> None:
        """Find the ratings that harm an evaluator most, and show each with its dialogue and its nearest neighbours.

        Nothing is excluded from any analysis: an honest rating can look noisy too. With **--flag**, a study's
        report shows them beside its other quality flags.
        """
        from dialometer.cli.console import working
        from dialometer.errors import DialometerError
        from dialometer.learned.experiments.rating_values import lowest, noisy_page, noisy_rows, value_ratings
        from dialometer.neural.engines import engine_of

        if is_flagged and not (ratings / STUDY_FILE).exists():
            raise DialometerError("--flag needs the folder of a study", where=str(ratings), remedy="leave --flag out")
        rated = source.read(ratings).rated
        experts = read_experts(pairs, rated)
        with working(device, cache) as work, engine_of(engine, address) as opened:
            valued = value_ratings(
                rated,
                features_of(rated, evaluator, work),
                experts,
                k=k,
                seed=seed,
                engine=opened,
                report=lambda n, total: work.report("Valuing", n, total),
            )
        lowest_rated = lowest(rated, valued, top)
        title = f"The ratings of {ratings.name} with the lowest value"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(noisy_page(lowest_rated, valued, title=title, command=command_line()), encoding="utf-8")
        n_new = 0
        if is_flagged:
            from dialometer.learned.store_in_study import flag_noisy

            n_new = flag_noisy(ratings, lowest_rated, database=source.database)
        if as_json:
            typer.echo(json.dumps(noisy_rows(lowest_rated), ensure_ascii=False, indent=2))
            return
        from rich.markup import escape

        from dialometer.cli.console import results

        for noisy in lowest_rated[:10]:
            results.print(f"{escape(noisy.rated.id)}: {escape(noisy.reason)}", soft_wrap=True)
        n_negative = int((valued.values < 0).sum())
        results.print(f"\n{n_negative} of {len(rated)} ratings have a negative value.")
        if is_flagged:
            results.print(f"{n_new} new flags in the study.")
        results.print(f"Open [bold]{escape(str(out))}[/]", soft_wrap=True)
