"""dialometer retrieval words: with which words questions and answers begin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.options import AsJson
from dialometer.cli.retrieval._shared import KbFile, Lenient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dialometer.retrieval.questions.first_words import FirstWords


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="words", epilog="Example: dialometer retrieval words kb.csv dialogues.jsonl --out words")
    def words(
        kb_file: KbFile,
        dialogues: Annotated[
            Path | None, typer.Argument(metavar="DIALOGUES", help="Dialogues with questions as people asked them.")
        ] = None,
        fewest: Annotated[
            int,
            typer.Option(
                "--fewest", min=0, help="Show beginnings that occur at least this often; 0 for as many as fit."
            ),
        ] = 0,
        out: Annotated[
            Path | None, typer.Option("--out", metavar="DIR", help="Folder for figures (SVG) and tables (CSV).")
        ] = None,
        lenient: Lenient = False,
        as_json: AsJson = False,
    ) -> None:
        """Show the first three words of recorded questions, of recorded answers, and of the questions in dialogues.

        Beginnings of questions that are frequent in the dialogues and missing in the knowledge base are what retrievers have
        not seen.
        """
        from dialometer.cli.retrieval._shared import read_both
        from dialometer.retrieval.knowledge_base import read_knowledge_base
        from dialometer.retrieval.questions.first_words import first_words

        texts: dict[str, list[str]] = {}
        if dialogues is None:
            kb = read_knowledge_base(kb_file)
        else:
            kb, query_set = read_both(kb_file, dialogues, lenient=lenient)
            texts["questions of the dialogues"] = [query.text for query in query_set.queries]
        texts = {"recorded questions": list(kb.questions), "recorded answers": list(kb.texts), **texts}
        words_by_kind = {kind: first_words(own) for kind, own in texts.items()}
        written = _write(out, words_by_kind, fewest) if out is not None else []
        if as_json:
            content = {
                kind: {"n_texts": own.n_texts, "beginnings": [{"words": list(w), "n": n} for w, n in own.shown(fewest)]}
                for kind, own in words_by_kind.items()
            }
            typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        else:
            _show(words_by_kind, fewest, written)


def _write(folder: Path, words_by_kind: Mapping[str, FirstWords], fewest: int) -> list[Path]:
    from dialometer.errors import DialometerError
    from dialometer.report.drawing import draw_svg
    from dialometer.report.formats.csv_tables import csv_text
    from dialometer.retrieval.questions.first_words import words_figure, words_table

    if folder.exists() and not folder.is_dir():
        raise DialometerError(f"'{folder}' is a file", remedy="name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for kind, own in words_by_kind.items():
        name = kind.replace(" ", "_")
        figure = words_figure(name, kind.capitalize(), own, fewest)
        drawing, table = folder / f"{name}.svg", folder / f"{name}.csv"
        drawing.write_text(draw_svg(figure.spec, where=name), encoding="utf-8")
        table.write_text(csv_text(words_table(name, kind.capitalize(), own, fewest)), encoding="utf-8")
        written += [drawing, table]
    return written


def _show(words_by_kind: Mapping[str, FirstWords], fewest: int, written: list[Path]) -> None:
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.retrieval.questions.first_words import joined

    for kind, own in words_by_kind.items():
        shown = own.shown(fewest)
        n_shown = sum(n for _, n in shown)
        least = min((n for _, n in shown), default=0)
        results.print(
            f"[bold]{kind.capitalize()}[/]: {own.n_texts:,} different ones; {n_shown:,} begin with three words that occur {least} "
            "times or more.",
            soft_wrap=True,
        )
        table = Table(
            "first word", "all", "of those shown", "goes on with", box=None, pad_edge=False, header_style="dim"
        )
        everything, totals = own.totals(), own.totals(least)
        for word, n in list(totals.items())[:12]:
            rest = [f"{joined(words[1:])} {count}" for words, count in shown if words[0] == word and len(words) > 1]
            table.add_row(word, str(everything[word]), str(n), f"[dim]{', '.join(rest[:4])}[/]")
        results.print(table)
        results.print()
    for path in written:
        results.print(f"  {path}", soft_wrap=True)
