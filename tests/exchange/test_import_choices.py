"""Choices between control and experimental transcripts from a plain file: Tables 2 and 3 of Guerini et al. come out."""

from __future__ import annotations

import itertools

import pytest

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.reproduce.guerini import COUNTS, N_SUBJECTS, N_WOMEN
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.errors import DialometerError, ImportFileError
from dialometer.storage.store import Store
from report_parts import table_of

HEAD = "Subject,Strategy,Question,Choice,Gender,Age"


def choices(counts, n_raters, n_women, head=HEAD):
    """A file in which so many raters chose the experimental version; which of them is drawn round robin."""
    start = itertools.count()
    lines = [head]
    for (strategy, question), n_chosen in counts.items():
        first = next(start) * 37
        chosen = {(first + k) % n_raters for k in range(n_chosen)}
        for rater in range(n_raters):
            gender = "F" if rater < n_women else "male"
            choice = "experimental" if rater in chosen else "Control"
            lines.append(f"s{rater},{strategy},{question},{choice},{gender},{18 + rater % 40}")
    return "\n".join(lines) + "\n"


def report_of(folder, database):
    with Store.open(database) as store:
        return analyse(load_study(folder), store, n_resamples=100)


def test_tables_2_and_3_come_from_a_plain_file(bring_in, tmp_path):
    done = bring_in(choices(COUNTS, N_SUBJECTS, N_WOMEN), "")
    assert done.files[0].format == "choices"
    assert (done.files[0].n_judgments, done.files[0].n_raters, done.files[0].n_answers) == (2860, 143, 286)
    report = report_of(tmp_path / "in", tmp_path / "in.db")
    shares = {row[0]: [cell.value for cell in row[1:]] for row in table_of(report, "pairs-preference").rows}
    assert shares["empathy"] == pytest.approx([104 / 143, 112 / 143, 104 / 143, 109 / 143, 429 / 572])
    assert shares["alignment"][-1] == pytest.approx(0.63, abs=0.005)
    gender = table_of(report, "pairs-subgroup-gender")
    assert [column.label for column in gender.columns[1:3]] == ["female (n = 50)", "male (n = 93)"]
    women, men = gender.rows[0][1], gender.rows[0][2]
    assert (50 * women.value + 93 * men.value) / 143 == pytest.approx(shares["alignment"][-1])
    ages = [column.label.split(" (")[0] for column in table_of(report, "pairs-subgroup-age").columns[1:5]]
    assert ages == ["18-24", "25-34", "35-49", "50 or more"]


FEW = {(s, q): 3 for s in ("empathy", "facing") for q in ("ease", "utility")}


def test_sides_instead_of_versions_by_a_column_or_for_all(bring_in, stored):
    rows = "who,block,criterion,answer,exp\nr1,empathy,ease,left,left\nr1,facing,ease,left,right\nr2,empathy,ease,tie,left\n"
    bring_in(rows, "choices", columns={"rater": "who", "experimental": "exp"})
    assert [(j.block, j.value) for j in stored()] == [
        ("empathy", "experimental"),
        ("facing", "control"),
        ("empathy", "tie"),
    ]


def test_sides_without_a_key_are_refused_with_the_remedy(bring_in):
    with pytest.raises(ImportFileError) as caught:
        bring_in("rater,strategy,question,choice\nr1,empathy,ease,B\n", "choices")
    (problem,) = caught.value.problems
    assert problem.line == 2
    assert "'B' is neither version" in problem.message
    assert "--map experimental=:B" in problem.remedy


def test_one_column_for_each_question_and_pairs_by_name(bring_in, stored):
    text = (
        "rater,strategy,pair,ease,utility,shown first,note\nr1,empathy,e1,exp,ctrl,control,x\nr1,empathy,e2,1,0,exp,y\n"
    )
    done = bring_in(text, "choices", criteria=["ease", "usefulness=utility"])
    assert [(j.item_id, j.criterion, j.value, j.side) for j in stored()] == [
        ("e1", "ease", "experimental", 2),
        ("e1", "usefulness", "control", 1),
        ("e2", "ease", "experimental", 1),
        ("e2", "usefulness", "control", 2),
    ]
    assert done.files[0].unread == ("note",)
    assert done.study.spec.analysis.items == "sample"


def test_further_questions_are_subgroups_too(bring_in):
    head, *rows = choices(FEW, 4, 2).splitlines()
    text = "\n".join([f"{head},Country", *(f"{row},{'US' if 's1' in row else 'UK'}" for row in rows)]) + "\n"
    done = bring_in(text, "choices", questions=["country=Country"])
    assert [question.name for question in done.study.spec.post_questionnaire] == ["gender", "age", "country"]
    assert done.study.spec.analysis.bins == {"age": [18, 25, 35, 50]}


VOTES = "rater,system_a,system_b,winner,gender,mood\nr1,x,y,a,F,good\nr2,x,y,tie,M,bad\n"


def test_votes_keep_what_is_told_about_raters(bring_in, tmp_path):
    done = bring_in(VOTES, "votes", questions=["gender"])
    assert done.files[0].n_answers == 2
    assert done.files[0].used["kept with the item"] == "mood"
    assert [item.metadata for item in done.study.items] == [{"mood": "good"}, {"mood": "bad"}]
    with Store.open(tmp_path / "in.db") as store:
        assert [answer.value for answer in store.records.answers()] == ["F", "M"]


def test_a_question_that_is_not_there_is_said(bring_in):
    with pytest.raises(ImportFileError, match="there is no column 'sex'"):
        bring_in(VOTES, "votes", questions=["sex"])


def test_options_that_a_format_does_not_use_are_refused(bring_in):
    with pytest.raises(DialometerError, match="'votes' does not use --criteria"):
        bring_in(VOTES, "votes", criteria=["quality"])
    with pytest.raises(DialometerError, match="'dialometer' does not use --questions"):
        bring_in("x\n", "dialometer", questions=["age"])


def test_a_study_that_does_not_ask_the_age_leaves_it_out_with_a_word(bring_in, tmp_path, stored):
    copy_template("strategies", tmp_path / "in")
    text = "rater,strategy,pair,question,choice,gender,age\nr1,empathy,empathy-1,utility,exp,F,33\n"
    done = bring_in(text, "choices")
    assert done.files[0].left_out == {"answers to 'age', which the study does not ask": 1}
    assert [(j.item_id, j.block, j.value) for j in stored()] == [("empathy-1", "empathy", "experimental")]
    with pytest.raises(ImportFileError, match="the study has no question 'years'"):
        bring_in(text.replace("r1", "r2"), "choices", questions=["years=age"])
