"""Controlled pairs: what differs, and which differences break the control."""

import json

import pytest

from dialometer.design.load import check_study, load_study
from dialometer.design.pairs import RULES, diff_words, inspect_pair
from dialometer.design.templates import copy_template
from dialometer.model.item import PairItem


@pytest.fixture
def folder(tmp_path):
    copy_template("strategies", tmp_path / "s")
    return tmp_path / "s"


def change_first(folder, change):
    path = folder / "items.jsonl"
    lines = path.read_text().splitlines()
    item = json.loads(lines[0])
    change(item)
    path.write_text("\n".join([json.dumps(item), *lines[1:]]) + "\n")


def found(folder):
    return [(p.line, p.message) for p in check_study(folder)[1] if p.severity == "error"]


def user_turn(item):
    return next(i for i, turn in enumerate(item["b"]["turns"]) if turn["speaker"] == "User")


def agent_turn(item):
    pairs = zip(item["a"]["turns"], item["b"]["turns"], strict=True)
    return next(i for i, (a, b) in enumerate(pairs) if a["speaker"] != "User" and a["text"] == b["text"])


def test_the_template_keeps_the_rules(folder):
    assert found(folder) == []
    study = load_study(folder)
    reports = [inspect_pair(item) for item in study.items if isinstance(item, PairItem)]
    assert all(report.differences for report in reports)
    assert all(abs(report.length_change) < 0.5 for report in reports)


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("user_turns", lambda item: item["b"]["turns"][user_turn(item)].update(text="I ate nothing at all.")),
        ("same_turns", lambda item: item["b"]["turns"].pop()),
        ("outcome", lambda item: item["b"].update(outcome="no answer")),
        ("difference", lambda item: item["b"].update(turns=item["a"]["turns"])),
        (
            "length",
            lambda item: item["b"]["turns"][agent_turn(item)].update(
                text=item["b"]["turns"][agent_turn(item)]["text"] + " word" * 300
            ),
        ),
        (
            "change_kind",
            lambda item: item["b"]["turns"][agent_turn(item)].update(
                text=" ".join(item["b"]["turns"][agent_turn(item)]["text"].split()[:-4])
            ),
        ),
    ],
)
def test_each_breach_is_an_error_unless_declared(folder, rule, change):
    change_first(folder, change)
    errors = found(folder)
    assert len(errors) == 1
    assert errors[0][0] == 1
    assert f"breaks the rule {rule}" in errors[0][1]
    change_first(folder, lambda item: item.update(breaches={rule: "on purpose"}))
    assert found(folder) == []


def test_declared_breaches_must_occur_and_exist(folder):
    change_first(folder, lambda item: item.update(breaches={"outcome": "why not"}))
    warnings = [p.message for p in check_study(folder)[1] if p.severity == "warning"]
    assert any("that does not occur" in message for message in warnings)
    change_first(folder, lambda item: item.update(breaches={"outcom": "why not"}))
    assert any("unknown rule 'outcom'" in message for _, message in found(folder))
    assert "outcome" in RULES


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("Hello there.", "Hello there.", ["equal"]),
        ("Your meal has 30.85 g.", "Don't worry! Your meal has 30.85 g.", ["insert", "equal"]),
        ("Hi Andrea, how are you?", "Good morning Andrea, how are you?", ["replace", "equal"]),
        ("Sorry, I cannot do that now.", "I cannot do that now.", ["delete", "equal"]),
    ],
)
def test_words_are_compared_whole(a, b, kinds):
    segments = diff_words(a, b)
    assert [segment.kind for segment in segments] == kinds
    assert "".join(segment.a for segment in segments) == a
    assert "".join(segment.b for segment in segments) == b


def test_close_changes_are_one():
    segments = diff_words("I ate the red apple in the house", "I ate a red pear in the house")
    assert [segment.kind for segment in segments] == ["equal", "replace", "equal"]
