"""dialometer new: start a study from a template."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="new", epilog="Example: dialometer new anchoring my-study")
    def new(
        template: Annotated[str, typer.Argument(help="Name of a template; 'list' shows them all.", show_default=False)],
        folder: Annotated[
            Path | None, typer.Argument(metavar="DIR", help="New folder; the template's name if left out.")
        ] = None,
        responses: Annotated[
            Path | None,
            typer.Option(
                "--responses", help="Items that 'bots respond' wrote: the study rates those (anchoring only)."
            ),
        ] = None,
    ) -> None:
        """Start a study from a template: complete, ready to check, simulate and serve."""
        from dialometer.cli._console import results
        from dialometer.design.load import load_study
        from dialometer.design.templates import copy_template, template_folder, template_names

        if template == "list":
            for name in template_names():
                spec = load_study(template_folder(name)).spec
                results.print(f"[bold]{name:<12}[/] {' '.join(spec.description.split())}")
            return
        target = folder or Path(template)
        if responses is not None:
            from dialometer.cli._bots_study import study_from_responses

            copied = study_from_responses(template, responses, target)
        else:
            copied = copy_template(template, target)
        results.print(f"Wrote {len(copied)} files to [bold]{target}[/]:")
        for path in copied:
            results.print(f"  {path.name}")
        results.print(f"\nNext: [bold]dialometer check {target}[/]")
