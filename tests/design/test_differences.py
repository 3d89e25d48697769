"""What differs between two texts, whatever stands in them."""

import random
import time
from difflib import SequenceMatcher

import pytest

from dialometer.design.differences import MOST_PAIRS, differences
from dialometer.design.pairs import diff_words
from dialometer.design.versions import merged
from dialometer.web.dashboard.pages.making import changed_lines

MANY = int(MOST_PAIRS**0.5) + 1


def applied(before, after):
    """The second list, made of the first and of what differs."""
    made = []
    for kind, i, j, k, m in differences(before, after):
        assert (kind == "equal") == (before[i:j] == after[k:m])
        made += before[i:j] if kind == "equal" else after[k:m]
    return made


def test_short_texts_differ_as_the_standard_library_says():
    drawn = random.Random(1)
    for _ in range(100):
        before, after = ([drawn.choice("abc") for _ in range(drawn.randrange(30))] for _ in range(2))
        assert differences(before, after) == SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        assert applied(before, after) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["x"] * MANY, ["x"] * MANY),
        (["x"] * MANY, ["x"] * (MANY + 3)),
        (["x"] * (MANY + 3), ["x"] * MANY),
        (["x"] * MANY, ["x"] * 9 + ["y"] + ["x"] * MANY),
        (["y"] + ["x"] * MANY, ["x"] * MANY + ["z"]),
    ],
)
def test_texts_of_equal_lines_differ_in_what_lies_between(before, after):
    assert applied(before, after) == after


def test_no_text_takes_long():
    began = time.process_time()
    same = "x\n" * 40_000
    assert merged(same, f"y\n{same}", f"{same}z\n") == f"y\n{same}z\n"
    assert changed_lines(same, f"{same}y\n") == [("…", ""), ("", "x"), ("", "x"), ("+", "y")]
    assert [segment.kind for segment in diff_words("a " * 20_000, "a " * 20_000 + "b")] == ["equal", "insert"]
    assert time.process_time() - began < 25
