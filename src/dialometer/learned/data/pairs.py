"""Pairs of dialogues of which one is better: from ratings that lie apart, or from experts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import NotEnoughData, Problem, ReadError
from dialometer.exchange.dialogue_pairs import study_pairs
from dialometer.learned.data.rated import RatedDialogue, shown_item
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import plain_column, table_rows

Numbers = NDArray[np.int64]
SUBSTITUTE_GAP = 3.0
"""Points between two ratings from which ratings are believed where there are no experts.

The paper's experts disagreed with 22 % of pairs three points apart, 38 % of two, 45 % of one (its Table 2).
"""
FEWEST_PAIRS = 5
MOST_PAIRS = 20_000
_FIRST_KEYS = ("first", "a")
_SECOND_KEYS = ("second", "b")
_BETTER_KEYS = ("better", "winner", "label")
_UNDECIDED = ("tie", "cannot_tell", "cannot tell", "equal", "both", "neither", "none", "")
_N_TOLD = 50


@dataclass(frozen=True, slots=True)
class DialoguePair:
    """Ids of two dialogues and which is the better one."""

    first: str
    second: str
    first_is_better: bool

    @property
    def better(self) -> str:
        """Id of the better dialogue."""
        return self.first if self.first_is_better else self.second

    @property
    def worse(self) -> str:
        """Id of the other one."""
        return self.second if self.first_is_better else self.first


@dataclass(frozen=True, slots=True)
class NumberedPairs:
    """Pairs as places in a list of rated dialogues: what the measures work on, for millions of pairs."""

    better: Numbers
    worse: Numbers

    def __len__(self) -> int:
        return len(self.better)


def numbered_gap_pairs(
    rated: Sequence[RatedDialogue],
    gap: float,
    max_length_difference: int | None = None,
    *,
    within_source: bool = False,
    max_pairs: int | None = None,
    rng: np.random.Generator | None = None,
) -> NumberedPairs:
    """All pairs whose ratings differ by at least ``gap``, the better first.

    ``max_length_difference`` keeps pairs of about the same number of utterances, so that length alone does not decide;
    ``within_source`` keeps pairs of one file. Two judgments of the same item are no pair. With ``max_pairs`` that many are
    drawn.
    """
    ratings = np.array([row.rating for row in rated], dtype=np.float64)
    lengths = np.array([row.n_utterances for row in rated], dtype=np.int64)
    _, sources = np.unique([row.source for row in rated], return_inverse=True)
    numbers: dict[object, int] = {}
    item = np.array([numbers.setdefault(shown_item(row), len(numbers)) for row in rated], dtype=np.int64)
    better, worse = [], []
    for number in range(len(rated)):
        is_paired = ratings[number] - ratings >= max(gap, 1e-9)
        is_paired &= item != item[number]
        if max_length_difference is not None:
            is_paired &= np.abs(lengths - lengths[number]) <= max_length_difference
        if within_source:
            is_paired &= sources == sources[number]
        places = np.flatnonzero(is_paired)
        worse.append(places)
        better.append(np.full(len(places), number))
    pairs = NumberedPairs(_joined(better), _joined(worse))
    if max_pairs is not None and len(pairs) > max_pairs:
        drawn = np.sort((rng or np.random.default_rng(0)).choice(len(pairs), max_pairs, replace=False))
        return NumberedPairs(pairs.better[drawn], pairs.worse[drawn])
    return pairs


def to_numbers(pairs: Sequence[DialoguePair], ids: Sequence[str]) -> NumberedPairs:
    """Pairs as places in a list of dialogue ids; an unknown id is an error."""
    place = {name: number for number, name in enumerate(ids)}
    unknown = [name for pair in pairs for name in (pair.first, pair.second) if name not in place]
    if unknown:
        raise ReadError([Problem(f"a pair names the unknown dialogue '{unknown[0]}'", "check the ids", "pairs")])
    return NumberedPairs(
        np.array([place[pair.better] for pair in pairs], dtype=np.int64),
        np.array([place[pair.worse] for pair in pairs], dtype=np.int64),
    )


@dataclass(frozen=True, slots=True)
class ExpertPairs:
    """Pairs judged by experts, and how many had no verdict (ties, "cannot tell", experts who were divided)."""

    pairs: tuple[DialoguePair, ...]
    n_undecided: int


def read_pairs(path: Path | str, known_ids: Sequence[str]) -> ExpertPairs:
    """Expert pairs from a study that compares dialogues, or a file: a table or JSON with ``first``, ``second``, ``better``.

    ``better`` is ``first``, ``second`` or the id of one; ties and "cannot tell" are counted and left out. Several verdicts on
    one pair are settled by majority. Pairs that name unknown dialogues, or one twice, are problems with their line.
    """
    path = Path(path)
    known = set(known_ids)
    problems: list[Problem] = []
    votes: dict[tuple[str, str], int] = {}
    for line, record in _study_records(path) if path.is_dir() else _records(path, problems):
        verdict = _verdict(record, known, line, path.name, problems)
        if verdict is not None:
            first, second, vote = verdict
            is_turned = (second, first) in votes
            key = (second, first) if is_turned else (first, second)
            votes[key] = votes.get(key, 0) + (-vote if is_turned else vote)
    if problems:
        raise ReadError(problems[:_N_TOLD], n_more=max(0, len(problems) - _N_TOLD))
    pairs = tuple(DialoguePair(first, second, vote > 0) for (first, second), vote in votes.items() if vote)
    if not pairs:
        raise NotEnoughData(
            f"{len(votes)} pairs, and none with a verdict" if votes else "there are no pairs",
            where=path.name,
            remedy="give one pair per line, with better: first or second",
        )
    return ExpertPairs(pairs, len(votes) - len(pairs))


def _study_records(folder: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for pair in study_pairs(folder):
        yield 0, {"first": pair.first, "second": pair.second, "better": pair.better}


def _records(path: Path, problems: list[Problem]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows of a file of pairs: a table in CSV or a spreadsheet, or JSON objects; columns in capitals or not."""
    source, found = SourceFile(path), Problems(path.name)
    try:
        source.probe()
    except ReadError as error:
        raise ReadError([replace(problem, file=path.name) for problem in error.problems]) from error
    for row in table_rows(source, found, ()):
        yield row.line, {plain_column(name): cell.strip() for name, cell in row.cells.items()}
    problems += found.errors


def _verdict(
    record: Mapping[str, Any], known: set[str], line: int, file: str, problems: list[Problem]
) -> tuple[str, str, int] | None:
    """The two dialogues and +1 where the first is better, -1 where the second is, 0 where nobody could tell."""
    first, second, better = (_field(record, keys) for keys in (_FIRST_KEYS, _SECOND_KEYS, _BETTER_KEYS))
    is_undecided = better.casefold() in _UNDECIDED and any(key in record for key in _BETTER_KEYS)
    fault = ""
    if not (first and second and (better or is_undecided)):
        fault = "a pair needs first, second and better"
    elif unknown := [name for name in (first, second) if name not in known]:
        fault = f"unknown dialogue{'s' if len(unknown) > 1 else ''} {', '.join(repr(name) for name in unknown)}"
    elif first == second:
        fault = f"the pair names '{first}' twice"
    elif not is_undecided and better not in ("first", "second", "a", "b", first, second):
        fault = f"'better' must be first, second, cannot_tell or the id of one of them, not {better!r}"
    if fault:
        remedy = "the ids are those of the rated dialogues that are left after cleaning"
        problems.append(Problem(fault, remedy, file, line))
        return None
    if is_undecided:
        return first, second, 0
    return first, second, 1 if better in ("first", "a", first) else -1


def deal_pairs(
    pairs: Sequence[DialoguePair], shares: Sequence[float], rng: np.random.Generator
) -> list[list[DialoguePair]]:
    """Pairs in parts of about these shares, all of them used; pairs that share a dialogue, directly or by others, stay in one
    part, so that no part has seen a dialogue of another.
    """
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for pair in pairs:
        leader[find(pair.first)] = find(pair.second)
    families: dict[str, list[DialoguePair]] = {}
    for pair in pairs:
        families.setdefault(find(pair.first), []).append(pair)
    parts: list[list[DialoguePair]] = [[] for _ in shares]
    names = list(families)
    order = sorted(rng.permutation(len(names)).tolist(), key=lambda place: -len(families[names[place]]))
    for place in order:
        emptiest = max(range(len(shares)), key=lambda k: shares[k] * len(pairs) - len(parts[k]))
        parts[emptiest].extend(families[names[place]])
    return parts


def _field(record: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((str(record[key]) for key in keys if record.get(key) not in (None, "")), "")


def _joined(parts: Sequence[Numbers]) -> Numbers:
    return np.concatenate(parts).astype(np.int64) if parts else np.empty(0, dtype=np.int64)
