"""dialometer learn evaluate: how well evaluators would do on new dialogues, on a new day and with a new bot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.learn._shared import Criterion, RatingsPath, ScaleEnds, read
from dialometer.cli.options import AsJson, Database, Device, Seed, Speakers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dialometer.learned.data.rated import RatedDialogue
    from dialometer.learned.data.splits import DataSplit
    from dialometer.learned.experiments.ablation import AblationLine


TABLE_FILE = "table.md"
_OUTSIDE = ("utterances", "approval", "tfidf-ridge", "frozen-ridge", "best-words", "best")


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="evaluate",
        epilog="Example: dialometer learn evaluate $DIALOMETER_DATA/convai2 --splits 10 --out evaluation",
    )
    def evaluate_(
        ratings: RatingsPath,
        out: Annotated[Path, typer.Option("--out", "-o", help="Folder for splits, scores and tables.")] = Path(
            "evaluation"
        ),
        splits: Annotated[int, typer.Option("--splits", min=2, help="Grouped splits, each a fold of the data.")] = 10,
        is_pairwise: Annotated[
            bool, typer.Option("--pairwise", help="Fine-tune an encoder on all pairs too (minutes a split on a CPU).")
        ] = False,
        has_parts: Annotated[
            bool, typer.Option("--parts/--no-parts", help="Also what each part of the best recipe adds.")
        ] = True,
        seed: Seed = 0,
        device: Device = "auto",
        scale: ScaleEnds = "1,5",
        criterion: Criterion = "",
        database: Database = "",
        as_json: AsJson = False,
        speakers: Speakers = None,  # noqa: ARG001 - holds while the verb runs
    ) -> None:
        """Measure the best recipe, its parts and what it has to beat, in domain and out of it.

        Every evaluator learns from the same training dialogues and chooses its settings on them. Tested are new users (or
        new blocks of neighbouring dialogues), then a whole file that was held out, then a whole bot; where bots have no
        names, dialogues are grouped by the bot's style of writing. Run again, it continues where it was.
        """
        from dialometer.cli.console import working
        from dialometer.learned.cmade.fit import FitOptions
        from dialometer.learned.experiments.ablation import run_ablation
        from dialometer.learned.experiments.plain_rows import gaussian_rows, plain_rows
        from dialometer.learned.experiments.trained_rows import TRAINED

        rated = read(ratings, scale, criterion, database).rated
        trained = tuple(row for row in TRAINED if row.name == "pairwise") if is_pairwise else ()
        tables: dict[str, list[AblationLine]] = {}
        with working(device, None) as work:
            every = (*plain_rows(rated, work), *gaussian_rows(rated, work))
            kept = [entry for entry in every if has_parts or not entry.row.name.startswith("best-")]
            outside = [entry for entry in kept if entry.row.name in _OUTSIDE]
            for name, part in _splits(out, rated, splits, seed).items():
                tables[name] = run_ablation(
                    rated,
                    part,
                    FitOptions(),
                    rows=trained,
                    plain=kept if name == "grouped" else outside,
                    results=out / f"{name}.jsonl",
                    device=device,
                    report=work.report,
                )
        _tell(out, tables, len(rated), as_json=as_json)


def _splits(out: Path, rated: Sequence[RatedDialogue], n: int, seed: int) -> dict[str, list[DataSplit]]:
    """The three kinds of splits, as an earlier run left them or new; kinds that the data cannot give are missing."""
    from dialometer.learned.data.splits import grouped_splits, held_out_bots, held_out_files, read_splits, write_splits

    makers: dict[str, Callable[[], list[DataSplit]]] = {
        "grouped": lambda: grouped_splits(rated, n, seed=seed),
        "files": lambda: held_out_files(rated, seed),
        "bots": lambda: held_out_bots(rated, seed),
    }
    splits = {}
    for name, make in makers.items():
        path = out / f"{name}-splits.json"
        if path.is_file():
            made = read_splits(path, rated)
        else:
            made = make()
            write_splits(path, made, rated)
        if name == "grouped" and len(made) != n:
            made = make()
            write_splits(path, made, rated)
        if len(made) > 1:
            splits[name] = made
    return splits


TITLES = {"grouped": "New users or blocks", "files": "A file held out", "bots": "A bot held out"}


def _tell(out: Path, tables: dict[str, list[AblationLine]], n_rated: int, *, as_json: bool) -> None:
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.learned.experiments.ablation import (
        against,
        evaluation_cells,
        evaluation_head,
        evaluation_markdown,
        record,
    )

    text = "\n".join(f"## {TITLES[name]}\n\n{evaluation_markdown(lines)}" for name, lines in tables.items())
    (out / TABLE_FILE).write_text(text, encoding="utf-8")
    if as_json:
        typer.echo(json.dumps({name: [record(line) for line in lines] for name, lines in tables.items()}, indent=1))
        return
    for name, lines in tables.items():
        table = Table(*evaluation_head(lines), box=None, pad_edge=False, header_style="bold", title=TITLES[name])
        for line in lines:
            table.add_row(*evaluation_cells(line, against(lines)))
        results.print(table)
        results.print()
    results.print(f"{n_rated:,} rated dialogues. Accuracies in %, ± one standard error over splits.")
    results.print(f"Splits, scores and tables are in {out}.")
