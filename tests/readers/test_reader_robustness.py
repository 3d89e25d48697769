"""Whatever a file holds, a reading ends in dialogues that keep the rules or in one error made for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialometer.errors import ReadError
from dialometer.model.dialogue import ROLES, Dialogue, clean_text
from dialometer.readers import READERS, read_dialogues

KEYS = [
    "id",
    "turns",
    "speaker",
    "text",
    "role",
    "speakers",
    "metadata",
    "topic",
    "dialog",
    "dialog_id",
    "sender",
    "sender_class",
    "eval_score",
    "profile_match",
    "dialogue",
    "dialogue_dicts",
    "speakers_to_eval",
    "dialogue_ids",
    "context",
    "conversation_id",
    "conversation",
    "agent",
    "user",
    "participant",
    "utterance",
]
WORDS = st.sampled_from(["User", "agent", "participant1", "AGENT", "human", "person", "", " ", "hi", "\x00", "context"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 6) | st.floats() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*KEYS, "conversation ID", "x"]), inner)
    ),
    max_leaves=25,
)
json_lines = st.lists(values, max_size=4).map(lambda found: "\n".join(map(json.dumps, found)))
json_array = st.lists(values, max_size=4).map(json.dumps)
COLUMNS = ["dialogue_id", "speaker", "text", "role", "Mode", "Conversation", "Exchange", "Q", "A", "BA1", "rating"]
cells = st.sampled_from(["User", "a", "1", "2", "", '"', '"x\ny"', "agent", "é"])
tables = st.tuples(
    st.permutations(COLUMNS), st.lists(st.lists(cells, min_size=9, max_size=12).map(",".join), max_size=5)
).map(lambda table: "\n".join([",".join(table[0]), *table[1]]))
plain = st.lists(st.sampled_from(["A: x", "B:", "# id", "#", "", "  more", "nobody", "Zoe: y", ":"]), max_size=8).map(
    "\n".join
)
contents = st.binary(max_size=200) | (json_lines | json_array | tables | plain | st.text(max_size=100)).map(
    lambda text: text.encode("utf-8", errors="surrogatepass")
)


def assert_sound(dialogues: Iterator[Dialogue]) -> None:
    ids = []
    for dialogue in dialogues:
        ids.append(dialogue.id)
        assert dialogue.id
        assert dialogue.turns
        for turn in dialogue.turns:
            assert turn.speaker == clean_text(turn.speaker) != ""
            assert turn.text == clean_text(turn.text) != ""
            assert turn.role in ROLES
    assert ids
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("format", [*READERS, None])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=contents, suffix=st.sampled_from([".jsonl", ".json", ".csv", ".txt", ".gz", ""]))
def test_any_bytes_end_in_sound_dialogues_or_a_read_error(tmp_path: Path, format, lenient, content, suffix):
    path = tmp_path / f"file{suffix}"
    path.write_bytes(content)
    found: ReadError | None = None
    try:
        assert_sound(read_dialogues(path, format, lenient=lenient))
    except ReadError as error:
        found = error
    assert found is None or found.problems
    assert found is None or all(problem.file == str(path) and problem.message for problem in found.problems)
