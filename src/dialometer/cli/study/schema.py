"""dialometer schema: the JSON Schema of study files."""

from __future__ import annotations

import json

import typer


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="schema", epilog="Example: dialometer schema > study.schema.json")
    def schema() -> None:
        """Print the JSON Schema of study.yaml, for editors that complete and check as you type."""
        from dialometer.design.schema import study_schema

        typer.echo(json.dumps(study_schema(), indent=2, ensure_ascii=False))
