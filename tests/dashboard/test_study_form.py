"""The form of a study file: everything that the templates say can be made with it, and what is not touched stays."""

import re

import pytest

from dialometer.design.edit_yaml import edited
from dialometer.design.load import load_study
from dialometer.design.positions import parse_yaml
from dialometer.design.templates import copy_template, template_folder, template_names
from dialometer.web.dashboard.pages.form import STEPS, form_schema, keys_of
from dialometer.web.dashboard.study_form import FormError, StudyForm

SCHEMA = form_schema()
KEYS = list(SCHEMA["properties"])
BARE = {"name": "x", "dialometer": 1, "title": "x", "seed": 1, "items": {"kind": "responses"}, "scales": {}}


def data_of(name):
    return parse_yaml((template_folder(name) / "study.yaml").read_text(), "").data


def leaves(field):
    if not field.children:
        yield field
    for child in field.children:
        yield from leaves(child)


def typed_as_shown(form):
    """What a browser sends for a form that nobody has touched."""
    sent = {}
    for field in [leaf for part in form.fields(KEYS) for leaf in leaves(part)]:
        if field.kind == "yes":
            sent |= {f"{field.path}._shown": "1"} | ({field.path: "yes"} if field.value else {})
        elif field.kind not in ("group", "list", "map", "told"):
            sent[field.path] = field.value.replace("\n", "\r\n")
    return sent


@pytest.mark.parametrize("name", template_names())
def test_a_form_that_nobody_touched_changes_nothing(name):
    text = (template_folder(name) / "study.yaml").read_text()
    form = StudyForm(SCHEMA, data_of(name))
    assert form.take(KEYS, typed_as_shown(form)) == {}
    assert edited(text, form.data) == text


@pytest.mark.parametrize("name", template_names())
def test_every_template_can_be_made_from_nothing(name, tmp_path):
    """Entries are added by their buttons and filled in field by field, as somebody at the page would; the meaning is the same."""
    wanted = _plain(data_of(name))
    form = StudyForm(SCHEMA, BARE)
    _add_entries(form, wanted, "")
    assert form.take(KEYS, typed_as_shown(StudyForm(SCHEMA, wanted))) == {}
    copy_template(name, tmp_path / name)
    (tmp_path / name / "study.yaml").write_text(edited("dialometer: 1\n", form.data))
    assert load_study(tmp_path / name).spec.model_dump() == load_study(template_folder(name)).spec.model_dump()


def _plain(data):
    """Factors and questions in their long form; the short ones are for those who type."""
    for factor in data.get("design", {}).get("factors", []):
        factor["levels"] = [
            level if isinstance(level, dict) else {"name": level, "set": {factor["name"]: level}}
            for level in factor["levels"]
        ]
    for comparison in data.get("analysis", {}).get("comparisons", []):
        if isinstance(comparison.get("expected"), str):
            comparison["expected"] = [comparison["expected"]]
    return data


def _add_entries(form, wanted, path):
    """Presses "Add" as often as the wanted data has entries that are groups."""
    for key, value in wanted.items() if isinstance(wanted, dict) else enumerate(wanted):
        place = f"{path}.{key}" if path else str(key)
        if place.startswith("systems.") and isinstance(value, dict) and "type" in value:  # it decides on the options
            assert form.take([place.partition(".")[0]], {f"{place}.type": value["type"]}) == {}
        field = form._find(place)
        if field is not None and field.kind in ("list", "map"):
            names = list(value) if isinstance(value, dict) else range(len(value))
            for name in names:
                entry = value[name]
                kind = entry if isinstance(entry, str) else entry.get("type" if field.kind == "map" else "rule", "")
                is_there = not isinstance(value, dict) and len(field.children) > name
                made = f"{place}.{name}" if is_there else form.do(f"add {place}", kind)
                if field.kind == "map":
                    assert form.take([place.partition(".")[0]], {f"{made}._name": name}) == {}
                field = form._find(place)
        if isinstance(value, dict | list) and value:
            _add_entries(form, value, place)


def test_each_key_has_its_step():
    assert sorted(key for step in STEPS for key in keys_of(step)) == sorted(set(KEYS) - {"dialometer", "name"})


def test_an_agent_has_the_fields_of_its_type():
    data = {
        "systems": [{"name": "a", "agent": {"type": "http", "options": {"url": "http://a.example", "replyfield": "x"}}}]
    }
    form = StudyForm(SCHEMA, data)
    paths = {leaf.path.rpartition("options.")[2]: leaf for leaf in leaves(form.fields(["systems"])[0])}
    assert {"url", "reply_field", "timeout_s", "replyfield"} <= set(paths)
    assert paths["url"].is_required
    assert (
        form.take(["systems"], {"systems.0.agent.options.replyfield": "", "systems.0.agent.options.reply_field": "x"})
        == {}
    )
    assert data["systems"][0]["agent"]["options"] != form.data["systems"][0]["agent"]["options"]
    assert form.data["systems"][0]["agent"]["options"] == {"url": "http://a.example", "reply_field": "x"}
    form.take(["systems"], {"systems.0.agent.type": "of_a_plug_in"})
    [options] = [leaf for leaf in leaves(form.fields(["systems"])[0]) if leaf.path.endswith("options")]
    assert options.kind == "yaml"


def test_every_field_says_what_it_is():
    """In the form and in the reference; a field whose value is a constant needs no words."""
    for name, part in SCHEMA["$defs"].items():
        for key, field in part.get("properties", {}).items():
            assert "const" in field or "$ref" in field or field.get("description"), f"{name}.{key}"
    assert all("$ref" in field or field.get("description") for field in SCHEMA["properties"].values())
    kinds = [field for field in StudyForm(SCHEMA, BARE).fields(["scales", "quality"]) for _, field in field.kinds]
    assert kinds
    assert all(kinds)


def test_what_cannot_be_read_is_told_at_its_field():
    form = StudyForm(SCHEMA, data_of("likert"))
    wrong = {
        "seed": "many",
        "design.items_per_rater": "ten",
        "scales.relevance_5.labels": "no colon",
        "recruitment.minutes": "1.5",
    }
    told = form.take(KEYS, wrong)
    assert set(told) == {"seed", "scales.relevance_5.labels"}
    assert form.data["design"]["items_per_rater"] == "ten", "words are words here; the check says which are known"
    assert form.data["recruitment"]["minutes"] == 1.5


def test_entries_come_go_and_move():
    form = StudyForm(SCHEMA, data_of("likert"), {"scale": ["relevance_5"]})
    assert form.do("add criteria") == "criteria.3"
    assert form.data["criteria"][3] == {"name": "criterion_4", "question": "", "scale": "relevance_5"}
    form.do("up criteria.1")
    assert [one["name"] for one in form.data["criteria"]] == ["fluency", "relevance", "helpfulness", "criterion_4"]
    form.do("remove criteria.3")
    assert form.do("add quality", "attention") == "quality.6"
    assert form.data["quality"][6]["rule"] == "attention"
    assert form.take(["scales"], {"scales.gender._name": "age_group"}) == {
        "scales.gender._name": "there is a 'age_group' already"
    }
    for wrong in ("add nothing", "remove criteria.9", "up criteria", "add name"):
        with pytest.raises(FormError):
            form.do(wrong)


def test_a_draft_is_made_by_its_form(site, studies_folder):
    ada = site.owner()
    ada.post("/new", {"name": "films", "from": "template:likert"})
    path = studies_folder / "films" / "study.yaml"
    before = path.read_text()
    ada.get("/studies/films/form/study")
    ada.post("/studies/films/form/study", {"title": "Films and books", "then": "systems"})
    assert "Systems and items" in ada.text
    assert path.read_text() == before.replace(
        "title: Rating the responses of a travel assistant", "title: Films and books"
    )
    ada.post("/studies/films/form/criteria", {"_do": "add criteria"})
    assert "to fix" in ada.text
    assert "'question' is empty" in ada.text
    assert "appears here as soon as" in ada.text, "no preview of a study with errors"
    ada.post("/studies/films/form/undo", {"step": "criteria"})
    ada.post("/studies/films/form/undo", {"step": "criteria"})
    assert path.read_text() == before
    assert ada.post("/studies/films/form/undo", {"step": "criteria"}).status == 422
    assert ada.post("/studies/films/form/study", {"seed": "x"}).status == 422
    assert re.search(r'name="seed" value="x"', ada.page), "what was typed stays"
    assert path.read_text() == before
    assert ada.get("/studies/films/form/nothing").status == 404


def test_large_steps_are_sent_whole(site, studies_folder):
    ada = site.owner()
    ada.post("/new", {"name": "talks", "from": "template:wizard"})
    path = studies_folder / "talks" / "study.yaml"
    before = path.read_text()
    sent = typed_as_shown(StudyForm(SCHEMA, parse_yaml(before, "").data))
    assert max(sum(name.partition(".")[0] in keys_of(step) for name in sent) for step in STEPS) > 100
    for step in STEPS:
        ada.post(f"/studies/talks/form/{step}", sent)
        assert ada.status == 200
        assert "Saved." in ada.text
    assert path.read_text() == before
