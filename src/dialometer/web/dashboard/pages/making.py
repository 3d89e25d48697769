"""Making a study in the browser: template, items, texts, check, freeze. What counts are the files on disk."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from starlette.responses import Response

from dialometer.design.load import STUDY_FILE, load_study
from dialometer.design.lock import LOCK_FILE, freeze
from dialometer.design.protocol import protocol
from dialometer.design.templates import copy_template, template_folder, template_names
from dialometer.errors import DialometerError
from dialometer.flow.study_check import without_errors
from dialometer.readers.encodings import UTF8, encoding_of
from dialometer.readers.recordings import copy_media
from dialometer.readers.study_media import media_files
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page, plural
from dialometer.web.dashboard.running_studies import NoStudy, study_files

_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,80}\.(yaml|jsonl|json|md|txt|csv)")


def is_own_file(name: str) -> bool:
    """Whether a name can be that of a file of a study; never a path, never the lock."""
    return bool(_FILE.fullmatch(name)) and ".." not in name and name != LOCK_FILE


def write_file(folder: Path, name: str, content: bytes) -> None:
    """Writes one file; a reader finds the old content or the new one, never half of it."""
    if not is_own_file(name):
        raise DialometerError(
            f"'{name[:80]}' cannot be a file of a study",
            remedy="letters, digits, - and _, ending in .yaml, .jsonl, .md, .txt, .json or .csv",
        )
    content = as_utf8(content, name)
    handle, part = tempfile.mkstemp(prefix=".", suffix=".part", dir=folder)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(content)
        Path(part).chmod(0o644)
        Path(part).replace(folder / name)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def as_utf8(content: bytes, name: str) -> bytes:
    """A text of any encoding that the readers know, as UTF-8 without a mark: pages show and edit what is stored."""
    try:
        encoding = encoding_of(io.BytesIO(content))
        return content.decode("utf-8-sig" if encoding == UTF8 else encoding).encode()
    except UnicodeError as error:
        raise DialometerError(f"'{name}' is no text in a known encoding", remedy="save it as UTF-8") from error


def give_name(folder: Path, name: str, title: str) -> None:
    """Sets the name, and the title if there is one, in a copied study.yaml; comments and the rest stay as they are."""
    path = folder / STUDY_FILE
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^name:.*$", lambda _: f"name: {name}", text, count=1, flags=re.MULTILINE)
    if title:
        quoted = json.dumps(title, ensure_ascii=False)
        text = re.sub(r"^title:.*(?:\n[ \t]+\S.*)*$", lambda _: f"title: {quoted}", text, count=1, flags=re.MULTILINE)
    write_file(folder, STUDY_FILE, text.encode())


def copy_study(source: Path, target: Path) -> None:
    """Copies the files of a study into a new folder, without its lock and its data."""
    target.mkdir(parents=True)
    for path in study_files(source):
        if path.name != LOCK_FILE:
            shutil.copyfile(path, target / path.name)
    with contextlib.suppress(DialometerError):  # a study with mistakes is copied all the same
        copy_media(media_files(load_study(source)), source, target)


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


def _templates() -> list[tuple[str, str, str]]:
    specs = [(name, load_study(template_folder(name)).spec) for name in template_names()]
    return [(name, spec.title, " ".join(spec.description.split())) for name, spec in specs]


@page("/new", role="editor", method="POST")
def make(dashboard: Dashboard, request: PageRequest) -> Response:
    """A new folder with a copy of a template, or of another study without its data."""
    name, title = request.form.get("name", "").strip(), request.form.get("title", "").strip()
    target = dashboard.studies.folders.new_folder(name)
    template, _, source = request.form.get("from", "").partition(":")
    if template == "study":
        copy_study(dashboard.studies.folders.folder(source), target)
    else:
        copy_template(source, target)
    give_name(target, name, title[:200])
    dashboard.note(request, "made the study", f"{name} from {template} {source}")
    return dashboard.redirect(
        f"/studies/{name}/files", request, f"Made the study {name}. Edit its files, then check them."
    )


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
    return _page(dashboard, request, open_file=path.name, text=text if len(text) <= MAX_SHOWN else None)


def _files(dashboard: Dashboard, request: PageRequest) -> list[Path]:
    """Editors see all files of a study; viewers those without invitations, names of people and other secrets."""
    studies = dashboard.studies
    if request.may("editor"):
        return study_files(studies.folders.folder(request.study))
    return studies.shared_files(request.study)


def _page(dashboard: Dashboard, request: PageRequest, *, open_file: str = "", text: str | None = "") -> Response:
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
        line=_line(request),
        tab="files",
    )


def _line(request: PageRequest) -> int:
    """The line that the address asks for, 0 for none."""
    text = request.query.get("line", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0


@page("/studies/{study}/files", role="editor", method="POST")
def save(dashboard: Dashboard, request: PageRequest) -> Response:
    """Saves an edited file, or files that were uploaded."""
    folder = _editable(dashboard, request)
    written = []
    name, text = request.form.get("file", ""), request.form.get("text")
    if name and text is not None:
        write_file(folder, name, text.replace("\r\n", "\n").encode())
        written.append(name)
    for field, (own_name, content) in request.files.items():
        if content:
            target = request.form.get(f"{field}_as", "") or own_name
            write_file(folder, target, content)
            written.append(target)
    if not written:
        raise DialometerError("there was nothing to save", remedy="choose a file first")
    dashboard.note(request, "wrote files", f"{request.study}: {', '.join(written)}")
    n_errors = sum(problem.severity == "error" for problem in dashboard.studies.checked(request.study)[1])
    message = f"Saved {', '.join(written)}. " + (f"{plural(n_errors, 'problem')} to fix." if n_errors else "No errors.")
    where = f"/studies/{request.study}/files" + (f"/{name}" if name else "")
    return dashboard.redirect(where, request, message)


@page("/studies/{study}/files/{file}/delete", role="editor", method="POST")
def delete(dashboard: Dashboard, request: PageRequest) -> Response:
    """Removes a file from a draft."""
    folder = _editable(dashboard, request)
    name = request.params["file"]
    if not is_own_file(name) or not (folder / name).is_file():
        raise NoStudy("there is no such file", remedy="go back to the list of files")
    (folder / name).unlink()
    dashboard.note(request, "removed a file", f"{request.study}: {name}")
    return dashboard.redirect(f"/studies/{request.study}/files", request, f"Removed {name}.")


@page("/studies/{study}/freeze", role="editor", method="POST")
def freeze_study(dashboard: Dashboard, request: PageRequest) -> Response:
    """Freezes a draft that has no errors; from then on it is not changed, and waits to be started."""
    folder = _editable(dashboard, request)
    study = without_errors(*dashboard.studies.checked(request.study))
    version = freeze(study, folder, datetime.now(UTC))
    try:
        running = dashboard.studies.running(request.study)
    except DialometerError:
        (folder / LOCK_FILE).unlink()  # what cannot be opened stays a draft, so that it can be fixed
        raise
    running.store.control.set_state(
        "paused", by=request.account.name, reason="frozen, not started yet", at_ms=request.at_ms
    )
    dashboard.note(request, "froze the study", f"{request.study}: {version['fingerprint'][:12]}")
    dashboard.cache.clear()
    message = "Frozen. Raters can come as soon as you start it."
    return dashboard.redirect(f"/studies/{request.study}/control", request, message)


def _editable(dashboard: Dashboard, request: PageRequest) -> Path:
    folders = dashboard.studies.folders
    folder = folders.folder(request.study)
    if (folder / LOCK_FILE).exists():
        raise DialometerError(
            "a frozen study is not changed", remedy="copy it to a new study, or make a new version on the command line"
        )
    if folders.is_named(request.study):
        raise DialometerError(
            "this study was opened to raters on the command line", remedy="change its folder and start the server again"
        )
    return folder
