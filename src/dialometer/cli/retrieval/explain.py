"""dialometer retrieval explain: what each retriever would answer to a question, and what speaks for it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.options import AsJson, Cache, Device
from dialometer.cli.retrieval._shared import KbFile, Lenient, Retrievers

if TYPE_CHECKING:
    from dialometer.retrieval.knowledge_base import KnowledgeBase
    from dialometer.retrieval.queries import Query


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="explain", epilog='Example: dialometer retrieval explain kb.csv "Where do you live?" -r untrained -k 2'
    )
    def explain(
        kb_file: KbFile,
        question: Annotated[
            str, typer.Argument(help="A question; with --dialogues, the id of one of theirs.", show_default=False)
        ],
        retrievers: Retrievers = ["untrained"],  # noqa: B006 - typer copies it
        k: Annotated[int, typer.Option("-k", min=1, help="How many answers of each retriever.")] = 3,
        before: Annotated[
            list[str] | None, typer.Option("--before", help="What was said just before, oldest first; may be repeated.")
        ] = None,
        dialogues: Annotated[
            Path | None, typer.Option("--dialogues", help="Take the question from these dialogues, with its context.")
        ] = None,
        device: Device = "auto",
        cache: Cache = None,
        lenient: Lenient = False,
        as_json: AsJson = False,
    ) -> None:
        """Show each retriever's first answers to a question, with scores and reasons.

        Right answers are ticked where the dialogues mark them.
        """
        from dialometer.cli.console import working
        from dialometer.cli.retrieval._tables import show_explained
        from dialometer.retrieval.knowledge_base import read_knowledge_base
        from dialometer.retrieval.retriever import explained_answers
        from dialometer.retrieval.selection import fit_or_load, retriever_label, select_retrievers

        selected = select_retrievers(retrievers)
        kb = read_knowledge_base(kb_file)
        query, right = _query(kb, question, before or [], dialogues, lenient=lenient)
        with working(device, cache) as work:
            answers = {
                name: explained_answers(fit_or_load(retriever, kb, work), query, k)
                for name, retriever in selected.items()
            }
        if as_json:
            content = {
                "question": query.text,
                "before": [turn.text for turn in query.context],
                "right": sorted(right),
                "retrievers": {name: [asdict(answer) for answer in own] for name, own in answers.items()},
            }
            typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        else:
            labels = {name: retriever_label(name, retriever) for name, retriever in selected.items()}
            show_explained(query, answers, labels, right)


def _query(
    kb: KnowledgeBase, question: str, before: list[str], dialogues: Path | None, *, lenient: bool
) -> tuple[Query, set[str]]:
    """The question with its context, and the ids of its right answers where they are known."""
    from dialometer.errors import DialometerError
    from dialometer.model.dialogue import Turn
    from dialometer.registry import did_you_mean
    from dialometer.retrieval.queries import Query, read_queries

    if dialogues is None:
        roles = [("Agent", "agent"), ("User", "user")]
        turns = [Turn(roles[n % 2][0], text, roles[n % 2][1]) for n, text in enumerate(reversed(before))]  # type: ignore[arg-type]
        return Query(question, tuple(reversed(turns))), set()
    query_set = read_queries(dialogues, kb, unknown_gold="leave_out" if lenient else "error")
    names = [query.id for query in query_set.queries]
    if question not in names:
        raise DialometerError(
            f"no question has the id '{question}'", where=str(dialogues), remedy=did_you_mean(question, names)
        )
    row = names.index(question)
    return query_set.queries[row], {kb.answers[number].id for number in query_set.right[row]}
