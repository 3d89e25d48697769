"""Every chart builder, drawn: it is valid Vega-Lite, warns of nothing, and says what it was given."""

import json
import math
import re

import altair
import numpy as np
import pytest
import vl_convert
from rich_report import HOSTILE, LONG

from dialometer.model.estimate import Estimate, unknown
from dialometer.report.charts import (
    COEFFICIENT,
    Bar,
    Bin,
    Dot,
    HeatCell,
    LinePoint,
    Share,
    WordBranch,
    bars,
    bin_values,
    dot_interval,
    forest,
    heatmap,
    histogram,
    lines,
    ranking_intervals,
    stacked_shares,
    strip,
    word_tree,
)
from dialometer.report.charts.frame import drawn_domain, lines_of
from dialometer.report.charts.heatmap import step_of
from dialometer.report.drawing import draw_svg
from dialometer.report.numbers import write_percent
from dialometer.report.theme import NARROW_PX, SERIES, SHAPES, WIDE_PX, narrow_form, themed

NAMES = ("alpha", "it's a \\ name", LONG, "שלום")


def around(value, half=0.1):
    return Estimate(value, 30, "mean", value - half, value + half)


DOTS = [Dot(name, around(0.3 + i / 10)) for i, name in enumerate(NAMES)]
GROUPED = [
    Dot(name, around(0.5), group, facet)
    for name in NAMES
    for group in ("first", "second")
    for facet in ("one", "two", HOSTILE)
]
UNKNOWN = Dot("nobody", unknown("mean", "no answers"))
CHARTS = {
    "dot_interval": dot_interval([*DOTS, UNKNOWN], value_title="rating", reference=0.5),
    "dot_interval_domain": dot_interval(DOTS, value_title="rating", domain=(0, 1), is_percent=True),
    "dot_interval_groups": dot_interval(GROUPED, value_title="rating", group_title="Layout", reference=0.5),
    "forest": forest([*DOTS, UNKNOWN], value_title="effect"),
    "ranking": ranking_intervals(
        [*DOTS, UNKNOWN], value_title="strength", rank_ranges={"alpha": (3, 4), "שלום": (1, 1)}
    ),
    "ranking_numbers": ranking_intervals(DOTS, value_title="strength", is_percent=True),
    "bars": bars([Bar(name, 3.0) for name in NAMES] + [Bar("nobody", None)], value_title="euro"),
    "bars_groups": bars([Bar(n, 1.0, g, f) for n in NAMES for g in "xy" for f in "pq"], value_title="euro"),
    "stacked_shares": stacked_shares([Share(n, p, 0.5) for n in NAMES for p in "ab"], parts="ab"),
    "stacked_shares_ordered": stacked_shares(
        [Share(n, p, 0.2, f) for n in NAMES for p in "12345" for f in ("one", "two")], parts="12345", is_ordered=True
    ),
    "histogram": histogram([Bin(0, 1, 3), Bin(1, 2, 0), Bin(2, 3, 8)], value_title="rating", reference=1.5),
    "histogram_facets": histogram([Bin(0, 1, 3, f) for f in ("one", "two", "three")], value_title="rating"),
    "heatmap": heatmap([HeatCell(a, b, 0.2) for a in NAMES for b in ("x", "y")], value_title="ICC"),
    "heatmap_square": heatmap(
        [HeatCell(a, b, None if a == b else 0.7) for a in NAMES for b in NAMES],
        value_title="wins",
        midpoint=0.5,
        is_percent=True,
    ),
    "heatmap_slanted": heatmap([HeatCell("a", b, -0.2) for b in NAMES], value_title="difference", midpoint=0),
    "lines": lines([LinePoint(x, x / 10) for x in range(5)], x_title="raters", y_title="power", target=0.3),
    "lines_groups": lines(
        [
            LinePoint(x, None if x == 2 else x / 10, x / 20, x / 5, g, f)
            for x in range(1, 5)
            for g in "ab"
            for f in "pq"
        ],
        x_title="raters",
        y_title="power",
        is_percent=True,
        y_domain=(0, 1),
    ),
    "word_tree": word_tree(
        [WordBranch(("what", "is", "your"), 9), WordBranch(("what", "do"), 4), WordBranch(("why",), 1)]
    ),
    "strip": strip({"few": [1.0, 2.0, 5.0], "none": []}, value_title="seconds", reference=2.0),
    "strip_log": strip({"many": np.geomspace(0.1, 100, 5000)}, value_title="seconds", is_log=True),
}
ALL = pytest.mark.parametrize("name", CHARTS)


def texts(svg):
    found = [re.sub(r"<[^>]+>", " ", text) for text in re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL)]
    return " | ".join(found).replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"')


@ALL
def test_it_is_plain_data_and_valid(name):
    spec = CHARTS[name]
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    for form in (spec, narrow_form(spec)):
        altair.Chart.from_dict(themed(form), validate=True)


@ALL
def test_it_draws_without_a_warning_and_in_the_theme(name, capfd):
    for form, width in ((CHARTS[name], WIDE_PX), (narrow_form(CHARTS[name]), NARROW_PX)):
        svg = vl_convert.vegalite_to_svg(themed(form), vl_version="5.20", show_warnings=True)
        drawn = float(re.search(r'width="([\d.]+)"', svg)[1])
        assert drawn <= width + 30, "wider than its place"
    output = capfd.readouterr()
    assert "WARN" not in output.out + output.err
    assert "NaN" not in svg
    assert "undefined" not in svg
    assert "…" not in texts(svg), "a label was cut off"


def test_points_stand_where_the_estimates_are():
    svg = draw_svg(
        dot_interval([Dot("a", around(0.25, 0.05)), Dot("b", around(0.75, 0.1))], value_title="x", domain=(0, 1))
    )
    marks = re.search(r'<g class="mark-symbol role-mark[^>]*>(.*?)</g>', svg, re.DOTALL)[1]
    left, right = (float(x) for x in re.findall(r"translate\(([\d.]+),", marks))
    rules = re.search(r'<g class="mark-rule role-mark[^>]*>(.*?)</g>', svg, re.DOTALL)[1]
    starts = [float(x) for x in re.findall(r'transform="translate\(([\d.]+),', rules)]
    lengths = [float(x) for x in re.findall(r'x2="(-?[\d.]+)"', rules)]
    width = (right - left) / 0.5
    assert [abs(length) for length in lengths] == pytest.approx([0.1 * width, 0.2 * width], rel=0.01)
    assert min(starts[0], starts[0] + lengths[0]) == pytest.approx(0.2 * width, abs=1.5)


def test_what_is_not_known_is_said_and_not_drawn():
    svg = draw_svg(CHARTS["dot_interval"])
    assert texts(svg).count("not enough data") == 1
    marks = re.search(r'<g class="mark-symbol role-mark[^>]*>(.*?)</g>', svg, re.DOTALL)[1]
    assert marks.count("<path") == len(DOTS)
    assert "not enough data" in texts(draw_svg(CHARTS["bars"]))
    assert "not enough data" in texts(draw_svg(CHARTS["strip"]))
    assert "–" in texts(draw_svg(CHARTS["heatmap_square"]))


def test_an_interval_without_an_end_is_an_arrow():
    ended, open_above, open_below = (
        [Dot("a", Estimate(1.0, 4, "bt", low, high)), DOTS[0]]
        for low, high in ((0.5, 2), (0.5, math.inf), (-math.inf, 2))
    )
    spec = dot_interval(open_above, value_title="x")
    assert spec["data"]["values"][0]["high"] is None, "no number in the figure's data that nobody computed"
    points = re.compile(r'class="mark-symbol role-mark[^"]*"[^>]*>((?:<path[^>]*>(?:</path>)?)*)')
    drawn = [
        sum(found[1].count("<path") for found in points.finditer(draw_svg(dot_interval(dots, value_title="x"))))
        for dots in (ended, open_above, open_below)
    ]
    assert drawn == [2, 3, 3]


def test_names_are_whole_and_wrapped_in_both_forms():
    for form in (CHARTS["forest"], narrow_form(CHARTS["forest"])):
        shown = re.sub(r"[\s|]+", "", texts(draw_svg(form)))
        for name in NAMES:
            assert re.sub(r"\s+", "", name) in shown
    assert lines_of("", 10) == [""]
    assert "".join(lines_of(LONG, 17)) == LONG


def test_groups_differ_in_colour_and_shape():
    svg = draw_svg(CHARTS["dot_interval_groups"])
    assert SERIES[0] in svg
    assert SERIES[1] in svg
    layers = CHARTS["dot_interval_groups"]["spec"]["layer"]
    shapes = [layer["encoding"]["shape"]["scale"]["range"] for layer in layers if "shape" in layer["encoding"]]
    assert shapes == [list(SHAPES[:2])]


def test_forest_writes_the_numbers_and_ranking_sorts():
    assert "0.30 [0.20, 0.40]" in texts(draw_svg(CHARTS["forest"]))
    ranking = CHARTS["ranking"]
    assert [row["label"] for row in ranking["data"]["values"]] == [*reversed(NAMES), "nobody"]
    shown = texts(draw_svg(ranking))
    assert "rank 3–4" in shown
    assert re.search(r"rank 1( |$)", shown)
    assert "rank 3–4" in texts(draw_svg(narrow_form(ranking))), "captions speak of the ranks on every screen"
    assert "0.30" not in texts(draw_svg(narrow_form(CHARTS["ranking_numbers"])))


def test_shares_stack_to_their_sum():
    rows = CHARTS["stacked_shares"]["data"]["values"]
    assert [(row["start"], row["end"]) for row in rows if row["label"] == "alpha"] == [(0, 0.5), (0.5, 1)]
    assert "50%" in texts(draw_svg(CHARTS["stacked_shares"]))


def test_shares_in_a_bar_are_rounded_as_in_tables():
    rows = stacked_shares([Share("a", "x", 0.125), Share("a", "y", 0.875)], parts="xy")["data"]["values"]
    assert [row["text"] for row in rows] == [write_percent(0.125), write_percent(0.875)] == ["13%", "88%"]


def x_of(spec):
    """The axis and the scale of the points of a chart."""
    layer = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "point")
    return layer["encoding"]["x"]["axis"], layer["encoding"]["x"]["scale"]


def test_axes_end_where_values_cannot_be():
    assert drawn_domain([0.5, 0.99], is_percent=True) == (pytest.approx(0.4755), 1)
    assert drawn_domain([-0.95, 0.9], is_percent=True) == (-1, pytest.approx(0.9925)), "differences of shares"
    assert drawn_domain([1.5, 4.9], (1, 5)) == (pytest.approx(1.33), 5)
    assert drawn_domain([2.0, 40.0], (0, math.inf)) == (pytest.approx(0.1), pytest.approx(41.9))
    assert drawn_domain([3.0, None, 5.2], (1, 5)) is None, "what is beyond the limits is drawn all the same"
    assert drawn_domain([1.0, 2.0], (-math.inf, math.inf)) is None
    assert drawn_domain([1.0, 2.0]) is None
    assert x_of(dot_interval([Dot("a", around(4.95, 0.05))], value_title="x", limits=(1, 5)))[1]["domain"][1] == 5
    chance = dot_interval([Dot("a", around(0.8))], value_title="share", reference=0.5, is_percent=True)
    assert "0%" not in texts(draw_svg(chance)).split(" | "), "a line for chance brings no zero with it"
    assert "50%" in texts(draw_svg(chance))
    assert x_of(strip({"a": [0.2, 0.98]}, value_title="r", limits=COEFFICIENT))[1]["domain"][1] == 1
    assert x_of(strip({"a": [0.2, 0.98]}, value_title="share", is_percent=True))[1]["domain"][1] == 1
    assert x_of(CHARTS["strip_log"])[1]["padding"] > 0, "the outermost marks stand whole"


def test_points_at_the_end_of_an_axis_are_whole_and_those_beyond_are_not_drawn():
    for chart in (
        dot_interval([Dot("a", around(1.0)), Dot("b", around(1.2, 0.3))], value_title="x", domain=(0, 1)),
        lines([LinePoint(0, 1.0), LinePoint(1, 1.2)], x_title="x", y_title="y", y_domain=(0, 1)),
        strip({"a": [0.0]}, value_title="x", is_percent=True),
    ):
        layer = next(layer for layer in chart["layer"] if layer["mark"]["type"] == "point")
        assert not layer["mark"].get("clip")
        marks = re.search(r'<g class="mark-symbol role-mark[^>]*>(.*?)</g>', draw_svg(chart), re.DOTALL)[1]
        assert marks.count("<path") == 1


@pytest.mark.parametrize("most", [1, 2, 3, 7, 20, 400])
def test_counts_are_marked_with_whole_numbers(most):
    drawn = lines([LinePoint(x, 0.5) for x in range(1, most + 1)], x_title="position", y_title="y", y_domain=(0, 1))
    counts = histogram([Bin(0, 1, most)], value_title="x")
    for spec in (drawn, narrow_form(drawn), counts):
        role = "position" if spec is not counts else "judgments"
        marks = next(
            re.findall(r"<text[^>]*>([\d.,]+)</text>", axis)
            for axis in draw_svg(spec).split('role-axis"')
            if role in axis
        )
        assert marks, "an axis has marks"
        assert len(set(marks)) == len(marks)
        assert not [mark for mark in marks if "." in mark]


def test_both_ends_of_a_short_scale_are_marked():
    spec = dot_interval([Dot("a", around(3.5, 0.5))], value_title="x", domain=(1, 7))
    for form in (spec, narrow_form(spec)):
        marks = re.findall(r"<text[^>]*>(\d)</text>", draw_svg(form))
        assert (marks[0], marks[-1]) == ("1", "7")


def test_bins_count_every_known_value():
    bins = bin_values([1, 1, 2, math.nan, 5, math.inf], edges=[0.5, 1.5, 2.5, 5.5], facet="f")
    assert [(b.low, b.high, b.count) for b in bins] == [(0.5, 1.5, 2), (1.5, 2.5, 1), (2.5, 5.5, 1)]
    assert {b.facet for b in bins} == {"f"}
    assert sum(b.count for b in bin_values(np.arange(1000.0))) == 1000


def test_strip_uses_every_value_for_quartiles_but_draws_few():
    values = np.random.default_rng(1).normal(size=4001)
    rows = strip({"a": values}, value_title="x", n_points_max=200)["data"]["values"]
    box = next(row for row in rows if row["kind"] == "box")
    assert box["value"] == pytest.approx(np.median(values))
    assert box["low"] == pytest.approx(np.quantile(values, 0.25))
    points = [row["value"] for row in rows if row["kind"] == "point"]
    assert len(points) == 200
    assert (min(points), max(points)) == (values.min(), values.max())


def test_steps_of_the_heat_map():
    assert [step_of(value, 0, 1, 9) for value in (-1, 0, 0.5, 0.999, 1, 2)] == [0, 0, 4, 8, 8, 8]
    assert step_of(0.3, 0.3, 0.3, 7) == 3


EMPTY = [
    dot_interval([], value_title="x"),
    forest([], value_title="x"),
    heatmap([], value_title="x"),
    bars([], value_title="x"),
    stacked_shares([], parts="ab"),
    lines([], x_title="x", y_title="y"),
    strip({}, value_title="x"),
    histogram([], value_title="x"),
]


@pytest.mark.parametrize("empty", EMPTY)
def test_nothing_to_draw_is_said(empty):
    assert texts(draw_svg(empty)) == "not enough data"
