"""What is written reads back equal, and what would not is refused before the file is touched."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialometer.errors import DialometerError
from dialometer.model.dialogue import ROLES, Dialogue, Turn, clean_text
from dialometer.readers import read_dialogues, write_dialogues

# Any text that passes the gate: all of Unicode but control characters and surrogates, cleaned.
texts = st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("\n\t")).map(clean_text)
named = texts.filter(bool)
turns = st.builds(Turn, named | st.sampled_from(["User", "agent", "A"]), named, st.sampled_from(ROLES))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
dialogues = st.lists(
    st.builds(
        Dialogue, named, st.lists(turns, min_size=1, max_size=6).map(tuple), st.dictionaries(texts, values, max_size=4)
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda dialogue: dialogue.id,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_dialogues=dialogues, is_gzip=st.booleans())
def test_write_then_read_gives_equal_dialogues(tmp_path, given_dialogues, is_gzip):
    path = tmp_path / ("d.jsonl.gz" if is_gzip else "d.jsonl")
    assert write_dialogues(path, given_dialogues) == len(given_dialogues)
    reading = read_dialogues(path)
    assert list(reading) == given_dialogues
    assert (reading.format, reading.n_warnings) == ("jsonl", 0)


def test_roles_are_written_once_per_speaker_and_only_where_needed(tmp_path):
    dialogue = Dialogue(
        "a",
        (Turn("User", "x", "user"), Turn("CH1", "y", "agent"), Turn("Both", "z", "user"), Turn("Both", "w", "agent")),
        MappingProxyType({"rating": 3}),
    )
    write_dialogues(tmp_path / "d.jsonl", [dialogue])
    assert json.loads((tmp_path / "d.jsonl").read_text()) == {
        "id": "a",
        "turns": [
            {"speaker": "User", "text": "x"},
            {"speaker": "CH1", "text": "y"},
            {"speaker": "Both", "text": "z", "role": "user"},
            {"speaker": "Both", "text": "w", "role": "agent"},
        ],
        "speakers": {"CH1": "agent"},
        "metadata": {"rating": 3},
    }


def said(text: str = "x", speaker: str = "User") -> tuple[Turn, ...]:
    return (Turn(speaker, text, "user"),)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Dialogue("a", said(" x")), "would not read back equal"),
        (Dialogue("a", said("e\u0301")), "would not read back equal"),
        (Dialogue("a", said("")), "turn 1 is empty"),
        (Dialogue("a", said("\x00")), "U+0000"),
        (Dialogue("a", ()), "no turns"),
        (Dialogue("", said()), "the id is empty"),
        (Dialogue("first", said()), "was used before"),
        (Dialogue("a", said(), {"x": (1, 2)}), "would not read back equal"),
        (Dialogue("a", said(), {"x": {1: 2}}), "would not read back equal"),
        (Dialogue("a", said(), {"x": float("nan")}), "is not JSON"),
        (Dialogue("a", said(), {"x": {1, 2}}), "is not JSON"),
        (Dialogue("a", said(), {"x": "\ud800"}), "U+D800"),
        (Dialogue("a", (Turn("User", "x", "boss"),)), "unknown role 'boss'"),  # type: ignore[arg-type]
    ],
)
def test_what_would_not_read_back_is_refused_and_the_file_stays_as_it_was(tmp_path: Path, bad, message):
    path = tmp_path / "d.jsonl"
    path.write_text("before")
    with pytest.raises(DialometerError) as caught:
        write_dialogues(path, [Dialogue("first", said()), bad])
    assert message in str(caught.value)
    assert f"{path}:2" in str(caught.value)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("d.jsonl", "before")]


def test_nothing_to_write_is_an_error(tmp_path):
    with pytest.raises(DialometerError, match="no dialogues to write"):
        write_dialogues(tmp_path / "d.jsonl", [])
    assert list(tmp_path.iterdir()) == []


def test_a_file_can_be_rewritten_from_itself(tmp_path):
    path = tmp_path / "d.jsonl"
    write_dialogues(path, [Dialogue(str(n), said()) for n in range(3)])
    write_dialogues(path, (dialogue for dialogue in read_dialogues(path) if dialogue.id != "1"))
    assert [dialogue.id for dialogue in read_dialogues(path)] == ["0", "2"]


def test_gzipped_files_are_the_same_bytes_every_time(tmp_path):
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        write_dialogues(tmp_path / name, [Dialogue("1", said())])
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
