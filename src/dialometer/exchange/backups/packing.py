"""A backup as a zip: the study's database as one SQLite file, the files of its folder, and a manifest with their hashes."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from dialometer._version import __version__
from dialometer.errors import DialometerError, StorageError
from dialometer.exchange.exports.export_folder import MANIFEST as EXPORT_MANIFEST
from dialometer.exchange.exports.export_folder import sha256_of
from dialometer.folder_files import is_file
from dialometer.model.file_names import DATABASE_FILE
from dialometer.readers.containers.unpacking import DAMAGED, Allowance, read_entry, stays_inside, unpack
from dialometer.recruit.platforms.invite import INVITATIONS_FILE
from dialometer.storage.database import open_database
from dialometer.storage.safety.acknowledged import ACKNOWLEDGED_FILE
from dialometer.storage.safety.copying import copy_to_file
from dialometer.storage.safety.files import INDEX, LOG, TURNS
from dialometer.storage.schema import VERSION_TABLE

MANIFEST = "backup.json"
MARK = "dialometer_backup"
"""Key by which a manifest is known as ours; its value is the version of the format."""
FORMAT_VERSION = 1
FILES = "files/"
"""Where a backup holds the files of the folder."""
MAX_MANIFEST_BYTES = 16 * 2**20
SECRET_NAMES = frozenset({INVITATIONS_FILE})
SECRET_ENDS = (".env", ".key", ".pem")
ASIDE = "before-restore-"
"""How folders begin into which a restore moves what was there."""
COUNTS = {
    "sessions": "SELECT count(*) FROM sessions",
    "judgments": "SELECT count(*) FROM judgments",
    "answers": "SELECT count(*) FROM answers",
    "screens": "SELECT count(*) FROM submissions",
}
"""What a backup says it holds; every version of the tables has these."""


def make_backup(
    folder: Path,
    database: str,
    target: Path,
    at: datetime,
    *,
    with_secrets: bool,
    kind: Literal["study", "accounts"] = "study",
) -> dict[str, Any]:
    """Write a backup and check it; gives its manifest. It appears whole or not at all. Servers may go on writing.

    The ``accounts`` of a dashboard of several studies are a database alone, without the files of the folder.
    """
    if target.exists():
        raise DialometerError("there is a file already", where=str(target), remedy="name another with --to")
    part = target.with_name(f".{target.name}.part")
    try:
        with TemporaryDirectory(prefix=".backup-", dir=target.parent) as inside:
            copy = Path(inside) / DATABASE_FILE
            source = open_database(database or folder / DATABASE_FILE, create=False)
            try:
                dialect = source.engine.dialect.name
                copy_to_file(source, copy)
            finally:
                source.close()
            files, secrets = folder_files(folder) if kind == "study" else ([], [])
            held = files + secrets if with_secrets else files
            manifest = {
                MARK: FORMAT_VERSION,
                "dialometer": __version__,
                "folder": folder.resolve().name,
                "made_at": at.astimezone(UTC).isoformat(timespec="seconds"),
                "database": dialect,
                "kind": kind,
                **contents(copy),
                "left_out": [] if with_secrets else [name.as_posix() for name in secrets],
                "files": {
                    DATABASE_FILE: sha256_of(copy),
                    **{FILES + name.as_posix(): sha256_of(folder / name) for name in held},
                },
            }
            entries = {DATABASE_FILE: copy, **{FILES + name.as_posix(): folder / name for name in held}}
            _pack(part, manifest, entries)
        _check(part, manifest)
        part.replace(target)
    except OSError as error:
        raise DialometerError(
            f"the backup cannot be written: {error.strerror}",
            where=str(target),
            remedy="check that the folder can be written and the disk has room, or name another file with --to",
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return manifest


def folder_files(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files of a study's folder that belong into a backup, and those of them that hold secrets; relative names.

    Not in a backup: the database itself, hidden files, what an earlier restore moved aside, other zip files, and exports and
    reports, which can be made again.
    """
    files: list[Path] = []
    secrets: list[Path] = []
    ours = {DATABASE_FILE, ACKNOWLEDGED_FILE, *(f"{DATABASE_FILE}{end}" for end in (LOG, INDEX, TURNS))}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if any(part.startswith((".", ASIDE)) for part in name.parts) or not path.is_file() or path.is_symlink():
            continue
        if name.as_posix() in ours or path.suffix == ".zip" or _is_made(folder, name):
            continue
        (secrets if path.name in SECRET_NAMES or path.suffix in SECRET_ENDS else files).append(name)
    return files, secrets


def _is_made(folder: Path, name: Path) -> bool:
    above = [folder / parent for parent in name.parents if parent.parts]
    return any((parent / file_name).is_file() for parent in above for file_name in (EXPORT_MANIFEST, "report.json"))


def contents(copy: Path) -> dict[str, Any]:
    """What a copied database holds; raises when the copy is damaged."""
    with closing(sqlite3.connect(f"file:{copy}?mode=ro", uri=True)) as connection:
        try:
            problems = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            if problems:
                raise StorageError(
                    f"the copied database is damaged: {problems[0]}",
                    remedy="see 'dialometer verify'; an earlier backup may be whole",
                )
            revision = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()  # nosec B608  # our own name
            counts = {name: connection.execute(query).fetchone()[0] for name, query in COUNTS.items()}
            study = connection.execute("SELECT name FROM study_versions ORDER BY id DESC LIMIT 1").fetchone()
            last_ms = connection.execute("SELECT max(at_ms) FROM submissions").fetchone()[0]
        except sqlite3.Error as error:
            raise StorageError(
                f"the database cannot be read: {error}", where=str(copy), remedy="see 'dialometer verify'"
            ) from error
    last = datetime.fromtimestamp(last_ms / 1000, UTC).isoformat(timespec="seconds") if last_ms else None
    return {
        "study": study[0] if study else None,
        "revision": revision[0] if revision else None,
        "holds": counts,
        "last_screen_at": last,
    }


def _pack(part: Path, manifest: dict[str, Any], entries: dict[str, Path]) -> None:
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # it names raters
    with os.fdopen(handle, "wb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
            archive.writestr(MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
            for name, path in entries.items():
                archive.write(path, name)
        file.flush()
        os.fsync(file.fileno())


def _check(part: Path, manifest: dict[str, Any]) -> None:
    """What was written is what was meant to be written; a file that changed in between is found here, too."""
    with zipfile.ZipFile(part) as packed:
        for name, sha256 in manifest["files"].items():
            digest = hashlib.sha256()
            with packed.open(name) as entry:
                while chunk := entry.read(2**20):
                    digest.update(chunk)
            if digest.hexdigest() != sha256:
                raise DialometerError(
                    f"{name} changed while the backup was made, or the disk returns something else than was written",
                    where=str(part),
                    remedy="try again",
                )


@contextmanager
def opened_backup(file: Path, near: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The content of a backup, unpacked beside ``near``, and its manifest; a changed or foreign file is refused."""
    if not file.is_file():
        raise DialometerError("there is no such file", where=str(file), remedy="check the path of the backup")
    with TemporaryDirectory(prefix=".restore-", dir=near) as inside:
        folder = Path(inside)
        try:
            with zipfile.ZipFile(file) as packed:
                manifest = _unpack(packed, file, folder)
        except DAMAGED as error:
            raise DialometerError(
                f"the backup cannot be opened: {error}", where=str(file), remedy="copy it again, or use another one"
            ) from error
        for name, sha256 in manifest["files"].items():
            if not is_file(folder / name) or sha256_of(folder / name) != sha256:
                raise DialometerError(
                    f"{name} is not as it was written", where=str(file), remedy="copy it again, or use another one"
                )
        held = contents(folder / DATABASE_FILE)
        if held["holds"] != manifest["holds"]:
            raise DialometerError("the database does not hold what the backup says", where=str(file))
        yield folder, manifest


def _unpack(packed: zipfile.ZipFile, file: Path, folder: Path) -> dict[str, Any]:
    allowance = Allowance(file, math.inf)
    names = {entry.filename: entry for entry in packed.infolist()}
    is_small = MANIFEST in names and names[MANIFEST].file_size <= MAX_MANIFEST_BYTES
    manifest: Any = None
    with suppress(ValueError, RecursionError):
        manifest = json.loads(read_entry(packed, MANIFEST, allowance)) if is_small else None
    if not _is_manifest(manifest):
        raise DialometerError(
            "this is not a backup of a study", where=str(file), remedy="make one with 'dialometer backup DIR'"
        )
    if manifest[MARK] != FORMAT_VERSION:
        raise DialometerError(
            f"the backup has the format {manifest[MARK]}, this version of dialometer knows {FORMAT_VERSION}",
            where=str(file),
            remedy=f"install dialometer {manifest.get('dialometer', '')}",
        )
    unpack(packed, [names[name] for name in manifest["files"] if name in names], folder, allowance)
    return dict(manifest)


def _is_manifest(manifest: Any) -> bool:
    return (
        isinstance(manifest, dict)
        and MARK in manifest
        and isinstance(manifest.get("holds"), dict)
        and isinstance(manifest.get("files"), dict)
        and DATABASE_FILE in manifest["files"]
        and all(name == DATABASE_FILE or (name.startswith(FILES) and stays_inside(name)) for name in manifest["files"])
    )
