"""How many ratings of my own domain do I need? An old evaluator alone, one trained on the new ratings alone, and the old one
adapted.

``python -m bench.few_ratings run FOLDER`` trains an evaluator on an old source, draws some ratings of a new one, and measures
all three on the rest of the new source: pairs of dialogues whose ratings lie two points or more apart. Drawn are whole users
(or blocks of neighbours), so that nobody is on both sides. Every pair of sources is kept in its own file; several processes may
share the work (``--part 1/4``). ``python -m bench.few_ratings table FOLDER`` prints the accuracies, and from how many ratings
on adapting beats each; ``python -m bench.few_ratings figure FOLDER docs/images/how-many-ratings.svg`` draws them. ``python -m
bench.few_ratings knows FOLDER`` asks whether the old evaluator knows where it does not know.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench._sources import convai2, planted, recommenders, simulated
from dialometer.learned.data.calibration import reliability, sigmoid
from dialometer.learned.data.evaluator import FILE
from dialometer.learned.data.measures import accuracy
from dialometer.learned.data.pairs import numbered_gap_pairs
from dialometer.learned.data.rated import RatedDialogue
from dialometer.learned.data.splits import bot_styles, groups_of
from dialometer.learned.gaussian.adapting import adapt_gaussian
from dialometer.learned.gaussian.evaluator import GaussianEvaluator
from dialometer.learned.gaussian.features import FeatureTable, describe
from dialometer.learned.gaussian.training import fingerprint_of, fit_gaussian, save_gaussian
from dialometer.neural.work import Work, default_cache

Task = tuple[list[RatedDialogue], list[RatedDialogue]]
SIZES = (20, 50, 100, 200)
WAYS = ("old", "new", "adapted")
LABELS = {"old": "old evaluator alone", "new": "new ratings alone", "adapted": "old one adapted"}
N_REPEATS = 10
GAP = 2.0
FEWEST_TO_TEST = 50
SEED = 22


def tasks() -> dict[str, Callable[[], Task]]:
    """Old and new source of each comparison, by name."""
    return {
        "CRSArena-Dial": lambda: (convai2(), recommenders()),
        "ConvAI2, 5 July": _day("05"),
        "ConvAI2, a bot": lambda: _bot("style 5"),
        "self-dialogues with faults": lambda: (convai2(), planted(400, SEED)),
        "simulated talks": lambda: (convai2(), simulated(400, SEED)),
    }


def _day(day: str) -> Callable[[], Task]:
    def made() -> Task:
        rated = convai2()
        return [row for row in rated if f"-{day}." not in row.source], [
            row for row in rated if f"-{day}." in row.source
        ]

    return made


def _bot(style: str) -> Task:
    """All dialogues with one bot, after those of other bots and other users."""
    rated = convai2()
    bots, people = bot_styles(rated), groups_of(rated)
    touched = {person for person, bot in zip(people, bots, strict=True) if bot == style}
    old = [row for row, person in zip(rated, people, strict=True) if person not in touched]
    return old, [row for row, bot in zip(rated, bots, strict=True) if bot == style]


def old_evaluator(folder: Path, old: Sequence[RatedDialogue], work: Work) -> GaussianEvaluator:
    """The evaluator of an old source, trained once for all comparisons that begin with it."""
    place = folder / f"evaluator-{fingerprint_of(old, 0)[:12]}"
    if not (place / FILE).is_file():
        save_gaussian(place, fit_gaussian(old, work=work))
    return GaussianEvaluator.load(place)


def measure(folder: Path, old: Sequence[RatedDialogue], new: Sequence[RatedDialogue]) -> list[dict[str, Any]]:
    """One record for each number of ratings, repetition and way: accuracy and calibration error on the rest."""
    work = Work(device="cpu", cache=default_cache())
    table = describe([row.dialogue for row in new], work)
    evaluator = old_evaluator(folder, old, work)
    before = evaluator.score_table(table)
    groups = np.unique(groups_of(new, block=5), return_inverse=True)[1]
    records = []
    for size in SIZES:
        if len(new) - size < FEWEST_TO_TEST:
            continue
        for repeat in range(N_REPEATS):
            rng = np.random.default_rng([SEED, size, repeat])
            drawn, rest = draw(groups, size, rng)
            train, test = [new[n] for n in drawn], [new[n] for n in rest]
            pairs = numbered_gap_pairs(test, GAP)
            scores = {"old": before.values[rest]} | _trained(evaluator, train, table, drawn, rest)
            for way, values in scores.items():
                quality = reliability(values[pairs.better] - values[pairs.worse], 1.0)
                error = quality.calibration_error
                records.append(
                    {"n": size, "repeat": repeat, "way": way, "accuracy": accuracy(values, pairs), "calibration": error}
                )
    return records


def _trained(
    evaluator: GaussianEvaluator, train: list[RatedDialogue], table: FeatureTable, drawn: Any, rest: Any
) -> dict[str, Any]:
    """Scores by an evaluator of the new ratings alone, and by the old one adapted; without different ratings, none."""
    if len({row.rating for row in train}) < 2:
        return {}
    own = table.rows(drawn)
    alone = fit_gaussian(train, table=own).evaluator
    adapted = adapt_gaussian(evaluator, train, table=own).evaluator
    return {"new": alone.score_table(table.rows(rest)).values, "adapted": adapted.score_table(table.rows(rest)).values}


def draw(groups: Any, size: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Whole groups until there are ``size`` dialogues (what is over is left out), and the dialogues of all other groups."""
    order = rng.permutation(int(groups.max()) + 1)
    n_used = int(np.searchsorted(np.cumsum(np.bincount(groups)[order]), size)) + 1
    is_drawn = np.isin(groups, order[:n_used])
    return np.sort(rng.permutation(np.flatnonzero(is_drawn))[:size]), np.flatnonzero(~is_drawn)


def knows(folder: Path) -> None:
    """The old evaluator on the new source without any new rating: how often it is right, how often it expects to be, and on the half
    of the pairs that it should know best, by the probability it gives and by the familiarity of the less familiar dialogue.
    """
    heads = [
        "pairs",
        "right",
        "expected",
        "calibration error",
        "likeliest half",
        "most familiar half",
        "unlike training",
    ]
    print("| new source | " + " | ".join(heads) + " |\n" + "|---" * (len(heads) + 1) + "|")
    work = Work(device="cpu", cache=default_cache())
    for name, make in tasks().items():
        old, new = make()
        evaluator = old_evaluator(folder, old, work)
        scores = evaluator.score_table(describe([row.dialogue for row in new], work))
        pairs = numbered_gap_pairs(new, 0.0)
        gaps = scores.values[pairs.better] - scores.values[pairs.worse]
        known = np.minimum(scores.familiarity[pairs.better], scores.familiarity[pairs.worse])
        shares = [
            (gaps > 0).mean(),
            sigmoid(np.abs(gaps)).mean(),
            reliability(gaps, 1.0).calibration_error,
            (gaps[np.abs(gaps) >= np.median(np.abs(gaps))] > 0).mean(),
            (gaps[known >= np.median(known)] > 0).mean(),
            evaluator.is_unlike_training(scores).mean(),
        ]
        print(f"| {name} | {len(pairs):,} | " + " | ".join(f"{100 * share:.1f}" for share in shares) + " |", flush=True)


def run(folder: Path, part: int, n_parts: int) -> None:
    """Measures what is not in the folder yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in list(tasks().items())[part::n_parts]:
        path = folder / f"{name.replace(' ', '_')}.json"
        if not path.is_file():
            old, new = make()
            content = {"name": name, "n_old": len(old), "n_new": len(new), "records": measure(folder, old, new)}
            path.write_text(json.dumps(content), encoding="utf-8")
            print(name, flush=True)


def read(folder: Path) -> list[dict[str, Any]]:
    """What was measured, in the order of the tasks."""
    paths = [folder / f"{name.replace(' ', '_')}.json" for name in tasks()]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()]


def values_of(task: dict[str, Any], way: str, size: int, measured: str = "accuracy") -> np.ndarray[Any, Any]:
    """One number for each repetition."""
    found = [row[measured] for row in task["records"] if row["way"] == way and row["n"] == size]
    return np.array(found, dtype=np.float64)


def show(folder: Path) -> None:
    """Accuracies and calibration errors in %, ± half the 95% interval of the mean over draws of the ratings."""
    found = read(folder)
    heads = [*LABELS.values(), *(f"calibration error, {way}" for way in WAYS)]
    print("| new source | ratings | " + " | ".join(heads) + " |\n" + "|---" * (len(heads) + 2) + "|")
    for task in found:
        for size in SIZES:
            columns = [(way, measured) for measured in ("accuracy", "calibration") for way in WAYS]
            cells = [_cell(values_of(task, way, size, measured)) for way, measured in columns]
            if any(cells):
                print(f"| {task['name']} ({task['n_new']}) | {size} | " + " | ".join(cells) + " |")
    print("\n| new source | adapted beats the old one from | adapted beats new ratings alone up to |\n|---|---|---|")
    for task in found:
        wins = {way: [size for size in SIZES if _is_above(task, way, size)] for way in ("old", "new")}
        least = f"{min(wins['old'])} ratings" if wins["old"] else "none tried"
        most = f"{max(wins['new'])} ratings" if wins["new"] else "none tried"
        print(f"| {task['name']} | {least} | {most} |")


def _cell(values: np.ndarray[Any, Any]) -> str:
    if len(values) < 2:
        return ""
    return f"{100 * values.mean():.1f} ± {100 * 1.96 * values.std(ddof=1) / np.sqrt(len(values)):.1f}"


def _is_above(task: dict[str, Any], way: str, size: int) -> bool:
    """Whether adapting is better than another way, the interval of the paired difference over draws lying above 0."""
    pairs = {
        way: {r["repeat"]: r["accuracy"] for r in task["records"] if r["n"] == size and r["way"] == way} for way in WAYS
    }
    apart = np.array([pairs["adapted"][k] - pairs[way][k] for k in pairs["adapted"] if k in pairs[way]])
    return len(apart) > 1 and bool(apart.mean() > 1.96 * apart.std(ddof=1) / np.sqrt(len(apart)))


def draw_figure(folder: Path, out: Path) -> None:
    """One small chart for each new source: accuracy by number of ratings, three lines with their intervals."""
    import vl_convert  # noqa: PLC0415 - an extra

    rows = []
    for task in read(folder):
        for size in SIZES:
            for way in WAYS:
                values = 100 * values_of(task, way, size)
                if len(values) > 1:
                    reach = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
                    row = {"source": task["name"], "ratings": size, "way": LABELS[way], "accuracy": values.mean()}
                    rows.append(row | {"low": values.mean() - reach, "high": values.mean() + reach})
    out.write_text(vl_convert.vegalite_to_svg(json.dumps(_chart(rows))), encoding="utf-8")


def _chart(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    x: dict[str, Any] = {
        "field": "ratings",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [15, 260]},
        "axis": {"values": list(SIZES)},
    }
    x |= {"title": "ratings of the new domain"}
    colour: dict[str, Any] = {"field": "way", "type": "nominal", "title": None, "legend": {"orient": "top"}}
    colour |= {"scale": {"domain": list(LABELS.values()), "range": ["#888888", "#d95f02", "#1b6ca8"]}}
    y = {"field": "accuracy", "type": "quantitative", "title": "pairs right, %", "scale": {"zero": False}}
    band: dict[str, Any] = {
        "mark": {"type": "rule"},
        "encoding": {"y": {"field": "low", "type": "quantitative", "title": "pairs right, %"}},
    }
    band["encoding"]["y2"] = {"field": "high"}
    layers = [{"mark": {"type": "line", "point": True}, "encoding": {"y": y}}, band]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "data": {"values": list(rows)},
        "facet": {"field": "source", "type": "nominal", "title": None, "sort": list(tasks())},
        "columns": 3,
        "spec": {"width": 220, "height": 150, "encoding": {"x": x, "color": colour}, "layer": layers},
        "resolve": {"scale": {"y": "independent"}},
    }


def main() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("folder", type=Path)
    running.add_argument("--part", default="1/1", help="which part of the work, of how many")
    commands.add_parser("table").add_argument("folder", type=Path)
    commands.add_parser("knows").add_argument("folder", type=Path)
    drawing = commands.add_parser("figure")
    drawing.add_argument("folder", type=Path)
    drawing.add_argument("out", type=Path)
    given = parser.parse_args()
    if given.command == "table":
        show(given.folder)
    elif given.command == "knows":
        knows(given.folder)
    elif given.command == "figure":
        draw_figure(given.folder, given.out)
    else:
        part, n_parts = (int(number) for number in given.part.split("/"))
        run(given.folder, part - 1, n_parts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
