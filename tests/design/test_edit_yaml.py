"""Editing a study file value by value: it then says what was asked for, and nothing else has changed."""

import copy
import difflib
import random

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some

from dialometer.design.edit_yaml import NotEditable, edited, is_same
from dialometer.design.positions import parse_yaml
from dialometer.design.templates import template_folder, template_names


def data_of(text):
    parsed = parse_yaml(text, "")
    assert not parsed.problems, parsed.problems
    return parsed.data


def texts():
    return {name: (template_folder(name) / "study.yaml").read_text() for name in template_names()}


def changed_lines(before, after):
    return [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]


def test_one_value_changes_one_line():
    text = "# A study\nname: a   # the name\nseed: 1\n\nsystems:\n  - name: x  # first\n    label: X\n  - {name: y}\n"
    data = data_of(text)
    data["seed"] = 2
    data["systems"][0]["label"] = "Ex: one"
    assert edited(text, data) == text.replace("seed: 1", "seed: 2").replace("label: X", "label: 'Ex: one'")


def test_keys_and_entries_come_and_go_around_the_comments():
    text = "a: 1\n# about b\nb:\n  - one  # the first\n  # before two\n  - two\nc: {x: 1}\n"
    assert edited(text, {"a": 1, "b": ["one", "two", "three"], "c": {"x": 1}, "d": True}) == (
        "a: 1\n# about b\nb:\n  - one  # the first\n  # before two\n  - two\n  - three\nc: {x: 1}\nd: true\n"
    )
    assert edited(text, {"b": ["two"], "c": {"x": 2, "y": []}}) == (
        "# about b\nb:\n  # before two\n  - two\nc:\n  x: 2\n  y: []\n"
    )


def test_the_first_key_of_an_entry_can_be_removed():
    text = "a:\n  - name: x\n    label: X\n  - name: y\n"
    assert edited(text, {"a": [{"label": "X"}, {"name": "y"}]}) == "a:\n  - label: X\n  - name: y\n"


@pytest.mark.parametrize(
    "value", ["yes", "1e5", "010", "null", "", " a", "a: b", "- x", "# x", "'", "ä\u2028b", "x\n\ny\n"]
)
def test_words_stay_words(value):
    assert data_of(edited("a: 1\n", {"a": value, "b": [value], "c": {value or "k": value}})) == {
        "a": value,
        "b": [value],
        "c": {value or "k": value},
    }


def test_what_cannot_be_edited_is_left_alone():
    for text in ("a: &x 1\nb: *x\n", "a: [\n", "- a\n"):
        with pytest.raises(NotEditable):
            edited(text, {"a": 2})


@pytest.mark.parametrize("name", template_names())
def test_every_value_of_every_template_can_be_changed(name):
    text = texts()[name]
    draw = random.Random(name)
    original = data_of(text)
    for _ in range(12):
        data = copy.deepcopy(original)
        place, key = _somewhere(data, draw)
        if draw.random() < 0.3:
            del place[key]
        else:
            place[key] = draw.choice(["changed", 17, ["a", "b"], {"k": "v " * 70}, "A longer text. " * 12])
        result = edited(text, data)
        assert is_same(data_of(result), data)
        comments = [line for line in text.splitlines() if line.lstrip().startswith("#")]
        kept = result.splitlines()
        gone = [line for line in comments if line not in kept]
        assert len(gone) <= 3, f"comments inside what was replaced at most: {gone}"


def test_changes_back_and_forth_give_the_same_text():
    for text in texts().values():
        data = data_of(text)
        other = {**data, "seed": 1, "title": "Other"}
        assert edited(edited(text, other), data).count("\n") == text.count("\n")
        assert len(changed_lines(text, edited(text, {**data, "seed": 1}))) == 2


def _somewhere(data, draw):
    place = data
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and draw.random() < 0.7:
            place = place[key]
            continue
        return place, key


words = some.text(alphabet="ab: #-'\"\n{}[]&*!|>%@,é0.e", max_size=12)
leaves = (
    some.none() | some.booleans() | some.integers(-999, 999) | some.floats(-1e6, 1e6).map(lambda x: round(x, 3)) | words
)
values = some.recursive(
    leaves,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from("abcdef"), inner, max_size=3),
    max_leaves=12,
)
documents = some.dictionaries(some.sampled_from("abcdef"), values, min_size=1, max_size=4)


@settings(max_examples=120, deadline=None)
@given(documents, documents, some.booleans())
def test_any_change_of_any_text(before, after, flow):
    text = yaml.safe_dump(before, default_flow_style=flow, sort_keys=False, allow_unicode=True)
    if not is_same(parse_yaml(text, "").data, before):
        return  # YAML 1.1 wrote a word that is a number in YAML 1.2
    assert is_same(data_of(edited(text, after)), after)
