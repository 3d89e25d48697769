"""Parts from other packages: what docs/how-to/add-a-scale.md and write-a-quality-rule.md tell works as they tell it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```', flags=re.DOTALL | re.MULTILINE)


def install(page, folder, group, name, module):
    """The page's files as if pip had installed them: the modules, and the entry point that names them."""
    for title, text in FILE.findall((ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")):
        (folder / Path(title).name).write_text(text, encoding="utf-8")
    note = folder / f"{module}-0.1.dist-info"
    note.mkdir()
    (note / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 0.1\n")
    (note / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")


@pytest.fixture
def dialometer(tmp_path):
    """The command line with one more folder of packages."""
    packages = tmp_path / "packages"
    packages.mkdir()

    path = os.pathsep.join([str(packages), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"}

    def python(*arguments, is_fine=True):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert (done.returncode == 0) is is_fine, done.stdout + done.stderr
        return done.stdout + done.stderr

    def run(*arguments, is_fine=True):
        return python("-m", "dialometer", *arguments, is_fine=is_fine)

    run.python = python
    run.packages = packages
    return run


def test_a_scale_of_another_package_is_checked_simulated_and_reported(dialometer, tmp_path):
    install("add-a-scale.md", dialometer.packages, "dialometer.scales", "grades", "grades_scale")
    dialometer("new", "likert", "s")
    file = tmp_path / "s" / "study.yaml"
    text = file.read_text()
    changed = re.sub(r"(?m)^scales:\n(  \w+):.*(?:\n    .*)*", r"scales:\n\1: {type: grades}", text, count=1)
    assert changed != text
    file.write_text(changed)
    dialometer("check", "s")
    assert '"Grades"' in dialometer("schema")
    dialometer("simulate", "s", "--raters", "6")
    dialometer("export", "s", "--out", "data", "--format", "csv")
    judgments = (tmp_path / "data" / "judgments.csv").read_text()
    assert re.search(r"\bgrades\b", judgments)
    assert {letter for letter in "ABCDF" if re.search(rf",\"?{letter}\"?,", judgments)} >= {"B", "C"}


def test_a_rule_of_another_package_finds_and_is_stored(dialometer, tmp_path):
    install("write-a-quality-rule.md", dialometer.packages, "dialometer.quality", "few_numbers", "few_numbers")
    dialometer("new", "likert", "s")
    file = tmp_path / "s" / "study.yaml"
    text = file.read_text()
    rule = "  - {rule: few_numbers, at_least: 99, action: flag}\n"
    changed = (
        text.replace("quality:\n", f"quality:\n{rule}", 1) if "quality:\n" in text else f"{text}\nquality:\n{rule}"
    )
    file.write_text(changed)
    dialometer("check", "s")
    dialometer("simulate", "s", "--raters", "3")
    dialometer("export", "s", "--out", "data", "--format", "csv")
    assert (tmp_path / "data" / "findings.csv").read_text().count("few_numbers") >= 3


def test_a_statistic_of_another_package_is_listed_computed_and_reported(dialometer, tmp_path):
    install("add-a-statistic.md", dialometer.packages, "dialometer.statistics", "extreme_answers", "extreme_answers")
    printed = dialometer.python(str(dialometer.packages / "try_it.py")).splitlines()
    assert "extreme_answers" in printed[-2]
    value, interval = printed[-1].split(" ", 1)
    assert 0 < float(value) < 1
    assert interval.startswith("[")
    dialometer("report", "my-ratings", "--out", "shown", "--format", "html", "--format", "csv")
    [page] = (tmp_path / "shown").glob("*.html")
    text = page.read_text(encoding="utf-8")
    assert "Further statistics" in text
    assert "Share of ratings at either end of the scale" in text
    assert "Greenleaf 1992" in text
    table = next((tmp_path / "shown").rglob("further_extreme_answers.csv")).read_text(encoding="utf-8")
    [fluency] = [line for line in table.splitlines() if "luency" in line]
    assert float(fluency.split(",")[2]) == pytest.approx(float(value), abs=5e-4)
    dialometer("new", "acute", "pairs")
    dialometer("simulate", "pairs", "--raters", "4")
    dialometer("report", "pairs", "--out", "without", "--format", "html")
    assert "Further statistics" not in next((tmp_path / "without").glob("*.html")).read_text(encoding="utf-8")


def test_a_broken_package_is_named(dialometer, tmp_path):
    install("add-a-scale.md", dialometer.packages, "dialometer.scales", "grades", "grades_scale")
    (dialometer.packages / "grades_scale.py").write_text("import a_package_that_is_not_there\n")
    told = dialometer("schema", is_fine=False)
    assert "'grades' of another package cannot be loaded" in told
    assert "uninstall" in told
