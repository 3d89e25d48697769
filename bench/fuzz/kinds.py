"""What reads each kind of file: the function that the hostile files are given to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.fuzz import trained_files as trained
from bench.fuzz import valid_files as valid
from bench.fuzz.chat_files import DIALOGUES, IMPORTS
from bench.fuzz.valid_files import Files
from dialometer.analysis.base.data import load_exported
from dialometer.analysis.families.conversations.experts import read_expert_pairs
from dialometer.cli.recruit._ledger import Ledger
from dialometer.design.load import load_study
from dialometer.design.lock import verify
from dialometer.design.templates import template_names
from dialometer.errors import DialometerError
from dialometer.exchange.exports.archive import is_archive, opened_archive
from dialometer.exchange.formats import ImportOptions
from dialometer.exchange.import_format import FORMATS
from dialometer.exchange.importing import import_files
from dialometer.exchange.own_systems.system_outputs import read_outputs
from dialometer.flow.study_check import check_all
from dialometer.generators.filters import read_word_list
from dialometer.generators.topic_files import read_topic_file
from dialometer.generators.topics import TopicModel
from dialometer.judges.model_client import ReplyCache
from dialometer.learned.data.pairs import read_pairs
from dialometer.learned.data.rated import read_ratings, read_verdicts
from dialometer.learned.evaluators import load_evaluator
from dialometer.learned.store_in_study import read_scores
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.readers import read_dialogues
from dialometer.readers.reader import READERS
from dialometer.recruit.platforms.invite import invite, read_invitations
from dialometer.recruit.rater_list import read_rater_list
from dialometer.retrieval.avatar import read_calibration
from dialometer.retrieval.knowledge_base import Answer, assemble, read_knowledge_base
from dialometer.retrieval.labels.crowd_ratings import read_crowd_ratings
from dialometer.retrieval.queries import read_queries
from dialometer.retrieval.saving import load_retriever

Read = Callable[[Path], object]
CHEAP = 300
"""Weight of what is read within about a millisecond; a study takes ten, an import six, what polars reads several hundred."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Files of one kind and what reads them. ``spoil`` are the files that are changed; the others stay valid."""

    name: str
    files: Callable[[], Files]
    read: Read
    spoil: tuple[str, ...] = ()
    weight: int = 1
    """How many inputs of a round are of this kind: quick readers get more."""


def format_of(name: str, known: Iterable[str]) -> str:
    """The format that a file of this name is in; what follows in the name says how it is written."""
    return max((format for format in known if name.startswith(format)), key=len)


def _dialogues(format: str, name: str) -> Kind:

    def read(folder: Path) -> object:
        path = next(path for path in folder.iterdir())
        for options in ({"format": format}, {"format": format, "lenient": True}, {}):
            try:
                return list(read_dialogues(path, **options))  # type: ignore[arg-type]
            except DialometerError:
                continue
        return None

    # What polars reads is read in a process of its own first, which takes a hundred times as long to start.
    weight = 1 if name.endswith(("_parquet", "_arrow", "_stream")) else CHEAP
    return Kind(f"dialogues {name}", lambda: DIALOGUES[name], read, weight=weight)


def _import(name: str) -> Kind:

    # Where the header is gone, a format is named, as a user would.
    format = format_of(name, FORMATS)

    def read(folder: Path) -> object:
        path = folder if format == "potato" else min(folder.iterdir(), key=lambda path: path.suffix != ".csv")
        try:
            return import_files(folder / "out", [path], folder / "x.db", at_ms=1, is_dry_run=True)
        except DialometerError:
            criteria = ["informativeness", "quality"] if format == "rankme" else ()
            options = ImportOptions(criteria=criteria)
            return import_files(
                folder / "out", [path], folder / "x.db", format=format, options=options, at_ms=1, is_dry_run=True
            )

    weight = 1 if name.endswith(("_parquet", "_arrow")) else 20
    return Kind(f"import {name}", lambda: IMPORTS[name], read, weight=weight)


def _exported(format: str) -> Kind:

    def files() -> Files:
        return {
            **valid.collected()[format],
            **{f"study/{k}": v for k, v in valid.template("likert").items()},
        }

    def read(folder: Path) -> object:
        # Into its study as a folder, into its study as one file, or as a study of its own: which, the size of the file says.
        judgments = folder / f"judgments.{format}"
        size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
        path = folder if size % 3 == 0 else judgments
        target = folder / ("new" if size % 3 == 2 else "study")
        return import_files(target, [path], folder / "x.db", format="dialometer", at_ms=1, is_dry_run=True)

    spoil = (f"judgments.{format}", f"answers.{format}", f"sessions.{format}", "export.json", "data_dictionary.json")
    return Kind(f"export {format}", files, read, spoil, weight=1 if format == "parquet" else 20)


def _report_data(folder: Path) -> object:
    return load_exported(load_study(folder / "study"), folder)


def _study(name: str) -> Kind:

    def read(folder: Path) -> object:
        study, _ = check_all(folder)
        return verify(study, folder) if study is not None else None

    return Kind(f"study {name}", lambda: valid.template(name), read, weight=10)


def _archive(folder: Path) -> object:

    is_archive(folder / "a.zip")
    with opened_archive(folder / "a.zip") as (place, _):
        return load_study(place / "study")


def _rated(folder: Path) -> object:

    return read_ratings(folder / "r.jsonl", scale=(1, 5))


def _pairs(folder: Path) -> object:

    return _each(folder, lambda path: read_pairs(path, [f"d{n}" for n in range(6)]))


def _each(folder: Path, read: Read) -> object:
    """Every file of a folder by itself, so that one refused file does not hide the others."""
    refused: list[DialometerError] = []
    for path in sorted(folder.iterdir()):
        try:
            read(path)
        except DialometerError as error:
            refused.append(error)
    return [str(error) for error in refused]


def _scores(folder: Path) -> object:

    return read_scores(folder / "s.csv")


def _experts(folder: Path) -> object:

    return read_expert_pairs(folder / "e.csv")


def _outputs(folder: Path) -> object:

    return _each(folder, lambda path: read_outputs([path]))


def _knowledge(folder: Path) -> object:

    return _each(folder, read_knowledge_base)


def _queries(folder: Path) -> object:

    return read_queries(folder / "d.jsonl", _base(), unknown_gold="keep" if folder.name.endswith("1") else "error")  # type: ignore[arg-type]


def _base() -> object:

    return assemble([Answer("a1", "I am Ann."), Answer("a2", "In Rome.")], [("Who?", 0)])


def _crowd(folder: Path) -> object:

    return read_crowd_ratings(folder / "c.csv", _base())  # type: ignore[arg-type]


def _retriever(folder: Path) -> object:

    read_calibration(folder)
    return load_retriever(folder)


def _lists(folder: Path) -> object:

    readers: tuple[Callable[[], object], ...] = (
        lambda: invite(folder / "people.csv", "https://example.org"),
        lambda: read_invitations(folder),
        lambda: read_rater_list(folder, "blocked.txt"),
        lambda: Ledger(folder, "prolific").payment("y"),
        lambda: read_word_list(folder / "words.txt"),
        lambda: read_topic_file(folder / "topics.txt"),
        lambda: read_topic_file(folder / "topics.csv"),
    )
    for reader in readers:
        try:
            reader()
        except DialometerError:
            continue
    return None


def _topics(folder: Path) -> object:

    with suppress(DialometerError):
        read_topic_file(folder / "given.npz")
    return TopicModel.load(folder / "topics.npz")


def _evaluator(folder: Path) -> object:

    with suppress(DialometerError):
        read_verdicts(folder)
    turns = (Turn("User", "hello ok", "user"), Turn("Agent", "hi 1 2?", "agent"))
    return load_evaluator(folder).score([Dialogue("d", turns)])


def _cmade(folder: Path) -> object:

    turns = (Turn("User", "hello ok", "user"), Turn("Agent", "hi 1 2?", "agent"))
    return load_evaluator(folder, "cpu").score([Dialogue("d", turns)])


def _ranker(folder: Path) -> object:
    from dialometer.neural.work import Work  # noqa: PLC0415
    from dialometer.retrieval.training.ranker import CrossEncoder  # noqa: PLC0415 - needs torch

    return CrossEncoder.load(folder, Work(device="cpu"))


def _bot(folder: Path) -> object:
    from dialometer.generators.bot import Bot  # noqa: PLC0415 - needs torch
    from dialometer.generators.decoding import Decoding  # noqa: PLC0415

    return Bot.load(folder).respond([["hello"]], Decoding(max_tokens=3), is_cut=True)


def _corpus(folder: Path) -> object:
    from dialometer.generators.corpus import describe, load_corpus  # noqa: PLC0415 - needs torch

    corpus = load_corpus(folder)
    split = corpus.split("train")
    describe(corpus.about)
    return split.examples, split.lengths, split.ids, split.frequencies(len(corpus.vocabulary))


def _replies(folder: Path) -> object:

    return ReplyCache(folder / "replies.jsonl").get("k1")


def kinds() -> Iterator[Kind]:
    """All kinds, in a fixed order."""
    for name in DIALOGUES:
        yield _dialogues(format_of(name, READERS), name)
    for name in IMPORTS:
        yield _import(name)
    yield from map(_exported, ("csv", "jsonl", "parquet"))
    tables = ("judgments.csv", "answers.csv", "sessions.csv", "findings.csv", "export.json")
    yield Kind("data of a report", _exported("csv").files, _report_data, tables, weight=10)
    for name in template_names():
        yield _study(name)
    yield Kind("archive", valid.archive, _archive, weight=20)
    yield Kind("rated dialogues", lambda: valid.RATED, _rated, weight=CHEAP)
    yield Kind("pairs", lambda: valid.PAIRS, _pairs, weight=CHEAP)
    yield Kind("scores", lambda: valid.SCORES, _scores, weight=CHEAP)
    yield Kind("experts", lambda: valid.EXPERTS, _experts, weight=CHEAP)
    yield Kind("system outputs", lambda: valid.OUTPUTS, _outputs, weight=CHEAP)
    yield Kind("knowledge base", lambda: valid.KNOWLEDGE, _knowledge, weight=CHEAP)
    yield Kind("queries", lambda: valid.DIALOGUES["jsonl"], _queries, weight=CHEAP)
    yield Kind("ratings of answers", lambda: valid.RATINGS_OF_ANSWERS, _crowd, weight=CHEAP)
    yield Kind("retriever", valid.saved_retriever, _retriever, weight=100)
    yield Kind("lists", lambda: valid.LISTS, _lists, weight=CHEAP)
    yield Kind("topics", valid.topics, _topics, weight=20)
    yield Kind("evaluator", valid.evaluator, _evaluator, weight=40)
    yield Kind("CMADE evaluator", trained.cmade, _cmade, weight=30)
    yield Kind("answer ranker", trained.ranker, _ranker, weight=20)
    yield Kind("bot", trained.bot, _bot, weight=30)
    yield Kind("corpus", trained.corpus, _corpus, weight=60)
    yield Kind("replies", lambda: valid.REPLIES, _replies, weight=100)
