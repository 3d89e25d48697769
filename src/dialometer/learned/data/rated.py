"""Rated dialogues: what the learned evaluator is trained on, read and cleaned in one place.

Self-reported ratings come from files of dialogues (ConvAI2 exports, our own JSON Lines and CSV with ``rating`` in the
metadata), from a folder of such files, or from a study's judgments. Whatever they come from, they stand on the scale from
1 to 5 afterwards, and what was left out on the way is counted.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dialometer.errors import DialometerError, NotEnoughData, Problem, ReadError
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.values import is_missing, to_number
from dialometer.readers import read_dialogues
from dialometer.readers.participants import RATING, SYSTEM_KEYS, USER_KEYS, name_in

# What is no part of a conversation comes off before anything is learned from it: commands and error messages.


# '/start', '/test' and mistyped ones; a turn that begins like that but goes on ('/sorry, bye') is addressed to the machine too.
_COMMAND = re.compile(r"^\s*/\w+")
# What the machinery around a system says in its place: it names commands to type, or prints its own failure.
_MACHINE = re.compile(
    r"(?:\btype|\bpress|\bsend|\buse|\benter)\s+/\w+"
    r"|^text is not given\b"
    r"|^traceback \(most recent call last\)"
    r"|^(?:internal )?(?:server|runtime|system) error\b"
    r"|^(?:\w+(?:Error|Exception)|error)\s*:"
    r"|^(?:http )?5\d\d (?:internal server error|bad gateway|service unavailable|gateway timeout)",
    re.IGNORECASE,
)


def is_conversation(turn: Turn) -> bool:
    """Whether a turn was meant for the partner, not for or by the machinery in between."""
    if _COMMAND.match(turn.text):
        return False
    return not (turn.role == "agent" and _MACHINE.search(turn.text.strip()))


def clean_dialogue(dialogue: Dialogue) -> Dialogue:
    """The dialogue without commands and error messages; the same object where there are none."""
    turns = tuple(turn for turn in dialogue.turns if is_conversation(turn))
    return dialogue if len(turns) == len(dialogue.turns) else replace(dialogue, turns=turns)


def same_text(dialogue: Dialogue) -> tuple[tuple[str, str], ...]:
    """What two exact copies have in common: who said what, whatever the ids and names."""
    return tuple((turn.role, turn.text) for turn in dialogue.turns)


_BEGGING = re.compile(
    r"\b(?:give|rate|put|leave|set)\b.{0,30}\b(?:\d+|five|ten|maximum|max)\s*(?:stars?|points?|score)\b"
    r"|\brate\s+(?:me|us|this|our)\b",
    re.IGNORECASE,
)


def without_begging(dialogue: Dialogue) -> Dialogue:
    """The dialogue without the agent's requests for a good rating.

    They say nothing about the conversation, and an evaluator that had learned them could be bribed with them.
    """
    turns = tuple(turn for turn in dialogue.turns if not (turn.role == "agent" and _BEGGING.search(turn.text)))
    return dialogue if len(turns) == len(dialogue.turns) else replace(dialogue, turns=turns)


LOW, HIGH = 1.0, 5.0
"""The scale on which all ratings stand after reading; gaps between ratings are in its points."""
MIN_PER_SIDE = 2
MIN_RATED = 4
"""Below this nothing can be split, let alone learned."""
_N_TOLD = 50

_SUFFIXES = (".json", ".jsonl", ".csv", ".json.gz", ".jsonl.gz", ".csv.gz")


@dataclass(frozen=True, slots=True)
class RatedDialogue:
    """A dialogue with the rating its user (or a rater) gave it, from 1 to 5.

    ``source`` is the file or the study it comes from; ``user`` and ``bot`` are None where nobody wrote them down.
    """

    dialogue: Dialogue
    rating: float
    user: str | None
    source: str
    bot: str | None

    @property
    def id(self) -> str:
        """The dialogue's id."""
        return self.dialogue.id

    @property
    def n_utterances(self) -> int:
        """How many turns it has."""
        return len(self.dialogue.turns)


@dataclass(frozen=True, slots=True, repr=False)
class RatingSet:
    """Rated dialogues in the order of their files, and how many were left out for which reason."""

    rated: tuple[RatedDialogue, ...]
    n_left_out: Mapping[str, int]

    def __repr__(self) -> str:
        left_out = "".join(f", {n} left out ({why})" for why, n in self.n_left_out.items())
        return f"RatingSet({len(self.rated)} rated dialogues{left_out})"


def read_rated(
    path: Path | str, *, scale: tuple[float, float] = (LOW, HIGH), criterion: str = "", database: str = ""
) -> list[RatedDialogue]:
    """The rated dialogues of a file, of a folder of files, or of a study's folder, cleaned and checked."""
    return list(read_ratings(path, scale=scale, criterion=criterion, database=database).rated)


def read_ratings(
    path: Path | str, *, scale: tuple[float, float] = (LOW, HIGH), criterion: str = "", database: str = ""
) -> RatingSet:
    """As :func:`read_rated`, with the count of what was left out.

    ``scale`` gives the ends of the scale on which the files' ratings were given; ``criterion`` and ``database`` are for
    studies.
    """
    path = Path(path)
    if not path.exists():
        raise DialometerError("there is nothing here", where=str(path), remedy="check the name of the file or folder")
    if path.is_dir() and (path / STUDY_FILE).exists():
        from dialometer.learned.data.rated_study import study_ratings  # noqa: PLC0415 (databases only for studies)

        rated = study_ratings(path, criterion=criterion, database=database)
    else:
        rated = _of_files(_files(path), scale)
    ratings = clean(rated)
    check_rated(ratings.rated, where=str(path))
    return ratings


def clean(rated: Iterable[RatedDialogue], n_left_out: Mapping[str, int] | None = None) -> RatingSet:
    """Commands and error messages off; short dialogues and exact copies out.

    A dialogue needs two utterances on each side. Of dialogues with the same turns the first stays, unless they are
    several judgments of one item of a study.
    """
    left_out = Counter(n_left_out or {})
    kept: list[RatedDialogue] = []
    seen: set[object] = set()
    for row in rated:
        if math.isnan(row.rating):
            left_out["without a rating"] += 1
            continue
        dialogue = clean_dialogue(row.dialogue)
        if min(len(dialogue.said_by("user")), len(dialogue.said_by("agent"))) < MIN_PER_SIDE:
            left_out[f"fewer than {MIN_PER_SIDE} utterances on a side"] += 1
            continue
        judged_by = row.user if "item" in dialogue.metadata else None
        key = (same_text(dialogue), judged_by)
        if key in seen:
            left_out["exact copy of an earlier dialogue"] += 1
            continue
        seen.add(key)
        kept.append(replace(row, dialogue=dialogue))
    return RatingSet(tuple(kept), dict(left_out))


def check_rated(rated: Sequence[RatedDialogue], *, where: str = "", at_least: int = MIN_RATED) -> None:
    """Refuses what no evaluator can be trained on, before any training starts."""
    if len(rated) < at_least:
        raise NotEnoughData(
            f"{len(rated)} rated dialogues are left after cleaning, at least {at_least} are needed",
            where=where,
            remedy=f"give more rated dialogues with at least {MIN_PER_SIDE} utterances on each side",
        )
    outside = [row for row in rated if not LOW <= row.rating <= HIGH]
    if outside:
        raise DialometerError(
            f"{len(outside)} ratings lie outside the scale from {LOW:g} to {HIGH:g}, "
            f"the first is {outside[0].rating:g} of dialogue '{outside[0].id}'",
            where=where,
            remedy="fix them, or name the scale they were given on",
        )
    twice = [name for name, n in Counter(row.id for row in rated).items() if n > 1]
    if twice:
        raise DialometerError(
            f"the dialogue id '{twice[0]}' occurs more than once", where=where, remedy="give every dialogue its own id"
        )
    if len({row.rating for row in rated}) == 1:
        raise NotEnoughData(
            f"all {len(rated)} ratings are equal ({rated[0].rating:g}): nothing can be learned from them",
            where=where,
            remedy="give dialogues with different ratings",
        )


def shown_item(rated: RatedDialogue) -> tuple[object, ...]:
    """What several judgments have in common that were given on the same dialogue, an item of a study shown to many raters.

    Live conversations share their item too, but each is a dialogue of its own.
    """
    item = rated.dialogue.metadata.get("item")
    return (rated.source, rated.id) if item is None else (rated.source, item, same_text(rated.dialogue))


def to_five_points(value: float, scale: tuple[float, float]) -> float:
    """A rating on the scale from 1 to 5, in proportion to its place between the ends of its own scale."""
    low, high = scale
    return LOW + (HIGH - LOW) * (value - low) / (high - low)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    files = sorted(file for file in path.iterdir() if file.is_file() and file.name.endswith(_SUFFIXES))
    if not files:
        raise DialometerError(
            "the folder holds neither a study nor files of dialogues",
            where=str(path),
            remedy=f"expected study.yaml or files ending in {', '.join(_SUFFIXES)}",
        )
    return files


def _of_files(files: Sequence[Path], scale: tuple[float, float]) -> list[RatedDialogue]:
    if not scale[0] < scale[1]:
        raise DialometerError(f"the scale {scale[0]:g} to {scale[1]:g} has no room", remedy="give its low end first")
    rated: list[RatedDialogue] = []
    problems: list[Problem] = []
    for file in files:
        for dialogue in read_dialogues(file):
            row, complaint = _rated(dialogue, file.name, scale)
            if complaint is not None:
                problems.append(complaint)
            rated.append(row)
    if problems:
        raise ReadError(problems[:_N_TOLD], n_more=max(0, len(problems) - _N_TOLD))
    if all(math.isnan(row.rating) for row in rated):
        raise NotEnoughData(
            f"none of the {len(rated)} dialogues has a rating",
            where=", ".join(file.name for file in files[:3]),
            remedy="give the rating in the metadata under 'rating'",
        )
    if not any(row.dialogue.said_by("agent") for row in rated):
        raise NotEnoughData(
            "no dialogue has a turn of an agent",
            where=", ".join(file.name for file in files[:3]),
            remedy="give the speakers' roles, see the reference of dialogue files",
        )
    return rated


def _rated(dialogue: Dialogue, file: str, scale: tuple[float, float]) -> tuple[RatedDialogue, Problem | None]:
    complaint = None

    def complain(message: str, remedy: str, field: str) -> None:
        nonlocal complaint
        complaint = Problem(f"dialogue '{dialogue.id}' {message}", remedy, file, field=field)

    given = dialogue.metadata.get(RATING)
    rating = to_number(given)
    if rating is None and not is_missing(given):
        complain(f"has the rating {given!r}, which is not a number", "give a number", "rating")
    elif rating is not None and not scale[0] <= rating <= scale[1]:
        complain(
            f"is rated {rating:g}, outside the scale from {scale[0]:g} to {scale[1]:g}",
            "fix the rating, or name the scale it was given on",
            "rating",
        )
    on_scale = math.nan if rating is None else to_five_points(rating, scale)
    metadata = dialogue.metadata
    return RatedDialogue(
        dialogue, on_scale, name_in(metadata, USER_KEYS), file, name_in(metadata, SYSTEM_KEYS)
    ), complaint


# What an evaluator thinks of the ratings it was trained on, kept beside it.


RATINGS_FILE = "ratings.jsonl"


@dataclass(frozen=True)
class RatingVerdict:
    """What is thought of one training rating. ``value`` is None where no stage valued it; ``is_believed`` then too."""

    id: str
    rating: float
    smoothed: float | None
    value: float | None
    is_believed: bool | None


def write_verdicts(folder: Path, verdicts: Iterable[RatingVerdict]) -> None:
    """One line for each rating."""
    lines = [json.dumps(asdict(verdict), ensure_ascii=False) + "\n" for verdict in verdicts]
    (folder / RATINGS_FILE).write_text("".join(lines), encoding="utf-8")


def read_verdicts(folder: Path | str) -> list[RatingVerdict]:
    """What a trained evaluator thinks of the ratings it was trained on."""
    path = Path(folder) / RATINGS_FILE
    try:
        return [RatingVerdict(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, TypeError, RecursionError) as error:
        remedy = "name the folder that 'dialometer learn train' wrote"
        raise DialometerError(f"the verdicts cannot be read: {error}", where=str(path), remedy=remedy) from error
