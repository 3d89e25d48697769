"""The pattern of a rater's answers: the commonest answer, how often it was given, and the longest run of one answer."""

import pytest

from dialometer.model.straight_lining import answer_pattern, visible_answer


@pytest.mark.parametrize(
    ("answers", "commonest", "n_same", "longest_run"),
    [
        (["x"], "x", 1, 1),
        ([3, 5, 3, 3, 3], 3, 4, 3),
        ([1, 2], 1, 1, 1),
        ([1, 1, 2, 2, 2, 1], 1, 3, 3),
        ([1, 2, 2, 3, 3], 2, 2, 2),
        ([1, 2, 1, 2], 1, 2, 1),
    ],
)
def test_pattern_by_hand(answers, commonest, n_same, longest_run):
    pattern = answer_pattern(answers)
    assert (pattern.commonest, pattern.n_same, pattern.longest_run) == (commonest, n_same, longest_run)
    assert pattern.share == pytest.approx(n_same / len(answers))


def test_the_place_on_the_screen_counts_for_choices_between_systems():
    assert visible_answer("blue", 2) == visible_answer("green", 2) == 2
    assert visible_answer("blue", 0) != visible_answer("green", 0)
    assert visible_answer(4, 2) == 4
    assert visible_answer(["a", "b"], 0) == visible_answer(["a", "b"], 1)
