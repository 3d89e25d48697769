"""Does an evaluator carry over to dialogues that it was not trained on? Each source apart, never only the mean.

``python -m bench.carry_over reactions MODEL --out reactions.json`` reads ConvAI2, CRSArena-Dial and self-dialogues with planted
faults by a causal language model (a name, a folder, or a folder with a GGUF file) and keeps what it expects users to say next.
That takes minutes on a GPU and hours on two processor cores; what is there already is not read again.
``python -m bench.carry_over table reactions.json`` trains the best recipe on three of ConvAI2's days and tests on the fourth, and on
all four for CRSArena-Dial, and prints how many pairs are right with the recipe, with the reactions, and with both.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench._reactions import ReactionReader, Reactions
from bench._sources import DATA, DULL, N_TURNS, convai2, dialogue
from dialometer.learned.data.measures import accuracy
from dialometer.learned.data.pairs import NumberedPairs, numbered_gap_pairs
from dialometer.learned.data.rated import clean_dialogue
from dialometer.learned.data.splits import held_out_files, rows_of
from dialometer.learned.gaussian.features import describe
from dialometer.learned.gaussian.training import fit_gaussian
from dialometer.model.dialogue import Dialogue
from dialometer.readers import read_dialogues

Floats = NDArray[np.float64]
N_PLANTED = 500
SHARES = (0.17, 0.5)
WEIGHTS = (0.25, 0.5, 1.0)
SEED = 5


def recommenders() -> list[Dialogue]:
    return list(read_dialogues(DATA / "crs_arena" / "crs_arena_dial_open.json.gz"))


def planted() -> dict[str, list[Dialogue]]:
    """Self-dialogues whose second speaker is taken for the agent: clean, and with faults in some of the agent's turns."""
    rng = np.random.default_rng(SEED)
    found = list(read_dialogues(DATA / "self_dialogue" / "dialogues.jsonl.gz"))
    chosen = [found[n] for n in rng.permutation(len(found)) if len(found[n].turns) >= 12][:N_PLANTED]
    texts = [turn.text for one in found[:6000] for turn in one.turns]
    kinds: dict[str, list[Dialogue]] = {}
    for number, one in enumerate(chosen):
        said = [turn.text for turn in one.turns[:N_TURNS]]
        for kind, turns in _faulty(said, texts, rng).items():
            kinds.setdefault(kind, []).append(dialogue(f"{number}-{kind}", turns))
    return kinds


def _faulty(said: list[str], texts: Sequence[str], rng: np.random.Generator) -> dict[str, list[str]]:
    agent = list(range(1, len(said), 2))
    faulty = {"clean": said}
    for share in SHARES:
        n = max(1, round(share * len(agent)))
        strange, again, dull = list(said), list(said), list(said)
        for place in rng.choice(agent, n, replace=False):
            strange[place] = texts[rng.integers(len(texts))]
        for place in rng.choice(agent[1:], min(n, len(agent) - 1), replace=False):
            again[place] = again[int(rng.choice([earlier for earlier in agent if earlier < place]))]
        for place in rng.choice(agent, n, replace=False):
            dull[place] = str(rng.choice(DULL))
        faulty |= {
            f"of other dialogues, {share:.0%}": strange,
            f"repeated, {share:.0%}": again,
            f"dull, {share:.0%}": dull,
        }
    faulty["in another order"] = list(said)
    for place, other in zip(agent, rng.permutation(agent), strict=True):
        faulty["in another order"][place] = said[int(other)]
    return faulty


def everything() -> dict[str, Dialogue]:
    """All dialogues that are read, by a name that says their source."""
    found = {f"convai2/{one.id}": clean_dialogue(one.dialogue) for one in convai2()}
    found |= {f"crs_arena/{one.id}": clean_dialogue(one) for one in recommenders()}
    return found | {f"planted/{one.id}": one for kind in planted().values() for one in kind}


def read_reactions(model: str, out: Path, device: str) -> None:
    """Reads what is not there yet; kept every 200 dialogues, so that it can be interrupted."""
    kept: dict[str, list[list[float]]] = json.loads(out.read_text(encoding="utf-8")) if out.is_file() else {}
    left = {name: found for name, found in everything().items() if name not in kept}
    found = ReactionReader.load(model, device).read(left) if left else ()
    for number, (name, reactions) in enumerate(found, start=1):
        kept[name] = reactions.lifts.round(5).tolist()
        if number % 200 == 0 or number == len(left):
            part = out.with_suffix(".part")
            part.write_text(json.dumps(kept), encoding="utf-8")
            part.replace(out)
            print(f"{number} of {len(left)}", flush=True)


def show_table(path: Path) -> None:
    """Pairs that are right in every source, in %."""
    kept = {name: Reactions(np.array(lifts)) for name, lifts in json.loads(path.read_text(encoding="utf-8")).items()}
    rated, chats = convai2(), recommenders()
    table = describe([*(one.dialogue for one in rated), *chats])
    place = {one.id: number for number, one in enumerate(rated)}
    heads = ["the best recipe", "praise − complaints", "complaints", *(f"recipe + {w:g} (p − c)" for w in WEIGHTS)]
    print("| tested on | pairs | " + " | ".join(heads) + " |\n" + "|---" * (len(heads) + 2) + "|")
    for split in held_out_files(rated):
        test = rows_of(rated, split.test)
        left = {one.id for one in test}
        train = [one for one in rated if one.id not in left]
        fitted = fit_gaussian(train, table=table.rows([place[one.id] for one in train]))
        scores = fitted.evaluator.score_table(table.rows([place[one.id] for one in test])).values
        reactions = [kept[f"convai2/{one.id}"] for one in test]
        _show(f"ConvAI2, {split.name}", scores, reactions, numbered_gap_pairs(test, 3, 2))
    fitted = fit_gaussian(rated, table=table.rows(range(len(rated))))
    scores = fitted.evaluator.score_table(table.rows(range(len(rated), len(rated) + len(chats)))).values
    _show("CRSArena-Dial", scores, [kept[f"crs_arena/{chat.id}"] for chat in chats], _felt(chats))
    kinds = planted()
    clean = _of(kinds["clean"], kept)
    for kind, dialogues in kinds.items():
        if kind != "clean":
            reactions = [*clean, *_of(dialogues, kept)]
            pairs = NumberedPairs(np.arange(len(clean)), np.arange(len(clean)) + len(clean))
            _show(f"responses {kind}", None, reactions, pairs)


def _of(dialogues: Sequence[Dialogue], kept: dict[str, Reactions]) -> list[Reactions]:
    return [kept[f"planted/{one.id}"] for one in dialogues]


def _felt(chats: Sequence[Dialogue]) -> NumberedPairs:
    """Each satisfied user beside each frustrated one."""
    feelings = np.array([chat.metadata["sentiment"] for chat in chats])
    good, bad = np.flatnonzero(feelings == "satisfied"), np.flatnonzero(feelings == "frustrated")
    return NumberedPairs(np.repeat(good, len(bad)), np.tile(bad, len(good)))


def _show(name: str, recipe: Floats | None, reactions: Sequence[Reactions], pairs: NumberedPairs) -> None:
    complaints = np.array([-one.complaints for one in reactions])
    balance = np.array([one.praise - one.complaints for one in reactions])
    rows = [recipe, balance, complaints]
    rows += [None if recipe is None else _z(recipe) + weight * _z(balance) for weight in WEIGHTS]
    cells = ["" if row is None else f"{100 * accuracy(row, pairs):.1f}" for row in rows]
    print(f"| {name} | {len(pairs):,} | " + " | ".join(cells) + " |", flush=True)


def _z(values: Floats) -> Floats:
    return np.asarray((values - values.mean()) / values.std())


def main() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    reading = commands.add_parser("reactions")
    reading.add_argument("model")
    reading.add_argument("--out", type=Path, required=True)
    reading.add_argument("--device", default="cpu")
    commands.add_parser("table").add_argument("reactions", type=Path)
    given = parser.parse_args()
    if given.command == "table":
        show_table(given.reactions)
    else:
        read_reactions(given.model, given.out, given.device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
