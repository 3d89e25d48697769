"""Whatever a file holds, an import ends with success or with ImportFileError, never with a traceback."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.errors import ImportFileError
from dialometer.exchange.formats import FORMATS
from dialometer.exchange.importing import ImportResult, import_files
from dialometer.storage.store import Store

HEADS = {
    "candidates": "question,answer,rater,rating,gold,context,response,criterion,rank_x,score_y,worker_ids,answers,snippet_id",
    "long": "rater,item,system,criterion,value,time,position,turn,response",
    "batch": "HITId,AssignmentId,WorkerId,AssignmentStatus,SubmitTime,Input.item,Input.system,Answer.quality,Answer.taskAnswers",
    "rankme": "_created_at,_worker_id,informativeness,naturalness,quality,mr,mr_id,ref,team",
    "votes": "rater,item,a,b,winner,time,turn,conversation_a,conversation_b,prompt,language",
    "preferences": "id,chosen,rejected,prompt,rater,chosen_model,rejected_model,time,score",
    "acute": "worker,winner,loser,pairing_id,question,task_start,eval_choice_0,eval_choice_1,winner_dialogue,loser_dialogue",
    "choices": "rater,strategy,question,choice,gender,age,first,item,time,position",
    "dialogues": "dialogue_id,speaker,text,role,rating,user,system,language",
    "potato": "user,instance_id,displayed_text,quality:::good,quality:::bad",
    "label_studio": "id,annotation_id,annotator,quality,lead_time",
    "dialometer": "judgment,rater,item,system,criterion,scale,answer,turn,position,side,order,shown_at,is_late,replaces,factor_x",
}
cells = st.one_of(
    st.sampled_from(
        ["", "1", "2", "3.5", "-1", "1e400", "nan", "ann", "bob", "a", "b", "tie", "likert", "magnitude", "pairwise"]
    ),
    st.sampled_from(
        [
            '"[{""role"": ""user"", ""content"": ""x""}]"',
            '"[{""role"": ""assistant"", ""content"": [1, {""type"": ""tool_use""}], ""tool_calls"": [1, {}]}]"',
            '"{""dialogue"": [{""id"": ""a"", ""text"": ""x""}], ""speakers"": [""a""]}"',
            '"[""x"", null]"',
            '"\n\nHuman: x\n\nAssistant: y"',
        ]
    ),
    st.sampled_from(
        ['"[{""q"": 1}]"', "[]", "{", '"""x"""', "2024-05-01", "true", "a|b", '"a', 'b"c', "\x00", "é", "=1+1"]
    ),
    st.text(max_size=8),
)


def outcome(*arguments, **options) -> ImportResult | ImportFileError:
    """What an import ends with; anything but these two is a failure of the test."""
    try:
        return import_files(*arguments, **options)
    except ImportFileError as error:
        return error


def attempt(content: bytes, format: str, suffix: str = ".csv") -> None:
    """Import into a fresh folder and look at what is there afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / f"data{suffix}"
        path.write_bytes(content)
        done = outcome(folder / "in", [path], folder / "in.db", format=format, at_ms=1)
        if isinstance(done, ImportFileError):
            assert done.problems
            assert all(problem.message for problem in done.problems)
            assert str(path) in str(done)
            assert not (folder / "in").exists()
            assert not (folder / "in.db").exists()
        else:
            load_study(folder / "in")
            with Store.open(folder / "in.db") as store:
                assert len(list(store.records.judgments())) == done.files[0].n_judgments > 0


@pytest.mark.parametrize("format", HEADS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(table=st.lists(st.lists(cells, min_size=1, max_size=16), max_size=6), is_square=st.booleans())
def test_tables_of_anything(format, table, is_square):
    n_columns = HEADS[format].count(",") + 1
    rows = [(row * n_columns)[:n_columns] for row in table] if is_square else table
    text = "\n".join([HEADS[format], *(",".join(row) for row in rows)])
    attempt(text.encode("utf-8", "surrogatepass"), format)


@pytest.mark.parametrize("format", HEADS)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(content=st.binary(max_size=200))
@example(content=b"")
@example(content=b"\xff\xfe\x00")
@example(content=gzip.compress(b"rater,item\n")[:-6])
@example(content=b'rater,"item\n')
@example(content=b"rater,rater\n1,2\n")
@example(content=b"a" * 200_000)
def test_bytes_of_any_kind(format, content):
    attempt(content, format)


values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=True), st.text(max_size=6), st.just(10**400)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {
                name: st.one_of(values, st.sampled_from(["R0001", "a", "likert", "3", "[]"]))
                for name in HEADS["dialometer"].split(",")
            }
        ),
        max_size=4,
    )
)
def test_lines_of_any_json(rows):
    attempt("\n".join(json.dumps(row) for row in rows).encode(), "dialometer", ".jsonl")


answers = st.one_of(values, st.sampled_from([1, 3, 5, "a", ["x"], {"best": "a", "worst": "b"}]))


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(answer=answers, template=st.sampled_from(["anchoring", "likert", "strategies", "best-worst", "avatar"]))
def test_any_answer_on_any_scale(answer, template):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "study"
        copy_template(template, folder)
        study = load_study(folder)
        item, criterion = study.rated_items[0], study.spec.criteria[0]
        system = "" if study.spec.scales[criterion.scale].compares else item.systems[0]
        row = {"judgment": 1, "rater": "R0001", "item": item.id, "system": system, "criterion": criterion.name}
        row |= {"scale": study.spec.scales[criterion.scale].type, "answer": json.dumps(answer)}
        row |= {f"factor_{factor}": level for factor, level in study.cells[0].items()}
        path = Path(name) / "judgments.jsonl"
        path.write_text(json.dumps(row), encoding="utf-8")
        done = outcome(folder, [path], Path(name) / "x.db", format="dialometer", at_ms=1)
        assert isinstance(done, ImportResult) or done.problems[0].line == 1


def test_there_is_a_head_for_every_format():
    assert set(HEADS) == set(FORMATS.names())


@pytest.mark.parametrize("format", HEADS)
def test_what_is_not_a_file_is_told(tmp_path, format):
    with pytest.raises(ImportFileError, match="there is no such file"):
        import_files(tmp_path / "in", [tmp_path / "missing.csv"], tmp_path / "x.db", format=format, at_ms=1)
    folders = {"dialometer": "this folder is not an export", "potato": "there are no answers of Potato here"}
    with pytest.raises(ImportFileError, match=folders.get(format, "this is a folder")):
        import_files(tmp_path / "in", [tmp_path], tmp_path / "x.db", format=format, at_ms=1)


def test_a_damaged_parquet_file_is_told(tmp_path):
    path = tmp_path / "judgments.parquet"
    path.write_bytes(b"PAR1 is not enough PAR1")
    with pytest.raises(ImportFileError, match="the Parquet file cannot be read"):
        import_files(tmp_path / "in", [path], tmp_path / "x.db", format="dialometer", at_ms=1)


def test_many_problems_of_one_kind_are_one_message(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("rater,item,criterion,value\n" + ",1,q,3\n" * 200)
    with pytest.raises(ImportFileError) as caught:
        import_files(tmp_path / "in", [path], tmp_path / "x.db", format="long", at_ms=1)
    assert caught.value.n_problems == 200
    head, line = str(caught.value).split("\n")
    assert head == "200 problems in the imported file (nothing was stored)"
    assert line == f"  200 rows, the first of them {path}:2: the rater is missing [rater] — fill the cell"


def test_a_file_with_a_problem_in_every_line_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("rater,item,criterion,value\n" + "a,b\n" * 30_000)
    with pytest.raises(ImportFileError) as caught:
        import_files(tmp_path / "in", [path], tmp_path / "x.db", format="long", at_ms=1)
    _, rows, end = str(caught.value).split("\n")
    assert rows.startswith(f"  10,000 rows, the first of them {path}:2: the row has 2 cells, the header 4")
    assert "the file has 10,000 problems up to here; the rest was not read" in end


def test_at_most_ten_lines_tell_of_many_kinds(tmp_path):
    path = tmp_path / "data.csv"
    wrong = [f"{'x' * n},1,q,3,{'b' * n}{n}" for n in range(1, 40)]
    path.write_text("rater,item,criterion,value,answered_at\n" + "\n".join(wrong * 3) + "\n,,,,\n,1,q,3,\n,1,q,4,\n")
    with pytest.raises(ImportFileError) as caught:
        import_files(tmp_path / "in", [path], tmp_path / "x.db", format="long", at_ms=1)
    lines = str(caught.value).split("\n")
    assert len(lines) <= 12
    assert any("the rater is missing" in line for line in lines), (
        "a kind that comes late is not hidden behind many of another"
    )
