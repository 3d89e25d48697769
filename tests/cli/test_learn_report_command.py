"""From simulated conversations to an evaluator, its report and the page of doubts, without torch or an encoder."""

import json
import subprocess
import sys

import pytest

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


def run(folder, *arguments, program=("-m", "dialometer")):
    return subprocess.run(
        [sys.executable, *program, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("talks")
    done = run(place, "learn", "simulate", "talks.jsonl", "--dialogues", "120", "--seed", "3", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["n_dialogues"] == 120
    assert sum(told["ratings"].values()) == 120
    return place


def test_nothing_but_the_core_is_needed(folder):
    bare = ("-c", BARE)
    looked_at = ("--aspects", "words,behaviour")
    trained = run(folder, "learn", "train", "talks.jsonl", "--recipe", "best", *looked_at, "--out", "ev", program=bare)
    assert trained.returncode == 0, trained.stderr
    scored = run(folder, "learn", "score", "talks.jsonl", "--evaluator", "ev", "--json", program=bare)
    assert scored.returncode == 0, scored.stderr
    noisy = run(folder, "learn", "noisy", "talks.jsonl", "-e", "ev", "--out", "report/noisy.html", program=bare)
    assert noisy.returncode == 0, noisy.stderr
    report = run(folder, "learn", "report", "talks.jsonl", *looked_at, "--out", "report", program=bare)
    assert report.returncode == 0, report.stderr
    assert "finds the better of two conversations" in report.stdout
    assert {"index.html", "noisy.html"} <= {path.name for path in (folder / "report").iterdir()}
    assert json.loads((folder / "ev" / "evaluator.json").read_text(encoding="utf-8"))["aspects"] == [
        "words",
        "behaviour",
    ]


def test_unknown_aspects_are_told(folder):
    done = run(folder, "learn", "report", "talks.jsonl", "--aspects", "behavior")
    assert done.returncode == 1
    assert "behaviour" in done.stderr
