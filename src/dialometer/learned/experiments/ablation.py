"""The paper's table on one's own data: every row on the same splits, with its controls, measured on the same test pairs.

The primary figure is the accuracy on held-out pairs whose ratings lie three points or more apart and whose lengths differ by
two utterances at most; expert pairs of test dialogues, where there are any, come first instead. Standard errors are over
splits (over seeds where there is one split). Nothing is chosen by test pairs.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError
from dialometer.learned.cmade.fit import FitOptions
from dialometer.learned.cmade.materials import from_split
from dialometer.learned.cmade.stages import StageRun
from dialometer.learned.data.measures import (
    accuracy,
    accuracy_estimate,
    kappa_with_error,
    pair_kappa,
    paired_difference,
)
from dialometer.learned.data.pairs import DialoguePair, NumberedPairs, numbered_gap_pairs, to_numbers
from dialometer.learned.data.rated import RatedDialogue
from dialometer.learned.data.splits import DataSplit, groups_of, rows_of
from dialometer.learned.experiments.plain_rows import AblationRow, PlainRow
from dialometer.learned.experiments.trained_rows import TRAINED, RowScores, TrainedRows
from dialometer.model.estimate import Estimate
from dialometer.neural.device import choose_device
from dialometer.neural.engines import LOCAL, Engine
from dialometer.neural.work import Report, silent
from dialometer.report.numbers import write_number, write_percent, write_signed

Floats = NDArray[np.float64]
_Shared = tuple[Sequence[RatedDialogue], FitOptions, Sequence[DialoguePair], str]
MEASURES = {
    "experts": "expert pairs",
    "matched": "gap 3+, matched length",
    "wide": "gap 3+",
    "within": "gap 3+, matched, one file",
    "any": "gap 1+",
}
MAX_LENGTH_DIFFERENCE = 2
COMPARED_WITH = ("pairwise", "tfidf-ridge", "1-2-nothing", "1-2-random")


@dataclass(frozen=True)
class AblationLine:
    """One row of the finished table."""

    row: AblationRow
    primary: Estimate
    """Accuracy on the primary pairs, with its bootstrap interval over users or blocks of neighbours."""
    accuracies: Mapping[str, float]
    standard_errors: Mapping[str, float]
    kappa: float
    kappa_error: float
    dropped: float | None
    differences: Mapping[str, Estimate]
    """Paired over splits, to the rows named in ``COMPARED_WITH``."""
    n_runs: int


def pairs_to_test(rated: Sequence[RatedDialogue], experts: Sequence[DialoguePair] = ()) -> dict[str, NumberedPairs]:
    """Pairs of test dialogues by measure; the first one is the primary."""
    ids = {row.id for row in rated}
    inside = [pair for pair in experts if pair.first in ids and pair.second in ids]
    pairs = {"experts": to_numbers(inside, [row.id for row in rated])} if inside else {}
    return pairs | {
        "matched": numbered_gap_pairs(rated, 3, MAX_LENGTH_DIFFERENCE),
        "wide": numbered_gap_pairs(rated, 3),
        "within": numbered_gap_pairs(rated, 3, MAX_LENGTH_DIFFERENCE, within_source=True),
        "any": numbered_gap_pairs(rated, 1),
    }


def run_ablation(
    rated: Sequence[RatedDialogue],
    splits: Sequence[DataSplit],
    options: FitOptions,
    *,
    rows: Sequence[AblationRow] = TRAINED,
    plain: Sequence[PlainRow] = (),
    experts: Sequence[DialoguePair] = (),
    n_seeds: int = 1,
    results: Path,
    device: str = "auto",
    engine: Engine = LOCAL,
    report: Report = silent,
) -> list[AblationLine]:
    """Runs what is not in ``results`` yet, then makes the table of all that is.

    An interrupted run loses one row at most; on several machines, which train one split each, the rows of a split.
    """
    book = _Book(results, _fingerprint(rated, splits, options))
    n_total, n_done = len(splits) * n_seeds * len(rows) + len(splits) * len(plain), 0
    for split in splits:
        name, test = split.name, rows_of(rated, split.test)
        for entry in plain:
            report(f"Split {name}: {entry.row.label}", n_done, n_total)
            n_done += 1
            if not book.has(name, 0, entry.row):
                book.write(name, 0, entry.row, RowScores(entry.score(rows_of(rated, split.train), test)))
    parts = [
        Training(split, seed, wanted)
        for split in splits
        for seed in range(n_seeds)
        if (wanted := [row for row in rows if not book.has(split.name, seed, row)])
    ]
    n_done = n_total - sum(len(part.rows) for part in parts)
    shared = (rated, options, experts, device)
    if engine is LOCAL:
        for part in parts:
            for row, scores in _trained(shared, part):
                book.write(part.split.name, part.seed, row, scores)
                n_done += 1
                report(f"Split {part.split.name}: {row.label}", n_done, n_total)
    else:
        for part, rows_of_part in zip(parts, engine.run(_train_part, shared, parts), strict=True):
            for row, scores in rows_of_part:
                book.write(part.split.name, part.seed, row, scores)
            n_done += len(part.rows)
            report(f"Split {part.split.name}", n_done, n_total)
    report("Ablation", n_total, n_total)
    every = [*(entry.row for entry in plain), *rows]
    return table_of(rated, splits, book.scores, book.dropped, every, experts)


@dataclass(frozen=True)
class Training:
    """What is trained together: rows of one split and seed, which share their stages."""

    split: DataSplit
    seed: int
    rows: Sequence[AblationRow]


def _trained(shared: _Shared, part: Training) -> Iterator[tuple[AblationRow, RowScores]]:
    """The rows of a part, each as soon as it is trained."""
    rated, options, experts, device = shared
    data = from_split(rated, part.split, experts)
    seed = options.stages.training.seed + part.seed
    trained = TrainedRows(data, options, StageRun(), choose_device(device), seed)
    test = [entry.dialogue for entry in rows_of(rated, part.split.test)]
    for row in part.rows:
        yield row, trained.score(row, test)


def _train_part(shared: _Shared, part: Training) -> list[tuple[AblationRow, RowScores]]:
    return list(_trained(shared, part))


def table_of(
    rated: Sequence[RatedDialogue],
    splits: Sequence[DataSplit],
    scores: Mapping[tuple[str, int, str], Floats],
    dropped: Mapping[tuple[str, int, str], float],
    rows: Sequence[AblationRow],
    experts: Sequence[DialoguePair] = (),
) -> list[AblationLine]:
    """The table of scores by (split, seed, row)."""
    tests = {split.name: rows_of(rated, split.test) for split in splits}
    pairs = {name: pairs_to_test(test, experts) for name, test in tests.items()}
    measures = [m for m in MEASURES if all(m in by_measure for by_measure in pairs.values())]
    means: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        means[row.name] = {"kappa": _by_split(row, splits, scores, partial(_kappa, pairs, measures[0]))}
        means[row.name] |= {m: _by_split(row, splits, scores, partial(_accuracy, pairs, m)) for m in measures}
    overlap = float(np.mean([len(split.test) / max(1, len(split.train)) for split in splits]))
    group_of = dict(zip((one.id for one in rated), groups_of(rated), strict=True))
    lines = []
    for row in rows:
        runs = [key for key in scores if key[2] == row.name and key[0] in tests]
        primary = accuracy_estimate(
            [scores[key] for key in runs],
            [pairs[key[0]][measures[0]] for key in runs],
            groups=[group_of[one.id] for key in runs for one in tests[key[0]]],
            label=row.label,
        )
        own, shares = means[row.name], [dropped[key] for key in runs if key in dropped]
        lines.append(
            AblationLine(
                row,
                primary,
                {m: _mean(own[m]) for m in measures},
                {m: _error(own[m]) for m in measures},
                _mean(own["kappa"]),
                _kappa_error(own["kappa"], runs, scores, pairs, measures[0]),
                float(np.mean(shares)) if shares else None,
                {
                    other: paired_difference(own[measures[0]], means[other][measures[0]], overlap=overlap)
                    for other in COMPARED_WITH
                    if other in means and other != row.name and len(own[measures[0]]) == len(means[other][measures[0]])
                },
                len(runs),
            )
        )
    return lines


def _accuracy(pairs: Mapping[str, Mapping[str, NumberedPairs]], measure: str, scores: Floats, split: str) -> float:
    return accuracy(scores, pairs[split][measure])


def _kappa(pairs: Mapping[str, Mapping[str, NumberedPairs]], measure: str, scores: Floats, split: str) -> float:
    return pair_kappa(scores, pairs[split][measure])


def _kappa_error(
    kappas: Sequence[float],
    runs: Sequence[tuple[str, int, str]],
    scores: Mapping[tuple[str, int, str], Floats],
    pairs: Mapping[str, Mapping[str, NumberedPairs]],
    measure: str,
) -> float:
    """Over splits or seeds; of a single run, over its pairs."""
    if len(runs) == 1:
        return kappa_with_error(scores[runs[0]], pairs[runs[0][0]][measure])[1]
    return _error(kappas)


def _by_split(
    row: AblationRow,
    splits: Sequence[DataSplit],
    scores: Mapping[tuple[str, int, str], Floats],
    measure: Callable[[Floats, str], float],
) -> list[float]:
    """One number per split, the mean over its seeds; per seed where there is one split only."""
    by_split: dict[str, list[float]] = defaultdict(list)
    for (name, _, row_name), values_of_run in sorted(scores.items(), key=lambda item: item[0]):
        if row_name == row.name and name in {split.name for split in splits}:
            by_split[name].append(measure(values_of_run, name))
    if len(by_split) == 1:
        return next(iter(by_split.values()))
    return [float(np.mean(values)) for values in by_split.values()]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _fingerprint(rated: Sequence[RatedDialogue], splits: Sequence[DataSplit], options: FitOptions) -> str:
    content = [[(row.id, row.rating) for row in rated], [(split.name, split.train, split.test) for split in splits]]
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
    return f"{digest} {options.model_dump_json()}"


class _Book:
    """Scores on disk, one line for each split, seed and row, after a line that says of which data and options."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path = path
        self.scores: dict[tuple[str, int, str], Floats] = {}
        self.dropped: dict[tuple[str, int, str], float] = {}
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"fingerprint": fingerprint}) + "\n", encoding="utf-8")
            return
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        if json.loads(lines[0]) != {"fingerprint": fingerprint}:
            raise DialometerError(
                "these results belong to other data, splits or options",
                where=str(path),
                remedy="name another folder, or delete the file",
            )
        if not lines[-1].endswith("\n"):  # written half when the program was ended
            path.write_text("".join(lines[:-1]), encoding="utf-8")
            lines = lines[:-1]
        for line in lines[1:]:
            self._take(json.loads(line))

    def has(self, split: str, seed: int, row: AblationRow) -> bool:
        return (split, seed, row.name) in self.scores

    def write(self, split: str, seed: int, row: AblationRow, scored: RowScores) -> None:
        record = {"split": split, "seed": seed, "row": row.name, "dropped": scored.dropped}
        record["scores"] = [float(f"{score:.7g}") for score in scored.scores]
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        self._take(record)

    def _take(self, record: Mapping[str, object]) -> None:
        key = (str(record["split"]), int(str(record["seed"])), str(record["row"]))
        self.scores[key] = np.array(record["scores"], dtype=np.float64)
        if record["dropped"] is not None:
            self.dropped[key] = float(str(record["dropped"]))


# The finished ablation for people (Markdown, terminal) and programs (JSON).


def head(lines: Sequence[AblationLine]) -> list[str]:
    """The names of the columns."""
    measures = [MEASURES[name] for name in lines[0].accuracies] if lines else []
    return ["row", *measures, "95% interval", "kappa", "dropped", "− pairwise", "published"]


def cells(line: AblationLine) -> list[str]:
    """One line of the table as texts; what is not known stays empty."""
    accuracies = [_plus_minus(line.accuracies[name], line.standard_errors[name]) for name in line.accuracies]
    interval = f"{100 * line.primary.low:.1f}–{100 * line.primary.high:.1f}" if line.primary.has_interval else ""
    kappa = write_number(line.kappa, 2) + (f" ± {line.kappa_error:.2f}" if not math.isnan(line.kappa_error) else "")
    dropped = "" if line.dropped is None else f"{write_percent(line.dropped)}"
    difference = _difference(line, "pairwise")
    published = "" if line.row.published is None else f"{100 * line.row.published:.1f}"
    return [line.row.label, *accuracies, interval, kappa, dropped, difference, published]


def as_markdown(lines: Sequence[AblationLine]) -> str:
    """The table as Markdown."""
    return _markdown(head(lines), [cells(line) for line in lines])


def record(line: AblationLine) -> dict[str, Any]:
    """One line for programs; a number that is not known is null."""
    return {
        "row": line.row.name,
        "label": line.row.label,
        "accuracy": {name: _known(value) for name, value in line.accuracies.items()},
        "standard_error": {name: _known(value) for name, value in line.standard_errors.items()},
        "interval": [_known(line.primary.low), _known(line.primary.high)],
        "kappa": _known(line.kappa),
        "kappa_standard_error": _known(line.kappa_error),
        "dropped": line.dropped,
        "differences": {
            name: {
                "value": _known(difference.value),
                "standard_error": _known(float(difference.details.get("standard_error", math.nan))),
                "corrected_standard_error": _known(float(difference.details.get("corrected_standard_error", math.nan))),
            }
            for name, difference in line.differences.items()
        },
        "published": line.row.published,
        "n_runs": line.n_runs,
    }


def _plus_minus(value: float, error: float) -> str:
    if math.isnan(value):
        return ""
    return f"{100 * value:.1f}" + (f" ± {100 * error:.1f}" if not math.isnan(error) else "")


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


# The table of evaluators for people: accuracies, the interval of the primary one, and differences to what must be beaten.


AGAINST = {"tfidf-ridge": "− TF-IDF", "pairwise": "− pairwise"}


def evaluation_head(lines: Sequence[AblationLine]) -> list[str]:
    """The names of the columns."""
    measures = [MEASURES[name] for name in lines[0].accuracies] if lines else []
    return ["row", *measures, "95% interval", *(AGAINST[name] for name in against(lines))]


def against(lines: Sequence[AblationLine]) -> list[str]:
    """The rows that others are compared with, as far as they are in the table."""
    return [name for name in AGAINST if any(name in line.differences for line in lines)]


def evaluation_cells(line: AblationLine, others: Sequence[str]) -> list[str]:
    """One line as texts; what is not known stays empty."""
    accuracies = [_plus_minus(line.accuracies[name], line.standard_errors[name]) for name in line.accuracies]
    interval = f"{100 * line.primary.low:.1f}–{100 * line.primary.high:.1f}" if line.primary.has_interval else ""
    return [line.row.label, *accuracies, interval, *(_difference(line, name) for name in others)]


def evaluation_markdown(lines: Sequence[AblationLine]) -> str:
    """The table as Markdown."""
    others = against(lines)
    return _markdown(evaluation_head(lines), [evaluation_cells(line, others) for line in lines])


def _markdown(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join("| " + " | ".join(row) + " |\n" for row in [names, ["---"] * len(names), *rows])


def _difference(line: AblationLine, other: str) -> str:
    apart = line.differences.get(other)
    if apart is None or not apart.is_known:
        return ""
    return f"{write_signed(100 * apart.value, 1)} ± {100 * float(apart.details['standard_error']):.1f}"
