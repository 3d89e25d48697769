"""Small parts by themselves: tables, charts, cache, spread, shelf."""

import csv
import io
import re
import statistics
import threading
import time
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from dialometer.errors import DialometerError
from dialometer.storage.sessions import SessionMark
from dialometer.web.dashboard.charts import (
    BarRow,
    Series,
    Span,
    band,
    columns,
    lines_over_time,
    nice_ticks,
    spans,
    stacked_bars,
    time_ticks,
)
from dialometer.web.dashboard.dashboard import Cache
from dialometer.web.dashboard.numbers import DAY_MS, over_time
from dialometer.web.dashboard.records import spread
from dialometer.web.dashboard.running_studies import NoStudy, StudyFolders
from dialometer.web.dashboard.table import N_PER_PAGE, Grid, GridColumn

COLUMNS = (GridColumn("name", "Name"), GridColumn("n", "N", "count"), GridColumn("kind", "Kind", is_facet=True))


def grid(rows):
    return Grid("things", COLUMNS, rows)


def test_unknown_values_come_last_either_way():
    rows = [
        {"name": "a", "n": None, "kind": "x"},
        {"name": "b", "n": 2, "kind": "x"},
        {"name": "c", "n": 1, "kind": "y"},
    ]
    assert [row["name"] for row in grid(rows).view(QueryParams("sort=n")).rows] == ["c", "b", "a"]
    assert [row["name"] for row in grid(rows).view(QueryParams("sort=-n")).rows] == ["b", "c", "a"]
    assert [row["name"] for row in grid(rows).view(QueryParams("sort=nothing")).rows] == ["a", "b", "c"]
    assert [row["name"] for row in grid(rows).view(QueryParams("only_kind=y")).rows] == ["c"]
    assert [row["name"] for row in grid(rows).view(QueryParams("q=B")).rows] == ["b"]


def test_pages_and_links_keep_what_was_chosen():
    rows = [{"name": f"r{i:04d}", "n": i, "kind": "x"} for i in range(2 * N_PER_PAGE + 5)]
    view = grid(rows).view(QueryParams("page=3&sort=-n&q=r"))
    assert (view.page, view.n_pages, len(view.shown)) == (3, 3, 5)
    assert QueryParams(view.link(page=2)[1:]) == QueryParams("q=r&sort=-n&page=2")
    assert "sort=n" in view.sort_link("n")
    assert view.direction("n") == "descending"
    for strange in ("99999999999", "²", "-1", "", "x"):
        assert grid(rows).view(QueryParams({"page": strange})).page == 1


@given(st.text(max_size=30))
def test_a_spreadsheet_runs_nothing(text):
    body = grid([{"name": text, "n": -1, "kind": ""}]).view(QueryParams("")).csv().body.decode("utf-8-sig")
    name = list(csv.reader(io.StringIO(body, newline="")))[1][0]
    assert re.fullmatch(r"[+-][\d.]+", name) or not name.strip().startswith(("=", "+", "-", "@")), (
        "numbers stay numbers"
    )
    assert name.removeprefix("'") in (text, text.removeprefix("'"))


@given(
    st.lists(st.tuples(st.floats(0, 1e12), st.integers(0, 50)), max_size=30).map(sorted),
    st.text(max_size=40).filter(lambda name: "nan" not in name),
)
def test_charts_are_drawings_whatever_they_show(points, name):
    drawn = [
        lines_over_time([Series(name, points), Series("b", [])], name),
        stacked_bars([BarRow(name, (n, 1), 3) for _, n in points[:4]], ("a", "b"), name),
        columns([(n, 1) for _, n in points[:5]], 3, name),
        spans([Span(name, 1, 2 + n, 3 + n) for _, n in points[:4]], str, name, is_log=True),
        band([(float(i), n, n - 1, n + 1) for i, (_, n) in enumerate(points)], "x", name),
    ]
    for one in drawn:
        clean = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "", str(one))
        parsed = ElementTree.fromstring(clean)
        says_so = parsed.tag == "p" and parsed.text and not points
        assert len(parsed.findall(".//svg")) == 2 or says_so, "nothing to show is said in words"
        assert "nan" not in str(one)
        assert "style=" not in re.sub(r"aria-label=\"[^\"]*\"|<text.*?</text>|<li.*?</li>", "", str(one))


def test_ticks_are_round():
    assert nice_ticks(0, 10, 4) == [0, 2.5, 5, 7.5, 10]
    assert nice_ticks(0, 7, 4) == [0, 2, 4, 6]
    assert nice_ticks(3, 3, 4) == [3]


def test_spread_by_hand():
    assert spread([3], 4) is None
    assert spread([2, 2, 2], 4) == 0
    assert spread([1, 5], 4) == 1
    assert spread([1, 2, 3], 4) == pytest.approx(statistics.pstdev([1, 2, 3]) / 2)
    assert spread([50, 100, 150], None) == pytest.approx(statistics.pstdev([50, 100, 150]) / 100)
    assert spread(["a", "b"], None) == 1
    assert spread(["a", "a", "b", "b"], None) == pytest.approx(4 / 6)
    assert spread([{"best": "a", "worst": "b"}] * 2, None) == 0


def test_the_cache_computes_once_for_many_and_seldom_what_is_slow():
    now, calls = [0.0], []
    cache = Cache(clock=lambda: now[0])

    def slow():
        calls.append(1)
        now[0] += 1.0
        return len(calls)

    assert cache.get("a", slow) == 1
    now[0] += 5
    assert cache.get("a", slow) == 1, "one second of work is kept for twenty"
    now[0] += 16
    assert cache.get("a", slow) == 2
    cache.clear()
    assert cache.get("a", slow) == 3


def test_the_cache_lets_one_work_while_others_wait():
    cache, calls = Cache(clock=lambda: 0.0), []  # nothing gets old, however long a thread has to wait for its turn

    def work():
        calls.append(1)
        time.sleep(0.05)
        return "done"

    threads = [threading.Thread(target=cache.get, args=("k", work)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1]


def test_a_shelf_names_nothing_outside_itself(tmp_path):
    (tmp_path / "in" / "one").mkdir(parents=True)
    (tmp_path / "in" / "one" / "study.yaml").write_text("x")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "study.yaml").write_text("x")
    shelf = StudyFolders(parent=str(tmp_path / "in"))
    assert shelf.names() == ["one"]
    for name in ("../out", "..", ".", "", "one/../../out", "/etc"):
        with pytest.raises(NoStudy):
            shelf.folder(name)
    assert StudyFolders.from_json(shelf.as_json()) == shelf
    with pytest.raises(DialometerError):
        StudyFolders((str(tmp_path / "in" / "one"),)).new_folder("two")


def test_an_erased_session_keeps_its_place_in_the_chart():
    """Only its day is stored, but sessions are numbered as they arrive."""
    day = 20_000 * DAY_MS
    times = {1: day + 50_000_000, 2: day, 3: day + 52_000_000, 4: day}
    marks = [
        SessionMark(
            f"s{n}",
            n,
            "withdrawn" if n == 2 else "declined" if n == 4 else "completed",
            3,
            0,
            "person",
            False,
            at,
            at,
            at,
            is_erased=n in (2, 4),
        )
        for n, at in times.items()
    ]
    moved = over_time(marks)
    assert [at for at, _ in moved["arrived"]] == [times[1], times[1], times[3], times[3]]
    assert [n for _, n in moved["arrived"]] == [1, 2, 3, 4]
    assert min(n for _, n in moved["active"]) == 0, "who comes and leaves at once was never fewer than nobody"
    assert [at for at, _ in over_time(marks[1:])["arrived"]] == [times[3]] * 3
    assert moved["screened out or declined"] == [(times[3], 1)]
    assert not any(over_time([mark for mark in marks if mark.is_erased]).values()), "of them only the day is known"


@pytest.mark.parametrize("span_ms", [1, 90_000, 3_600_000, 20 * 3_600_000, 3 * DAY_MS, 40 * DAY_MS, 900 * DAY_MS])
def test_labels_of_a_time_axis_do_not_repeat(span_ms):
    start = 20_000 * DAY_MS + 51_234_567
    for n in (3, 6):
        ticks, form = time_ticks(start, start + span_ms, n)
        assert 1 <= len(ticks) <= n + 2
        assert all(start <= tick <= start + span_ms for tick in ticks)
        drawn = str(lines_over_time([Series("arrived", [(start, 1), (start + span_ms, 2)])], "alt"))
        wide = drawn.split('<svg class="chart narrow"', maxsplit=1)[0]
        labels = re.findall(rf'data-form="{form}">([^<]+)<', wide)
        assert len(labels) == len(set(labels))
