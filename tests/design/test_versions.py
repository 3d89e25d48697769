"""Versions of a study's files: nothing that was saved is lost, and two people's changes come together."""

import random
import shutil
import subprocess

import pytest

from dialometer.design.versions import (
    FOLDER,
    LOG,
    ON_DISK,
    BothChanged,
    SavedMeanwhile,
    Versions,
    hash_of,
    merged,
    merged_values,
)


def test_what_was_there_before_is_kept(tmp_path):
    (tmp_path / "study.yaml").write_text("seed: 1\n")
    versions = Versions(tmp_path)
    assert versions.all() == []
    versions.save("study.yaml", b"seed: 2\n", "ada", 1000)
    versions.save("study.yaml", b"seed: 2\n", "bob", 2000)
    versions.save("study.yaml", None, "bob", 3000)
    kept = versions.all()
    assert [(one.number, one.by, bool(one.content)) for one in kept] == [
        (1, ON_DISK, True),
        (2, "ada", True),
        (3, "bob", False),
    ], "the same content again is no version"
    assert versions.content(kept[0].content) == b"seed: 1\n"
    assert not (tmp_path / "study.yaml").exists()


def test_a_change_on_disk_is_kept_before_it_is_written_over(tmp_path):
    versions = Versions(tmp_path)
    versions.save("a.md", b"one", "ada", 1000)
    (tmp_path / "a.md").write_bytes(b"by hand")
    versions.save("a.md", b"two", "ada", 2000)
    assert [versions.content(one.content) for one in versions.all()] == [b"one", b"by hand", b"two"]


def test_nothing_is_written_over_what_came_meanwhile(tmp_path):
    versions = Versions(tmp_path)
    versions.save("a.md", b"one", "ada", 1000)
    versions.save("a.md", b"two", "bob", 2000)
    with pytest.raises(SavedMeanwhile):
        versions.save("a.md", b"three", "ada", 3000, base=hash_of(b"one"))
    assert (tmp_path / "a.md").read_bytes() == b"two"


def test_a_line_of_the_log_that_was_cut_off_is_left_out(tmp_path):
    versions = Versions(tmp_path)
    versions.save("a.md", b"one", "ada", 1000)
    with (tmp_path / FOLDER / LOG).open("a") as log:
        log.write('{"file": "a.m')
    assert len(versions.all()) == 1


def test_who_else_edits(tmp_path):
    versions = Versions(tmp_path)
    assert versions.editing("a.md", "ada", 1_000_000) == []
    assert versions.editing("b.md", "cem", 1_000_000) == []
    assert versions.editing("a.md", "bob", 1_005_000) == ["ada"]
    assert versions.editing("a.md", "bob", 1_100_000) == [], "ada has gone"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("seed", range(25))
def test_merging_equals_that_of_git(tmp_path, seed):
    draw = random.Random(seed)
    base = [f"line {number}\n" for number in range(12)]

    def changed():
        lines = list(base)
        for _ in range(draw.randint(1, 2)):
            at = draw.randrange(len(lines))
            lines[at : at + draw.randint(0, 2)] = [f"new {draw.random()}\n"] * draw.randint(0, 2)
        return "".join(lines)

    texts = {"mine": changed(), "base": "".join(base), "theirs": changed()}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    ran = subprocess.run(
        ["git", "merge-file", "-p", "mine", "base", "theirs"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert merged(texts["base"], texts["mine"], texts["theirs"]) == (ran.stdout if ran.returncode == 0 else None)


def test_values_of_two_people_are_put_together():
    base = {"a": 1, "b": {"c": 1, "d": 2}, "e": [{"f": 1}, {"f": 2}], "gone": 1}
    mine = {"a": 1, "b": {"c": 5, "d": 2}, "e": [{"f": 9}, {"f": 2}], "gone": 1, "new": 1}
    theirs = {"a": 2, "b": {"c": 1, "d": 6}, "e": [{"f": 1}, {"f": 8}]}
    both = {"a": 2, "b": {"c": 5, "d": 6}, "e": [{"f": 9}, {"f": 8}], "new": 1}
    assert merged_values(base, mine, theirs) == both
    assert merged_values(base, base, theirs) == theirs
    assert merged_values(base, mine, mine) == mine


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "places", "is_structural"),
    [
        ({"a": 1}, {"a": 2}, {"a": 3}, ["a"], False),
        ({"a": {"b": [1]}}, {"a": {"b": [1, 2]}}, {"a": {"b": [3]}}, ["a.b"], False),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, {"a": [{"b": 2}]}, ["a"], True),
        ({"a": {"b": 1}}, {}, {"a": {"b": 2}}, ["a"], True),
    ],
)
def test_values_that_both_changed_are_named(base, mine, theirs, places, is_structural):
    with pytest.raises(BothChanged) as error:
        merged_values(base, mine, theirs)
    assert error.value.places == places
    assert error.value.is_structural == is_structural
    assert error.value.value == mine
