"""dialometer reproduce: our numbers beside published or independent ones, on public data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.options import AsJson

if TYPE_CHECKING:
    from dialometer.analysis.reproduce.compared import NumberComparison, PublishedTable, Reproduction


_SETS = "rankme, crs-arena, guerini or avatar"
Name = Annotated[str, typer.Argument(metavar="NAME", help=f"Which data set: {_SETS}.", show_default=False)]
Data = Annotated[
    Path | None,
    typer.Option("--data", envvar="DIALOMETER_DATA", help="Folder of public data sets; guerini needs none."),
]


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="reproduce",
        epilog="Example: dialometer reproduce guerini. Exit code 1 when a number is outside its tolerance.",
    )
    def reproduce_(
        name: Name,
        data: Data = None,
        as_json: AsJson = False,
        is_brief: Annotated[bool, typer.Option("--brief", help="One line for each kind of number.")] = False,
        retrievers: Annotated[
            list[str] | None,
            typer.Option(
                "--retriever",
                "-r",
                help="For avatar: retrievers of the table: names, folders of trained ones, untrained, all or published.",
                show_default=False,
            ),
        ] = None,
    ) -> None:
        """Compute results that others published on the same data, and show how much the numbers differ.

        Every row gives both values, their absolute difference and whether it is within the tolerance.
        """
        from dialometer.analysis.reproduce import reproduce

        reproduction = _avatar(name, data, retrievers) if retrievers or name == "avatar" else reproduce(name, data)
        if as_json:
            typer.echo(json.dumps(reproduction.as_json(), indent=2, ensure_ascii=False))
        else:
            _show(reproduction, is_brief=is_brief)
        if not reproduction.is_within:
            raise typer.Exit(1)


def _avatar(name: str, data: Path | None, retrievers: list[str] | None) -> Reproduction:
    """With a progress bar and a cache of embeddings and trained models."""
    from dialometer.analysis.reproduce.avatar import UNTRAINED, avatar_with
    from dialometer.cli.console import working
    from dialometer.errors import DialometerError
    from dialometer.retrieval.selection import retriever_label, select_retrievers

    if name != "avatar":
        raise DialometerError(f"'{name}' has no retrievers", remedy="leave --retriever out")
    selected = select_retrievers(retrievers or UNTRAINED)
    with working("auto", None) as work:
        labelled = {retriever_label(label, retriever): retriever for label, retriever in selected.items()}
        return avatar_with(data, labelled, work)


def _show(reproduction: Reproduction, *, is_brief: bool) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    results.print(f"[bold]{escape(reproduction.title)}[/]\n{escape(reproduction.citation)}", soft_wrap=True)
    for grid in reproduction.grids:
        _show_grid(grid)
    for comparison in reproduction.comparisons:
        if not is_brief:
            _show_rows(comparison)
    results.print()
    for comparison in reproduction.comparisons:
        _show_line(comparison)
    for note in reproduction.notes:
        results.print(f"[dim]Note: {escape(note)}[/]", soft_wrap=True)
    n = sum(len(comparison.rows) for comparison in reproduction.comparisons)
    n_outside = sum(comparison.n_outside for comparison in reproduction.comparisons)
    verdict = "[green]all within what is allowed[/]" if reproduction.is_within else f"[red]{n_outside} outside[/]"
    results.print(f"\n{n} numbers compared: {verdict}")


def _show_grid(grid: PublishedTable) -> None:
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.report.numbers import write_number

    results.print(f"\n[bold]{escape(grid.title)}[/]  [dim]{escape(grid.source)}[/]", soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("", ""):
        table.add_column(heading)
    for heading in grid.columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in grid.rows:
        if row.ours:
            table.add_row(escape(row.label), "[dim]ours[/]", *(write_number(value, 1) for value in row.ours))
        if row.other:
            label = row.other_label or row.label
            shown = "" if row.ours and label == row.label else escape(label)
            table.add_row(shown, "[dim]published[/]", *(write_number(value, 1) for value in row.other))
    results.print(table)


def _show_rows(comparison: NumberComparison) -> None:
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.report.numbers import MINUS

    results.print(f"\n[bold]{escape(comparison.title)}[/]  [dim]{escape(comparison.source)}[/]", soft_wrap=True)
    table = Table("", box=None, pad_edge=False, header_style="dim")
    for heading in ("ours", "other", "difference"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for row in comparison.rows:
        mark = "[green]ok[/]" if row.is_within else "[red]outside[/]"
        numbers = (f"{row.ours:.7g}", f"{row.other:.7g}", f"{row.difference:.1e}")
        table.add_row(escape(row.label), *(text.replace("-", MINUS) for text in numbers), mark)
    results.print(table)


def _show_line(comparison: NumberComparison) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    mark = "[green]ok[/]" if not comparison.n_outside else f"[red]{comparison.n_outside} outside[/]"
    results.print(
        f"{escape(comparison.title)}: {len(comparison.rows)} numbers, largest difference {comparison.largest:.1e} {mark}"
        f" [dim]({escape(comparison.source)})[/]",
        soft_wrap=True,
    )
