"""Rows of the table of evaluators, bots told by their style, and the command that measures them."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from commands import result_of
from dialometer.learned.data.measures import accuracy
from dialometer.learned.data.pairs import numbered_gap_pairs
from dialometer.learned.data.rated import RatedDialogue
from dialometer.learned.data.splits import bot_styles, held_out_bots, held_out_files
from dialometer.learned.experiments.plain_rows import gaussian_rows
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.neural.work import QUIET
from dialometer.readers import write_dialogues

GOOD = ["That is great, tell me more", "Haha you are funny", "I love that too", "Really interesting!", "Nice, I agree"]
BAD = ["You already said that", "That makes no sense", "Stop repeating yourself", "what?", "Are you a bot?"]
TALK = ["I like hiking", "My sister paints", "It rained all day", "I cook on Sundays", "We went to the lake", "I read"]
STYLES = {"plain": "{}.", "spaced": "{} , and you ?", "happy": "{}!!! 😀😀"}


def talks(n, seed=0):
    rng = np.random.default_rng(seed)
    found = []
    for number in range(n):
        quality = rng.random()
        style = list(STYLES)[number % 3]
        turns = []
        for _ in range(int(rng.integers(3, 7))):
            is_good = rng.random() < quality
            said = TALK[rng.integers(6)] if is_good else TALK[0]
            turns.append(Turn("Agent", STYLES[style].format(said.lower() if style == "spaced" else said), "agent"))
            turns.append(Turn("User", (GOOD if is_good else BAD)[rng.integers(5)], "user"))
        rating = float(np.clip(np.round(1 + 4 * quality + rng.normal() * 0.3), 1, 5))
        dialogue = Dialogue(f"d{number}", tuple(turns), {"rating": rating, "user": f"u{number % 40}"})
        found.append(RatedDialogue(dialogue, rating, f"u{number % 40}", f"day{number // (n // 2)}", None))
    return found


@pytest.fixture(scope="module")
def rated():
    return talks(200)


def test_every_row_orders_pairs(rated):
    train, test = rated[:140], rated[140:]
    pairs = numbered_gap_pairs(test, 3)
    rows = {one.row.name: one for one in gaussian_rows(rated, QUIET)}
    wanted = ("approval", "best-meaning", "best-words-behaviour", "best-weighted", "best-lowest", "best-random")
    for name in wanted:
        assert accuracy(rows[name].score(train, test), pairs) > 0.8, name


def test_bots_are_told_by_their_style(rated):
    found = bot_styles(rated, n_styles=3)
    for style in set(found):
        true = Counter(n % 3 for n, own in enumerate(found) if own == style)
        assert true.most_common(1)[0][1] / true.total() > 0.95
    named = [replace(one, bot=f"bot {n % 2}") for n, one in enumerate(rated)]
    assert bot_styles(named) == [f"bot {n % 2}" for n in range(200)]


def test_a_held_out_bot_is_in_no_training(rated):
    named = [replace(one, bot=f"bot {n % 2}", user=None) for n, one in enumerate(rated)]
    by_id = {one.id: one for one in named}
    splits = held_out_bots(named)
    assert [split.name for split in splits] == ["bot 0", "bot 1"]
    for split in splits:
        assert {by_id[name].bot for name in split.test} == {split.name}
        assert split.name not in {by_id[name].bot for name in (*split.train, *split.development, *split.stopping)}
    assert [split.name for split in held_out_files(named)] == ["day0", "day1"]


def test_the_command_prints_and_keeps_the_table(tmp_path, rated):
    folder = tmp_path / "talks"
    folder.mkdir()
    write_dialogues(folder / "a.jsonl", [one.dialogue for one in rated[:100]])
    write_dialogues(folder / "b.jsonl", [one.dialogue for one in rated[100:]])
    arguments = ["learn", "evaluate", str(folder), "--splits", "2", "--no-parts", "--out", str(tmp_path / "out")]
    done = result_of(*arguments, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout[done.stdout.index("{\n") :])
    best = next(line for line in found["grouped"] if line["row"] == "best")
    assert best["accuracy"]["wide"] > 0.8
    assert best["n_runs"] == 2
    assert "tfidf-ridge" in best["differences"]
    assert (tmp_path / "out" / "table.md").read_text().count("| row |") == len(found)
    assert (
        (tmp_path / "out" / "table.md")
        .read_text()
        .startswith("Accuracies in %, means over splits ± one standard error")
    )
    again = result_of(*arguments)
    assert again.exit_code == 0
    assert "the best" in again.stdout
    assert "the pairs of all splits together" in again.stdout
