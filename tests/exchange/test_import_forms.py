"""Missing values, percentages, JSON tables and formula cells: read as what they are."""

from __future__ import annotations

import json

import polars as pl
import pytest
from bench.fuzz.valid_files import workbook
from hypothesis import given
from hypothesis import strategies as st

from dialometer.errors import ImportFileError
from dialometer.exchange.importing import import_files
from dialometer.formula_cells import escaped, escaped_row, restored, restored_frame
from dialometer.model.values import is_missing, to_number

MISSING = "missing values (NA, n/a, - and the like)"


def bring(tmp_path, name, content, format="", **more):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return import_files(
        tmp_path / f"in-{name}", [path], tmp_path / f"{name}.db", format=format, at_ms=1, is_dry_run=True, **more
    )


def scale_of(done):
    return next(iter(done.study.spec.scales.values()))


@pytest.mark.parametrize("missing", ["NA", "n/a", "NaN", "-", "#N/A", "null"])
def test_missing_values_are_no_options(tmp_path, missing):
    rows = f"a,i1,x,q,4\nb,i1,x,q,{missing}\nc,i1,x,q,2\n"
    done = bring(tmp_path, "d.csv", "rater,item,system,criterion,value\n" + rows, "long")
    assert scale_of(done).type == "likert"
    assert done.files[0].n_judgments == 2
    assert done.files[0].left_out == {MISSING: 1}


def test_percentages_are_numbers(tmp_path):
    done = bring(tmp_path, "d.csv", "rater,item,system,criterion,value\na,i,x,q,80%\nb,i,x,q,95%\n", "long")
    assert (scale_of(done).type, scale_of(done).high) == ("slider", 100)
    assert to_number("80%") == 80
    assert to_number("%") is None
    assert not is_missing("none")
    assert all(map(is_missing, (".", "#NULL!")))
    assert is_missing(float("nan"))


def test_a_study_may_have_an_option_called_na(tmp_path):
    folder = tmp_path / "in"
    rows = "rater,item,system,criterion,value\na,i,x,q,yes\nb,i,x,q,no\nc,i,x,q,n/a\n"
    (tmp_path / "d.csv").write_text(rows)
    import_files(folder, [tmp_path / "d.csv"], tmp_path / "x.db", format="long", at_ms=1)
    text = (folder / "study.yaml").read_text()
    assert "n/a" not in text
    (folder / "study.yaml").write_text(
        text.replace("['no', 'yes']", "['no', 'yes', n/a]").replace("['yes', 'no']", "['no', 'yes', n/a]")
    )
    done = import_files(folder, [tmp_path / "d.csv"], tmp_path / "y.db", format="long", at_ms=1, is_dry_run=True)
    assert done.files[0].n_judgments == 3


def test_missing_times_positions_and_votes(tmp_path):
    text = "rater,item,system,criterion,value,answered_at,position,duration_s\na,i,x,q,4,NA,NA,NA\nb,i,x,q,2,NA,n/a,-\n"
    assert bring(tmp_path, "d.csv", text, "long").files[0].n_judgments == 2
    votes = "rater,model_a,model_b,winner\na,x,y,model_a\nb,x,y,NA\n"
    done = bring(tmp_path, "v.csv", votes)
    assert done.files[0].left_out == {"empty cells (nothing was answered)": 1}


@pytest.mark.parametrize("name", ["v.json", "v.jsonl"])
def test_votes_in_json_are_recognised_and_read(tmp_path, name):
    rows = [
        {"judge": f"r{n}", "model_a": "x", "model_b": "y", "winner": winner}
        for n, winner in enumerate(("model_a", "tie", "y"))
    ]
    text = json.dumps(rows) if name == "v.json" else "\n".join(map(json.dumps, rows))
    done = bring(tmp_path, name, text)
    assert (done.files[0].format, done.files[0].n_judgments) == ("votes", 3)


def test_a_judgment_given_twice_is_found_in_json_of_one_line_too(tmp_path):
    row = {"rater": "a", "item": "i", "system": "x", "criterion": "q"}
    rows = [row | {"value": value} for value in (3, 4)]
    for name, text in (("d.json", json.dumps(rows)), ("d.jsonl", "\n".join(map(json.dumps, rows)))):
        with pytest.raises(ImportFileError, match=r"the rater 'a' has judged 'i' by 'x' for q .*already"):
            bring(tmp_path, name, text, "long")


def test_headers_in_capitals_and_a_spreadsheet(tmp_path):
    rows = [["Rater ID", "ITEM", "Criterion", "Value", "System"], ["a", "i", "q", 4, "x"], ["b", "i", "q", 2, "x"]]
    done = bring(tmp_path, "d.xlsx", workbook(rows), "long")
    assert done.files[0].n_judgments == 2
    assert done.files[0].used["rater"] == "Rater ID"
    assert done.files[0].assumed == ("read from sheet 1 of the spreadsheet",)


def test_a_rankme_file_with_one_criterion(tmp_path):
    head = "_worker_id,_created_at,mr,mr_id,team,quality,ref\n"
    done = bring(tmp_path, "d.csv", head + "u1,10/21/2017 10:00:00,x,1,a,5,T\nu2,10/21/2017 10:00:00,x,1,a,3,T\n")
    assert done.files[0].criteria == ("quality",)


def test_one_wrong_mapping_is_one_message(tmp_path):
    rows = "".join(f"r{n},i,x,q,{3 if n < 7 else 'foo bar'}\n" for n in range(900))
    done = bring(tmp_path, "ok.csv", "rater,item,system,criterion,value\na,i,x,q,1\nb,i,x,q,5\n", "long")
    folder = tmp_path / "study"
    path = tmp_path / "ok.csv"
    import_files(folder, [path], tmp_path / "z.db", format="long", at_ms=1)
    (tmp_path / "bad.csv").write_text("rater,item,system,criterion,value\n" + rows)
    with pytest.raises(ImportFileError) as caught:
        import_files(folder, [tmp_path / "bad.csv"], tmp_path / "z.db", format="long", at_ms=1)
    assert str(caught.value).count("\n") == 1
    assert "  893 rows, the first of them " in str(caught.value)
    assert done.files[0].n_judgments == 2


def test_formula_cells_are_marked_and_read_back():
    texts = [
        "=1+1",
        "+x",
        "-x",
        "@cmd",
        "\tx",
        "\rx",
        "'=x",
        "''-x",
        "plain",
        "",
        "-5",
        "-0.5e3",
        "'quoted'",
        "a=b",
        None,
        " =1+1",
        "\n\x1c-x",
        "'quoted' =x",
    ]
    frame = pl.DataFrame({"text": texts, "n": range(len(texts))})
    marked = escaped(frame)
    assert marked["text"].to_list()[:7] == ["'=1+1", "'+x", "'-x", "'@cmd", "'\tx", "'\rx", "''=x"]
    assert marked["text"].to_list()[8:13] == ["plain", "", "-5", "-0.5e3", "'quoted'"]
    assert marked["text"].to_list()[15:] == ["' =1+1", "'\n\x1c-x", "'quoted' =x"]
    assert marked["n"].equals(frame["n"])
    assert restored_frame(marked).equals(frame)
    assert [None if text is None else restored(text) for text in marked["text"]] == texts


@given(st.lists(st.text("'=+-@.e5 \t\r\n\x1c\x85a", max_size=6), max_size=30))
def test_tables_and_single_texts_are_marked_alike(texts):
    marked = escaped(pl.DataFrame({"text": texts}, schema={"text": pl.String}))
    assert marked["text"].to_list() == escaped_row(texts)
    assert [restored(text) for text in marked["text"]] == texts
    assert restored_frame(marked)["text"].to_list() == texts
