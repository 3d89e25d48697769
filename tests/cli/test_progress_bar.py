"""One progress bar for all commands: a bar on a terminal, lines of JSON elsewhere."""

import io
import json
import math

import pytest
from rich.console import Console

from dialometer.cli import console
from dialometer.cli.console import ProgressBar, progress_bar, working
from dialometer.errors import DialometerError


def lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_without_a_terminal_lines_wait_for_the_pause(capsys):
    with ProgressBar(pause_s=math.inf) as bar:
        bar.report("Encoding", 1, 3)
        bar.report("Encoding", 2, 3, is_due=True)
        bar.report("Encoding", 3, 3, line={"raters_done": 3}, is_due=True)
    assert lines(capsys) == [{"doing": "Encoding", "done": 2, "of": 3, "minutes_left": 0.0}, {"raters_done": 3}]
    with ProgressBar(pause_s=-1.0) as bar:
        bar.report("Encoding", 1, 3)
        bar.report("", 2, 3)
    assert lines(capsys) == [{"doing": "Encoding", "done": 1, "of": 3}]
    with ProgressBar(pause_s=-1.0, is_shown=False) as bar:
        bar.report("Encoding", 1, 3, is_due=True)
    assert lines(capsys) == []


def test_lines_say_the_minutes_left(capsys, monkeypatch):
    monkeypatch.setattr(console.time, "monotonic", lambda: 0)
    with ProgressBar(pause_s=-1.0) as bar:
        bar.report("Training", 4, 10)
        monkeypatch.setattr(console.time, "monotonic", lambda: 120)
        bar.report("Training", 6, 10)
        bar.report("Reading", 5, 0)
    assert [line.get("minutes_left") for line in lines(capsys)] == [None, 4.0, None]


def test_a_terminal_gets_a_bar_for_each_kind_of_work(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(console, "errors", Console(file=screen, force_terminal=True, width=120))
    with progress_bar() as report:
        report("epoch 1, loss 2.0", 1, 4)
        report("epoch 1, loss 1.5", 2, 4)
        report("Writing", 1, 0)
    shown = screen.getvalue()
    assert "epoch 1, loss 1.5" in shown
    assert "2/4" in shown
    assert "Writing" in shown
    assert '"doing"' not in shown


def test_a_device_nobody_knows_is_refused(tmp_path):
    with pytest.raises(DialometerError, match="unknown device 'gpu'"), working("gpu", tmp_path):
        pass
