"""The notebooks of the documentation run from the first cell to the last; cells that show an error show a sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
SHELL = """
import json, sys
from IPython.testing.globalipapp import start_ipython
shell = start_ipython()
shell.display_formatter.active_types = shell.display_formatter.format_types  # as a notebook has it
for cell in json.loads(sys.stdin.read()):
    done = shell.run_cell(cell["source"])
    expected = "raises-exception" in cell["metadata"].get("tags", ())
    assert done.success is not expected, (cell["source"], done.error_in_exec)
    if done.result is not None:
        shown = shell.display_formatter.format(done.result)[0]
        print("SHOWN", cell["id"], ",".join(sorted(shown)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook, tmp_path):
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells), "keep outputs out of the repository"
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path / "ipython"), "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SHELL],
        cwd=tmp_path,
        env=environment,
        input=json.dumps(cells),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stdout + done.stderr
    shown = dict(line.split()[1:3] for line in done.stdout.splitlines() if line.startswith("SHOWN"))
    rich = [cell["id"] for cell in cells if ".figures()" in cell["source"] or ".tables()" in cell["source"]]
    assert rich
    assert all("text/html" in shown[cell] for cell in rich)


def test_there_is_a_notebook():
    assert NOTEBOOKS
