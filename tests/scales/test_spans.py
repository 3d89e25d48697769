"""Marks are checked against the exact text, wherever they come from: the page, the plain form, a program, a file."""

import numpy as np
import pytest

from dialometer.errors import AnswerError
from dialometer.model.marks import Passage, count_words, find_words
from dialometer.scales.spans import Spans

SCALE = Spans(mark_categories=[{"name": "false", "label": "Not true"}, {"name": "rude"}])
TEXT = "The pump is loud. Turn it off, off!"
PASSAGES = (Passage(0, "Hello 🌱 there", is_markable=False), Passage(1, TEXT), Passage(3, "The 🌱 pump is fine."))
MARK = {"turn": 1, "start": 4, "end": 8, "text": "pump", "category": "false", "severity": "major", "comment": ""}


def read(raw, scale=SCALE):
    return scale.parse_about(raw, (), PASSAGES)


def test_the_score_is_100_minus_weighted_errors_per_100_words():
    value = read({"marks": [MARK, {**MARK, "start": 9, "end": 11, "text": "is", "severity": "minor"}]})
    assert value["n_words"] == 8 + 5
    assert SCALE.number(value) == pytest.approx(100 - 100 * 6 / 13)
    assert SCALE.number(read({"none": True})) == 100
    assert SCALE.number({"n_words": 0, "marks": []}) is None
    assert SCALE.details(value)[0] == (1, 1, 4, 8, "pump", "false", "major", 5, "", 13)


@pytest.mark.parametrize(
    "raw",
    [
        {"marks": [MARK]},
        {"marks": '[{"turn": 1, "start": 4, "end": 8, "text": "pump", "category": "false", "severity": "major"}]'},
        {"marks": [{"turn": 1, "quote": "pump", "category": "Not true", "severity": "Major"}]},
        {"1.turn": "1", "1.quote": " PUMP ", "1.category": "false", "1.severity": "major", "2.quote": " "},
        [{"turn": 1, "quote": "pump", "category": "false", "severity": "major"}],
    ],
)
def test_all_ways_of_writing_give_the_same_mark(raw):
    assert read(raw)["marks"] == [MARK]


def test_offsets_count_characters_beyond_the_first_plane_as_one():
    (mark,) = read({"marks": [{"quote": "pump is fine", "category": "rude", "severity": "minor"}]})["marks"]
    assert (mark["turn"], mark["start"], mark["end"]) == (3, 6, 18)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "say that you found nothing"),
        ({"marks": []}, "say that you found nothing"),
        ({"marks": [MARK], "none": "none"}, "correct one of the two"),
        ({"marks": [{**MARK, "end": 99}]}, "are not in this text"),
        ({"marks": [{**MARK, "start": 5}]}, "are not in this text"),
        ({"marks": [{**MARK, "turn": 0}]}, "are not in this text"),
        ({"marks": [{**MARK, "turn": 7}]}, "are not in this text"),
        ({"marks": [{"quote": "engine", "category": "rude", "severity": "minor"}]}, "“engine” are not in this text"),
        ({"marks": [{"turn": 1, "quote": "off", "category": "rude", "severity": "minor"}]}, "occur more than once"),
        ({"marks": [{**MARK, "category": "odd"}]}, "Please choose what is wrong with “pump”"),
        ({"marks": [{**MARK, "severity": ""}]}, "Please choose what is wrong with “pump”"),
        ({"marks": [MARK, MARK]}, "marked twice in the same way"),
        ({"marks": [{**MARK, "comment": "a\x00b"}]}, "characters that cannot be shown"),
        ({"marks": [{**MARK, "comment": "x" * 1001}]}, "under 1000 characters"),
        ({"marks": "no JSON"}, "say that you found nothing"),
    ],
)
def test_what_does_not_fit_gets_a_sentence(raw, message):
    with pytest.raises(AnswerError, match=message):
        read(raw)


def test_comments_and_the_number_of_marks_are_as_declared():
    strict = Spans(mark_categories=[{"name": "false"}], comments="required", max_marks=1)
    with pytest.raises(AnswerError, match="write a comment on “pump”"):
        read({"marks": [MARK]}, strict)
    with pytest.raises(AnswerError, match="at most 1 places"):
        read({"marks": [MARK, {**MARK, "start": 9, "end": 11, "text": "is"}]}, strict)
    silent = Spans(mark_categories=[{"name": "false"}], comments="none")
    assert read({"marks": [{**MARK, "comment": "loud"}]}, silent)["marks"][0]["comment"] == ""
    with pytest.raises(ValueError, match="given twice: false"):
        Spans(mark_categories=[{"name": "false"}, {"name": "false"}])
    with pytest.raises(ValueError, match="above zero: minor"):
        Spans(mark_categories=[{"name": "false"}], severities={"minor": 0})


def test_imported_answers_must_be_complete():
    stored = read({"marks": [MARK]})
    assert SCALE.parse_collected(stored) == stored
    assert SCALE.parse_collected({"n_words": 13, "marks": []}) == {"n_words": 13, "marks": []}
    with pytest.raises(AnswerError, match="how many words"):
        SCALE.parse_collected({"marks": [MARK]})


def test_what_can_be_marked():
    turns = [("User", "user", "Hi"), ("Bot", "agent", "Hello"), ("Bot", "agent", "")]
    assert [passage.is_markable for passage in SCALE.markable(turns)] == [False, True, False]
    everything = Spans(mark_categories=[{"name": "false"}], mark="all")
    assert [passage.is_markable for passage in everything.markable(turns)] == [True, True, False]
    assert all(passage.is_markable for passage in SCALE.markable([("A", "person", "Hi"), ("B", "person", "Ho")]))


def test_words_in_scripts_without_spaces_count_by_character():
    assert count_words("我喜欢 gardens") == 4
    assert find_words("One  two\nTWO", "two two") == [(5, 12)]
    assert find_words("abc", "") == []


def test_simulated_marks_fit_the_text_and_bad_texts_get_more():
    rng = np.random.default_rng(1)
    good, bad = ([SCALE.number(read(SCALE.simulate_about(q, PASSAGES, rng))) for _ in range(30)] for q in (2.0, -2.0))
    assert np.mean(good) > np.mean(bad) + 20
    numbers = [SCALE.number(value) for value in SCALE.simulate(np.array([-2.0, 0.0, 2.0]), None)]
    assert numbers == sorted(numbers)


def test_the_form_shows_again_what_was_sent():
    rows = SCALE.form_rows({"marks": [MARK]})
    assert rows[0]["quote"] == "pump"
    assert (rows[0]["start"], rows[-1]["quote"]) == ("4", "")
    assert SCALE.says_none({"n_words": "13", "marks": "[]"})
    assert not SCALE.says_none({})
    assert '"false" = Not true' in SCALE.answer_format()
