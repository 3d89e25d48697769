"""CSV for other software: full precision, gaps stay gaps."""

import csv
import io
import math

import polars as pl
import pytest
from rich_report import HEBREW, HOSTILE, mean

from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Column, Figure, Table
from dialometer.report.formats.csv_tables import csv_text
from dialometer.report.formats.figure_files import data_csv


def test_estimates_become_columns(rendered):
    frame = pl.read_csv(rendered / "tables" / "anchoring_ratings.csv")
    assert frame.columns[3:9] == ["rating", "rating_low", "rating_high", "rating_n", "rating_method", "rating_note"]
    row = frame.row(0, named=True)
    assert row["rating"] == 2.3412
    assert row["rating_low"] == 2.3412 - 0.1134
    assert row["rating_n"] == 120
    assert row["rating_method"] == "mean"
    assert row["is_different"] is False
    last = frame.row(-1, named=True)
    assert last["rating"] is None
    assert last["rating_low"] is None
    assert last["rating_n"] == 1
    assert last["rating_note"] == "1 rater; at least 2 are needed"
    assert last["p"] is None


def test_every_text_reads_back(rendered):
    with (rendered / "tables" / "everything.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"] for row in rows] == ["plain", HOSTILE, HEBREW, ""]
    assert rows[3]["estimate"] == "inf"
    assert rows[1]["count"] == "0"
    assert rows[2]["count"] == ""
    assert len({len(row) for row in rows}) == 1
    assert None not in rows[0]


def test_empty_text_differs_from_not_known():
    table = Table("t", "T", (Column("a", "A"), Column("b", "B")), (("", None), (None, 'x\ny, "z"')))
    assert csv_text(table) == 'a,b\n"",\n,"x\ny, ""z"""\n'


def test_columns_for_p_values_and_notes_only_where_there_are_any():
    plain = Table("t", "T", (Column("x", "X", "estimate"),), ((mean(1, 0.1),),))
    assert csv_text(plain).splitlines()[0] == "x,x_low,x_high,x_n,x_method"
    tested = Table("t", "T", (Column("x", "X", "estimate"),), ((mean(1, 0.1, p_value=0.5),), (unknown("m", "why"),)))
    assert csv_text(tested).splitlines()[0] == "x,x_low,x_high,x_n,x_method,x_p_value,x_note"
    p = Table("t", "T", (Column("p", "p", "p_value"),), ((Estimate(3, 9, "t", p_value=0.25),), (0.5,)))
    assert list(csv.reader(io.StringIO(csv_text(p))))[1:] == [["0.25", "", "", "9", "t"], ["0.5", "", "", "", ""]]


def test_shares_stay_shares_and_digits_are_all_there():
    table = Table("t", "T", (Column("s", "S", "percent"),), ((1 / 3,), (math.nan,)))
    assert csv_text(table) == f"s\n{1 / 3!r}\n\n"


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x", "@cmd", " =1+1", '=HYPERLINK("a", "b")'])
def test_a_spreadsheet_runs_no_text_of_a_table_or_a_figure(text):
    table = Table("t", "T", (Column("a", "A"), Column("n", "N", "number")), ((text, -1.5), ("-5", -2)))
    assert list(csv.reader(io.StringIO(csv_text(table))))[1:] == [[f"'{text}", "-1.5"], ["-5", "-2"]]
    figure = Figure("f", "F", {"data": {"values": [{text: text, "n": -1}]}}, "a figure")
    assert list(csv.reader(io.StringIO(data_csv(figure)))) == [[f"'{text}", "n"], [f"'{text}", "-1"]]
