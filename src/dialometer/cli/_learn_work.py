"""What the verbs of ``dialometer learn`` share: their arguments, and reading what they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialometer.learned.best_kernel import Aspect
    from dialometer.learned.pairs import Pair
    from dialometer.learned.rated import Rated, Ratings
    from dialometer.model.dialogue import Dialogue

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
    typer.Option("--pairs", help="Pairs judged by experts: JSON Lines or CSV with first, second and better."),
]
ScaleEnds = Annotated[str, typer.Option("--scale", help="Ends of the scale that the files' ratings were given on.")]
Criterion = Annotated[str, typer.Option("--criterion", help="Which criterion of a study; by default its first rating.")]
EvaluatorDir = Annotated[
    Path, typer.Option("--evaluator", "-e", help="Folder of the evaluator that 'learn train' wrote.")
]
Encoder = Annotated[
    str, typer.Option("--encoder", help="Name or folder of a Hugging Face model; by default the packaged MiniLM.")
]
Epochs = Annotated[str, typer.Option("--epochs", help="Passes over the data in stages 1, 2 and 3.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
Precision = Annotated[str, typer.Option("--precision", help="auto, float32, bfloat16 or float16.")]


def read(path: Path, scale: str, criterion: str, database: str) -> Ratings:
    """The rated dialogues of a file, folder or study."""
    from dialometer.learned.rated import read_ratings

    low, high = numbers(scale, 2, "--scale", "1,5")
    return read_ratings(path, scale=(low, high), criterion=criterion, database=database)


def read_experts(path: Path | None, rated: Sequence[Rated]) -> list[Pair]:
    """Expert pairs of known dialogues, or none."""
    from dialometer.learned.pairs import read_pairs

    return read_pairs(path, [one.id for one in rated]) if path is not None else []


def read_aspects(text: str) -> tuple[Aspect, ...]:
    """What an evaluator of the best recipe looks at, in the order in which they are always named."""
    from dialometer.errors import UnknownName
    from dialometer.learned.best_kernel import ASPECTS
    from dialometer.registry import did_you_mean

    named = [part.strip() for part in text.split(",") if part.strip()]
    for name in named:
        if name not in ASPECTS:
            raise UnknownName(f"there is no aspect '{name}'", remedy=did_you_mean(name, list(ASPECTS)))
    return tuple(aspect for aspect in ASPECTS if aspect in named) or ASPECTS


def numbers(text: str, n: int, option: str, example: str) -> list[float]:
    """So many numbers, separated by commas."""
    from dialometer.errors import DialometerError

    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if len(found) != n:
        raise DialometerError(f"{option} needs {n} numbers, not '{text}'", remedy=f"write it as in {option} {example}")
    return found


def checked_options(kind: type[Any], **values: Any) -> Any:
    """Options of a training; what does not fit is told by its name, without the validator's own words."""
    from pydantic import ValidationError

    from dialometer.errors import DialometerError

    try:
        return kind(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = "--" + str(first["loc"][0]).removeprefix("n_").replace("_", "-")
        raise DialometerError(f"{name}: {first['msg'].lower()}", remedy="see --help") from error


def read_whole(path: Path) -> list[Dialogue]:
    """All dialogues of a file; each must have a turn of an agent, since it is the agent that is evaluated."""
    from dialometer.errors import Problem, ReadError
    from dialometer.readers import read_dialogues

    if not path.is_file():
        raise ReadError([Problem("there is no such file", "check its name", str(path))])
    dialogues = list(read_dialogues(path))
    mute = [one.id for one in dialogues if not one.said_by("agent")]
    if mute:
        message = f"{len(mute)} dialogues have no turns of an agent, the first is '{mute[0]}'"
        raise ReadError([Problem(message, "give the speakers' roles, or leave them out", path.name)])
    if not dialogues:
        raise ReadError([Problem("the file holds no dialogues", "give at least one", path.name)])
    return dialogues
