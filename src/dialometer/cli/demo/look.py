"""dialometer look: what a file is, how it is read, and what could be done with it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.options import AsJson

if TYPE_CHECKING:
    from dialometer.errors import Problem
    from dialometer.model.dialogue import Dialogue, Role

N_TURNS_SHOWN = 8
N_LETTERS_SHOWN = 300
N_WARNINGS_SHOWN = 10
N_KEYS_SHOWN = 12


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="look", epilog="Example: dialometer look chats.jsonl")
    def look(
        file: Annotated[Path, typer.Argument(metavar="FILE", help="Dialogues, ratings or votes.", show_default=False)],
        format_name: Annotated[
            str, typer.Option("--format", help="Format of the dialogues; recognised if left out.")
        ] = "",
        speakers: Annotated[
            list[str] | None,
            typer.Option(
                "--speakers", metavar="NAME=ROLE", help="Role of a speaker: user, agent or person; repeat for more."
            ),
        ] = None,
        as_json: AsJson = False,
    ) -> None:
        """Show what a file is: its format, how it is read, a first dialogue, counts, and what is not used.

        Nothing is written. Dialogues with faults are listed and skipped, so that one look shows them all.
        """
        from dialometer.errors import ReadError

        try:
            found = _dialogues(file, format_name, _roles(speakers or []))
        except ReadError:
            other = None if format_name else _table(file)
            if other is None:
                raise
            found = other
        if as_json:
            typer.echo(json.dumps(found, ensure_ascii=False, indent=2))
        elif found["kind"] == "dialogues":
            _show_dialogues(file, found)
        else:
            _show_table(file, found)


def _roles(entries: list[str]) -> dict[str, Role]:
    from dialometer.errors import DialometerError
    from dialometer.model.dialogue import ROLES

    roles: dict[str, Role] = {}
    for entry in entries:
        name, separator, given = entry.rpartition("=")
        role = next((role for role in ROLES if role == given.strip()), None)
        if not separator or not name.strip() or role is None:
            raise DialometerError(
                f"'{entry}' does not give a speaker a role", remedy=f"NAME=ROLE, where ROLE is {', '.join(ROLES)}"
            )
        roles[name.strip()] = role
    return roles


def _dialogues(file: Path, format_name: str, roles: dict[str, Role]) -> dict[str, Any]:
    """What the reader finds, with everything that it left out or assumed."""
    import statistics
    from collections import Counter

    from dialometer.readers import read_dialogues

    reading = read_dialogues(file, format_name or None, speakers=roles, lenient=True)
    first: Dialogue | None = None
    n_turns: list[int] = []
    spoken: Counter[tuple[str, str]] = Counter()
    keys: Counter[str] = Counter()
    with _without_log():
        for dialogue in reading:
            first = first or dialogue
            n_turns.append(len(dialogue.turns))
            spoken.update((turn.speaker, turn.role) for turn in dialogue.turns)
            keys.update(dialogue.metadata.keys())
    turns = {"least": min(n_turns), "median": statistics.median(n_turns), "most": max(n_turns)} if n_turns else {}
    return {
        "kind": "dialogues",
        "format": reading.format,
        "dialogues": len(n_turns),
        "turns": sum(n_turns),
        "turns_per_dialogue": turns,
        "speakers": [{"name": name, "role": role, "turns": n} for (name, role), n in spoken.most_common()],
        "metadata": dict(keys.most_common()),
        "first": _first(first),
        "warnings": [_words(warning) for warning in reading.warnings],
        "n_warnings": reading.n_warnings,
    }


@contextmanager
def _without_log() -> Iterator[None]:
    """The readers log what they assumed; here it is part of the result, so it is not said twice."""
    log = logging.getLogger("dialometer.readers")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def _words(problem: Problem) -> str:
    line = f"line {problem.line}: " if problem.line else ""
    return f"{line}{problem.message}" + (f" ({problem.remedy})" if problem.remedy else "")


def _first(dialogue: Dialogue | None) -> dict[str, Any] | None:
    if dialogue is None:
        return None
    turns = [{"speaker": turn.speaker, "role": turn.role, "text": turn.text} for turn in dialogue.turns]
    return {"id": dialogue.id, "turns": turns, "metadata": dict(dialogue.metadata)}


def _table(file: Path) -> dict[str, Any] | None:
    """The columns of a table and the format by which ``dialometer import`` would read it; None for no table."""
    from dialometer.errors import DialometerError
    from dialometer.exchange.importing import columns_of, format_of

    try:
        columns = columns_of(file)
    except DialometerError:
        return None
    try:
        return {"kind": "judgments", "format": format_of(file), "columns": columns}
    except DialometerError:
        return {"kind": "table", "format": "", "columns": columns} if len(columns) > 1 else None


def _show_dialogues(file: Path, found: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results

    turns = found["turns_per_dialogue"]
    plural = "" if found["dialogues"] == 1 else "s"
    results.print(f"[bold]{escape(file.name)}[/]: {found['dialogues']:,} dialogue{plural}, format {found['format']}")
    if turns:
        least, most = turns["least"], turns["most"]
        spread = f"{least} in each" if least == most else f"{least} to {most} in a dialogue, median {turns['median']:g}"
        results.print(f"{found['turns']:,} turns, {spread}")
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for name in ("speaker", "role", "turns"):
        table.add_column(name, justify="right" if name == "turns" else "left")
    for speaker in found["speakers"][:N_KEYS_SHOWN]:
        table.add_row(escape(speaker["name"]), speaker["role"], f"{speaker['turns']:,}")
    results.print(table)
    if len(found["speakers"]) > N_KEYS_SHOWN:
        results.print(f"… and {len(found['speakers']) - N_KEYS_SHOWN:,} more speakers", style="dim")
    if found["metadata"]:
        listed = [f"{name} ({n:,})" for name, n in list(found["metadata"].items())[:N_KEYS_SHOWN]]
        results.print(escape(f"Also known of dialogues: {', '.join(listed)}"), soft_wrap=not results.is_terminal)
    _show_first(found["first"])
    if found["n_warnings"]:
        results.print("\n[bold]Assumed or excluded[/]")
        for words in found["warnings"][:N_WARNINGS_SHOWN]:
            results.print(escape(f"- {words}"), soft_wrap=not results.is_terminal)
        if found["n_warnings"] > N_WARNINGS_SHOWN:
            results.print(f"… and {found['n_warnings'] - N_WARNINGS_SHOWN:,} more", style="dim")
    _show_next(file, found)


def _show_first(first: dict[str, Any] | None) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    if first is None:
        return
    results.print(f"\n[bold]The first one[/] ({escape(first['id'])})")
    for turn in first["turns"][:N_TURNS_SHOWN]:
        text = turn["text"] if len(turn["text"]) <= N_LETTERS_SHOWN else f"{turn['text'][:N_LETTERS_SHOWN]} …"
        results.print(f"[dim]{escape(turn['speaker'])}:[/] {escape(text)}", soft_wrap=not results.is_terminal)
    if len(first["turns"]) > N_TURNS_SHOWN:
        results.print(f"… and {len(first['turns']) - N_TURNS_SHOWN} more turns", style="dim")


def _show_next(file: Path, found: dict[str, Any]) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    is_rated = "rating" in found["metadata"]
    does = "learn ratings" if is_rated else "learn score"
    use = "audits its ratings" if is_rated else "scores it with a trained evaluator"
    results.print(f"\n[bold]dialometer {does} {escape(str(file))}[/] {use}.", soft_wrap=not results.is_terminal)


def _show_table(file: Path, found: dict[str, Any]) -> None:
    from rich.markup import escape

    from dialometer.cli.console import print_prose, results

    what = f"judgments, format {found['format']}" if found["format"] else "a table that is no file of dialogues"
    results.print(f"[bold]{escape(file.name)}[/]: {what}")
    print_prose(escape(f"Columns: {', '.join(found['columns'])}"))
    if found["format"]:
        print_prose(f"\n[bold]dialometer import my-study {escape(str(file))}[/] makes a study of it.")
        return
    print_prose(
        "\nIf it holds judgments, [bold]dialometer import my-study FILE --format votes[/] reads one choice between two systems "
        "a row, [bold]--format long[/] one rating a row; [bold]--map[/] says which column is which."
    )
