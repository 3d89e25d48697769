"""The schema for editors says what the loader says."""

import json
from pathlib import Path

import jsonschema
import pytest

from dialometer.design.positions import StudyLoader, _parsed, _QuickLoader, parse_yaml
from dialometer.design.schema import study_schema
from dialometer.design.templates import template_folder, template_names

KEPT = Path(__file__).parents[2] / "docs" / "reference" / "study.schema.json"


@pytest.fixture(scope="module")
def validator():
    schema = study_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", template_names())
def test_templates_fit_the_schema(validator, name):
    data = parse_yaml((template_folder(name) / "study.yaml").read_text(), "study.yaml").data
    # JSON has only text as keys; labels of scales are numbers in YAML.
    errors = [error.message for error in validator.iter_errors(json.loads(json.dumps(data)))]
    assert errors == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("criteria", 0, "qestion"), "x"),
        (("scales", "extra"), {"type": "likert", "points": 99}),
        (("scales", "extra"), {"type": "lickert"}),
        (("quality",), [{"rule": "nothing"}]),
        (("seed",), "seven"),
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(validator, path, value):
    data = parse_yaml((template_folder("likert") / "study.yaml").read_text(), "study.yaml").data
    data = json.loads(json.dumps(data))
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert list(validator.iter_errors(data))


def test_the_kept_schema_is_current():
    assert json.loads(KEPT.read_text(encoding="utf-8")) == study_schema(), (
        "run: dialometer schema > docs/reference/study.schema.json"
    )


@pytest.mark.parametrize("text", [
    *((template_folder(name) / "study.yaml").read_text() for name in template_names()),
    "a: &x {b: [1, 2.5, true, ~, 'é: ü']}\nc: *x\nc: twice\n😀: |\n  two\n  lines\nd: >-\n  folded\n",
    "", "- yes\n- 2026-01-01\n- 0o7\n- .5\n- 1e3\n",
])  # fmt: skip
def test_libyaml_reads_the_same_at_the_same_places(text):
    quick, usual = (_parsed(text, "study.yaml", kind) for kind in (_QuickLoader, StudyLoader))
    assert quick == usual


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "\tx: 1", "x: \x07", "a: {b}}", "&a *a", "- " * 5000, "[" * 5000])
def test_what_is_not_yaml_is_said_in_the_same_words_with_and_without_libyaml(text, monkeypatch):
    told = parse_yaml(text, "study.yaml")
    monkeypatch.setattr("dialometer.design.positions._QuickLoader", StudyLoader)
    assert told == parse_yaml(text, "study.yaml")
    assert told.problems
