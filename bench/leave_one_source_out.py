"""What carries over to a source of dialogues that nothing was trained or chosen on? Each source apart, never only the mean.

Sources: the four days of ConvAI2, CRSArena-Dial, self-dialogues with planted faults and simulated talks (``bench/_sources.py``).
For each, an evaluator learns from the ratings of all others, with the source as a random effect in the kernel (what people of a
source add to all ratings is summed out); beside it stand signals that need no ratings, some of them read by a language model. What
is added up is chosen by nested leave-one-source-out: signals are added one after the other as long as the mean accuracy over the
*other* sources grows, each of them scored by a model that has seen no rating of it and nothing of the source that is tested. Then
each of ConvAI2's bots (told apart by their style) and each of CRSArena's is a source: the evaluator learns from everything but its
dialogues and those of its users.

``python -m bench.leave_one_source_out read FOLDER MODEL --device cuda`` lets a causal language model read the dialogues that are not
in the folder yet and keeps its signals as they come; ``run FOLDER`` computes what is not in the folder, with these signals
where there are any, and prints the tables.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench._reactions import ReactionReader, Reactions
from bench._sources import convai2, dialogue, planted, recommenders, self_dialogues, simulated, with_faults
from dialometer.learned.data.measures import accuracy, accuracy_difference, accuracy_estimate
from dialometer.learned.data.pairs import NumberedPairs, numbered_gap_pairs
from dialometer.learned.data.rated import RatedDialogue, clean_dialogue
from dialometer.learned.data.splits import bot_styles, groups_of
from dialometer.learned.gaussian.behaviour import words_of
from dialometer.learned.gaussian.features import FeatureTable, describe
from dialometer.learned.gaussian.kernel import (
    ASPECTS,
    Aspect,
    Described,
    Describer,
    KernelSettings,
    Posterior,
    effect_kernel,
    fit_describer,
    fit_process,
    likeness,
)
from dialometer.learned.gaussian.word_lists import DENIALS
from dialometer.model.dialogue import Dialogue
from dialometer.neural.work import Work, default_cache

Floats = NDArray[np.float64]
N_MADE = 300
SIGNAL_FILE = "language-model.jsonl"
MIN_PAIRS = 100
"""Of a bot that is reported."""
SEED = 22
SOURCE_VARIANCE = 30.0
N_ANOMALIES = 400
_SETTINGS = KernelSettings()
RECIPE, FAR, ANOMALY = "ratings of all other sources", "ratings of other kinds of sources", "learned anomaly"
TOGETHER, WITHOUT_MODEL = "chosen together", "chosen together without LM"
CONVAI2, ARENA = "ConvAI2", "CRSArena-Dial"


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
    for day in sorted({row.source for row in rated}):
        own = [row for row in rated if row.source == day]
        found.append(_source(f"ConvAI2, {int(day[15:17])} July", own, 2, work))
    chats, faulty, talks = recommenders(), planted(N_MADE, SEED, 0, 2000), simulated(N_MADE, SEED)
    made = {ARENA: chats, "self-dialogues with faults": faulty, "simulated talks": talks}
    return [*found, *(_source(name, own, None, work) for name, own in made.items())]


def _source(name: str, rated: list[RatedDialogue], length: int | None, work: Work) -> Source:
    table = describe([row.dialogue for row in rated], work)
    return Source(name, rated, table, numbered_gap_pairs(rated, 3, length))


def _column(table: FeatureTable, name: str) -> Floats:
    if name in table.behaviour_names:
        return np.asarray(table.behaviour[:, table.behaviour_names.index(name)])
    return np.asarray(table.meaning[:, table.meaning_names.index(name)])


def contradiction(chat: Dialogue) -> float:
    """How alike in words two responses are of which one denies: the most over all pairs of the agent's turns."""
    said = [frozenset(words_of(turn.text)) for turn in chat.said_by("agent")]
    most = 0.0
    for first, second in combinations(said, 2):
        if bool(first & DENIALS) != bool(second & DENIALS):
            a, b = first - DENIALS, second - DENIALS
            most = max(most, len(a & b) / max(1, len(a | b)))
    return most


READ = (
    "complaints unlikely (LM)",
    "praise − complaints (LM)",
    "complaints unlikely throughout (LM)",
    "contradiction unlikely (LM)",
    "likely replies (LM)",
    "replies likelier after the dialogue (LM)",
)


def thoughts(found: Reactions) -> list[float]:
    """What a language model thinks of a dialogue, in the order of ``READ``; nothing where no response was said."""
    if not len(found.replies):
        return []
    return [
        -found.complaints,
        found.praise - found.complaints,
        -found.complaints_throughout,
        -found.contradictions,
        float(found.replies[:, 0].mean()),
        float((found.replies[:, 0] - found.replies[:, 1]).mean()),
    ]


def read_signals(folder: Path, model: str, device: str) -> None:
    """Of the dialogues whose signals are not in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    known = kept_signals(folder)
    left = {chat.id: clean_dialogue(chat) for chat in all_dialogues() if chat.id not in known}
    with (folder / SIGNAL_FILE).open("a", encoding="utf-8") as out:
        for name, found in ReactionReader.load(model, device).read(left):
            out.write(json.dumps([name, *(float(f"{value:.4g}") for value in thoughts(found))]) + "\n")
            out.flush()


def kept_signals(folder: Path) -> dict[str, list[float]]:
    """The language model's signals of each dialogue that it has read."""
    path = folder / SIGNAL_FILE
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {name: row for name, *row in map(json.loads, lines)}


def all_dialogues() -> list[Dialogue]:
    """Of all sources."""
    rated = [*convai2(), *recommenders(), *planted(N_MADE, SEED, 0, 2000), *simulated(N_MADE, SEED)]
    return [row.dialogue for row in rated]


def read_by_model(rated: Sequence[RatedDialogue], known: dict[str, list[float]]) -> dict[str, Floats]:
    """The language model's signals of some dialogues, where it has read any; the mean where it could not read one."""
    if not known:
        return {}
    rows = np.array([known[row.id] or [np.nan] * len(READ) for row in rated])
    rows = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)
    return dict(zip(READ, rows.T, strict=True))


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
        return Training.on([made], ("behaviour", "meaning")).scores(source)


@dataclass(frozen=True)
class Training:
    """Rated dialogues of some sources in the kernel with the default settings, the source and the user as random effects."""

    describer: Describer
    described: Described
    places: NDArray[np.str_]
    """The source of each dialogue."""
    ratings: Floats
    kernel: Floats
    effects: Floats

    @classmethod
    def on(cls, inside: Sequence[Source], aspects: Sequence[Aspect] = ASPECTS) -> Training:
        """Words and features are weighed by these dialogues alone."""
        table = FeatureTable.joined([source.table for source in inside])
        rated = [row for source in inside for row in source.rated]
        places = [source.name for source in inside for _ in source.rated]
        describer = fit_describer(table, aspects)
        known = describer(table)
        users = [f"{name} {group}" for name, group in zip(places, groups_of(rated), strict=True)]
        effects = _SETTINGS.effect * effect_kernel(users) + SOURCE_VARIANCE * effect_kernel(places)
        ratings = np.array([row.rating for row in rated])
        kernel = likeness(known, known).kernel(_SETTINGS)
        return cls(describer, known, np.array(places), ratings, kernel, effects)

    def scores(self, tested: Source) -> Floats:
        """Of another source."""
        cross = likeness(self.describer(tested.table), self.described).kernel(_SETTINGS)
        return self._fitted(np.arange(len(self.ratings))).predict(cross)

    def scores_without(self, name: str) -> Floats:
        """Of one of these sources, from the ratings of the others."""
        inside, tested = np.flatnonzero(self.places != name), np.flatnonzero(self.places == name)
        return self._fitted(inside).predict(self.kernel[np.ix_(tested, inside)])

    def _fitted(self, rows: NDArray[np.int64]) -> Posterior:
        block = np.ix_(rows, rows)
        noise = np.full(len(rows), _SETTINGS.noise)
        return fit_process(self.kernel[block], self.ratings[rows], noise, self.effects[block])


def signals_of(source: Source, known: dict[str, list[float]]) -> dict[str, Floats]:
    """All signals that need no ratings, but the learned anomaly."""
    found = {name: signal(source.table) for name, signal in SIGNALS.items()}
    found["no contradiction in words"] = np.array([-contradiction(row.dialogue) for row in source.rated])
    return found | read_by_model(source.rated, known)


def compute(folder: Path) -> dict[str, Any]:
    """Accuracies of everything on every source, and what nested choice took; the folder may hold a language model's signals."""
    work = Work(device="cpu", cache=default_cache())
    every = sources(work)
    anomaly = AnomalyScores([row for source in every if source.name.startswith(CONVAI2) for row in source.rated], work)
    known = kept_signals(folder)
    free = {source.name: signals_of(source, known) for source in every}
    for source in every:
        free[source.name][ANOMALY] = anomaly(source)
    found: dict[str, Any] = {"rows": {}, "gains": {}, "chosen": {}, "bots": bots(every, free)}
    for test in every:
        others = [source for source in every if source.name != test.name]
        far = [source for source in others if _kind(source.name) != _kind(test.name)]
        training = Training.on(others)
        inner = {one.name: free[one.name] | {RECIPE: training.scores_without(one.name)} for one in others}
        pairs = {source.name: source.pairs for source in others}
        own = free[test.name] | {RECIPE: training.scores(test)}
        chosen = {TOGETHER: choose(inner, pairs, list(own))}
        if known:
            chosen[WITHOUT_MODEL] = choose(inner, pairs, [name for name in own if name not in READ])
        own |= {way: added(own, names) for way, names in chosen.items()}
        own[FAR] = (training if len(far) == len(others) else Training.on(far)).scores(test)
        found["rows"][test.name] = {name: _estimate(values, test) for name, values in own.items()}
        if known:
            gain = accuracy_difference(
                [own[TOGETHER]], [own[WITHOUT_MODEL]], [test.pairs], groups=groups_of(test.rated)
            )
            found["gains"][test.name] = [gain.value, gain.low, gain.high]
        found["chosen"][test.name] = chosen
        print(test.name, flush=True)
    return found


def bots(every: Sequence[Source], free: dict[str, dict[str, Floats]]) -> dict[str, dict[str, list[float]]]:
    """Each bot with enough pairs: ratings of all other bots and sources, without its users, and the signals without ratings."""
    found: dict[str, dict[str, list[float]]] = {}
    groups = {
        CONVAI2: [one for one in every if one.name.startswith(CONVAI2)],
        ARENA: [one for one in every if one.name == ARENA],
    }
    for place, own in groups.items():
        rated = [row for source in own for row in source.rated]
        table = FeatureTable.joined([source.table for source in own])
        signals = {name: np.concatenate([free[source.name][name] for source in own]) for name in free[own[0].name]}
        names = bot_styles(rated) if place == CONVAI2 else [row.id.rpartition("_")[0] for row in rated]
        people = groups_of(rated)
        for bot in sorted(set(names)):
            inside = np.array([n for n, name in enumerate(names) if name == bot])
            touched = {people[n] for n in inside}
            rest = np.array([n for n, group in enumerate(people) if group not in touched and names[n] != bot])
            tested = _rows(f"{place}, {bot}", rated, table, inside, 2 if place == CONVAI2 else None)
            if len(tested.pairs) < MIN_PAIRS or len(rest) < MIN_PAIRS:
                continue
            others = [one for one in every if one not in own] + [_rows(place, rated, table, rest, None)]
            values = {name: signal[inside] for name, signal in signals.items()}
            values[RECIPE] = Training.on(others).scores(tested)
            column = f"{tested.name}: {len(inside)} dialogues, {len(tested.pairs):,} pairs"
            found[column] = {name: _estimate(value, tested) for name, value in values.items()}
    return found


def _estimate(scores: Floats, tested: Source) -> list[float]:
    """The share of pairs that are right, with its interval over users or blocks."""
    one = accuracy_estimate(scores, tested.pairs, groups=groups_of(tested.rated), n_resamples=200)
    return [one.value, one.low, one.high]


def _rows(
    name: str, rated: Sequence[RatedDialogue], table: FeatureTable, rows: NDArray[np.int64], length: int | None
) -> Source:
    some = [rated[int(n)] for n in rows]
    return Source(name, some, table.rows(rows), numbered_gap_pairs(some, 3, length))


def _kind(source: str) -> str:
    """ConvAI2's days are of one kind."""
    return source.partition(",")[0]


def choose(signals: dict[str, dict[str, Floats]], pairs: dict[str, NumberedPairs], names: Sequence[str]) -> list[str]:
    """Signals added while the mean accuracy over sources grows by more than half a point, ConvAI2's days counting as one source."""

    def mean(chosen: list[str]) -> float:
        right: dict[str, list[float]] = {}
        for source, own in signals.items():
            right.setdefault(_kind(source), []).append(accuracy(added(own, chosen), pairs[source]))
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
    """The tables, in %: a row for each signal, a column for each source."""
    _show_rows(found["rows"])
    if found["gains"]:
        cells = (_cell(*gain, sign="+") for gain in found["gains"].values())
        print("| chosen together, what LM adds | " + " | ".join(cells) + " |")
    ways = list(next(iter(found["chosen"].values())))
    print("\n| tested on | " + " | ".join(ways) + " |\n" + "|---" * (len(ways) + 1) + "|")
    for source, chosen in found["chosen"].items():
        print(f"| {source} | " + " | ".join(", ".join(chosen[way]) for way in ways) + " |")
    print()
    _show_rows(found["bots"])


def _show_rows(columns: dict[str, dict[str, list[float]]]) -> None:
    print("| signal | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    for name in next(iter(columns.values())):
        print(f"| {name} | " + " | ".join(_cell(*own[name]) for own in columns.values()) + " |")


def _cell(value: float, low: float, high: float, *, sign: str = "") -> str:
    interval = f" ({100 * low:{sign}.0f} to {100 * high:{sign}.0f})" if np.isfinite(low) else ""
    return f"{100 * value:{sign}.1f}{interval}"


def main() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    reading = commands.add_parser("read")
    reading.add_argument("folder", type=Path)
    reading.add_argument("model")
    reading.add_argument("--device", default="cpu")
    commands.add_parser("run").add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.command == "read":
        read_signals(given.folder, given.model, given.device)
    else:
        path = given.folder / "sources.json"
        if not path.is_file():
            given.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(compute(given.folder)), encoding="utf-8")
        show(json.loads(path.read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
