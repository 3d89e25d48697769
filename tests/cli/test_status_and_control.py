"""Watching and steering a study from the command line."""

import json

import pytest

from commands import result_of
from dialometer.errors import DialometerError, UnknownName


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments, fails=None):
        result = result_of(*arguments)
        if fails:
            assert isinstance(result.exception, fails)
            return str(result.exception)
        assert result.exit_code == 0, result.output + str(result.exception)
        return result.stdout

    call("new", "anchoring", "s")
    return call


def cells(run):
    found = json.loads(run("status", "s", "--json"))
    return {cell["condition"]: cell for cell in found["sessions"].get("simulated", [])}, found


def test_a_study_that_nobody_has_seen_has_a_status(run):
    assert "Nobody has come yet" in run("status", "s")
    assert json.loads(run("status", "s", "--json"))["state"] == "not started"


def test_what_was_done_is_told_as_it_is_now(run):
    assert "anchoring is now paused" in run("control", "s", "pause")
    assert "is now open" in run("control", "s", "start", "--condition", "anchor=both,layout=together")
    assert "5 raters at most" in run("control", "s", "quota", 5)
    assert "0 raters at most, so nobody else can start" in run("control", "s", "quota", 0)
    assert "no limit" in run("control", "s", "quota")


def test_a_closed_condition_gets_nobody_and_can_be_opened_again(run):
    closed = "anchor=both, layout=together"
    run("control", "s", "close", "--condition", closed, "--reason", "enough")
    run("simulate", "s", "--raters", 6)
    found, _ = cells(run)
    assert found[closed]["completed"] == 0
    assert not found[closed]["is_open"]
    assert sorted(cell["completed"] for cell in found.values()) == [0, 2, 2, 2]
    assert "closed" in run("status", "s")
    run("control", "s", "start", "--cell", closed)
    run("simulate", "s", "--raters", 8)
    found, _ = cells(run)
    assert [cell["completed"] for cell in found.values()] == [2, 2, 2, 2]


def test_pausing_and_quotas(run):
    run("control", "s", "quota", 3)
    run("simulate", "s", "--raters", 5)
    found, whole = cells(run)
    assert sum(cell["completed"] for cell in found.values()) == 3
    assert whole["quota"] == 3
    run("control", "s", "quota", 20)
    run("control", "s", "pause")
    refused = run("simulate", "s", "--raters", 5)
    assert "found no free slot" in refused
    assert json.loads(run("status", "s", "--json"))["state"] == "paused"
    run("control", "s", "start")
    run("simulate", "s", "--raters", 5)
    found, _ = cells(run)
    assert sum(cell["completed"] for cell in found.values()) == 5


def test_mistakes_are_told(run):
    assert "known: anchor=none" in run("control", "s", "close", "--condition", "anchor=maybe", fails=UnknownName)
    assert "takes no number" in run("control", "s", "close", "5", fails=DialometerError)
    assert "open or closed" in run(
        "control", "s", "pause", "--condition", "anchor=none,layout=together", fails=DialometerError
    )
