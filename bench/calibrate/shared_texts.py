"""python -m bench.calibrate.shared_texts: false claims where pairs are no separate items, without any true difference.

A benchmark puts every two systems against each other on the same prompts, and a study of transcripts shows each of them in several
pairs. Four equal systems, whose responses to a prompt (or dialogues) differ in quality, are compared by votes; counted is how often
any two of them differ significantly, with every pair taken as an item of its own, and with what was really drawn.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np

from bench.calibrate.table import ALPHA, Rate
from dialometer.analysis.base.family import Options
from dialometer.analysis.families.votes.vote_model import vote_model
from dialometer.stats.ranking.votes import FIRST, SECOND, Votes

SEED = 20261117
SYSTEMS = ("a", "b", "c", "d")
OPTIONS = Options(0.95, 2000, 1, "holm")
Pair = tuple[int, int, int, int]
"""Two systems, each with the number of its text."""


def every_two(n_prompts: int) -> list[Pair]:
    """Every two systems on every prompt; the number of a text is that of its prompt."""
    return [(a, q, b, q) for q in range(n_prompts) for a, b in combinations(range(len(SYSTEMS)), 2)]


def chains(n_topics: int, rng: np.random.Generator) -> list[Pair]:
    """One dialogue of each system about every topic, each with the next one, as in the template *acute*."""
    orders = [rng.permutation(len(SYSTEMS)).tolist() for _ in range(n_topics)]
    return [(a, topic, b, topic) for topic, order in enumerate(orders) for a, b in pairwise(order)]


def any_two(n_texts: int, n_uses: int, rng: np.random.Generator) -> list[Pair]:
    """Dialogues of two systems put together at random, each in so many pairs."""
    left = [(system, text) for system in range(len(SYSTEMS)) for text in range(n_texts) for _ in range(n_uses)]
    left = [left[k] for k in rng.permutation(len(left))]
    pairs: list[Pair] = []
    while left:
        one = left.pop()
        other = next((k for k in reversed(range(len(left))) if left[k][0] != one[0]), None)
        if other is not None:
            pairs.append((*one, *left.pop(other)))
    return pairs


def votes_of(pairs: list[Pair], n_raters: int, per_rater: int, text_sd: float, rng: np.random.Generator) -> Votes:
    """What raters say who see only the texts: each rater votes on some of the pairs, in a random order of sides."""
    quality = rng.normal(scale=text_sd, size=(len(SYSTEMS), 1 + max(max(pair[1], pair[3]) for pair in pairs)))
    item = np.concatenate([rng.permutation(len(pairs))[:per_rater] for _ in range(n_raters)])
    shown = np.array(pairs)[item]
    shown = np.where(rng.random(len(item))[:, None] < 0.5, shown, shown[:, [2, 3, 0, 1]])
    first, text_first, second, text_second = shown.T
    ahead = 1 / (1 + np.exp(quality[second, text_second] - quality[first, text_first]))
    outcome = np.where(rng.random(len(item)) < ahead, FIRST, SECOND)
    n_texts = quality.shape[1]
    return Votes(
        SYSTEMS, first, second, outcome, np.arange(len(item)), tuple(map(str, range(n_raters))),
        np.repeat(np.arange(n_raters), per_rater), tuple(map(str, range(len(pairs)))), item,
        prompt=text_first, text=np.column_stack([first * n_texts + text_first, second * n_texts + text_second]),
    )  # fmt: skip


DESIGNS = (
    ("every two systems on 15 prompts", "prompt", 30, 30, 0.6),
    ("every two systems on 40 prompts", "prompt", 60, 30, 0.6),
    ("transcripts in two pairs at most (*acute*)", "chain", 15, 8, 0.6),
    ("the same, more votes and larger differences", "chain", 60, 8, 0.8),
    ("20 transcripts a system in 4 pairs each", "any", 40, 20, 0.6),
    ("20 transcripts a system in 8 pairs each", "any", 80, 20, 0.8),
)


def drawn(name: str, kind: str, rng: np.random.Generator) -> list[Pair]:
    """The pairs of a design."""
    number = int(next(word for word in name.split() if word.isdigit())) if kind == "prompt" else 8
    if kind == "prompt":
        return every_two(number)
    return chains(number, rng) if kind == "chain" else any_two(20, 4 if " 4 " in name else 8, rng)


def is_claimed(votes: Votes) -> bool:
    """Whether any two systems differ, after correction for all pairs."""
    model = vote_model(votes, OPTIONS, is_order_drawn=True)
    return bool(model.differ(model.contrasts).p_value <= ALPHA)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.calibrate.shared_texts", description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    print("| design | raters | votes each | SD of texts | every pair an item | as drawn |\n|---|---|---|---|---|---|")
    for number, (name, kind, n_raters, per_rater, text_sd) in enumerate(DESIGNS):
        rng = np.random.default_rng([given.seed, number])
        counts = np.zeros(2, dtype=int)
        for _ in range(given.studies):
            votes = votes_of(drawn(name, kind, rng), n_raters, per_rater, text_sd, rng)
            real = votes if kind == "prompt" else replace(votes, prompt=None)
            counts += [is_claimed(replace(votes, prompt=None, text=None)), is_claimed(real)]
        shown = " | ".join(str(Rate(int(count), given.studies)) for count in counts)
        print(f"| {name} | {n_raters} | {per_rater} | {text_sd:g} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
