"""The avatar paper as its authors would: every table and figure from simulated raters and from a plain file."""

import csv
import json

import pytest
from retrieval_files import DIALOGUES, KB

RATED = """question,answer,rater,rating
d1-2,a02,ann,5
d1-2,a02,bob,4
d1-2,a02,cid,2
d1-2,a42,ann,4
d1-2,a42,bob,5
d1-7,a10,ann,5
d1-7,a10,bob,1
What sort of person was he?,a66,ann,2
What sort of person was he?,a66,cid,4
"""


@pytest.fixture(scope="module")
def judged(type_in, tmp_path_factory):
    """A pooled study with ratings from a plain file."""
    folder = tmp_path_factory.mktemp("paper")
    (folder / "crowd.csv").write_text(RATED, encoding="utf-8")
    type_in("retrieval", "coreference", KB, DIALOGUES, "--out", "marks.csv", cwd=folder)
    done = type_in("retrieval", "pool", KB, DIALOGUES, "--out", "judged", "-r", "tfidf", "--depth", "2",
                   "--rated", "crowd.csv", "--marks", "marks.csv", cwd=folder)  # fmt: skip
    assert "dialometer import judged crowd.csv --rules" in done.stdout
    done = type_in("import", "judged", "crowd.csv", "--rules", cwd=folder)
    assert "2 flagged, 2 of them excluded" in done.stdout
    return folder


def test_tables_come_from_a_plain_file(judged, type_in):
    type_in("report", "judged", "--resamples", "100", "--format", "json", cwd=judged)
    tables = {path.stem.split("-")[-1] for path in (judged / "judged" / "report").rglob("*.csv")}
    report = json.loads((judged / "judged" / "report" / "report.json").read_text(encoding="utf-8"))
    sections = {section["name"] for section in report["sections"]}
    assert {"candidate_agreement", "first_answers", "rankings", "retrieval", "versatile"} <= sections, tables
    assert {"disagreements", "coreference", "asked", "gold_rule"} <= sections


def test_the_crowds_labels_by_study_and_by_file(judged, type_in):
    for crowd, n in (("judged", 1), ("crowd.csv", 2)):
        done = type_in("retrieval", "evaluate", KB, DIALOGUES, "-r", "tfidf", "--crowd", crowd, "--marks", "marks.csv",
                       "--resamples", "100", "--json", cwd=judged)  # fmt: skip
        found = json.loads(done.stdout)
        by = {judge["name"]: judge for judge in found["judges"]}
        assert by["crowd"]["n_judged"] == n or crowd == "judged"
        assert {row["group"] for row in found["groups"]} == {"with co-reference", "without co-reference"}
    shown = type_in("retrieval", "evaluate", KB, DIALOGUES, "-r", "tfidf", "--marks", "marks.csv", cwd=judged).stdout
    assert "by co-reference" in shown


def test_disputed_answers_with_their_texts(judged, type_in):
    shown = type_in(
        "retrieval", "disagree", KB, DIALOGUES, "-r", "tfidf", "--crowd", "crowd.csv", "--out", "list.csv", cwd=judged
    ).stdout
    assert "its first answer is not one that the maker marked" in shown
    assert "1 answers are right for the crowd, not marked by the maker" in shown
    with (judged / "list.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    liked = next(row for row in rows if (row["question"], row["answer"]) == ("d1-2", "a42"))
    assert (liked["maker"], liked["crowd"], liked["mean_rating"], liked["n_ratings"]) == ("no", "yes", "4.50", "2")
    assert liked["maker_answers"] == "Very well, thank you. The sea is calm today."
    rejected = next(row for row in rows if row["answer"] == "a10" and row["question"] == "d1-7")
    assert (rejected["maker"], rejected["crowd"]) == ("yes", "no")


def test_first_words(judged, type_in):
    done = type_in("retrieval", "words", KB, DIALOGUES, "--out", "words", cwd=judged)
    assert "Recorded questions: 148 different ones" in done.stdout
    assert (judged / "words" / "recorded_questions.svg").read_text(encoding="utf-8").startswith("<svg")
    assert (judged / "words" / "questions_of_the_dialogues.csv").is_file()


def test_the_template_is_judged_by_its_own_questions(type_in, tmp_path):
    type_in("new", "avatar", "maren", cwd=tmp_path)
    (tmp_path / "r.csv").write_text("question,answer,rater,rating\nd1-2,a02,ann,5\nd1-3,a24,ann,2\n", encoding="utf-8")
    type_in("import", "maren", "r.csv", cwd=tmp_path)
    done = type_in(
        "retrieval",
        "evaluate",
        KB,
        DIALOGUES,
        "-r",
        "tfidf",
        "--crowd",
        "maren",
        "--resamples",
        "100",
        "--json",
        cwd=tmp_path,
    )
    crowd = next(judge for judge in json.loads(done.stdout)["judges"] if judge["name"] == "crowd")
    assert (crowd["n_judged"], crowd["n_answerable"]) == (2, 1)
