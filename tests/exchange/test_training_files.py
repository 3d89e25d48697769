"""A study's judgments as files to train on, read back by the readers and by the import."""

import json
import os
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from commands import result_of
from dialometer.design.load import load_study
from dialometer.design.templates import template_folder
from dialometer.errors import DialometerError
from dialometer.exchange.exports.training_files import message_lines, preference_lines
from dialometer.exchange.formats import ImportOptions
from dialometer.exchange.importing import import_files
from dialometer.exchange.own_systems.study_from_outputs import study_from_outputs
from dialometer.model.dialogue import Dialogue, Media, ToolCall, Turn
from dialometer.model.study import Study
from dialometer.readers import read_dialogues
from dialometer.readers.chat_writing import as_messages_of, write_lines

TALKS = {model: [("user", "Hi?"), ("assistant", f"I am {model}.")] for model in ("x", "y", "z")}


def chat(model):
    return [{"role": role, "content": text} for role, text in TALKS[model]]


def votes(*rows):
    return [
        {
            "item": item,
            "rater": rater,
            "model_a": a,
            "model_b": b,
            "winner": winner,
            "conversation_a": chat(a),
            "conversation_b": chat(b),
        }
        for item, rater, a, b, winner in rows
    ]


@pytest.fixture
def study(tmp_path):
    def made(rows, name="votes.jsonl"):
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, rows)))
        import_files(tmp_path / "study", [path], tmp_path / "study" / "study.db", at_ms=1)
        return tmp_path / "study"

    return made


def export(folder, *arguments):
    result = result_of("export", str(folder), "--json", *arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return json.loads(result.stdout)


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


ROWS = [
    ("i1", "r1", "x", "y", "model_a"),
    ("i1", "r2", "x", "y", "model_a"),
    ("i1", "r3", "y", "x", "model_a"),
    ("i1", "r4", "y", "x", "tie (bothbad)"),
    ("i2", "r1", "y", "z", "tie"),
    ("i3", "r1", "x", "z", "model_b"),
    ("i4", "r1", "x", "z", "model_b"),
    ("i4", "r2", "x", "z", "model_a"),
]


def test_pairs_have_margins_and_counts_and_ties_are_counted(study):
    folder = study(votes(*ROWS))
    said = export(folder, "--training", "preferences")
    assert said["lines"] == 2
    assert said["left_out"] == {"pairs without a preference (ties, or raters divided)": 2}
    first, second = lines_of(folder / "preferences.jsonl")
    assert first["prompt"] == [{"role": "user", "content": "Hi?"}]
    assert (first["chosen"], first["rejected"]) == (chat("x")[1:], chat("y")[1:])
    counts = {name: first[name] for name in ("margin", "n_chosen", "n_rejected", "n_ties", "n_both_bad")}
    assert counts == {"margin": 0.25, "n_chosen": 2, "n_rejected": 1, "n_ties": 0, "n_both_bad": 1}
    assert (second["item"], second["chosen_model"], second["rejected_model"]) == ("i3", "z", "x")


def test_two_system_prompts_stand_beside_the_pair(tmp_path):
    """They were the first messages of both sides, so that there was no common prompt, and a reward model learned from them."""
    for name in ("x", "y"):
        said = [{"role": "system", "content": f"Be {name}."}, *chat(name)]
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": "1", "messages": said}) + "\n")
    study_from_outputs("pairs", [tmp_path / "x.jsonl", tmp_path / "y.jsonl"], tmp_path / "study")
    study = load_study(tmp_path / "study")
    row = {"item": study.items[0].id, "criterion": "preference", "system": "", "scale": "pairwise", "value": None}
    table = pl.DataFrame([row | {"answer": '"x"', "order": "x|y"}])
    (line,) = preference_lines(study, table, "preference").lines
    assert line["prompt"] == [{"role": "user", "content": "Hi?"}]
    assert (line["chosen"], line["rejected"]) == (chat("x")[1:], chat("y")[1:])
    assert (line["chosen_system_prompt"], line["rejected_system_prompt"]) == ("Be x.", "Be y.")


def test_pairs_come_back_as_dialogues_and_as_judgments(study, tmp_path):
    folder = study(votes(*ROWS))
    export(folder, "--training", "preferences", "--out", str(tmp_path / "pairs.jsonl"))
    reading = read_dialogues(tmp_path / "pairs.jsonl")
    said = [[turn.text for turn in dialogue.turns] for dialogue in reading]
    assert reading.format == "preferences"
    assert said == [["Hi?", "I am x."], ["Hi?", "I am y."], ["Hi?", "I am z."], ["Hi?", "I am x."]]
    done = import_files(tmp_path / "again", [tmp_path / "pairs.jsonl"], tmp_path / "again.db", at_ms=1)
    assert done.files[0].systems == ("x", "y", "z")
    assert done.files[0].n_judgments == 2


def test_messages_carry_every_judgment_and_come_back(study, tmp_path):
    folder = study(votes(*ROWS))
    said = export(folder, "--training", "messages")
    lines = {line["id"]: line for line in lines_of(folder / "messages.jsonl")}
    assert said["lines"] == len(lines) == 8
    assert lines["i1.x"]["judgments"] == {"preference": {"won": 2, "lost": 1, "tied": 1}}
    assert lines["i1.x"]["messages"] == chat("x")
    reading = read_dialogues(folder / "messages.jsonl")
    assert {dialogue.id for dialogue in reading} == set(lines)
    assert reading.format == "messages"


def test_ratings_become_pairs_by_their_means(tmp_path):
    table = tmp_path / "ratings.csv"
    rows = ["r1,d1,x,5,hello,Hi", "r2,d1,x,4,hello,Hi", "r1,d1,y,2,hello,Ho", "r2,d1,y,3,hello,Ho", "r1,d2,x,3,bye,A"]
    rows += ["r1,d2,y,3,bye,B"]
    table.write_text(
        "rater,item,system,score,context,response,criterion\n" + "\n".join(f"{row},fun" for row in rows) + "\n"
    )
    import_files(tmp_path / "study", [table], tmp_path / "study" / "study.db", at_ms=1, format="long")
    said = export(tmp_path / "study", "--training", "preferences")
    (line,) = lines_of(tmp_path / "study" / "preferences.jsonl")
    assert said["left_out"] == {"pairs without a preference (ties, or raters divided)": 1}
    assert (line["prompt"][0]["content"], line["chosen"][0]["content"]) == ("hello", "Hi")
    assert (line["margin"], line["score_chosen"], line["score_rejected"], line["n_chosen"]) == (2.0, 4.5, 2.5, 2)


def test_what_cannot_be_written_says_why(study):
    folder = study(votes(*ROWS))
    export(folder, "--training", "preferences")
    with pytest.raises(DialometerError, match="there already"):
        export(folder, "--training", "preferences")
    with pytest.raises(DialometerError, match="no criterion 'fun'"):
        export(folder, "--training", "preferences", "--criterion", "fun", "--force")


def test_a_candidate_is_one_conversation_whoever_retrieved_it():
    template = load_study(template_folder("avatar"))
    several = next(item for item in template.rated_items if len(item.ranks) > 1)
    nobody = replace(several, id="nobody", ranks={})
    study = Study(spec=template.spec, items=(several, nobody), texts=template.texts)
    row = {"criterion": study.spec.criteria[0].name, "system": "", "scale": "likert", "answer": "4", "order": ""}
    table = pl.DataFrame([{**row, "item": item.id, "value": 4.0} for item in (several, nobody)])
    made = message_lines(study, table)
    assert [(line["id"], line["ranks"]) for line in made.lines] == [(several.id, several.ranks), ("nobody", {})]
    assert not made.left_out


def test_items_that_check_raters_are_not_learned_from():
    study = load_study(template_folder("rubric"))
    gold = next(item for item in study.items if item.metadata.get("gold"))
    row = {"criterion": "quality", "scale": "checklist", "answer": "{}", "order": "", "value": 50.0}
    table = pl.DataFrame([{**row, "item": gold.id, "system": system} for system in gold.systems])
    assert message_lines(study, table).lines == []


def test_a_chat_with_tools_and_images_comes_back_the_same(tmp_path):
    calls = (ToolCall("search", '{"q": "ferns"}', "12 found"), ToolCall("open", "{}", None))
    turns = (
        Turn("user", "What is this?", "user", media=(Media("image", "media/fern.png", "A fern"),)),
        Turn("assistant", "A fern.", "agent", tool_calls=calls),
        Turn("user", "Sure?", "user"),
        Turn("assistant", "", "agent", tool_calls=calls[:1]),
    )
    dialogue = Dialogue("c1", turns, {"model": "small"}, "Be brief.")
    record = {"id": "c1", "model": "small", "messages": as_messages_of(turns, "Be brief.")}
    write_lines(tmp_path / "chats.jsonl", [record])
    assert list(read_dialogues(tmp_path / "chats.jsonl")) == [dialogue]


@pytest.mark.realdata
def test_the_pairs_of_auto_j(tmp_path):
    path = Path(os.environ.get("DIALOMETER_DATA", "missing")) / "judged_pairs" / "autoj.jsonl.gz"
    if not path.exists():
        pytest.skip("DIALOMETER_DATA names no folder with judged_pairs/autoj.jsonl.gz")
    columns = {"a": ":first", "b": ":second", "winner": "human", "rater": ":people", "item": "id"}
    columns |= {"text_a": "first", "text_b": "second"}
    done = import_files(
        tmp_path / "study",
        [path],
        tmp_path / "study" / "study.db",
        format="votes",
        options=ImportOptions(columns),
        at_ms=1,
    )
    assert done.files[0].n_judgments == 1392
    assert done.files[0].used["kept with the item"] == "scenario, judge, judge_exchanged"
    said = export(tmp_path / "study", "--training", "preferences")
    # 520 and 499 of the 1,392 pairs were decided by people; in one of them both responses are the same text.
    assert said["lines"] == 520 + 499 - 1
    assert said["left_out"]["pairs without a preference (ties, or raters divided)"] == 373
