"""dialometer retrieval list: the retrievers there are, and their options."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dialometer.cli.options import AsJson


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="list", epilog="Example: dialometer retrieval list --options")
    def list_(
        with_options: Annotated[bool, typer.Option("--options", help="Show the options of each, too.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """List all retrievers. Options are given as name:option=value, as in ranker:negatives=100.

        Those of Chierici and Habash (2021) follow under their own names; 'published' selects them all.
        """
        from dialometer.cli.console import results
        from dialometer.retrieval.published import PUBLISHED
        from dialometer.retrieval.retriever import RETRIEVERS
        from dialometer.retrieval.selection import from_simple

        kinds = {name: RETRIEVERS.get(name) for name in from_simple(RETRIEVERS.names())}
        if as_json:
            content = [
                {
                    "name": name,
                    "label": kind.label,
                    "about": kind.about,
                    "is_trained": kind.is_trained,
                    "options": kind.model_json_schema().get("properties", {}),
                }
                for name, kind in kinds.items()
            ]
            content += [
                {
                    "name": name,
                    "label": entry.label,
                    "retriever": entry.kind,
                    "options": {**entry.options, **entry.usual},
                }
                for name, entry in PUBLISHED.items()
            ]
            typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
            return
        for name, kind in kinds.items():
            trained = " [dim](trained: minutes on a CPU)[/]" if kind.is_trained else ""
            results.print(f"[bold]{name:<15}[/]{kind.about}{trained}", soft_wrap=True)
            for option, field in kind.model_fields.items() if with_options else ():
                about = f"  {field.description}" if field.description else ""
                results.print(f"{'':<17}{option}={field.get_default(call_default_factory=True)}[dim]{about}[/]")
        results.print("\nAs published (Chierici and Habash 2021); any BERT by :model=NAME or :model=FOLDER")
        for name, entry in PUBLISHED.items():
            options = ",".join(f"{option}={value}" for option, value in {**entry.options, **entry.usual}.items())
            results.print(f"[bold]{name:<15}[/]{entry.label} [dim]= {entry.kind}:{options}[/]", soft_wrap=True)
