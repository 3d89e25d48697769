"""The maker's labels: stored at once, resumed, taken back, exported as what evaluate and pool read; and the page without script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from retrieval_files import DIALOGUES, KB
from starlette.testclient import TestClient

from dialometer.errors import DialometerError
from dialometer.retrieval.labels.labelling import AnswerFinder, MakerLabels, open_labels
from dialometer.retrieval.queries import read_queries
from dialometer.retrieval.retriever import make_retriever
from dialometer.web.rater.labelling import create_labelling_app


@pytest.fixture
def labels(kb: Any, tmp_path: Path) -> Any:
    opened = open_labels(kb, DIALOGUES, tmp_path / "labelled.jsonl", begin_again=True)
    yield opened
    opened._log.close()


@pytest.fixture(scope="module")
def finder(kb: Any) -> AnswerFinder:
    return AnswerFinder(make_retriever("tfidf").fit(kb))


def lines(labels: MakerLabels) -> list[dict[str, Any]]:
    return [json.loads(line) for line in labels.file.read_text(encoding="utf-8").splitlines()]


def test_a_mark_is_on_disk_at_once_and_found_again(kb: Any, labels: MakerLabels, tmp_path: Path) -> None:
    labels.mark(0, 3, fits=True)
    assert [line["answer"] for line in lines(labels)] == [kb.answers[3].text]
    labels.mark(0, 3, fits=True)
    assert len(lines(labels)) == 1  # nothing new to store
    labels.finish(0)
    labels._log.close()
    again = open_labels(kb, DIALOGUES, tmp_path / "labelled.jsonl", begin_again=True)
    assert again.right[0] == {3}
    assert again.is_done[0]
    assert again.next_open(-1) == 1
    again.close()


def test_undo_takes_back_one_thing_after_the_other_also_after_a_restart(kb: Any, labels: MakerLabels) -> None:
    labels.mark(0, 3, fits=True)
    labels.mark(0, 4, fits=True)
    labels.finish(0)
    assert labels.undo() == 0
    assert not labels.is_done[0]
    labels._log.close()
    again = open_labels(kb, DIALOGUES, labels.out, begin_again=True)
    assert again.undo() == 0
    assert again.right[0] == {3}
    assert again.undo() == 0
    assert again.undo() is None
    assert again.right[0] == set()
    assert len(lines(again)) == 6  # a correction is a further line
    again.close()


def test_unlabelled_questions_are_excluded_and_none_fits_is_a_label(kb: Any, labels: MakerLabels) -> None:
    labels.mark(0, 3, fits=True)
    labels.finish(0)
    labels.finish(1)  # none fits
    labels.mark(2, 5, fits=True)  # begun, not done
    read = read_queries(labels.write(), kb)
    assert [query.id for query in read.queries] == [query.id for query in labels.queries[:2]]
    assert read.right == ((3,), ())
    assert read.n_unlabelled == len(labels) - 2
    assert read.queries[1].context == labels.queries[1].context


def test_labels_of_the_dialogues_are_a_start(kb: Any, asked: Any, tmp_path: Path) -> None:
    opened = open_labels(kb, DIALOGUES, tmp_path / "more.jsonl")
    assert opened.n_done == len(asked)
    assert [tuple(sorted(right)) for right in opened.right] == list(asked.right)
    opened.close()
    assert read_queries(opened.out, kb).right == asked.right


def test_a_line_that_a_crash_cut_off_is_dropped(kb: Any, labels: MakerLabels) -> None:
    labels.mark(0, 3, fits=True)
    labels._log.close()
    with labels.file.open("a", encoding="utf-8") as file:
        file.write('{"at": "2026-01-01", "quest')
    again = open_labels(kb, DIALOGUES, labels.out, begin_again=True)
    again.mark(0, 4, fits=True)
    assert again.right[0] == {3, 4}
    assert len(lines(again)) == 2
    again.close()


def test_what_cannot_be_opened_says_why(kb: Any, labels: MakerLabels, tmp_path: Path) -> None:
    with pytest.raises(DialometerError, match="open elsewhere"):
        open_labels(kb, DIALOGUES, labels.out)
    with pytest.raises(DialometerError, match="over the dialogues"):
        open_labels(kb, DIALOGUES, DIALOGUES)
    other = tmp_path / "other.jsonl"
    other.write_text("{}\n", encoding="utf-8")
    with pytest.raises(DialometerError, match="was not written by labelling"):
        open_labels(kb, DIALOGUES, other)
    other.unlink()
    (tmp_path / "other.marks.jsonl").write_text('{"question": "gone-1", "is_done": true}\n', encoding="utf-8")
    with pytest.raises(DialometerError, match="'gone-1', which is not there"):
        open_labels(kb, DIALOGUES, other)


def test_search_finds_words_of_answers_before_those_of_their_questions(kb: Any, finder: AnswerFinder) -> None:
    text = kb.answers[7].text
    word = max(text.lower().strip(".!?").split(), key=len).strip(",.!?'")
    found, n_found = finder.search(word.upper())
    assert 7 in found
    assert n_found >= len(found)
    in_text = [word in kb.answers[answer].text.lower() for answer in found]
    assert in_text == sorted(in_text, reverse=True)
    assert finder.search("   ") == ((), 0)
    assert finder.search("no such words anywhere") == ((), 0)


@pytest.fixture
def client(labels: MakerLabels, finder: AnswerFinder) -> TestClient:
    return TestClient(create_labelling_app(labels, finder), base_url="http://127.0.0.1")


def token(page: str) -> str:
    return page.split('data-csrf="')[1].split('"', maxsplit=1)[0]


def test_the_page_works_without_script(client: TestClient, labels: MakerLabels, finder: AnswerFinder) -> None:
    page = client.get("/").text
    assert "Question 1 of" in page
    first = finder.suggested(labels.queries[0])[0]
    form = {"csrf": token(page), "question": "1"}
    page = client.post("/mark", data={**form, "toggle": first, "search": "a"}).text
    assert labels.right[0] == {first}
    assert 'aria-pressed="true"' in page
    assert " found" in page
    page = client.post("/done", data=form).text
    assert "Question 2 of" in page
    assert "1</span> of" in page
    page = client.post("/undo", data=form).text
    assert "Question 1 of" in page
    client.post("/mark", data={**form, "toggle": first})
    assert labels.right[0] == set()


def test_only_the_page_itself_can_mark(client: TestClient, labels: MakerLabels) -> None:
    page = client.get("/q/1").text
    assert client.post("/mark", data={"csrf": "x", "question": "1", "toggle": "0"}).status_code == 403
    form = {"csrf": token(page), "question": "1"}
    assert client.post("/mark", data={**form, "toggle": "99999"}).status_code == 400
    assert client.post("/mark", data={**form, "question": "0", "toggle": "1"}).status_code == 404
    assert client.get("/q/9999").status_code == 404
    assert labels.right[0] == set()


def test_labels_can_be_downloaded(client: TestClient, labels: MakerLabels) -> None:
    labels.finish(0)
    response = client.get("/labels.jsonl")
    assert "attachment" in response.headers["content-disposition"]
    assert response.text == labels.out.read_text(encoding="utf-8")


def test_labels_go_from_the_command_to_the_evaluation_and_the_study(kb: Any, type_in: Any, tmp_path: Path) -> None:
    opened = open_labels(kb, DIALOGUES, tmp_path / "labelled.jsonl", begin_again=True)
    for question in range(6):
        opened.mark(question, question, fits=True)
        opened.finish(question)
    opened._log.close()
    opened.out.unlink()
    done = type_in(
        "retrieval",
        "label",
        KB,
        DIALOGUES,
        "--out",
        "labelled.jsonl",
        "--begin-again",
        "--export",
        "--json",
        cwd=tmp_path,
    )
    assert json.loads(done.stdout)["n_labelled"] == 6
    shown = type_in("retrieval", "evaluate", KB, "labelled.jsonl", "-r", "tfidf", "--resamples", "100", cwd=tmp_path)
    assert "questions excluded: they are not labelled yet" in shown.stderr
    pooled = type_in(
        "retrieval",
        "pool",
        KB,
        "labelled.jsonl",
        "--out",
        "study",
        "-r",
        "tfidf",
        "--depth",
        "2",
        "--json",
        cwd=tmp_path,
    )
    content = json.loads(pooled.stdout)
    assert (content["n_questions"], content["n_gold"]) == (6, 6)
