"""Translating a study in the browser: source and translation side by side, what is missing or out of date first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from starlette.responses import Response

from dialometer.design.edit_yaml import edited
from dialometer.design.positions import parse_yaml
from dialometer.design.translations import (
    TranslatedText,
    check_language,
    translated_texts,
    translations_yaml,
    unused_keys,
    with_texts,
)
from dialometer.design.versions import SavedMeanwhile, Versions, hash_of, state_of_file
from dialometer.errors import DialometerError, Problem
from dialometer.exchange.translators.units import ENDINGS, file_content, for_translators, take_over
from dialometer.flow.language import is_right_to_left, languages, nearest_language, own_name
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.study import Study, translation_file
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.pages.making import changed_lines, editable_folder, text_of
from dialometer.web.dashboard.running_studies import NoStudy
from dialometer.web.dashboard.translating import explained, translated

N_PER_PAGE = 50
N_TRIES = 5
_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
PLACE = "/studies/{study}/languages"


@dataclass(frozen=True, slots=True)
class LanguageProgress:
    """How far a language has come."""

    tag: str
    name: str
    n: int
    n_done: int
    n_outdated: int
    has_interface: bool
    """Whether buttons and hints are there in this language too."""

    @property
    def n_missing(self) -> int:
        """Texts that raters read in the source language."""
        return self.n - self.n_done - self.n_outdated

    @property
    def percent(self) -> int:
        """Share of texts with a translation that is up to date, rounded down: 100 means all."""
        return 100 * self.n_done // self.n if self.n else 100


def progress_of(language: str, texts: Sequence[TranslatedText]) -> LanguageProgress:
    """How far the translation into a language has come."""
    n_done, n_outdated = (sum(text.state == state for text in texts) for state in ("done", "outdated"))
    has_interface = bool(nearest_language([language], languages()))
    return LanguageProgress(language, own_name(language), len(texts), n_done, n_outdated, has_interface)


@page(PLACE, role="viewer")
def overview(dashboard: Dashboard, request: PageRequest) -> Response:
    """All languages of a study and how far each has come; editors add languages here."""
    study, _ = dashboard.studies.checked(request.study)
    progress = []
    if study is not None:
        progress = [progress_of(tag, translated_texts(study, tag)) for tag in study.spec.languages[1:]]
    names = {tag: own_name(tag) for tag in languages()}
    return _page(dashboard, request, study, progress=progress, names=names)


@page(PLACE, role="editor", method="POST")
def add(dashboard: Dashboard, request: PageRequest) -> Response:
    """Adds a language to the study file."""
    folder = editable_folder(dashboard, request)
    text = text_of(folder, STUDY_FILE)
    study = _study(dashboard, request)
    tag = request.form.get("language", "").strip()
    if not _TAG.fullmatch(tag):
        raise DialometerError(f"'{tag[:40]}' is not a language", remedy="use its code, such as de, fr or pt-BR")
    known = study.spec.all_languages
    if tag in known:
        raise DialometerError(f"the study has the language '{tag}' already", remedy="choose another one")
    data = parse_yaml(text, STUDY_FILE).data
    new = edited(text, {**data, "languages": [*known, tag]})
    Versions(folder).save(STUDY_FILE, new.encode(), request.account.name, request.at_ms, hash_of(text.encode()))
    dashboard.note(request, "added a language", f"{request.study}: {tag}")
    return dashboard.redirect(
        f"/studies/{request.study}/languages/{tag}", request, translated("Added {1}.", own_name(tag))
    )


@page(f"{PLACE}/{{language}}", role="viewer")
def texts(dashboard: Dashboard, request: PageRequest) -> Response:
    """The texts of one language side by side with their source."""
    return _texts_page(dashboard, request)


@page(f"{PLACE}/{{language}}", role="editor", method="POST")
def save(dashboard: Dashboard, request: PageRequest) -> Response:
    """Saves one text. Somebody else's texts stay; where both changed this one, both are shown and nothing is written."""
    folder = editable_folder(dashboard, request)
    language = _language(dashboard, request)
    key, text = request.form.get("key", ""), request.form.get("text", "").replace("\r\n", "\n").strip()
    path = folder / translation_file(language)
    for _ in range(N_TRIES):
        base = state_of_file(path)  # before the texts are read, so that nothing can come between
        study = _study(dashboard, request)
        known = {one.key: one for one in translated_texts(study, language)}
        if key not in known:
            raise NoStudy("the study has no such text any more", remedy="load the page again")
        now = known[key].text
        if request.form.get("base", "") != hash_of(now.encode()) and text != now:
            response = _texts_page(dashboard, request, mine={key: text})
            response.status_code = 409
            return response
        new = translations_yaml(study, language, with_texts(study, language, {key: text})).encode()
        try:
            Versions(folder).save(path.name, new, request.account.name, request.at_ms, base)
            break
        except SavedMeanwhile:
            continue  # another text was saved at the same moment: it stays, and this one is put beside it
    else:
        raise DialometerError("the translations are being changed all the time", remedy="save again")
    dashboard.note(request, "translated a text", f"{request.study}, {language}: {key}")
    return dashboard.redirect(_address(request, language, request.form.get("next", "")), request, "")


def _address(request: PageRequest, language: str, next_key: str) -> str:
    show = "all" if request.query.get("show") == "all" else "open"
    number = request.query.get("page", "1")
    number = number if number.isascii() and number.isdigit() and len(number) < 6 else "1"
    anchor = f"#{anchor_of(next_key)}" if next_key else ""
    return f"/studies/{request.study}/languages/{language}?show={show}&page={number}{anchor}"


def anchor_of(key: str) -> str:
    """The id of a text in the page."""
    return "text-" + hash_of(key.encode())[:12]


@page(f"{PLACE}/{{language}}/file/{{format}}", role="viewer")
def export(dashboard: Dashboard, request: PageRequest) -> Response:
    """All texts as a translator's file."""
    language, format_ = _language(dashboard, request), request.params["format"]
    if format_ not in ENDINGS:
        raise NoStudy("there is no such format", remedy="choose po or xliff")
    content = for_translators(_study(dashboard, request), language, format_)
    name = f'attachment; filename="{request.study}.{language}{ENDINGS[format_]}"'
    return Response(content, media_type="application/octet-stream", headers={"content-disposition": name})


@page(f"{PLACE}/{{language}}/file", role="editor", method="POST")
def bring_back(dashboard: Dashboard, request: PageRequest) -> Response:
    """Takes over what a translator sent back."""
    folder = editable_folder(dashboard, request)
    language = _language(dashboard, request)
    name, content = request.files.get("file", ("", b""))
    if not content:
        raise DialometerError("there was nothing to read", remedy="choose a .po or .xlf file first")
    path = folder / translation_file(language)
    base = state_of_file(path)
    study = _study(dashboard, request)
    taken = take_over(study, language, name, content)
    new = file_content(study, language, taken)
    Versions(folder).save(path.name, new, request.account.name, request.at_ms, base)
    dashboard.note(request, "imported translations", f"{request.study}, {language}: {taken.in_words}")
    words = ", ".join(map(explained, taken.in_words.split(", ")))
    said = translated("Translations in {1}: {2}.", Path(name).name, words)
    return dashboard.redirect(f"/studies/{request.study}/languages/{language}", request, said)


def _study(dashboard: Dashboard, request: PageRequest) -> Study:
    study, _ = dashboard.studies.checked(request.study)
    if study is None:
        raise DialometerError("the study file has errors", remedy="fix them first; the page Files lists them")
    return study


def _language(dashboard: Dashboard, request: PageRequest) -> str:
    return check_language(_study(dashboard, request), request.params["language"])


@dataclass(frozen=True, slots=True)
class TranslationRow:
    """One text of the page."""

    text: TranslatedText
    anchor: str
    base: str
    """The hash of the translation that is edited."""
    shown: str
    """What is in the field: the translation, or what somebody typed that is not saved yet."""
    next: str
    """The key of the text to go to after saving."""
    changes: Sequence[tuple[str, str]] = ()
    """How the source has changed since it was translated."""
    is_disputed: bool = False
    """Whether somebody else translated this text while it was edited here."""
    problems: Sequence[Problem] = ()
    """What is wrong with the translation."""

    @property
    def n_rows(self) -> int:
        """Lines of the field."""
        longest = max((self.text.source, self.shown), key=len)
        return min(24, max(1, sum(1 + len(line) // 60 for line in longest.splitlines())))


ORDER = {"outdated": 0, "missing": 1, "done": 2}


def _texts_page(dashboard: Dashboard, request: PageRequest, mine: dict[str, str] | None = None) -> Response:
    study, language = _study(dashboard, request), _language(dashboard, request)
    every = translated_texts(study, language)
    wrong: dict[str, list[Problem]] = {}
    for problem in dashboard.studies.checked(request.study)[1]:
        if problem.file == translation_file(language):
            wrong.setdefault(problem.field, []).append(problem)
    is_all = request.query.get("show") == "all"
    wanted = [text for text in every if is_all or text.state != "done" or text.key in {*wrong, *(mine or {})}]
    if not is_all:
        wanted.sort(key=lambda text: (text.key not in wrong, ORDER[text.state]))
    wanted.sort(key=lambda text: text.key not in (mine or {}))  # on the page that is shown, wherever it would be
    n_pages = max(1, -(-len(wanted) // N_PER_PAGE))
    asked = request.query.get("page", "1")
    number = min(n_pages, max(1, int(asked))) if asked.isascii() and asked.isdigit() and len(asked) < 6 else 1
    number = 1 if mine else number
    shown = wanted[(number - 1) * N_PER_PAGE : number * N_PER_PAGE]
    following = dict(pairwise(text.key for text in shown))
    rows = [
        TranslationRow(
            text,
            anchor_of(text.key),
            hash_of(text.text.encode()),
            (mine or {}).get(text.key, text.text),
            following.get(text.key, ""),
            changed_lines(text.was, text.source) if text.was else (),
            text.key in (mine or {}),
            wrong.get(text.key, ()),
        )
        for text in shown
    ]
    return _page(
        dashboard,
        request,
        study,
        language=language,
        target={"tag": language, "dir": "rtl" if is_right_to_left(language) else "ltr"},
        source={"tag": study.spec.language, "dir": "rtl" if is_right_to_left(study.spec.language) else "ltr"},
        progress=progress_of(language, every),
        rows=rows,
        n_wanted=len(wanted),
        is_all=is_all,
        number=number,
        n_pages=n_pages,
        unused=unused_keys(study, language),
    )


def _page(dashboard: Dashboard, request: PageRequest, study: Study | None, **content: object) -> Response:
    studies = dashboard.studies
    is_fixed = studies.folders.is_frozen(request.study) or studies.folders.is_named(request.study)
    return dashboard.show(
        "translations.html",
        request,
        study=request.study,
        spec=study.spec if study else None,
        is_open=studies.is_open(request.study),
        may_edit=request.may("editor") and not is_fixed,
        own_name=own_name,
        tab="languages",
        **content,
    )
