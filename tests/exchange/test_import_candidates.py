"""Ratings of answers to questions: into a study of candidates, or as a new one, from plain tables and the authors' layout."""

import json

import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import load_data
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.errors import ImportFileError
from dialometer.storage.store import Store

PLAIN = """question,answer,rater,rating,gold,rank_tfidf,rank_bert
How old are you?,I am 22.,ann,5,yes,2,1
How old are you?,I am 22.,bob,2,yes,2,1
How old are you?,Sure.,ann,1,no,1,
How old are you?,Sure.,bob,4,no,1,
Where are you from?,Moldova.,ann,5,yes,1,1
Where are you from?,Moldova.,cid,4,yes,1,1
"""
LISTED = [
    {"snippet_id": 1, "last_turn": "How old are you?", "predicted_answer": "I am 22.", "worker_ids": ["w1", "w2", "w3"],
     "answers": [5, 4, 2], "hit_id": "h1", "avg_answer": 3.67},
    {"snippet_id": 1, "last_turn": "How old are you?", "predicted_answer": "Sure.", "worker_ids": ["w1", "w2", "w4"],
     "answers": [1, 1, 2], "hit_id": "h2", "avg_answer": 1.33},
]  # fmt: skip


@pytest.fixture
def into_avatar(tmp_path, bring_in):
    """Imports a table into the avatar template."""

    def call(text, **options):
        if not (tmp_path / "in").exists():
            copy_template("avatar", tmp_path / "in")
        return bring_in(text, **{"format": "", **options})

    return call


def items_of(folder):
    return [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]


def test_questions_and_answers_go_by_id_or_text(into_avatar, stored):
    text = (
        "question,answer,rater,rating\nAnd how's your day going?,a02,ann,5\nd1-2,a42,ann,1\n"
        'D1-2,"very well, thank you.  The sea is calm today.",bob,4\n'
    )
    done = into_avatar(text)
    assert (done.new_study, done.rules) == (None, None)
    assert [(j.item_id, j.criterion, j.value) for j in stored()] == [
        ("q01-c3", "fit", 5), ("q01-c1", "fit", 1), ("q01-c3", "fit", 4),
    ]  # fmt: skip


def test_a_plain_table_of_item_ids_needs_no_system(into_avatar, stored):
    into_avatar("item,rater,fit\nq01-c3,ann,2\nq01-c1,bob,3\n", format="long", criteria=["fit"])
    assert [(j.item_id, j.system, j.value) for j in stored()] == [("q01-c3", "", 2), ("q01-c1", "encoder", 3)]


def test_what_the_study_does_not_ask_is_told_with_its_line(into_avatar):
    rows = ["d1-2,a99,ann,5", "d7-7,a02,ann,5", "d1-2,a02,ann,6", "d1-2,,ann,5"]
    with pytest.raises(ImportFileError) as caught:
        into_avatar("question,answer,rater,rating\n" + "\n".join(rows) + "\n")
    told = [(problem.line, problem.message) for problem in caught.value.problems]
    assert told == [
        (2, "'a99' is not a candidate for 'd1-2'"),
        (3, "the study has no question 'd7-7'"),
        (4, "'6' does not fit the scale of fit (5-point scale from 1 to 5)"),
        (5, "the answer is missing"),
    ]
    assert "retrieval pool --rated" in caught.value.problems[0].remedy


def test_a_question_that_is_asked_twice_needs_its_id(tmp_path, into_avatar):
    copy_template("avatar", tmp_path / "in")
    items = items_of(tmp_path / "in")
    twin = {**items[3], "id": "twin", "metadata": {**items[3]["metadata"], "question": "d9-1"}}
    (tmp_path / "in" / "items.jsonl").write_text("\n".join(map(json.dumps, [*items, twin])), encoding="utf-8")
    with pytest.raises(ImportFileError, match="2 questions read 'And how's your day going"):
        into_avatar("question,answer,rater,rating\nAnd how's your day going?,a02,ann,5\n")
    assert into_avatar("question,answer,rater,rating\nd9-1,a02,ann,5\n").files[0].n_judgments == 1


def test_a_plain_table_becomes_a_study_of_candidates(tmp_path, bring_in):
    done = bring_in(PLAIN, "")
    assert (done.files[0].format, done.new_study.kind, done.new_study.systems) == (
        "candidates",
        "candidate",
        ("tfidf", "bert"),
    )
    assert done.files[0].used["rank by bert"] == "rank_bert"
    first, second, third = items_of(tmp_path / "in")
    assert (first["ranks"], first["is_gold"], first["id"]) == ({"tfidf": 2, "bert": 1}, True, "q1-c1")
    assert (second["ranks"], second["candidate"]["text"]) == ({"tfidf": 1}, "Sure.")
    assert third["context"][0]["text"] == "Where are you from?"
    study = load_study(tmp_path / "in")
    assert study.spec.quality[0].acceptable[0].at_least == 4
    with Store.open(tmp_path / "in.db") as store:
        report = analyse(study, load_data(study, store), n_resamples=100)
    tables = {part.name for section in report.sections for part in section.parts}
    assert {"first_answers", "retrieval_maker", "retrieval_crowd", "retrieval_overlap"} <= tables


def test_answers_that_differ_in_capitals_only_are_told_apart(bring_in, stored):
    rows = "How are you?,Fine.,ann,5\nHow are you?,fine.,ann,1\nhow are you?,FINE.,bob,3\n"
    done = bring_in("question,answer,rater,rating\n" + rows, "")
    assert [(j.item_id, j.value) for j in stored()] == [("q1-c1", 5), ("q1-c2", 1), ("q2-c1", 3)]
    assert done.new_study.n_items == 3


def test_rows_that_contradict_each_other_are_refused(bring_in):
    rows = "How old are you?,I am 22.,cid,5,no,3,1\nWhere are you from?,Moldova.,eve,5,maybe,1.5,1\n"
    with pytest.raises(ImportFileError) as caught:
        bring_in(PLAIN + rows, "")
    told = [(problem.line, problem.message) for problem in caught.value.problems]
    assert told == [
        (8, "the gold of the answer 'I am 22.' differs from line 2"),
        (8, "the rank by 'tfidf' of the answer 'I am 22.' differs from line 2"),
        (9, "'1.5' is not a rank"),
        (9, "'maybe' is neither yes nor no"),
    ]


def test_the_authors_lists_become_single_ratings(tmp_path, bring_in, stored):
    done = bring_in(json.dumps(LISTED), "", name="results.json")
    assert [(j.item_id, j.value) for j in stored()] == [
        ("q1-c1", 5), ("q1-c2", 1), ("q1-c1", 4), ("q1-c2", 1), ("q1-c1", 2), ("q1-c2", 2),
    ]  # fmt: skip
    assert done.files[0].n_raters == 4
    study = load_study(tmp_path / "in")
    with Store.open(tmp_path / "in.db") as store:
        report = analyse(study, load_data(study, store), n_resamples=100)
    agreement = next(section for section in report.sections if section.name == "candidate_agreement")
    assert agreement.parts, "agreement needs no ranks"
    assert report.summary.answer.startswith("Systems cannot be compared")


def test_the_authors_table_has_gold_and_scores(tmp_path, bring_in):
    header = "snippet_id\tlast_turn\tpredicted_answer\tworker_ids\tanswers\tisGold\tmodel1Score\tmodel4Score\n"
    rows = [
        f"1\tHow old are you?\t{entry['predicted_answer']}\t{entry['worker_ids']}\t{entry['answers']}\t{gold}\t{scores}\n"
        for entry, gold, scores in zip(LISTED, (1, 0), ("0.5\t0.7", "0.9\t0"), strict=True)
    ]
    bring_in(header + "".join(rows), "", name="results.txt")
    first, second = items_of(tmp_path / "in")
    assert (first["ranks"], first["is_gold"]) == ({"model1": 2, "model4": 1}, True)
    assert (second["ranks"], second["is_gold"]) == ({"model1": 1}, False)
    with pytest.raises(ImportFileError, match="not two lists of the same length"):
        bring_in(header + rows[0].replace("[5, 4, 2]", "[5, 4]"), "", name="broken.txt", folder="other")


def test_rules_are_applied_where_asked(tmp_path, bring_in):
    done = bring_in(PLAIN, "", with_rules=True)
    assert (done.rules.n_sessions, done.rules.n_flagged, done.rules.n_excluded) == (3, 1, 1)
    with Store.open(tmp_path / "in.db") as store:
        excluded = [session for session in store.sessions.all() if session.is_excluded]
        reasons = [logged.finding.reason for logged in store.records.findings()]
    assert len(excluded) == 1
    assert reasons == ["failed 1 gold item: q1-c1 (fit = 2, expected at least 4)"]
