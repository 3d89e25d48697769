"""Splits that a corpus was published with: kept as they are, and what they share is counted."""

import json

import numpy as np
import pytest

from commands import result_of
from dialometer.errors import DialometerError
from dialometer.generators.corpus import SPLITS
from dialometer.generators.preparing import Preparation, prepare_corpus

KEPT = Preparation(n_tokens=300, n_topics=0, near_duplicate=0.8, keeps_splits=True)
RNG = np.random.default_rng(4)
WORDS = [f"word{k}" for k in range(200)]


def a_dialogue():
    return [" ".join(RNG.choice(WORDS, 8)) for _ in range(3)]


def written(path, dialogues, split=None):
    lines = []
    for number, turns in enumerate(dialogues):
        about = {} if split is None else {"split": split(number)}
        lines.append(json.dumps({"id": f"d{number}", "turns": turns, **about}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def three_files(tmp_path):
    """12 to train on, 5 to validate, 6 to test; 2 of the test and 1 of the validation are in the training, 1 test twice."""
    train = [a_dialogue() for _ in range(10)]
    train += [train[0], train[1]]  # two copies within the training
    almost = [[*train[3][:2], train[3][2].rsplit(" ", 1)[0] + " other"]]
    test = [a_dialogue() for _ in range(3)]
    test += [test[0], train[2], *almost]
    valid = [a_dialogue() for _ in range(4)] + [train[5]]
    parts = {"reddit_train.jsonl": train, "reddit_valid.jsonl": valid, "reddit.TEST.jsonl": test}
    return [written(tmp_path / name, dialogues) for name, dialogues in parts.items()]


def test_files_named_after_splits_are_those_splits(three_files, tmp_path):
    corpus = prepare_corpus(three_files, tmp_path / "c", KEPT)
    n_kept = {name: corpus.about["splits"][name]["dialogues"] for name in SPLITS}
    assert n_kept == {"train": 10, "validation": 5, "test": 6}  # copies go from the training alone
    published = corpus.about["published_splits"]
    assert published["told_by"] == {
        "train": {"reddit_train.jsonl": 12},
        "validation": {"reddit_valid.jsonl": 5},
        "test": {"reddit.TEST.jsonl": 6},
    }
    shared = {(row["part"], row["also_in"]): (row["n"], row["n_near"], row["n_same"]) for row in published["leakage"]}
    assert shared == {
        ("validation", "train"): (5, 1, 1),
        ("test", "train"): (6, 2, 1),
        ("test", "validation"): (6, 0, 0),
    }
    assert corpus.about["removed"]["training dialogues nearly equal to another"] == 2


def test_leaked_training_dialogues_can_be_excluded(three_files, tmp_path):
    options = Preparation(n_tokens=300, n_topics=0, keeps_splits=True, excludes_leaks=True)
    corpus = prepare_corpus(three_files, tmp_path / "c", options)
    assert {name: corpus.about["splits"][name]["dialogues"] for name in SPLITS} == {
        "train": 7,
        "validation": 5,
        "test": 6,
    }
    assert not {"d2", "d3", "d5"} & set(corpus.split("train").ids)
    assert corpus.about["removed"]["training dialogues nearly equal to one of validation or test"] == 3


def test_a_field_says_the_split_of_each_dialogue(tmp_path):
    dialogues = [a_dialogue() for _ in range(9)]
    path = written(tmp_path / "all.jsonl", dialogues, lambda n: ("Training", "dev", "test")[n % 3])
    corpus = prepare_corpus([path], tmp_path / "c", KEPT)
    assert corpus.split("validation").ids == ["d1", "d4", "d7"]
    assert corpus.about["published_splits"]["told_by"]["test"] == {"all.jsonl, field 'split'": 3}
    drawn = prepare_corpus(
        [path], tmp_path / "d", Preparation(n_tokens=300, n_topics=0, validation_share=0.3, test_share=0.3)
    )
    assert drawn.about["published_splits"] is None
    assert drawn.about["n_published_splits_not_kept"] == 9


def test_validation_is_drawn_from_the_training_where_none_was_published(tmp_path):
    train = written(tmp_path / "train.jsonl", [a_dialogue() for _ in range(40)])
    test = written(tmp_path / "test.jsonl", [a_dialogue() for _ in range(5)])
    options = Preparation(n_tokens=300, n_topics=0, keeps_splits=True, validation_share=0.2)
    corpus = prepare_corpus([train, test], tmp_path / "c", options)
    n_drawn = corpus.about["published_splits"]["n_validation_drawn"]
    assert corpus.about["splits"]["test"]["dialogues"] == 5
    assert corpus.about["splits"]["validation"]["dialogues"] == n_drawn > 0
    assert corpus.about["splits"]["train"]["dialogues"] == 40 - n_drawn


@pytest.mark.parametrize(
    ("name", "split", "words"),
    [
        ("plain.jsonl", None, "nothing says which split this dialogue belongs to"),
        ("train.jsonl", None, "no dialogue is of the split 'test'"),
        ("all.jsonl", "tain", "'tain' is not a split"),
        ("test.jsonl", "train", "the file's name says 'test' and its field 'split' says 'train'"),
        ("train_test.jsonl", None, "says two splits: test and train"),
    ],
)
def test_splits_that_are_not_clear_are_refused(tmp_path, name, split, words):
    path = written(tmp_path / name, [a_dialogue(), a_dialogue()], split and (lambda _: split))
    with pytest.raises(DialometerError, match=words):
        prepare_corpus([path], tmp_path / "c", KEPT)
    assert not (tmp_path / "c").exists()


def test_the_command_says_where_splits_come_from_and_what_leaks(three_files, tmp_path):
    def said(*options):
        arguments = ["bots", "prepare", *map(str, three_files), "--tokens", "300", "--topics", "0", *options]
        done = result_of(*arguments)
        assert done.exit_code == 0, done.output
        return " ".join(done.stdout.split())

    out = said("--keep-splits", "--out", str(tmp_path / "a"))
    assert "Splits as published: train from reddit_train.jsonl (12)" in out
    assert (
        "2 of 6 test dialogues are in train (33.3%; 1 with the same words), 0 of 6 test dialogues are in validation."
        in out
    )
    assert "--exclude-leaks" in out
    out = said("--out", str(tmp_path / "b"), "--validation", "0.3", "--test", "0.3")
    assert "23 dialogues have a published split, which was not kept." in out
