"""What is released: one version, a small wheel that works in an environment of its own, and papers in order."""

import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

import dialometer

ROOT = Path(__file__).parents[1]
MAX_WHEEL_BYTES = 10_000_000


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder


@pytest.mark.slow
def test_the_version_stands_in_one_place(built):
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|[ab]\d+|rc\d+)?", dialometer.__version__)
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text()
    names = sorted(path.name for path in built.iterdir())
    assert names == [
        f"dialometer-{dialometer.__version__}-py3-none-any.whl",
        f"dialometer-{dialometer.__version__}.tar.gz",
    ]


@pytest.mark.slow
def test_the_wheel_is_small_and_holds_what_the_pages_need(built):
    (wheel,) = built.glob("*.whl")
    assert wheel.stat().st_size < MAX_WHEEL_BYTES
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "py.typed",
        "web/static/",
        "web/templates/base.html",
        "flow/locales/ar.json",
        "templates/anchoring/study.yaml",
    ):
        assert any(needed in name for name in names), needed
    assert not [name for name in names if "tests/" in name or name.endswith((".db", ".pyc"))]


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    venv.create(tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    install = [*pip, "install", "--quiet", "--no-compile", str(wheel)]
    done = subprocess.run(install, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    command = str(tmp_path / "env" / "bin" / "dialometer")
    for arguments in (["--version"], ["new", "strategies", "s"], ["check", "s"], ["simulate", "s", "--raters", "4"]):
        done = subprocess.run(
            [command, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False
        )
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    packages = subprocess.run([*pip, "list"], capture_output=True, text=True, timeout=300, check=True)
    assert "torch" not in packages.stdout  # the workbench for studies works without the learning parts


def test_the_papers_of_a_release_are_there_and_readable():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)
    for form in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        assert yaml.safe_load(form.read_text())
    assert "Report a vulnerability" in (ROOT / "SECURITY.md").read_text()
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()
