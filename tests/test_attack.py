"""``make attack`` runs: two of its attacks against a real server, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_attacks_are_tried_and_held():
    command = [sys.executable, "-m", "bench.attack", "study.db deleted", "endless headers"]
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("held  ") == 2
    assert "2 of 2 held" in done.stdout
