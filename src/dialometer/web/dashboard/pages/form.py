"""A draft as a form, step by step, beside what raters will see and what the study becomes; the file is changed value by value."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from starlette.responses import Response

from dialometer.agents import AGENTS
from dialometer.design.edit_yaml import edited
from dialometer.design.library import PLACES, insert, library
from dialometer.design.positions import parse_yaml
from dialometer.design.protocol import protocol
from dialometer.design.schema import study_schema
from dialometer.design.versions import (
    NO_FILE,
    ON_DISK,
    BothChanged,
    SavedMeanwhile,
    Versions,
    hash_of,
    merged_values,
    state_of_file,
)
from dialometer.errors import DialometerError, Problem
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.study import Texts
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.pages.making import (
    both_changed,
    content_of,
    editable_folder,
    is_own_file,
    save_edited,
    text_of,
    who_saved,
)
from dialometer.web.dashboard.pages.own_items import Draft, n_lines
from dialometer.web.dashboard.pages.planning import power_state
from dialometer.web.dashboard.pages.preview import first_screen
from dialometer.web.dashboard.running_studies import NoStudy
from dialometer.web.dashboard.study_form import CHOSEN, DO, SpecField, StudyForm, label_of
from dialometer.web.dashboard.translating import explained, translated

STEPS: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    "study": ("Study", "What the study is called, and who is behind it.", (), "consent"),
    "systems": (
        "Systems and items",
        "What is compared, and what raters are shown.",
        ("systems", "items", "speakers", "arena", "live"),
        "item",
    ),
    "criteria": (
        "Criteria and scales",
        "What raters are asked about each item, and how they answer.",
        ("criteria", "scales"),
        "item",
    ),
    "design": (
        "Design",
        "Who sees what, in which order, how often.",
        ("design", "presentation"),
        "item",
    ),
    "questions": (
        "Questions and texts",
        "Questionnaires before and after, and the texts of consent, instructions and debriefing.",
        ("screening", "pre_questionnaire", "post_questionnaire", "texts", "wording"),
        "pre",
    ),
    "quality": (
        "Quality",
        "Rules that find careless raters, and how disagreements are settled.",
        ("quality", "adjudication"),
        "item",
    ),
    "recruitment": (
        "Recruitment",
        "Where raters come from, what they are paid, which models judge beside them, what is kept.",
        ("recruitment", "judges", "privacy"),
        "consent",
    ),
    "analysis": ("Analysis", "The comparisons that you declare before the first answer.", ("analysis",), "item"),
}
"""Steps by their address: title, what it is about, keys of the file, and the screen to look at meanwhile. The first step takes
every key that no other one has."""


@cache
def form_schema() -> Mapping[str, Any]:
    """What a study file may hold, the options of each agent included. It takes long to put together and never changes while a
    server runs."""
    schema = study_schema()
    definitions = schema["$defs"]
    conditions = []
    for name in AGENTS.names():
        options = AGENTS.get(name).model_json_schema(ref_template="#/$defs/{model}")
        definitions |= {**options.pop("$defs", {}), f"{name} options": options}
        given = {"properties": {"type": {"const": name}}}
        conditions.append({"if": given, "then": {"properties": {"options": {"$ref": f"#/$defs/{name} options"}}}})
    for part in definitions.values():
        if part.get("properties", {}).keys() == {"type", "options"}:
            part["allOf"] = conditions
    return schema


def keys_of(step: str) -> list[str]:
    """The keys of the study file that a step shows."""
    own = STEPS[step][2]
    if own:
        return list(own)
    others = {key for _, _, keys, _ in STEPS.values() for key in keys}
    return [key for key in form_schema()["properties"] if key not in others and key not in ("dialometer", "name")]


@page("/studies/{study}/form", role="editor")
def begin(dashboard: Dashboard, request: PageRequest) -> Response:
    """The first step."""
    return dashboard.redirect(f"/studies/{request.study}/form/study", request)


@page("/studies/{study}/form/undo", role="editor", method="POST")
def undo(dashboard: Dashboard, request: PageRequest) -> Response:
    """Puts the files back to how they were before the last change; again, to the one before that."""
    folder = editable_folder(dashboard, request)
    versions = Versions(folder)
    earlier = before_last_change(folder, _form(text_of(folder, STUDY_FILE)).data)
    if not earlier:
        raise DialometerError("there is nothing to undo")
    for file, hash_ in earlier.items():
        versions.save(file, versions.content(hash_), request.account.name, request.at_ms)
    dashboard.note(request, "undid a change", ", ".join(earlier))
    step = request.form.get("step", "")
    return dashboard.redirect(
        f"/studies/{request.study}/form/{step if step in STEPS else 'study'}", request, translated("Undone.")
    )


def before_last_change(folder: Path, data: Mapping[str, Any]) -> dict[str, str]:
    """The files of the last change of what the form shows, with the hashes of what they held before it, empty for no file.

    What one request saved is one change. A change that brings back the state before it is an undo, not a new one.
    """
    files = {STUDY_FILE, Draft(folder, "", dict(data)).items_file, *texts_named(data)}
    first: dict[str, str] = {}
    records = []
    for version in Versions(folder).all():
        if version.file not in files:
            continue
        is_found = version.file not in first and version.by == ON_DISK  # as it was before its first change
        first.setdefault(version.file, version.content if is_found else "")
        if not is_found:
            records.append(version)
    states = [first]
    for _, saved in groupby(records, key=lambda version: (version.by, version.at_ms)):
        state = states[-1] | {version.file: version.content for version in saved}
        if len(states) > 1 and states[-2] == state:
            states.pop()
        else:
            states.append(state)
    if len(states) < 2:
        return {}
    changed = {file: hash_ for file, hash_ in states[-2].items() if hash_ != states[-1][file]}
    is_as_saved = all(state_of_file(folder / file) == (states[-1][file] or NO_FILE) for file in changed)
    return changed if is_as_saved else {}


@page("/studies/{study}/form/{step}", role="editor")
def show(dashboard: Dashboard, request: PageRequest) -> Response:
    """One step."""
    folder = editable_folder(dashboard, request)
    text = text_of(folder, STUDY_FILE)
    return _page(dashboard, request, _form(text), text)


@page("/studies/{study}/form/{step}", role="editor", method="POST")
def save(dashboard: Dashboard, request: PageRequest) -> Response:
    """Writes what was typed into the study file, and adds, removes or moves an entry where that was pressed."""
    folder, step = editable_folder(dashboard, request), _step(request)
    text, base = text_of(folder, STUDY_FILE), request.form.get("base", "")
    kept = Versions(folder).content(base)
    opened = text if kept is None else kept.decode(errors="replace")
    form = _form(opened)
    complaints = form.take(keys_of(step), request.form)
    if complaints:
        return _page(dashboard, request, form, text, complaints, typed=request.form, base=base)
    if base and kept is None and base != hash_of(text.encode()):
        complaint = translated("The study was changed on disk meanwhile. Look at the fields, then save again.")
        return _page(dashboard, request, form, text, {keys_of(step)[0]: complaint}, typed=request.form)
    action = request.form.get(DO, "")
    goal, said = _do(form, action, request)
    clash = None
    try:
        said += _save_form(folder, opened, text, form, request)
    except BothChanged as error:
        clash = error
    written = [STUDY_FILE] if text_of(folder, STUDY_FILE) != text else []
    for name in texts_named(form.data):
        try:
            written += [name] if _save_text(folder, name, request) else []
        except SavedMeanwhile:
            return both_changed(dashboard, request, name, _sent_text(name, request))
    if written:
        dashboard.note(request, "wrote files", ", ".join(written))
    if clash:
        return _clash(dashboard, request, clash, text, edited(opened, form.data))
    to = request.form.get("then", "")
    where = f"/studies/{request.study}/form/{to if to in STEPS and not action else step}"
    response = dashboard.redirect(where, request, said)
    if goal:
        response.headers["location"] += f"#{goal}"
    return response


def _clash(dashboard: Dashboard, request: PageRequest, clash: BothChanged, text: str, mine: str) -> Response:
    """Two people changed the same: nothing of it is saved yet, nothing is lost, and the reader decides."""
    if request.form.get(DO) or clash.is_structural:
        return both_changed(dashboard, request, STUDY_FILE, mine)
    who = who_saved(Versions(dashboard.studies.folders.folder(request.study)), STUDY_FILE)
    theirs = _form(text)
    complaints = {
        path: translated(
            "{1} changed this too, to “{2}”. Your text is shown: save again to keep it.", who, theirs.value_at(path)
        )
        for path in clash.places
    }
    form = StudyForm(form_schema(), clash.value, _known(clash.value))
    return _page(dashboard, request, form, text, complaints)


def _do(form: StudyForm, action: str, request: PageRequest) -> tuple[str, str]:
    """Adds, inserts, moves or removes an entry; returns where to go on, and what to say."""
    if action.startswith("insert "):
        part, _, name = action.removeprefix("insert ").partition(" ")
        there = form.data.get(part)
        goal = f"{part}.{len(there) if isinstance(there, list) else 0}"
        already = insert(form.data, part, name)
        label = library(part)[name].label
        if already:
            return part, translated("Inserted {1}, except what is there already: {2}.", label, ", ".join(already))
        return goal, translated("Inserted {1}.", label)
    if action:
        return form.do(action, request.form.get(f"{action.partition(' ')[2]}.{CHOSEN}", "")), ""
    return "", translated("Saved.")


def _save_form(folder: Path, opened: str, text: str, form: StudyForm, request: PageRequest) -> str:
    """Saves what the form holds, together with what somebody else saved meanwhile; returns what there is to say about that."""
    versions = Versions(folder)
    data, said = form.data, ""
    if opened != text:
        data = merged_values(_form(opened).data, form.data, _form(text).data)
        who = who_saved(versions, STUDY_FILE)
        said = " " + translated("{1} changed it while you edited it; it holds both changes now.", who)
    try:
        versions.save(
            STUDY_FILE, edited(text, data).encode(), request.account.name, request.at_ms, hash_of(text.encode())
        )
    except SavedMeanwhile as error:
        raise DialometerError(error.message, remedy="look at the form again") from error
    return said


def texts_named(data: Mapping[str, Any]) -> dict[str, str]:
    """The text files that a study file names, with words for what each is."""
    own = data.get("texts")
    declared = own if isinstance(own, dict) else {}
    named = {str(declared.get(key) or field.default): label_of(key) for key, field in Texts.model_fields.items()}
    waiting: list[Any] = [data.get("presentation"), data.get("design")]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict) and isinstance(part.get("instructions"), str):
            named.setdefault(part["instructions"], "Instructions of a condition or block")
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return {name: words for name, words in named.items() if is_own_file(name)}


def _sent_text(name: str, request: PageRequest) -> str:
    return request.form.get(f"_text:{name}", "").replace("\r\n", "\n")


def _save_text(folder: Path, name: str, request: PageRequest) -> bool:
    """Saves a text that was sent with the step, if it is not as it was; whether it was saved."""
    path, text = folder / name, _sent_text(name, request)
    before = content_of(folder, name).decode(errors="replace")
    if f"_text:{name}" not in request.form or text.rstrip("\n") == before.rstrip("\n"):
        return False
    save_edited(Versions(folder), path, text, request, request.form.get(f"_base:{name}", ""))
    return True


def _texts(folder: Path, data: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """The texts to edit: file, what it is, its content, and the mark of that content."""
    shown = []
    for name, words in texts_named(data).items():
        content = content_of(folder, name)
        shown.append((name, words, content.decode("utf-8", "replace"), hash_of(content) if content else ""))
    return shown


def _step(request: PageRequest) -> str:
    step = request.params["step"]
    if step not in STEPS:
        raise NoStudy("there is no such step", remedy="go back to the form")
    return step


def _form(text: str) -> StudyForm:
    data = parse_yaml(text, STUDY_FILE).data
    if not isinstance(data, dict):
        raise DialometerError("study.yaml cannot be read", remedy="correct it under Files first")
    return StudyForm(form_schema(), data, _known(data))


def _known(data: Mapping[str, Any]) -> dict[str, list[str]]:
    """Names that other fields choose from."""
    scales = data.get("scales")
    criteria = data.get("criteria")
    names = (
        [str(criterion.get("name", "")) for criterion in criteria if isinstance(criterion, dict)]
        if isinstance(criteria, list)
        else []
    )
    return {
        "scale": list(map(str, scales)) if isinstance(scales, dict) else [],
        "criterion": names,
        "type": AGENTS.names(),
    }


def _page(
    dashboard: Dashboard,
    request: PageRequest,
    form: StudyForm,
    text: str,
    complaints: Mapping[str, str] | None = None,
    *,
    typed: Mapping[str, str] | None = None,
    base: str = "",
) -> Response:
    step = _step(request)
    folder = dashboard.studies.folders.folder(request.study)
    power, is_old = power_state(folder)
    study, problems = dashboard.studies.checked(request.study)
    is_whole = study is not None and not any(problem.severity == "error" for problem in problems)
    fields = form.fields(keys_of(step))
    here = {problem.field: problem for problem in reversed(problems) if problem.file == STUDY_FILE and problem.field}
    response = dashboard.show(
        "form.html",
        request,
        comments=[
            thread for thread in dashboard.comments.threads(request.study, f"form/{step}") if thread.first.is_open
        ],
        study=request.study,
        spec=study.spec if study else None,
        steps=[(key, title, _n_problems(key, problems)) for key, (title, *_) in STEPS.items()],
        step_of={key: (name, STEPS[name][0]) for name in STEPS for key in keys_of(name)},
        step=step,
        about=STEPS[step][1],
        fields=fields,
        faults=_by_field(fields, here) | dict(complaints or {}),
        problems=problems,
        files=[],
        is_whole=is_whole,
        numbers=protocol(study) if study and is_whole else None,
        labels=[study.cell_label(condition) for condition in study.cells] if study and is_whole else [],
        screen=first_screen(study, STEPS[step][3]) if study and is_whole else None,
        **items_of(folder, form.data),
        shelves=[(part, list(library(part).values())) for part in PLACES if part in keys_of(step)],
        texts=_texts(folder, form.data) if step == "questions" else [],
        power=power,
        is_power_old=is_old,
        text=text,
        base=base or hash_of(text.encode()),
        yaml_base=hash_of(text.encode()),
        may_undo=bool(before_last_change(folder, form.data)),
        typed=typed or {},
        tab="form",
    )
    if complaints:
        response.status_code = 422
    return response


def items_of(folder: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """The items file and how many items it has."""
    draft = Draft(folder, "", dict(data))
    n_items = n_lines(content_of(folder, draft.items_file))
    return {"items_file": draft.items_file, "n_items": n_items, "items_kind": draft.kind}


def _n_problems(step: str, problems: list[Problem]) -> int:
    keys = keys_of(step)
    return sum(
        problem.severity == "error" and problem.file == STUDY_FILE and problem.field.partition(".")[0] in keys
        for problem in problems
    )


def _by_field(fields: list[SpecField], problems: Mapping[str, Problem]) -> dict[str, str]:
    """What is wrong, by the path of the field nearest to it."""
    paths: set[str] = set()
    waiting = list(fields)
    while waiting:
        field = waiting.pop()
        paths.add(field.path)
        waiting += field.children
    found = {}
    for place, problem in problems.items():
        path = place
        while path and path not in paths:
            path = path.rpartition(".")[0]
        if path:
            said = explained(problem.message)
            found[path] = f"{said}: {explained(problem.remedy)}" if problem.remedy else said
    return found
