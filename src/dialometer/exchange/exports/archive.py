"""One zip that holds a study, its data and its results: the same content always gives the same bytes."""

from __future__ import annotations

import json
import platform
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dialometer._version import __version__
from dialometer.design.edit_yaml import yaml_text
from dialometer.design.load import load_study
from dialometer.design.lock import LOCK_FILE, NEVER, freeze, read_lock
from dialometer.design.positions import parse_yaml
from dialometer.errors import DialometerError
from dialometer.exchange.exports.export_folder import sha256_of
from dialometer.folder_files import is_file
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.study import Study
from dialometer.quality.block_list import BlockList
from dialometer.readers.containers.unpacking import DAMAGED, Allowance, read_entry, stays_inside, unpack
from dialometer.readers.recordings import copy_media
from dialometer.readers.study_media import media_files

MANIFEST = "archive.json"
MARK = "dialometer_archive"
"""Key by which a manifest is known as ours; its value is the version of the format."""
FORMAT_VERSION = 1
STUDY, DATA, REPORT = "study", "data", "report"
"""The folders of an archive."""
_MOMENT = (1980, 1, 1, 0, 0, 0)
"""The one time that all entries have: a zip would otherwise differ from run to run."""
MAX_FILE_BYTES = 2**31
MAX_FILES = 10_000
MAX_MANIFEST_BYTES = 16 * 2**20


def write_archive(folder: Path, target: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Pack a folder, with a manifest that holds the hash of each file; the archive appears whole or not at all."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    hashes = {path.relative_to(folder).as_posix(): sha256_of(path) for path in files}
    manifest = {MARK: FORMAT_VERSION, **about, "files": hashes}
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    part = target.with_name(target.name + ".part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            _add(archive, MANIFEST, text.encode())
            for path in files:
                _add(archive, path.relative_to(folder).as_posix(), path.read_bytes())
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
                manifest = _unpack(packed, path, folder)
        except (OSError, *DAMAGED) as error:
            raise DialometerError(
                f"the archive cannot be opened: {error}", where=str(path), remedy="copy it again"
            ) from error
        changed = [
            name
            for name, sha256 in manifest["files"].items()
            if not is_file(folder / name) or sha256_of(folder / name) != sha256
        ]
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


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _MOMENT)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)


def _unpack(packed: zipfile.ZipFile, path: Path, folder: Path) -> dict[str, Any]:
    """Unpacks what the manifest lists, and returns it. A foreign zip is refused before anything of it is unpacked."""
    allowance = Allowance(path)
    _check_entries(packed, path)
    names = {entry.filename: entry for entry in packed.infolist()}
    is_small = MANIFEST in names and names[MANIFEST].file_size <= MAX_MANIFEST_BYTES
    manifest = _manifest(read_entry(packed, MANIFEST, allowance) if is_small else b"", path)
    unpack(packed, [names[name] for name in manifest["files"] if name in names], folder, allowance)
    return manifest


def _check_entries(packed: zipfile.ZipFile, path: Path) -> None:
    """Entries that would land elsewhere, or fill the disk, are refused before anything is written."""
    entries = packed.infolist()
    for entry in entries:
        if not stays_inside(entry.filename) or entry.file_size > MAX_FILE_BYTES or len(entries) > MAX_FILES:
            raise DialometerError(
                f"the archive holds an entry that none of ours has: {entry.filename!r}",
                where=str(path),
                remedy="use an archive that 'dialometer archive' wrote",
            )


def _manifest(content: bytes, path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or MARK not in manifest or not isinstance(manifest.get("files"), dict):
        raise DialometerError(
            "this zip is not an archive of a study", where=str(path), remedy="make one with 'dialometer archive DIR'"
        )
    if manifest[MARK] != FORMAT_VERSION:
        raise DialometerError(
            f"the archive has the format {manifest[MARK]}, this version of dialometer knows {FORMAT_VERSION}",
            where=str(path),
            remedy=f"install dialometer {manifest.get('dialometer', '')}",
        )
    return manifest


# the files of an archive: nothing in them names a rater

WITHHELD = "# Names of raters are not in the archive.\n"
PACKAGES = (
    *("dialometer", "numpy", "scipy", "statsmodels", "polars", "pandas", "evalica", "krippendorff"),
    *("pydantic", "pyyaml", "sqlalchemy", "altair", "vl-convert-python", "jinja2"),
)
"""Packages on which numbers or files of a report depend."""


def copy_study(study: Study, target: Path) -> tuple[Study, dict[str, Any]]:
    """Copy what makes the study what it is, and say in what state it was; returns the study as it stands there."""
    assert study.folder is not None
    target.mkdir(parents=True)
    for name in (STUDY_FILE, study.spec.items.file, *study.texts, *study.translation_files):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(study.folder / name, target / name)
    copy_media(media_files(study), study.folder, target)
    withheld = _withhold_block_lists(study, target)
    versions = read_lock(study.folder)
    if versions and not withheld:
        shutil.copyfile(study.folder / LOCK_FILE, target / LOCK_FILE)
    copied = load_study(target)
    if not (target / LOCK_FILE).exists():
        frozen_at = datetime.fromisoformat(versions[-1]["frozen_at"]) if versions else NEVER
        freeze(copied, target, frozen_at)
    about = {
        "was_frozen": bool(versions),
        "frozen_at": versions[-1]["frozen_at"] if versions else None,
        "version": versions[-1]["version"] if versions else None,
        "withheld": withheld,
    }
    return copied, about


def _withhold_block_lists(study: Study, target: Path) -> list[str]:
    """Lists of allowed and blocked raters name people, and no number depends on them."""
    rules = [rule for rule in study.spec.quality if isinstance(rule, BlockList)]
    lists = study.spec.recruitment.qualifications
    withheld = [name for name in (*(rule.file for rule in rules), lists.allow_list, lists.block_list) if name]
    for name in withheld:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(WITHHELD, encoding="utf-8")
    if any(rule.raters for rule in rules):
        content = parse_yaml((target / STUDY_FILE).read_text(encoding="utf-8"), STUDY_FILE).data
        for declared in content["quality"]:
            if declared.get("rule") == rules[0].rule:
                declared["raters"] = []
        (target / STUDY_FILE).write_text(WITHHELD + yaml_text(content), encoding="utf-8")
        withheld.append(STUDY_FILE)
    return withheld


def citation(study: Study, *, version: str, released: str) -> str:
    """A CITATION.cff (version 1.2.0) for the study and its data."""
    spec = study.spec
    authors = spec.authors or [spec.contact or f"The authors of the study {spec.name}"]
    content: dict[str, Any] = {
        "cff-version": "1.2.0",
        "message": "If you use these data, please cite them as below.",
        "type": "dataset",
        "title": spec.title,
        "authors": [_author(name) for name in authors],
        "version": version,
    }
    if spec.description:
        content["abstract"] = " ".join(spec.description.split())
    if released:
        content["date-released"] = released
    if spec.licence:
        content["license"] = spec.licence
    content["keywords"] = ["dialogue evaluation", "human evaluation"]
    return yaml_text(content)


def _author(name: str) -> dict[str, str]:
    """``Family, Given`` is a person; anything else stands as it is."""
    family, comma, given_names = name.partition(",")
    return {"family-names": family.strip(), "given-names": given_names.strip()} if comma else {"name": name.strip()}


def environment() -> dict[str, Any]:
    """The software on which a report was made."""
    return {
        "dialometer": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "machine": platform.machine(),
        "system": platform.system(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
    }


def requirements(packages: dict[str, str]) -> str:
    """The packages as a requirements file, to install the same again."""
    return "".join(f"{name}=={version}\n" for name, version in packages.items())


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def readme(study: Study, *, archive: str, sources: Sequence[str], about: dict[str, Any]) -> str:
    """What the archive holds, and how to get its numbers again."""
    frozen = (
        f"It was frozen as version {about['version']} on {about['frozen_at']}."
        if about["was_frozen"]
        else "It was not frozen before data were collected."
    )
    withheld = (
        f"\nExcluded because they name raters: {', '.join(about['withheld'])}. No number depends on them.\n"
        if about["withheld"]
        else ""
    )
    return f"""# {study.spec.title}

{study.spec.description.strip() or "A study made with dialometer."}

| folder | what it holds |
|---|---|
| `study/` | the study as raters saw it: design, items, texts, and the lock that proves them unchanged. {frozen} |
| `data/` | judgments, answers, sessions, screens and flags under pseudonyms; `data_dictionary.md` explains every column |
| `report/` | the analysis as a page (`index.html`), Markdown, JSON and one CSV file per table |
| `environment.json`, `requirements.txt` | the software on which the report was made |
| `CITATION.cff` | how to cite the data |
| `archive.json` | the hash of every file, and the settings of the analysis |

The report is about raters of these sources: {", ".join(sources)}.
{withheld}
To get the same numbers, install dialometer {__version__} and run

    dialometer report {archive}

It analyses the data again and compares every table with those in `report/`, byte for byte.
"""
