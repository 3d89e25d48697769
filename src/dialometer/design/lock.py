"""Freezing a study: a lock that holds the hash of everything that decides the result, so that later changes show.

The lock file keeps every version. A study that was frozen and then changed is refused with the names of what changed;
to change it on purpose, make a new version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from dialometer.errors import LockError
from dialometer.folder_files import MAX_ITEMS_BYTES, FileRefused, read_text_inside
from dialometer.model.study import Study, translation_file
from dialometer.readers.study_media import media_files

LOCK_FILE = "study.lock.json"
MAX_LOCK_BYTES = MAX_ITEMS_BYTES
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""The time in the lock of an archived study that was never frozen."""
LATER: dict[str, tuple[str, ...]] = {
    "adjudication": (),
    "arena": (),
    "analysis": ("bins", "judges", "looks", "spending", "stop"),
    "authors": (),
    "design": ("assignment", "hold_minutes", "people_rate", "systems_per_item"),
    "items": ("translated",),
    "judges": (),
    "languages": (),
    "licence": (),
    "live": (),
    "privacy": (),
    "presentation": ("anchor_values", "task", "text", "fold_words", "system_prompt", "tools", "word_count"),
    "recruitment": (
        "description",
        "screen_out_pay_cents",
        "preset",
        "screen_out_url",
        "qualifications",
        "signed",
        "arrivals_per_minute",
    ),
}
"""Settings (keys of study.yaml, and of what stands under them) that came after the first locks were written.

Where a study leaves them out they do not count, so that it is still the study that was frozen.
"""
LATER_FIELDS = frozenset({"recording", "tool_calls", "media", "system_prompt", "system_prompts"})
"""The same for the fields of items and their turns."""
LATER_OPTIONS: Mapping[str, Any] = {
    "allow_both_bad": False,
    "language": "",
    "point": "",
    "reason": None,
    "reason_question": "",
    "source": "",
}
"""The same for options of scales, criteria, questions and quality rules: what they are where a study leaves them out."""


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def part_hashes(study: Study) -> dict[str, str]:
    """A hash for each part of the study: every key of study.yaml, every item, every text."""
    parts = {f"study.yaml: {key}": _digest(value) for key, value in _declared(study).items()}
    for item in study.items:
        content: dict[str, Any] = _without_later(asdict(item))
        content.pop("line")
        parts[f"{study.spec.items.file}: {item.id}"] = _digest(content)
    for name, text in study.texts.items():
        parts[name] = _digest(text)
    for language, translations in study.translations.items():
        parts[translation_file(language)] = _digest({key: asdict(entry) for key, entry in translations.items()})
    if study.folder is not None:
        for name in media_files(study):
            place = study.folder / name
            parts[name] = _file_digest(place, place.stat().st_mtime_ns) if place.is_file() else "missing"
    return parts


def _without_later(content: Any) -> Any:
    """An item without the fields that came after the first locks were written, where they are empty."""
    if isinstance(content, list | tuple):
        return [_without_later(part) for part in content]
    if not isinstance(content, dict):
        return content
    return {
        key: value if key == "metadata" else _without_later(value)
        for key, value in content.items()
        if value or key not in LATER_FIELDS
    }


@lru_cache(maxsize=10_000)
def _file_digest(place: Path, _changed_ns: int) -> str:
    """Of a media file; worked out again only where the file has changed."""
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _declared(study: Study) -> dict[str, Any]:
    """What the study file declares, defaults included, without later settings that it leaves as they are."""
    whole = study.spec.model_dump(mode="json")
    changed = study.spec.model_dump(mode="json", exclude_defaults=True)
    for key, fields in LATER.items():
        if not fields and key not in changed:
            del whole[key]
        for field in fields:
            if field not in changed.get(key, {}):
                del whole[key][field]
    for part in (*_levels(whole), *whole["design"]["blocks"]):
        for field in LATER["presentation"]:
            if part["set"][field] is None:
                del part["set"][field]
    for key in ("scales", "criteria", "quality", "judges", "screening", "pre_questionnaire", "post_questionnaire"):
        whole[key] = _without_options(whole.get(key, []))
    if "judges" not in changed:
        del whole["judges"]
    for question in (*whole["screening"], *whole["pre_questionnaire"], *whole["post_questionnaire"]):
        if not question["label"]:
            del question["label"]
    for comparison in whole["analysis"]["comparisons"]:
        if not comparison["expected"]:
            del comparison["expected"]
    return whole


def _without_options(content: Any) -> Any:
    """Scales, criteria or rules without the options of :data:`LATER_OPTIONS` that say nothing."""
    if isinstance(content, list):
        return [_without_options(part) for part in content]
    if not isinstance(content, dict):
        return content
    return {
        key: _without_options(value)
        for key, value in content.items()
        if key not in LATER_OPTIONS or value != LATER_OPTIONS[key]
    }


def _levels(declared: dict[str, Any]) -> list[dict[str, Any]]:
    return [level for factor in declared["design"]["factors"] for level in factor["levels"]]


def fingerprint(study: Study) -> str:
    """One hash for the whole study; spaces, comments and the order of keys in the files do not matter."""
    return _digest({**part_hashes(study), "item order": [item.id for item in study.items]})


def read_lock(folder: Path) -> list[dict[str, Any]]:
    """All versions in the lock file, oldest first; empty when the study was never frozen."""
    path = folder / LOCK_FILE
    if not path.exists():
        return []
    try:
        content = json.loads(read_text_inside(folder, LOCK_FILE, MAX_LOCK_BYTES).removeprefix("\ufeff"))
    except (ValueError, RecursionError, FileRefused) as error:
        raise _unreadable(str(error)) from error
    versions = content.get("versions") if isinstance(content, dict) else None
    if not isinstance(versions, list) or not versions or not all(map(_is_version, versions)):
        raise _unreadable("it holds no versions of a study")
    return versions


def _is_version(entry: Any) -> bool:
    """Whether an entry has what a version is compared and shown by."""
    if not isinstance(entry, dict) or not isinstance(entry.get("parts"), dict):
        return False
    return isinstance(entry.get("fingerprint"), str) and {"version", "frozen_at"} <= set(entry)


def declared_at(study: Study) -> datetime | None:
    """Since when the declared analysis has been frozen as it is; None where no frozen version of the study holds it."""
    versions = read_lock(study.folder) if study.folder else []
    if not versions or changes(study, versions[-1]):
        return None
    *earlier, newest = versions
    since = newest["frozen_at"]
    for version in reversed(earlier):
        if version.get("analysis") != newest.get("analysis"):
            break
        since = version["frozen_at"]
    at = datetime.fromisoformat(since)
    return None if at == NEVER else at


def _unreadable(why: str) -> LockError:
    return LockError(f"the lock file cannot be read ({why})", where=LOCK_FILE, remedy="restore it from your records")


def changes(study: Study, version: dict[str, Any]) -> list[str]:
    """What differs between the study and a frozen version, one line each."""
    now, then = part_hashes(study), version["parts"]
    lines = [f"changed: {name}" for name in now if name in then and now[name] != then[name]]
    lines += [f"added: {name}" for name in now if name not in then]
    lines += [f"removed: {name}" for name in then if name not in now]
    if not lines and fingerprint(study) != version["fingerprint"]:
        lines.append(f"changed: {study.spec.items.file}: the order of items")
    return lines


def freeze(study: Study, folder: Path, at: datetime, *, is_new_version: bool = False) -> dict[str, Any]:
    """Writes the lock. An unchanged study keeps its version; a changed one needs ``is_new_version``."""
    versions = read_lock(folder)
    if versions:
        differing = changes(study, versions[-1])
        if not differing:
            return versions[-1]
        if not is_new_version:
            raise _changed(versions[-1], differing)
    version = {
        "version": len(versions) + 1,
        "study": study.spec.name,
        "frozen_at": at.isoformat(timespec="seconds"),
        "fingerprint": fingerprint(study),
        "seed": study.spec.seed,
        "analysis": _digest(study.spec.analysis.model_dump(mode="json")),
        "parts": part_hashes(study),
    }
    text = json.dumps({"versions": [*versions, version]}, indent=1, ensure_ascii=False) + "\n"
    part = folder / (LOCK_FILE + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(folder / LOCK_FILE)
    return version


def verify(study: Study, folder: Path) -> dict[str, Any] | None:
    """The version the study stands at, None if it was never frozen; raises :class:`LockError` when it was changed since."""
    versions = read_lock(folder)
    if not versions:
        return None
    differing = changes(study, versions[-1])
    if differing:
        raise _changed(versions[-1], differing)
    return versions[-1]


def _changed(version: dict[str, Any], differing: list[str]) -> LockError:
    shown = "\n".join(f"  {line}" for line in differing[:20])
    more = f"\n  … and {len(differing) - 20} more" if len(differing) > 20 else ""
    return LockError(
        f"the study was frozen as version {version['version']} on {version['frozen_at']} and has changed since:\n{shown}{more}\n",
        remedy="restore the files, or make a new version with 'dialometer freeze DIR --new-version'",
    )
