"""The preregistration says what the study file says, in the usual headings, and what it does not say is open."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from commands import invoke as dialometer
from dialometer.analysis.base.choose import analyse
from dialometer.analysis.planning.preregistration import OPEN, planned_power, preregistration
from dialometer.design.load import load_study
from dialometer.design.lock import fingerprint
from dialometer.design.templates import copy_template
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.quality import RULES
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

HEADINGS = [
    *("Title", "Authors", "Description", "Hypotheses", "Study type", "Blinding", "Study design", "Randomisation"),
    *("Existing data", "Data collection", "Sample size", "Sample size rationale", "Stopping rule"),
    *("Manipulated variables", "Measured variables", "Statistical models", "Transformations", "Inference criteria"),
    *("Data exclusion", "Missing data", "Confirmatory and exploratory analyses", "Study materials", "Software"),
]
START_MS = 1_760_000_000_000


def sections(path):
    text = path.read_text(encoding="utf-8")
    found = re.split(r"^### (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(found[1::2], (part.split("\n## ")[0].strip() for part in found[2::2]), strict=True))


def test_items_draws_and_directions_are_those_of_the_study(tmp_path):
    """Gold items are no items of the study, a judged study's raters get a part of it, and one dialogue a screen has no order."""

    def text(name):
        copy_template(name, tmp_path / name)
        study = load_study(tmp_path / name)
        return preregistration(study, n_raters=10, power=None, methods=(), n_collected=0, frozen="")

    likert = text("likert")
    assert "- Items: 20, single responses" in likert
    assert "- Each rater gets 10 of the items and 2 gold items." in likert
    assert "on Helpfulness; any difference counts." in likert
    assert "A hypothesis without a direction is supported where on each of its criteria a difference is" in likert
    assert "Conditions: permuted blocks" not in likert
    judged = text("judged")
    assert "- Raters judge 24 of the 96 items, drawn at random" in judged
    assert "reader (scores of a program)" in judged
    assert "2 raters for each of the 24 items that raters judge" in judged
    assert "ends when each of the 24 items that raters judge has been judged by 2 raters" in judged
    assert "Tested: Guided above Brief on Helpfulness." in judged
    mqm = text("mqm")
    assert "- Items: 16, whole dialogues." in mqm
    assert "Order of systems" not in mqm
    anchoring = text("anchoring")
    assert (
        "Tested: “anchor (text and number)” above “no anchor” on Readability and Coherence, in size and in" in anchoring
    )
    assert "Conditions: permuted blocks" in anchoring


def test_who_knows_the_systems_and_what_is_drawn_is_that_of_the_study(tmp_path):
    def text(name):
        copy_template(name, tmp_path / name)
        study = load_study(tmp_path / name)
        path = tmp_path / f"{name}.md"
        path.write_text(preregistration(study, n_raters=10, power=None, methods=(), n_collected=0, frozen=""), "utf-8")
        return sections(path)

    acute = text("acute")
    assert acute["Manipulated variables"] == "- System: Fern, Moss, Reed, Clove", "not the two that check raters"
    assert "by their position on the screen only" in acute["Blinding"]
    assert acute["Study type"].endswith(
        "for each rater: the items, the order of the items and the position of the systems on the screen."
    )
    chat = text("chat")
    assert chat["Blinding"] == "Raters do not know which system made what they see: its name is not shown."
    assert "sides on the screen" not in chat["Randomisation"]
    assert chat["Study type"].endswith("for each rater: the order of the items.")
    assert "people who answer in place of a system know" in text("wizard")["Blinding"]
    arena = text("arena")
    assert arena["Blinding"].endswith("The last page names the systems, after all votes.")
    assert "the two systems of each item" in arena["Study type"]
    assert arena["Manipulated variables"] == "- System: Haze, Reed, Maple"


@pytest.mark.parametrize("template", ["acute", "anchoring", pytest.param("likert", marks=pytest.mark.slow), "chat"])
def test_every_heading_is_filled_from_the_study_file(tmp_path, template):
    folder = tmp_path / "study"
    copy_template(template, folder)
    study = load_study(folder)
    dialometer("preregister", folder, "--simulations", 5, "--raters", 12)
    found = sections(folder / "preregistration.md")
    assert list(found) == HEADINGS
    assert found["Title"] == study.spec.title
    for comparison in study.spec.analysis.comparisons:
        assert comparison.name.replace("_", " ").capitalize() in found["Hypotheses"]
        assert comparison.hypothesis.strip() in found["Hypotheses"]
    for factor in study.spec.design.factors:
        assert (factor.label or factor.name) in found["Manipulated variables"]
    for criterion in study.spec.criteria:
        assert criterion.question in found["Measured variables"]
    for rule in study.spec.quality:
        name = rule.rule.replace("_", " ").capitalize()
        assert f"- **{name}**: {rule.in_words()}. " in found["Data exclusion"]
    assert fingerprint(study) in found["Study materials"]
    assert "With 12 raters" in found["Sample size rationale"]
    assert f"{study.spec.analysis.n_resamples:,} resamples" in found["Inference criteria"]
    assert "Items are a sample" in found["Inference criteria"]
    assert OPEN not in found["Statistical models"]


def test_the_announced_methods_are_those_of_the_report(tmp_path):
    folder = tmp_path / "study"
    copy_template("likert", folder)
    dialometer("preregister", folder, "--simulations", 0, "--raters", 12)
    announced = sections(folder / "preregistration.md")["Statistical models"]
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        simulate(study, EngineAccess(Flow(study, store)), draw_truth(study, 1), n_raters=12, seed=1, start_ms=START_MS)
        used = analyse(study, store, n_resamples=100).methods
    announced_things = {line.split(":")[0].removeprefix("- ") for line in announced.splitlines()}
    assert announced_things <= {method.what for method in used}
    assert len(announced_things) >= 3


def test_power_is_the_share_of_simulated_studies_that_find_the_effect(tmp_path):
    copy_template("acute", tmp_path / "study")
    study = load_study(tmp_path / "study")
    options = {"n_raters": 15, "alpha": 0.05, "n_simulations": 40, "seed": 3}
    none, large = (planned_power(study, effect=effect, **options).power for effect in (0.0, 3.0))
    assert none.value <= 0.2
    assert large.value >= 0.9
    assert none.low < none.high


def test_what_the_study_does_not_say_is_open_and_what_is_there_is_told(tmp_path):
    folder = tmp_path / "study"
    copy_template("acute", folder)
    path = folder / "study.yaml"
    spec = yaml.safe_load(path.read_text())
    spec["description"] = ""
    spec["quality"] = []
    spec["analysis"]["comparisons"][0]["hypothesis"] = ""
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    told = json.loads(dialometer("preregister", folder, "--simulations", 0, "--json"))
    found = sections(folder / "preregistration.md")
    open_ones = [heading for heading, text in found.items() if text == OPEN]
    assert open_ones == ["Description", "Sample size rationale", "Data exclusion"]
    assert told["n_open"] == 3
    assert told["power"] is None
    assert "no direction is stated" in found["Hypotheses"]
    assert found["Existing data"].startswith("No judgment of a human rater")
    dialometer("freeze", folder)
    told = json.loads(dialometer("preregister", folder, "--simulations", 0, "--json"))
    assert told["is_frozen"]
    assert "frozen as version 1" in sections(folder / "preregistration.md")["Study materials"]


def test_a_study_without_a_planned_size_asks_for_it(tmp_path):
    folder = tmp_path / "study"
    copy_template("acute", folder)
    path = folder / "study.yaml"
    spec = yaml.safe_load(path.read_text())
    del spec["design"]["judgments_per_item"]
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    assert "--raters" in dialometer("preregister", folder, "--simulations", 0, fails=True)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("session_time", {"at_least_s": 300}, "a session of less than 5 minutes"),
        ("session_time", {"at_least_s": 90, "at_most_s": 7200}, "a session of less than 90 s or more than 120 minutes"),
        ("screen_time", {"at_least_s": 2.5}, "more than 10% of the item screens seen for less than 2.5 s"),
        ("block_list", {"raters": ["Bob"]}, "an identifier on the study's list"),
        (
            "gold",
            {"items": ["a", "b"], "acceptable": [{"criterion": "clear", "at_least": 4}], "n_allowed_failures": 1},
            "2 or more unexpected answers to a, b; expected: clear at least 4",
        ),
        (
            "comprehension",
            {
                "questions": [{"name": "whom", "question": "Whom do you rate?", "scale": "who", "answer": ["A", "B"]}],
                "attempts": 1,
            },
            "a wrong answer to “Whom do you rate?” (right: A, B) at once",
        ),
    ],
)
def test_a_rule_says_what_it_recognises(name, options, words):
    assert RULES.get(name).model_validate({"rule": name, **options}).in_words() == words
