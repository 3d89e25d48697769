"""dialometer retrieval pool: what retrievers found, as a study in which raters judge it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.options import AsJson, Cache, Device, Seed
from dialometer.cli.retrieval._shared import DialogueFile, KbFile, LearnFrom, Lenient, MarksFile, Retrievers, study_name

if TYPE_CHECKING:
    from dialometer.retrieval.retriever import Retriever


CHANCE = "random"
"""Judged only where it is named: its ten answers a question would cost a quarter more ratings and tell little."""


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(
        name="pool", epilog="Example: dialometer retrieval pool kb.csv dialogues.jsonl --out judged -r untrained"
    )
    def pool(
        kb_file: KbFile,
        dialogues: DialogueFile,
        out: Annotated[Path, typer.Option("--out", metavar="DIR", help="New folder for the study.")],
        retrievers: Retrievers = ["untrained"],  # noqa: B006 - typer copies it
        depth: Annotated[int, typer.Option("--depth", min=1, help="First answers of each retriever.")] = 10,
        raters: Annotated[int, typer.Option("--raters", min=1, help="Ratings of each candidate.")] = 3,
        rated: Annotated[
            Path | None,
            typer.Option(
                "--rated", help="Ratings made elsewhere (question, answer, rating): their answers are pooled too."
            ),
        ] = None,
        marks: MarksFile = None,
        learn_from: LearnFrom = None,
        seed: Seed = 0,
        device: Device = "auto",
        cache: Cache = None,
        lenient: Lenient = False,
        as_json: AsJson = False,
    ) -> None:
        """Write a study in which raters judge the union of the retrievers' first answers.

        Three turns of the dialogue, beginning with a question, then the candidate as the fourth; right answers are among
        them as quality checks; raters judge as many as they like. Random answers are included only if named.
        Then: dialometer check, serve, report, and dialometer retrieval evaluate --crowd. For ratings that were
        collected elsewhere, use --rated, and then dialometer import.
        """
        from dialometer.cli.console import working
        from dialometer.cli.retrieval._shared import read_both, read_learn_from
        from dialometer.cli.retrieval._study import crowd_of, write_study
        from dialometer.errors import DialometerError
        from dialometer.readers.recordings import copy_recordings
        from dialometer.retrieval.cross_validation import add_queries
        from dialometer.retrieval.pool import pool as pooled
        from dialometer.retrieval.selection import fit_or_load, retriever_about, retriever_label, select_retrievers

        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise DialometerError(f"'{out}' exists and is not an empty folder", remedy="choose another name")
        selected = {n: r for n, r in select_retrievers(retrievers).items() if n != CHANCE or CHANCE in retrievers}
        kb, query_set = read_both(kb_file, dialogues, lenient=lenient, marks=marks)
        ratings = crowd_of(rated, kb, query_set, lenient=lenient).ratings if rated is not None else None
        known = add_queries(kb, read_learn_from(learn_from, kb, query_set, lenient=lenient))
        rankings = {}
        with working(device, cache) as work:
            for name, retriever in selected.items():
                ranking = fit_or_load(retriever, known, work).rank(query_set.queries, depth)
                rankings[_system(name, retriever)] = ranking
        items = pooled(kb, query_set, rankings, depth=depth, seed=seed, rated=ratings)
        systems = {
            _system(name, retriever): (retriever_label(name, retriever), retriever_about(retriever))
            for name, retriever in selected.items()
        }
        files = write_study(
            out, items, systems, name=study_name(out.resolve().name, "avatar"), n_raters=raters, seed=seed
        )
        if kb.folder is not None:
            copy_recordings(kb.recordings, kb.folder, out)
        _print_result(out, items, len(query_set), files, raters, as_json=as_json, rated=rated)


def _system(name: str, retriever: Retriever | Path) -> str:
    return study_name(retriever.resolve().name if isinstance(retriever, Path) else name, "retriever")


def _print_result(
    folder: Path,
    items: list[dict[str, Any]],
    n_questions: int,
    files: list[Path],
    n_raters: int,
    *,
    as_json: bool,
    rated: Path | None,
) -> None:
    from dialometer.cli.console import results

    n_gold = sum(item["is_gold"] for item in items)
    if as_json:
        content = {
            "folder": str(folder),
            "n_questions": n_questions,
            "n_candidates": len(items),
            "n_gold": n_gold,
            "n_ratings_wanted": n_raters * len(items),
            "files": [str(path) for path in files],
        }
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    results.print(
        f"{len(items)} candidates for {n_questions} questions ({len(items) / n_questions:.1f} each), {n_gold} of them gold; "
        f"{n_raters * len(items)} ratings wanted.",
        soft_wrap=True,
    )
    steps = ("check", "simulate", "serve", "report") if rated is None else ("check", "import", "report")
    for command in steps:
        added = f" {rated} --rules" if command == "import" else ""
        results.print(f"  dialometer {command} {folder}{added}", soft_wrap=True)
