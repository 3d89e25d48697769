"""From simulated conversations to an evaluator, its report and the page of doubts, without torch or an encoder."""

import json
import subprocess
import sys

import pytest

from commands import run

BARE = """
import importlib.util, sys
missing = {"torch", "numba", "onnx", "onnxruntime", "transformers", "tokenizers", "faiss", "accelerate"}
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in missing else found(name, package)


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Missing())
from dialometer.cli import main
main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("talks")
    done = run("learn", "simulate", "talks.jsonl", "--dialogues", "120", "--seed", "3", "--json", cwd=place)
    told = json.loads(done.stdout)
    assert told["n_dialogues"] == 120
    assert sum(told["ratings"].values()) == 120
    return place


ASPECTS = ("--aspects", "words,behaviour")


def run_bare(folder, *arguments):
    """A command where nothing but the core is installed."""
    command = [sys.executable, "-c", BARE, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def trained(folder):
    """The folder with an evaluator in it."""
    run_bare(folder, "learn", "train", "talks.jsonl", "--recipe", "best", *ASPECTS, "--out", "ev")
    return folder


def test_nothing_but_the_core_is_needed(trained):
    scored = json.loads(run_bare(trained, "learn", "score", "talks.jsonl", "--evaluator", "ev", "--json"))
    assert scored
    evaluator = json.loads((trained / "ev" / "evaluator.json").read_text(encoding="utf-8"))
    assert evaluator["aspects"] == ["words", "behaviour"]


@pytest.mark.slow
def test_the_pages_need_nothing_but_the_core(trained):
    run_bare(trained, "learn", "noisy", "talks.jsonl", "-e", "ev", "--out", "report/noisy.html")
    report = run_bare(trained, "learn", "report", "talks.jsonl", *ASPECTS, "--out", "report")
    assert "finds the better of two dialogues" in report
    assert {"index.html", "noisy.html"} <= {path.name for path in (trained / "report").iterdir()}


def test_unknown_aspects_are_told(folder):
    done = run("learn", "report", "talks.jsonl", "--aspects", "behavior", cwd=folder, code=1)
    assert "behaviour" in done.stderr
