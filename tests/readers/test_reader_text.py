"""Plain text dialogues."""

from __future__ import annotations

import pytest

from dialometer.model.dialogue import Dialogue, Turn
from dialometer.readers import read_dialogues

TEXT = """A: Hello there
   how are you?
B: Fine: thanks
\tand you?


# second one

User: Where is the station?
Bot: Straight on.
# third
System: Bye
"""


def test_blank_lines_and_headers_part_dialogues_and_indented_lines_go_on(a_file):
    assert list(read_dialogues(a_file("talk.txt", TEXT))) == [
        Dialogue(
            "talk-1", (Turn("A", "Hello there\nhow are you?", "person"), Turn("B", "Fine: thanks\nand you?", "person"))
        ),
        Dialogue("second one", (Turn("User", "Where is the station?", "user"), Turn("Bot", "Straight on.", "agent"))),
        Dialogue("third", (Turn("System", "Bye", "agent"),)),
    ]


def test_declared_speakers_may_have_several_words_and_override_the_known(a_file):
    path = a_file("talk.txt", "The Doctor : Next!\nA: Me\n")
    (dialogue,) = read_dialogues(path, speakers={"The Doctor": "agent", "A": "user"})
    assert dialogue.turns == (Turn("The Doctor", "Next!", "agent"), Turn("A", "Me", "user"))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("A: x\nno speaker here\n", 2, "a line without a speaker"),
        ("  indented: x\n", 1, "an indented line without a turn before it"),
        ("A: x\nStranger: y\n", 2, "speaker 'Stranger' has no known role"),
        ("A: x\n\nB:\n", 3, "turn 1 is empty"),
        ("# one\nA: x\n# one\nA: y\n", 3, "the id 'one' was used before (line 1)"),
        ("#\nA: x\n", 1, "the id is empty"),
        ("A: x\n\n# nothing follows\n\n", 3, "the dialogue has no turns"),
        ("# a\n# b\nA: x\n", 1, "the dialogue has no turns"),
        ("A: a\x07b\n", 1, "U+0007 at position 2"),
    ],
)
def test_mistakes_are_placed(a_file, problems_in, text, line, message):
    (problem,) = problems_in(a_file("talk.txt", text), "text")
    assert problem.line == line
    assert message in problem.message


def test_a_stray_line_costs_its_own_dialogue_only(a_file):
    reading = read_dialogues(a_file("talk.txt", "what is this\n\nA: x\n"), lenient=True)
    assert [dialogue.id for dialogue in reading] == ["talk-2"]
    assert [warning.line for warning in reading.warnings] == [1]
