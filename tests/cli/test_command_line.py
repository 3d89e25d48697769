"""The command line as a whole: the same habits in every verb."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands import result_of, run
from dialometer.cli import _explain, command_line
from dialometer.cli.retrieval._shared import serve_page

WITHOUT_JSON = {
    "demo": "runs until it is stopped",
    "serve": "runs until it is stopped",
    "schema": "prints JSON anyway",
}


def leaves(command, path=()):
    children = getattr(command, "commands", None)
    if children is None:
        yield " ".join(path), command
        return
    for name, child in children.items():
        yield from leaves(child, (*path, name))


COMMANDS = dict(leaves(command_line()))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(name):
    command = COMMANDS[name]
    assert command.help
    assert command.epilog, f"{name} shows no example"
    assert f"dialometer {name}" in command.epilog


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_words(name):
    for parameter in COMMANDS[name].params:
        if parameter.name != "help":
            assert getattr(parameter, "help", None), f"{name}: {parameter.name} has no help"


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(WITHOUT_JSON)))
def test_results_can_be_had_as_json(name):
    assert any("--json" in parameter.opts for parameter in COMMANDS[name].params)


@pytest.mark.parametrize("name", WITHOUT_JSON)
def test_exceptions_are_still_exceptions(name):
    assert not any("--json" in parameter.opts for parameter in COMMANDS[name].params)


def test_no_colours_when_piped(tmp_path):
    environment = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "NO_COLOR")}
    command = [sys.executable, "-m", "dialometer"]
    for arguments in (["new", "strategies", "s"], ["check", "s"], ["check", "nowhere"], ["chek"]):
        done = subprocess.run(
            [*command, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert "\x1b[" not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--version"], 0), (["check", "nowhere"], 1), (["chek"], 2), (["check"], 2)]
)
def test_exit_codes_are_those_of_the_reference(arguments, code, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "dialometer", *arguments], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == code


CONTINUES = "Interrupted. The same command continues from here."


@pytest.mark.parametrize(
    ("interrupted", "words", "said"),
    [
        ("cli.results.report.open_store", ["report", "s"], "Interrupted."),
        ("simulate.run.simulate", ["simulate", "s"], CONTINUES),
        (
            "retrieval.training.train_retriever.train_retriever",
            ["retrieval", "train", "kb.csv", "-r", "tfidf", "--out", "avatar"],
            CONTINUES,
        ),
        ("generators.training.train", ["bots", "train", "hred", "corpus", "--out", "new"], "Interrupted."),
        (
            "generators.training.train",
            ["bots", "train", "hred", "corpus", "--out", "begun"],
            CONTINUES,
        ),
    ],
)
def test_an_interrupted_command_says_whether_it_continues(interrupted, words, said, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    assert result_of("new", "likert", "s").exit_code == 0
    (tmp_path / "kb.csv").write_text("question,answer\nHi,Hello!\n", encoding="utf-8")
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "state.pt").touch()
    monkeypatch.setattr("dialometer.generators.corpus.load_corpus", lambda _: None)
    monkeypatch.setattr(f"dialometer.{interrupted}", interrupt)
    (tmp_path / "corpus").mkdir()
    done = result_of(*words)
    assert (done.exit_code, done.stdout) == (130, "")
    assert done.stderr.splitlines()[-1] == said


def test_a_page_that_ctrl_c_ends_was_not_interrupted(monkeypatch, capsys):
    def end(_, sock):
        sock.close()
        raise KeyboardInterrupt

    monkeypatch.setattr("dialometer.web.server.standalone.serve_standalone", end)
    serve_page(None, "127.0.0.1", 0, title="Talk")
    assert "Talk at http://127.0.0.1:" in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete(shell):
    done = run(env={**os.environ, "_DIALOMETER_COMPLETE": f"source_{shell}"})
    assert "dialometer" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("dialometer ch", "check"),
        ("dialometer new anch", "anchoring"),
        ("dialometer learn tr", "train"),
        ("dialometer report s --format mark", "markdown"),
        ("dialometer export s --format par", "parquet"),
        ("dialometer simulate s --rat", "--raters"),
    ],
)
def test_bash_is_offered_what_may_follow(words, offered):
    typed = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1), "_DIALOMETER_COMPLETE": "complete_bash"}
    done = run(env={**os.environ, **typed})
    assert offered in done.stdout.split(), done.stderr


def test_help_names_values_in_words_and_none_for_switches():
    shown = run("simulate", "--help").stdout
    assert "NUMBER" in shown
    assert "TEXT" in shown
    assert "<bool>" not in shown
    assert "range>" not in shown


def test_a_reader_who_has_seen_enough_is_no_problem(tmp_path):
    command = f"{sys.executable} -m dialometer"
    subprocess.run(f"{command} new strategies s", shell=True, cwd=tmp_path, capture_output=True, check=True)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{command} check s | head -n 1"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
@pytest.mark.parametrize(
    "words", ["schema", "new likert study && {command} preregister study --simulations 0 --out /dev/full"]
)
def test_a_full_disk_is_told_in_a_sentence(words, tmp_path):
    command = f"{sys.executable} -m dialometer"
    line = f"{command} {words.format(command=command)}" + (" > /dev/full" if words == "schema" else "")
    done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "error: No space left on device — check whether the disk is full" in done.stderr
    assert "Traceback" not in done.stderr


def test_of_a_copy_that_fails_the_place_is_told_that_was_written():
    assert _explain(OSError(errno.ENOSPC, "No space left on device", "from", None, "to")).startswith("to: No space")
