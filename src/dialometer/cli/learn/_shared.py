"""What the verbs of ``dialometer learn`` share: their arguments, and reading what they name."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.options import Database, Speakers

if TYPE_CHECKING:
    from dialometer.learned.cmade.neighbours import Features
    from dialometer.learned.data.pairs import DialoguePair
    from dialometer.learned.data.rated import RatedDialogue, RatingSet
    from dialometer.learned.gaussian.kernel import Aspect
    from dialometer.model.dialogue import Dialogue
    from dialometer.model.report import Report
    from dialometer.neural.work import Work


RatingsPath = Annotated[
    Path,
    typer.Argument(
        metavar="RATINGS",
        help="Rated dialogues: a file, a folder of files, or the folder of a study with judgments.",
        show_default=False,
    ),
]
PairsFile = Annotated[
    Path | None,
    typer.Option(
        "--pairs",
        help="Pairs judged by experts: the folder of a study by 'learn pairs', or a file (JSON Lines, CSV) with first, second "
        "and better.",
    ),
]
Criterion = Annotated[str, typer.Option("--criterion", help="Which criterion of a study; by default its first rating.")]
EvaluatorDir = Annotated[
    Path, typer.Option("--evaluator", "-e", help="Folder of the evaluator that 'learn train' wrote.")
]
Encoder = Annotated[
    str, typer.Option("--encoder", help="Name or folder of a Hugging Face model; by default the packaged MiniLM.")
]
Epochs = Annotated[str, typer.Option("--epochs", help="Passes over the data in stages 1, 2 and 3.")]
PoolingOption = Annotated[
    str,
    typer.Option(
        "--pooling", help="A dialogue's vector: mean of all tokens, or first: that of [CLS], as in the paper."
    ),
]
Precision = Annotated[str, typer.Option("--precision", help="auto, float32, bfloat16 or float16.")]


@dataclass(frozen=True)
class RatingOptions:
    """How ratings are read."""

    scale: Annotated[str, typer.Option("--scale", help="Ends of the scale that the files' ratings were given on.")] = (
        "1,5"
    )
    criterion: Criterion = ""
    database: Database = ""
    speakers: Speakers = None

    def read(self, path: Path) -> RatingSet:
        """The rated dialogues of a file, folder or study; says which were excluded."""
        from dialometer.analysis.base.wording import n_of
        from dialometer.cli.console import errors
        from dialometer.learned.data.rated import read_ratings

        low, high = numbers(self.scale, 2, "--scale", "1,5")
        ratings = read_ratings(path, scale=(low, high), criterion=self.criterion, database=self.database)
        if os.environ.get("RANK", "0") == "0":  # of several processes one is enough to tell
            for reason, n in ratings.n_left_out.items():
                errors.print(f"{n_of(n, 'dialogue')} excluded: {reason}", soft_wrap=True)
        return ratings


def read_experts(path: Path | None, rated: Sequence[RatedDialogue]) -> list[DialoguePair]:
    """Expert pairs of known dialogues, or none; says how many had no verdict."""
    from dialometer.cli.console import errors
    from dialometer.learned.data.pairs import read_pairs

    if path is None:
        return []
    experts = read_pairs(path, [dialogue.id for dialogue in rated])
    if experts.n_undecided:
        errors.print(f"{len(experts.pairs):,} expert pairs; {experts.n_undecided:,} without a verdict are excluded.")
    return list(experts.pairs)


def read_aspects(text: str) -> tuple[Aspect, ...]:
    """What an evaluator of the best recipe looks at, in the order in which they are always named."""
    from dialometer.errors import UnknownName
    from dialometer.learned.gaussian.kernel import ASPECTS
    from dialometer.registry import did_you_mean

    names = [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if name not in ASPECTS:
            raise UnknownName(f"there is no aspect '{name}'", remedy=did_you_mean(name, list(ASPECTS)))
    return tuple(aspect for aspect in ASPECTS if aspect in names) or ASPECTS


def numbers(text: str, n: int, option: str, example: str) -> list[float]:
    """So many numbers, separated by commas."""
    from dialometer.errors import DialometerError

    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != n:
        raise DialometerError(f"{option} needs {n} numbers, not '{text}'", remedy=f"write it as in {option} {example}")
    return values


def checked_options(kind: type[Any], **values: Any) -> Any:
    """Options of a training; what does not fit is named, without the validator's own words."""
    from pydantic import ValidationError

    from dialometer.errors import DialometerError

    try:
        return kind(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = "--" + str(first["loc"][0]).removeprefix("n_").replace("_", "-")
        raise DialometerError(f"{name}: {first['msg'].lower()}", remedy="see --help") from error


def read_each(path: Path) -> Iterator[Dialogue]:
    """The dialogues of a file as they are read. In some of them an agent must speak, since it is the agent that is evaluated."""
    from dialometer.errors import Problem, ReadError
    from dialometer.readers import read_dialogues

    if not path.exists():
        raise ReadError([Problem("there is no such file", "check its name", str(path))])
    n, has_agent = 0, False
    for dialogue in read_dialogues(path):
        has_agent = has_agent or bool(dialogue.said_by("agent"))
        n += 1
        yield dialogue
    if not n:
        raise ReadError([Problem("the file holds no dialogues", "give at least one", path.name)])
    if not has_agent:
        raise ReadError([Problem("no dialogue has a turn of an agent", "give the speakers' roles", path.name)])


def tell_mute(names: Sequence[str], what: str) -> None:
    """Which dialogues have no turn of an agent, and what follows for them."""
    from dialometer.analysis.base.wording import listed, n_of
    from dialometer.cli.console import errors

    if names:
        shown = listed((f"'{name}'" for name in names), most=5)
        text = f"{n_of(len(names), 'dialogue')} without a turn of an agent, {what}: {shown}."
        errors.print(text, markup=False, soft_wrap=True)


# What the verbs that look at ratings share: features, an engine for large data, and writing what was found.


FeaturesOf = Annotated[
    Path | None,
    typer.Option(
        "--evaluator",
        "-e",
        help="Features of this trained evaluator; by default behaviour and meaning as the best recipe sees them.",
    ),
]
OutFolder = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the page and tables go.")]


def features_of(rated: Sequence[RatedDialogue], evaluator: Path | None, work: Work) -> Features:
    """Standardised features of the dialogues: such as need no training, or those of a trained evaluator's encoder."""
    from dialometer.learned.cmade.neighbours import standardise

    dialogues = [rating.dialogue for rating in rated]
    if evaluator is None:
        from dialometer.learned.gaussian.features import describe
        from dialometer.learned.gaussian.kernel import quality_space

        return standardise(quality_space(describe(dialogues, work)))
    from dialometer.learned.evaluators import load_evaluator

    return standardise(load_evaluator(evaluator, work.device).features(dialogues, work))


def command_line() -> str:
    """The command as it was typed, so that it can be run again."""
    return shlex.join(["dialometer", *sys.argv[1:]])


def write_report(report: Report, folder: Path, *, as_json: bool) -> None:
    """The page, the tables and the drawings; then the answer, or everything as JSON."""
    from dialometer.report import render, report_to_json

    render(report, folder, formats=["html", "csv", "json", "figures"])
    if as_json:
        typer.echo(report_to_json(report), nl=False)
        return
    _print_result(report, folder)


def _print_result(report: Report, folder: Path) -> None:
    from rich.markup import escape
    from rich.table import Table as Printed

    from dialometer.cli.console import results
    from dialometer.report.written import write_table

    results.print(f"[bold]{escape(report.summary.answer)}[/]\n{escape(report.summary.certainty)}", soft_wrap=True)
    for warning in report.summary.warnings:
        results.print(f"[yellow]•[/] {escape(warning)}", soft_wrap=True)
    for table in report.tables():
        written: Any = write_table(table)
        printed = Printed(
            *(head.label for head in written.headings),
            box=None,
            pad_edge=False,
            header_style="bold",
            title=escape(table.title),
            title_justify="left",
        )
        for row in written.rows:
            printed.add_row(*(escape(f"{word.value} {word.interval}".strip()) for word in row))
        results.print()
        results.print(printed)
    results.print(f"\nOpen [bold]{escape(str(folder / 'index.html'))}[/]", soft_wrap=True)


def media_left_out(rows: Iterable[RatedDialogue]) -> tuple[int, str]:
    """How many images, sounds and videos dialogues have, and a sentence that a study of them lacks these; empty for none."""
    n = sum(len(turn.media) for row in rows for turn in row.dialogue.turns)
    subject = "1 image, sound or video is" if n == 1 else f"{n:,} images, sounds and videos are"
    return n, f"{subject} not in the study: raters see the texts only." if n else ""


def with_interval(value: float, interval: Sequence[float | None]) -> str:
    """A share in percent with its 95% interval, or that there is none."""
    low, high = interval
    if low is None or high is None:
        return f"{value:.1%} (no interval: too few users or blocks of neighbours)"
    return f"{value:.1%} (95% interval {100 * low:.0f} to {100 * high:.0f})"
