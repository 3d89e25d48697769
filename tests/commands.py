"""Commands as tests run them: in this process, or in one of their own as from a shell."""

import subprocess
import sys

from typer.testing import CliRunner

from dialometer.cli import build_app


def invoke(*words, fails=False):
    """What a command prints, run in this process; with ``fails``, the error it ends with."""
    done = CliRunner().invoke(build_app(), [str(word) for word in words])
    if fails:
        assert done.exit_code != 0, done.output
        return str(done.exception)
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.stdout


def run(*words, cwd=None, code=0, timeout=180):
    """A command in a process of its own, which ends with ``code``."""
    command = [sys.executable, "-m", "dialometer", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=timeout, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done
