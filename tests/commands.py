"""Commands as tests run them: in this process, or in one of their own as from a shell."""

import atexit
import functools
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import typer.testing
from typer.testing import CliRunner

from command_server import CORE, command_server
from dialometer.cli import build_app, command_line


def result_of(*words, **settings):
    """A command run in this process: its output, exit code and exception.

    Typer's runner would build all verbs anew for every command, which is most of the time that a short one takes.
    """
    with mock.patch.object(typer.testing, "_get_command", return_value=command_line()):
        return CliRunner().invoke(build_app(), [str(word) for word in words], **settings)


def invoke(*words, fails=False):
    """What a command prints, run in this process; with ``fails``, the error it ends with."""
    done = result_of(*words)
    if fails:
        assert done.exit_code != 0, done.output
        return str(done.exception)
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.stdout


@functools.cache
def program():
    """The path of ``dialometer``. Its processes begin with the core's libraries loaded, which saves a second each."""
    opened = ExitStack()
    atexit.register(opened.close)
    folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="dialometer-")))
    return str(opened.enter_context(command_server(folder, CORE)) / "dialometer")


def run(*words, cwd=None, code=0, timeout=600, env=None):
    """A command in a process of its own, which ends with ``code``."""
    command = [program(), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=timeout, env=env, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done
