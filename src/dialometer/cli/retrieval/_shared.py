"""What the verbs of ``dialometer retrieval`` share: their arguments, the retrievers they name, and how the work is done."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from dialometer.neural.work import Work
    from dialometer.retrieval.avatar import Avatar
    from dialometer.retrieval.knowledge_base import KnowledgeBase
    from dialometer.retrieval.queries import QuerySet


KbFile = Annotated[
    Path,
    typer.Argument(metavar="KB", help="Knowledge base: CSV, JSON Lines or the Margarita corpus.", show_default=False),
]
DialogueFile = Annotated[
    Path, typer.Argument(metavar="DIALOGUES", help="Dialogues with questions as people asked them.", show_default=False)
]
Retrievers = Annotated[
    list[str],
    typer.Option(
        "--retriever",
        "-r",
        help="Name, folder of a trained one, or name:option=value,…; 'all', 'untrained', 'published'. "
        "May be given several times.",
    ),
]
LearnFrom = Annotated[
    Path | None,
    typer.Option("--learn-from", help="Further dialogues with marked answers that retrievers may learn from."),
]
Lenient = Annotated[
    bool, typer.Option("--leave-out-unknown", help="Ignore marked answers that are not in the knowledge base.")
]
CrowdFile = Annotated[
    Path | None,
    typer.Option("--crowd", help="Ratings: folder of a judged study, or a table question, answer, rating."),
]
GoodFrom = Annotated[
    float | None, typer.Option("--good-from", help="Mean rating from which the crowd calls an answer right.")
]
MarksFile = Annotated[
    Path | None,
    typer.Option(
        "--marks", help="Table question, coreference (yes or no): which questions need the turns before them."
    ),
]
Cost = Annotated[
    float,
    typer.Option("--cost-of-wrong", min=0, help="What a wrong answer costs; a right one gains 1, declining nothing."),
]
KbOrAvatar = Annotated[
    Path,
    typer.Argument(metavar="KB", help="Knowledge base, or the folder of a trained retriever.", show_default=False),
]
OneRetriever = Annotated[
    str, typer.Option("--retriever", "-r", help="Name, or name:option=value,…; a trained one needs none.")
]
CalibrateOn = Annotated[
    Path | None,
    typer.Option("--dialogues", help="Dialogues with marked answers; confidence is learned on them."),
]


def serve_page(app: ASGIApp, host: str, port: int, *, title: str, end: str = "Ctrl+C ends it.") -> None:
    """Serves a page of its own until Ctrl+C, and says where."""
    from dialometer.cli.console import results
    from dialometer.web.run import Listening, address_of, bind
    from dialometer.web.server.standalone import serve_standalone

    sock = bind(Listening(host, port))
    results.print(f"{title} at [bold]{address_of(sock, '')}[/]. {end}", soft_wrap=True)
    results.file.flush()
    with suppress(KeyboardInterrupt):  # which ends it as it should
        serve_standalone(app, sock)


def read_both(
    kb_file: Path, dialogues: Path, *, lenient: bool, marks: Path | None = None
) -> tuple[KnowledgeBase, QuerySet]:
    """A knowledge base and the questions asked of it, with marks of co-reference from a table where one is given."""
    from dialometer.cli.console import errors
    from dialometer.retrieval.knowledge_base import read_knowledge_base
    from dialometer.retrieval.queries import read_queries
    from dialometer.retrieval.questions.coreference import read_marks

    kb = read_knowledge_base(kb_file)
    query_set = read_queries(dialogues, kb, unknown_gold="leave_out" if lenient else "error")
    if query_set.left_out:
        errors.print(f"{len(query_set.left_out)} marked answers excluded: the knowledge base does not hold them")
    if query_set.n_unlabelled:
        errors.print(f"{query_set.n_unlabelled} questions excluded: they are not labelled yet")
    return kb, read_marks(marks, query_set) if marks is not None else query_set


def read_learn_from(path: Path | None, kb: KnowledgeBase, query_set: QuerySet, *, lenient: bool) -> QuerySet | None:
    """Dialogues that retrievers may learn from; never those that are then measured."""
    from dialometer.errors import DialometerError

    if path is None:
        return None
    lessons = read_lessons(path, kb, lenient=lenient)
    n_both = len({(q.id, q.text) for q in lessons.queries} & {(q.id, q.text) for q in query_set.queries})
    if n_both:
        remedy = "name other dialogues, or measure by cross-validation: --cross-validate 5"
        raise DialometerError(f"{n_both} questions would be both learned and measured", where=str(path), remedy=remedy)
    return lessons


def read_lessons(path: Path, kb: KnowledgeBase, *, lenient: bool) -> QuerySet:
    """Dialogues whose marked answers are learned from or calibrated on."""
    from dialometer.errors import DialometerError
    from dialometer.retrieval.queries import read_queries

    lessons = read_queries(path, kb, unknown_gold="leave_out" if lenient else "error")
    if not any(lessons.right):
        remedy = "mark right answers in them (see the reference of dialogues)"
        raise DialometerError("no answer is marked as right in these dialogues", where=str(path), remedy=remedy)
    return lessons


def study_name(text: str, otherwise: str) -> str:
    """A name as study files allow it: it begins with a letter and holds letters, digits, hyphens and underscores."""
    kept = "".join(char if char.isascii() and (char.isalnum() or char in "-_") else "-" for char in text).strip("-_")
    return (kept if kept[:1].isalpha() else f"{otherwise}-{kept}".strip("-"))[:64]


def avatar_of(
    kb_or_avatar: Path,
    retriever: str,
    dialogues: Path | None,
    threshold: float | None,
    work: Work,
    *,
    lenient: bool,
    cost_of_wrong: float = 1.0,
) -> Avatar:
    """An avatar from a folder, or fitted and calibrated now; calibrated anew where dialogues are named."""
    from dialometer.errors import DialometerError
    from dialometer.retrieval.avatar import Avatar, read_calibration
    from dialometer.retrieval.knowledge_base import read_knowledge_base
    from dialometer.retrieval.saving import is_saved, load_retriever
    from dialometer.retrieval.selection import select_one
    from dialometer.retrieval.training.train_retriever import calibrate_by_folds, calibrate_on

    if kb_or_avatar.is_dir():
        if not is_saved(kb_or_avatar):
            remedy = "name a knowledge base, or a folder that 'dialometer retrieval train --out' wrote"
            raise DialometerError("there is no trained retriever here", where=str(kb_or_avatar), remedy=remedy)
        fitted = load_retriever(kb_or_avatar, work)
        calibration = read_calibration(kb_or_avatar)
        avatar = None
    else:
        kb = read_knowledge_base(kb_or_avatar)
        avatar = select_one(retriever)
        fitted, calibration = avatar.fit(kb, work), None
    if dialogues is not None:
        query_set = read_lessons(dialogues, fitted.kb, lenient=lenient)
        calibration = calibrate_on(fitted, query_set, cost_of_wrong=cost_of_wrong)
    elif avatar is not None:
        calibration = calibrate_by_folds(fitted.kb, avatar, None, work, cost_of_wrong=cost_of_wrong)
    return Avatar(fitted, calibration, threshold=threshold)
