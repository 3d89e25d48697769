"""The page on reports says what the code does."""

import inspect
import re
from pathlib import Path

from rich_report import mean

from dialometer.model.report import Figure
from dialometer.report import FORMATS, charts, render
from dialometer.report import numbers as labels
from dialometer.report.numbers import write_estimate

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "reports.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_every_format_and_chart_is_named():
    assert set(re.findall(r"^\| `(\w+)` \| `", TEXT, re.MULTILINE)) == set(FORMATS.names())
    builders = {name for name in charts.__all__ if inspect.isfunction(getattr(charts, name))}
    table = TEXT.split("## Charts")[1].split("## Notebooks")[0]
    assert set(re.findall(r"`(\w+)`", table)) - {"Figure", "COEFFICIENT", "limits"} == builders
    assert Figure.__name__ in table


def test_the_examples_run(report, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    render(report, Path("results"), formats=["json"])
    first, _ = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(first, {})
    assert (tmp_path / "again" / "index.html").exists()
    assert (tmp_path / "again" / "tables" / "icc.tex").exists()


def test_the_numbers_are_right():
    examples = re.findall(r"([\d.]+) ± ([\d.]+) is written ([\d.]+\d)", TEXT)
    assert len(examples) == 2
    for value, half, written in examples:
        assert write_estimate(mean(float(value), float(half))).value == written


def test_the_units_are_right():
    for unit in (*labels.SHARE_UNITS, *labels.RATIO_UNITS):
        assert f"`{unit}`" in TEXT
