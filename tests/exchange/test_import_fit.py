"""Into an existing study comes only what fits it: known names, values on their scales, one condition for each rater."""

from __future__ import annotations

import json

import pytest

from dialometer.design.templates import copy_template
from dialometer.errors import ImportFileError, LockError, StorageError, StudyError
from dialometer.exchange.importing import import_files
from dialometer.storage.store import Store

HEAD = "rater,item,system,criterion,value,factor_anchor,factor_layout\n"


@pytest.fixture
def into_template(tmp_path, bring_in):
    """Imports a table into a study made from a template."""

    def call(text, template="anchoring", format="long", **options):
        if not (tmp_path / "in").exists():
            copy_template(template, tmp_path / "in")
        return bring_in(text, format, **options)

    return call


def problems_of(caught) -> list[tuple[int, str, str]]:
    return [(problem.line, problem.message, problem.remedy) for problem in caught.value.problems]


def test_what_fits_is_stored_under_the_studys_names(into_template, stored, database_url):
    rows = "ann,c01,THRED,Readability,120.5,both,together\nann,c01,hred,readability,0,both,together\n"
    done = into_template(HEAD + rows, database=database_url)
    assert done.new_study is None
    told = [(j.system, j.criterion, j.value, j.scale, j.block) for j in stored(database=database_url)]
    assert told == [
        ("thred", "readability", 120.5, "magnitude", "main"),
        ("hred", "readability", 0, "magnitude", "main"),
    ]
    with Store.open(database_url) as store:
        session = store.sessions.all()[0]
    assert session.condition == {"anchor": "both", "layout": "together"}
    assert done.study.cells[session.draw.cell] == session.condition


def test_every_misfit_is_told_with_line_and_remedy(into_template, tmp_path):
    rows = [
        "ann,c99,hred,readability,100,both,together",
        "ann,c01,hredd,readability,100,both,together",
        "ann,c01,hred,readable,100,both,together",
        "ann,c01,hred,readability,-3,both,together",
        "ann,c01,hred,readability,many,both,together",
        "ann,c01,hred,readability,100,booth,together",
        "ann,c01,hred,readability,100,none,together",
        "bob,c01,hred,readability,100,both,together",
        "bob,c01,hred,readability,90,both,together",
    ]
    with pytest.raises(ImportFileError) as caught:
        into_template(HEAD + "\n".join(rows) + "\n")
    told = problems_of(caught)
    assert [line for line, _, _ in told] == [2, 3, 4, 5, 6, 7, 8, 10]
    assert told[0][1:] == ("the study has no item 'c99'", "did you mean 'c49'?")
    assert told[1][1:] == ("the study has no system 'hredd'", "did you mean 'hred'?")
    assert told[2][1:] == ("the study has no criterion 'readable'", "did you mean 'readability'?")
    assert told[3][1] == "'-3' does not fit the scale of readability (magnitude estimation)"
    assert told[3][2] == "enter a number above zero. A very small number is fine"
    assert told[4][2] == "enter a number"
    assert told[5][1:] == ("the factor 'anchor' has no level 'booth'", "did you mean 'both'?")
    assert told[6][1] == "the rater 'ann' is in another condition than on line 2"
    assert told[7][1] == "the rater 'bob' has judged 'c01' by 'hred' for readability on line 9 already"
    assert not (tmp_path / "in.db").exists(), "nothing is stored, not even a database"


def test_the_condition_must_be_told_where_the_study_has_factors(into_template, stored):
    text = "rater,item,system,criterion,value,group\nann,c01,hred,readability,100,together\n"
    with pytest.raises(ImportFileError, match="at which level of 'anchor' the rater was") as caught:
        into_template(text)
    assert "--map factor_anchor=COLUMN" in caught.value.problems[0].remedy
    into_template(text, columns={"factor_anchor": ":none", "factor_layout": "group"})
    assert len(stored()) == 1


def test_likert_points_and_required_systems(into_template):
    text = "rater,item,criterion,value\nann,t01,relevance,6\n"
    with pytest.raises(ImportFileError) as caught:
        into_template(text, template="likert", columns={"system": ":rules"})
    assert problems_of(caught)[0] == (
        2,
        "'6' does not fit the scale of relevance (5-point scale from 1 to 5)",
        "choose a point from 1 to 5",
    )
    with pytest.raises(ImportFileError, match="nothing says which system was judged"):
        into_template(text.replace(",6", ",5"), template="likert")


def test_votes_into_a_study_of_pairs(into_template, stored, tmp_path):
    copy_template("strategies", tmp_path / "in")
    lines = (tmp_path / "in" / "items.jsonl").read_text(encoding="utf-8").splitlines()
    ids = [item["id"] for item in map(json.loads, lines) if not item.get("metadata", {}).get("practice")]
    head = "rater,item,a,b,winner,criterion\n"
    text = head + f"ann,{ids[0]},control,experimental,b,ease\nann,{ids[1]},experimental,control,experimental,ease\n"
    into_template(text, template="strategies", format="votes")
    assert [(j.value, j.side, j.order) for j in stored()] == [
        ("experimental", 2, ("control", "experimental")),
        ("experimental", 1, ("experimental", "control")),
    ]
    with pytest.raises(ImportFileError, match="'tie' does not fit the scale of ease"):
        into_template(head + f"bob,{ids[0]},control,experimental,tie,ease\n", format="votes", name="b.csv")
    with pytest.raises(ImportFileError, match="the study has no item 'c-0001'"):
        into_template("rater,a,b,winner\nbob,control,experimental,a\n", format="votes", name="c.csv")


def test_the_same_file_is_imported_once(into_template, bring_in, stored, tmp_path, database_url):
    text = HEAD + "ann,c01,hred,readability,100,both,together\n"
    into_template(text, database=database_url)
    for name in ("data.csv", "a copy of it.csv"):
        with pytest.raises(ImportFileError, match=r"it was imported before, as 'data\.csv'"):
            into_template(text, database=database_url, name=name)
    assert len(stored(database=database_url)) == 1
    with pytest.raises(ImportFileError, match="it is the same file as"):
        import_files(
            tmp_path / "other",
            [tmp_path / "data.csv", tmp_path / "a copy of it.csv"],
            tmp_path / "other.db",
            format="long",
            at_ms=1,
        )


def test_raters_of_one_name_are_one_person_across_files(into_template, tmp_path):
    for number, item in enumerate(("c01", "c02")):
        into_template(HEAD + f"ann,{item},hred,readability,100,both,together\n", name=f"{number}.csv")
    with Store.open(tmp_path / "in.db") as store:
        sessions = store.sessions.all()
    assert len(sessions) == 2
    assert len({session.rater_id for session in sessions}) == 1


def test_a_file_is_stored_whole_or_not_at_all(into_template, stored, monkeypatch, tmp_path, database_url):
    """The store breaks in the middle of a file: nothing of it may stay."""
    from dialometer.storage import imports

    monkeypatch.setattr(imports, "N_SESSIONS_PER_WRITE", 1)
    write = imports._Import.write
    calls = []

    def break_at_the_second(self, chunk):
        calls.append(chunk)
        if len(calls) == 2:
            raise StorageError("the disk is full")
        write(self, chunk)

    monkeypatch.setattr(imports._Import, "write", break_at_the_second)
    text = HEAD + "ann,c01,hred,readability,100,both,together\nbob,c01,hred,readability,100,both,together\n"
    with pytest.raises(ImportFileError, match="the disk is full"):
        into_template(text, database=database_url)
    assert len(calls) == 2
    with Store.open(database_url) as store:
        assert (store.sessions.all(), store.imports.all(), list(store.records.judgments())) == ([], [], [])


def test_a_new_study_goes_again_when_storing_fails(bring_in, tmp_path):
    with pytest.raises(StorageError, match="no folder"):
        bring_in("rater,item,criterion,value\nann,1,q,3\nann,2,q,4\n", database=str(tmp_path / "nowhere" / "x.db"))
    assert not (tmp_path / "in").exists()


def test_one_bad_file_keeps_all_of_them_out(tmp_path):
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text("rater,item,criterion,value\nann,1,q,3\nann,2,q,4\n")
    bad.write_text("rater,item,criterion,value\nann,1,q,3\n,2,q,4\n")
    with pytest.raises(ImportFileError, match=r"bad\.csv:3: the rater is missing"):
        import_files(tmp_path / "in", [good, bad], tmp_path / "in.db", format="long", at_ms=1)
    assert not (tmp_path / "in.db").exists()
    assert not (tmp_path / "in").exists()


def test_a_dry_run_stores_nothing(bring_in, tmp_path):
    done = bring_in("rater,item,criterion,value\nann,1,q,3\nann,2,q,4\n", is_dry_run=True)
    assert done.is_dry_run
    assert done.files[0].n_judgments == 2
    assert done.new_study.scales == {"q": "4-point scale from 1 to 4"}
    assert not (tmp_path / "in").exists()
    assert not (tmp_path / "in.db").exists()


def test_a_broken_or_changed_study_is_refused_first(into_template, bring_in, tmp_path):
    from datetime import UTC, datetime

    from dialometer.design.load import load_study
    from dialometer.design.lock import freeze

    copy_template("likert", tmp_path / "in")
    freeze(load_study(tmp_path / "in"), tmp_path / "in", datetime(2025, 1, 1, tzinfo=UTC))
    consent = tmp_path / "in" / "consent.md"
    consent.write_text(consent.read_text(encoding="utf-8") + "\nOne more thing.\n", encoding="utf-8")
    with pytest.raises(LockError):
        into_template("rater,item,system,criterion,value\nann,t01,rules,relevance,5\n")
    consent.unlink()
    with pytest.raises(StudyError):
        into_template("rater,item,system,criterion,value\nann,t01,rules,relevance,5\n")


def test_files_in_the_way_of_a_new_study_are_not_overwritten(bring_in, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "items.jsonl").write_text("mine")
    from dialometer.errors import DialometerError

    with pytest.raises(DialometerError, match=r"items\.jsonl is there"):
        bring_in("rater,item,criterion,value\nann,1,q,3\nann,2,q,4\n")
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["items.jsonl"]
    assert (tmp_path / "in" / "items.jsonl").read_text() == "mine"


def test_turns_are_checked_against_the_dialogue(bring_in, stored):
    text = "rater,item,system,criterion,value,turn\nann,d1,a,q,3,0\nann,d1,a,q,4,2\nbob,d1,a,q,5,2\n"
    done = bring_in(text)
    assert done.study.spec.items.rate == "turns"
    assert [(j.turn, j.value) for j in stored()] == [(0, 3), (2, 4), (2, 5)]
    with pytest.raises(ImportFileError, match="turn 7 is not rated in 'd1'"):
        bring_in("rater,item,system,criterion,value,turn\ncarl,d1,a,q,3,7\n", name="more.csv")
    with pytest.raises(ImportFileError, match="nothing says which turn was judged"):
        bring_in("rater,item,system,criterion,value\ncarl,d1,a,q,3\n", name="more.csv")
