"""Public data sets come in with every judgment, and come out again with the same numbers."""

from __future__ import annotations

import csv
import os
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from dialometer.design.load import check_study
from dialometer.exchange.exports.export import export_study
from dialometer.exchange.importing import ImportResult, import_files
from dialometer.storage.store import Store

FOLDER = os.environ.get("DIALOMETER_DATA", "")
pytestmark = [
    pytest.mark.realdata,
    pytest.mark.skipif(
        not FOLDER or not Path(FOLDER).is_dir(), reason="DIALOMETER_DATA names no folder with the public data sets"
    ),
]
CRITERIA = ("informativeness", "naturalness", "quality")
METHODS = {"likert": (914, 16), "plainME": (900, 23), "rankME": (300, 16)}


def rows_of(name: str) -> list[dict[str, str]]:
    with (Path(FOLDER) / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def bring(tmp_path, database, *names: str, **options) -> ImportResult:
    paths = [Path(FOLDER) / name for name in names]
    done = import_files(tmp_path / "in", paths, database, at_ms=1_770_000_000_000, **options)
    study, problems = check_study(tmp_path / "in")
    assert study is not None
    assert problems == []
    return done


def expected(method: str) -> list[tuple[str, str, str, str, float]]:
    """Rater, item, system, criterion and value of every judgment, read from the file by the standard library alone."""
    result = []
    for row in rows_of(f"rankme/setup1_{method}.csv"):
        numbers = ("1", "2", "3") if method == "rankME" else ("",)
        for number in numbers:
            for criterion in CRITERIA:
                value = float(row[criterion + number])
                result.append((row["_worker_id"], row["mr_id"], row["team" + number], criterion, value))
    return sorted(result)


def stored(store: Store) -> list[tuple[str, str, str, str, float]]:
    raters = {session.id: store.sessions.person(session.id).external_id for session in store.sessions.all()}
    return sorted(
        (raters[j.session_id], j.item_id, j.system, j.criterion, float(j.value)) for j in store.records.judgments()
    )


@pytest.mark.parametrize("method", METHODS)
def test_rankme_files(tmp_path, database_url, method):
    n_rows, n_raters = METHODS[method]
    file = bring(tmp_path, database_url, f"rankme/setup1_{method}.csv").files[0]
    n_systems = 3 if method == "rankME" else 1
    assert len(rows_of(f"rankme/setup1_{method}.csv")) == n_rows
    assert (file.format, file.n_judgments, file.n_raters, file.n_items) == (
        "rankme",
        n_rows * n_systems * 3,
        n_raters,
        100,
    )
    assert file.systems == ("baseline", "sheffield_v2", "slug2slug")
    assert file.left_out == {}
    with Store.open(database_url) as store:
        assert stored(store) == expected(method)
        judgments = list(store.records.judgments())
        session = store.sessions.all()[0]
    assert {j.scale for j in judgments} == {"likert" if method == "likert" else "magnitude"}
    times = [j.answered_at_ms for j in judgments]
    assert min(times) > 1_509_700_000_000, "November 2017, not April"
    assert max(times) < 1_510_300_000_000
    assert session.finished_at_ms > session.started_at_ms > 0
    if method == "rankME":
        row = rows_of("rankme/setup1_rankME.csv")[0]
        first = next(j for j in judgments if j.item_id == row["mr_id"])
        assert first.order == (row["team1"], row["team2"], row["team3"])


def test_rankme_scales_and_texts(tmp_path):
    done = bring(tmp_path, tmp_path / "in.db", "rankme/setup1_likert.csv")
    assert done.study.spec.scales["likert_6"].categories() == [1, 2, 3, 4, 5, 6]
    row = rows_of("rankme/setup1_likert.csv")[0]
    item = done.study.items_by_id[row["mr_id"]]
    assert item.context[0].text == row["mr"]
    assert item.responses[row["team"]] == row["ref"]
    assert done.new_study.n_items_without_text == 0


def test_all_three_methods_are_one_study_with_three_conditions(tmp_path, rows):
    names = [f"rankme/setup1_{method}.csv" for method in METHODS]
    done = bring(tmp_path, tmp_path / "in.db", *names)
    assert [dict(cell) for cell in done.study.cells] == [{"method": m} for m in ("likert", "plain_me", "rank_me")]
    assert sum(file.n_judgments for file in done.files) == 2742 + 2700 + 2700
    with Store.open(tmp_path / "in.db") as store:
        export_study(done.study, store, tmp_path / "out")
        sessions = store.sessions.all()
    assert len(sessions) == 16 + 23 + 16
    ids = {row["_worker_id"] for name in names for row in rows_of(name)}
    assert len({session.rater_id for session in sessions}) == len(ids)
    table = rows(tmp_path / "out" / "judgments.csv")
    counts = Counter((row["factor_method"], row["scale"]) for row in table)
    assert counts == {("likert", "likert"): 2742, ("plain_me", "magnitude"): 2700, ("rank_me", "magnitude"): 2700}
    for path in (tmp_path / "out").iterdir():
        text = path.read_text(encoding="utf-8")
        assert not any(worker in text for worker in ids), "the platform's identifiers stay inside"
    means: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in table:
        means[row["factor_method"], row["system"]].append(float(row["value"]))
    direct: dict[tuple[str, str], list[float]] = defaultdict(list)
    for method, name in (("likert", "likert"), ("plain_me", "plainME"), ("rank_me", "rankME")):
        for _, _, system, _, value in expected(name):
            direct[method, system].append(value)
    assert {key: sum(v) / len(v) for key, v in means.items()} == pytest.approx(
        {key: sum(v) / len(v) for key, v in direct.items()}
    )


def test_crs_arena_votes(tmp_path, database_url, rows):
    raw = rows_of("crs_arena/votes_open.csv")
    done = bring(tmp_path, database_url, "crs_arena/votes_open.csv")
    file = done.files[0]
    assert (file.format, file.n_judgments, file.n_raters, file.n_items) == ("votes", len(raw), 80, 81)
    assert len(file.systems) == 9
    with Store.open(database_url) as store:
        judgments = list(store.records.judgments())
        export_study(done.study, store, tmp_path / "out")
    assert Counter(j.value for j in judgments) == Counter(row["vote"] for row in raw)
    assert Counter(j.value for j in judgments)["tie"] == 22
    assert Counter(j.order for j in judgments) == Counter((row["crs1"], row["crs2"]) for row in raw)
    assert all(j.side == (j.order.index(j.value) + 1 if j.value in j.order else 0) for j in judgments)
    written = rows(tmp_path / "out" / "judgments.csv")
    assert Counter(row["choice"] for row in written) == Counter(row["vote"] for row in raw)
    users = {row["user_id"] for row in raw}
    for path in (tmp_path / "out").iterdir():
        text = path.read_text(encoding="utf-8")
        assert not any(user in text for user in users)


def test_crs_arena_votes_with_columns_of_other_names(tmp_path):
    from dialometer.exchange.formats import ImportOptions

    path = tmp_path / "renamed.csv"
    raw = rows_of("crs_arena/votes_open.csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "eins", "zwei", "besser"])
        writer.writerows([row["user_id"], row["crs1"], row["crs2"], row["vote"]] for row in raw)
    options = ImportOptions({"rater": "who", "a": "eins", "b": "zwei", "winner": "besser"})
    done = import_files(tmp_path / "in", [path], tmp_path / "in.db", format="votes", options=options, at_ms=1)
    assert done.files[0].n_judgments == 81
