"""From a :class:`~dialometer.model.report.Report` to pages and files: HTML, Markdown, JSON, CSV, LaTeX, SVG, PNG.

Analyses draw with :mod:`dialometer.report.charts`; notebooks use :mod:`dialometer.report.notebook`.
"""

from dialometer.report.coding import read_report, report_from_json, report_to_json
from dialometer.report.render import FORMATS, render

__all__ = ["FORMATS", "read_report", "render", "report_from_json", "report_to_json"]
