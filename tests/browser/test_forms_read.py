"""What browsers send becomes what scales read; what was typed comes back into the page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dialometer.errors import AnswerError
from dialometer.flow.screens import Field, Screen
from dialometer.model.scale import Scale
from dialometer.scales import SCALES
from dialometer.web.rater.layout import OTHER, answers_from_form, control_name, make_controls, typed_answers


def make(kind: str, **options: object) -> Scale:
    return SCALES.get(kind).model_validate({"type": kind, **options})


FIELDS = (
    Field("age", "?", make("text", format="integer")),
    Field("gender", "?", make("choice", options=["A", "B"], allow_other=True)),
    Field("many", "?", make("multiple", options=["x", "y", "z"])),
    Field("quality", "?", make("best_worst"), alternatives=("1", "2", "3")),
    Field("order", "?", make("ranking", options=["Speed", "Cost", "a.b"])),
    Field("fit.1", "?", make("likert"), target="1"),
    Field("fit.2", "?", make("likert"), target="2"),
    Field("size", "?", make("magnitude")),
    Field("device", "?", make("choice", options=["Yes", "No"])),
)
SCREEN = Screen("item", "item/1", 0, 1, fields=FIELDS)
SENT = {
    "csrf": ["c"],
    "screen": ["item/1"],
    "device": ["phone"],
    "age": [" 42 "],
    "gender": [OTHER],
    "gender.other": ["my own"],
    "many": ["x", "z"],
    "quality.best": ["2"],
    "quality.worst": ["3"],
    "order.Speed": ["2"],
    "order.Cost": ["1"],
    "order.a.b": ["3"],
    "fit.1": ["4"],
    "fit.2": ["5"],
    "size": ["7٫5"],
    "answer.device": ["Yes"],
}
READ = {
    "age": " 42 ",
    "gender": "my own",
    "many": ["x", "z"],
    "quality": {"best": "2", "worst": "3"},
    "order": {"Speed": "2", "Cost": "1", "a.b": "3"},
    "fit.1": "4",
    "fit.2": "5",
    "size": "7.5",
    "device": "Yes",
}


def test_a_form_is_read_by_fields() -> None:
    assert answers_from_form(SCREEN, SENT) == READ
    values = {field.name: field.scale.parse(READ[field.name], field.alternatives) for field in FIELDS}
    assert values["age"] == 42
    assert values["order"] == ["Cost", "Speed", "a.b"]
    assert values["size"] == 7.5


def test_an_empty_form_has_no_answers() -> None:
    empty = {name: [""] for name in SENT}
    assert answers_from_form(SCREEN, empty) == {}
    assert answers_from_form(SCREEN, {}) == {}


def test_other_without_words_is_no_answer_but_stays_chosen() -> None:
    sent = {"gender": [OTHER], "gender.other": ["  "]}
    assert "gender" not in answers_from_form(SCREEN, sent)
    assert typed_answers(SCREEN, sent)["gender"] == OTHER


def test_an_option_called_other_is_an_option_like_any_other() -> None:
    field = Field("order", "?", make("ranking", options=["other", "same"]))
    screen = replace(SCREEN, fields=(field,))
    sent = {"order.other": ["2"], "order.same": ["1"]}
    assert answers_from_form(screen, sent) == {"order": {"other": "2", "same": "1"}}


def test_words_without_other_count_as_other() -> None:
    assert answers_from_form(SCREEN, {"gender.other": ["mine"]})["gender"] == "mine"


@pytest.mark.parametrize(
    "typed", [SENT, READ, {k: v for k, v in SENT.items() if k not in ("csrf", "screen", "device")}]
)
def test_what_was_typed_comes_back_from_forms_answers_and_drafts(typed: dict[str, object]) -> None:
    assert typed_answers(SCREEN, typed) == READ


def test_stored_values_come_back() -> None:
    stored = {"order": ["Cost", "Speed", "a.b"], "fit.1": 4, "size": 0.1, "many": ["y"]}
    controls = {c.field.name: c for c in make_controls(SCREEN, typed_answers(SCREEN, stored), {})}
    assert [controls["order"].part(option) for option in ("Cost", "Speed", "a.b")] == ["1", "2", "3"]
    assert controls["fit.1"].holds(4)
    assert not controls["fit.1"].holds(5)
    assert controls["size"].value == "0.1"
    assert controls["many"].holds("y")


def test_consent_and_more_are_buttons() -> None:
    assert answers_from_form(replace(SCREEN, kind="consent", fields=()), {"consent": ["agree"]}) == {"consent": "agree"}
    assert answers_from_form(replace(SCREEN, kind="more", fields=()), {"more": ["no"]}) == {"more": "no"}
    assert answers_from_form(replace(SCREEN, kind="pre", fields=()), {"consent": ["agree"]}) == {}


def test_a_question_may_have_a_name_that_forms_use_themselves() -> None:
    assert control_name("device") == "answer.device"
    assert control_name("token.1") == "answer.token.1"
    assert control_name("quality") == "quality"


def test_a_partly_given_answer_reaches_its_scale() -> None:
    """So that the scale can say what is missing."""
    answer = answers_from_form(SCREEN, {"quality.best": ["1"]})["quality"]
    with pytest.raises(AnswerError, match="one as the best and one as the worst"):
        FIELDS[3].scale.parse(answer, ("1", "2", "3"))
