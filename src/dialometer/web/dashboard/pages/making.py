"""Making a study in the browser: template, items, texts, check, freeze. What counts are the files on disk."""

from __future__ import annotations

import contextlib
import io
import json
import re
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from starlette.responses import FileResponse, JSONResponse, Response

from dialometer.design.differences import differences
from dialometer.design.load import load_study
from dialometer.design.lock import LOCK_FILE, freeze
from dialometer.design.protocol import protocol
from dialometer.design.templates import TemplateAbout, all_about_templates, copy_template, template_folder
from dialometer.design.versions import (
    SavedMeanwhile,
    Versions,
    hash_of,
    merged,
    refuse_frozen,
    write_whole,
)
from dialometer.errors import DialometerError
from dialometer.exchange.own_systems.study_from_outputs import study_from_outputs
from dialometer.flow.study_check import without_errors
from dialometer.folder_files import MAX_ITEMS_BYTES, FileRefused, is_file, read_inside
from dialometer.model.file_names import STUDY_FILE
from dialometer.readers.containers.encodings import UTF8, encoding_of
from dialometer.readers.recordings import copy_media
from dialometer.readers.study_media import media_files
from dialometer.storage.controls import FROZEN
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.running_studies import NoStudy, study_files
from dialometer.web.dashboard.translating import explained, translated, translated_count
from dialometer.web.server.requests import small_number

_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,80}\.(yaml|jsonl|json|md|txt|csv)")


def is_own_file(name: str) -> bool:
    """Whether a name can be that of a file of a study; never a path, never the lock."""
    return bool(_FILE.fullmatch(name)) and ".." not in name and name != LOCK_FILE


def check_own_file(name: str) -> None:
    """Refuses a name that cannot be that of a file of a study."""
    if not is_own_file(name):
        raise DialometerError(
            f"'{name[:80]}' cannot be a file of a study",
            remedy="letters, digits, - and _, ending in .yaml, .jsonl, .md, .txt, .json or .csv",
        )


def plain_file_name(name: str, fallback: str) -> str:
    """What an uploaded file is called here: its own name without folders and odd characters, as short as file systems want."""
    plain = re.sub(r"[^\w.\-]", "_", Path(name).name)[-80:].lstrip(".")
    return plain.encode()[-200:].decode(errors="ignore") or fallback


def as_utf8(content: bytes, name: str) -> bytes:
    """A text of any encoding that the readers know, as UTF-8 without a mark: pages show and edit what is stored."""
    try:
        encoding = encoding_of(io.BytesIO(content))
        return content.decode("utf-8-sig" if encoding == UTF8 else encoding).encode()
    except UnicodeError as error:
        raise DialometerError(f"'{name}' is not text in a known encoding", remedy="save it as UTF-8") from error


def content_of(folder: Path, name: str) -> bytes:
    """A file of a draft as it is, empty where there is none; a link that leads out of the folder is refused."""
    if not is_file(folder / name):
        return b""
    try:
        return read_inside(folder, name, MAX_ITEMS_BYTES)
    except FileRefused as error:
        raise DialometerError(error.message, where=name, remedy=error.remedy) from error


def text_of(folder: Path, name: str) -> str:
    """The same as text. Somebody may have put it there by hand, in any encoding."""
    try:
        return content_of(folder, name).decode()
    except UnicodeDecodeError as error:
        raise DialometerError("it is not UTF-8 text", where=name, remedy="save it as UTF-8") from error


def give_name(folder: Path, name: str, title: str) -> None:
    """Sets the name, and the title if there is one, in a copied study.yaml; comments and the rest stay as they are."""
    path = folder / STUDY_FILE
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^name:.*$", lambda _: f"name: {name}", text, count=1, flags=re.MULTILINE)
    if title:
        quoted = json.dumps(title, ensure_ascii=False)
        text = re.sub(r"^title:.*(?:\n[ \t]+\S.*)*$", lambda _: f"title: {quoted}", text, count=1, flags=re.MULTILINE)
    write_whole(path, text.encode())


def copy_study(source: Path, target: Path) -> None:
    """Copies the files of a study into a new folder, without its lock and its data."""
    target.mkdir(parents=True)
    for path in study_files(source):
        if path.name != LOCK_FILE:
            shutil.copyfile(path, target / path.name)
    with contextlib.suppress(DialometerError):  # a study with mistakes is copied all the same
        copy_media(media_files(load_study(source)), source, target)


MOST_LINES = 400
"""Lines of a difference that a page shows."""
MAX_SHOWN = 400_000
"""Longer files are uploaded and downloaded, not edited in a page."""


@page("/new", role="editor")
def new(dashboard: Dashboard, request: PageRequest) -> Response:
    """The templates to choose from."""
    templates = dashboard.cache.get("templates", _templates)
    folders = dashboard.studies.folders
    return dashboard.show(
        "new.html", request, templates=templates, names=folders.names(), may_grow=folders.may_grow, tab="new"
    )


def _templates() -> list[tuple[TemplateAbout, str]]:
    about = [
        (template, load_study(template_folder(template.name)).spec.description) for template in all_about_templates()
    ]
    return [(one, " ".join(description.split())) for one, description in about]


@page("/new/{template}.webp", role="editor")
def picture(_dashboard: Dashboard, request: PageRequest) -> Response:
    """What raters see in a template's study."""
    name = request.params["template"]
    file = next((template.picture for template in all_about_templates() if template.name == name), None)
    if file is None:
        raise NoStudy("there is no such picture")
    return FileResponse(file, headers={"cache-control": "private, max-age=86400"})


@page("/new", role="editor", method="POST")
def make(dashboard: Dashboard, request: PageRequest) -> Response:
    """A new folder with a copy of a template, or of another study without its data."""
    name, title = request.form.get("name", "").strip(), request.form.get("title", "").strip()
    target = dashboard.studies.folders.new_folder(name)
    template, _, source = request.form.get("from", "").partition(":")
    own = [request.files[field] for field in OWN_FILES if request.files.get(field, ("", b""))[1]]
    notes: list[str] = []
    if template == "study":
        copy_study(dashboard.studies.folders.folder(source), target)
    elif own:
        notes = _from_own_files(source, own, request.form.get("columns", ""), target)
    elif template == "empty":
        make_empty(target)
    else:
        copy_template(source, target)
    give_name(target, name, title[:200])
    dashboard.note(request, "made the study", f"from {template} {source}", study=name)
    said = [translated("Made the study {1}. Go through the steps; everything can be changed later.", name)]
    return dashboard.redirect(
        f"/studies/{name}/form/study", request, " ".join([*said, *(f"{explained(note)}." for note in notes)])
    )


EMPTY = """# Made in the dashboard, from nothing.
dialometer: 1
name: study
title: My study
seed: {seed}
systems: []
items:
  kind: responses
  file: items.jsonl
scales: {{}}
criteria: []
"""


def make_empty(target: Path) -> None:
    """A study that says nothing yet, with texts that hardly any study can do without, to be rewritten."""
    copy_template("compare", target)
    (target / "items.jsonl").unlink()
    write_whole(target / STUDY_FILE, EMPTY.format(seed=secrets.randbelow(1_000_000)).encode())


OWN_FILES = ("own_1", "own_2")
"""Fields with what somebody's own systems said: one file with a column for each system, or one file for each of two."""


def _from_own_files(template: str, given: Sequence[tuple[str, bytes]], columns: str, target: Path) -> list[str]:
    """A study of somebody's own systems, made as ``dialometer new --responses`` makes it; returns what was assumed."""
    with tempfile.TemporaryDirectory() as place:
        files = []
        for number, (name, content) in enumerate(given):
            files.append(Path(place) / str(number) / plain_file_name(name, f"file_{number + 1}"))
            files[-1].parent.mkdir()
            files[-1].write_bytes(content)
        try:
            systems = [name.strip() for name in columns.split(",") if name.strip()]
            return study_from_outputs(template, files, target, systems=systems)[1]
        except DialometerError as error:
            remedy = error.remedy.replace("--systems ", "columns that are systems: ")
            raise DialometerError(error.message, where=Path(error.where).name, remedy=remedy) from error


@page("/studies/{study}/files", role="viewer")
def files(dashboard: Dashboard, request: PageRequest) -> Response:
    """The study's files, and every problem with file, line and remedy, as on the command line."""
    return _page(dashboard, request)


@page("/studies/{study}/files/{file}", role="viewer")
def file(dashboard: Dashboard, request: PageRequest) -> Response:
    """One file to read or edit."""
    path = next((path for path in _files(dashboard, request) if path.name == request.params["file"]), None)
    if path is None:
        raise NoStudy("there is no such file", remedy="go back to the list of files")
    text = path.read_text(encoding="utf-8", errors="replace")
    return _page(
        dashboard,
        request,
        open_file=path.name,
        text=text if len(text) <= MAX_SHOWN else None,
        base=hash_of(path.read_bytes()),
    )


def _files(dashboard: Dashboard, request: PageRequest) -> list[Path]:
    """Editors see all files of a study; viewers those without invitations, names of people and other secrets."""
    studies = dashboard.studies
    if request.may("editor"):
        return study_files(studies.folders.folder(request.study))
    return studies.shared_files(request.study)


def _page(
    dashboard: Dashboard,
    request: PageRequest,
    *,
    open_file: str = "",
    text: str | None = "",
    base: str = "",
    saved_by: str = "",
    changes: Sequence[tuple[str, str]] = (),
) -> Response:
    studies = dashboard.studies
    study, problems = studies.checked(request.study)
    n_errors = sum(problem.severity == "error" for problem in problems)
    is_frozen = studies.folders.is_frozen(request.study)
    return dashboard.show(
        "files.html",
        request,
        study=request.study,
        spec=study.spec if study else None,
        files=[(path.name, path.stat().st_size) for path in _files(dashboard, request)],
        problems=problems,
        n_errors=n_errors,
        is_frozen=is_frozen,
        may_edit=request.may("editor") and not is_frozen and not studies.folders.is_named(request.study),
        is_open=studies.is_open(request.study),
        numbers=protocol(study) if study and not n_errors else None,
        open_file=open_file,
        text=text,
        base=base,
        saved_by=saved_by,
        changes=changes,
        n_versions=len(Versions(studies.folders.folder(request.study)).all()) if request.may("editor") else 0,
        line=_line(request),
        tab="files",
    )


def _line(request: PageRequest) -> int:
    """The line that the address asks for, 0 for none."""
    return small_number(request.query.get("line", "")) or 0


@page("/studies/{study}/files", role="editor", method="POST")
def save(dashboard: Dashboard, request: PageRequest) -> Response:
    """Saves an edited file, or files that were uploaded."""
    folder = editable_folder(dashboard, request)
    versions = Versions(folder)
    written: list[str] = []
    said = ""
    name, text = request.form.get("file", ""), request.form.get("text")
    if name and text is not None:
        check_own_file(name)
        text = text.replace("\r\n", "\n")
        try:
            said = save_edited(versions, folder / name, text, request, request.form.get("base", ""))
        except SavedMeanwhile:
            return both_changed(dashboard, request, name, text)
        written.append(name)
    for field, (own_name, content) in request.files.items():
        if content:
            target = request.form.get(f"{field}_as", "") or own_name
            check_own_file(target)
            versions.save(target, as_utf8(content, target), request.account.name, request.at_ms)
            written.append(target)
    if not written:
        raise DialometerError("there was nothing to save", remedy="choose a file first")
    dashboard.note(request, "wrote files", ", ".join(written))
    n_errors = sum(problem.severity == "error" for problem in dashboard.studies.checked(request.study)[1])
    state = translated("{1} to fix.", translated_count(n_errors, "problem")) if n_errors else translated("No errors.")
    message = " ".join(part for part in (translated("Saved {1}.", ", ".join(written)), said, state) if part)
    where = f"/studies/{request.study}/files" + (f"/{name}" if name else "")
    step = request.form.get("step", "")
    if step.isascii() and step.isalpha():  # saved beside the form, which goes on
        where = f"/studies/{request.study}/form/{step}"
    return dashboard.redirect(where, request, message)


def save_edited(versions: Versions, path: Path, text: str, request: PageRequest, base: str) -> str:
    """Saves a text, together with what somebody else saved meanwhile; returns what there is to say about that."""
    try:
        versions.save(path.name, text.encode(), request.account.name, request.at_ms, base)
    except SavedMeanwhile:
        before = versions.content(base)
        if before is None or not path.is_file():
            raise
        theirs = text_of(path.parent, path.name)
        both = merged(before.decode(errors="replace"), text, theirs)
        if both is None:
            raise
        versions.save(path.name, both.encode(), request.account.name, request.at_ms, hash_of(theirs.encode()))
        return translated(
            "{1} changed it while you edited it; it holds both changes now.", who_saved(versions, path.name)
        )
    return ""


def who_saved(versions: Versions, name: str) -> str:
    """Who saved a file last, in words where it was changed on disk."""
    last = versions.newest(name)
    return last.by if last and last.by else translated("Somebody")


def both_changed(dashboard: Dashboard, request: PageRequest, name: str, text: str) -> Response:
    """Two people changed the same lines: nothing is saved yet, nothing is lost, and the reader decides."""
    folder = dashboard.studies.folders.folder(request.study)
    theirs = content_of(folder, name)
    response = _page(
        dashboard,
        request,
        open_file=name,
        text=text,
        base=hash_of(theirs) if theirs else "",
        saved_by=who_saved(Versions(folder), name),
        changes=changed_lines(theirs.decode(errors="replace"), text),
    )
    response.status_code = 409
    return response


def changed_lines(before: str, after: str) -> list[tuple[str, str]]:
    """What differs between two texts, for reading: a sign (+, −, or none) and the line."""
    old, new = before.splitlines(), after.splitlines()
    matcher: Any = SequenceMatcher(None, (), ())
    matcher.opcodes = differences(old, new)  # what it would find, within limits
    lines: list[tuple[str, str]] = []
    for group in matcher.get_grouped_opcodes(2):
        lines.append(("…", ""))
        for kind, i, j, k, m in group:
            if kind == "equal":
                lines += [("", line) for line in old[i:j]]
            else:
                lines += [("−", line) for line in old[i:j]] + [("+", line) for line in new[k:m]]
    return lines[:MOST_LINES] + (
        [("…", translated("{1} more lines", f"{len(lines) - MOST_LINES:,}"))] if len(lines) > MOST_LINES else []
    )


@page("/studies/{study}/files/{file}/editing", role="editor", method="POST")
def editing(dashboard: Dashboard, request: PageRequest) -> Response:
    """A sign of life of somebody who edits a file; the answer says who else does, and who saved it meanwhile."""
    folder = editable_folder(dashboard, request)
    name = request.params["file"]
    check_own_file(name)
    versions = Versions(folder)
    others = versions.editing(name, request.account.name, request.at_ms)
    path = folder / name
    is_changed = not path.is_file() or hash_of(path.read_bytes()) != request.form.get("base", "")
    return JSONResponse({"others": others, "saved_by": who_saved(versions, name) if is_changed else None})


@page("/studies/{study}/files/{file}/delete", role="editor", method="POST")
def delete(dashboard: Dashboard, request: PageRequest) -> Response:
    """Removes a file from a draft."""
    folder = editable_folder(dashboard, request)
    name = request.params["file"]
    if not is_own_file(name) or not (folder / name).is_file():
        raise NoStudy("there is no such file", remedy="go back to the list of files")
    Versions(folder).save(name, None, request.account.name, request.at_ms)
    dashboard.note(request, "removed a file", name)
    return dashboard.redirect(f"/studies/{request.study}/files", request, translated("Removed {1}.", name))


@page("/studies/{study}/freeze", role="editor", method="POST")
def freeze_study(dashboard: Dashboard, request: PageRequest) -> Response:
    """Freezes a draft that has no errors; from then on it is not changed, and waits to be started."""
    folder = editable_folder(dashboard, request)
    with Versions(folder).locked():  # nobody saves between the check and the lock
        study = without_errors(*dashboard.studies.checked(request.study))
        version = freeze(study, folder, datetime.now(UTC))
    try:
        running = dashboard.studies.running(request.study)
    except DialometerError:
        (folder / LOCK_FILE).unlink()  # what cannot be opened stays a draft, so that it can be fixed
        raise
    running.store.control.set_state("paused", by=request.account.name, reason=FROZEN, at_ms=request.at_ms)
    dashboard.note(request, "froze the study", version["fingerprint"][:12])
    dashboard.cache.clear()
    message = translated("Frozen. Raters can come as soon as you start it.")
    return dashboard.redirect(f"/studies/{request.study}/control", request, message)


def editable_folder(dashboard: Dashboard, request: PageRequest) -> Path:
    """The folder of a draft that may be changed here."""
    folders = dashboard.studies.folders
    folder = folders.folder(request.study)
    refuse_frozen(folder)
    if folders.is_named(request.study):
        raise DialometerError(
            "this study was opened to raters on the command line", remedy="change its folder and start the server again"
        )
    return folder
