"""dialometer reproduce: our numbers beside published or independent ones, on public data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli._study import AsJson

if TYPE_CHECKING:
    from dialometer.analysis.reproduce.compared import Comparison, Reproduction

_SETS = "rankme, crs-arena or guerini"
Name = Annotated[str, typer.Argument(metavar="NAME", help=f"Which data set: {_SETS}.", show_default=False)]
Data = Annotated[
    Path | None,
    typer.Option("--data", envvar="DIALOMETER_DATA", help="Folder of public data sets; guerini needs none."),
]


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="reproduce", epilog="Example: dialometer reproduce guerini. Exit code 1 when a number is outside."
    )
    def reproduce_(
        name: Name,
        data: Data = None,
        as_json: AsJson = False,
        is_brief: Annotated[bool, typer.Option("--brief", help="One line for each kind of number.")] = False,
    ) -> None:
        """Compute what others published or computed on the same data, and show how far apart the numbers are.

        Every row gives our value, the other one, their absolute difference and whether it lies within what is allowed.
        """
        from dialometer.analysis.reproduce import reproduce

        found = reproduce(name, data)
        if as_json:
            typer.echo(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
        else:
            _show(found, is_brief=is_brief)
        if not found.is_within:
            raise typer.Exit(1)


def _show(found: Reproduction, *, is_brief: bool) -> None:
    from rich.markup import escape

    from dialometer.cli._console import results

    results.print(f"[bold]{escape(found.title)}[/]\n{escape(found.citation)}", soft_wrap=True)
    for comparison in found.comparisons:
        if not is_brief:
            _show_rows(comparison)
    results.print()
    for comparison in found.comparisons:
        _show_line(comparison)
    for note in found.notes:
        results.print(f"[dim]Note: {escape(note)}[/]", soft_wrap=True)
    n = sum(len(comparison.rows) for comparison in found.comparisons)
    n_outside = sum(comparison.n_outside for comparison in found.comparisons)
    verdict = "[green]all within what is allowed[/]" if found.is_within else f"[red]{n_outside} outside[/]"
    results.print(f"\n{n} numbers compared: {verdict}")


def _show_rows(comparison: Comparison) -> None:
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli._console import results

    results.print(f"\n[bold]{escape(comparison.title)}[/]  [dim]{escape(comparison.source)}[/]", soft_wrap=True)
    table = Table("", box=None, pad_edge=False, header_style="dim")
    for heading in ("ours", "other", "difference"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for row in comparison.rows:
        mark = "[green]ok[/]" if row.is_within else "[red]outside[/]"
        table.add_row(escape(row.label), f"{row.ours:.7g}", f"{row.other:.7g}", f"{row.difference:.1e}", mark)
    results.print(table)


def _show_line(comparison: Comparison) -> None:
    from rich.markup import escape

    from dialometer.cli._console import results

    mark = "[green]ok[/]" if not comparison.n_outside else f"[red]{comparison.n_outside} outside[/]"
    results.print(
        f"{escape(comparison.title)}: {len(comparison.rows)} numbers, largest difference {comparison.largest:.1e} {mark}"
        f" [dim]({escape(comparison.source)})[/]",
        soft_wrap=True,
    )
