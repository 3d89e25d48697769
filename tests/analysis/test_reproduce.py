"""``dialometer reproduce``: every number of ours beside a published or independent one, and a difference is not hidden."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from commands import run
from dialometer.analysis.reproduce import REPRODUCTIONS, reproduce
from dialometer.analysis.reproduce.compared import ComparedNumber, NumberComparison, Reproduction
from dialometer.errors import DialometerError

DATA = os.environ.get("DIALOMETER_DATA", "")
needs_data = [
    pytest.mark.realdata,
    pytest.mark.skipif(not DATA or not Path(DATA).is_dir(), reason="DIALOMETER_DATA does not name a folder"),
]
SIZES = {"guerini": 175, "rankme": 372, "crs-arena": 104}


def dialometer(*arguments, code=0, **environment):
    kept = {key: value for key, value in os.environ.items() if key != "DIALOMETER_DATA"}
    return run("reproduce", *arguments, code=code, env={**kept, **environment})


def test_what_can_be_reproduced():
    assert {"avatar", "crs-arena", "guerini", "rankme"} <= set(REPRODUCTIONS.names())


@pytest.mark.parametrize(
    "name",
    ["guerini", pytest.param("rankme", marks=needs_data), pytest.param("crs-arena", marks=needs_data)],
)
def test_every_number_agrees(name):
    found = reproduce(name, Path(DATA) if DATA else None)
    outside = [row for comparison in found.comparisons for row in comparison.rows if not row.is_within]
    assert outside == []
    assert sum(len(comparison.rows) for comparison in found.comparisons) == SIZES[name]
    assert all(comparison.source for comparison in found.comparisons)


def test_the_strict_tolerance_is_used_where_numbers_are_exact():
    rows = [row for comparison in reproduce("guerini").comparisons[2:] for row in comparison.rows]
    assert {row.tolerance for row in rows} == {1e-6}
    assert max(row.difference for row in rows) < 1e-9


def test_a_difference_shows():
    assert not ComparedNumber("x", 0.5, 0.500002).is_within
    assert ComparedNumber("x", 0.5, 0.5000009).is_within
    assert not ComparedNumber("x", float("nan"), 0.5).is_within
    assert not ComparedNumber("p", 2e-30, 1e-30, is_relative=True).is_within
    table = NumberComparison("t", "s", (ComparedNumber("x", 1.0, 2.0), ComparedNumber("y", 1.0, 1.0)))
    assert (table.n_outside, table.largest) == (1, 1.0)
    assert not Reproduction("n", "t", "c", (table,)).is_within


def test_printed_as_json_without_any_data():
    found = json.loads(dialometer("guerini", "--json").stdout)
    assert found["is_within"] is True
    cells = {row["label"]: row for row in found["comparisons"][0]["rows"]}
    assert cells["empathy, satisfaction: ratio"]["ours"] == pytest.approx(112 / 143)
    assert cells["empathy, satisfaction: ratio"]["other"] == 0.78


def test_printed_for_people():
    told = dialometer("guerini").stdout
    assert "formal, satisfaction: χ²" in told
    assert "175 numbers compared: all within what is allowed" in told
    assert "outside" not in dialometer("guerini", "--brief").stdout


def test_without_data_it_says_what_to_do():
    told = dialometer("rankme", code=1).stderr
    assert "DIALOMETER_DATA" in told
    assert "Traceback" not in told


def test_an_unknown_name_lists_the_known():
    assert "did you mean 'crs-arena'" in dialometer("crsarena", code=1).stderr


def test_a_changed_file_makes_the_exit_code_one(tmp_path):
    """One vote turned round: the printed differences say so and the command fails."""
    folder = tmp_path / "crs_arena"
    folder.mkdir()
    rng = np.random.default_rng(1)
    names = list(json.loads((Path(_expected_file())).read_text())["crs-arena"]["elo"])
    lines = ["crs1,crs2,vote,user_id"]
    for k in range(81):
        a, b = rng.choice(names, 2, replace=False)
        lines.append(f"{a},{b},{rng.choice([a, b, 'tie'])},user{k}")
    for a in names:  # everybody meets everybody, so that each expected pair has a record
        lines += [f"{a},{b},{a},user-{a}-{b}" for b in names if a != b]
    (folder / "votes_open.csv").write_text("\n".join(lines) + "\n")
    told = dialometer("crs-arena", "--brief", DIALOMETER_DATA=str(tmp_path), code=1).stdout
    assert "outside" in told


def _expected_file():
    import dialometer.analysis.reproduce as room

    return Path(room.__file__).with_name("expected.json")


def test_the_numbers_of_others_stay_few():
    assert _expected_file().stat().st_size < 30_000


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DialometerError, match=r"votes_open\.csv"):
        reproduce("crs-arena", tmp_path)


def test_retrievers_stand_beside_the_published_row_of_their_own_name():
    """The default answer ranker (1:10, other wrong answers) is none of the paper's; BERT q-A 1:100 is."""
    from dialometer.analysis.reproduce.avatar import PUBLISHED, _table
    from dialometer.retrieval.selection import retriever_label, select_retrievers
    from dialometer.stats.retrieval.metrics import ranks_from_scores

    selected = select_retrievers(["tfidf", "ranker", "encoder", "bert-q-q", "bert-q-a-1-10", "bert-q-a-1-100:seed=1"])
    used = {retriever_label(name, retriever): retriever for name, retriever in selected.items()}
    ranks = ranks_from_scores(np.eye(12, dtype=np.float32), np.eye(12, dtype=bool))
    rows = {row.label: row for row in _table(dict.fromkeys(used, ranks), used).rows}
    beside = {label: row.other for label, row in rows.items() if row.ours}
    assert beside["TF-IDF q-Q"] == PUBLISHED["TF-IDF q-Q"]
    assert beside["BERT q-Q"] == PUBLISHED["BERT q-Q"]
    assert beside["BERT q-A 1:100 (seed=1)"] == PUBLISHED["BERT q-A 1:100"]
    assert beside["Answer ranker q-A"] == beside["Encoder q-Q"] == beside["BERT q-A 1:10"] == ()
    assert [label for label, row in rows.items() if not row.ours] == ["Random", "BERT q-A 1:All", "Crowd"]
