"""dialometer learn curve: what leaving ratings out does, the least valuable first or at random."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.learn._shared import (
    Encoder,
    Epochs,
    FeaturesOf,
    OutFolder,
    PairsFile,
    PoolingOption,
    RatingOptions,
    RatingsPath,
    checked_options,
    command_line,
    features_of,
    numbers,
    read_experts,
    write_report,
)
from dialometer.cli.options import AsJson, Cache, Device, Seed, with_option_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialometer.learned.cmade.neighbours import Features
    from dialometer.learned.data.pairs import DialoguePair
    from dialometer.learned.data.rated import RatedDialogue
    from dialometer.learned.data.splits import DataSplit
    from dialometer.neural.work import Work


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="curve", epilog="Example: dialometer learn curve ratings.jsonl --splits 10 --out curve")
    @with_option_groups
    def curve_(
        ratings: RatingsPath,
        out: OutFolder = Path("curve"),
        pairs: PairsFile = None,
        evaluator: FeaturesOf = None,
        train: Annotated[
            bool,
            typer.Option(
                "--train", help="Features of an encoder trained by stages 1 and 2 on each split's training part."
            ),
        ] = False,
        encoder: Encoder = "",
        pooling: PoolingOption = "mean",
        epochs: Epochs = "1,3,3",
        neighbours: Annotated[
            str, typer.Option("--neighbours", help="Values of K, separated by commas.")
        ] = "1,5,25,50,100",
        splits: Annotated[
            int | None,
            typer.Option(
                "--splits",
                min=1,
                help="Splits by user (10 if not given); with --pairs, random divisions of the pairs (1).",
            ),
        ] = None,
        is_length_matched: Annotated[
            bool, typer.Option("--length-matched/--any-length", help="Test pairs of about the same length only.")
        ] = True,
        k: Annotated[int, typer.Option("--k", min=1, help="Nearest neighbours for the values.")] = 50,
        seed: Seed = 0,
        device: Device = "auto",
        cache: Cache = None,
        *,
        source: RatingOptions,
        as_json: AsJson = False,
    ) -> None:
        """Remove ratings step by step, by their Shapley value or at random, and measure what the rest predicts.

        The paper's Figure 2 is **--pairs** EXPERTS **--train**: values by expert pairs of the development part, features by
        stages 1 and 2, accuracy on expert pairs of the test part, none of whose dialogues was trained on. An **--evaluator**
        that was trained on the same ratings has seen the test dialogues; without both nothing is trained.
        """
        from dialometer.cli.console import working
        from dialometer.errors import DialometerError
        from dialometer.learned.cmade.materials import expert_split
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
        if train and evaluator is not None:
            raise DialometerError("--train and --evaluator exclude each other", remedy="give one of them")
        rated = source.read(ratings).rated
        experts = read_experts(pairs, rated)
        if experts:
            divided = [expert_split(rated, experts, name=f"experts-{n + 1}", seed=seed + n) for n in range(splits or 1)]
        else:
            divided = grouped_splits(rated, splits or 10, seed=seed)
        n_epochs = tuple(int(n) for n in numbers(epochs, 3, "--epochs", "1,3,3"))
        with working(device, cache) as work:
            features: Any
            if train:
                options = (encoder, pooling, n_epochs, k, seed)
                features = lambda split: _trained_features(rated, split, experts, options, out, work)  # noqa: E731
            else:
                features = features_of(rated, evaluator, work)
            steps = removal_steps(
                rated,
                features,
                divided,
                experts=experts,
                ks=ks,
                k_shapley=k,
                is_length_matched=is_length_matched,
                seed=seed,
                report=lambda n, total: work.report("Splits", n, total),
            )
        if experts:
            measured = "expert pairs"
        else:
            measured = "pairs rated 3 points or more apart" + (
                ", of about the same length" if is_length_matched else ""
            )
        facts = {"seed": seed, "n_ratings": len(rated), "n_splits": len(divided), "k_of_values": k}
        facts |= {"n_expert_pairs": len(experts)} if experts else {}
        report = curve_report(steps, data=ratings.name, command=command_line(), pairs=measured, facts=facts)
        write_report(report, out, as_json=as_json)


def _trained_features(
    rated: Sequence[RatedDialogue],
    split: DataSplit,
    experts: Sequence[DialoguePair],
    chosen: tuple[str, str, tuple[int, ...], int, int],
    out: Path,
    work: Work,
) -> Features:
    """Features of an encoder that stages 1 and 2 trained without the split's test dialogues; kept, so that a run can continue."""
    from dialometer.learned.cmade.fit import FitOptions, fit_evaluator
    from dialometer.learned.cmade.materials import from_split
    from dialometer.learned.cmade.stages import StageOptions
    from dialometer.learned.cmade.training import CmadeTrainingOptions

    encoder, pooling, n_epochs, k, seed = chosen
    training = CmadeTrainingOptions(seed=seed)
    staged = checked_options(StageOptions, stages=(1, 2), k=k, n_epochs=n_epochs, training=training)
    options = checked_options(FitOptions, encoder=encoder, pooling=pooling, stages=staged)
    data = from_split(rated, split, experts)
    fitted = fit_evaluator(data, options, out / f"encoder-{split.name}", device=work.device, report=work.report)
    return fitted.evaluator.features([row.dialogue for row in rated], work)
