import json

import numpy as np
import pytest

from dialometer.errors import NotEnoughData, ReadError
from dialometer.learned.data.pairs import (
    DialoguePair,
    ExpertPairs,
    deal_pairs,
    numbered_gap_pairs,
    read_pairs,
    to_numbers,
)
from dialometer.learned.data.rated import RatedDialogue
from dialometer.model.dialogue import Dialogue, Turn


def rated_of(rows):
    return [
        RatedDialogue(Dialogue(name, (Turn("User", "x", "user"),) * length, meta), rating, None, source, None)
        for name, rating, length, source, meta in rows
    ]


@pytest.fixture
def rated():
    rng = np.random.default_rng(5)
    return rated_of((f"d{n}", float(rng.integers(1, 6)), int(rng.integers(4, 12)), f"f{n % 2}", {}) for n in range(40))


@pytest.mark.parametrize("gap", [1, 3])
@pytest.mark.parametrize("reach", [None, 2])
@pytest.mark.parametrize("is_within", [False, True])
def test_all_pairs_with_a_gap(rated, gap, reach, is_within):
    expected = {
        (a.id, b.id)
        for a in rated
        for b in rated
        if a.rating - b.rating >= gap
        and (reach is None or abs(a.n_utterances - b.n_utterances) <= reach)
        and (not is_within or a.source == b.source)
    }
    pairs = numbered_gap_pairs(rated, gap, reach, within_source=is_within)
    assert {
        (rated[better].id, rated[worse].id) for better, worse in zip(pairs.better, pairs.worse, strict=True)
    } == expected
    assert len(pairs) == len(expected)


def test_judgments_of_one_item_are_no_pair():
    rated = rated_of([("R1/i", 5.0, 4, "s", {"item": "i"}), ("R2/i", 1.0, 4, "s", {"item": "i"})])
    assert len(numbered_gap_pairs(rated, 1)) == 0


def test_some_of_many(rated):
    some = numbered_gap_pairs(rated, 1, max_pairs=17, rng=np.random.default_rng(1))
    assert len(some) == 17
    ratings = np.array([one.rating for one in rated])
    assert (ratings[some.better] > ratings[some.worse]).all()


def test_numbers_of_pairs():
    numbers = to_numbers([DialoguePair("a", "b", True), DialoguePair("a", "c", False)], ["a", "b", "c"])
    assert numbers.better.tolist() == [0, 2]
    assert numbers.worse.tolist() == [1, 0]
    with pytest.raises(ReadError, match="unknown dialogue 'x'"):
        to_numbers([DialoguePair("a", "x", True)], ["a"])


def test_expert_pairs_from_both_forms(tmp_path):
    lines = [{"first": "a", "second": "b", "better": "first"}, {"first": "a", "second": "c", "better": "c"}]
    (tmp_path / "pairs.jsonl").write_text("\n".join(json.dumps(one) for one in lines))
    (tmp_path / "pairs.csv").write_text("first,second,better\na,b,first\na,c,second\n")
    expected = ExpertPairs((DialoguePair("a", "b", True), DialoguePair("a", "c", False)), 0)
    assert read_pairs(tmp_path / "pairs.jsonl", ["a", "b", "c"]) == expected
    assert read_pairs(tmp_path / "pairs.csv", ["a", "b", "c"]) == expected


def test_pairs_without_a_verdict_are_counted_and_several_verdicts_settled(tmp_path):
    rows = [
        "first,second,better",
        "a,b,tie",
        "a,c,first",
        "c,a,second",
        "c,a,first",
        "b,c,cannot_tell",
        "b,d,first",
        "d,b,b",
    ]
    (tmp_path / "pairs.csv").write_text("\n".join([*rows, "c,d,first", "c,d,second", "a,d,"]))
    read = read_pairs(tmp_path / "pairs.csv", ["a", "b", "c", "d"])
    assert read.pairs == (DialoguePair("a", "c", True), DialoguePair("b", "d", True))
    assert read.n_undecided == 4


def test_pairs_are_dealt_whole_and_parts_share_no_dialogue():
    pairs = [DialoguePair(f"d{3 * k}", f"d{3 * k + j}", True) for k in range(40) for j in (1, 2)]
    parts = deal_pairs(pairs, (0.25, 0.25, 0.5), np.random.default_rng(0))
    assert [len(part) for part in parts] == [20, 20, 40]
    assert sorted(map(str, pairs)) == sorted(str(pair) for part in parts for pair in part)
    seen = [{name for pair in part for name in (pair.first, pair.second)} for part in parts]
    assert sum(map(len, seen)) == len(set().union(*seen))


def test_every_fault_of_expert_pairs_is_told(tmp_path):
    rows = ["first,second,better", "a,x,first", "a,a,first", "a,b,best", "a,,first", "a,b,second"]
    (tmp_path / "pairs.csv").write_text("\n".join(rows))
    with pytest.raises(ReadError) as told:
        read_pairs(tmp_path / "pairs.csv", ["a", "b"])
    assert [problem.line for problem in told.value.problems] == [2, 3, 4, 5]
    assert "unknown dialogue 'x'" in str(told.value)
    (tmp_path / "none.csv").write_text("first,second,better\n")
    with pytest.raises(NotEnoughData, match="no pairs"):
        read_pairs(tmp_path / "none.csv", ["a"])
    (tmp_path / "broken.jsonl").write_text('{"first": "a"\n{"first": "a", "second": "b", "better": "a"}\n')
    with pytest.raises(ReadError, match=r"broken\.jsonl:1:14: broken JSON"):
        read_pairs(tmp_path / "broken.jsonl", ["a", "b"])
