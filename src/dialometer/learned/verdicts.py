"""What an evaluator thinks of the ratings it was trained on, kept beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from dialometer.errors import DialometerError

RATINGS_FILE = "ratings.jsonl"


@dataclass(frozen=True)
class Verdict:
    """What is thought of one training rating. ``value`` is None where no stage valued it; ``is_believed`` then too."""

    id: str
    rating: float
    smoothed: float | None
    value: float | None
    is_believed: bool | None


def write_verdicts(folder: Path, verdicts: Iterable[Verdict]) -> None:
    """One line for each rating."""
    lines = [json.dumps(asdict(verdict), ensure_ascii=False) + "\n" for verdict in verdicts]
    (folder / RATINGS_FILE).write_text("".join(lines), encoding="utf-8")


def read_verdicts(folder: Path | str) -> list[Verdict]:
    """What a trained evaluator thinks of the ratings it was trained on."""
    path = Path(folder) / RATINGS_FILE
    try:
        return [Verdict(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, TypeError) as error:
        remedy = "name the folder that 'dialometer learn train' wrote"
        raise DialometerError(f"the verdicts cannot be read: {error}", where=str(path), remedy=remedy) from error
