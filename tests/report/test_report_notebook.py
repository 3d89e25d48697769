"""Notebooks: parts show themselves once that is switched on, and leave the notebook's own style alone."""

import re

import pytest
from rich_report import HOSTILE

from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Figure, Report, Table, Turns
from dialometer.report import notebook


@pytest.fixture
def enabled():
    notebook.load_ipython_extension(None)
    yield
    for kind in (Report, Table, Figure, Turns, Estimate):
        del kind._repr_html_


def test_off_until_switched_on(report):
    assert not hasattr(report, "_repr_html_")


@pytest.mark.usefixtures("enabled")
def test_parts_show_themselves(report):
    for part in (part for section in report.sections for part in section.parts):
        html = part._repr_html_()
        assert part.title in html
        assert "<script" not in html
    assert "<svg" in report.figures()[0]._repr_html_()


@pytest.mark.usefixtures("enabled")
def test_the_report_comes_in_a_frame_of_its_own(report):
    html = report._repr_html_()
    assert html.startswith("<iframe")
    assert 'sandbox=""' in html
    assert html.count("<") == 2, "the page inside is escaped"
    assert HOSTILE.split()[0] not in html


@pytest.mark.usefixtures("enabled")
def test_style_stays_inside_the_part(report):
    style = re.search(r"<style>(.*?)</style>", report.tables()[0]._repr_html_(), re.DOTALL)[1]
    for selectors in re.findall(r"([^{}]+)\{", style):
        if not selectors.strip().startswith("@"):
            assert all(one.strip().startswith(".dialometer-part") for one in selectors.split(",")), selectors


@pytest.mark.usefixtures("enabled")
def test_an_estimate_is_a_line_with_what_it_rests_on():
    shown = Estimate(0.4321, 30, "ICC <one>", 0.31, 0.55, p_value=0.0004, label="a & b")._repr_html_()
    assert "a &amp; b" in shown
    assert "<b>0.43</b> (95% confidence interval 0.31 to 0.55), p\u00a0&lt;\u00a0.001" in shown
    assert "ICC &lt;one&gt;, n = 30" in shown
    missing = unknown("mean", "no <ratings>")._repr_html_()
    assert "not enough data" in missing
    assert "no &lt;ratings&gt;" in missing
