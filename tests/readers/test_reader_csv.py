"""Our own table form."""

from __future__ import annotations

import pytest

from dialometer.errors import DialometerError
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.readers import read_dialogues

TABLE = '''dialogue_id,speaker,text,role,rating,city
d1,User,"Hello, you",,4,
d1,Agent,"two
lines, with ""quotes""",,4,
d2,Narrator,Once upon a time,person,,Rome
'''


def test_rows_become_turns_and_other_columns_metadata(a_file):
    assert list(read_dialogues(a_file("d.csv", TABLE))) == [
        Dialogue(
            "d1",
            (Turn("User", "Hello, you", "user"), Turn("Agent", 'two\nlines, with "quotes"', "agent")),
            {"rating": "4", "city": None},
        ),
        Dialogue("d2", (Turn("Narrator", "Once upon a time", "person"),), {"rating": None, "city": "Rome"}),
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_told_from_the_header_or_given(a_file, delimiter):
    table = "\ufeff" + delimiter.join(["dialogue_id", "speaker", "text"]) + "\r\n" + delimiter.join(["a", "User", "x"])
    path = a_file("d.csv", table)
    assert list(read_dialogues(path)) == list(read_dialogues(path, "csv", delimiter=delimiter))
    assert next(read_dialogues(path)).turns == (Turn("User", "x", "user"),)


def test_unknown_options_and_values_are_refused_with_a_remedy(a_file):
    path = a_file("d.csv", TABLE)
    with pytest.raises(DialometerError, match=r"no option 'delimeter' — did you mean 'delimiter'\?"):
        read_dialogues(path, "csv", delimeter=",")
    with pytest.raises(DialometerError, match="option 'delimiter' of the format 'csv'"):
        read_dialogues(path, "csv", delimiter="|")


def test_lines_are_exact_even_after_cells_with_several_lines(a_file, problems_in):
    table = TABLE + "d2,Who,hm,,,Rome\nd2,User,,,2,Rome\nd1,User,again,,4,\n"
    found = [(problem.line, problem.field, problem.message) for problem in problems_in(a_file("d.csv", table))]
    assert found == [
        (7, "rating", "'rating' changes within dialogue 'd2': None before, '2' here"),
        (6, "speaker", "turn 2: speaker 'Who' has no known role"),
        (7, "text", "turn 3 is empty"),
    ]


@pytest.mark.parametrize(
    ("table", "line", "message"),
    [
        ("dialogue_id,speeker,text\n", 1, "the column 'speaker' is missing"),
        ("dialogue_id,speaker,text,text\n", 1, "the column 'text' appears twice"),
        ("dialogue_id,speaker,text,\na,User,x,\n", 1, "a column has no name"),
        ("dialogue_id,speaker,text\n\na,User,x,y\n", 3, "the row has 4 cells, the header 3"),
        ("dialogue_id,speaker,text\na,User,x\na,User\n", 3, "the row has 2 cells, the header 3"),
        ('dialogue_id,speaker,text\na,User,"x\n', 2, "broken CSV: unexpected end of data"),
        ('dialogue_id,speaker,text\na,User,x\na,User,"x"y\n', 3, "broken CSV"),
        ("dialogue_id,speaker,text\ra,User,x\r", 1, "broken CSV: new-line character"),
        ("dialogue_id,speaker,text\na,User,x\n,User,y\n", 3, "the id is empty"),
        ("dialogue_id,speaker,text,role\na,P,x,usr\n", 2, "turn 1: unknown role 'usr'"),
    ],
)
def test_mistakes_in_the_table_are_placed(a_file, problems_in, table, line, message):
    (problem,) = problems_in(a_file("d.csv", table), "csv")
    assert problem.line == line
    assert message in problem.message


def test_rows_of_empty_cells_mean_nothing(a_file):
    table = "dialogue_id,speaker,text\na,User,x\n\n,,\na,Agent,y\n , ,\n,\n"
    (dialogue,) = read_dialogues(a_file("d.csv", table))
    assert [turn.text for turn in dialogue.turns] == ["x", "y"]


def test_a_misspelt_column_is_suggested(a_file, problems_in):
    (problem,) = problems_in(a_file("d.csv", "dialogue_id,speeker,text\na,User,x\n"))
    assert problem.remedy == "did you mean 'speeker'?"


def test_tables_of_messages_as_chat_platforms_write_them(a_file):
    table = "conversation_id;message_no;role;content;ms\n7;1;user;Hi;10\n7;2;assistant;Hello;20\n8;1;user;Bye;5\n"
    reading = read_dialogues(a_file("d.csv", table))
    first, second = reading
    assert [(turn.speaker, turn.text, turn.role) for turn in first.turns] == [
        ("user", "Hi", "user"),
        ("assistant", "Hello", "agent"),
    ]
    assert (first.id, dict(first.metadata), dict(second.metadata)) == ("7", {}, {"message_no": "1", "ms": "5"})
    told = [problem.message for problem, _ in reading.kinds_of_warnings]
    assert "the column 'conversation_id' is read as 'dialogue_id'" in told
    assert any("'message_no' changes within dialogues" in words for words in told)
