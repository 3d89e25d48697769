"""dialometer bots prepare: from files of dialogues to a corpus that models learn from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.options import AsJson, Seed

if TYPE_CHECKING:
    from collections.abc import Mapping


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="prepare", epilog="Example: dialometer bots prepare dialogues.jsonl.gz --out corpus")
    def prepare(
        files: Annotated[
            list[Path], typer.Argument(metavar="FILE…", help="Dialogues, in any form that is read.", show_default=False)
        ],
        out: Annotated[Path, typer.Option("--out", help="New folder for the prepared corpus.")],
        format: Annotated[str, typer.Option("--format", help="Form of the files, where it cannot be told.")] = "",
        profanity: Annotated[
            Path | None, typer.Option("--profanity", help="List of words and phrases; turns with one are left out.")
        ] = None,
        min_words: Annotated[int, typer.Option("--min-words", min=1, help="Shortest turn.")] = 1,
        max_words: Annotated[int, typer.Option("--max-words", min=1, help="Longest turn.")] = 40,
        near_duplicate: Annotated[
            float, typer.Option("--near-duplicate", help="Similarity from which a dialogue is a copy; 2 keeps all.")
        ] = 0.8,
        tokens: Annotated[int, typer.Option("--tokens", min=300, help="Size of the vocabulary.")] = 8000,
        topics: Annotated[int, typer.Option("--topics", min=0, help="Topics to find (for thred); 0 for none.")] = 50,
        validation: Annotated[float, typer.Option("--validation", help="Share of dialogues for validation.")] = 0.05,
        test: Annotated[float, typer.Option("--test", help="Share of dialogues for the test.")] = 0.05,
        lenient: Annotated[bool, typer.Option("--lenient", help="Leave out dialogues that have faults.")] = False,
        seed: Seed = 0,
        as_json: AsJson = False,
    ) -> None:
        """Filter, split by dialogue, number the tokens, find topics. The files are streamed, whatever their size."""
        from dialometer.cli.console import progress_bar
        from dialometer.generators.filters import Limits, read_word_list
        from dialometer.generators.preparing import Preparation, prepare_corpus

        options = Preparation(
            limits=Limits(min_words=min_words, max_words=max_words),
            unwanted=read_word_list(profanity) if profanity else frozenset(),
            near_duplicate=near_duplicate,
            n_tokens=tokens,
            n_topics=topics,
            validation_share=validation,
            test_share=test,
            seed=seed,
        )
        with progress_bar() as report:
            corpus = prepare_corpus(
                files,
                out,
                options,
                format=format or None,
                lenient=lenient,
                report=lambda what, n_done: report(what, n_done, 0),
            )
        show_corpus(corpus.about, as_json=as_json)


def show_corpus(about: Mapping[str, Any], *, as_json: bool) -> None:
    """What there is, per split, and what was left out."""
    from rich.table import Table

    from dialometer.cli.console import results
    from dialometer.generators.corpus import describe

    rows = describe(about)
    if as_json:
        typer.echo(json.dumps({"splits": rows, **{k: v for k, v in about.items() if k != "splits"}}, indent=2))
        return
    table = Table("", *rows, box=None, pad_edge=False, header_style="bold")
    for key, label in (
        ("dialogues", "Dialogues"),
        ("turns", "Utterances"),
        ("examples", "Examples (context, response)"),
        ("words_per_turn", "Avg. length of utterances, words"),
        ("tokens_per_turn", "Avg. length of utterances, tokens"),
    ):
        values = [rows[split][key] for split in rows]
        table.add_row(label, *(f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" for value in values))
    results.print(table)
    if about["removed"]:
        results.print("\nLeft out: " + ", ".join(f"{n:,} {reason}" for reason, n in about["removed"].items()) + ".")
    results.print(f"Vocabulary of {about['n_tokens']:,} tokens, fingerprint {about['fingerprint']}.")
