"""JSON holds everything and reads back."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.model.report import Column, Report, Section, Summary, Table, Turns
from dialometer.report import read_report, report_from_json, report_to_json


def test_reads_back_to_the_same_text(report, rendered):
    again = read_report(rendered)
    assert report_to_json(again) == (rendered / "report.json").read_text(encoding="utf-8")
    assert again.title == report.title
    assert again.methods == report.methods
    assert [type(part) for s in again.sections for part in s.parts] == [
        type(part) for s in report.sections for part in s.parts
    ]
    turns = next(part for s in again.sections for part in s.parts if isinstance(part, Turns))
    assert turns in [part for s in report.sections for part in s.parts]


def test_every_estimate_is_there_in_full(rendered):
    content = json.loads((rendered / "report.json").read_text(encoding="utf-8"))
    estimate = content["summary"]["headlines"][0]["estimate"]["estimate"]
    assert estimate["n_resamples"] == 2000
    assert estimate["seed"] == 7
    assert estimate["p_value"] == 0.0002
    assert content["format"] == "dialometer report"


def report_of(cell, **details):
    table = Table("t", "T", (Column("x", "X", "estimate"),), ((cell,),))
    return Report("s", "S", Summary("a", "b"), (Section("one", "One", (), (table,)),), (), details)


numbers = st.floats(allow_nan=True, allow_infinity=True)


@given(numbers, numbers, numbers, st.lists(numbers, max_size=2), st.text(), st.integers(0, 10**9))
def test_any_estimate_survives(value, low, p, df, text, n):
    cell = Estimate(
        value, n, text, low, df=tuple(df), p_value=p, label=text, notes=(text,), details={"x": text, "k": [1, 2]}
    )
    again = report_from_json(report_to_json(report_of(cell))).tables()[0].rows[0][0]
    assert isinstance(again, Estimate)
    assert repr(again) == repr(cell)


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()))
def test_any_plain_cell_survives(cell):
    again = report_from_json(report_to_json(report_of(cell))).tables()[0].rows[0][0]
    if isinstance(cell, float) and math.isinf(cell):
        assert float(again) == cell
    else:
        assert again == cell
        assert type(again) is type(cell)


def test_what_is_not_known_is_null_and_stays_unknown():
    text = report_to_json(report_of(math.nan))
    assert "NaN" not in text
    assert report_from_json(text).tables()[0].rows[0][0] is None


def test_numbers_of_numpy_become_plain():
    details = {"a": np.float64(1.5), "b": np.arange(3), "c": {"d": (np.int64(4), math.nan)}, "e": frozenset({"z", "y"})}
    text = report_to_json(report_of(Estimate(np.float64(0.5), np.int64(3), "m", details=details)))
    again = report_from_json(text).tables()[0].rows[0][0]
    assert again.details == {"a": 1.5, "b": [0, 1, 2], "c": {"d": [4, None]}, "e": ["y", "z"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a report"),
        ('{"format": "other"}', "is not a report"),
        ('{"format": "dialometer report", "version": 99}', "has version 99"),
        ('{"format": "dialometer report", "version": 1, "study": "s"}', "is damaged"),
    ],
)
def test_other_files_are_refused_in_words(tmp_path, text, message):
    file = tmp_path / "report.json"
    file.write_text(text)
    with pytest.raises(DialometerError, match=message):
        read_report(file)


def test_a_missing_or_binary_file_is_refused_in_words(tmp_path):
    with pytest.raises(DialometerError, match="cannot be read"):
        read_report(tmp_path / "none.json")
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DialometerError, match="UTF-8"):
        read_report(tmp_path / "x.json")
