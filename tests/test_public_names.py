"""The few public names: all there, and importing the package loads nothing heavy."""

import os
import subprocess
import sys

import pytest

import dialometer
from commands import run


@pytest.mark.parametrize("name", dialometer.__all__)
def test_every_public_name_can_be_had(name):
    assert getattr(dialometer, name) is not None
    assert name in dir(dialometer)


def test_importing_is_light():
    code = "import dialometer, sys; print(','.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "polars", "pydantic", "sqlalchemy"} & set(loaded.strip().split(","))


def test_unknown_names_are_told():
    with pytest.raises(AttributeError, match="no attribute 'analyze'"):
        _ = dialometer.analyze


NOTEBOOK = """
import subprocess, sys
from IPython.testing.globalipapp import start_ipython
shell = start_ipython()
shell.display_formatter.active_types = shell.display_formatter.format_types  # as a notebook has it
shell.run_cell("import dialometer as dm")
shell.run_cell("report = dm.analyse_folder('s', n_resamples=100)")
shown = shell.display_formatter.format(shell.user_ns["report"])[0]
assert shown["text/html"].startswith("<iframe"), shown
table = shell.user_ns["report"].tables()[0]
assert "<table" in shell.display_formatter.format(table)[0]["text/html"]
shell.run_cell("dm.load_study('nowhere')")
"""


@pytest.mark.slow
def test_notebooks_show_results_and_say_errors_in_one_sentence(tmp_path):
    for arguments in (["new", "strategies", "s"], ["simulate", "s", "--raters", "6"]):
        run(*arguments, cwd=tmp_path)
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path / "ipython"), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "nowhere" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
