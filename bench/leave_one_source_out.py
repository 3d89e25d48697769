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
from dialometer.learned.data.measures import accuracy, accuracy_estimate
from dialometer.learned.data.pairs import NumberedPairs, numbered_gap_pairs
from dialometer.learned.data.rated import RatedDialogue
from dialometer.learned.data.splits import groups_of
from dialometer.learned.gaussian.features import FeatureTable, describe
from dialometer.learned.gaussian.kernel import (
    ASPECTS,
    Aspect,
    KernelSettings,
    effect_kernel,
    fit_describer,
    fit_process,
    likeness,
)
from dialometer.neural.work import Work, default_cache

Floats = NDArray[np.float64]
N_MADE = 300
N_DAYS = 3
"""Of ConvAI2; the fourth has more dialogues than these together and would make every training several times as long."""
SEED = 22
SOURCE_VARIANCE = 30.0
N_ANOMALIES = 400
RECIPE, ANOMALY, TOGETHER, CONVAI2 = "ratings of all other sources", "learned anomaly", "chosen together", "ConvAI2"


@dataclass(frozen=True)
class Source:
    """Rated dialogues with their features, and pairs of which one is better."""

    name: str
    rated: list[RatedDialogue]
    table: FeatureTable
    pairs: NumberedPairs


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
    return Source(name, rated, table, numbered_gap_pairs(rated, 3, length))


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
        self.by_convai, self.by_self = (self._made(talks, rng) for talks in (said, written))

    def _made(self, talks: Sequence[list[str]], rng: np.random.Generator) -> Source:
        texts = [text for talk in talks for text in talk]
        rated = []
        for number, talk in enumerate(talks):
            for kind, turns in (("whole", talk[:20]), ("faulty", with_faults(talk[:20], 0.4, texts, rng))):
                rating = 5.0 if kind == "whole" else 1.0
                rated.append(RatedDialogue(dialogue(f"{kind}-{number}", turns), rating, f"t{number}", "made", None))
        return _source("made", rated, None, self.work)

    def __call__(self, source: Source) -> Floats:
        made = self.by_self if source.name.startswith(CONVAI2) else self.by_convai
        return scores_by([made], [source], ("behaviour", "meaning"))[source.name]


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
    """Scores of the sources left out, by a process trained on all the others."""
    names = {source.name for source in left_out}
    return scores_by([source for source in every if source.name not in names], left_out)


def scores_by(
    inside: Sequence[Source], tested: Sequence[Source], aspects: Sequence[Aspect] = ASPECTS
) -> dict[str, Floats]:
    """Scores by a process with the default settings, the source and the user as random effects."""
    table = joined([source.table for source in inside])
    rated = [row for source in inside for row in source.rated]
    place = [source.name for source in inside for _ in source.rated]
    describer, settings = fit_describer(table, aspects), KernelSettings()
    known = describer(table)
    users = [f"{name} {group}" for name, group in zip(place, groups_of(rated), strict=True)]
    effects = settings.effect * effect_kernel(users) + SOURCE_VARIANCE * effect_kernel(place)
    ratings = np.array([row.rating for row in rated])
    kernel = likeness(known, known).kernel(settings)
    posterior = fit_process(kernel, ratings, np.full(len(rated), settings.noise), effects)
    return {
        source.name: posterior.predict(likeness(describer(source.table), known).kernel(settings)) for source in tested
    }


def compute() -> dict[str, Any]:
    """Accuracies of everything on every source, and what nested choice took."""
    work = Work(device="cpu", cache=default_cache())
    every = sources(work)
    anomaly = AnomalyScores([row for source in every if source.name.startswith(CONVAI2) for row in source.rated], work)
    free = {source.name: {name: signal(source.table) for name, signal in SIGNALS.items()} for source in every}
    for source in every:
        free[source.name][ANOMALY] = anomaly(source)
    twice = {frozenset((a.name, b.name)): scores_without((a, b), every) for a, b in combinations(every, 2)}
    found: dict[str, Any] = {"rows": {}, "chosen": {}}
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
            name: accuracy_estimate(values, test.pairs, groups=groups, n_resamples=200) for name, values in own.items()
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


def show(found: dict[str, Any]) -> None:
    """The tables, in %."""
    names = list(next(iter(found["rows"].values())))
    print("| tested on | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 1) + "|")
    for source, row in found["rows"].items():
        cells = [_cell(*row[name]) for name in names]
        print(f"| {source} | " + " | ".join(cells) + " |")
    print("\n| tested on | chosen on the other sources |\n|---|---|")
    for source, chosen in found["chosen"].items():
        print(f"| {source} | {', '.join(chosen)} |")


def _cell(value: float, low: float, high: float) -> str:
    interval = f" ({100 * low:.0f}–{100 * high:.0f})" if np.isfinite(low) else ""
    return f"{100 * value:.1f}{interval}"


def main() -> int:
    """Computes once, prints always."""
    folder = Path(sys.argv[1])
    path = folder / "sources.json"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(compute()), encoding="utf-8")
    show(json.loads(path.read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
