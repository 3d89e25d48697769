"""Answers of several parts in the dashboard: in words, and with their number where answers are summed up."""

from dialometer.design.load import load_study
from dialometer.design.templates import template_folder
from dialometer.model.values import answer_words
from dialometer.web.dashboard.records import scored


def test_checklists_and_marks_are_shown_in_words():
    assert answer_words({"answers": "yes", "limits": "not_applicable"}) == "answers: yes, limits: not applicable"
    mark = {"text": "then then", "category": "language", "severity": "minor"}
    assert answer_words({"n_words": 50, "marks": [mark]}) == "“then then” (language, minor)"
    assert answer_words({"n_words": 50, "marks": []}) == "nothing marked"
    assert answer_words({"best": "a", "worst": "b"}) == "best a, worst b"


def test_what_is_summed_up_is_their_number():
    study = load_study(template_folder("mqm"))
    mark = {"text": "then", "category": "language", "severity": "major"}
    assert scored(study, "errors", {"n_words": 50, "marks": [mark]}) == 90
    assert scored(study, "gone", {"n_words": 50, "marks": []}) == {"n_words": 50, "marks": []}
    assert scored(study, "errors", 3) == 3
