"""Strict about meaning, lenient about form: what other programs write is read, and what was assumed is said once."""

from __future__ import annotations

import json
import time
import tracemalloc

import pytest
from bench.fuzz.valid_files import workbook

from dialometer.errors import DialometerError, ReadError
from dialometer.model.dialogue import usual_role
from dialometer.readers import read_dialogues
from dialometer.readers.containers.workbook import sheet_as_csv
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import table_rows

TURNS = [{"speaker": "User", "text": "Grüß Gott"}, {"speaker": "Agent", "text": "Hi – “you”"}]
CSV = "dialogue_id,speaker,text\nd1,User,Grüß Gott\nd1,Agent,Hi – “you”\n"


def read(path, **how):
    reading = read_dialogues(path, **how)
    return list(reading), [warning.message for warning in reading.warnings]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "cp1252"])
@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.csv.gz"])
def test_files_in_other_encodings_are_read_and_said_so(a_file, encoding, name):
    text = CSV if ".csv" in name else json.dumps({"id": "d1", "turns": TURNS}, ensure_ascii=False) + "\n"
    dialogues, said = read(a_file(name, text.encode(encoding)))
    assert [turn.text for turn in dialogues[0].turns] == ["Grüß Gott", "Hi – “you”"]
    name = {"cp1252": "Windows-1252", "utf-32": "UTF-32"}.get(encoding, "UTF-16")
    assert said == ([] if encoding == "utf-8-sig" else [f"read as {name}"])


def test_a_damaged_file_is_not_taken_for_another_encoding(a_file):
    content = CSV.encode("utf-8").replace(b"Gott", b"Go\xe9t")
    with pytest.raises(ReadError, match="not UTF-8"):
        read(a_file("x.csv", content))
    with pytest.raises(ReadError, match="damaged UTF-16"):
        read(a_file("x.csv", CSV.encode("utf-16") + b"\x00\xd8"), format="csv")


def test_a_spreadsheet_is_read_like_csv(a_file):
    rows = [
        ["Dialogue ID", "Speaker", "Text", "rating"],
        ["d1", "User", "A & B", 4],
        None,
        ["d1", "Agent", "", 4],
        ["d1", "Agent", "ok", 4],
    ]
    path = a_file("x.xlsx", workbook([row or [] for row in rows]))
    dialogues, said = read(path, empty_turns="leave_out")
    assert [turn.text for turn in dialogues[0].turns] == ["A & B", "ok"]
    assert dialogues[0].metadata["rating"] == "4"
    assert said[0] == "read from sheet 1 of the spreadsheet"
    assert "the column 'Dialogue ID' is read as 'dialogue_id'" in said


def test_a_spreadsheet_with_entities_or_without_sheets_is_refused(tmp_path):
    import zipfile

    entities = '<!DOCTYPE x [<!ENTITY a "b">]><worksheet>&a;</worksheet>'
    for name, part, content in (
        ("a.xlsx", "xl/worksheets/sheet1.xml", entities),
        ("c.xlsx", "xl/worksheets/sheet1.xml", entities.encode("utf-16")),
        ("b.xlsx", "other.xml", "<x/>"),
    ):
        with zipfile.ZipFile(tmp_path / name, "w") as packed:
            packed.writestr(part, content)
        with pytest.raises(DialometerError, match="spreadsheet"):
            sheet_as_csv(tmp_path / name)


def sheet(tmp_path, before="", rows="", after=""):
    """A spreadsheet of these parts around two rows of a dialogue."""
    import zipfile

    first = "".join(f'<c r="{c}1" t="inlineStr"><is><t>{t}</t></is></c>' for c, t in zip("ABC", HEADER, strict=True))
    second = "".join(f'<c r="{c}2" t="inlineStr"><is><t>{t}</t></is></c>' for c, t in zip("ABC", "dbc", strict=True))
    content = f'{before}<sheetData><row r="1">{first}</row><row r="2">{second}</row>{rows}</sheetData>{after}'
    with zipfile.ZipFile(tmp_path / "x.xlsx", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/worksheets/sheet1.xml", f"<worksheet>{content}</worksheet>")
    return tmp_path / "x.xlsx"


HEADER = ("dialogue_id", "speaker", "text")
FAR = '<row r="3"><c r="XFD3"/></row>'


@pytest.fixture
def little_memory():
    """Fails where far more is held at once than a spreadsheet of some megabytes needs."""
    tracemalloc.start()
    yield
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 300 * 2**20, f"{most / 2**20:.0f} MiB"


@pytest.mark.parametrize(
    "parts",
    [
        {"rows": '<row r="90000"><c r="XFD90000"/></row>'},
        {"rows": '<row r="40000"><c r="C40000"/></row>', "after": '<mergeCell ref="A1:B1"/>' * 500_000},
    ],
)
def test_a_forgotten_cell_in_the_last_corner_costs_nothing(parts, tmp_path, little_memory):
    content, _ = sheet_as_csv(sheet(tmp_path, **parts))
    assert content.startswith(b"dialogue_id,speaker,text")
    assert len(content) < 2 * 2**20


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (
            {"rows": "".join(f'<row r="{n}"><c r="XFD{n}"/></row>' for n in range(3, 5000))},
            "more than 20,000,000 cells",
        ),
        (
            {
                "rows": '<row r="3"><c r="XFD3"/></row>'
                + "".join(f'<row r="{n}"><c r="A{n}"><v>1</v></c></row>' for n in range(4, 5000))
            },
            "delete the columns without data",
        ),
        ({"rows": f'<row r="3">{"<c/>" * 500_000}</row>'}, "too many parts"),
        ({"before": "<col/>" * 500_000}, "too many parts"),
        ({"before": "<a>" * 400_000 + "</a>" * 400_000}, "too many parts"),
    ],
)
def test_a_spreadsheet_that_would_fill_the_memory_is_refused(parts, words, tmp_path, little_memory):
    with pytest.raises(DialometerError, match=words):
        sheet_as_csv(sheet(tmp_path, **parts))


@pytest.mark.parametrize("long", ["<!--{}-->", "<x a='{}'/>", "<?x {}?>"])
def test_a_spreadsheet_with_an_endless_tag_takes_no_time(long, tmp_path):
    """The parser begins an unfinished tag anew with every piece: 32 MB took a minute, and all of Python waited."""
    path = sheet(tmp_path, before=long.format("x" * 32_000_000))
    began = time.process_time()
    assert sheet_as_csv(path)[0].startswith(b"dialogue_id,speaker,text")
    assert time.process_time() - began < 25


def test_ids_may_be_numbers_or_missing(a_file):
    lines = [{"id": 7, "turns": TURNS}, {"turns": TURNS}, {"turns": TURNS}]
    dialogues, said = read(a_file("talk.jsonl", "".join(json.dumps(line) + "\n" for line in lines)))
    assert [dialogue.id for dialogue in dialogues] == ["7", "talk-2", "talk-3"]
    assert said == ["dialogues without an id are numbered in the order of the file"]


def test_usual_speakers_have_their_roles(a_file):
    text = "dialogue_id,speaker,text\nd,Human,a\nd,assistant,b\nd,USER,c\nd,bot,d\n"
    dialogues, said = read(a_file("x.csv", text))
    assert [turn.role for turn in dialogues[0].turns] == ["user", "agent", "user", "agent"]
    assert [turn.speaker for turn in dialogues[0].turns] == ["Human", "assistant", "USER", "bot"]
    assert len(said) == 4
    assert usual_role("system") is None, "a prompt in some logs, the agent in others"


def test_turns_as_chat_programs_write_them(a_file):
    record = {"id": 1, "turns": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "at": 5}]}
    dialogues, _ = read(a_file("x.jsonl", json.dumps(record)))
    assert [(turn.role, turn.text) for turn in dialogues[0].turns] == [("user", "a"), ("agent", "b")]
    assert dialogues[0].metadata["turn_fields"][1] == {"at": 5}


def test_further_keys_are_kept_and_misspelt_ones_refused(a_file):
    dialogues, said = read(a_file("x.jsonl", json.dumps({"id": "a", "turns": TURNS, "topic": "music"})))
    assert dialogues[0].metadata == {"topic": "music"}
    assert said == ["further keys are kept in the dialogue's metadata: 'topic'"]
    with pytest.raises(ReadError, match="did you mean 'speakers'"):
        read(a_file("y.jsonl", json.dumps({"id": "a", "turns": TURNS, "speaker": {}})))


def test_a_json_array_of_dialogues_is_read_like_lines(a_file):
    dialogues, _ = read(a_file("x.json", [{"id": "a", "turns": TURNS}, {"id": "b", "turns": TURNS}]))
    assert [dialogue.id for dialogue in dialogues] == ["a", "b"]


def test_mixed_rows_are_put_together(a_file):
    text = "dialogue_id,speaker,text\na,User,1\nb,User,2\na,Agent,3\nb,Agent,4\n"
    dialogues, said = read(a_file("x.csv", text))
    assert [[turn.text for turn in dialogue.turns] for dialogue in dialogues] == [["1", "3"], ["2", "4"]]
    assert said == ["rows of one dialogue that are not together are put together, in the order of the file"]


def test_json_objects_are_rows_of_a_table(a_file):
    for name, text in (
        ("x.json", '[{"a": 1, "b": null}, {"a": true, "C": [1]}]'),
        ("x.jsonl", '{"a": 1}\n{"a": true, "C": [1]}\n'),
    ):
        rows = list(table_rows(SourceFile(a_file(name, text)), Problems("x"), ("a", "c")))
        assert [(row.cells["a"], row.cells["c"]) for row in rows] == [("1", ""), ("true", "[1]")]


def test_ten_thousand_columns_take_no_time(a_file):
    path = a_file("x.csv", ",".join(f"c{n}" for n in range(10_000)) + "\n" + ",".join("1" * 10_000) + "\n")
    problems = Problems("x")
    assert list(table_rows(SourceFile(path), problems, ("dialogue_id",))) == []
    assert "and 9,980 more" in problems.errors[0].remedy


def test_deep_nesting_is_refused_before_anything_walks_it(a_file):
    deep = '{"id": "a", "turns": [], "metadata": ' + '{"a":' * 100 + "1" + "}" * 100 + "}"
    with pytest.raises(ReadError, match="nested too deeply"):
        read(a_file("x.jsonl", deep), format="jsonl")
