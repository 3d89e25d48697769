"""Tables of ratings in their three shapes become judgments, with or without a study to fit."""

from __future__ import annotations

import pytest

from dialometer.design.load import check_study
from dialometer.errors import DialometerError, ImportFileError
from dialometer.exchange.importing import import_files
from dialometer.readers.chats import in_cell
from dialometer.storage.store import Store

LONG = """worker,mr_id,model,dimension,score,when
ann,1,alpha,fluency,4,2024-05-01T10:00:00
ann,1,beta,fluency,2,2024-05-01T10:00:00
ann,2,alpha,fluency,5,2024-05-01T10:01:00
ann,2,beta,fluency,1,2024-05-01T10:01:00
bob,1,alpha,fluency,3,2024-05-02T08:00:00+02:00
bob,1,beta,fluency,3,2024-05-02T08:00:00+02:00
"""
COLUMNS = {"item": "mr_id", "time": "when"}
T_ANN, T_BOB = 1_714_557_600_000, 1_714_629_600_000  # 2024-05-01T10:00Z, 2024-05-02T06:00Z


def test_a_long_table_becomes_judgments_of_a_new_study(bring_in, stored, database_url, tmp_path):
    done = bring_in(LONG, columns=COLUMNS, database=database_url)
    file = done.files[0]
    assert (file.n_judgments, file.n_raters, file.n_items) == (6, 2, 2)
    assert file.used == {
        "item": "mr_id",
        "time": "when",
        "rater": "worker",
        "system": "model",
        "criterion": "dimension",
        "value": "score",
    }
    judgments = stored(database=database_url)
    told = [(j.item_id, j.system, j.criterion, j.value, j.scale, j.answered_at_ms, j.shown_at_ms) for j in judgments]
    assert told[0] == ("1", "alpha", "fluency", 4, "likert", T_ANN, 0)
    assert told[4] == ("1", "alpha", "fluency", 3, "likert", T_BOB, 0)
    assert [j.position for j in judgments] == [1, 1, 2, 2, 1, 1], "the times tell the order"
    assert {j.order for j in judgments} == {()}, "nothing tells the order on the screen"
    with Store.open(database_url) as store:
        sessions = store.sessions.all()
        people = [store.sessions.person(session.id) for session in sessions]
        entry = store.imports.all()[0]
    assert [(person.platform, person.external_id) for person in people] == [
        ("imported:long", n) for n in ("ann", "bob")
    ]
    assert {(s.source, s.state, s.is_excluded) for s in sessions} == {("imported", "completed", False)}
    assert (sessions[0].started_at_ms, sessions[0].finished_at_ms) == (T_ANN, T_ANN + 60_000)
    assert (entry.file_name, entry.format, entry.n_rows) == ("data.csv", "long", 6)
    study, problems = check_study(tmp_path / "in")
    assert [p for p in problems if p.severity == "error"] == []
    assert [system.name for system in study.spec.systems] == ["alpha", "beta"]
    assert study.spec.items.kind == "responses"


def test_unknown_times_stay_unknown(bring_in, tmp_path):
    from dialometer.storage.table import long_table

    bring_in("rater,item,criterion,value\nann,1,q,3\nann,2,q,4\n")
    with Store.open(tmp_path / "in.db") as store:
        table = long_table(store.records.judgment_batches())
        assert [session.finished_at_ms for session in store.sessions.all()] == [None]
    for column in ("shown_at", "answered_at", "duration_s"):
        assert table[column].null_count() == 2
    assert table["position"].to_list() == [0, 0]


def test_wide_criteria_with_other_names(bring_in, stored):
    text = "rater,item,system,Q1,Q2,age\nann,1,a,1,7,33\nann,2,a,,5,33\nbob,1,a,3,4,41\n"
    done = bring_in(text, criteria=["readability=Q1", "Q2"], questions=["age"])
    assert [(j.criterion, j.value) for j in stored()] == [
        ("readability", 1),
        ("Q2", 7),
        ("Q2", 5),
        ("readability", 3),
        ("Q2", 4),
    ]
    assert done.files[0].left_out == {"empty cells (nothing was answered)": 1}
    assert done.files[0].used["criterion readability"] == "Q1"
    assert done.files[0].n_answers == 2, "an age repeated in every row is one answer"


def test_systems_side_by_side(bring_in, stored):
    text = "rater,item,system_1,system_2,quality1,quality2,response_1,response_2\n"
    text += "ann,1,b,a,90,250,hello,hi\nbob,1,a,b,10,20,hi,hello\n"
    done = bring_in(text, criteria=["quality"])
    assert [(j.system, j.value, j.side, j.order) for j in stored()] == [
        ("b", 90, 1, ("b", "a")),
        ("a", 250, 2, ("b", "a")),
        ("a", 10, 1, ("a", "b")),
        ("b", 20, 2, ("a", "b")),
    ]
    assert done.new_study.scales == {"quality": "magnitude estimation"}
    assert done.study.items_by_id["1"].responses == {"b": "hello", "a": "hi"}


def test_constants_conditions_and_durations(bring_in, stored, tmp_path):
    text = "rater,item,score,group,done,secs\nann,1,0.5,hot,1714557600,2.5\nbob,1,0.25,cold,1714557600000,1\n"
    columns = {
        "criterion": ":quality",
        "system": ":My Bot 2",
        "factor_temp": "group",
        "time": "done",
        "duration_s": "secs",
    }
    done = bring_in(text, columns=columns)
    assert done.study.cells == ({"temp": "hot"}, {"temp": "cold"})
    assert [(j.shown_at_ms, j.answered_at_ms) for j in stored()] == [(T_ANN - 2500, T_ANN), (T_ANN - 1000, T_ANN)]
    assert [system.model_dump()["label"] for system in done.study.spec.systems] == ["My Bot 2"]
    assert {j.system for j in stored()} == {"My_Bot_2"}
    with Store.open(tmp_path / "in.db") as store:
        assert [(s.condition, s.draw.cell) for s in store.sessions.all()] == [
            ({"temp": "hot"}, 0),
            ({"temp": "cold"}, 1),
        ]


def test_semicolons_byte_order_mark_and_gzip(bring_in, stored, tmp_path):
    import gzip

    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress("\ufeffrater;item;criterion;value\nann;1;q;3,5\nbob;1;q;4,5\n".encode()))
    bring_in(path)
    assert [j.value for j in stored()] == [3.5, 4.5]


def problems_of(error: ImportFileError) -> list[tuple[int, str]]:
    return [(problem.line, problem.message) for problem in error.problems]


def test_every_bad_row_is_told_and_nothing_is_stored(bring_in, tmp_path):
    text = (
        "rater,item,system,criterion,value,time\n"
        "ann,1,a,q,3,2024-05-01\n"
        ",1,a,q,3,2024-05-01\n"
        "ann,,a,q,3,2024-05-01\n"
        "ann,1,,q,3,2024-05-01\n"
        "ann,2,a,,3,2024-05-01\n"
        "ann,3,a,q,3,yesterday\n"
        "ann,4,a,q,3\n"
        "an\x01n,5,a,q,3,2024-05-01\n"
    )
    with pytest.raises(ImportFileError) as caught:
        bring_in(text)
    assert problems_of(caught.value) == [
        (3, "the rater is missing"),
        (4, "the item is missing"),
        (5, "the system is missing"),
        (6, "the criterion is missing"),
        (7, "'yesterday' is not a time that can be read"),
        (8, "the row has 5 cells, the header 6"),
        (9, "the rater holds a control character U+0001 at position 3"),
    ]
    assert "data.csv:7" in str(caught.value)
    assert not (tmp_path / "in").exists()
    assert not (tmp_path / "in.db").exists()


@pytest.mark.parametrize(
    ("text", "options", "message", "remedy"),
    [
        ("a,b\n1,2\n", {}, "no column is known to hold the rater", "--map rater=COLUMN; the file has a, b"),
        (
            "rater,item,valeu\nx,1,2\n",
            {"columns": {"value": "value"}},
            "there is no column 'value' for the value",
            "did you mean 'valeu'?",
        ),
        ("rater,item,x\nann,1,2\n", {}, "no column is known to hold judgments", "--criteria COLUMN,COLUMN"),
        ("rater,item,value\nann,1,2\n", {}, "no column says what was judged", "--map criterion=:quality"),
        (
            "rater,item,qality\nann,1,2\n",
            {"criteria": ["quality"]},
            "there is no column 'quality'",
            "did you mean 'qality'?",
        ),
        (
            "rater,item,system1,system2,q1\nann,1,a,b,2\n",
            {"criteria": ["q"]},
            "systems are side by side, but 'q' has no column for each of them",
            "q1, q2",
        ),
        (
            "rater,item,system1,system2,q1,q2\nann,1,a,a,2,3\n",
            {"criteria": ["q"]},
            "a system appears twice in one row: a, a",
            "correct the row",
        ),
        ("rater,item,criterion,value\n", {}, "there are no judgments in the file", "format 'long'"),
        ("", {}, "there are no judgments in the file", "format 'long'"),
    ],
)
def test_a_table_that_cannot_be_understood(bring_in, text, options, message, remedy):
    with pytest.raises(ImportFileError) as caught:
        bring_in(text, **options)
    problem = caught.value.problems[0]
    assert problem.message == message
    assert remedy in problem.remedy


def test_what_each_of_the_two_readings_finds_is_told_together(bring_in):
    rows = ["ann,1,a,q,3,hello", "ann,1,a,q,4,hello", ",1,a,q,4,hello", "bob,1,a,q,4,good bye"]
    with pytest.raises(ImportFileError) as caught:
        bring_in("rater,item,system,criterion,value,response\n" + "\n".join(rows) + "\n")
    assert problems_of(caught.value) == [
        (3, "the rater 'ann' has judged '1' by 'a' for q on line 2 already"),
        (4, "the rater is missing"),
        (5, "the response of 'a' to '1' is another text than before"),
    ]


def test_two_texts_for_one_item_are_noticed(bring_in):
    text = "rater,item,system,criterion,value,response\nann,1,a,q,3,hello\nbob,1,a,q,4,good bye\n"
    with pytest.raises(ImportFileError, match="the response of 'a' to '1' is another text"):
        bring_in(text)


def test_roles_that_do_not_exist_are_refused_before_reading(bring_in):
    with pytest.raises(DialometerError, match="did you mean 'rater'"):
        bring_in("x\n", columns={"ratr": "x"})


@pytest.mark.parametrize("entry", ["rater", "=x", "rater=", "rater=:"])
def test_a_map_that_cannot_be_read(entry):
    from dialometer.exchange.columns import parse_map

    with pytest.raises(DialometerError, match="role=column"):
        parse_map([entry])


def test_a_map_gives_each_role_once():
    from dialometer.exchange.columns import parse_map

    assert parse_map(["rater=w", "criterion=:a=b"]) == {"rater": "w", "criterion": ":a=b"}
    with pytest.raises(DialometerError, match="twice"):
        parse_map(["rater=w", "rater=x"])


def test_a_drafted_study_says_how_many_items_and_systems_each_rater_judged(bring_in):
    """Power planned from it would otherwise be that of raters who judge everything."""
    lines = ["rater,item,system,fluency"]
    for rater in range(6):
        for number in range(4):
            item = (rater + number) % 8
            lines.append(f"r{rater},i{item},{'abc'[(rater + item) % 3]},{1 + (rater + number) % 5}")
    design = bring_in("\n".join(lines), criteria=["fluency"]).study.spec.design
    assert (design.items_per_rater, design.systems_per_item) == (4, 1)
    everything = ["rater,item,system,fluency"] + [
        f"r{r},i{i},{s},{1 + (r + i) % 5}" for r in range(3) for i in range(3) for s in "ab"
    ]
    design = bring_in("\n".join(everything), criteria=["fluency"], folder="all", name="all.csv").study.spec.design
    assert (design.items_per_rater, design.systems_per_item) == ("all", None)


def test_progress_says_what_is_done(tmp_path, monkeypatch):
    monkeypatch.setattr("dialometer.exchange.import_format.N_PER_REPORT", 1)
    (tmp_path / "r.csv").write_text("rater,item,system,criterion,value\nr1,i1,s1,q,3\nr2,i1,s1,q,4\n")
    seen = []
    report = lambda _file, doing, _line: seen.append(doing)  # noqa: E731
    import_files(tmp_path / "s", [tmp_path / "r.csv"], tmp_path / "s.db", at_ms=1, format="long", report=report)
    assert list(dict.fromkeys(seen)) == ["Looking at", "Reading"]


def test_a_turn_that_no_dialogue_has_is_refused(bring_in):
    table = "rater,item,turn,criterion,value\nann,d1,3000000000,fluency,4\nbob,d1,1,fluency,2\n"
    with pytest.raises(DialometerError, match="turn"):
        bring_in(table)


@pytest.mark.parametrize("text", ["{0}", "[b'a']", "[1j]"])
def test_python_values_that_are_no_data_stay_text(text):
    assert in_cell(text) == text
    assert in_cell("[{'role': 'user'}]") == [{"role": "user"}]
