"""The example report and one rendering of it, shared by the tests of this folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# The example beside this file is used by the tests here and by scripts/report_screenshots.py.
sys.path.insert(0, str(Path(__file__).parent))

from rich_report import rich_report

from dialometer.model.report import Report
from dialometer.report import render


@pytest.fixture(scope="session")
def report() -> Report:
    return rich_report()


@pytest.fixture(scope="session")
def rendered(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every format of the example."""
    folder = tmp_path_factory.mktemp("report")
    render(report, folder)
    return folder
