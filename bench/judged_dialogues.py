"""Learned evaluators as judges of real dialogues: ``python -m bench.judged_dialogues [--draws N] [--trained N] [--write]``.

ConvAI2: people rated dialogues with bots from 1 to 5 (the bots are told apart by how they write). CRSArena: users said of dialogues
with nine recommenders whether they were satisfied. A tenth of the ratings is drawn many times. The mean is estimated by people alone,
by the evaluator alone and by both, and set beside the truth of all ratings: how often the interval holds it, and how wide it is.
Three evaluators (the recipe ``best``): one that learned from the ratings of other days or of another data set; one that learned from
the drawn ratings, cross-fitted; and one that learned from the drawn ratings and has seen what it scores, as a warning. The dialogues
are all that the claim is about, so items are fixed. The data are read from the folder that DIALOMETER_DATA names.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.calibrate_judges import PAGE
from dialometer.learned.data.rated import RatedDialogue, read_rated
from dialometer.learned.data.splits import bot_styles
from dialometer.learned.gaussian.features import FeatureTable, describe
from dialometer.learned.gaussian.kernel import ASPECTS, Aspect
from dialometer.learned.gaussian.training import fit_gaussian
from dialometer.model.dialogue import Dialogue, Role, Turn
from dialometer.neural.work import Work, default_cache
from dialometer.stats.judged.folds import cross_fitted
from dialometer.stats.judged.means import Corrected, corrected, judged_ratings

DATA = Path(os.environ.get("DIALOMETER_DATA", "data"))
MARKS = "<!-- dialogues: written by python -m bench.judged_dialogues --write -->", "<!-- end of dialogues -->"
SEED, ALL = 4, "all"
QUICK: tuple[Aspect, ...] = ("behaviour", "meaning")
"""What evaluators look at that are trained anew in every draw; words take most of the time and add little."""
ROLES: dict[str, Role] = {"USER": "user", "AGENT": "agent"}
Floats = np.ndarray
HEAD = (
    "| what | judge | dialogues | ratings drawn | draws | truth | judge alone | coverage: people | both | narrower | "
    "mean error: people | both | worth |",
    "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
)


@dataclass(frozen=True)
class Rated:
    """Dialogues that people have all rated: the ratings, whose they are, and what an evaluator looks at in them."""

    values: Floats
    groups: np.ndarray
    table: FeatureTable
    rows: Sequence[RatedDialogue]
    is_share: bool = False

    def evaluator(self, training: np.ndarray, aspects: Sequence[Aspect] = QUICK) -> Floats:
        """What an evaluator that learned from these dialogues expects of all."""
        rows = [self.rows[n] for n in training]
        fitted = fit_gaussian(rows, table=self.table.rows(training), aspects=aspects)
        return fitted.evaluator.expected_ratings(self.table)


def of_other_days(data: Rated) -> Floats:
    """Every dialogue by an evaluator that learned from the ratings of the other days."""
    days = np.array([row.source for row in data.rows])
    scores = np.empty(len(days))
    for day in np.unique(days):
        scores[days == day] = data.evaluator(np.flatnonzero(days != day), ASPECTS)[days == day]
    return scores


def estimates(data: Rated, scores: Floats, drawn: np.ndarray) -> dict[str, Corrected]:
    """The mean of all dialogues and of each bot's, from the drawn ratings and the scores of all."""
    items, found = np.arange(len(scores)), {}
    for name in (ALL, *np.unique(data.groups)):
        own = np.flatnonzero((data.groups == name) | (name == ALL))
        rated = np.intersect1d(drawn, own)
        lots = judged_ratings(data.values[rated], rated, scores[own], items[own], has_fixed_items=True)
        found[name] = corrected(lots, {"0": 1.0}, null=0.5 if data.is_share else 0.0, is_share=data.is_share)
    return found


def table_rows(
    data: Rated,
    judge: str,
    score: Callable[[np.ndarray], Floats],
    *,
    share: float,
    n_draws: int,
    groups: Sequence[str] = (),
) -> list[str]:
    """Many draws with one judge; ``score`` gives its scores of all dialogues from the drawn ones. All groups if none are named."""
    rng = np.random.default_rng(SEED)
    n, names = round(share * len(data.values)), list(groups) or [ALL, *np.unique(data.groups)]
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in names}
    for _ in range(n_draws):
        drawn = rng.permutation(len(data.values))[:n]
        results = estimates(data, score(drawn), drawn)
        for name in names:
            result, truth = results[name], data.values[(data.groups == name) | (name == ALL)].mean()
            parts = (result.people, result.both)
            if not all(part.is_known and part.high > part.low for part in parts):
                continue
            holds, widths = (
                [part.low <= truth <= part.high for part in parts],
                [part.high - part.low for part in parts],
            )
            errors = [abs(part.value - truth) for part in parts]
            times = result.n_worth / result.both.n
            found[name].append((*holds, *widths, *errors, times, result.judge.value, result.both.n))
    lines = []
    for name in names:
        people, both, before, after, error, corrected_error, _, alone, n_rated = np.mean(found[name], axis=0)
        times, own = np.median([row[6] for row in found[name]]), (data.groups == name) | (name == ALL)
        form = ".0%" if data.is_share else ".2f"
        lines.append(
            f"| {name} | {judge} | {own.sum():,} | {n_rated:.0f} | {len(found[name]):,} | {data.values[own].mean():{form}} "
            f"| {alone:{form}} | {people:.1%} | {both:.1%} | {1 - after / before:.0%} | {error:.3f} "
            f"| {corrected_error:.3f} | × {times:.2f} |"
        )
        print(lines[-1], flush=True)
    return lines


def convai2(work: Work, n_draws: int, n_trained: int) -> tuple[list[str], Rated]:
    """1,660 rated dialogues of four days; a tenth of the ratings is drawn."""
    rows = read_rated(DATA / "convai2")
    table = describe([row.dialogue for row in rows], work)
    data = Rated(np.array([row.rating for row in rows]), np.array(bot_styles(rows)), table, rows)
    print(f"ConvAI2: {len(rows):,} dialogues", flush=True)
    fixed = of_other_days(data)
    print(
        f"correlation with ratings of the evaluator of other days: {np.corrcoef(fixed, data.values)[0, 1]:.2f}",
        flush=True,
    )
    lines = table_rows(data, "other days", lambda _: fixed, share=0.1, n_draws=n_draws)

    def is_drawn(drawn: np.ndarray) -> np.ndarray:
        return np.isin(np.arange(len(rows)), drawn)

    lines += table_rows(
        data, "cross-fitted", lambda drawn: cross_fitted(is_drawn(drawn), data.evaluator), share=0.1, n_draws=n_trained
    )
    lines += table_rows(
        data, "has seen the ratings (wrong)", lambda drawn: data.evaluator(np.sort(drawn)), share=0.1, n_draws=n_trained,
        groups=[ALL],
    )  # fmt: skip
    return lines, data


def crs_arena(work: Work, learned: Rated, n_draws: int, n_trained: int) -> tuple[list[str], str]:
    """254 dialogues with nine recommenders; the evaluator learned from ConvAI2."""
    with gzip.open(DATA / "crs_arena" / "crs_arena_dial_open.json.gz", "rt", encoding="utf-8") as file:
        told = [row for row in json.load(file) if row["metadata"].get("sentiment") in ("satisfied", "frustrated")]
    dialogues = [
        Dialogue(
            row["conversation ID"],
            tuple(
                Turn(turn["participant"], turn["utterance"], ROLES[turn["participant"]]) for turn in row["conversation"]
            ),
        )
        for row in told
    ]
    table = describe(dialogues, work)
    values = np.array([float(row["metadata"]["sentiment"] == "satisfied") for row in told])
    fitted = fit_gaussian(learned.rows, table=learned.table)
    scores = (fitted.evaluator.expected_ratings(table) - 1) / 4
    bots = [row["agent"]["id"] for row in told]
    rows = [
        RatedDialogue(dialogue, 1 + 4 * value, row["user"]["id"], "crs_arena", bot)
        for dialogue, value, row, bot in zip(dialogues, values, told, bots, strict=True)
    ]
    data = Rated(values, np.array(bots), table, rows, is_share=True)
    lines = table_rows(data, "ConvAI2", lambda _: scores, share=0.1, n_draws=n_draws, groups=[ALL])
    lines += table_rows(data, "ConvAI2", lambda _: scores, share=0.5, n_draws=n_draws)
    lines += table_rows(
        data, "cross-fitted", lambda drawn: cross_fitted(np.isin(np.arange(len(rows)), drawn), data.evaluator) / 4 - 0.25,
        share=0.5, n_draws=n_trained, groups=[ALL],
    )  # fmt: skip
    place = {(row["user"]["id"], row["agent"]["id"]): n for n, row in enumerate(told)}
    right = []
    with (DATA / "crs_arena" / "votes_open.csv").open(encoding="utf-8", newline="") as file:
        for vote in csv.DictReader(file):
            sides = [place.get((vote["user_id"], vote[side])) for side in ("crs1", "crs2")]
            if None not in sides and vote["vote"] in (vote["crs1"], vote["crs2"]):
                right.append((scores[sides[0]] > scores[sides[1]]) == (vote["vote"] == vote["crs1"]))
    words = (
        f"CRSArena: the evaluator of ConvAI2 correlates {np.corrcoef(scores, values)[0, 1]:.2f} with satisfaction, and agrees with "
        f"{sum(right)} of {len(right)} decided votes."
    )
    return lines, words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000, help="with evaluators that learned from other ratings")
    parser.add_argument("--trained", type=int, default=60, help="with evaluators that are trained anew in each draw")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks/judges.md")
    given = parser.parse_args()
    if not (DATA / "convai2").exists():
        print(f"{DATA / 'convai2'} is missing: name the folder of the data in DIALOMETER_DATA")
        return
    work = Work(device="cpu", cache=default_cache())
    of_bots, learned = convai2(work, given.draws, given.trained)
    of_recommenders, words = crs_arena(work, learned, given.draws, given.trained)
    text = "\n".join(
        [
            "ConvAI2, mean rating (1 to 5):", "", *HEAD, *of_bots, "",
            "CRSArena, share of satisfied users:", "", *HEAD, *of_recommenders, "", words,
        ]
    )  # fmt: skip
    print("\n" + text)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(MARKS[0])
        PAGE.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
