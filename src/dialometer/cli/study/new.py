"""dialometer new: start a study from a template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dialometer.cli.options import AsJson

FROM_FILES = {
    "ratings": "Responses or whole transcripts of your systems, rated one by one (with --responses).",
    "candidates": "Possible responses to each question, rated one by one; equal ones once (with --responses).",
}
"""Kinds of studies that are made from one's own files alone."""


def _names_beginning(start: str) -> list[str]:
    """For the shell, which completes what was typed so far."""
    from dialometer.design.templates import template_names

    return [name for name in ("list", *template_names(), *FROM_FILES) if name.startswith(start)]


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="new", epilog="Example: dialometer new compare my-study --responses outputs.csv")
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
            Path | None, typer.Argument(metavar="DIR", help="New folder; the template's name by default.")
        ] = None,
        responses: Annotated[
            list[Path] | None,
            typer.Option(
                "--responses",
                metavar="FILE",
                help="Outputs of your systems: one file with a column per system or a column 'model', or repeat it "
                "with one file per system (compare, ratings, pairs, best-worst, candidates, anchoring).",
            ),
        ] = None,
        first: Annotated[
            Path | None,
            typer.Option(
                "--a", metavar="FILE", help="Transcripts or responses of one system (template pairs, with --b)."
            ),
        ] = None,
        second: Annotated[
            Path | None, typer.Option("--b", metavar="FILE", help="Transcripts or responses of the other system.")
        ] = None,
        systems: Annotated[
            str, typer.Option("--systems", metavar="COLUMN,…", help="Columns of the file that are systems.")
        ] = "",
        n_items: Annotated[
            int | None, typer.Option("--items", min=1, help="Number of contexts to draw at random; all by default.")
        ] = None,
        prompts: Annotated[
            Path | None,
            typer.Option(
                "--prompts",
                metavar="PATH",
                help="What raters ask about: a folder with a text file per prompt, or one file (arena and chat, with --agents).",
            ),
        ] = None,
        agents: Annotated[
            Path | None,
            typer.Option("--agents", metavar="FILE", help="YAML with systems and their agents (arena and chat)."),
        ] = None,
        as_json: AsJson = False,
    ) -> None:
        """Start a study from a template: complete, ready to check, simulate and serve."""
        from rich.markup import escape
        from rich.table import Table

        from dialometer.cli.console import results
        from dialometer.design.load import load_study
        from dialometer.design.templates import copy_template, template_folder, template_names
        from dialometer.errors import DialometerError

        if template == "list":
            known = {name: load_study(template_folder(name)).spec.description for name in template_names()}
            descriptions = {name: " ".join(about.split()) for name, about in known.items()}
            if as_json:
                typer.echo(json.dumps(descriptions, ensure_ascii=False))
                return
            table = Table(box=None, pad_edge=False, show_header=False, leading=1)
            table.add_column(style="bold", no_wrap=True)
            for name, about in descriptions.items():
                table.add_row(name, escape(about))
            results.print(table)
            for name, about in FROM_FILES.items():
                results.print(f"\n[bold]{name}[/]  {about}", highlight=False)
            results.print("\nNext: [bold]dialometer new NAME DIR[/] copies one into a new folder DIR")
            return
        target = folder or Path(template)
        notes: list[str] = []
        if first or second:
            if not (first and second) or responses or template != "pairs":
                raise DialometerError(
                    "--a and --b name one file each of the two systems of a pair",
                    remedy="dialometer new pairs DIR --a FILE --b FILE",
                )
            responses = [first, second]
        if prompts or agents:
            if responses or systems or n_items:
                raise DialometerError(
                    "--prompts and --agents make a live study, which has no files of responses",
                    remedy="leave --responses, --systems and --items out",
                )
            copied = _live(template, prompts, agents, target)
        elif responses:
            from dialometer.exchange.own_systems.study_from_outputs import study_from_outputs

            columns = [name.strip() for name in systems.split(",") if name.strip()]
            copied, notes = study_from_outputs(template, responses, target, systems=columns, n_items=n_items)
        elif systems or n_items:
            raise DialometerError(
                "--systems and --items are about files of responses",
                remedy="name the files with --responses, or --a and --b",
            )
        elif template in FROM_FILES:
            raise DialometerError(
                f"a study of the kind '{template}' is made from your own files",
                remedy=f"dialometer new {template} DIR --responses FILE [--responses FILE …]",
            )
        else:
            copied = copy_template(template, target)
        if as_json:
            typer.echo(json.dumps({"folder": str(target), "files": [path.name for path in copied], "notes": notes}))
            return
        shown = escape(str(target))
        results.print(f"Wrote {len(copied)} files to [bold]{shown}[/]:", soft_wrap=True)
        for path in copied:
            results.print(f"  {escape(path.name)}")
        for note in notes:
            results.print(escape(f"Note: {note}."))
        results.print(f"\nNext: [bold]dialometer check {shown}[/]", soft_wrap=True)


def _live(template: str, prompts: Path | None, agents: Path | None, target: Path) -> list[Path]:
    """An arena, or chats, of the systems of one file on the prompts of another."""
    from dialometer.cli.study.respond import read_systems
    from dialometer.errors import DialometerError
    from dialometer.exchange.own_systems.arena_from_prompts import arena_from_prompts, read_prompt_texts
    from dialometer.exchange.own_systems.study_of_kind import chat_from_prompts

    if template not in ("arena", "chat") or prompts is None or agents is None:
        raise DialometerError(
            "--prompts and --agents are used together, with the templates arena and chat",
            remedy="dialometer new arena DIR --prompts FOLDER --agents systems.yaml",
        )
    declared = read_systems(agents).model_dump(mode="json", exclude_defaults=True)
    if template == "chat":
        return chat_from_prompts(read_prompt_texts(prompts), declared, target)
    return arena_from_prompts(prompts, declared, target)
