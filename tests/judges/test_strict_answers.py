"""What counts as an answer of a model, and what does not."""

from __future__ import annotations

import pytest

from dialometer.judges.prompt import Unusable, read_answers

LIKERT = {"type": "likert", "points": 5, "first": 1, "labels": {}}
PAIR = {"type": "pairwise", "allow_tie": False, "allow_cannot_tell": False}


def field(name, scale, alternatives=(), is_required=True):
    return {"name": name, "scale": scale, "alternatives": list(alternatives), "is_required": is_required}


FIELDS = [
    field("fluent.1", LIKERT),
    field("better", PAIR, ("1", "2")),
    field("why", {"type": "text"}, is_required=False),
]


@pytest.mark.parametrize(
    "text",
    [
        '{"fluent.1": 4, "better": "2"}',
        ' \n{"fluent.1": 4, "better": "2", "why": null}\n',
        '```json\n{"fluent.1": 4, "better": "2"}\n```',
    ],
)
def test_one_object_with_the_keys_is_an_answer(text):
    assert read_answers(text, FIELDS) == {"fluent.1": 4, "better": "2"}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", "the answer"),
        ("Sure! {}", "the answer"),
        ('{"fluent.1": 4, "better": "2"} Hope this helps', "the answer"),
        ("[4]", "the answer"),
        ('{"fluent.1": 4, "fluent.1": 5, "better": "2"}', "the answer"),
        ('{"fluent.1": "4", "better": "2"}', "fluent.1"),
        ('{"fluent.1": 4.5, "better": "2"}', "fluent.1"),
        ('{"fluent.1": 6, "better": "2"}', "fluent.1"),
        ('{"fluent.1": true, "better": "2"}', "fluent.1"),
        ('{"fluent.1": NaN, "better": "2"}', "fluent.1"),
        ('{"fluent.1": 4, "better": "tie"}', "better"),
        ('{"fluent.1": 4, "better": null}', "better"),
        ('{"fluent.1": 4}', "better"),
        ('{"fluent.1": 4, "better": "2", "mood": "good"}', "mood"),
        ("[" * 100_000, "the answer"),
    ],
)
def test_anything_else_is_refused_with_the_key_that_is_wrong(text, key):
    with pytest.raises(Unusable) as raised:
        read_answers(text, FIELDS)
    assert set(raised.value.complaints) == {key}
