"""A retriever of another package, as docs/how-to/add-a-retriever.md describes it: evaluated, judged by a crowd, reported, kept."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import RETRIEVERS, make_retriever
from dialometer.retrieval.selection import select_retrievers

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "add-a-retriever.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line) for line in re.findall(r"^\$ dialometer (.+)$", PAGE, flags=re.MULTILINE)]


@pytest.fixture
def shared_words(install_page):
    install_page("add-a-retriever.md", RETRIEVERS)


def test_from_the_package_to_the_report(shared_words, type_in, tmp_path):
    printed = [type_in(*command, cwd=tmp_path).stdout for command in COMMANDS]
    _new, listed, evaluated, _pooled, _simulated, _reported, by_crowd, _trained = printed
    assert "Highest share of words in common" in listed
    row = next(line for line in evaluated.splitlines() if line.startswith("Shared words (shortest=3)"))
    assert all(0 < float(value) < 100 for value in row.removeprefix("Shared words (shortest=3)").split())
    assert re.search(r"(?m)^Crowd: an answer is right if its mean rating", by_crowd)
    assert "Shared words" in by_crowd
    report = (tmp_path / "judged" / "report" / "report.md").read_text(encoding="utf-8")
    metrics = report[report.index("Judged by the crowd:") :]
    assert "Shared words" in metrics[: metrics.index("Success Rate@1")]  # a column of the table
    kept = type_in("retrieval", "chat", "avatar", "--json", cwd=tmp_path, given="What is your name?\n")
    assert '"answer": "a03"' in kept.stdout


def test_scores_are_shares_of_words(shared_words, kb):
    fitted = make_retriever("shared-words").fit(kb)
    question = kb.questions[kb.pair_question[0]]
    scores = fitted.scores([question, "xyzzy"])
    assert scores[0, kb.pair_answer[0]] == 1.0
    assert not np.nan_to_num(scores[1]).any()
    assert fitted.explain(Query(question), int(kb.pair_answer[0])) == f"recorded: {question}"


def test_groups_name_it_too(shared_words):
    assert "shared-words" in select_retrievers(["untrained"])


def test_without_the_package_nothing_knows_it():
    assert "shared-words" not in RETRIEVERS
