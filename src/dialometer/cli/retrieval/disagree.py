"""dialometer retrieval disagree: answers that the maker, the retrievers and the crowd see differently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialometer.cli.options import AsJson, Cache, Database, Device
from dialometer.cli.retrieval._shared import CrowdFile, DialogueFile, GoodFrom, KbFile, Lenient, Retrievers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialometer.retrieval.labels.disagreement import Disputed


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="disagree",
        epilog="Example: dialometer retrieval disagree kb.csv dialogues.jsonl -r encoder --crowd judged --out list.csv",
    )
    def disagree(
        kb_file: KbFile,
        dialogues: DialogueFile,
        retrievers: Retrievers = ["tfidf"],  # noqa: B006 - typer copies it
        crowd: CrowdFile = None,
        good_from: GoodFrom = None,
        n_shown: Annotated[int, typer.Option("--n", min=1, help="How many of each list are shown.")] = 10,
        out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write all of them as CSV.")] = None,
        device: Device = "auto",
        cache: Cache = None,
        lenient: Lenient = False,
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """List questions to which a retriever gives an answer that the maker did not mark, with the texts of both.

        With --crowd, also every answer that only the crowd or only the maker calls right.
        """
        from dataclasses import asdict

        from rich.markup import escape

        from dialometer.cli.console import results, working
        from dialometer.cli.retrieval._shared import read_both
        from dialometer.cli.retrieval._study import crowd_of
        from dialometer.errors import DialometerError
        from dialometer.retrieval.labels.disagreement import disputed_answers, write_disputed
        from dialometer.retrieval.selection import fit_or_load, retriever_label, select_retrievers

        selected = select_retrievers(retrievers)
        kb, query_set = read_both(kb_file, dialogues, lenient=lenient)
        if not any(query_set.right):
            remedy = "mark right answers in the dialogues first"
            raise DialometerError("the maker has marked no answer as right", where=str(dialogues), remedy=remedy)
        judged = crowd_of(crowd, kb, query_set, database, lenient=lenient) if crowd is not None else None
        with working(device, cache) as work:
            firsts = {
                retriever_label(name, retriever): fit_or_load(retriever, kb, work).rank(query_set.queries, 1)
                for name, retriever in selected.items()
            }
        right_from = good_from if good_from is not None else judged.good_from if judged else None
        disputed = disputed_answers(kb, query_set, firsts, judged.ratings if judged else None, right_from)
        if out is not None:
            write_disputed(out, disputed)
        if as_json:
            rows = [
                {**asdict(answer), "query": {"id": answer.query.id, "text": answer.query.text}} for answer in disputed
            ]
            typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
            return
        n_marked = sum(bool(right) for right in query_set.right)
        _show(disputed, list(firsts), n_marked, n_shown, has_crowd=judged is not None)
        if out is not None:
            results.print(f"\nAll {len(disputed)} are in [bold]{escape(str(out))}[/]", soft_wrap=True)


def _show(disputed: Sequence[Disputed], labels: Sequence[str], n_all: int, n_shown: int, *, has_crowd: bool) -> None:
    from dialometer.cli.console import results

    for label in labels:
        own = [answer for answer in disputed if label in answer.first_of and not answer.is_makers]
        own.sort(key=lambda answer: -(answer.mean_rating or 0))
        results.print(
            f"[bold]{label}[/]: to {len(own)} of {n_all} questions its first answer is not one that the maker marked.",
            soft_wrap=True,
        )
        _list(own[:n_shown], n_more=len(own) - n_shown)
    if not has_crowd:
        return
    for is_crowds, words in (
        (True, "right for the crowd, not marked by the maker"),
        (False, "marked by the maker, rejected by the crowd"),
    ):
        own = [answer for answer in disputed if answer.is_crowds is is_crowds and answer.is_makers is not is_crowds]
        own.sort(key=lambda answer: (answer.mean_rating or 0) * (-1 if is_crowds else 1))
        results.print(f"[bold]{len(own)} answers[/] are {words}.", soft_wrap=True)
        _list(own[:n_shown], n_more=len(own) - n_shown)


def _list(shown: Sequence[Disputed], n_more: int) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    for answer in shown:
        rating = (
            "" if answer.mean_rating is None else f" [dim](crowd {answer.mean_rating:.2f}, n {answer.n_ratings})[/]"
        )
        results.print(f"  [dim]{escape(answer.query.id)}[/] {escape(answer.query.text)}", soft_wrap=True)
        if not answer.is_makers:
            results.print(f"    maker: {escape(' | '.join(answer.maker_answers))}", soft_wrap=True)
        noun = "answer" if not answer.first_of else "first answer"
        results.print(f"    {noun}: {escape(answer.text)}{rating}", soft_wrap=True)
    if n_more > 0:
        results.print(f"  [dim]… and {n_more} more; --n and --out show them[/]")
    results.print()
