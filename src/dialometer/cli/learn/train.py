"""dialometer learn train: from self-reported ratings to an evaluator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.interruption import continues
from dialometer.cli.learn._shared import (
    Encoder,
    Epochs,
    PairsFile,
    PoolingOption,
    Precision,
    RatingOptions,
    RatingsPath,
    checked_options,
    numbers,
    read_aspects,
    read_experts,
    with_interval,
)
from dialometer.cli.options import AsJson, Device, Seed, with_option_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialometer.learned.cmade.fit import CmadeFit, FitOptions
    from dialometer.learned.data.rated import RatingSet
    from dialometer.learned.gaussian.kernel import Aspect
    from dialometer.learned.gaussian.training import GaussianFit


EPILOG = (
    "Examples: dialometer learn train ratings.jsonl --out evaluator · dialometer learn train my-study · "
    "dialometer learn train ratings.jsonl --pairs experts.csv · "
    "dialometer learn train ratings.jsonl --recipe published --models 3 · "
    "accelerate launch -m dialometer learn train ratings.jsonl --recipe published"
)


OPTIONS = {
    "best": ("aspects",),
    "published": (
        "stages", "k", "rounds", "drop", "drop_share", "models", "epochs", "learning_rate", "group_size", "encoder",
        "window", "pooling", "precision",
    ),
}  # fmt: skip
"""Options that belong to one recipe alone."""


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="train", epilog=EPILOG)
    @with_option_groups
    def train_(
        context: typer.Context,
        ratings: RatingsPath,
        pairs: PairsFile = None,
        out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the evaluator.")] = Path("evaluator"),
        recipe: Annotated[
            str,
            typer.Option(
                "--recipe", help="best: what predicts ratings best; published: the stages of the CMADE paper."
            ),
        ] = "best",
        aspects: Annotated[
            str, typer.Option("--aspects", help="What --recipe best looks at; without meaning it needs no encoder.")
        ] = "words,behaviour,meaning",
        stages: Annotated[
            str, typer.Option("--stages", help="Which of 1, 2, 3; 'none' trains on all pairs of raw ratings.")
        ] = "1,2,3",
        k: Annotated[int, typer.Option("--k", min=1, help="Nearest neighbours for smoothing and valuing.")] = 50,
        rounds: Annotated[int, typer.Option("--rounds", min=1, help="How often stages 2 and 3 are done in turn.")] = 1,
        drop: Annotated[
            str, typer.Option("--drop", help="What stage 3 excludes: negative, nothing, random or lowest.")
        ] = "negative",
        drop_share: Annotated[float, typer.Option("--drop-share", help="Share for --drop lowest.")] = 0.1,
        models: Annotated[
            int, typer.Option("--models", min=1, help="Models with different seeds in one evaluator.")
        ] = 1,
        epochs: Epochs = "1,3,3",
        learning_rate: Annotated[float, typer.Option("--learning-rate", help="Of the encoder.")] = 1e-4,
        group_size: Annotated[
            int, typer.Option("--group-size", min=0, help="Dialogues per step, all pairs of which count; 0: all.")
        ] = 64,
        encoder: Encoder = "",
        window: Annotated[
            int, typer.Option("--window", min=0, help="Tokens read at once; longer dialogues are read in chunks.")
        ] = 0,
        seed: Seed = 0,
        device: Device = "auto",
        pooling: PoolingOption = "mean",
        precision: Precision = "auto",
        *,
        source: RatingOptions,
        as_json: AsJson = False,
    ) -> None:
        """Train an evaluator on rated dialogues. Run again after an interruption: it continues to the same result.

        Without **--pairs**, held-out dialogues rated 3 points or more apart replace the experts. They contain the raters'
        own noise and habits, which then count as truth.
        """
        _check_recipe(recipe, context)
        chosen = () if stages == "none" else tuple(int(number) for number in _stage_numbers(stages))
        rating_set = source.read(ratings)
        if recipe == "best":
            _train_gaussian(rating_set, pairs, out, seed, device, read_aspects(aspects), as_json=as_json)
            return
        from dialometer.cli.console import working
        from dialometer.learned.cmade.fit import FitOptions, fit_evaluator
        from dialometer.learned.cmade.materials import prepare
        from dialometer.learned.cmade.stages import StageOptions, check_neighbours
        from dialometer.learned.cmade.training import CmadeTrainingOptions
        from dialometer.neural.processes import join

        training = checked_options(
            CmadeTrainingOptions, learning_rate=learning_rate, group_size=group_size, precision=precision, seed=seed
        )
        staged = checked_options(
            StageOptions,
            stages=chosen,
            k=k,
            n_rounds=rounds,
            drop=drop,
            drop_share=drop_share,
            n_epochs=tuple(int(n) for n in numbers(epochs, 3, "--epochs", "1,3,3")),
            training=training,
        )
        options: FitOptions = checked_options(
            FitOptions, encoder=encoder, window=window, pooling=pooling, stages=staged, n_models=models
        )
        check_neighbours(len(rating_set.rated), staged)
        data = prepare(rating_set.rated, read_experts(pairs, rating_set.rated), seed=seed)
        with continues(), working(device, None) as work:
            fitted = fit_evaluator(data, options, out, device=device, report=work.report)
        if join(device)[0].is_first:
            _print_result(out, rating_set, fitted, as_json=as_json)


def _check_recipe(recipe: str, context: typer.Context) -> None:
    from dialometer.analysis.base.wording import listed
    from dialometer.errors import DialometerError, UnknownName
    from dialometer.registry import did_you_mean

    if recipe not in OPTIONS:
        raise UnknownName(f"there is no recipe '{recipe}'", remedy=did_you_mean(recipe, list(OPTIONS)))
    for other, names in OPTIONS.items():
        source = {name: context.get_parameter_source(name) for name in names if other != recipe}
        given = ["--" + name.replace("_", "-") for name, where in source.items() if where and where.name != "DEFAULT"]
        if given:
            has = "belongs" if len(given) == 1 else "belong"
            raise DialometerError(f"{listed(given)} {has} to --recipe {other}", remedy=f"add --recipe {other}")


def _train_gaussian(
    rating_set: RatingSet,
    pairs: Path | None,
    out: Path,
    seed: int,
    device: str,
    aspects: Sequence[Aspect],
    *,
    as_json: bool,
) -> None:
    from dialometer.cli.console import working
    from dialometer.learned.data.evaluator import refuse_other
    from dialometer.learned.gaussian.training import fingerprint_of, fit_gaussian, save_gaussian

    experts = read_experts(pairs, rating_set.rated)
    refuse_other(out, fingerprint_of(rating_set.rated, seed, experts, aspects))
    with working(device, None) as work:
        fitted = fit_gaussian(rating_set.rated, seed=seed, aspects=aspects, experts=experts, work=work)
    save_gaussian(out, fitted)
    _print_result(out, rating_set, fitted, as_json=as_json)


def _stage_numbers(text: str) -> list[str]:
    from dialometer.errors import DialometerError

    parts = [part.strip() for part in text.split(",")]
    if not parts or any(part not in ("1", "2", "3") for part in parts) or parts != sorted(set(parts)):
        raise DialometerError(f"--stages cannot be '{text}'", remedy="write it as in --stages 1,2,3 or --stages none")
    return parts


def _print_result(out: Path, ratings: RatingSet, fitted: CmadeFit | GaussianFit, *, as_json: bool) -> None:
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.report.numbers import write_number

    about = {key: value for key, value in fitted.about.items() if key not in ("fingerprint", "histories", "options")}
    about |= {"evaluator": str(out), "n_read": len(ratings.rated), "left_out": dict(ratings.n_left_out)}
    if as_json:
        typer.echo(json.dumps(about, indent=2, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row("rated dialogues", f"{about['n_read']:,} ({about['n_ratings']:,} to train on)")
    table.add_row("pairs judged by", str(about["pairs"]))
    measured = with_interval(fitted.accuracy, about.get("interval", (None, None)))
    measured_on = "cross-validated" if "recipe" in about else "stopping pairs"
    table.add_row(f"accuracy, {measured_on}", f"{measured} of {about['n_stopping_pairs']:,}")
    if about.get("test"):
        test = about["test"]
        kappa = f"kappa {write_number(test['kappa'], 2)} ± {test['kappa_standard_error']:.2f}"
        table.add_row("accuracy, test pairs", f"{test['accuracy']:.1%} of {test['n_pairs']:,} ({kappa})")
    table.add_row("calibration error", f"{fitted.reliability.calibration_error:.1%}")
    if about["n_not_believed"] is not None:
        share = about["n_not_believed"] / about["n_ratings"]
        table.add_row("ratings not trusted", f"{about['n_not_believed']:,} ({share:.0%}), listed in ratings.jsonl")
    table.add_row("evaluator", str(out))
    results.print(table)
    if about["pairs"] != "expert":
        results.print(
            "\nNo experts: the pairs carry the raters' own noise and habits. Ratings are valued by how well they agree with"
            " other raters, and the accuracy says how well ratings are predicted."
        )
