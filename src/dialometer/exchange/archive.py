"""One zip that holds a study, its data and its results: the same content always gives the same bytes."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from dialometer.errors import DialometerError

MANIFEST = "archive.json"
MARK = "dialometer_archive"
"""Key by which a manifest is known as ours; its value is the version of the form."""
FORM = 1
STUDY, DATA, REPORT = "study", "data", "report"
"""The folders of an archive."""
_MOMENT = (1980, 1, 1, 0, 0, 0)
"""The one time that all entries have: a zip would otherwise differ from run to run."""
MAX_FILE_BYTES = 2**31
MAX_FILES = 10_000


def write_archive(folder: Path, target: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Pack a folder, with a manifest that holds the hash of each file; the archive appears whole or not at all."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    hashes = {path.relative_to(folder).as_posix(): _sha256(path) for path in files}
    manifest = {MARK: FORM, **about, "files": hashes}
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    part = target.with_name(target.name + ".part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
            _add(made, MANIFEST, text.encode())
            for path in files:
                _add(made, path.relative_to(folder).as_posix(), path.read_bytes())
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise DialometerError(
            f"the archive cannot be written: {error.strerror or error}",
            where=str(target),
            remedy="check that the folder may be written and the disk is not full",
        ) from error
    return manifest


@contextmanager
def opened_archive(path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The content of an archive in a temporary folder, and its manifest; a changed or foreign archive is refused."""
    with TemporaryDirectory(prefix="dialometer-archive-") as name:
        folder = Path(name)
        try:
            with zipfile.ZipFile(path) as packed:
                _check_entries(packed, path)
                packed.extractall(folder)
        except (OSError, zipfile.BadZipFile) as error:
            raise DialometerError(
                f"the archive cannot be opened: {error}", where=str(path), remedy="copy it again"
            ) from error
        manifest = _manifest(folder, path)
        changed = [name for name, told in manifest["files"].items() if not _is_as_told(folder / name, told)]
        if changed:
            raise DialometerError(
                f"{len(changed)} files of the archive are not as they were written: {', '.join(changed[:5])}",
                where=str(path),
                remedy="copy the archive again from where you have it",
            )
        yield folder, manifest


def is_archive(path: Path) -> bool:
    """Whether a path is a zip file and not a study's folder."""
    return path.is_file() and zipfile.is_zipfile(path)


def _add(made: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _MOMENT)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    made.writestr(entry, content)


def _check_entries(packed: zipfile.ZipFile, path: Path) -> None:
    """Entries that would land elsewhere, or fill the disk, are refused before anything is written."""
    entries = packed.infolist()
    for entry in entries:
        name = PurePosixPath(entry.filename)
        is_outside = name.is_absolute() or ".." in name.parts or "\\" in entry.filename or ":" in entry.filename
        if is_outside or entry.file_size > MAX_FILE_BYTES or len(entries) > MAX_FILES:
            raise DialometerError(
                f"the archive holds an entry that none of ours has: {entry.filename!r}",
                where=str(path),
                remedy="use an archive that 'dialometer archive' wrote",
            )


def _manifest(folder: Path, path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        manifest = None
    if not isinstance(manifest, dict) or MARK not in manifest or not isinstance(manifest.get("files"), dict):
        raise DialometerError(
            "this zip is no archive of a study", where=str(path), remedy="make one with 'dialometer archive DIR'"
        )
    if manifest[MARK] != FORM:
        raise DialometerError(
            f"the archive has the form {manifest[MARK]}, this version of dialometer knows {FORM}",
            where=str(path),
            remedy=f"install dialometer {manifest.get('dialometer', '')}",
        )
    return manifest


def _is_as_told(path: Path, told: object) -> bool:
    return path.is_file() and _sha256(path) == told


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
