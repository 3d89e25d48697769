"""Batch results of a crowd platform, and votes of arenas."""

from __future__ import annotations

import json

import pytest

from dialometer.errors import ImportFileError
from dialometer.exchange.importing import format_of
from dialometer.storage.store import Store

HEAD = "HITId,AssignmentId,WorkerId,AssignmentStatus,AcceptTime,SubmitTime,WorkTimeInSeconds"
TIMES = "Mon Oct 21 08:51:04 PDT 2019,Mon Oct 21 08:52:34 PDT 2019,90"
T_SUBMIT = 1_571_673_154_000  # 2019-10-21T15:52:34Z
BATCH = f"""{HEAD},Input.item,Input.system,Input.context,Input.response,Answer.quality,Answer.fluency,Answer.age
H1,A1,W1,Approved,{TIMES},d1,alpha,Hello,Hi,4,5,33
H1,A2,W2,Submitted,{TIMES},d1,alpha,Hello,Hi,2,1,41
H2,A3,W1,Rejected,{TIMES},d2,alpha,Bye,Good bye,3,3,33
H2,A4,W2,Approved,{TIMES},d2,alpha,Bye,Good bye,3,,41
"""


def test_a_batch_file_with_its_usual_columns(bring_in, stored, tmp_path):
    done = bring_in(BATCH, "batch", questions=["age"])
    file = done.files[0]
    assert [(j.item_id, j.system, j.criterion, j.value) for j in stored()] == [
        ("d1", "alpha", "quality", 4),
        ("d1", "alpha", "fluency", 5),
        ("d1", "alpha", "quality", 2),
        ("d1", "alpha", "fluency", 1),
        ("d2", "alpha", "quality", 3),
    ]
    assert {(j.shown_at_ms, j.answered_at_ms) for j in stored()} == {(T_SUBMIT - 90_000, T_SUBMIT)}
    assert file.left_out == {"rejected assignments": 1, "empty cells (nothing was answered)": 1}
    assert (file.n_raters, file.n_answers) == (2, 2)
    assert file.used["rater"] == "WorkerId"
    assert file.used["item"] == "Input.item"
    turns = done.study.items_by_id["d1"].turns
    assert [(turn.speaker, turn.text) for turn in turns] == [("User", "Hello"), ("Agent", "Hi")]
    with Store.open(tmp_path / "in.db") as store:
        assert {store.sessions.person(s.id).platform for s in store.sessions.all()} == {"imported:batch"}
        assert [answer.value for answer in store.records.answers()] == [33, 41]


def test_answers_in_one_cell_of_json(bring_in, stored):
    def row(hit: str, worker: str, answers: object) -> str:
        cell = json.dumps(json.dumps(answers)).replace('\\"', '""')
        return f"{hit},A,{worker},Approved,{TIMES},{cell}\n"

    text = f"{HEAD},Answer.taskAnswers\n"
    text += row("H1", "W1", [{"quality": {"1": False, "2": True}, "kind": {"label": "chat"}, "score": 70}])
    text += row("H1", "W2", [{"quality": {"1": True, "2": False}, "kind": {"label": "task"}, "score": 130.5}])
    text += row("H2", "W2", [{"quality": {"1": False, "2": False}, "score": None}])
    done = bring_in(text, "batch")
    assert [(j.item_id, j.criterion, j.value) for j in stored()] == [
        ("H1", "quality", 2),
        ("H1", "kind", "chat"),
        ("H1", "score", 70),
        ("H1", "quality", 1),
        ("H1", "kind", "task"),
        ("H1", "score", 130.5),
    ]
    assert done.files[0].left_out == {"empty cells (nothing was answered)": 3}


def test_a_column_for_each_option(bring_in, stored):
    text = f"{HEAD},Input.item,Answer.quality.1,Answer.quality.2,Answer.quality.3\n"
    text += f"H1,A1,W1,,{TIMES},d1,false,true,false\nH1,A2,W2,,{TIMES},d1,false,false,TRUE\n"
    bring_in(text, "batch")
    assert [(j.criterion, j.value) for j in stored()] == [("quality", 2), ("quality", 3)]


def test_systems_side_by_side_in_a_batch(bring_in, stored):
    text = f"{HEAD},Input.item,Input.system_1,Input.system_2,Answer.quality_1,Answer.quality_2\n"
    text += f"H1,A1,W1,,{TIMES},d1,alpha,beta,4,5\nH1,A2,W2,,{TIMES},d1,beta,alpha,1,2\n"
    bring_in(text, "batch")
    assert [(j.system, j.value, j.side) for j in stored()] == [
        ("alpha", 4, 1),
        ("beta", 5, 2),
        ("beta", 1, 1),
        ("alpha", 2, 2),
    ]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("not json", "the answers are not a JSON object"),
        ('"[{""q"": {""1"": true, ""2"": true}}]"', "several options of 'q' are ticked: 1, 2"),
        ('"[{""q"": {""x"": {}}}]"', "the answer 'q' has parts, which cannot be read as one answer"),
        ("[1]", "the answers are not a JSON object"),
    ],
)
def test_json_answers_that_cannot_be_read(bring_in, cell, message):
    with pytest.raises(ImportFileError) as caught:
        bring_in(f"{HEAD},Answer.taskAnswers\nH1,A,W1,Approved,{TIMES},{cell}\n", "batch")
    assert (caught.value.problems[0].line, caught.value.problems[0].message) == (2, message)


def test_a_question_answered_in_two_ways_is_told(bring_in):
    text = BATCH.replace("3,,41", "3,3,14")
    with pytest.raises(ImportFileError) as caught:
        bring_in(text, "batch", questions=["age"])
    assert caught.value.problems[0].message == "the rater 'W2' answered age differently on line 3"
    assert "--criteria" in caught.value.problems[0].remedy


VOTES = """user,model_a,model_b,winner,tstamp
u1,alpha,beta,model_a,1682351591.13
u1,beta,gamma,tie,1682351600.5
u2,alpha,gamma,right,1682351700.1
u2,alpha,beta,beta,1682351800.1
u2,alpha,beta,,1682351900.1
u3,gamma,alpha,tie (bothbad),1682352000.1
"""


def test_votes_with_ties_and_sides(bring_in, stored, database_url):
    done = bring_in(VOTES, "votes", columns={"rater": "user"}, database=database_url)
    judgments = stored(database=database_url)
    assert [(j.item_id, j.value, j.order, j.side, j.system) for j in judgments] == [
        ("data-0001", "alpha", ("alpha", "beta"), 1, ""),
        ("data-0002", "tie", ("beta", "gamma"), 0, ""),
        ("data-0003", "gamma", ("alpha", "gamma"), 2, ""),
        ("data-0004", "beta", ("alpha", "beta"), 2, ""),
        ("data-0006", "both_bad", ("gamma", "alpha"), 0, ""),
    ]
    assert judgments[0].answered_at_ms == 1_682_351_591_130
    assert [j.position for j in judgments] == [1, 2, 1, 2, 1]
    assert done.files[0].left_out == {"empty cells (nothing was answered)": 1}
    assert done.study.spec.scales["pairwise"].allow_tie
    assert not done.study.spec.scales["pairwise"].allow_cannot_tell
    assert done.study.spec.items.kind == "transcript_pair"


def test_votes_about_shared_items_with_texts(bring_in, stored):
    text = "rater,item,a,b,winner,text_a,text_b,criterion\nu1,d1,x,y,a,hi,ho,fun\nu2,d1,y,x,2,ho,hi,fun\n"
    done = bring_in(text, "votes")
    assert [(j.item_id, j.criterion, j.value) for j in stored()] == [("d1", "fun", "x"), ("d1", "fun", "x")]
    item = done.study.items_by_id["d1"]
    assert {side.system: side.turns[-1].text for side in (item.a, item.b)} == {"x": "hi", "y": "ho"}


def test_votes_between_many_systems_about_the_same_questions(bring_in, stored):
    text = (
        "judge,question_id,model_a,model_b,winner\nj,81,x,y,model_a\nj,81,z,x,model_b\nj,82,y,x,tie\nk,81,y,x,model_a\n"
    )
    done = bring_in(text, "votes")
    assert [(j.item_id, j.value) for j in stored()] == [
        ("81 (x or y)", "x"),
        ("81 (x or z)", "x"),
        ("82 (x or y)", "tie"),
        ("81 (x or y)", "y"),
    ]
    assert done.files[0].n_items == 3


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("u1,alpha,alpha,alpha,1682351591", "'alpha' is compared with itself"),
        ("u1,alpha,beta,gamma,1682351591", "'gamma' is none of the two systems"),
        ("u1,alpha,,alpha,1682351591", "the b is missing"),
    ],
)
def test_votes_that_cannot_be_read(bring_in, row, message):
    with pytest.raises(ImportFileError) as caught:
        bring_in(VOTES + row + "\n", "votes", columns={"rater": "user"})
    assert (caught.value.problems[0].line, caught.value.problems[0].message) == (8, message)


def test_the_form_is_told_from_the_columns(tmp_path):
    heads = {
        "batch": BATCH,
        "votes": VOTES.replace("user,", "user_id,"),
        "rankme": "_worker_id,mr,mr_id,team,ref,quality\n",
    }
    for name, text in heads.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(text, encoding="utf-8")
        assert format_of(path) == name
    path = tmp_path / "mine.csv"
    path.write_text("rater,item,value\n", encoding="utf-8")
    with pytest.raises(ImportFileError, match="your own table of ratings is 'long'"):
        format_of(path)
