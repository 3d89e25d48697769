import hashlib
import json
from datetime import UTC, datetime, timedelta

import pytest

from dialometer.design.load import load_study
from dialometer.design.lock import (
    LATER,
    LOCK_FILE,
    NEVER,
    declared_at,
    fingerprint,
    freeze,
    part_hashes,
    read_lock,
    verify,
)
from dialometer.design.templates import copy_template, template_folder
from dialometer.errors import LockError

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path):
    copy_template("likert", tmp_path / "s")
    return tmp_path / "s"


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_an_unchanged_study_passes(folder):
    study = load_study(folder)
    assert verify(study, folder) is None
    version = freeze(study, folder, NOW)
    assert version["version"] == 1
    assert verify(load_study(folder), folder) == version
    assert freeze(load_study(folder), folder, NOW) == version
    assert len(read_lock(folder)) == 1


def test_comments_and_spaces_are_no_change(folder):
    freeze(load_study(folder), folder, NOW)
    path = folder / "study.yaml"
    path.write_text("# a remark\n" + path.read_text())
    assert verify(load_study(folder), folder)["version"] == 1


@pytest.mark.parametrize(
    ("file", "name"),
    [("study.yaml", "study.yaml: seed"), ("items.jsonl", "items.jsonl: "), ("consent.md", "consent.md")],
)
def test_changes_are_named(folder, file, name):
    study = load_study(folder)
    freeze(study, folder, NOW)
    if file == "study.yaml":
        edit(folder / file, f"seed: {study.spec.seed}", f"seed: {study.spec.seed + 1}")
    elif file == "items.jsonl":
        text = study.items[0].context[0].text
        edit(folder / file, text[:12], text[:12] + "x")
    else:
        (folder / file).write_text((folder / file).read_text() + "\nMore.\n")
    changed = load_study(folder)
    with pytest.raises(LockError, match="changed: " + name) as caught:
        verify(changed, folder)
    assert "--new-version" in str(caught.value)
    with pytest.raises(LockError):
        freeze(changed, folder, NOW)
    version = freeze(changed, folder, NOW, is_new_version=True)
    assert version["version"] == 2
    assert verify(changed, folder)["version"] == 2
    assert [v["version"] for v in read_lock(folder)] == [1, 2]


def test_the_order_of_items_counts(folder):
    study = load_study(folder)
    freeze(study, folder, NOW)
    lines = (folder / "items.jsonl").read_text().splitlines()
    (folder / "items.jsonl").write_text("\n".join(reversed(lines)) + "\n")
    with pytest.raises(LockError, match="order of items"):
        verify(load_study(folder), folder)


def test_a_broken_lock_is_told(folder):
    (folder / LOCK_FILE).write_text("{}")
    with pytest.raises(LockError, match="cannot be read"):
        verify(load_study(folder), folder)


def test_fingerprints_are_stable_over_loads(folder):
    assert fingerprint(load_study(folder)) == fingerprint(load_study(folder))


def test_settings_that_came_later_do_not_change_older_locks(tmp_path):
    """The hashes of design and presentation as they were before tasks and anchors by criterion could be declared."""
    copy_template("likert", tmp_path / "s")
    study = load_study(tmp_path / "s")
    plain = part_hashes(study)
    edit(tmp_path / "s" / "study.yaml", "design:\n", "presentation: {task: ''}\n\ndesign:\n")
    assert part_hashes(load_study(tmp_path / "s")) == plain
    declared = json.loads(study.spec.model_dump_json())
    for key in LATER["presentation"]:
        del declared["presentation"][key]
        for factor in declared["design"]["factors"]:
            for level in factor["levels"]:
                del level["set"][key]
        for block in declared["design"]["blocks"]:
            del block["set"][key]
    for part in ("analysis", "design"):
        for key in LATER[part]:
            del declared[part][key]
    for comparison in declared["analysis"]["comparisons"]:
        if not comparison["expected"]:
            del comparison["expected"]
    for key in ("presentation", "design", "analysis"):
        text = json.dumps(declared[key], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        assert plain[f"study.yaml: {key}"] == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("template", "part", "digest"),
    [
        ("acute", "study.yaml: criteria", "f8b8462a7c4021453d67ffc54955991ef3f2f2d1c53b1d70dcc257d04dae651e"),
        ("acute", "study.yaml: scales", "08a1033bfa9f8e265f97724ffbc9f159c5a02896d38a95e6f51403f47e60e400"),
        ("acute", "study.yaml: quality", "37451986831ff1f50595f437279048f3a0239b47dbb461a92cb1071672644e0b"),
        ("likert", "study.yaml: quality", "b78379080b08f86075e51cddc53bdacd844a1ffeab456e2a8cccefb4ed906b9c"),
        ("strategies", "study.yaml: scales", "237ea54d66efb8975625668ac2c5069b5133266299193b44f4d2a9c2def2c61e"),
        (
            "strategies",
            "study.yaml: post_questionnaire",
            "e5a99dcf3481f2aac7a65cff08d4aca2028f666b64e2a7f3e3f822ca8a43e3e9",
        ),
        ("avatar", "items.jsonl: practice-1", "74fdd530e14d93e8d4618155d2350ee659ec72393fd263756accd4a57158ba47"),
    ],
)
def test_parts_have_the_hashes_that_version_0_1_0_wrote(template, part, digest):
    """Fields that came since (both bad, points of checklists, tool calls, media) do not change studies without them."""
    assert part_hashes(load_study(template_folder(template)))[part] == digest


def test_fields_of_items_that_came_later_do_not_change_older_locks(folder):
    """An item's hash as it was before tool calls, media and system prompts could be given."""
    study = load_study(folder)
    item = study.items[0]
    turns = [{"speaker": turn.speaker, "text": turn.text, "role": turn.role} for turn in item.context]
    content = {
        "id": item.id,
        "context": turns,
        "responses": dict(item.responses),
        "standard": item.standard,
        "block": item.block,
        "metadata": dict(item.metadata),
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert part_hashes(study)[f"items.jsonl: {item.id}"] == hashlib.sha256(text.encode()).hexdigest()


def test_since_when_the_analysis_is_declared(folder):
    """A new version with the same analysis was declared with the first; one with another analysis is declared anew."""
    assert declared_at(load_study(folder)) is None
    freeze(load_study(folder), folder, NOW)
    assert declared_at(load_study(folder)) == NOW
    edit(folder / "consent.md", "the", "our")
    assert declared_at(load_study(folder)) is None, "it is not what was frozen"
    freeze(load_study(folder), folder, NOW + timedelta(days=1), is_new_version=True)
    assert declared_at(load_study(folder)) == NOW
    edit(folder / "study.yaml", "correction: holm", "correction: none")
    freeze(load_study(folder), folder, NOW + timedelta(days=2), is_new_version=True)
    assert declared_at(load_study(folder)) == NOW + timedelta(days=2)


def test_a_lock_made_for_an_archive_declares_nothing(folder):
    freeze(load_study(folder), folder, NEVER)
    assert declared_at(load_study(folder)) is None
