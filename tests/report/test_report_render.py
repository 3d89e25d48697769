"""Rendering as a whole: which files, always the same bytes, names that cannot leave the folder."""

import ast
import csv
import io
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dialometer import analysis
from dialometer.errors import UnknownName
from dialometer.model.report import OWN_WORDS, Column, Figure, Section, Table, Turns
from dialometer.report import FORMATS, render
from dialometer.report.formats.shared_page import SHOWN, without_raw_data


def table(name, rows=(("a", 1),)):
    return Table(name, "A table", (Column("text", "Text"), Column("n", "n", "count")), rows)


def with_parts(report, *parts):
    summary = replace(report.summary, figure=None, exclusions=None, balance=None)
    return replace(report, summary=summary, sections=(Section("one", "One", (), parts),))


def test_all_formats_are_found():
    assert FORMATS.names() == ["csv", "figures", "html", "json", "latex", "markdown", "shared"]


def test_files(report, rendered):
    names = {str(path.relative_to(rendered)) for path in rendered.rglob("*") if path.is_file()}
    tables = {f"tables/{part.name}.{end}" for part in report.tables() for end in ("csv", "tex")}
    drawn = [part.name for part in report.figures() if part.name != "broken"]
    figures = {f"figures/{name}.{end}" for name in drawn for end in ("svg", "png", "csv")}
    assert names == {"index.html", "report.md", "report.json", "shared.html"} | tables | figures


def test_same_report_same_bytes(report, rendered, tmp_path):
    paths = render(report, tmp_path)
    assert len(paths) == len(set(paths))
    for path in paths:
        assert path.read_bytes() == (rendered / path.relative_to(tmp_path)).read_bytes(), path.name


def test_one_format_by_name(report, tmp_path):
    assert render(report, tmp_path / "new" / "folder", formats=["json"]) == [
        tmp_path / "new" / "folder" / "report.json"
    ]
    with pytest.raises(UnknownName, match="did you mean 'html'"):
        render(report, tmp_path, formats=["htm"])


def test_png_is_twice_as_dense_as_the_svg(rendered):
    svg = (rendered / "figures" / "wins.svg").read_text()
    png = (rendered / "figures" / "wins.png").read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width = float(svg.split('width="')[1].split('"')[0])
    assert int.from_bytes(png[16:20], "big") == pytest.approx(2 * width, abs=2)


def test_the_data_of_a_figure_is_what_it_draws(report, rendered):
    figure = next(figure for figure in report.figures() if figure.name == "ranking")
    rows = list(csv.DictReader(io.StringIO((rendered / "figures" / "ranking.csv").read_text())))
    drawn = figure.spec["data"]["values"]
    assert len(rows) == len(drawn)
    n_numbers = 0
    for row, mark in zip(rows, drawn, strict=True):
        numbers = {name: value for name, value in mark.items() if isinstance(value, float)}
        n_numbers += len(numbers)
        assert {name: float(row[name]) for name in numbers} == numbers
    assert n_numbers > 0


def test_the_page_for_others_has_nothing_of_single_raters(report, tmp_path):
    own = Table("own", "Own", (Column("rater", "Rater"), Column("n", "N", "count")), (("R0007", 3),))
    said = Turns("said", "Said", (("User", (("equal", "", "secret words"),)),))
    noted = Table("noted", "Noted", (Column("n", "N", "count"),), ((3,),), notes=("R0008 gave all of them.",))
    whole = with_parts(report, own, said, noted)
    whole = replace(whole, summary=replace(whole.summary, warnings=("R0009 gave most answers.",)))
    render(whole, tmp_path, formats=["html", "shared"])
    whole, copy = ((tmp_path / name).read_text() for name in ("index.html", "shared.html"))
    for words in ("R0007", "secret words", "R0008", "R0009"):
        assert words in whole
        assert words not in copy
    assert report.summary.answer in copy
    assert 'content="noindex, nofollow"' in copy
    assert "noindex" not in whole


@pytest.mark.parametrize(
    ("column", "cell", "is_shown"),
    [
        ("system", "Bot A", True),
        ("group_2", "not estimated", True),
        ("participant", "5f3a9c", False),
        ("prolific_id", "5f3a9c", False),
        ("what", "only R0012 said so", False),
    ],
)
def test_the_page_for_others_has_only_tables_whose_texts_are_known(report, column, cell, is_shown):
    """Of a plug-in's table nobody knows what its columns hold, so texts are shown in columns of known names only."""
    own = Table("own", "Own", (Column(column, "Own"), Column("n", "N", "count")), ((cell, 3), ("", 4)))
    assert (own in without_raw_data(with_parts(report, own)).tables()) is is_shown


def test_the_page_for_others_quotes_no_answer_in_own_words(report):
    rows = (("Gender", "Woman", 3), ("Gender", f"{OWN_WORDS}: my secret", 1))
    columns = (Column("question", "Question"), Column("answer", "Answer"), Column("raters", "Raters", "count"))
    (part,) = without_raw_data(with_parts(report, Table("own", "Own", columns, rows))).sections[0].parts
    assert part.rows == (rows[0], ("Gender", OWN_WORDS, 1))


def test_every_column_with_texts_is_shown_to_others_or_left_out_on_purpose():
    """A new column is added to ``SHOWN``, or here where it holds single raters, items' texts or raters' words."""
    raw = {"rater", "text", "comment", "reason", "maker", "why"}
    named = set()
    for path in Path(analysis.__file__).parent.rglob("*.py"):
        calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        for call in calls:
            if (
                getattr(call.func, "id", "") == "Column"
                and len(call.args) == 2
                and isinstance(call.args[0], ast.Constant)
            ):
                named.add(call.args[0].value)
    assert len(named) > 50
    assert named - raw <= SHOWN
    assert not raw & SHOWN


def test_names_stay_in_the_folder(report, tmp_path):
    hostile = with_parts(report, table("../../outside"), table("a/b c"))
    paths = render(hostile, tmp_path / "report", formats=["csv", "latex"])
    assert sorted(path.name for path in paths) == ["a-b-c.csv", "a-b-c.tex", "outside.csv", "outside.tex"]
    assert all(path.parent == tmp_path / "report" / "tables" for path in paths)


@pytest.mark.parametrize("names", [("same", "same"), ("a b", "a-b"), ("A", "a")])
def test_parts_of_like_names_are_all_kept(report, tmp_path, names):
    parts = [table(name, ((name, i),)) for i, name in enumerate(names)]
    paths = render(with_parts(report, *parts), tmp_path, formats=["csv", "html"])
    assert len({path.name.casefold() for path in paths}) == 3
    assert (tmp_path / "tables" / f"{names[1].replace(' ', '-')}-2.csv").read_text().endswith(f"{names[1]},1\n")


def test_the_same_part_twice_is_one_file_and_two_places(report, tmp_path):
    figure = report.figures()[0]
    twice = replace(with_parts(report, figure, figure), methods=())
    paths = render(twice, tmp_path, formats=["figures", "html", "markdown"])
    assert [path.name for path in paths] == [
        "ratings_by_condition.svg",
        "ratings_by_condition.png",
        "ratings_by_condition.csv",
        "index.html",
        "report.md",
    ]
    page = (tmp_path / "index.html").read_text()
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert page.count(">Figure 1<") == 2


def test_sections_of_the_same_name_keep_apart(report, tmp_path):
    none = Section("none", "Results", problem="no judgments")
    render(replace(report, sections=(none, none)), tmp_path, formats=["html"])
    page = (tmp_path / "index.html").read_text()
    assert 'id="section-none"' in page
    assert 'href="#section-none-2"' in page


def test_a_report_with_nothing_in_it(report, tmp_path):
    empty = with_parts(replace(report, methods=(), provenance={}), table("empty", ()))
    names = {path.name for path in render(empty, tmp_path)}
    assert names == {"index.html", "shared.html", "report.md", "report.json", "empty.csv", "empty.tex"}
    assert "nothing to show yet" in (tmp_path / "index.html").read_text()


@pytest.mark.slow
def test_a_large_report_is_quick(report, tmp_path):
    figures = [part for part in report.figures() if part.name != "broken"]
    many = [replace(figures[i % len(figures)], name=f"figure{i}") for i in range(20)]
    tables = [replace(report.tables()[i % 5], name=f"table{i}") for i in range(40)]
    began = time.process_time()  # of all threads of this process: other work on the machine does not count
    render(with_parts(report, *tables, *many), tmp_path)
    assert time.process_time() - began < 60


def test_a_figure_that_cannot_be_drawn_does_not_stop_the_others(report, tmp_path):
    broken = Figure("broken", "Broken", {"data": {"url": "https://example.org/data.csv"}, "mark": "bar"}, "alt")
    paths = render(with_parts(report, broken, table("fine")), tmp_path)
    assert {path.name for path in paths} >= {"index.html", "fine.csv"}
    assert "not allowed" in (tmp_path / "index.html").read_text()
    assert "cannot be drawn" in (tmp_path / "report.md").read_text()
