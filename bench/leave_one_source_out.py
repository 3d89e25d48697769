"""What carries over to a source of dialogues that nothing was trained or chosen on? Each source apart, never only the mean.

Sources: three days of ConvAI2, CRSArena-Dial, self-dialogues with planted faults and simulated talks (``bench/_sources.py``).
For each, an evaluator learns from the ratings of all others, with the source as a random effect in the kernel (what people of a
source add to all ratings is summed out); beside it stand signals that need no ratings. What is added up is chosen by nested
leave-one-source-out: signals are added one after the other as long as the mean accuracy over the *other* sources grows, each of
them scored by a model that has seen neither it nor the source that is tested.

``python -m bench.leave_one_source_out FOLDER`` computes what is not in the folder and prints three tables: accuracies; what was
chosen; and whether an evaluator trained on ConvAI2 knows where it does not know (accuracy and calibration error with and
without abstaining).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench._sources import convai2, dialogue, planted, recommenders, self_dialogues, simulated, with_faults
from bench.few_ratings import old_evaluator
from dialometer.learned.data.calibration import reliability, sigmoid
from dialometer.learned.data.measures import accuracy, accuracy_estimate
from dialometer.learned.data.pairs import NumberedPairs, numbered_gap_pairs
from dialometer.learned.data.rated import RatedDialogue
from dialometer.learned.data.splits import groups_of
from dialometer.learned.gaussian.features import FeatureTable, describe
from dialometer.learned.gaussian.kernel import KernelSettings, effect_kernel, fit_describer, fit_process, likeness
from dialometer.learned.gaussian.training import fit_gaussian
from dialometer.neural.work import Work, default_cache

Floats = NDArray[np.float64]
N_MADE = 300
N_DAYS = 3
"""Of ConvAI2; the fourth has more dialogues than these together and would make every training several times as long."""
SEED = 22
SOURCE_VARIANCE = 30.0
N_ANOMALIES = 600
RECIPE, ANOMALY, TOGETHER, CONVAI2 = "ratings of all other sources", "learned anomaly", "chosen together", "ConvAI2"


@dataclass(frozen=True)
class Source:
    """Rated dialogues with their features, and pairs of which one is better."""

    name: str
    rated: list[RatedDialogue]
    table: FeatureTable
    pairs: NumberedPairs
    wide: NumberedPairs
    """All pairs of different ratings."""


def sources(work: Work) -> list[Source]:
    """All of them, small ones as they are."""
    rated = convai2()
    found = []
    for day in sorted({row.source for row in rated})[:N_DAYS]:
        own = [row for row in rated if row.source == day]
        found.append(_source(f"ConvAI2, {int(day[15:17])} July", own, 2, work))
    chats, faulty, talks = recommenders(), planted(N_MADE, SEED, 0, 2000), simulated(N_MADE, SEED)
    made = {"CRSArena-Dial": chats, "self-dialogues with faults": faulty, "simulated talks": talks}
    return [*found, *(_source(name, own, None, work) for name, own in made.items())]


def _source(name: str, rated: list[RatedDialogue], length: int | None, work: Work) -> Source:
    table = describe([row.dialogue for row in rated], work)
    return Source(name, rated, table, numbered_gap_pairs(rated, 3, length), numbered_gap_pairs(rated, 0.0))


def _column(table: FeatureTable, name: str) -> Floats:
    if name in table.behaviour_names:
        return np.asarray(table.behaviour[:, table.behaviour_names.index(name)])
    return np.asarray(table.meaning[:, table.meaning_names.index(name)])


SIGNALS: dict[str, Callable[[FeatureTable], Floats]] = {
    "longer": lambda t: _column(t, "log_utterances"),
    "praise − complaints": lambda t: _column(t, "user_approval_turns") - _column(t, "user_complaint_turns"),
    "reply near the question": lambda t: _column(t, "reply_near"),
    "no reply far off": lambda t: _column(t, "reply_near_least"),
    "no words repeated": lambda t: -_column(t, "agent_like_any_earlier"),
    "no meaning repeated": lambda t: -_column(t, "agent_near_earlier"),
    "longer responses": lambda t: _column(t, "agent_words"),
    "no stock responses": lambda t: -np.mean([_column(t, f"agent_seed_{n:02d}_mean") for n in (0, 1, 6)], axis=0),
}
"""Signals that need no ratings, each in the direction that was expected before anything was looked at."""


class AnomalyScores:
    """How whole a dialogue looks beside the same with faults in it: stage 1 of the paper, learned by the best recipe's features.

    Trained on ConvAI2's dialogues for other sources, and on self-dialogues for ConvAI2's days: never on the source it scores.
    """

    def __init__(self, convai: Sequence[RatedDialogue], work: Work) -> None:
        self.work = work
        rng = np.random.default_rng(SEED)
        chats = [convai[int(n)].dialogue for n in rng.permutation(len(convai))[: N_ANOMALIES // 2]]
        said = [[turn.text for turn in chat.turns] for chat in chats]
        written = self_dialogues()[2000 : 2000 + N_ANOMALIES // 2]
        self.by_convai, self.by_self = (self._fit(talks, rng) for talks in (said, written))

    def _fit(self, talks: Sequence[list[str]], rng: np.random.Generator) -> Any:
        texts = [text for talk in talks for text in talk]
        rated = []
        for number, talk in enumerate(talks):
            for kind, turns in (("whole", talk[:20]), ("faulty", with_faults(talk[:20], 0.4, texts, rng))):
                rating = 5.0 if kind == "whole" else 1.0
                rated.append(RatedDialogue(dialogue(f"{kind}-{number}", turns), rating, f"t{number}", "made", None))
        return fit_gaussian(
            rated, aspects=("behaviour", "meaning"), table=describe([row.dialogue for row in rated], self.work)
        ).evaluator

    def __call__(self, source: Source) -> Floats:
        evaluator = self.by_self if source.name.startswith("ConvAI2") else self.by_convai
        return np.asarray(evaluator.score_table(source.table).values)


def joined(tables: Sequence[FeatureTable]) -> FeatureTable:
    """Features of several sources, one below the other."""
    return FeatureTable(
        np.vstack([table.behaviour for table in tables]),
        tables[0].behaviour_names,
        np.vstack([table.meaning for table in tables]),
        tables[0].meaning_names,
        tuple(text for table in tables for text in table.user_text),
        tuple(text for table in tables for text in table.agent_text),
    )


def scores_without(left_out: Sequence[Source], every: Sequence[Source]) -> dict[str, Floats]:
    """Scores of the sources left out, by a process trained on all the others with the source as a random effect."""
    names = {source.name for source in left_out}
    inside = [source for source in every if source.name not in names]
    table = joined([source.table for source in inside])
    rated = [row for source in inside for row in source.rated]
    place = [source.name for source in inside for _ in source.rated]
    describer, settings = fit_describer(table), KernelSettings()
    known = describer(table)
    users = [f"{name} {group}" for name, group in zip(place, groups_of(rated), strict=True)]
    effects = settings.effect * effect_kernel(users) + SOURCE_VARIANCE * effect_kernel(place)
    ratings = np.array([row.rating for row in rated])
    posterior = fit_process(
        likeness(known, known).kernel(settings), ratings, np.full(len(rated), settings.noise), effects
    )
    return {
        source.name: posterior.predict(likeness(describer(source.table), known).kernel(settings)) for source in left_out
    }


def compute(folder: Path) -> dict[str, Any]:
    """Accuracies of everything on every source, what nested choice took, and what abstaining is worth."""
    work = Work(device="cpu", cache=default_cache())
    every = sources(work)
    anomaly = AnomalyScores([row for source in every if source.name.startswith(CONVAI2) for row in source.rated], work)
    free = {source.name: {name: signal(source.table) for name, signal in SIGNALS.items()} for source in every}
    for source in every:
        free[source.name][ANOMALY] = anomaly(source)
    twice = {frozenset((a.name, b.name)): scores_without((a, b), every) for a, b in combinations(every, 2)}
    found: dict[str, Any] = {"rows": {}, "chosen": {}, "abstaining": abstaining(every, folder, work)}
    for test in every:
        others = [source for source in every if source.name != test.name]
        inner = {
            source.name: free[source.name] | {RECIPE: twice[frozenset((test.name, source.name))][source.name]}
            for source in others
        }
        chosen = choose(inner, {source.name: source.pairs for source in others})
        own = free[test.name] | {RECIPE: scores_without((test,), every)[test.name]}
        own[TOGETHER] = added(own, chosen)
        groups = groups_of(test.rated)
        estimates = {
            name: accuracy_estimate(values, test.pairs, groups=groups, n_resamples=400) for name, values in own.items()
        }
        found["rows"][test.name] = {name: [one.value, one.low, one.high] for name, one in estimates.items()}
        found["chosen"][test.name] = chosen
        print(test.name, flush=True)
    return found


def choose(signals: dict[str, dict[str, Floats]], pairs: dict[str, NumberedPairs]) -> list[str]:
    """Signals added while the mean accuracy over sources grows by more than half a point, ConvAI2's days counting as one source."""
    names = list(next(iter(signals.values())))

    def mean(chosen: list[str]) -> float:
        right: dict[str, list[float]] = {}
        for source, own in signals.items():
            right.setdefault(source.partition(",")[0], []).append(accuracy(added(own, chosen), pairs[source]))
        return float(np.mean([np.mean(values) for values in right.values()]))

    chosen: list[str] = []
    best = 0.5
    while len(chosen) < len(names):
        tried = {name: mean([*chosen, name]) for name in names if name not in chosen}
        name = max(tried, key=lambda one: tried[one])
        if tried[name] < best + 0.005:
            break
        chosen, best = [*chosen, name], tried[name]
    return chosen


def added(signals: dict[str, Floats], chosen: Sequence[str]) -> Floats:
    """The sum of some signals, each with a variance of one among the dialogues of its source."""
    total = np.zeros(len(next(iter(signals.values()))))
    for name in chosen:
        values = signals[name]
        total += (values - values.mean()) / max(float(values.std()), 1e-9)
    return total


def abstaining(every: Sequence[Source], folder: Path, work: Work) -> list[dict[str, Any]]:
    """ConvAI2's evaluator on each source: all pairs, and the half that it should know best, by its probability and by familiarity."""
    days = [source for source in every if source.name.startswith(CONVAI2)]
    rows = []
    for test in every:
        rated = [row for source in days if source.name != test.name for row in source.rated]
        evaluator = old_evaluator(folder, rated, work)
        scores = evaluator.score_table(test.table)
        better, worse = test.wide.better, test.wide.worse
        gaps = scores.values[better] - scores.values[worse]
        known = np.minimum(scores.familiarity[better], scores.familiarity[worse])
        is_likely, is_known = np.abs(gaps) >= np.median(np.abs(gaps)), known >= np.median(known)
        rows.append(
            {
                "source": test.name,
                "pairs of different ratings": len(gaps),
                "right": float((gaps > 0).mean()),
                "expected by its probabilities": float(sigmoid(np.abs(gaps)).mean()),
                "calibration error": reliability(gaps, 1.0).calibration_error,
                "likeliest half": float((gaps[is_likely] > 0).mean()),
                "most familiar half": float((gaps[is_known] > 0).mean()),
                "median familiarity": float(np.median(scores.familiarity)),
                "unlike its training dialogues": float(evaluator.is_unlike_training(scores).mean()),
            }
        )
    return rows


def show(found: dict[str, Any]) -> None:
    """The tables, in %."""
    names = list(next(iter(found["rows"].values())))
    print("| tested on | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 1) + "|")
    for source, row in found["rows"].items():
        cells = [f"{100 * row[name][0]:.1f} ({100 * row[name][1]:.0f}–{100 * row[name][2]:.0f})" for name in names]
        print(f"| {source} | " + " | ".join(cells) + " |")
    print("\n| tested on | chosen on the other sources |\n|---|---|")
    for source, chosen in found["chosen"].items():
        print(f"| {source} | {', '.join(chosen)} |")
    heads = [name for name in found["abstaining"][0] if name != "source"]
    print("\n| ConvAI2's evaluator on | " + " | ".join(heads) + " |\n" + "|---" * (len(heads) + 1) + "|")
    for row in found["abstaining"]:
        cells = [f"{row[name]:,}" if isinstance(row[name], int) else f"{100 * row[name]:.1f}" for name in heads]
        print(f"| {row['source']} | " + " | ".join(cells) + " |")


def main() -> int:
    """Computes once, prints always."""
    folder = Path(sys.argv[1])
    path = folder / "sources.json"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(compute(folder)), encoding="utf-8")
    show(json.loads(path.read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
