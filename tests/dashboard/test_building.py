"""A study built from nothing by the dashboard's forms alone: every template, and the folder says what the template says."""

import itertools
import json
import re
import threading
import time
from html import unescape

import pytest
from test_study_form import KEYS, SCHEMA, _add_entries, _plain, data_of, typed_as_shown

from dialometer.agents.scripted import Scripted
from dialometer.design.library import PLACES, library
from dialometer.design.load import load_study, read_study
from dialometer.design.lock import part_hashes
from dialometer.design.positions import parse_yaml
from dialometer.design.templates import copy_template, template_folder, template_names
from dialometer.web.dashboard.jobs import job_state
from dialometer.web.dashboard.pages.form import STEPS, keys_of, texts_named
from dialometer.web.dashboard.running_studies import StudyFolders
from dialometer.web.dashboard.study_form import StudyForm

QUICK = ("likert", "strategies")


@pytest.fixture
def parent(tmp_path):
    (tmp_path / "studies").mkdir()
    return tmp_path / "studies"


@pytest.fixture
def ada(make_site, parent):
    return make_site(StudyFolders(parent=str(parent))).owner()


class PageForm:
    """The form of a study as its pages offer it: every change is what a browser would send."""

    def __init__(self, ada, folder):
        self.ada, self.folder = ada, folder

    def begin(self):
        self.ada.post("/new", {"name": self.folder.name, "title": "From nothing", "from": "empty:"}, follow=False)

    def bring(self, items):
        self.ada.post(f"/studies/{self.folder.name}/add-items", files={"items": ("mine.jsonl", items, "text/plain")})
        self.ada.post(f"/studies/{self.folder.name}/add-items", {"use": "1"}, follow=False)
        assert self.ada.status == 303, self.ada.text

    def upload(self, file, content):
        self.ada.post(
            f"/studies/{self.folder.name}/files", files={"other": (file, content, "text/plain")}, follow=False
        )

    def step_of(self, path):
        return next(step for step in STEPS if path.partition(".")[0] in keys_of(step))

    def _find(self, path):
        return StudyForm(SCHEMA, parse_yaml((self.folder / "study.yaml").read_text(), "").data)._find(path)

    def _send(self, step, fields):
        self.ada.post(f"/studies/{self.folder.name}/form/{step}", fields, follow=False)
        assert self.ada.status == 303, self.ada.text
        return self.ada.response.headers["location"]

    def do(self, action, kind=""):
        path = action.partition(" ")[2]
        return self._send(self.step_of(path), {"_do": action, f"{path}._kind": kind}).partition("#")[2]

    def take(self, keys, typed):
        self._send(self.step_of(keys[0]), typed)
        return {}

    def fill(self, step, typed):
        """Fills the fields that the page of a step has; those that are wanted must be there."""
        page = self.ada.get(f"/studies/{self.folder.name}/form/{step}").page
        there = {unescape(name) for name in re.findall(r'<(?:input|textarea|select)[^>]* name="([^"]+)"', page)}
        wanted = {name: text for name, text in typed.items() if name.partition(".")[0] in keys_of(step)}
        assert set(wanted) <= there
        self._send(step, {name: text for name, text in typed.items() if name in there})


def build(form, name):
    """Builds the study of a template as somebody would who has only the dashboard."""
    wanted, source = _plain(data_of(name)), template_folder(name)
    form.begin()
    _add_entries(form, {key: wanted[key] for key in KEYS if key in wanted}, "")
    typed = typed_as_shown(StudyForm(SCHEMA, wanted))
    for file in texts_named(wanted):
        if (source / file).is_file():
            typed[f"_text:{file}"] = (source / file).read_text(encoding="utf-8")
    form.fill("systems", typed)
    form.bring((source / "items.jsonl").read_bytes())
    others = {path.name for path in source.iterdir()} - {"study.yaml", "items.jsonl", "about.json", "picture.webp"}
    for step in STEPS:
        form.fill(step, typed)
    for file in sorted(others - {path.name for path in form.folder.iterdir()}):
        form.upload(file, (source / file).read_bytes())
    form.fill("questions", typed)


def differing_parts(folder, name):
    """Parts of a study that are not as in the template, but for its name."""
    built, wanted = part_hashes(load_study(folder)), part_hashes(load_study(template_folder(name)))
    return {part for part in {*built, *wanted} - {"study.yaml: name"} if built.get(part) != wanted.get(part)}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in template_names()]
)
def test_a_template_is_built_from_nothing(ada, parent, name):
    build(PageForm(ada, parent / "built"), name)
    assert "No errors." in ada.get("/studies/built/form/study").text
    assert differing_parts(parent / "built", name) == set()


@pytest.mark.slow
def test_the_library_is_inserted_with_its_source(ada, parent):
    ada.post("/new", {"name": "mine", "from": "template:likert"}, follow=False)
    folder = parent / "mine"
    before = (folder / "study.yaml").read_text()
    for part in PLACES:
        step = PageForm(ada, folder).step_of(part)
        ada.get(f"/studies/mine/form/{step}")
        for entry in library(part).values():
            assert entry.label in ada.text
            assert entry.source in ada.text
        for entry in list(library(part)) * 2:
            ada.post(f"/studies/mine/form/{step}", {"_do": f"insert {part} {entry}"}, follow=False)
            assert ada.status == 303
    spec = read_study(folder)[0].spec
    asked = [one.name for one in spec.post_questionnaire]
    assert asked[-6:] == [one["name"] for one in library("post_questionnaire")["tlx"].entries]
    criteria = {one.name: one for one in spec.criteria}
    assert criteria["support"].source.startswith("After Rashkin")
    assert len(spec.criteria) == len(criteria)
    assert spec.scales["relevance_5"].labels[5] == "Fully relevant", "one scale where two say the same"
    assert before.splitlines()[0] in (folder / "study.yaml").read_text(), "comments stay"
    assert ada.post("/studies/mine/form/criteria", {"_do": "insert criteria nothing"}).status == 422


def spec_in(folder):
    """What the study file says."""
    return parse_yaml((folder / "study.yaml").read_text(), "").data


@pytest.fixture
def form(ada, parent):
    """A draft whose form was opened: what a browser sends back from a step, with the mark of what was opened."""
    copy_template("likert", parent / "likert")

    def opened(step):
        page = ada.get(f"/studies/likert/form/{step}").page
        shown = StudyForm(SCHEMA, spec_in(parent / "likert"))
        return typed_as_shown(shown) | {"base": re.search(r'name="base" value="([0-9a-f]+)"', page)[1]}

    return opened


def test_two_people_at_one_form_lose_nothing(ada, parent, form):
    mine, theirs = form("study"), form("study")
    ada.post("/studies/likert/form/study", {**theirs, "title": "Their title"})
    ada.post("/studies/likert/form/study", {**mine, "contact": "me@example.com"})
    assert "it holds both changes now" in ada.text
    spec = spec_in(parent / "likert")
    assert (spec["title"], spec["contact"]) == ("Their title", "me@example.com")


def test_where_two_people_change_one_field_the_second_decides(ada, parent, form):
    mine, theirs = form("study"), form("study")
    ada.post("/studies/likert/form/study", {**theirs, "title": "Their title", "contact": "they@example.com"})
    ada.post("/studies/likert/form/study", {**mine, "title": "My title"})
    assert "ada changed this too, to “Their title”. Your text is shown: save again to keep it." in ada.text
    assert 'value="My title"' in ada.page
    assert 'value="they@example.com"' in ada.page
    base = re.search(r'name="base" value="([0-9a-f]+)"', ada.page)[1]
    assert spec_in(parent / "likert")["title"] == "Their title"
    again = {**mine, "base": base, "title": "My title", "contact": "they@example.com"}
    ada.post("/studies/likert/form/study", again)
    spec = spec_in(parent / "likert")
    assert (spec["title"], spec["contact"]) == ("My title", "they@example.com")


def test_the_audit_log_names_what_the_form_changed(ada, form):
    ada.post("/studies/likert/form/questions", {**form("questions"), "_text:consent.md": "Please agree."})
    ada.post("/studies/likert/form/questions", form("questions"))
    ada.get("/audit")
    assert re.findall(r"wrote files (\S+) likert", ada.text) == ["consent.md"]


def test_undo_takes_back_whatever_changed_last(ada, parent, form):
    folder = parent / "likert"
    form("study")

    def now():
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    def undo():
        ada.post("/studies/likert/form/undo", {"step": "study"})
        assert "Undone." in ada.text
        return now()

    states = [now()]
    for place, typed in (
        ("form/study", {"title": "Another title"}),
        ("add-items", {"pasted": "question,one,two\nHow?,So.,Thus.\n"}),
        ("form/questions", {"_text:consent.md": "Please agree."}),
    ):
        ada.post(f"/studies/likert/{place}", typed)
        if "pasted" in typed:
            ada.post("/studies/likert/add-items", {"use": "1"})
        states.append(now())
    assert undo() == states[2], "a text"
    assert undo() == states[1], "items, and the systems that came with them"
    ada.post("/studies/likert/form/study", {"title": "A third title"})
    states[2] = now()
    ada.post("/studies/likert/versions/1/restore")
    assert now() == states[0], "an earlier version is restored"
    assert undo() == states[2], "which is a change of its own"
    assert undo() == states[1]
    assert undo() == states[0]
    assert ada.post("/studies/likert/form/undo").status == 422, "there is nothing to undo"


def test_entries_that_came_and_went_meanwhile_are_not_mixed_up(ada, parent, form):
    mine = form("criteria")
    ada.post("/studies/likert/form/criteria", {**form("criteria"), "_do": "remove criteria.0"})
    ada.post("/studies/likert/form/criteria", {**mine, "criteria.1.label": "My label"})
    assert ada.status == 409
    assert ada.text.index("not saved yet") < ada.text.index("Download all"), "it is what the page shows first"
    assert "My label" in ada.page
    names = [one["name"] for one in spec_in(parent / "likert")["criteria"]]
    assert names == ["fluency", "helpfulness"]
    ada.post("/studies/likert/form/design", {**form("design"), "design.judgments_per_item": "7"})
    assert "Saved." in ada.text


def test_a_change_on_disk_is_not_written_over(ada, parent, form):
    mine = form("study")
    path = parent / "likert" / "study.yaml"
    path.write_text(path.read_text().replace("contact:", "licence: CC0-1.0\ncontact:"))
    ada.post("/studies/likert/form/study", {**mine, "title": "My title"})
    assert "changed on disk meanwhile" in ada.text
    assert 'value="My title"' in ada.page
    assert "My title" not in path.read_text()


def test_pairs_are_written_turn_by_turn(ada, parent):
    copy_template("strategies", parent / "talks")
    path = parent / "talks" / "items.jsonl"
    before = path.read_text()
    first = json.loads(before.splitlines()[0])
    ada.get("/studies/talks/pairs")
    assert first["id"] in ada.text
    ada.get("/studies/talks/pairs/1")
    fields = {unescape(n): unescape(v) for n, v in re.findall(r'<input[^>]* name="([^"]+)" value="([^"]*)"', ada.page)}
    fields |= {
        n: unescape(v) for n, v in re.findall(r'<textarea name="([^"]+)"[^>]*>\n(.*?)</textarea>', ada.page, re.S)
    }
    chosen = r'<select name="([^"]+)">(?:<option>[^<]*</option>)*<option selected>([^<]*)</option>'
    fields |= {n: unescape(v) for n, v in re.findall(chosen, ada.page)}
    ada.post("/studies/talks/pairs/1", fields, follow=False)
    assert ada.status == 303
    assert [json.loads(x) for x in path.read_text().splitlines()] == [json.loads(x) for x in before.splitlines()]
    agent = next(n for n in fields if re.fullmatch(r"b\.\d+", n) and fields[f"a{n[1:]}"] == fields[n])
    shorter = {**fields, agent: fields[f"a{agent[1:]}"].rsplit(" ", 3)[0] or "x"}
    looked = ada.post("/studies/talks/pairs/look", {**shorter, "line": "1"}).text
    assert "only loses text" in looked
    assert "✗ change_kind" in looked
    assert "✓ user_turns" in looked
    assert path.read_text() != "", "nothing is saved by looking"


def test_two_people_who_edit_pairs_lose_nothing(ada, parent):
    copy_template("strategies", parent / "mine")
    path = parent / "mine" / "items.jsonl"
    before = [json.loads(line) for line in path.read_text().splitlines()]

    def opened(line):
        page = ada.get(f"/studies/mine/pairs/{line}").page
        item = before[line - 1]
        typed = {
            "base": re.search(r'name="base" value="([0-9a-f]+)"', page)[1],
            "id": item["id"],
            "block": item.get("block", ""),
        }
        for side in ("a", "b"):
            typed |= {f"{side}.system": item[side]["system"], f"{side}.outcome": item[side].get("outcome", "")}
            for number, turn in enumerate(item[side]["turns"]):
                typed |= {
                    f"speaker.{number}": turn["speaker"],
                    f"was.{number}": str(number),
                    f"{side}.{number}": turn["text"],
                }
        return typed

    first, mine, same = opened(1), opened(3), opened(3)
    ada.post("/studies/mine/pairs/1", {**first, "_do": "remove"})
    ada.post("/studies/mine/pairs/3", {**mine, "b.1": "Mine."})
    assert f"Saved the pair {before[2]['id']}." in ada.text
    ada.post("/studies/mine/pairs/3", {**same, "b.1": "Also mine."})
    assert "Somebody else changed this pair." in ada.text
    assert "Also mine." in ada.page
    after = [json.loads(line) for line in path.read_text().splitlines()]
    assert [item["id"] for item in after] == [item["id"] for item in before[1:]]
    assert after[1]["b"]["turns"][1]["text"] == "Mine."
    base = re.search(r'name="base" value="([0-9a-f]+)"', ada.page)[1]
    assert 'action="/dashboard/studies/mine/pairs/2"' in ada.page
    ada.post("/studies/mine/pairs/2", {**same, "base": base, "b.1": "Also mine."})
    after = [json.loads(line) for line in path.read_text().splitlines()]
    assert after[1]["b"]["turns"][1]["text"] == "Also mine."


def test_a_new_pair_begins_with_its_control(ada, parent):
    copy_template("strategies", parent / "talks")
    path = parent / "talks" / "items.jsonl"
    n_before = len(path.read_text().splitlines())
    speakers = list(load_study(parent / "talks").spec.speakers)
    ada.get("/studies/talks/pairs/0")
    sides = {"id": "new-one", "a.system": "control", "b.system": "control"}
    systems = [system.name for system in load_study(parent / "talks").spec.systems]
    sides |= {"a.system": systems[0], "b.system": systems[1]}
    text = f"{speakers[0]}: Is there a train?\n{speakers[1]}: At nine.\n  And at ten.\n"
    ada.post("/studies/talks/pairs/0", {**sides, "_do": "begin", "transcript": text})
    assert "At nine. And at ten." in ada.text
    assert "The two sides are the same so far" in ada.text
    rows = {"a.0": "Is there a train?", "a.1": "At nine.", "b.1": "Good morning! At nine."}
    rows |= {"speaker.0": speakers[0], "speaker.1": speakers[1], "was.0": "0", "was.1": "1"}
    done = {**sides, **rows, "a.outcome": "told", "b.outcome": "told", "breach.length": "greeting"}
    ada.post("/studies/talks/pairs/0", {**done, "_do": "turn 2"})
    assert ada.page.count('name="a.2"') == 1
    ada.post("/studies/talks/pairs/0", {**done, "b.system": systems[0], "_do": "save"})
    assert ada.status == 422
    assert "both sides are of the same system" in ada.text
    ada.post("/studies/talks/pairs/0", {**done, "_do": "save"})
    item = json.loads(path.read_text().splitlines()[-1])
    assert len(path.read_text().splitlines()) == n_before + 1
    assert item["b"]["turns"][1] == {"speaker": speakers[1], "text": "Good morning! At nine."}
    assert item["breaches"] == {"length": "greeting"}
    ada.get(f"/studies/talks/pairs/{n_before + 1}")
    ada.post(f"/studies/talks/pairs/{n_before + 1}", {**done, "_do": "remove"})
    assert len(path.read_text().splitlines()) == n_before
    assert ada.get("/studies/talks/pairs/999").status == 404


AGENTS = """systems:
  - name: version_1
    agent: {type: scripted, options: {otherwise: ["Of course.", "Gladly."]}}
  - name: version_2
    agent: {type: scripted, options: {otherwise: ["No."]}}
"""


def ended(parent, name, job):
    path = parent / name / ".versions" / "jobs" / f"{job}.json"
    deadline = time.monotonic() + 600
    while json.loads(path.read_text())["state"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return json.loads(path.read_text())


def test_agents_respond_to_contexts(ada, parent):
    copy_template("compare", parent / "mine")
    path = parent / "mine" / "study.yaml"
    path.write_text(re.sub(r"(?s)^systems:\n.*?(?=^items:)", AGENTS, path.read_text(), flags=re.M))
    ada.get("/studies/mine/responses")
    assert "scripted" in ada.text
    ada.post(
        "/studies/mine/responses", {"system": ["version_1", "version_2"], "pasted": "Can you help?\nAre you sure?\n"}
    )
    done = ended(parent, "mine", "responses")
    assert done["state"] == "done", done
    assert (done["n_done"], done["n_total"], done["result"]["n_items"]) == (4, 4, 2)
    assert "Look at them and use them" in ada.get("/studies/mine/responses").text
    ada.get("/studies/mine/add-items")
    assert "2 items" in ada.text
    ada.post("/studies/mine/add-items", {"use": "1"})
    study = load_study(parent / "mine")
    assert [item.context[0].text for item in study.items] == ["Can you help?", "Are you sure?"]
    assert set(study.items[0].responses) == {"version_1", "version_2"}
    kept = (parent / "mine" / "items.jsonl.replies.jsonl").read_text().splitlines()
    assert len(kept) == 4
    ada.post("/studies/mine/responses", {"system": ["version_1", "version_2"]})
    assert ended(parent, "mine", "responses")["result"]["n_asked"] == 0, "nothing is asked twice"
    assert ada.post("/studies/mine/responses", {"system": []}).status == 422


@pytest.mark.slow
def test_power_is_simulated_on_request(ada, parent, monkeypatch):
    monkeypatch.setattr("dialometer.web.dashboard.pages.planning.N_SIMULATIONS", 20)
    copy_template("pairs", parent / "mine")
    assert ada.post("/studies/mine/power", {"effect": "big", "raters": "10"}).status == 422
    ada.post("/studies/mine/power", {"effect": "0.8", "raters": "10, 20"})
    assert ada.status == 200
    done = ended(parent, "mine", "power")
    assert done["state"] == "done", done
    assert done["result"]["answer"] in ada.get("/studies/mine/form/analysis").text
    assert "The study was changed since" not in ada.text
    assert 'name="raters" value="10, 20"' in ada.page
    assert done["result"]["answer"] in ada.get("/studies/mine/freeze").text
    assert "The study was changed since" not in ada.text
    items = parent / "mine" / "items.jsonl"
    items.write_text(items.read_text().replace("?", "!", 1))
    for page in ("form/analysis", "freeze"):
        assert "The study was changed since" in ada.get(f"/studies/mine/{page}").text


def test_work_of_earlier_versions_is_still_read(tmp_path):
    """They wrote when it was begun, too."""
    file = tmp_path / ".versions" / "jobs" / "power.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"state": "done", "by": "ada", "started_ms": 7, "result": {"answer": "20 raters"}}))
    assert job_state(tmp_path, "power").result == {"answer": "20 raters"}
    file.write_text("[]")
    assert job_state(tmp_path, "power").state == "none"


def test_freezing_shows_what_it_fixes(ada, parent):
    copy_template("likert", parent / "mine")
    text = parent / "mine" / "consent.md"
    text.write_text(text.read_text() + "\nIt is about my systems.\n")
    ada.get("/studies/mine/freeze")
    assert ada.text.count("read whether it fits your study") == 2, "instructions and debriefing are as copied"
    for said in ("Rules, Retrieval, Neural", "45.00 USD in all", "(primary)", "2 gold items", "It cannot be undone"):
        assert said in ada.text
    path = parent / "mine" / "study.yaml"
    path.write_text(path.read_text().replace("scale: relevance_5", "scale: relevance_6"))
    ada.get("/studies/mine/freeze")
    assert "1 problem to fix first" in ada.text
    assert "Freeze it for good" not in ada.text


@pytest.mark.parametrize("place", ["form/systems", "files", "freeze"])
def test_of_many_problems_of_one_kind_the_first_are_shown(ada, parent, place):
    copy_template("judged", parent / "mine")
    path = parent / "mine" / "study.yaml"
    path.write_text(re.sub(r"^( +- name: )(\w+)", r"\1renamed_\2", path.read_text(), count=1, flags=re.M))
    ada.get(f"/studies/mine/{place}")
    assert 1 < ada.text.count("unknown system") <= 6
    assert re.search(r"and \d+ more problems", ada.text)


def test_responses_stop_and_continue(ada, parent, monkeypatch):
    copy_template("compare", parent / "mine")
    path = parent / "mine" / "study.yaml"
    path.write_text(re.sub(r"(?s)^systems:\n.*?(?=^items:)", AGENTS, path.read_text(), flags=re.M))
    monkeypatch.setattr("dialometer.web.dashboard.jobs.BEAT_S", 0.01)
    is_stopped, goes_on = threading.Event(), threading.Event()
    asked = itertools.count()
    own = Scripted.reply

    def reply(*given, **more):
        if next(asked) >= 5:
            is_stopped.wait(120)
        goes_on.wait(0.05)
        return own(*given, **more)

    monkeypatch.setattr(Scripted, "reply", reply)
    prompts = "".join(f"Question {n}?\n" for n in range(40))
    ada.post("/studies/mine/responses", {"system": ["version_1", "version_2"], "pasted": prompts})
    assert "Under way" in ada.text
    assert ada.post("/studies/mine/responses", {"system": ["version_1"], "pasted": "Once more?"}).status == 422
    ada.post("/studies/mine/responses", {"stop": "1"})
    is_stopped.set()
    assert ended(parent, "mine", "responses")["state"] == "stopped"
    n_kept = len((parent / "mine" / "items.jsonl.replies.jsonl").read_text().splitlines())
    assert n_kept < 80
    goes_on.set()
    ada.get("/studies/mine/responses")
    assert "Continue" in ada.text
    ada.post("/studies/mine/responses", {"system": ["version_1", "version_2"]})
    done = ended(parent, "mine", "responses")
    assert (done["state"], done["result"]["n_items"]) == ("done", 40), "the prompts of before"
    assert done["result"]["n_asked"] == 80 - n_kept
