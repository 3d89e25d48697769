"""dialometer look: what a file is, how it is read, and what could be done with it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from dialometer.cli.options import AsJson, Speakers, speaker_roles

N_TURNS_SHOWN = 8
N_LETTERS_SHOWN = 300
N_LETTERS_OF_CALL = 120
N_WARNINGS_SHOWN = 10
N_KEYS_SHOWN = 12


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="look", epilog="Example: dialometer look chats.jsonl")
    def look(
        file: Annotated[
            Path, typer.Argument(metavar="FILE", help="Dialogues, ratings or votes; or a folder.", show_default=False)
        ],
        format_name: Annotated[
            str, typer.Option("--format", help="Format of the dialogues; recognised by default.")
        ] = "",
        speakers: Speakers = None,
        as_json: AsJson = False,
    ) -> None:
        """Show what a file is: its format, how it is read, a first dialogue, counts, and what is not used.

        Nothing is written. Dialogues with faults are listed and skipped, so that one look shows them all.
        """
        from dialometer.exchange.looking import look_at

        result = look_at(file, format_name, speaker_roles(speakers))
        if as_json:
            typer.echo(json.dumps(result, ensure_ascii=False, indent=2, default=str))
            return
        shows = {"dialogues": _show_dialogues, "judgments": _show_judgments, "table": _show_table}
        shows.get(result["kind"], _show_folder)(file, result)


def _print(text: str, **style: Any) -> None:
    from dialometer.cli.console import results

    results.print(text, soft_wrap=not results.is_terminal, **style)


def _show_dialogues(file: Path, result: dict[str, Any]) -> None:
    from rich.markup import escape

    _print(
        f"[bold]{escape(file.name or str(file))}[/]: {_n(result['dialogues'], 'dialogue')}, format {result['format']}"
    )
    _show_forms(result)
    _show_talk(result)
    _show_next(file, result)


def _show_talk(result: dict[str, Any]) -> None:
    """Speakers, metadata, a first dialogue, and what was assumed."""
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results

    turns = result["turns_per_dialogue"]
    if turns:
        least, most = turns["least"], turns["most"]
        spread = f"{least} in each" if least == most else f"{least} to {most} in a dialogue, median {turns['median']:g}"
        calls = f"; {_n(result['tool_calls'], 'tool call')}" if result["tool_calls"] else ""
        _print(f"{result['turns']:,} turns, {spread}{calls}")
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for name in ("speaker", "role", "turns"):
        table.add_column(name, justify="right" if name == "turns" else "left")
    for speaker in result["speakers"][:N_KEYS_SHOWN]:
        table.add_row(escape(speaker["name"]), speaker["role"], f"{speaker['turns']:,}")
    results.print(table)
    if len(result["speakers"]) > N_KEYS_SHOWN:
        _print(f"… and {len(result['speakers']) - N_KEYS_SHOWN:,} more speakers", style="dim")
    if result["metadata"]:
        listed = [f"{name} ({n:,})" for name, n in list(result["metadata"].items())[:N_KEYS_SHOWN]]
        _print(escape(f"Also known of dialogues: {', '.join(listed)}"))
    _show_first(result["first"])
    _show_list("Assumed or excluded", result["warnings"])


def _show_forms(result: dict[str, Any]) -> None:
    if result.get("read_as"):
        _print(f"Read as: {', '.join(result['read_as'])}")


def _show_list(title: str, entries: list[str]) -> None:
    from rich.markup import escape

    if not entries:
        return
    _print(f"\n[bold]{title}[/]")
    for words in entries[:N_WARNINGS_SHOWN]:
        _print(escape(f"- {words}"))
    if len(entries) > N_WARNINGS_SHOWN:
        _print(f"… and {len(entries) - N_WARNINGS_SHOWN:,} more kinds", style="dim")


def _show_first(first: dict[str, Any] | None) -> None:
    from rich.markup import escape

    if first is None:
        return
    _print(f"\n[bold]The first one[/] ({escape(first['id'])})")
    if first.get("system_prompt"):
        _print(f"[dim]system prompt:[/] {escape(_cut(first['system_prompt'], N_LETTERS_SHOWN))}")
    for turn in first["turns"][:N_TURNS_SHOWN]:
        for call in turn.get("tool_calls", ()):
            arguments = call.get("arguments", "")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            result = f" → {_cut(call['result'], N_LETTERS_OF_CALL)}" if "result" in call else ""
            _print(
                f"[dim]{escape(turn['speaker'])} calls[/] {escape(call['name'] + '(' + _cut(text, 120) + ')' + result)}"
            )
        for media in turn.get("media", ()):
            _print(f"[dim]{escape(turn['speaker'])} shows[/] {escape(media['path'])}")
        if turn["text"]:
            _print(f"[dim]{escape(turn['speaker'])}:[/] {escape(_cut(turn['text'], N_LETTERS_SHOWN))}")
    if len(first["turns"]) > N_TURNS_SHOWN:
        _print(f"… and {len(first['turns']) - N_TURNS_SHOWN} more turns", style="dim")


def _cut(text: str, n_letters: int) -> str:
    return text if len(text) <= n_letters else f"{text[:n_letters]} …"


def _show_next(file: Path, result: dict[str, Any]) -> None:
    from rich.markup import escape

    from dialometer.cli.console import print_prose

    shown = escape(str(file))
    if "rating" in result["metadata"]:
        _print(f"\n[bold]dialometer learn ratings {shown}[/] audits its ratings.")
        return
    print_prose(f"\n[bold]dialometer new ratings my-study --responses {shown}[/] has raters rate each dialogue.")
    print_prose(
        f"[bold]dialometer new pairs my-study --a {shown} --b OTHER[/] compares it with another system's dialogues."
    )
    print_prose(f"[bold]dialometer learn score {shown}[/] scores it with a trained evaluator.")


def _show_judgments(file: Path, result: dict[str, Any]) -> None:
    from rich.markup import escape

    from dialometer.cli.console import print_prose

    _print(
        f"[bold]{escape(file.name or str(file))}[/]: {_n(result['judgments'], 'judgment')}, format {result['format']}"
    )
    _show_forms(result)
    if result["judgments"]:
        _print(
            f"{_n(result['raters'], 'rater')}, {_n(result['items'], 'item')}, {_n(len(result['systems']), 'system')}"
        )
        names = [f"{name} ({n:,})" for name, n in list(result["systems"].items())[:N_KEYS_SHOWN]]
        more = f" and {len(result['systems']) - N_KEYS_SHOWN:,} more" if len(result["systems"]) > N_KEYS_SHOWN else ""
        if names:
            _print(escape(f"Systems: {', '.join(names)}{more}"))
        _print(escape(f"Criteria: {', '.join(f'{name} ({n:,})' for name, n in result['criteria'].items())}"))
    if result["undecided"]:
        words = {"tie": "ties", "both_bad": "both bad", "cannot_tell": "cannot tell"}
        _print(", ".join(f"{n:,} {words[name]}" for name, n in result["undecided"].items()))
    if result["used"]:
        _print(escape(f"Columns: {'; '.join(f'{role} ← {column}' for role, column in result['used'].items())}"))
    else:
        _print(escape(f"Columns: {', '.join(result['columns'][:50])}"))
    if result["ignored"]:
        _print(escape(f"Ignored: {', '.join(result['ignored'])}"))
    left_out = [f"{n:,} {what}" for what, n in result["left_out"].items()]
    dialogues = result.get("dialogues")
    if dialogues:
        _print(f"\nIt holds {_n(dialogues['dialogues'], 'dialogue')}, too (format {dialogues['format']}).")
        _show_talk({**dialogues, "warnings": []})
    read = [words for words in (dialogues or {}).get("warnings", []) if words not in result["assumed"]]
    _show_list("Assumed or excluded", [*result["assumed"], *left_out, *read])
    _show_list("Problems", result["problems"])
    shown = escape(str(file))
    if result["n_problems"]:
        print_prose(
            "\nFix these, or say which column is which with [bold]--map[/]: "
            f"[bold]dialometer import my-study {shown} --map rater=COLUMN[/]"
        )
    else:
        print_prose(f"\n[bold]dialometer import my-study {shown}[/] makes a study of it.")
        if dialogues and "rating" in dialogues["metadata"]:
            _show_next(file, dialogues)


def _show_table(file: Path, result: dict[str, Any]) -> None:
    from rich.markup import escape

    from dialometer.cli.console import print_prose

    shown = escape(str(file))
    is_asked = {"question", "expected_answer"} <= set(result["columns"])
    kind = "questions with expected answers" if is_asked else "a table, not a file of dialogues"
    kind = kind if result["ratings"] is None else "a table of ratings"
    _print(f"[bold]{escape(file.name or str(file))}[/]: {kind}")
    _show_forms(result)
    print_prose(escape(f"Columns: {', '.join(result['columns'])}"))
    if result["ratings"] is not None:
        ratings = ",".join(result["ratings"])
        ratings = ratings if ratings.replace(",", "").isidentifier() else shlex.quote(ratings)
        criteria = f" --criteria {escape(ratings)}" if result["ratings"] else ""
        print_prose(f"\n[bold]dialometer import my-study {shown} --format long{criteria}[/] imports it as ratings.")
    elif is_asked:
        print_prose(f"\n[bold]dialometer retrieval evaluate KB {shown}[/] asks retrievers these questions.")
    else:
        print_prose(
            f"\nIf it holds judgments, [bold]dialometer import my-study {shown} --format votes[/] reads one choice between "
            "two systems per row, [bold]--format long[/] one rating per row; [bold]--map[/] says which column is which."
        )
        print_prose(
            f"If it holds what systems answered, [bold]dialometer new compare my-study --responses {shown}[/] has raters "
            "rate it."
        )


def _show_folder(folder: Path, result: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results

    shown = escape(str(folder))
    if result["kind"] == "study":
        _print(f"[bold]{shown}[/]: a study\n\n[bold]dialometer check {shown}[/] says what it holds.")
        return
    if result["kind"] == "export":
        rows = ", ".join(f"{name} ({n:,})" for name, n in result["files"].items() if n)
        _print(
            f"[bold]{shown}[/]: what [bold]dialometer export[/] wrote of '{escape(str(result['study'].get('name')))}'"
        )
        _print(escape(rows))
        _print(f"\n[bold]dialometer import my-study {shown}[/] brings it in.")
        return
    _print(f"[bold]{shown}[/]: a folder with {_n(result['n_files'], 'entry', 'entries')}")
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for name in ("file", "what it is"):
        table.add_column(name)
    for entry in result["files"]:
        table.add_row(escape(entry["name"]), escape(_in_words(entry)))
    results.print(table)
    if result["n_files"] > len(result["files"]):
        _print(f"… and {result['n_files'] - len(result['files']):,} more", style="dim")
    _print("\n[bold]dialometer look FILE[/] shows one of them.")


def _in_words(entry: dict[str, Any]) -> str:
    match entry["kind"]:
        case "dialogues":
            return f"{_n(entry['dialogues'], 'dialogue')}, format {entry['format']}"
        case "judgments":
            too = f", with {_n(entry['dialogues'], 'dialogue')}" if "dialogues" in entry else ""
            return f"{_n(entry['judgments'], 'judgment')}, format {entry['format']}{too}"
        case "table":
            return f"a table of {len(entry['columns'])} columns"
        case "large":
            return f"{entry['megabytes']:,} MB; look at it by itself"
        case "study":
            return "a study"
        case "folder":
            return "a folder"
    return f"not recognised: {entry.get('why', '')}"[:100]


def _n(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
