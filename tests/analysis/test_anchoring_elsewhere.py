"""The anchoring study from a plain file: the tables of the paper come out of ratings that were collected elsewhere."""

import csv

import numpy as np
import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.errors import ImportFileError
from dialometer.exchange.formats import ImportOptions
from dialometer.exchange.importing import import_files
from dialometer.storage.store import Store

COLUMNS = {"factor_anchor": "anchor", "factor_setup": "setup", "session_minutes": "minutes", "rater": "worker"}
OPTIONS = ImportOptions(COLUMNS, ["readability", "coherence"], ["evaluated_before"])
# Beside the tables and figures of every report of factors: those that need times and answers of the raters.
TABLES = {
    "balance": "table 2",
    "condition_means": "figures 3 and 4",
    "minutes_by_condition": "figure 5",
    "means_by_time": "table 4, figure 6",
    "means_by_evaluated_before": "table 3, figure 7",
    "consistency_by_condition": "table 5",
    "consistency_by_time": "table 6",
    "consistency_by_evaluated_before": "table 7",
}


def write(path, **changes):
    rng = np.random.default_rng(4)
    rows = []
    for rater in range(16):
        anchor, setup = ("no anchor", "anchor")[rater % 2], ("both", "single")[rater // 2 % 2]
        level = rng.normal(0, 0.4) + 0.2 * (rater % 2)
        of_rater = [f"w{rater:02d}", anchor, setup, 40 + rater, ("Yes", "No")[rater // 4 % 2]]
        for item in range(4):
            for system, quality in (("hred", 0.0), ("thred", 0.3)):
                ratings = [round(float(60 * np.exp(level + quality + rng.normal(0, 0.3))), 1) for _ in range(2)]
                rows.append([*of_rater, f"c{item}", system, *ratings])
    head = ["worker", "anchor", "setup", "minutes", "evaluated_before", "item", "system", "readability", "coherence"]
    for (row, column), value in changes.get("cells", {}).items():
        rows[row][head.index(column)] = value
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def bring_in(tmp_path, **changes):
    file = write(tmp_path / "ratings.csv", **changes)
    database = tmp_path / "study.db"
    done = import_files(tmp_path / "in", [file], database, format="long", options=OPTIONS, at_ms=1)
    return done, database


def test_the_tables_of_the_paper_come_from_a_plain_file(tmp_path):
    done, database = bring_in(tmp_path, cells={(0, "coherence"): 0, (9, "coherence"): 250})
    assert done.files[0].n_zeros == 1
    with Store.open(database) as store:
        report = analyse(done.study, store, n_resamples=100, by=["evaluated_before"])
    tables = {table.name: table for table in report.tables()}
    assert set(TABLES) <= set(tables)
    minutes = {row[0]: row[2].value for row in tables["minutes_by_condition"].rows}
    assert minutes == {
        "no anchor, both": pytest.approx(46),
        "no anchor, single": pytest.approx(48),
        "anchor, both": pytest.approx(47),
        "anchor, single": pytest.approx(49),
        "all": pytest.approx(47.5),
    }
    assert not [section.name for section in report.sections if section.problem]


def test_a_session_has_one_length(tmp_path):
    with pytest.raises(ImportFileError) as caught:
        bring_in(tmp_path, cells={(1, "minutes"): 41, (9, "minutes"): "an hour"})
    told = [(problem.line, problem.message) for problem in caught.value.problems]
    assert told == [
        (3, "the session of the rater 'w00' took 40 minutes in an earlier row"),
        (11, "'an hour' is not a number of minutes"),
    ]
