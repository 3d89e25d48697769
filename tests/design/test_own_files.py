"""Paths in a study file stay in the study's folder: who edits a study is not the administrator of the machine."""

import os

import pytest

from dialometer import folder_files
from dialometer.design.load import check_study
from dialometer.design.templates import copy_template
from dialometer.folder_files import FileRefused, read_inside


@pytest.fixture
def folder(tmp_path):
    copy_template("likert", tmp_path / "study")
    return tmp_path / "study"


NAMED = [
    ("items: {kind: responses,", " file: PLACE}"),
    ("texts:", "  debriefing: PLACE"),
    ("presentation:", "  instructions: PLACE"),
    ("quality: [{rule: block_list,", " file: PLACE}]"),
]


@pytest.mark.parametrize("place", ["/dev/zero", "/etc/passwd", "../beside.txt", "link.txt", "pipe", "."])
@pytest.mark.parametrize(("first", "second"), NAMED, ids=["items", "texts", "presentation", "block list"])
def test_only_regular_files_of_the_study_are_opened(folder, first, second, place):
    (folder.parent / "beside.txt").write_text("a secret\n", encoding="utf-8")
    (folder / "link.txt").symlink_to(folder.parent / "beside.txt")
    os.mkfifo(folder / "pipe")
    path = folder / "study.yaml"
    key = first.split(":")[0]
    kept = path.read_text(encoding="utf-8").split("\n")
    start = next((i for i, line in enumerate(kept) if line.startswith(f"{key}:")), None)
    if start is not None:  # the template's own entry goes
        end = next(i for i in range(start + 1, len(kept)) if kept[i][:1].strip())
        del kept[start:end]
    text = "\n".join(kept).rstrip() + f"\n{first}\n{second.replace('PLACE', place)}\n"
    path.write_text(text, encoding="utf-8")
    found = [p for p in check_study(folder)[1] if f"'{place}' cannot be read" in p.message]
    assert [(p.file, p.line) for p in found] == [("study.yaml", len(text.splitlines()))]
    assert found[0].remedy
    assert "a secret" not in str(found)


def test_lists_of_raters_stay_inside_too(folder):
    path = folder / "study.yaml"
    text = path.read_text(encoding="utf-8")
    assert "\nrecruitment:\n" in text
    path.write_text(
        text.replace("\nrecruitment:\n", "\nrecruitment:\n  qualifications: {block_list: /dev/zero}\n"),
        encoding="utf-8",
    )
    (found,) = [p for p in check_study(folder)[1] if "/dev/zero" in p.message and p.severity == "error"]
    assert "outside the study's folder" in found.message
    assert found.line


def test_a_file_may_not_be_larger_than_its_limit(folder):
    with (folder / "items.jsonl").open("r+b") as file:
        file.truncate(folder_files.MAX_ITEMS_BYTES + 1)  # sparse: takes no space on the disk
    (found,) = [p for p in check_study(folder)[1] if "items.jsonl" in p.message]
    assert found.message == "the items file 'items.jsonl' cannot be read: it is larger than 512 MiB"
    assert (found.file, bool(found.line)) == ("study.yaml", True)


def test_a_name_that_no_file_can_have_is_refused(tmp_path):
    for name in ("a\0b", "x" * 5000, "loop"):
        if name == "loop":
            (tmp_path / "loop").symlink_to("loop")
        with pytest.raises(FileRefused):
            read_inside(tmp_path, name, 10)
