"""dialometer retrieval label: the avatar maker's page for marking which recorded answers fit a question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.options import AsJson, Cache, Device, Speakers
from dialometer.cli.retrieval._shared import DialogueFile, KbFile, OneRetriever

if TYPE_CHECKING:
    from dialometer.retrieval.labels.labelling import MakerLabels


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="label", epilog="Example: dialometer retrieval label kb.csv dialogues.jsonl --out labelled.jsonl")
    def label(
        kb_file: KbFile,
        dialogues: DialogueFile,
        out: Annotated[
            Path, typer.Option("--out", metavar="FILE", help="Where the labelled dialogues go (JSON Lines).")
        ],
        retriever: OneRetriever = "mixed",
        begin_again: Annotated[
            bool, typer.Option("--begin-again", help="Label all questions again; labels in DIALOGUES are not shown.")
        ] = False,
        export: Annotated[bool, typer.Option("--export", help="Write the labels so far and open no page.")] = False,
        host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
        port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8101,
        device: Device = "auto",
        cache: Cache = None,
        as_json: AsJson = False,
        speakers: Speakers = None,  # noqa: ARG001 - holds while the verb runs
    ) -> None:
        """Open a page on which the avatar's maker marks which recorded answers fit each question.

        A retriever suggests answers, and a search covers all. Every mark is stored at once in FILE's .marks.jsonl; the same command
        continues where you stopped. 'retrieval evaluate', 'pool' and 'train' read what it writes.
        """
        from dialometer.cli.console import working
        from dialometer.cli.retrieval._shared import serve_page
        from dialometer.retrieval.knowledge_base import read_knowledge_base
        from dialometer.retrieval.labels.labelling import AnswerFinder, open_labels
        from dialometer.retrieval.selection import select_one
        from dialometer.web.rater.labelling import create_labelling_app

        kb = read_knowledge_base(kb_file)
        labels = open_labels(kb, dialogues, out, begin_again=begin_again)
        try:
            if not export:
                selected = select_one(retriever)
                with working(device, cache) as work:
                    finder = AnswerFinder(selected.fit(kb, work))
                app = create_labelling_app(labels, finder)
                serve_page(app, host, port, title="Label", end="Ctrl+C ends it; nothing is lost.")
        finally:
            labels.close()
            _print_result(labels, as_json=as_json)


def _print_result(labels: MakerLabels, *, as_json: bool) -> None:
    from dialometer.cli.console import results

    n_marked = sum(len(right) for right, is_done in zip(labels.right, labels.is_done, strict=True) if is_done)
    if as_json:
        content = {
            "file": str(labels.out),
            "n_questions": len(labels),
            "n_labelled": labels.n_done,
            "n_marked_answers": n_marked,
        }
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    results.print(
        f"{labels.n_done} of {len(labels)} questions labelled; answers marked: {n_marked}. Written to [bold]{labels.out}[/]",
        soft_wrap=True,
    )
