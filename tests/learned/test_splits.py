from collections import Counter

import pytest

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.learned.data.rated import RatedDialogue
from dialometer.learned.data.splits import (
    PARTS,
    grouped_splits,
    groups_of,
    hold_out,
    read_splits,
    rows_of,
    write_splits,
)
from dialometer.model.dialogue import Dialogue


def some(n, user=lambda k: None, source=lambda k: f"file{k // 300}", **metadata):
    return [
        RatedDialogue(Dialogue(f"d{k}", (), metadata), float(1 + k % 5), user(k), source(k), None) for k in range(n)
    ]


def test_blocks_of_neighbours_where_users_are_unknown():
    groups = groups_of(some(60, source=lambda k: "a" if k < 30 else "b"))
    assert [n for _, n in sorted(Counter(groups).items())] == [25, 5, 25, 5]


def test_users_stay_together():
    rated = some(400, user=lambda k: f"u{k % 37}")
    for split in grouped_splits(rated, 5):
        where = {}
        for part in PARTS:
            for one in rows_of(rated, getattr(split, part)):
                assert where.setdefault(one.user, part) == part


def test_several_judgments_of_an_item_stay_together():
    rated = [
        RatedDialogue(Dialogue(f"R{r}/i{i}", (), {"item": f"i{i}"}), 3.0, f"R{r}", "study", None)
        for r in range(3)
        for i in range(40)
    ]
    assert len(set(groups_of(rated))) == 40


def test_every_dialogue_is_tested_once_in_a_round_of_folds():
    rated = some(1200)
    splits = grouped_splits(rated, 10, n_folds=5, seed=3)
    for start in (0, 5):
        tested = Counter(name for split in splits[start : start + 5] for name in split.test)
        assert set(tested.values()) == {1}
        assert len(tested) == 1200
    assert splits[0].test != splits[5].test
    for split in splits:
        parts = [set(getattr(split, part)) for part in PARTS]
        assert sum(len(part) for part in parts) == len(set.union(*parts)) == 1200


def test_parts_are_stratified_by_file():
    rated = some(3000, source=lambda k: "small" if k < 600 else "large")
    for split in grouped_splits(rated, 5):
        files = Counter(one.source for one in rows_of(rated, split.test))
        assert abs(files["small"] - 120) <= 25
        assert abs(files["large"] - 480) <= 25
        assert min(len(split.development), len(split.stopping)) > 100


def test_same_seed_same_splits_and_back_from_disk(tmp_path):
    rated = some(800)
    splits = grouped_splits(rated, 3, seed=1)
    assert splits == grouped_splits(rated, 3, seed=1)
    write_splits(tmp_path / "in" / "splits.json", splits, rated)
    assert read_splits(tmp_path / "in" / "splits.json", rated) == splits
    with pytest.raises(DialometerError, match="made for other dialogues"):
        read_splits(tmp_path / "in" / "splits.json", rated[1:])
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(DialometerError, match="cannot be read as splits"):
        read_splits(tmp_path / "broken.json", rated)


def test_too_few_groups():
    with pytest.raises(NotEnoughData, match="4 groups of dialogues are too few"):
        grouped_splits(some(100), 5)


def test_holding_out_leaves_the_users_of_the_test_part_out():
    rated = some(300, user=lambda k: f"u{k % 50}")
    split = hold_out(rated, ["d0", "d1"], name="bot x")
    assert split.test == ("d0", "d1")
    trained = {one.user for part in PARTS[:3] for one in rows_of(rated, getattr(split, part))}
    assert not trained & {"u0", "u1"}
    with pytest.raises(NotEnoughData, match="nothing"):
        hold_out(rated, [], name="nobody")
