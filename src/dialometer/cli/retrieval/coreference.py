"""dialometer retrieval coreference: which questions need the dialogue before them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.options import AsJson
from dialometer.cli.retrieval._shared import DialogueFile, KbFile, Lenient, MarksFile

if TYPE_CHECKING:
    from dialometer.retrieval.questions.coreference import Proposal


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="coreference", epilog="Example: dialometer retrieval coreference kb.csv dialogues.jsonl --out marks.csv"
    )
    def coreference(
        kb_file: KbFile,
        dialogues: DialogueFile,
        out: Annotated[
            Path | None,
            typer.Option("--out", metavar="FILE", help="Write a table of all questions, to correct by hand."),
        ] = None,
        marks: MarksFile = None,
        lenient: Lenient = False,
        as_json: AsJson = False,
    ) -> None:
        """List questions that cannot be understood without the turns before them ("Which one did you prefer?").

        Marks of the dialogues, or of --marks, are shown as they are. Where there are none, a rule for English proposes them
        with its reason. Correct its table and give it to evaluate and pool as --marks.
        """
        from dialometer.cli.retrieval._shared import read_both
        from dialometer.errors import DialometerError
        from dialometer.retrieval.questions.coreference import proposals, write_marks

        if out is not None and out.exists():
            raise DialometerError(f"'{out}' exists", remedy="choose another name, so that corrections are not lost")
        _, query_set = read_both(kb_file, dialogues, lenient=lenient, marks=marks)
        proposed = proposals(query_set)
        if out is not None:
            write_marks(out, proposed)
        if as_json:
            rows = [
                {
                    "question": proposal.query.id,
                    "coreference": proposal.is_marked,
                    "text": proposal.query.text,
                    "because": proposal.because,
                }
                for proposal in proposed
            ]
            typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        else:
            _show(proposed, out)


def _show(proposed: list[Proposal], out: Path | None) -> None:
    from rich.markup import escape
    from rich.table import Table

    from dialometer.cli.console import results

    chosen = [proposal for proposal in proposed if proposal.is_marked]
    n_marked = sum(proposal.query.coreference is not None for proposal in proposed)
    whose = "marked" if n_marked == len(proposed) else "proposed" if not n_marked else "marked or proposed"
    results.print(
        f"{len(chosen)} of {len(proposed)} questions ({100 * len(chosen) / len(proposed):.0f}%) are {whose} "
        "as needing the turns before them.",
        soft_wrap=True,
    )
    table = Table(
        "question", "the turn before ends", "it says", "because", box=None, pad_edge=False, header_style="dim"
    )
    for proposal in chosen:
        before = proposal.query.context[-1].text if proposal.query.context else ""
        ending = before if len(before) <= 60 else f"…{before[-59:]}"
        table.add_row(
            proposal.query.id,
            f"[dim]{escape(ending)}[/]",
            escape(proposal.query.text),
            f"[dim]{proposal.because or 'marked'}[/]",
        )
    results.print(table)
    if out is not None:
        results.print(
            f"\nAll questions are in [bold]{out}[/]: correct the column coreference, then give it as --marks",
            soft_wrap=True,
        )
