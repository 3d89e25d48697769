"""dialometer learn evaluate: how well evaluators would do on new dialogues, on a new day and with a new bot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.interruption import continues
from dialometer.cli.learn._shared import RatingOptions, RatingsPath, with_interval
from dialometer.cli.options import AsJson, Device, Seed, with_option_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dialometer.learned.data.rated import RatedDialogue
    from dialometer.learned.data.splits import DataSplit
    from dialometer.learned.experiments.ablation import AblationLine
    from dialometer.learned.experiments.own_data import OwnDataCheck


TABLE_FILE = "table.md"
_OUTSIDE = ("utterances", "approval", "tfidf-ridge", "frozen-ridge", "best-words", "best")


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="evaluate",
        epilog="Examples: dialometer learn evaluate $DIALOMETER_DATA/convai2 --splits 10 --out evaluation · "
        "dialometer learn evaluate my-ratings.jsonl --evaluator evaluator",
    )
    @with_option_groups
    def evaluate_(
        ratings: RatingsPath,
        evaluator: Annotated[
            Path | None,
            typer.Option(
                "--evaluator",
                "-e",
                help="Measure this trained evaluator on the ratings, which it must not have been trained on, and nothing else.",
            ),
        ] = None,
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
        *,
        source: RatingOptions,
        as_json: AsJson = False,
    ) -> None:
        """Measure the best recipe, its parts and the methods it has to beat, in its own domain and in others.

        Every evaluator learns from the same training dialogues and chooses its settings on them. It is tested on new users (or
        new blocks of neighbouring dialogues), then on a whole file that was held out, then on a whole bot; where bots have no
        names, dialogues are grouped by the bot's style of writing. Run it again after an interruption: it continues.

        With **--evaluator**, an evaluator trained elsewhere is measured on these ratings before you rely on it.
        """
        from dialometer.cli.console import working
        from dialometer.learned.cmade.fit import FitOptions
        from dialometer.learned.experiments.ablation import run_ablation
        from dialometer.learned.experiments.plain_rows import gaussian_rows, plain_rows
        from dialometer.learned.experiments.trained_rows import TRAINED

        rated = source.read(ratings).rated
        if evaluator is not None:
            _check(evaluator, rated, seed, device, as_json=as_json)
            return
        trained = tuple(row for row in TRAINED if row.name == "pairwise") if is_pairwise else ()
        tables: dict[str, list[AblationLine]] = {}
        with continues(), working(device, None) as work:
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
        _print_result(out, tables, len(rated), as_json=as_json)


def _check(folder: Path, rated: Sequence[RatedDialogue], seed: int, device: str, *, as_json: bool) -> None:
    """A trained evaluator on the user's own ratings."""
    from rich.table import Table

    from dialometer.cli.console import results, working
    from dialometer.learned.data.measures import ends
    from dialometer.learned.evaluators import load_evaluator
    from dialometer.learned.experiments.own_data import check_on_own_data
    from dialometer.report.numbers import write_number, write_signed

    with working(device, None) as work:
        check = check_on_own_data(load_evaluator(folder, device), rated, seed=seed, work=work)
    lines = {
        "right": check.measured,
        "expected by its own probabilities": check.expected,
        "on the half of pairs it is surest of": check.surest,
        "the longer dialogue taken for the better": check.longer,
        "lead over the longer one, in points": check.lead,
    }
    if as_json:
        numbers = {
            name: dict(zip(("value", "low", "high"), (line.value, *ends(line)), strict=True))
            for name, line in lines.items()
        }
        about = {"n_rated": check.n_rated, "n_pairs": check.n_pairs, "calibration_error": check.calibration_error}
        typer.echo(json.dumps({**about, "share_unlike_training": check.share_unlike, **numbers}, indent=2))
        return
    table = Table("", "", "95% interval", box=None, pad_edge=False, header_style="bold")
    for name, line in lines.items():
        write, mark = (write_signed, "") if line is check.lead else (write_number, "%")
        interval = f"{write(100 * line.low, 1)} to {write(100 * line.high, 1)}" if line.has_interval else "–"
        table.add_row(name, f"{write(100 * line.value, 1)}{mark}", interval)
    table.add_row("calibration error", f"{check.calibration_error:.1%}", "")
    table.add_row("dialogues unlike its training dialogues", f"{check.share_unlike:.0%}", "")
    results.print(f"{check.n_rated:,} rated dialogues, {check.n_pairs:,} pairs of different ratings")
    results.print(table)
    results.print(f"\n{_advice(check)}", soft_wrap=True)


def _advice(check: OwnDataCheck) -> str:
    if not check.measured.has_interval:
        return f"Nothing can be promised: {check.measured.notes[0]}. Give more ratings, and say whose they are."
    low, high = 100 * check.measured.low, 100 * check.measured.high
    if check.is_useful:
        text = f"On dialogues like these, expect it to order {low:.0f} to {high:.0f}% of pairs right."
        if 100 * check.expected.value > high:
            text += (
                f" Its probabilities are too high here (it expects {check.expected.value:.0%}): use the order alone."
            )
        return text
    rival = "chance" if low <= 50 else "taking the longer one"
    return (
        f"On these dialogues it is not significantly better than {rival}. Do not rely on it here; "
        "'dialometer learn adapt' adapts it to ratings of them."
    )


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
LEGEND = (
    "Accuracies in %, means over splits ± one standard error, on held-out pairs of dialogues; gap: how many points their ratings "
    "lie apart. The last columns are differences, paired over splits. The 95% confidence interval is that of the first column with "
    "the pairs of all splits together (bootstrap over users, or blocks of neighbours), which need not be the mean over splits"
)
EXPECTED = {
    "grouped": "Expected accuracy for new users",
    "files": "Expected accuracy for another file, such as a later day",
    "bots": "Expected accuracy for another bot",
}


def _print_result(out: Path, tables: dict[str, list[AblationLine]], n_rated: int, *, as_json: bool) -> None:
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.learned.data.measures import ends
    from dialometer.learned.experiments.ablation import (
        against,
        evaluation_cells,
        evaluation_head,
        evaluation_markdown,
        record,
    )

    text = "\n".join(f"## {TITLES[name]}\n\n{evaluation_markdown(lines)}" for name, lines in tables.items())
    (out / TABLE_FILE).write_text(f"{LEGEND}.\n\n{text}", encoding="utf-8")
    if as_json:
        typer.echo(json.dumps({name: [record(line) for line in lines] for name, lines in tables.items()}, indent=1))
        return
    for name, lines in tables.items():
        table = Table(*evaluation_head(lines), box=None, pad_edge=False, header_style="bold", title=TITLES[name])
        for line in lines:
            table.add_row(*evaluation_cells(line, against(lines)))
        results.print(table)
        results.print()
    for name, lines in tables.items():
        best = next(line.primary for line in lines if line.row.name == "best")
        results.print(f"{EXPECTED[name]}: [bold]{with_interval(best.value, ends(best))}[/]", soft_wrap=True)
    results.print(
        f"\n{n_rated:,} rated dialogues. {LEGEND}; the expected accuracy is that of the best recipe.",
        soft_wrap=True,
    )
    results.print(f"Splits, scores and tables are in {out}.")
