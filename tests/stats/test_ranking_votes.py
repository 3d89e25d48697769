"""Votes are coded and counted with nothing lost: order, ties, self-comparisons, repeats."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialometer.errors import DialometerError
from dialometer.stats.ranking.votes import (
    FIRST,
    SECOND,
    TIE,
    code_votes,
    repeated_votes,
    win_matrix,
)

NAMES = ["ada", "bob", "cleo"]
one_vote = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(0, 2))


def test_outcomes_are_coded_by_who_was_shown_first():
    votes = code_votes(["b", "a", "a"], ["a", "b", "b"], ["b", "b", "tie"])
    assert votes.systems == ("a", "b")
    assert votes.outcome.tolist() == [FIRST, SECOND, TIE]


def test_matrix_counts_wins_in_either_order():
    matrix = win_matrix(code_votes(["b", "a", "a", "a"], ["a", "b", "b", "b"], ["b", "b", "tie", "a"]))
    assert matrix.wins.tolist() == [[0, 1], [2, 0]]
    assert matrix.ties.tolist() == [[0, 1], [1, 0]]
    assert matrix.first_won.tolist() == [[0, 1], [1, 0]]
    assert matrix.second_won.tolist() == [[0, 1], [0, 0]]
    assert matrix.n_votes == 4
    assert matrix.votes_per_system.tolist() == [4, 4]


@settings(deadline=None)
@given(st.lists(one_vote, max_size=30))
def test_matrix_equals_a_count_by_hand(rows):
    first, second = [a for a, _, _ in rows], [b for _, b, _ in rows]
    winner = [(a, b, "tie")[w] for a, b, w in rows]
    matrix = win_matrix(code_votes(first, second, winner, systems=NAMES))
    for i, a in enumerate(NAMES):
        for j, b in enumerate(NAMES):
            wins = sum(w == a for x, y, w in zip(first, second, winner, strict=True) if {x, y} == {a, b} and a != b)
            ties = sum(w == "tie" for x, y, w in zip(first, second, winner, strict=True) if {x, y} == {a, b} and a != b)
            assert matrix.wins[i, j] == wins
            assert matrix.ties[i, j] == ties
    assert matrix.n_votes + matrix.n_self == len(rows)


def test_self_comparisons_are_left_out_and_counted():
    votes = code_votes(["a", "a"], ["a", "b"], ["a", "b"])
    assert votes.n == 1
    assert votes.n_self == 1
    assert votes.row.tolist() == [1]


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((["a"], ["b"], ["c"]), {}, "vote 1: the winner 'c' is neither"),
        ((["a"], ["b"], ["a", "b"]), {}, "'winner' has 2 entries"),
        ((["a"], ["tie"], ["a"]), {}, "both a system and the word for a tie"),
        ((["alpha"], ["beta"], ["alpha"]), {"systems": ["alpha", "betta"]}, "did you mean 'betta'"),
        ((["a"], ["b"], ["a"]), {"systems": ["a", "b", "a"]}, "listed twice"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(arguments, keywords, message):
    with pytest.raises(DialometerError, match=message):
        code_votes(*arguments, **keywords)


def test_repeats_tell_same_votes_from_changed_minds():
    votes = code_votes(
        ["a", "b", "a", "a", "a", "b"],
        ["b", "a", "c", "c", "b", "a"],
        ["a", "a", "a", "c", "a", "b"],
        rater=["r1", "r1", "r2", "r2", "r3", "r4"],
    )
    same, changed = repeated_votes(votes)
    assert (same.rater, same.systems, same.rows, same.is_same, same.is_turned) == ("r1", ("a", "b"), (0, 1), True, True)
    assert (changed.rater, changed.rows, changed.is_same, changed.is_turned) == ("r2", (2, 3), False, False)


def test_the_same_pair_on_another_item_is_no_repeat():
    arguments = (["a", "a"], ["b", "b"], ["a", "b"])
    assert repeated_votes(code_votes(*arguments, rater=["r", "r"], item=["i1", "i2"])) == ()
    (repeat,) = repeated_votes(code_votes(*arguments, rater=["r", "r"], item=["i1", "i1"]))
    assert repeat.item == "i1"


def test_repeats_need_raters_and_may_be_none():
    with pytest.raises(DialometerError, match="do not name their raters"):
        repeated_votes(code_votes(["a"], ["b"], ["a"]))
    assert repeated_votes(code_votes([], [], [], rater=[])) == ()
