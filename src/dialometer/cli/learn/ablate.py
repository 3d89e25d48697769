"""dialometer learn ablate: the paper's table on one's own ratings, with its controls."""

from __future__ import annotations

import json
from itertools import compress
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
    read_experts,
)
from dialometer.cli.options import Address, AsJson, Device, EngineName, Seed, with_option_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialometer.learned.data.pairs import DialoguePair
    from dialometer.learned.data.rated import RatedDialogue
    from dialometer.learned.data.splits import DataSplit
    from dialometer.learned.experiments.ablation import AblationLine
    from dialometer.learned.experiments.plain_rows import AblationRow, PlainRow


WIDE = 150
"""Columns of a terminal that shows all measures side by side."""
SPLITS_FILE, RESULTS_FILE, TABLE_FILE = "splits.json", "results.jsonl", "table.md"


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="ablate",
        epilog="Example: dialometer learn ablate $DIALOMETER_DATA/convai2 --splits 10 --out ablation",
    )
    @with_option_groups
    def ablate_(
        ratings: RatingsPath,
        pairs: PairsFile = None,
        out: Annotated[Path, typer.Option("--out", "-o", help="Folder for splits, scores and the table.")] = Path(
            "ablation"
        ),
        splits: Annotated[
            int | None,
            typer.Option(
                "--splits",
                min=1,
                help="Grouped splits (5 if not given); with --pairs, random divisions of the pairs (1).",
            ),
        ] = None,
        seeds: Annotated[int, typer.Option("--seeds", min=1, help="Trainings of each row on each split.")] = 1,
        rows: Annotated[str, typer.Option("--rows", help="Only these rows, separated by commas.")] = "",
        k: Annotated[int, typer.Option("--k", min=1, help="Nearest neighbours for smoothing and valuing.")] = 50,
        epochs: Epochs = "1,3,3",
        learning_rate: Annotated[float, typer.Option("--learning-rate", help="Of the encoder.")] = 1e-4,
        group_size: Annotated[
            int, typer.Option("--group-size", min=0, help="Dialogues per step, all pairs of which count; 0: all.")
        ] = 64,
        encoder: Encoder = "",
        pooling: PoolingOption = "mean",
        seed: Seed = 0,
        device: Device = "auto",
        precision: Precision = "auto",
        engine: EngineName = "local",
        address: Address = "",
        *,
        source: RatingOptions,
        as_json: AsJson = False,
    ) -> None:
        """Train and measure every row of the paper's table on the same grouped splits. Run again to continue.

        The first figure is the accuracy on held-out pairs rated 3 points or more apart and of about the same length, with
        its standard error over splits and a bootstrap interval over users or blocks of neighbours. With **--pairs** it is the
        accuracy on expert pairs, as in the paper: half for development, half for the test, and none of their dialogues for
        training.
        """
        from dialometer.cli.console import working
        from dialometer.learned.cmade.fit import FitOptions
        from dialometer.learned.cmade.stages import StageOptions, check_neighbours
        from dialometer.learned.cmade.training import CmadeTrainingOptions
        from dialometer.learned.experiments.ablation import run_ablation
        from dialometer.learned.experiments.plain_rows import plain_rows
        from dialometer.neural.engines import engine_of

        training = checked_options(
            CmadeTrainingOptions, learning_rate=learning_rate, group_size=group_size, precision=precision, seed=seed
        )
        n_epochs = tuple(int(n) for n in numbers(epochs, 3, "--epochs", "1,3,3"))
        staged = checked_options(StageOptions, k=k, n_epochs=n_epochs, training=training)
        options = checked_options(FitOptions, encoder=encoder, pooling=pooling, stages=staged)
        data = source.read(ratings)
        experts = read_experts(pairs, data.rated)
        check_neighbours(len(data.rated), staged)
        divided = _splits(out, data.rated, splits or (1 if experts else 5), seed, experts)
        with continues(), working(device, None) as work, engine_of(engine, address) as opened:
            trained, plain = _chosen(rows, plain_rows(data.rated, work))
            lines = run_ablation(
                data.rated,
                divided,
                options,
                rows=trained,
                plain=plain,
                experts=experts,
                n_seeds=seeds,
                results=out / RESULTS_FILE,
                device=device,
                engine=opened,
                report=work.report,
            )
        _print_result(out, lines, len(data.rated), divided, experts, as_json=as_json)


def _splits(
    out: Path, rated: Sequence[RatedDialogue], n: int, seed: int, experts: Sequence[DialoguePair]
) -> list[DataSplit]:
    """The splits of an earlier run, or new ones, which are kept; with expert pairs, dealings of these."""
    from dialometer.learned.cmade.materials import expert_split
    from dialometer.learned.data.splits import grouped_splits, read_splits, write_splits

    path = out / SPLITS_FILE
    if path.is_file():
        held = read_splits(path, rated)
        if len(held) >= n:
            return held[:n]
    if experts:
        splits = [expert_split(rated, experts, name=f"experts-{k + 1}", seed=seed + k) for k in range(n)]
    else:
        splits = grouped_splits(rated, n, seed=seed)
    write_splits(path, splits, rated)
    return splits


def _chosen(names: str, plain: Sequence[PlainRow]) -> tuple[tuple[AblationRow, ...], tuple[PlainRow, ...]]:
    from dialometer.errors import DialometerError
    from dialometer.learned.experiments.trained_rows import TRAINED
    from dialometer.registry import did_you_mean

    if not names:
        return TRAINED, tuple(plain)
    known = [*(entry.row.name for entry in plain), *(row.name for row in TRAINED)]
    chosen = [name.strip() for name in names.split(",")]
    for name in chosen:
        if name not in known:
            raise DialometerError(f"there is no row '{name}'", remedy=did_you_mean(name, known))
    return tuple(row for row in TRAINED if row.name in chosen), tuple(
        entry for entry in plain if entry.row.name in chosen
    )


def _print_result(
    out: Path,
    lines: Sequence[AblationLine],
    n_rated: int,
    splits: Sequence[DataSplit],
    experts: Sequence[DialoguePair],
    *,
    as_json: bool,
) -> None:
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.learned.experiments.ablation import as_markdown, cells, head, record

    (out / TABLE_FILE).write_text(as_markdown(lines), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps([record(line) for line in lines], indent=1))
        return
    names = head(lines)
    # A narrow terminal gets the primary measure only; the file has them all.
    n_measures = len(lines[0].accuracies) if lines else 0
    is_shown = [results.width >= WIDE or not 2 <= place <= n_measures for place in range(len(names))]
    table = Table(*compress(names, is_shown), box=None, pad_edge=False, header_style="bold")
    for line in lines:
        table.add_row(*compress(cells(line), is_shown))
    results.print(table)
    if experts:
        test = set(splits[0].test)
        n_test = sum(pair.first in test for pair in experts)
        used = f"{len(experts)} expert pairs: {len(experts) - n_test} for development, {n_test} for the test"
        results.print(
            f"\n{n_rated:,} rated dialogues, {len(splits[0].train):,} of them to train on. {used}.", soft_wrap=True
        )
    else:
        results.print(f"\n{n_rated:,} rated dialogues, {len(splits)} grouped splits.")
    results.print("Accuracies in %, ± one standard error.")
    results.print(f"Splits, scores and the table are in {out}.")
