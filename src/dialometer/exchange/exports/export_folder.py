"""The folder of an export: it appears whole or not at all, and nothing that somebody else wrote is overwritten."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dialometer.errors import DialometerError

MANIFEST = "export.json"
MARK = "dialometer_export"
"""Key by which a manifest is known as ours; its value is the version of the folder's format."""
FORMAT_VERSION = 1


def sha256_of(path: Path) -> str:
    """The hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of an export, None where the folder holds none of ours."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    is_ours = isinstance(manifest, dict) and MARK in manifest and isinstance(manifest.get("files"), dict)
    return manifest if is_ours else None


def changed_files(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """Files of an export that are missing or no longer as they were written."""
    return [name for name, entry in manifest["files"].items() if not _is_as_written(folder, name, entry)]


def _is_as_written(folder: Path, name: str, entry: Any) -> bool:
    """Whether a file is there with the same content; a name that is no plain one is none of an export's."""
    if not isinstance(entry, dict) or not name or "\x00" in name or Path(name).name != name or len(name) > 200:
        return False
    try:
        return (folder / name).is_file() and sha256_of(folder / name) == entry.get("sha256")
    except (OSError, ValueError):
        return False


class ExportFolder:
    """Files are written under a temporary name beside the target; :meth:`finish` puts them in place.

    A new folder appears with one rename. In an existing one the files are replaced one by one and the manifest, which
    holds the hash of each, last: a folder that was left half way never looks whole.
    """

    def __init__(self, target: Path, *, force: bool = False) -> None:
        self.target = target
        self._part = target.parent / f".{target.name}.{secrets.token_hex(4)}.part"
        self._earlier = _check_target(target, force=force)

    def __enter__(self) -> Self:
        self._part.mkdir(parents=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._part, ignore_errors=True)

    def path(self, name: str) -> Path:
        """Where to write a file of the export."""
        return self._part / name

    def finish(self, manifest: dict[str, Any], n_rows: dict[str, int]) -> dict[str, Any]:
        """Put everything in place and write the manifest, completed with hash, size and rows of each file."""
        written = sorted(path.name for path in self._part.iterdir())
        files = {name: self._describe(name, n_rows) for name in written}
        manifest = {MARK: FORMAT_VERSION, **manifest, "files": files}
        text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
        self.path(MANIFEST).write_text(text, encoding="utf-8")
        if not self.target.exists():
            self._part.rename(self.target)
            return manifest
        for name in (*written, MANIFEST):
            self.path(name).replace(self.target / name)
        for name in self._earlier:
            if name not in files:
                (self.target / name).unlink(missing_ok=True)
        return manifest

    def _describe(self, name: str, n_rows: dict[str, int]) -> dict[str, Any]:
        path = self.path(name)
        rows = {"n_rows": n_rows[name]} if name in n_rows else {}
        return {**rows, "n_bytes": path.stat().st_size, "sha256": sha256_of(path)}


def _check_target(target: Path, *, force: bool) -> list[str]:
    """The files of an earlier export in this place; anything else there is refused unless ``force``."""
    if target.exists() and not target.is_dir():
        raise DialometerError("this is a file, an export is a folder", where=str(target), remedy="choose another --out")
    if not target.exists() or not any(target.iterdir()):
        return []
    manifest = read_manifest(target)
    earlier = [name for name in manifest["files"] if Path(name).name == name] if manifest else []
    if force:
        return earlier
    if manifest is None:
        raise DialometerError(
            "this folder was not written by an export and is not empty",
            where=str(target),
            remedy="choose another folder with --out, or add the export to what is there with --force",
        )
    changed = [name for name in changed_files(target, manifest) if (target / name).exists()]
    if changed:
        raise DialometerError(
            f"{', '.join(changed)} was changed after it was exported",
            where=str(target),
            remedy="keep your version under another name or choose another --out; --force overwrites it",
        )
    return earlier
