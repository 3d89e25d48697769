"""Fakes break one place; lessons show every dialogue or pair once an epoch, with the right loss."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from dialometer.errors import NotEnoughData
from dialometer.learned.cmade.stages import fake_dialogues, real_fake_pairs
from dialometer.learned.cmade.training import AllPairs, Classes, Interleaved, Pairs, Regression
from dialometer.model.dialogue import Dialogue, Turn


def test_two_fakes_each_broken_at_one_place_of_its_side(make_dialogues):
    dialogues, _ = make_dialogues(40)
    fakes = fake_dialogues(dialogues, np.random.default_rng(0))
    assert len(fakes) == 80
    said = {role: {t.text for d in dialogues for t in d.turns if t.role == role} for role in ("user", "agent")}
    for real, fake in real_fake_pairs(40):
        assert real < 40 <= fake
        role = ("user", "agent")[fake % 2]
        changed = [
            (old, new) for old, new in zip(dialogues[real].turns, fakes[fake - 40].turns, strict=True) if old != new
        ]
        ((old, new),) = changed
        assert old.role == new.role == role
        assert new.text in said[role]
        assert fakes[fake - 40].id.startswith(dialogues[real].id)


def test_the_seed_decides_the_fakes(make_dialogues):
    dialogues, _ = make_dialogues(10)
    one, same, other = (fake_dialogues(dialogues, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_nothing_to_break_with_is_said():
    lonely = [Dialogue("a", (Turn("S", "hello", "agent"), Turn("U", "yes", "user")))]
    with pytest.raises(NotEnoughData, match="no other text by the user"):
        fake_dialogues(lonely, np.random.default_rng(0))
    silent = [Dialogue("a", (Turn("S", "hello", "agent"),))]
    with pytest.raises(NotEnoughData, match="has no turn by the user"):
        fake_dialogues(silent, np.random.default_rng(0))


def test_every_dialogue_once_an_epoch():
    tokens = [object()] * 103
    ratings = np.arange(103.0) % 5
    for lesson in (
        AllPairs(tokens, ratings, 20),
        Regression(tokens, ratings, 20),
        Classes(tokens, ratings, (0.0, 1.0, 2.0, 3.0, 4.0), 20),
    ):
        groups = lesson.groups(np.random.default_rng(0))
        assert sorted(np.concatenate([group.rows for group in groups])) == list(range(103))
        assert max(len(group.rows) for group in groups) <= 20
    assert len(AllPairs(tokens, ratings, 0).groups(np.random.default_rng(0))) == 1


def test_losses_of_the_baselines():
    ratings = np.array([1.0, 3.0, 5.0, 5.0])
    outputs = torch.randn(4, 1)
    (group,) = Regression([None] * 4, ratings, 4).groups(np.random.default_rng(0))
    scaled = (ratings - ratings.mean()) / ratings.std()
    expected = np.mean((outputs[:, 0].numpy() - scaled[group.rows]) ** 2)
    assert float(group.loss(outputs)) == pytest.approx(expected, rel=1e-5)
    outputs = torch.randn(4, 3)
    (group,) = Classes([None] * 4, ratings, (1.0, 3.0, 5.0), 4).groups(np.random.default_rng(0))
    wanted = torch.tensor([0, 1, 2, 2])[torch.from_numpy(group.rows)]
    assert float(group.loss(outputs)) == pytest.approx(float(functional.cross_entropy(outputs, wanted)))


def test_pairs_share_the_output_of_their_dialogue():
    pairs = real_fake_pairs(10)
    groups = Pairs([None] * 30, pairs, group_size=12, together=2).groups(np.random.default_rng(0))
    assert len(groups) == 3
    assert sorted(np.concatenate([group.rows for group in groups])) == list(range(30))
    group = groups[0]
    outputs = torch.randn(len(group.rows), 1)
    value = dict(zip(group.rows.tolist(), outputs[:, 0], strict=True))
    inside = [(a, b) for a, b in pairs.tolist() if a in value]
    expected = torch.stack([functional.softplus(value[b] - value[a]) for a, b in inside]).mean()
    assert float(group.loss(outputs)) == pytest.approx(float(expected), rel=1e-5)


def test_interleaved_lessons_keep_their_own_dialogues():
    first, second = ["a"] * 8, ["b"] * 6
    both = Interleaved(AllPairs(first, np.arange(8.0), 4), Pairs(second, np.array([[0, 1], [2, 3], [4, 5]]), 4))
    groups = both.groups(np.random.default_rng(0))
    assert len(groups) == 4
    kinds = [{both.tokens[row] for row in group.rows} for group in groups]
    assert all(len(kind) == 1 for kind in kinds)
    assert sorted(np.concatenate([group.rows for group in groups])) == list(range(14))
