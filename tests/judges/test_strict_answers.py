"""What counts as an answer of a model, and what does not."""

from __future__ import annotations

import pytest

from dialometer.judges.answers import REASONS, ModelAnswers, Unusable, answer_schema, read_answers, reasons_first

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
        '<think>{"fluent.1": 1, "better": "1"}? No, the second.</think>{"fluent.1": 4, "better": "2"}',
        'it begins without a mark</think>\n{"fluent.1": 4, "better": "2"}',
        'Sure! Here it is:\n```json\n{"fluent.1": 4, "better": "2"}\n```\nHope this helps.',
        'In the form {"key": value}: {"fluent.1": 4, "better": "2"}',
        '{"reasoning": "It is longer.", "fluent.1": 4, "better": "2", "confidence": 0.8}',
        '{"answer": {"fluent.1": 4, "better": "2"}}',
        '{"fluent.1": 4, "better": "2"} I repeat: {"fluent.1": 4, "better": "2"}',
        '{"fluent.1": 4, "better": 2}'.replace("2}", '"2"}'),
    ],
)
def test_what_models_write_around_their_answer_is_passed_over(text):
    assert read_answers(text, FIELDS).values == {"fluent.1": 4, "better": "2"}


def test_reasons_are_kept_wherever_they_stand():
    answer = '{"fluent.1": 4, "better": "2"%s}'
    assert read_answers(answer % ', "reasoning": "It is longer."', FIELDS).reasons == "It is longer."
    assert read_answers("<think>Hm, the second.</think>" + answer % "", FIELDS).reasons == "Hm, the second."
    asked = reasons_first(FIELDS)
    assert [one["name"] for one in asked] == [REASONS, "fluent.1", "better", "why"]
    text = '{"reasons": "Both are fine.", "fluent.1": 4, "better": "2"}'
    assert read_answers(text, asked) == ModelAnswers({"fluent.1": 4, "better": "2"}, "Both are fine.")


def test_reasons_that_the_study_asks_for_come_before_their_verdict():
    own = [field("better", PAIR, ("1", "2")), field("better.reason", {"type": "text"}), field("fluent.1", LIKERT)]
    assert [one["name"] for one in reasons_first(own)] == ["better.reason", "better", "fluent.1"]


def test_a_schema_lists_what_the_scales_take():
    schema = answer_schema(FIELDS)["properties"]
    assert schema["fluent.1"] == {"type": ["integer"], "enum": [1, 2, 3, 4, 5]}
    assert schema["better"] == {"type": ["string"], "enum": ["1", "2"]}
    assert schema["why"] == {"type": ["string", "null"]}
    from_zero = field("how", {"type": "slider", "low": 0, "high": 10})
    assert answer_schema([from_zero])["properties"]["how"]["enum"] == list(range(11))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", "the answer"),
        ("Sure!", "the answer"),
        ('{"fluent.1": 4, "better": "2"} or {"fluent.1": 4, "better": "1"}', "the answer"),
        ('<think>{"fluent.1": 4, "better": "2"}', "the answer"),
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
        ('{"fluent.1": 4, "better": "2", "mood": 3}', "mood"),
        ("[" * 100_000, "the answer"),
    ],
)
def test_anything_else_is_refused_with_the_key_that_is_wrong(text, key):
    with pytest.raises(Unusable) as raised:
        read_answers(text, FIELDS)
    assert set(raised.value.complaints) == {key}
