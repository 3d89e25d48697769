"""Studies as forms of Potato and Label Studio, and their answers back as judgments."""

from __future__ import annotations

import csv
import json
import re
from xml.etree import ElementTree

import pytest
import yaml

from commands import invoke
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.errors import DialometerError
from dialometer.exchange.tool_form import tool_form
from dialometer.model.dialogue import Media, ToolCall, Turn
from dialometer.model.tool_steps import in_words
from dialometer.storage.store import Store

MAPPED = ("acute", "avatar", "best-worst", "likert", "strategies", "anchoring")


def dialometer(*words, fails=False):
    shown = invoke(*words, fails=fails)
    return shown if fails else json.loads(shown)


@pytest.fixture
def make(tmp_path):
    def study(template):
        copy_template(template, tmp_path / template)
        return tmp_path / template

    return study


def levels(study):
    """What a form cannot say: the level of every factor."""
    return [word for f in study.spec.design.factors for word in ("--map", f"factor_{f.name}=:{f.levels[0].name}")]


def judged(folder):
    with Store.open(folder / "study.db") as store:
        return list(store.records.judgments())


# Potato


def potato_answer(scheme):
    """What Potato stores for a scheme: pairs of label and value."""
    name = scheme["name"]
    label = lambda text, value: [{"schema": name, "name": text}, value]  # noqa: E731
    match scheme["annotation_type"]:
        case "likert":
            return [label(str(scheme["size"]), str(scheme["size"]))]
        case "radio":
            return [label(scheme["labels"][-1 if "__worst" in name else 0], True)]
        case "multiselect":
            return [label(one, True) for one in scheme["labels"][:2]]
        case "pairwise":
            return [label("selection", "B")]
        case "slider":
            return [label("slider", str(scheme["max_value"]))]
        case "number":
            return [label("number", "42")]
        case "text":
            return [label("text_box", "fine")]
    raise AssertionError(scheme)


@pytest.mark.parametrize("template", MAPPED)
def test_a_potato_project_and_its_answers(make, template):
    folder = make(template)
    study = load_study(folder)
    told = dialometer("export", folder, "--form", "potato", "--json")
    project = folder / "potato"
    config = yaml.safe_load((project / "config.yaml").read_text())
    items = [json.loads(line) for line in (project / config["data_files"][0]).read_text().splitlines()]
    assert len(items) == told["items"] == len(study.rated_items)
    assert {"annotation_task_name", "task_dir", "item_properties", "output_annotation_dir"} <= set(config)
    names = [system.name for system in study.spec.systems]
    shown = (project / "config.yaml").read_text() + (project / "data" / "items.jsonl").read_text()
    assert not [name for name in names if f'"{name}"' in shown], "raters see no system's name"
    for who in ("ann", "bob"):
        state = {
            "user_id": who,
            "instance_id_to_label_to_value": {
                item["id"]: [pair for scheme in config["annotation_schemes"] for pair in potato_answer(scheme)]
                for item in items[:3]
            },
        }
        target = project / "annotation_output" / who
        target.mkdir(parents=True)
        (target / "user_state.json").write_text(json.dumps(state))
    done = dialometer("import", folder, project / "annotation_output", *levels(study), "--json")
    assert done["files"][0]["format"] == "potato"
    assert done["files"][0]["n_raters"] == 2
    found = judged(folder)
    key = json.loads((project / "dialometer-key.json").read_text())
    shown_order = {entry["item"]: entry["systems"] for entry in key["items"].values()}
    assert {judgment.item_id for judgment in found} == {key["items"][item["id"]]["item"] for item in items[:3]}
    for judgment in found:
        order = shown_order[judgment.item_id]
        if judgment.scale == "pairwise":
            assert judgment.value == order[1]
            assert judgment.side == 2
        elif judgment.scale == "best_worst":
            assert judgment.value == {"best": order[0], "worst": order[-1]}
    per_rater = {s.name for s in tool_form(study).fields if not s.part}
    expected = len(per_rater) + sum(f.part == "best" for f in tool_form(study).fields)
    assert len(found) == 2 * 3 * expected


def test_older_forms_of_potatos_files_are_read(make, tmp_path):
    folder = make("likert")
    study = load_study(folder)
    dialometer("export", folder, "--form", "potato", "--json")
    field = tool_form(study).fields[0]
    item = study.neutral_ids[study.rated_items[0].id]
    output = folder / "potato" / "annotation_output"
    nested = {"user_id": "cy", "instance_id_to_label_to_value": {item: {field.name: {"labels": {"scale_4": True}}}}}
    (output / "cy").mkdir(parents=True)
    (output / "cy" / "user_state.json").write_text(json.dumps(nested))
    (output / "di").mkdir()
    entry = {"id": item, "displayed_text": "…", "label_annotations": {field.name: {"scale_2": "2"}}}
    (output / "di" / "annotated_instances.jsonl").write_text(json.dumps(entry) + "\n")
    dialometer("import", folder, output, "--json")
    assert sorted(judgment.value for judgment in judged(folder)) == [2, 4]


def test_half_a_character_among_the_labels_is_refused(tmp_path):
    """A study is written from the labels, and no YAML file can hold a lone surrogate."""
    for user, chosen in (("ann", {"scale_4": "4"}), ("bob", {"scale_3": "\ud800"})):
        (tmp_path / "out" / user).mkdir(parents=True)
        row = {"user_id": user, "instance_id": "i1", "label_annotations": {"quality": chosen}}
        (tmp_path / "out" / user / "annotated_instances.jsonl").write_text(json.dumps(row) + "\n")
    shown = dialometer("import", tmp_path / "study", tmp_path / "out", "--format", "potato", fails=True)
    assert "make no scale" in " ".join(shown.split())


# Label Studio


def studio_result(control, view):
    name, kind = control.get("name"), control.tag
    base = {"from_name": name, "to_name": control.get("toName"), "id": name}
    match kind:
        case "Rating":
            return {**base, "type": "rating", "value": {"rating": int(control.get("maxRating"))}}
        case "Number":
            return {**base, "type": "number", "value": {"number": float(control.get("max") or 42)}}
        case "TextArea":
            return {**base, "type": "textarea", "value": {"text": ["fine"]}}
        case "Choices":
            values = [choice.get("value") for choice in control]
            chosen = values[-1:] if "__worst" in name else values[:1]
            return {**base, "type": "choices", "value": {"choices": chosen}}
    raise AssertionError(kind)


@pytest.mark.parametrize("template", MAPPED)
def test_a_label_studio_project_and_its_answers(make, template):
    folder = make(template)
    study = load_study(folder)
    dialometer("export", folder, "--form", "label_studio", "--json")
    project = folder / "label_studio"
    view = ElementTree.fromstring((project / "config.xml").read_text())
    listed = json.loads((project / "items.json").read_text())
    shown_names = {element.get("name") for element in view if element.get("value", "").startswith("$")}
    controls = [
        element
        for element in view.iter()
        if element.get("toName") and not re.search("__worst__[B-Z]$", element.get("name"))
    ]  # who chose A as the best sees the control of the worst that belongs to A
    for control in controls:
        assert set(control.get("toName").split(",")) <= shown_names
    for element in view:
        value = element.get("value", "")
        assert not value.startswith("$") or value[1:] in listed[0]["data"]
    export = [
        {
            "id": 100 + number,
            "data": entry["data"],
            "annotations": [
                {
                    "id": 900 + number,
                    "completed_by": {"id": 3, "email": "ann@example.org"} if number % 2 else 7,
                    "created_at": "2026-03-09T22:16:08.728353Z",
                    "lead_time": 12.5,
                    "was_cancelled": False,
                    "result": [studio_result(control, view) for control in controls],
                },
                {"id": 1, "completed_by": 8, "was_cancelled": True, "result": []},
            ],
        }
        for number, entry in enumerate(listed[:4])
    ]
    answers = project / "project-1.json"
    answers.write_text(json.dumps(export))
    done = dialometer("import", folder, answers, *levels(study), "--json")
    assert done["files"][0]["format"] == "label_studio"
    assert done["files"][0]["n_raters"] == 2
    assert done["files"][0]["left_out"]["skipped annotations"] == 4
    found = judged(folder)
    key = json.loads((project / "dialometer-key.json").read_text())
    shown_order = {entry["item"]: entry["systems"] for entry in key["items"].values()}
    for judgment in found:
        assert judgment.answered_at_ms - judgment.shown_at_ms == 12_500
        order = shown_order[judgment.item_id]
        if judgment.scale == "pairwise":
            assert judgment.value == order[0]
        elif judgment.scale == "best_worst":
            assert judgment.value == {"best": order[0], "worst": order[-1]}
    assert {judgment.item_id for judgment in found} == {
        key["items"][entry["data"]["item"]]["item"] for entry in listed[:4]
    }
    n_fields = len([field for field in tool_form(study).fields if field.part != "worst"])
    assert len(found) == 4 * n_fields, "every answer of every rater is kept"


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_the_smaller_exports_of_label_studio_give_the_same_answers(make, kind):
    folder = make("best-worst")
    dialometer("export", folder, "--form", "label_studio", "--json")
    project = folder / "label_studio"
    data = json.loads((project / "items.json").read_text())[0]["data"]
    criteria = [criterion.name for criterion in load_study(folder).spec.criteria]
    meta = {"annotator": 3, "annotation_id": 1, "created_at": "2026-03-09T22:16:08Z", "lead_time": 12.5}
    answers = {f"{name}__best": "B" for name in criteria} | {f"{name}__worst__B": "A" for name in criteria}
    entry = {**data, "id": 27, **answers, **meta}
    file = project / f"project-1.{kind}"
    if kind == "json":
        file.write_text(json.dumps([entry]))
    else:
        cells = {name: value if isinstance(value, str) else json.dumps(value) for name, value in entry.items()}
        with file.open("w", newline="") as opened:
            writer = csv.DictWriter(opened, cells)
            writer.writeheader()
            writer.writerow(cells)
    key, elsewhere = project / "dialometer-key.json", folder / "key"
    key.rename(elsewhere)
    assert "put dialometer-key.json beside the file" in dialometer("import", folder, file, fails=True)
    elsewhere.rename(key)
    done = dialometer("import", folder, file, "--json")
    assert done["files"][0]["format"] == "label_studio"
    systems = json.loads(key.read_text())["items"][data["item"]]["systems"]
    assert [judgment.value for judgment in judged(folder)] == [{"best": systems[1], "worst": systems[0]}] * len(
        criteria
    )


def test_best_and_worst_alike_is_left_out_and_the_rest_read(make):
    folder = make("best-worst")
    dialometer("export", folder, "--form", "label_studio", "--json")
    listed = json.loads((folder / "label_studio" / "items.json").read_text())
    criterion = load_study(folder).spec.criteria[0].name

    def annotated(entry, worst):
        pairs = ((f"{criterion}__best", "A"), (f"{criterion}__worst", worst))
        results = [{"from_name": name, "type": "choices", "value": {"choices": [value]}} for name, value in pairs]
        return {"data": entry["data"], "annotations": [{"completed_by": 3, "result": results}]}

    answers = folder / "label_studio" / "project-1.json"
    answers.write_text(json.dumps([annotated(listed[0], "A"), annotated(listed[1], "C")]))
    done = dialometer("import", folder, answers, "--json")
    assert done["files"][0]["left_out"] == {"best-worst answers with the same response as best and worst": 1}
    assert len(judged(folder)) == 1


def test_ids_in_a_form_name_no_system(make):
    study = load_study(make("acute"))
    systems = {system.name for system in study.spec.systems}
    form = tool_form(study)
    assert any(name in item.item for item in form.items for name in systems), "the study's own ids do"
    assert not any(name in item.id for item in form.items for name in systems)
    assert len({item.id for item in form.items}) == len(form.items)


def test_sides_are_drawn_and_told_only_by_the_key(make):
    folder = make("acute")
    form = tool_form(load_study(folder))
    first = [item.systems[0] for item in form.items]
    assert len(set(first)) > 2
    assert tool_form(load_study(folder)).key() == form.key()
    assert any("questionnaires" in what for what in form.left_out)


def test_what_has_no_place_in_a_form_is_refused(make):
    with pytest.raises(DialometerError, match="live conversations"):
        tool_form(load_study(make("chat")))


def test_answers_to_another_form_are_refused_with_the_item(make):
    folder = make("likert")
    dialometer("export", folder, "--form", "potato", "--json")
    target = folder / "potato" / "annotation_output" / "ann"
    target.mkdir(parents=True)
    state = {"user_id": "ann", "instance_id_to_label_to_value": {"nobody": [[{"schema": "x", "name": "1"}, "1"]]}}
    (target / "user_state.json").write_text(json.dumps(state))
    assert "the form has no item 'nobody'" in dialometer("import", folder, target.parent, fails=True)
    (target / "user_state.json").write_text("{")
    assert "broken JSON" in dialometer("import", folder, target.parent, "--format", "potato", fails=True)
    (target / "user_state.json").write_text("[1]")
    assert "not a file of Potato's" in dialometer("import", folder, target.parent, "--format", "potato", fails=True)


def test_forms_name_tool_calls_and_media_in_words():
    call, file = ToolCall("search", '{"query": "ferns"}', "y" * 9_000), Media("image", "media/fern.png", "A fern")
    text = in_words(Turn("Agent", "Dry air.", "agent", (call,), (file,)))
    assert text.startswith('[used the tool search with {"query": "ferns"}; result: yyy')
    assert text.endswith("]\nDry air.\n[image: A fern]")
    assert len(text) < 5_000
    assert in_words(Turn("Agent", "Dry air.")) == "Dry air."
