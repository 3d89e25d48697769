"""dialometer new: start a study from a template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dialometer.cli._study import AsJson


def _names_beginning(start: str) -> list[str]:
    """For the shell, which completes what was typed so far."""
    from dialometer.design.templates import template_names

    return [name for name in ("list", *template_names()) if name.startswith(start)]


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="new", epilog="Example: dialometer new anchoring my-study")
    def new(
        template: Annotated[
            str,
            typer.Argument(
                metavar="TEMPLATE",
                help="Name of a template; 'list' shows them all.",
                show_default=False,
                autocompletion=_names_beginning,
            ),
        ],
        folder: Annotated[
            Path | None, typer.Argument(metavar="DIR", help="New folder; the template's name if left out.")
        ] = None,
        responses: Annotated[
            Path | None,
            typer.Option(
                "--responses", help="Items that 'bots respond' wrote: the study rates those (anchoring only)."
            ),
        ] = None,
        as_json: AsJson = False,
    ) -> None:
        """Start a study from a template: complete, ready to check, simulate and serve."""
        from rich.markup import escape
        from rich.table import Table

        from dialometer.cli._console import results
        from dialometer.design.load import load_study
        from dialometer.design.templates import copy_template, template_folder, template_names

        if template == "list":
            known = {name: load_study(template_folder(name)).spec.description for name in template_names()}
            told = {name: " ".join(about.split()) for name, about in known.items()}
            if as_json:
                typer.echo(json.dumps(told, ensure_ascii=False))
                return
            table = Table(box=None, pad_edge=False, show_header=False, leading=1)
            table.add_column(style="bold", no_wrap=True)
            for name, about in told.items():
                table.add_row(name, escape(about))
            results.print(table)
            results.print("\nNext: [bold]dialometer new NAME DIR[/] copies one into a new folder DIR")
            return
        target = folder or Path(template)
        if responses is not None:
            from dialometer.cli._bots_study import study_from_responses

            copied = study_from_responses(template, responses, target)
        else:
            copied = copy_template(template, target)
        if as_json:
            typer.echo(json.dumps({"folder": str(target), "files": [path.name for path in copied]}))
            return
        results.print(f"Wrote {len(copied)} files to [bold]{target}[/]:")
        for path in copied:
            results.print(f"  {path.name}")
        results.print(f"\nNext: [bold]dialometer check {target}[/]")
