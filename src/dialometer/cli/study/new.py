"""dialometer new: start a study from a template."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from dialometer.cli.options import AsJson


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

        from dialometer.cli.console import results
        from dialometer.design.load import load_study
        from dialometer.design.templates import copy_template, template_folder, template_names

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
            results.print("\nNext: [bold]dialometer new NAME DIR[/] copies one into a new folder DIR")
            return
        target = folder or Path(template)
        if responses is not None:
            pass

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


# A study from a template with the responses of trained bots in place of the template's own.


NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
S_PER_ITEM = 18  # the template's own rule: less cannot be read
MINUTES_PER_ITEM = 1.2


def study_from_responses(template: str, items: Path, folder: Path) -> list[Path]:
    """Copies the template, puts the items in, and tells the study, its texts and its rules about them."""
    from dialometer.cli.bots.respond import PROVENANCE_SUFFIX
    from dialometer.design.load import check_study
    from dialometer.design.templates import copy_template
    from dialometer.errors import DialometerError, StudyError

    if template != "anchoring":
        raise DialometerError(
            f"the template '{template}' does not rate responses of several systems",
            where="--responses",
            remedy="use the template 'anchoring'",
        )
    rows = _rows(items)
    systems = _systems(rows, items)
    beside = items.with_name(items.name + PROVENANCE_SUFFIX)
    about = json.loads(beside.read_text(encoding="utf-8"))["systems"] if beside.is_file() else {}
    copied = copy_template(template, folder)
    try:
        text = (folder / "study.yaml").read_text(encoding="utf-8")
        (folder / "study.yaml").write_text(_study(text, systems, about, rows), encoding="utf-8")
        shutil.copyfile(items, folder / "items.jsonl")
        if beside.is_file():
            shutil.copyfile(beside, folder / "responses.provenance.json")
            copied.append(folder / "responses.provenance.json")
        for name in ("consent.md", "instructions.md"):
            path = folder / name
            path.write_text(_wording(path.read_text(encoding="utf-8"), rows, len(systems)), encoding="utf-8")
        errors = [problem for problem in check_study(folder)[1] if problem.severity == "error"]
        if errors:
            raise StudyError(errors)
    except BaseException:
        shutil.rmtree(folder)
        raise
    return copied


def _rows(items: Path) -> list[dict[str, Any]]:
    from dialometer.errors import DialometerError

    remedy = "name the file that 'dialometer bots respond --out' wrote"
    try:
        rows = [json.loads(line) for line in items.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise DialometerError(f"no items: {error}", where=str(items), remedy=remedy) from error
    if not rows or not all(isinstance(row, dict) and row.get("responses") for row in rows):
        raise DialometerError("there are items without responses", where=str(items), remedy=remedy)
    return rows


def _systems(rows: Sequence[Mapping[str, Any]], items: Path) -> list[str]:
    from dialometer.errors import DialometerError

    systems = list(rows[0]["responses"])
    for row in rows:
        if set(row["responses"]) != set(systems):
            raise DialometerError(
                f"item '{row.get('id')}' has responses of {', '.join(row['responses'])}, the first one of "
                f"{', '.join(systems)}",
                where=str(items),
                remedy="let the same bots answer every context",
            )
        if not row.get("standard"):
            raise DialometerError(
                f"item '{row.get('id')}' has no standard response, which is the anchor of this study",
                where=str(items),
                remedy="take contexts from dialogues, or add 'standard'",
            )
    return systems


def _study(text: str, systems: Sequence[str], about: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """The template's study file with these systems, numbers and speakers; its remarks stay."""
    declared = [
        {"name": name}
        | {key: about[name][kept] for key, kept in (("label", "label"), ("description", "about")) if name in about}
        for name in systems
    ]
    block = yaml.safe_dump({"systems": declared}, sort_keys=False, allow_unicode=True, width=110)
    n_practice, n_rated = _counts(rows)
    speakers = list(dict.fromkeys(turn["speaker"] for row in rows for turn in row["context"]))
    changes = (
        (r"^systems:\n(?s:.*?)(?=^items:)", block + "\n"),
        (r"^speakers: .*$", f"speakers: {{{', '.join(f'{name}: person' for name in speakers)}}}"),
        (r"levels: \[seq2seq, hred, thred\]", f"levels: [{', '.join(systems)}]"),
        (r"The three systems differ", f"The {NUMBERS.get(len(systems), len(systems))} systems differ"),
        (r"n_practice_items: \d+", f"n_practice_items: {n_practice}"),
        (r"at_least_s: 900 .*$", f"at_least_s: {S_PER_ITEM * n_rated}  # nobody reads {n_rated} conversations in less"),
        (r"^  minutes: 60", f"  minutes: {max(1, round(MINUTES_PER_ITEM * n_rated))}"),
        (
            r"Conversations and responses are made up for this\n# template; replace items.jsonl by the output of your own systems.",
            "The responses are those of trained models;\n# responses.provenance.json says of which, and how they were made.",
        ),
    )
    for pattern, new in changes:
        text = re.sub(pattern, new.replace("\\", r"\\"), text, flags=re.MULTILINE)
    return text


def _wording(text: str, rows: Sequence[Mapping[str, Any]], n_systems: int) -> str:
    """Consent and instructions with the right numbers."""
    n_practice, n_rated = _counts(rows)
    number = NUMBERS.get(n_systems, str(n_systems))
    text = re.sub(r"\bthree(?= (?:\*\*responses\*\*|responses|possible replies))", number, text)
    text = text.replace(", as you might find it in an online forum", "").replace("Forum English is", "The English is")
    text = re.sub(r"\b50(?= (?:short )?conversations)", str(n_rated), text)
    if not n_practice:
        text = re.sub(
            r"You begin with \*\*one conversation for practice\*\*; its numbers are not counted. After that there are (\d+)",
            r"There are \1",
            text,
        )
    elif n_practice > 1:
        text = text.replace(
            "**one conversation for practice**; its", f"**{n_practice} conversations for practice**; their"
        )
    return text


def _counts(rows: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Items for practice, and items that count."""
    n_practice = sum(bool((row.get("metadata") or {}).get("practice")) for row in rows)
    return n_practice, len(rows) - n_practice
