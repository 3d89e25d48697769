"""Which pairs meet in an arena: balance, recorded probabilities, and estimates that stay right by their weights."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from dialometer.design.arena_pairs import pair_chances
from dialometer.design.assign import build_plan, draw_session
from dialometer.design.load import check_study, load_study
from dialometer.design.templates import copy_template, template_folder
from dialometer.model.item import ArenaItem
from dialometer.model.session import PairVotes, Snapshot
from dialometer.model.study import Arena, Study
from dialometer.stats.ranking.bradley_terry import bradley_terry
from dialometer.stats.ranking.votes import Votes, win_matrix
from dialometer.storage.rows import draw_from_json, draw_to_json

STUDY = load_study(template_folder("arena"))
FOUR = ArenaItem(id="x", systems=tuple("abcd"))


def drawn(study, n):
    counts, draws = Counter(), []
    for ordinal in range(1, n + 1):
        draw = draw_session(study, Snapshot(ordinal=ordinal, item_counts=dict(counts)))
        counts.update(item for ids in draw.items.values() for item in ids)
        draws.append(draw)
    return draws


def test_balanced_pairs_meet_equally_often_in_every_item():
    draws = drawn(STUDY, 36)
    met = Counter((item, pair.systems) for draw in draws for item, pair in draw.pairs.items())
    assert len(met) == 6 * 3
    assert set(met.values()) == {6}
    assert {pair.probability for draw in draws for pair in draw.pairs.values()} == {round(1 / 3, 9)}
    assert draw_from_json(draw_to_json(draws[0])) == draws[0]
    sides = Counter(task.systems for draw in draws for task in build_plan(STUDY, draw).tasks)
    assert len(sides) == 6, "either system may be on the left"
    plan = build_plan(STUDY, draws[0])
    assert all(set(task.systems) == set(draws[0].pairs[task.item_id].systems) for task in plan.tasks)


def test_uncertain_pairs_come_more_often_and_every_pair_keeps_a_chance():
    votes = {("a", "b"): PairVotes(500, 20, 5), ("a", "c"): PairVotes(50, 48, 4)}
    chances = pair_chances(Arena(pairs="uncertain", floor=0.3), FOUR, votes)
    assert sum(chances.values()) == pytest.approx(1)
    assert min(chances.values()) >= 0.3 / 6
    assert chances["a", "b"] < chances["a", "c"] < chances["c", "d"]
    assert set(pair_chances(Arena(pairs="balanced"), FOUR, votes).values()) == {1 / 6}
    arena = STUDY.spec.arena.model_copy(update={"pairs": "uncertain"})
    study = Study(spec=STUDY.spec.model_copy(update={"arena": arena}), items=STUDY.items, texts=STUDY.texts)
    known = {("haze", "reed"): PairVotes(0, 900, 0)}
    pairs = [
        draw_session(study, Snapshot(ordinal=n, pair_votes=known)).pairs["plant"]
        for n in range(1, 200)
        if "plant" in draw_session(study, Snapshot(ordinal=n, pair_votes=known)).pairs
    ]
    assert Counter(pair.systems for pair in pairs)["haze", "reed"] < len(pairs) / 6
    assert {pair.probability for pair in pairs if pair.systems == ("haze", "reed")} == {
        round(pair_chances(arena, study.items_by_id["plant"], known)["haze", "reed"], 9)
    }


TRUTH = {("a", "b"): 0.75, ("a", "c"): 0.75, ("a", "d"): 0.5, ("b", "c"): 0.6, ("b", "d"): 0.5, ("c", "d"): 0.8}
"""Not transitive, so that no strengths fit all pairs: which pairs are drawn then matters for what is estimated."""


def collected(rng, n_votes, arena):
    """Votes one after the other, each pair drawn by what the votes before it say."""
    votes = dict.fromkeys(FOUR.pairs, PairVotes())
    rows = []
    for _ in range(n_votes):
        chances = pair_chances(arena, FOUR, votes)
        pair = FOUR.pairs[rng.choice(6, p=list(chances.values()))]
        won = rng.random() < TRUTH[pair]
        old = votes[pair]
        votes[pair] = replace(old, first=old.first + 1) if won else replace(old, second=old.second + 1)
        first, second = ("abcd".index(name) for name in pair)
        rows.append((first, second, 1 if won else -1, 1 / 6 / chances[pair]))
    first, second, outcome, weight = map(np.array, zip(*rows, strict=True))
    return Votes(tuple("abcd"), first, second, outcome, np.arange(n_votes), weight=weight)


def strengths(votes, *, is_weighted):
    fit = bradley_terry(win_matrix(votes, is_weighted=is_weighted))
    return np.array([fit.strengths[name].value for name in "abcd"])


def test_weighted_votes_estimate_what_a_draw_of_all_pairs_alike_would():
    won = np.zeros((4, 4))
    for (a, b), share in TRUTH.items():
        won["abcd".index(a), "abcd".index(b)], won["abcd".index(b), "abcd".index(a)] = share, 1 - share
    matrix = win_matrix(collected(np.random.default_rng(1), 50, Arena()))
    wanted = bradley_terry(replace(matrix, first_won=won, second_won=0 * won, tied=0 * won))
    truth = np.array([wanted.strengths[name].value for name in "abcd"])
    rng, arena = np.random.default_rng(5), Arena(pairs="uncertain", floor=0.1)
    runs = [collected(rng, 500, arena) for _ in range(24)]
    errors = {w: np.array([strengths(v, is_weighted=w) for v in runs]) - truth for w in (True, False)}
    bias = {w: float(np.abs(e.mean(axis=0)).max()) for w, e in errors.items()}
    noise = float(errors[True].std(axis=0).max()) / np.sqrt(len(runs))
    assert bias[True] < 3 * noise, bias


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("kind: arena", "kind: chat"), "only items of the kind arena"),
        (("  pairs: balanced", "  pairs: uncertain\n  floor: 0"), "arena.floor"),
        (("  messages: same", "  messages: both"), "arena.messages"),
        (("      type: scripted\n", "      type: wizard\n"), "a person cannot answer as one of two systems"),
        (
            (
                "type: pairwise\n    allow_tie: true\n    allow_both_bad: true",
                "type: spans\n    mark_categories: [{name: a}]",
            ),
            "a live conversation has none beforehand",
        ),
    ],
)
def test_what_cannot_be_held_is_refused_in_words(change, message, tmp_path):
    copy_template("arena", tmp_path / "s")
    file = tmp_path / "s" / "study.yaml"
    text = file.read_text()
    assert change[0] in text
    file.write_text(text.replace(*change))
    assert any(message in f"{problem.field}: {problem.message}" for problem in check_study(tmp_path / "s")[1])


@pytest.mark.parametrize(
    ("systems", "message"),
    [(["maple"], "two systems meet"), ("maple", "list of systems"), (["maple", "oak"], "unknown system 'oak'")],
)
def test_items_name_the_systems_that_can_meet(systems, message, tmp_path):
    copy_template("arena", tmp_path / "s")
    file = tmp_path / "s" / "items.jsonl"
    items = [json.loads(line) for line in file.read_text().splitlines()]
    items[0]["systems"] = systems
    file.write_text("\n".join(map(json.dumps, items)))
    assert any(message in problem.message for problem in check_study(tmp_path / "s")[1])
