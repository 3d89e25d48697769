"""dialometer bots prepare: from files of dialogues to a corpus that models learn from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.options import AsJson, Seed, Speakers

if TYPE_CHECKING:
    from collections.abc import Mapping


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="prepare", epilog="Example: dialometer bots prepare dialogues.jsonl.gz --out corpus")
    def prepare(
        files: Annotated[
            list[Path],
            typer.Argument(metavar="FILE", help="Dialogues, in any format that is read.", show_default=False),
        ],
        out: Annotated[Path, typer.Option("--out", help="New folder for the prepared corpus.")],
        format: Annotated[str, typer.Option("--format", help="Format of the files, where it is not recognised.")] = "",
        profanity: Annotated[
            Path | None, typer.Option("--profanity", help="List of words and phrases; turns with one are excluded.")
        ] = None,
        min_words: Annotated[int, typer.Option("--min-words", min=1, help="Shortest turn.")] = 1,
        max_words: Annotated[int, typer.Option("--max-words", min=1, help="Longest turn.")] = 40,
        near_duplicate: Annotated[
            float,
            typer.Option("--near-duplicate", help="Lowest similarity of copies, which are excluded; 2 keeps all."),
        ] = 0.8,
        tokens: Annotated[int, typer.Option("--tokens", min=300, help="Size of the vocabulary.")] = 8000,
        topics: Annotated[
            int | None,
            typer.Option(
                "--topics", min=0, help="Topics to find (for thred); 0 for none. [default: 50]", show_default=False
            ),
        ] = None,
        topic_model: Annotated[
            Path | None,
            typer.Option("--topic-model", help="Topics that were found elsewhere: lists of words, a table or arrays."),
        ] = None,
        validation: Annotated[float, typer.Option("--validation", help="Share of dialogues for validation.")] = 0.05,
        test: Annotated[float, typer.Option("--test", help="Share of dialogues for the test.")] = 0.05,
        keep_splits: Annotated[
            bool,
            typer.Option(
                "--keep-splits", help="Keep the published splits: files named train, valid, test, or a field 'split'."
            ),
        ] = False,
        exclude_leaks: Annotated[
            bool,
            typer.Option(
                "--exclude-leaks", help="With --keep-splits: exclude training dialogues that are also in the others."
            ),
        ] = False,
        lenient: Annotated[bool, typer.Option("--lenient", help="Exclude dialogues that have faults.")] = False,
        seed: Seed = 0,
        as_json: AsJson = False,
        speakers: Speakers = None,  # noqa: ARG001 - holds while the verb runs
    ) -> None:
        """Filter, split by dialogue, number the tokens, find topics. The files are streamed, whatever their size."""
        from dialometer.cli.console import progress_bar
        from dialometer.errors import DialometerError
        from dialometer.generators.filters import Limits, read_word_list
        from dialometer.generators.preparing import Preparation, prepare_corpus

        if topic_model is not None and topics is not None:
            raise DialometerError("topics are either found or given", remedy="leave out --topics or --topic-model")
        options = Preparation(
            limits=Limits(min_words=min_words, max_words=max_words),
            unwanted=read_word_list(profanity) if profanity else frozenset(),
            near_duplicate=near_duplicate,
            n_tokens=tokens,
            n_topics=50 if topics is None else topics,
            topic_file=topic_model,
            keeps_splits=keep_splits,
            excludes_leaks=exclude_leaks,
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
    """What there is, per split, and what was excluded."""
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
        results.print("\nExcluded: " + ", ".join(f"{n:,} {reason}" for reason, n in about["removed"].items()) + ".")
    for sentence in _about_splits(about) + _about_topics(about):
        results.print(sentence, soft_wrap=True)
    results.print(f"Vocabulary of {about['n_tokens']:,} tokens, fingerprint {about['fingerprint']}.")


def _about_splits(about: Mapping[str, Any]) -> list[str]:
    """Where the splits come from, and how many dialogues are in two of them."""
    published = about.get("published_splits")
    if published is None:
        n_ignored = about.get("n_published_splits_not_kept", 0)
        split_words = (
            f"{n_ignored:,} dialogues have a published split, which was not kept. Keep it with [bold]--keep-splits[/]."
        )
        return [split_words] if n_ignored else []
    said_by = [
        f"{split} from {' and '.join(f'{name} ({n:,})' for name, n in names.items())}"
        for split, names in published["told_by"].items()
    ]
    sentences = [f"Splits as published: {'; '.join(said_by)}."]
    if published["n_validation_drawn"]:
        n_drawn = published["n_validation_drawn"]
        sentences.append(f"No validation part was published: {n_drawn:,} dialogues were drawn from the training.")
    shared = []
    for row in published["leakage"]:
        share = f" ({row['n_near'] / row['n']:.1%}; {row['n_same']:,} with the same words)" if row["n_near"] else ""
        shared.append(f"{row['n_near']:,} of {row['n']:,} {row['part']} dialogues are in {row['also_in']}{share}")
    sentences.append(f"Leakage, copies and near copies: {', '.join(shared)}.")
    is_leaking = any(row["n_near"] and row["also_in"] == "train" for row in published["leakage"])
    if is_leaking and not about["options"]["excludes_leaks"]:
        sentences.append("Their training copies were kept. Exclude them with [bold]--exclude-leaks[/].")
    return sentences


def _about_topics(about: Mapping[str, Any]) -> list[str]:
    """What of a given topic model the vocabulary knows."""
    topics = about.get("given_topics")
    if not topics:
        return []
    sentence = f"{topics['n_topics']:,} topics from {topics['file']}: {topics['n_words_known']:,} of their "
    sentence += f"{topics['n_words']:,} words are in the vocabulary."
    if topics["n_topics_without_known_words"]:
        sentence += f" {topics['n_topics_without_known_words']:,} topics have no known word and are not used."
    return [sentence]
