"""Items for a draft: a file or pasted text is dropped, its columns are mapped by choosing, the first items are shown as raters
will see them, and what is wrong is told with line and remedy, as on the command line."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.responses import HTMLResponse, Response

from dialometer.design.edit_yaml import edited
from dialometer.design.positions import parse_yaml
from dialometer.design.versions import FOLDER, SavedMeanwhile, Versions, hash_of
from dialometer.errors import DialometerError, Problem, ProblemsError
from dialometer.exchange.own_systems.item_columns import (
    OWN_KEYS,
    ItemTable,
    NewItems,
    guessed_places,
    items_from_files,
    items_from_table,
    places_for,
    read_item_table,
)
from dialometer.exchange.own_systems.study_with_items import with_items
from dialometer.model.analysis_plan import Analysis
from dialometer.model.design import Design
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.item import KIND_WORDS, Item, ItemKind
from dialometer.model.study import Study, StudySpec, System
from dialometer.scales.text import Text
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.pages.making import (
    content_of,
    editable_folder,
    is_own_file,
    plain_file_name,
    text_of,
)
from dialometer.web.dashboard.pages.preview import Preview, first_screen
from dialometer.web.dashboard.running_studies import NoStudy
from dialometer.web.dashboard.translating import explained, translated, translated_count
from dialometer.web.server.requests import small_number

UPLOADED = "uploaded"
"""The folder, beside the saved versions, that holds what was dropped until it is used."""
N_ROWS, N_SHOWN = 4, 20
N_LOOKED_AT = 500
"""So many rows are read and checked to be looked at, so that large files are mapped as quickly; all are when they are used."""
_tables: dict[tuple[Any, ...], ItemTable | NewItems] = {}
"""The file read last: whoever maps its columns looks at it many times."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a study file says so far, whether or not it is whole."""

    folder: Path
    text: str
    data: dict[str, Any]

    @property
    def kind(self) -> ItemKind:
        declared = self.data.get("items")
        kind = declared.get("kind") if isinstance(declared, dict) else None
        return next((known for known in OWN_KEYS if known == kind), "responses")

    @property
    def items_file(self) -> str:
        declared = self.data.get("items")
        name = str(declared.get("file") or "") if isinstance(declared, dict) else ""
        return name if is_own_file(name) else "items.jsonl"

    @property
    def systems(self) -> list[str]:
        declared = self.data.get("systems")
        entries = declared if isinstance(declared, list) else []
        return [str(entry["name"]) for entry in entries if isinstance(entry, dict) and entry.get("name")]

    @property
    def speakers(self) -> dict[str, Any]:
        declared = self.data.get("speakers")
        return declared if isinstance(declared, dict) else StudySpec.model_fields["speakers"].default

    def of_kind(self, kind: str) -> Draft:
        """The draft as it is once its items are of a kind; what is no kind changes nothing."""
        if kind not in OWN_KEYS or kind == self.kind:
            return self
        declared = self.data.get("items")
        items = {**(declared if isinstance(declared, dict) else {"file": self.items_file}), "kind": kind}
        return replace(self, data={**self.data, "items": items})


def draft_of(dashboard: Dashboard, request: PageRequest) -> Draft:
    """The study that is being made; refused where it is frozen or cannot be read."""
    folder = editable_folder(dashboard, request)
    text = text_of(folder, STUDY_FILE)
    data = parse_yaml(text, STUDY_FILE).data
    if not isinstance(data, dict):
        raise DialometerError("study.yaml cannot be read", remedy="correct it under Files first")
    return Draft(folder, text, data)


@dataclass(frozen=True, slots=True)
class Brought:
    """What was dropped, as items: the table and its places where there is one, the items, and what is wrong with them."""

    table: ItemTable | None
    places: Mapping[str, str]
    new: NewItems
    systems: Sequence[str]
    items: Sequence[Item]
    problems: Sequence[Problem]

    @property
    def n_errors(self) -> int:
        return sum(problem.severity == "error" for problem in self.problems)


@page("/studies/{study}/add-items", role="editor")
def show(dashboard: Dashboard, request: PageRequest) -> Response:
    """What was dropped, and how it is read."""
    return _page(dashboard, request, dict(request.query))


@page("/studies/{study}/add-items", role="editor", method="POST")
def take(dashboard: Dashboard, request: PageRequest) -> Response:
    """Keeps what was dropped to look at it, or puts the items into the study."""
    if "use" not in request.form:
        _keep(draft_of(dashboard, request), request)
        return dashboard.redirect(f"/studies/{request.study}/add-items", request)
    choices = request.form
    draft = draft_of(dashboard, request).of_kind(choices.get("kind", ""))
    brought = _brought(draft, choices, None)
    if brought is None or brought.n_errors:
        response = _page(dashboard, request, choices, None)
        response.status_code = 422
        return response
    is_more = choices.get("how") == "more"
    data, notes = with_items(draft.data, brought.new, draft.kind, is_more=is_more)
    before = text_of(draft.folder, draft.items_file) if is_more else ""
    before += "" if not before or before.endswith("\n") else "\n"
    versions, by, base = Versions(draft.folder), request.account.name, hash_of(draft.text.encode())
    try:
        versions.save(STUDY_FILE, edited(draft.text, data).encode(), by, request.at_ms, base)
    except SavedMeanwhile as error:
        raise DialometerError(error.message, remedy="go back to your items and use them again") from error
    versions.save(draft.items_file, (before + brought.new.as_lines()).encode(), by, request.at_ms)
    shutil.rmtree(_place(draft))
    dashboard.note(request, "brought items", f"{len(brought.items)} from {brought.new.file}")
    said = " ".join(
        [
            translated("{1} saved.", translated_count(len(brought.items), "item")),
            *(f"{explained(note)}." for note in notes),
        ]
    )
    return dashboard.redirect(f"/studies/{request.study}/form/systems", request, said)


@page("/studies/{study}/add-items/{number:number}/s", role="editor")
def look(dashboard: Dashboard, request: PageRequest) -> Response:
    """One of the items as raters will see it."""
    draft = draft_of(dashboard, request).of_kind(request.query.get("kind", ""))
    brought = _brought(draft, dict(request.query))
    number = int(request.params["number"])
    if brought is None or not 0 <= number < len(brought.items):
        raise NoStudy("there is no such item", remedy="go back to your items")
    study, _ = dashboard.studies.checked(request.study)
    shown = with_item(study, draft, brought, brought.items[number])
    root = f"{request.root}/dashboard/studies/{request.study}/preview/0/0"  # where static files and media are
    return HTMLResponse(Preview(shown, 0).page(first_screen(shown, "item"), root=root))


def with_item(study: Study | None, draft: Draft, brought: Brought, item: Item) -> Study:
    """The study with this item alone, for everyone in one condition; a question stands in where there is none yet."""
    parts: dict[str, Any] = {
        "systems": [System(name=name) for name in brought.systems] or [System(name="system")],
        "speakers": {**draft.speakers, **brought.new.speakers},
        "quality": [],
        "screening": [],
        "design": Design(),
        "analysis": Analysis(),
    }
    if study is not None and study.spec.items.kind == draft.kind:
        spec = study.spec.model_copy(update=parts)
    else:
        asked = {"name": "question", "question": translated("Your questions come here."), "scale": "answer"}
        bare = {"dialometer": 1, "name": "draft", "title": "Draft", "seed": 1, "items": {"kind": draft.kind}}
        spec = StudySpec.model_validate({**bare, **parts, "scales": {"answer": Text()}, "criteria": [asked]})
    texts = dict.fromkeys(spec.texts.model_dump().values(), "") | dict(study.texts if study else {})
    return Study(spec, (replace(item, block="", metadata={}),), texts, draft.folder)


def _place(draft: Draft) -> Path:
    return draft.folder / FOLDER / UPLOADED


def _keep(draft: Draft, request: PageRequest) -> None:
    """Stores what was dropped or pasted, in place of what was dropped before."""
    given = [(name, content) for _, (name, content) in sorted(request.files.items()) if content]
    text = request.form.get("pasted", "").strip()
    if text and not given:
        given = [(f"pasted{pasted_suffix(text)}", text.replace("\r\n", "\n").encode())]
    if not given:
        raise DialometerError("there was nothing to read", remedy="choose a file, or paste some text")
    keep_files(draft, given)


def keep_files(draft: Draft, given: Sequence[tuple[str, bytes]]) -> None:
    """Stores files to be looked at."""
    place = _place(draft)
    shutil.rmtree(place, ignore_errors=True)
    for number, (name, content) in enumerate(given):
        (place / f"{number:04d}").mkdir(parents=True)
        (place / f"{number:04d}" / plain_file_name(name, f"file_{number + 1}")).write_bytes(content)


def pasted_suffix(text: str) -> str:
    """As what pasted text is read: JSON, a table that was copied from a spreadsheet, or plain text."""
    if text[:1] in "{[":
        return ".jsonl"
    first, *rest = text.split("\n", 1)
    if "\t" in first and rest:
        return ".tsv"
    names = {name.strip().lower() for name in first.replace(";", ",").split(",")}
    return ".csv" if len(names) > 1 and names & {"id", "context", "question", "prompt", "scenario"} else ".txt"


def _brought(draft: Draft, choices: Mapping[str, str], n_rows: int | None = N_LOOKED_AT) -> Brought | None:
    """What was dropped with the columns as they were chosen, or its first rows; None where nothing was."""
    files = sorted(path for path in _place(draft).glob("*/*") if path.is_file())
    if not files:
        return None
    kind = draft.kind
    key = (kind, *((path, path.stat().st_mtime_ns) for path in files))
    table = _tables.get(key)
    if table is None:
        table = read_item_table(files[0], kind) if len(files) == 1 else items_from_files(files, kind)
        _tables.clear()
        _tables[key] = table
    places: dict[str, str] = {}
    if isinstance(table, ItemTable):
        places = {} if table.is_items else guessed_places(table, kind, draft.systems)
        for number, column in enumerate(table.columns):
            allowed = {place for place, _ in places_for(kind, column, draft.systems)}
            if choices.get(f"c{number}") in allowed:
                places[column] = choices[f"c{number}"]
        default = choices.get("system") or ((draft.systems or ["system"])[0] if kind == "dialogue" else "")
        new = items_from_table(table, places, kind, draft.speakers, draft.systems, default, n_rows)
    else:
        new = table
    is_all = choices.get("how") == "more" or kind in ("chat", "arena", "candidate")
    systems = list(dict.fromkeys([*(draft.systems if is_all else ()), *new.systems]))
    speakers = {**draft.speakers, **new.speakers}
    items, problems = new.checked(kind, speakers, systems, draft.folder)
    if choices.get("skip") and new.may_skip:
        new = new.without_wrong()
        items, problems = new.checked(kind, speakers, systems, draft.folder)
    return Brought(table if isinstance(table, ItemTable) else None, places, new, systems, items, problems)


def _page(
    dashboard: Dashboard, request: PageRequest, choices: Mapping[str, str], n_rows: int | None = N_LOOKED_AT
) -> Response:
    draft = draft_of(dashboard, request).of_kind(choices.get("kind", ""))
    study, _ = dashboard.studies.checked(request.study)
    problem: list[Problem] = []
    try:
        brought = _brought(draft, choices, n_rows)
    except ProblemsError as error:
        brought, problem = None, [replace(one, file=Path(one.file).name) for one in error.problems]
    except DialometerError as error:
        brought, problem = None, [Problem(error.message, error.remedy, Path(error.where).name)]
    table = brought.table if brought else None
    places = brought.places if brought else {}
    kept = {
        name: value
        for name, value in choices.items()
        if name in ("how", "kind", "system", "skip") or (name[:1] == "c" and small_number(name[1:]) is not None)
    }
    shown = min(small_number(choices.get("n", "")) or 0, max(0, len(brought.items) - 1)) if brought else 0
    columns = [
        (column, places_for(draft.kind, column, draft.systems), places.get(column, ""))
        for column in (table.columns if table and not table.is_items else ())
    ]
    return dashboard.show(
        "own_items.html",
        request,
        study=request.study,
        spec=study.spec if study else None,
        kind=draft.kind,
        kinds=KIND_WORDS,
        systems=draft.systems,
        brought=brought,
        problem=problem,
        columns=columns,
        rows=[[_cut(cells.get(column)) for column, *_ in columns] for _, cells in table.rows[:N_ROWS]] if table else [],
        is_part=table is not None and n_rows is not None and len(table.rows) > n_rows,
        n_looked_at=N_LOOKED_AT,
        needs_system=draft.kind == "dialogue" and "system" not in places.values() and bool(columns),
        choices=kept,
        query=urlencode(kept),
        shown=shown,
        n_shown=min(N_SHOWN, len(brought.items)) if brought else 0,
        problems=brought.problems if brought else [],
        can_skip=brought is not None and "skip" not in kept and brought.new.may_skip,
        n_before=n_lines(content_of(draft.folder, draft.items_file)),
        tab="form",
    )


def _cut(value: Any) -> str:
    text = (
        " / ".join(f"{turn.get('speaker', '')}: {turn.get('text', '')}" for turn in value)
        if _is_turns(value)
        else value
    )
    text = "" if text is None else str(text)
    return text if len(text) <= 120 else f"{text[:119]}…"


def _is_turns(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(turn, dict) for turn in value)


def n_lines(content: bytes) -> int:
    """Lines that hold anything."""
    return sum(bool(line.strip()) for line in content.split(b"\n"))
