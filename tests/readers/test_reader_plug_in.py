"""A reader of another package, as docs/how-to/add-a-reader.md describes it, from the file to the report."""

import re
from pathlib import Path

import pytest

from commands import result_of
from dialometer.errors import ReadError
from dialometer.readers import READERS, read_dialogues

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "add-a-reader.md").read_text(encoding="utf-8")
CHATS = re.search(r'(?s)```text title="chats.log"\n(.*?)```', PAGE)[1]


@pytest.fixture
def chats(install_page, a_file):
    """A file of ten rated chats, in the format that only the package reads."""
    more = "".join(
        f"=== chat {number}, rating {1 + number % 5}\n> Question {number}\n< Answer {number}\n> And then?\n< That is all.\n"
        for number in range(20, 28)
    )
    install_page("add-a-reader.md", READERS)
    return a_file("chats.log", CHATS + more)


def test_the_format_is_detected_and_read(chats):
    reading = read_dialogues(chats)
    first, second, *others = reading
    assert (reading.format, len(others)) == ("helpdesk", 8)
    assert (first.id, first.metadata["rating"]) == ("chat-17", 4)
    assert [(turn.role, turn.text) for turn in second.turns[:2]] == [
        ("user", "Hello?"),
        ("agent", "I do not understand."),
    ]


def test_what_is_wrong_is_reported_with_its_line(chats):
    chats.write_text(CHATS + "no mark\n")
    with pytest.raises(ReadError, match=r"chats\.log:11: a line without > or <"):
        list(read_dialogues(chats))


@pytest.mark.slow
def test_its_ratings_lead_to_a_report(chats, tmp_path):
    out = tmp_path / "report"
    done = result_of("learn", "ratings", chats, "--out", out, "--no-features")
    assert done.exit_code == 0, done.output + repr(done.exception)
    report = (out / "report.json").read_text(encoding="utf-8")
    assert "chats.log" in report
    assert "10 ratings" in report
    assert (out / "index.html").exists()


def test_without_the_package_nothing_knows_the_format(a_file):
    with pytest.raises(ReadError, match="cannot be recognised from the file"):
        list(read_dialogues(a_file("chats.log", CHATS)))
