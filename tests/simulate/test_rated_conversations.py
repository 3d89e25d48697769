"""Simulated rated conversations: their truth is in their words, careless ratings are not, and a seed gives the same again."""

from collections import defaultdict

import numpy as np
import pytest

from dialometer.errors import DialometerError
from dialometer.readers import read_dialogues
from dialometer.readers.writing import write_dialogues
from dialometer.simulate.rated_conversations import BOTS, CARELESS_RATINGS, UserHabits, simulate_conversations


def of(talks, key):
    return np.array([talk.metadata["truth"][key] for talk in talks])


@pytest.fixture(scope="module")
def talks():
    return simulate_conversations(1200, 7)


def test_the_same_seed_gives_the_same_conversations_and_more_of_them_begin_alike(talks):
    assert simulate_conversations(1200, 7) == talks
    assert simulate_conversations(30, 7) == talks[:30]
    assert simulate_conversations(30, 8) != talks[:30]


def test_honest_ratings_follow_the_quality_and_careless_ones_do_not(talks):
    ratings = np.array([talk.metadata["rating"] for talk in talks], dtype=float)
    careless = of(talks, "is_careless").astype(bool)
    quality = of(talks, "quality")
    assert 0.08 < careless.mean() < 0.22
    assert np.corrcoef(ratings[~careless], quality[~careless])[0, 1] > 0.5
    assert abs(np.corrcoef(ratings[careless], quality[careless])[0, 1]) < 0.2
    drawn = np.bincount(ratings[careless].astype(int), minlength=6)[1:] / careless.sum()
    assert np.abs(drawn - CARELESS_RATINGS).max() < 0.12


def test_partners_with_more_faults_are_worse(talks):
    by_bot = defaultdict(list)
    for talk in talks:
        by_bot[talk.metadata["system"]].append(talk.metadata["truth"]["quality"])
    means = [np.mean(by_bot[name]) for name in BOTS]
    assert means == sorted(means, reverse=True)


def test_a_conversation_without_faults_is_the_best_there_is(talks):
    best = max(talks, key=lambda talk: talk.metadata["truth"]["quality"])
    said = [turn.text for turn in best.said_by("agent")]
    assert best.metadata["truth"]["quality"] == UserHabits().best
    assert len(set(said)) == len(said), "nothing is said twice"


def test_they_are_written_and_read_like_any_other(talks, tmp_path):
    write_dialogues(tmp_path / "talks.jsonl", talks[:20])
    assert list(read_dialogues(tmp_path / "talks.jsonl")) == talks[:20]


def test_nonsense_is_refused():
    with pytest.raises(DialometerError, match="shares from 0 to 1"):
        simulate_conversations(3, 0, UserHabits(careless_share=2))
