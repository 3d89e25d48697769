"""The pairs of a draft, edited turn by turn: the control is written or pasted, turns of the other version are changed, and the
difference and the rules of controlled pairs are shown at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import HTMLResponse, Response

from dialometer.design.items import ItemReader
from dialometer.design.pairs import RULES, PairReport, inspect_pair
from dialometer.design.versions import Versions, hash_of, state_of_file
from dialometer.errors import DialometerError, Problem
from dialometer.exchange.own_systems.item_columns import turns_of_text
from dialometer.model.item import PairItem
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.pages.making import text_of
from dialometer.web.dashboard.pages.own_items import Draft, draft_of
from dialometer.web.dashboard.running_studies import NoStudy
from dialometer.web.dashboard.translating import translated
from dialometer.web.server.requests import small_number

N_LISTED = 50
Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PairRow:
    """One turn of both sides: as it is typed, and which turn of the file it was."""

    speaker: str
    a: str
    b: str
    was: int
    is_agent: bool
    is_same: bool


@page("/studies/{study}/pairs", role="editor")
def pairs(dashboard: Dashboard, request: PageRequest) -> Response:
    """The pairs with what differs between their sides and which rules are broken."""
    draft = _draft(dashboard, request)
    lines = _lines(draft)
    number = small_number(request.query.get("page", "")) or 1
    numbered = [(place, line) for place, line in enumerate(lines, start=1) if line.strip()]
    begin = (max(1, number) - 1) * N_LISTED
    shown = [(place, *_read(draft, line)) for place, line in numbered[begin : begin + N_LISTED]]
    content: dict[str, Any] = {
        "systems": draft.systems,
        "pairs": shown,
        "n_pairs": len(numbered),
        "number": number,
        "n_pages": -(-len(numbered) // N_LISTED),
    }
    return _show(dashboard, request, "pairs.html", **content)


@page("/studies/{study}/pairs/look", role="editor", method="POST")
def look(dashboard: Dashboard, request: PageRequest) -> Response:
    """What was typed so far: the difference and the rules, to be shown beside it."""
    draft = _draft(dashboard, request)
    item = typed_pair(request.form, _original(draft, request.form.get("line", "")))
    content = dashboard.templates.render("pair_check.html", request, **_checked(draft, item))
    return HTMLResponse(content)


@page("/studies/{study}/pairs/{line:number}", role="editor")
def edit(dashboard: Dashboard, request: PageRequest) -> Response:
    """One pair; the line 0 is a new one."""
    draft = _draft(dashboard, request)
    return _editor(dashboard, request, draft, _original(draft, str(request.params["line"])))


@page("/studies/{study}/pairs/{line:number}", role="editor", method="POST")
def save(dashboard: Dashboard, request: PageRequest) -> Response:
    """Saves a pair, removes it, or shows it with a turn more or less."""
    draft, form = _draft(dashboard, request), request.form
    line = int(request.params["line"])
    item = typed_pair(form, _original(draft, str(line)))
    verb, _, typed_place = form.get("_do", "save").partition(" ")
    place = small_number(typed_place)
    if verb == "begin":
        return _editor(dashboard, request, draft, _begun(item, form.get("transcript", "")))
    if verb in ("turn", "drop") and place is not None:
        return _editor(dashboard, request, draft, _with_turns(draft, item, verb, place))
    _, problems = _read(draft, json.dumps(item))
    errors = [problem for problem in problems if problem.severity == "error"] if verb == "save" else []
    if errors:
        response = _editor(dashboard, request, draft, item)
        response.status_code = 422
        return response
    lines = _lines(draft)
    place = _line_now(draft, line, lines, form.get("base", ""))
    if place is None:
        again = next((number for number, one in enumerate(lines, start=1) if _id_of(one) == item["id"]), 0)
        said = translated("Somebody else changed this pair. Yours is shown: save it once more to keep it.")
        return _editor(dashboard, request, draft, item, line=again, is_new_base=True, said=said)
    written = [] if verb == "remove" else [json.dumps(item, ensure_ascii=False)]
    lines[place - 1 if line else len(lines) : place] = written
    content = "".join(f"{one}\n" for one in lines).encode()
    versions, base = Versions(draft.folder), state_of_file(draft.folder / draft.items_file)
    versions.save(draft.items_file, content, request.account.name, request.at_ms, base)
    dashboard.note(request, "wrote files", f"{draft.items_file}, {item.get('id')}")
    said = translated("Removed the pair {1}." if verb == "remove" else "Saved the pair {1}.", item.get("id"))
    return dashboard.redirect(f"/studies/{request.study}/pairs", request, said)


def typed_pair(form: Mapping[str, str], original: Raw) -> Raw:
    """The item that a form says; what the form does not show stays as it was."""
    item: Raw = {**original, "id": form.get("id", "").strip()}
    if form.get("block", "").strip():
        item["block"] = form["block"].strip()
    else:
        item.pop("block", None)
    numbers = (small_number(name.removeprefix("speaker.")) for name in form if name.startswith("speaker."))
    rows = sorted(number for number in numbers if number is not None)
    for side in ("a", "b"):
        before = original[side]
        after: Raw = {**before, "system": form.get(f"{side}.system", "").strip()}
        outcome = form.get(f"{side}.outcome", "").strip()
        after = {**after, "outcome": outcome} if outcome else {k: v for k, v in after.items() if k != "outcome"}
        if f"whole.{side}" in form:
            after["turns"] = turns_of_text(form[f"whole.{side}"], lambda _: True)
        elif rows:
            after["turns"] = [_turn(form, side, row, before.get("turns", [])) for row in rows]
        item[side] = after
    breaches = {rule: form[f"breach.{rule}"].strip() for rule in RULES if form.get(f"breach.{rule}", "").strip()}
    item.pop("breaches", None)
    return {**item, **({"breaches": breaches} if breaches else {})}


def _turn(form: Mapping[str, str], side: str, row: int, before: list[Raw]) -> Raw:
    """A turn with its new text; tool calls and media stay with it."""
    was = small_number(form.get(f"was.{row}", ""))
    kept = before[was] if was is not None and was < len(before) else {}
    text = form.get(f"{side}.{row}", form.get(f"a.{row}", ""))
    return {**kept, "speaker": form.get(f"speaker.{row}", ""), "text": text.replace("\r\n", "\n").strip()}


def _begun(item: Raw, transcript: str) -> Raw:
    """A pair whose two sides are the pasted transcript; what to change comes next."""
    turns = turns_of_text(transcript, lambda _: True)
    if not turns:
        raise DialometerError(
            "the transcript cannot be read",
            remedy="write one turn on each line, with the speaker's name and a colon before it",
        )
    sides = {side: {**item[side], "turns": [dict(turn) for turn in turns]} for side in ("a", "b")}
    return {**item, **sides}


def _with_turns(draft: Draft, item: Raw, verb: str, place: int) -> Raw:
    """The pair with a turn after a place, or without the turn there, on both sides."""
    names = list(draft.speakers) or ["User", "Agent"]
    changed = dict(item)
    for side in ("a", "b"):
        turns = list(item[side]["turns"])
        if verb == "drop":
            del turns[place : place + 1]
        else:
            last = turns[place - 1]["speaker"] if 0 < place <= len(turns) else names[-1]
            turns.insert(place, {"speaker": next((name for name in names if name != last), last), "text": ""})
        changed[side] = {**item[side], "turns": turns}
    return changed


# Files and pages


def _draft(dashboard: Dashboard, request: PageRequest) -> Draft:
    draft = draft_of(dashboard, request)
    if draft.kind != "transcript_pair":
        raise NoStudy("the items of this study are not pairs of transcripts", remedy="go back to its form")
    return draft


def _lines(draft: Draft) -> list[str]:
    lines = text_of(draft.folder, draft.items_file).removeprefix("\ufeff").split("\n")
    return lines[:-1] if not lines[-1].strip() else lines


def _line_now(draft: Draft, line: int, lines: list[str], base: str) -> int | None:
    """The line that a pair has by now, whatever other pairs came and went meanwhile; None where it was changed itself."""
    opened = Versions(draft.folder).content(base)
    if not line or opened is None:
        return line or len(lines)
    before = opened.decode("utf-8-sig", "replace").split("\n")
    text = before[line - 1] if line <= len(before) else ""
    return lines.index(text) + 1 if text in lines else None


def _id_of(line: str) -> str:
    try:
        item = json.loads(line)
    except ValueError:
        return ""
    return str(item.get("id", "")) if isinstance(item, dict) else ""


def _original(draft: Draft, line: str) -> Raw:
    """The item of a line as the file has it; an empty one for a new pair."""
    number, lines = small_number(line), _lines(draft)
    if number == 0:
        systems = [*draft.systems, "", ""]
        return {
            "id": f"pair-{sum(bool(one.strip()) for one in lines) + 1}",
            "a": {"system": systems[0], "turns": []},
            "b": {"system": systems[1], "turns": []},
        }
    if number is None or not 1 <= number <= len(lines):
        raise NoStudy("there is no such pair", remedy="go back to the list of pairs")
    try:
        item = json.loads(lines[number - 1])
        json.dumps(item, ensure_ascii=False).encode()  # JSON can write halves of characters, which no page can show
    except (ValueError, RecursionError) as error:
        raise DialometerError(
            f"line {number} of {draft.items_file} is not valid JSON", remedy="correct it under Files"
        ) from error
    return _in_shape(item)


def _in_shape(item: Any) -> Raw:
    """What a file has for a pair, without what cannot be of one: whoever wrote it by hand may have written anything."""
    known = item if isinstance(item, dict) else {}
    shaped: Raw = {**known, "breaches": known["breaches"] if isinstance(known.get("breaches"), dict) else {}}
    for side in ("a", "b"):
        given = known[side] if isinstance(known.get(side), dict) else {}
        turns = given["turns"] if isinstance(given.get("turns"), list) else []
        shaped[side] = {**given, "turns": [turn for turn in turns if isinstance(turn, dict)]}
    return shaped


def _read(draft: Draft, line: str) -> tuple[PairReport | None, list[Problem]]:
    """The pair of a line compared, or what is wrong with it."""
    reader = ItemReader("transcript_pair", draft.speakers, draft.systems, draft.items_file, draft.folder)
    items = reader.read(line.encode())
    item = items[0] if items else None
    return (inspect_pair(item) if isinstance(item, PairItem) else None), reader.problems


def _checked(draft: Draft, item: Raw) -> dict[str, Any]:
    report, problems = _read(draft, json.dumps(item))
    broken = dict(report.breaches) if report else {}
    declared = item.get("breaches", {})
    declares = draft.data.get("items")
    rules = [(rule, words, broken.get(rule, ""), declared.get(rule, "")) for rule, words in RULES.items()]
    is_controlled = isinstance(declares, dict) and declares.get("pairs") == "controlled"
    return {"report": report, "problems": problems, "rules": rules, "is_controlled": is_controlled}


def _rows(draft: Draft, item: Raw) -> list[PairRow] | None:
    """The turns side by side; None where the sides have other speakers or numbers of turns."""
    a, b = (item[side]["turns"] for side in ("a", "b"))
    if [turn.get("speaker") for turn in a] != [turn.get("speaker") for turn in b]:
        return None
    agents = {name for name, role in draft.speakers.items() if role == "agent"}
    rows = []
    for was, (x, y) in enumerate(zip(a, b, strict=True)):
        speaker, first, second = str(x.get("speaker", "")), str(x.get("text", "")), str(y.get("text", ""))
        rows.append(PairRow(speaker, first, second, was, speaker in agents, first == second))
    return rows


def _as_text(side: Raw) -> str:
    turns = (f"{turn.get('speaker', '')}: {turn.get('text', '')}" for turn in side["turns"])
    return "\n".join(turn.replace("\n", "\n  ") for turn in turns)


def _editor(
    dashboard: Dashboard,
    request: PageRequest,
    draft: Draft,
    item: Raw,
    *,
    line: int | None = None,
    is_new_base: bool = False,
    said: str = "",
) -> Response:
    path = draft.folder / draft.items_file
    content = {
        "said": said,
        "line": int(request.params["line"]) if line is None else line,
        "item": item,
        "rows": _rows(draft, item),
        "whole": {side: _as_text(item[side]) for side in ("a", "b")},
        "base": (not is_new_base and request.form.get("base"))
        or (hash_of(path.read_bytes()) if path.is_file() else ""),
        "speakers": list(draft.speakers),
        "systems": draft.systems,
        **_checked(draft, item),
    }
    return _show(dashboard, request, "pair.html", **content)


def _show(dashboard: Dashboard, request: PageRequest, template: str, **content: Any) -> Response:
    study, _ = dashboard.studies.checked(request.study)
    frame = {"study": request.study, "spec": study.spec if study else None, "tab": "form"}
    return dashboard.show(template, request, **frame, **content)
