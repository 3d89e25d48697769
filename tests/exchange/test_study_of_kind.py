"""Studies of one's own files: ratings of dialogues, best-worst, candidates and chats are complete and run to a report."""

import json

import pytest
import yaml

from commands import invoke
from dialometer.design.edit_yaml import is_same, yaml_text
from dialometer.design.load import check_study
from dialometer.design.positions import parse_yaml
from dialometer.errors import DialometerError
from dialometer.exchange.own_systems.study_from_outputs import study_from_outputs
from dialometer.exchange.own_systems.study_of_kind import chat_from_prompts
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

TABLE = """question,small,medium,large,reference
How long do I boil an egg?,Long.,Six minutes.,"Six minutes, then cold water.",About six minutes.
Where is Paris?,In France.,In France.,Paris is the capital of France.,
"""
AGENT = {"type": "scripted", "options": {"otherwise": ["I see.", "Tell me more."]}}


def transcripts(path, n=3):
    def chat(i):
        said = [("user", f"Question {i}?"), ("assistant", f"Answer {i} of {path.stem}."), ("user", "Thanks.")]
        return {"id": f"d{i}", "messages": [{"role": role, "content": text} for role, text in said]}

    path.write_text("".join(json.dumps(chat(i)) + "\n" for i in range(n)))
    return path


def checked(folder):
    study, problems = check_study(folder)
    assert [str(problem) for problem in problems] == []
    return study


def simulated(study, n_raters=3):
    with Store.open(study.folder / "study.db") as store:
        access = EngineAccess(Flow(study, store))
        return simulate(study, access, draw_truth(study, 1), n_raters=n_raters, seed=1, start_ms=1_800_000_000_000)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "outputs.csv"
    path.write_text(TABLE)
    return path


def test_whole_dialogues_are_rated_one_by_one(tmp_path):
    files = [transcripts(tmp_path / "v1.jsonl"), transcripts(tmp_path / "v2.jsonl")]
    study_from_outputs("ratings", files, tmp_path / "own")
    study = checked(tmp_path / "own")
    assert study.spec.items.kind == "dialogue"
    assert [item.system for item in study.items] == ["v1"] * 3 + ["v2"] * 3
    assert not any(name in item.id for item in study.items for name in ("v1", "v2")), "ids give no system away"
    assert study.spec.analysis.comparisons[0].levels == ["v1", "v2"]
    assert simulated(study).n_judgments == 18


def test_a_single_system_is_rated_without_a_comparison(tmp_path):
    study_from_outputs("ratings", [transcripts(tmp_path / "only.jsonl", 5)], tmp_path / "own", n_items=4)
    study = checked(tmp_path / "own")
    assert len(study.items) == 4
    assert not study.spec.analysis.comparisons


def test_ratings_of_responses_are_the_template_compare(table, tmp_path):
    study_from_outputs("ratings", [table], tmp_path / "own")
    assert checked(tmp_path / "own").spec.items.kind == "responses"


def test_best_and_worst_need_three_systems(table, tmp_path):
    study_from_outputs("best-worst", [table], tmp_path / "own")
    study = checked(tmp_path / "own")
    assert study.spec.criteria[0].scale == "overall_choice"
    assert simulated(study).n_judgments == 6
    with pytest.raises(DialometerError, match="at least 3"):
        study_from_outputs("best-worst", [table], tmp_path / "two", systems=["small", "large"])
    assert not (tmp_path / "two").exists()


def test_equal_responses_are_one_candidate_and_a_reference_is_gold(table, tmp_path):
    study_from_outputs("candidates", [table], tmp_path / "own")
    study = checked(tmp_path / "own")
    assert [(item.candidate.text, dict(item.ranks), item.is_gold) for item in study.items][:4] == [
        ("Long.", {"small": 1}, False),
        ("Six minutes.", {"medium": 1}, False),
        ("Six minutes, then cold water.", {"large": 1}, False),
        ("About six minutes.", {}, True),
    ]
    assert [dict(item.ranks) for item in study.items][4:] == [{"small": 1, "medium": 1}, {"large": 1}]
    assert simulated(study).n_judgments == 18


def test_every_rater_talks_with_each_system_once(tmp_path):
    declared = {"systems": [{"name": name, "agent": AGENT} for name in ("one", "two")]}
    chat_from_prompts({"egg": "How long do I boil an egg?", "may": "Where to in May?"}, declared, tmp_path / "own")
    study = checked(tmp_path / "own")
    assert simulated(study, 2).n_judgments == 4
    with Store.open(study.folder / "study.db") as store:
        for session in store.sessions.all():
            assert [len(ids) for ids in session.draw.items.values()] == [1, 1]


AWKWARD = ("yes", "No", "null", "on", "12", "1e5", "010", "2024-01-01")
"""Names that YAML, or an older YAML, takes for something else than words."""


@pytest.mark.parametrize(
    "kind", ["pairs", "ratings", "dialogues", "best-worst", "candidates", "anchoring", "chat", "arena"]
)
def test_systems_may_be_called_as_they_are(kind, tmp_path):
    folder = tmp_path / "own"
    names = AWKWARD[2:4] if kind == "pairs" else AWKWARD
    if kind in ("chat", "arena"):
        agents = yaml_text({"systems": [{"name": name, "agent": AGENT} for name in ("yes", "no", "null", "true")]})
        (tmp_path / "agents.yaml").write_text(agents)
        (tmp_path / "prompts.txt").write_text("How long do I boil an egg?\nWhere is Paris?\n")
        invoke("new", kind, folder, "--prompts", tmp_path / "prompts.txt", "--agents", tmp_path / "agents.yaml")
        labels = ["yes", "no", "null", "true"]
    elif kind == "dialogues":
        study_from_outputs("ratings", [transcripts(tmp_path / f"{name}.jsonl", 2) for name in names], folder)
        labels = list(names)
    else:
        row = {"question": "Where is Paris?", "reference": "In France.", **{name: f"It is {name}." for name in names}}
        (tmp_path / "outputs.json").write_text(json.dumps([row, {**row, "question": "And Rome?"}]))
        study_from_outputs(kind, [tmp_path / "outputs.json"], folder, systems=names)
        labels = list(names)
    study, problems = check_study(folder)
    assert not [problem for problem in problems if problem.severity == "error"]
    assert [system.label or system.name for system in study.spec.systems] == labels
    own = [system.name for system in study.spec.systems]
    assert own in [one.levels for one in study.spec.analysis.comparisons]
    assert is_same(
        yaml.safe_load((folder / "study.yaml").read_text()), parse_yaml((folder / "study.yaml").read_text(), "").data
    )


def test_raters_are_told_who_answers(tmp_path):
    """Nobody consents to talking with programs alone where a member of the team may answer."""
    wizard = {"type": "wizard", "options": {"instructions": "Be brief."}}
    for name, second in (("programs", AGENT), ("wizards", wizard)):
        declared = {"systems": [{"name": "one", "agent": AGENT}, {"name": "two", "agent": second}]}
        chat_from_prompts({"egg": "How long do I boil an egg?"}, declared, tmp_path / name)
    told = {name: (tmp_path / name / "consent.md").read_text() for name in ("programs", "wizards")}
    assert "no human being answers" in told["programs"]
    assert "A member of the research team may check, change or write" in told["wizards"]
    assert "program" not in told["wizards"]
    consent = tmp_path / "wizards" / "consent.md"
    consent.write_text(told["programs"])
    (warning,) = check_study(tmp_path / "wizards")[1]
    assert warning.file == "consent.md"
    assert "'are computer programs', but a wizard answers as 'two'" in warning.message


@pytest.mark.parametrize("kind", ["pairs", "ratings", "candidates"])
def test_texts_in_markdown_are_shown_formatted(kind, tmp_path):
    rows = [{"question": f"Q{k}?", "a": "| x |\n|---|---|\n| 1 |", "b": "plain"} for k in range(3)]
    (tmp_path / "outputs.json").write_text(json.dumps(rows))
    _, notes = study_from_outputs(kind, [tmp_path / "outputs.json"], tmp_path / "own", systems=["a", "b"])
    assert checked(tmp_path / "own").spec.presentation.text == "markdown"
    assert any("are written in Markdown" in note for note in notes)


def test_kinds_without_a_template_say_what_they_need():
    assert "--responses FILE" in invoke("new", "candidates", fails=True)
