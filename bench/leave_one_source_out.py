"""What carries over to a source of dialogues that nothing was trained or chosen on? Each source apart, never only the mean.

Sources: the four days of ConvAI2, CRSArena-Dial, self-dialogues with planted faults and simulated talks (``bench/_sources.py``).
For each, an evaluator learns from the ratings of all others, with the source as a random effect in the kernel (what people of a
source add to all ratings is summed out); beside it stand signals that need no ratings, some of them read by a language model. What
is added up is chosen by nested leave-one-source-out: signals are added one after the other as long as the mean accuracy over the
*other* sources grows, each of them scored by a model that has seen neither it nor the source that is tested. Then each of
ConvAI2's bots (told apart by their style) and each of CRSArena's is a source: the evaluator learns from everything but its dialogues
and those of its users.

``python -m bench.leave_one_source_out read MODEL --shard 0/3`` lets a causal language model read all dialogues and keeps its signals
(minutes on a GPU), ``join`` puts the shards into a file beside this one; ``run FOLDER`` computes what is not in the folder and prints
the tables.
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

from bench._reactions import ReactionReader
from bench._sources import convai2, dialogue, planted, recommenders, self_dialogues, simulated, with_faults
from dialometer.learned.data.measures import accuracy, accuracy_estimate
from dialometer.learned.data.pairs import NumberedPairs, numbered_gap_pairs
from dialometer.learned.data.rated import RatedDialogue, clean_dialogue
from dialometer.learned.data.splits import bot_styles, groups_of
from dialometer.learned.gaussian.behaviour import words_of
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
from dialometer.learned.gaussian.word_lists import DENIALS
from dialometer.model.dialogue import Dialogue
from dialometer.neural.work import Work, default_cache

Floats = NDArray[np.float64]
N_MADE = 300
SIGNAL_FILE = Path(__file__).with_name("language_model_signals.json")
MIN_PAIRS = 100
"""Of a bot that is reported."""
SEED = 22
SOURCE_VARIANCE = 30.0
N_ANOMALIES = 400
RECIPE, ANOMALY, TOGETHER = "ratings of all other sources", "learned anomaly", "chosen together"
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


def thoughts_on(reader: ReactionReader, chat: Dialogue) -> list[float]:
    """What a language model thinks of a dialogue, in the order of ``READ``; nothing where no response was said."""
    lifts, replies = reader.read(chat), reader.read_replies(chat)
    if not len(replies):
        return []
    return [
        -lifts.complaints,
        lifts.praise - lifts.complaints,
        -lifts.complaints_throughout,
        -lifts.contradictions,
        float(replies[:, 0].mean()),
        float((replies[:, 0] - replies[:, 1]).mean()),
    ]


def read_signals(model: str, shard: str, device: str) -> None:
    """Every n-th dialogue of all sources, into a file of its own; ``join_shards`` puts them together."""
    number, n = (int(part) for part in shard.split("/"))
    reader = ReactionReader.load(model, device)
    out = SIGNAL_FILE.with_suffix(f".{number}.json")
    found = {}
    for chat in all_dialogues()[number::n]:
        if thoughts := thoughts_on(reader, clean_dialogue(chat)):
            found[chat.id] = [float(f"{value:.4g}") for value in thoughts]
    out.write_text(json.dumps(found), encoding="utf-8")


def join_shards() -> None:
    """One file of what the shards hold."""
    paths = sorted(SIGNAL_FILE.parent.glob(f"{SIGNAL_FILE.stem}.*.json"))
    found = {name: row for path in paths for name, row in json.loads(path.read_text(encoding="utf-8")).items()}
    lines = (f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(found.items()))
    SIGNAL_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def all_dialogues() -> list[Dialogue]:
    """Of all sources."""
    rated = [*convai2(), *recommenders(), *planted(N_MADE, SEED, 0, 2000), *simulated(N_MADE, SEED)]
    return [row.dialogue for row in rated]


def read_by_model(rated: Sequence[RatedDialogue]) -> dict[str, Floats]:
    """The language model's signals of some dialogues, where it has read them; the mean where it could not read one."""
    if not SIGNAL_FILE.is_file():
        return {}
    known = json.loads(SIGNAL_FILE.read_text(encoding="utf-8"))
    rows = np.array([known.get(row.id, [np.nan] * len(READ)) for row in rated])
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
        return scores_by([made], [source], ("behaviour", "meaning"))[source.name]


def scores_without(left_out: Sequence[Source], every: Sequence[Source]) -> dict[str, Floats]:
    """Scores of the sources left out, by a process trained on all the others."""
    names = {source.name for source in left_out}
    return scores_by([source for source in every if source.name not in names], left_out)


def scores_by(
    inside: Sequence[Source], tested: Sequence[Source], aspects: Sequence[Aspect] = ASPECTS
) -> dict[str, Floats]:
    """Scores by a process with the default settings, the source and the user as random effects."""
    table = FeatureTable.joined([source.table for source in inside])
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


def signals_of(source: Source) -> dict[str, Floats]:
    """All signals that need no ratings, but the learned anomaly."""
    found = {name: signal(source.table) for name, signal in SIGNALS.items()}
    found["no contradiction in words"] = np.array([-contradiction(row.dialogue) for row in source.rated])
    return found | read_by_model(source.rated)


def compute() -> dict[str, Any]:
    """Accuracies of everything on every source, and what nested choice took."""
    work = Work(device="cpu", cache=default_cache())
    every = sources(work)
    anomaly = AnomalyScores([row for source in every if source.name.startswith(CONVAI2) for row in source.rated], work)
    free = {source.name: signals_of(source) for source in every}
    for source in every:
        free[source.name][ANOMALY] = anomaly(source)
    twice = {frozenset((a.name, b.name)): scores_without((a, b), every) for a, b in combinations(every, 2)}
    found: dict[str, Any] = {"rows": {}, "chosen": {}, "bots": bots(every, free)}
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


def bots(every: Sequence[Source], free: dict[str, dict[str, Floats]]) -> dict[str, dict[str, Any]]:
    """Each bot with enough pairs: ratings of all other bots and sources, without its users, and the signals without ratings."""
    found: dict[str, dict[str, Any]] = {}
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
            values[RECIPE] = scores_by(others, [tested])[tested.name]
            found[tested.name] = {"n": len(inside), "n_pairs": len(tested.pairs)} | {
                name: accuracy(value, tested.pairs) for name, value in values.items()
            }
    return found


def _rows(
    name: str, rated: Sequence[RatedDialogue], table: FeatureTable, rows: NDArray[np.int64], length: int | None
) -> Source:
    some = [rated[int(n)] for n in rows]
    return Source(name, some, table.rows(rows), numbered_gap_pairs(some, 3, length))


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
    """The tables, in %: a row for each signal, a column for each source."""
    tested = list(found["rows"])
    names = list(next(iter(found["rows"].values())))
    print("| signal | " + " | ".join(tested) + " |\n" + "|---" * (len(tested) + 1) + "|")
    for name in names:
        print(f"| {name} | " + " | ".join(_cell(*found["rows"][source][name]) for source in tested) + " |")
    print("\n| tested on | chosen on the other sources |\n|---|---|")
    for source, chosen in found["chosen"].items():
        print(f"| {source} | {', '.join(chosen)} |")
    shown = [RECIPE, *SIGNALS, *(name for name in READ if name in names)]
    print("\n| bot held out | dialogues | pairs | " + " | ".join(shown) + " |\n" + "|---" * (len(shown) + 3) + "|")
    for bot, row in found["bots"].items():
        cells = " | ".join(f"{100 * row[name]:.1f}" for name in shown)
        print(f"| {bot} | {row['n']} | {row['n_pairs']:,} | {cells} |")


def _cell(value: float, low: float, high: float) -> str:
    interval = f" ({100 * low:.0f}–{100 * high:.0f})" if np.isfinite(low) else ""
    return f"{100 * value:.1f}{interval}"


def main() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    reading = commands.add_parser("read")
    reading.add_argument("model")
    reading.add_argument("--shard", default="0/1")
    reading.add_argument("--device", default="cpu")
    commands.add_parser("join")
    commands.add_parser("run").add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.command == "read":
        read_signals(given.model, given.shard, given.device)
    elif given.command == "join":
        join_shards()
    else:
        path = given.folder / "sources.json"
        if not path.is_file():
            given.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(compute()), encoding="utf-8")
        show(json.loads(path.read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
