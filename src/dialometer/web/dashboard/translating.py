"""The dashboard in other languages: its English words are looked up in the catalogue of a language.

A message is a piece of text between two tags of a template, an attribute that is read out or shown, or a sentence that a page says
with :func:`translated`; it has ``{1}``, ``{2}`` … where something is filled in. The messages of templates are looked up while a
template is loaded. Errors are written in English wherever they are raised, so they are recognised by their form (:func:`explained`).
Templates and code stay plain English; what a catalogue lacks stays English too. There is one catalogue for each language in
``web/locales``: messages, errors, and nouns that are counted in the plural forms of Unicode's CLDR.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

from jinja2.ext import Extension

from dialometer.errors import DialometerError
from dialometer.flow.language import accepted_languages, is_right_to_left, nearest_language, own_name, plural_category

ATTRIBUTES = (
    *("aria-label", "title", "placeholder", "alt", "data-confirm", "data-copy"),
    *("data-copied", "data-one-edits", "data-some-edit", "data-saved-since", "data-and"),
)
"""What is read out, shown, or said by a script."""
_FILL = r"""\{\{(?:"[^"]*"|'[^']*'|[^"'}]|\}(?!\}))*+\}\}"""
_TAG = re.compile(
    r"""(?P<comment>\{\#.*?\#\}|<!--.*?-->)|(?P<block>\{%.*?%\})|(?P<raw><(?:script|style)\b.*?</(?:script|style)>)"""
    rf"""|(?P<fill>{_FILL})|(?P<tag><(?:{_FILL}|\{{%.*?%\}}|"[^"]*"|'[^']*'|[^<>"'{{]|\{{(?![{{%]))++>)""",
    re.DOTALL,
)
_FILLED = re.compile(_FILL)
_ATTRIBUTE = re.compile(
    rf"""(?<=\s)(?P<name>{"|".join(ATTRIBUTES)})=(?P<quote>["'])(?P<text>.*?)(?P=quote)""", re.DOTALL
)
_LITERAL = re.compile(r"""(?P<noun>plural\()?(?:"(?P<text>[^"\\]*)"|'[^'\\]*')""")
_CODE = frozenset("{}<>|/=%_")
"""Signs that words for people do not have."""
_NAMING = re.compile(r"\{%-?\s*(?:extends|import|from|include)\b")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_PLACE = re.compile(r"\{(\d+)\}")
Replace = Callable[[str], str]
CHOICE = "dashboard_language"
"""The parameter of an address that chooses the language, and the cookie that keeps it."""
LONGEST = 600
"""Characters of a sentence that is recognised by its form. Others hold what somebody wrote, and looking for forms in it would
take as long as it pleases."""
_current: ContextVar[str] = ContextVar("dashboard_language", default="en")


def replaced(source: str, replace: Replace) -> str:
    """A template with every message replaced; ``replace`` gets messages as catalogues have them."""
    pieces: list[str] = []
    end = 0
    for match in _TAG.finditer(source):
        if match["fill"]:  # part of the text around it; what is less than something there begins no tag
            continue
        pieces.append(_text(source[end : match.start()], replace))
        end = match.end()
        if match["tag"]:
            pieces.append(_ATTRIBUTE.sub(lambda found: _attribute(found, replace), match[0]))
        elif match["block"]:
            pieces.append(_literals(match[0], replace))
        else:
            pieces.append(match[0])
    pieces.append(_text(source[end:], replace))
    return "".join(pieces)


def _text(text: str, replace: Replace) -> str:
    core = text.strip()
    if not core:
        return text
    filled = [_literals(one, replace) for one in _FILLED.findall(core)]
    numbers = iter(range(1, len(filled) + 1))
    message = " ".join(_FILLED.sub(lambda _: f"{{{next(numbers)}}}", core).split())
    if not _LETTERS.search(_PLACE.sub("", message)):
        said = _PLACE.sub(lambda place: filled[int(place[1]) - 1], message)
    else:
        said = _PLACE.sub(lambda place: filled[int(place[1]) - 1], replace(message))
    start = text.index(core)
    return text[:start] + said + text[start + len(core) :]


def _attribute(found: re.Match[str], replace: Replace) -> str:
    text = found["text"]
    if "{%" in text:
        return found[0]
    return f"{found['name']}={found['quote']}{_text(text, replace)}{found['quote']}"


def _literals(code: str, replace: Replace) -> str:
    """Words that are written inside template code, such as the two labels of a button: those that begin with a capital letter or
    have a space are for people, all others are names."""

    def said(found: re.Match[str]) -> str:
        text = found["text"] or ""
        is_said = bool(_LETTERS.search(text)) and (text[:1].isupper() or " " in text.strip())
        if found["noun"] or not is_said or _CODE & set(text) or _NAMING.match(code):
            return found[0]
        core = text.strip()
        start = text.index(core)
        return f'"{text[:start]}{replace(core)}{text[start + len(core) :]}"'

    return _LITERAL.sub(said, code)


def messages(source: str) -> Iterator[str]:
    """Every message of a template, in its order."""
    found: list[str] = []

    def note(message: str) -> str:
        found.append(message)
        return message

    replaced(source, note)
    return iter(dict.fromkeys(found))


@cache
def catalogue(language: str) -> Mapping[str, Any]:
    """The messages and counted nouns of a language; English has none, since templates are English."""
    if language == "en":
        return {"messages": {}, "errors": {}, "counted": {}}
    content: Mapping[str, Any] = json.loads(
        files("dialometer.web").joinpath("locales", f"{language}.json").read_text(encoding="utf-8")
    )
    return content


@cache
def dashboard_languages() -> tuple[str, ...]:
    """The languages of the dashboard, English first."""
    folder = files("dialometer.web").joinpath("locales")
    return ("en", *sorted(file.name[:-5] for file in folder.iterdir() if file.name.endswith(".json")))


def said(language: str, text: str) -> str:
    """A word or sentence in a language; itself where the catalogue lacks it."""
    known: str = catalogue(language)["messages"].get(text, text)
    return known


def translated(text: str, /, *values: object) -> str:
    """A message in the language of the request, with its values filled in."""
    return filled(said(current_language(), text), *values)


def filled(text: str, /, *values: object) -> str:
    """A message with its values filled in."""
    return _PLACE.sub(lambda place: str(values[int(place[1]) - 1]), text) if values else text


@cache
def _error_forms(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """The errors of a catalogue that fill something in, as patterns; those with most words of their own first."""
    forms = [text for text in catalogue(language)["errors"] if _PLACE.search(text)]
    forms.sort(key=lambda text: len(_PLACE.sub("", text)), reverse=True)
    return tuple((re.compile(_as_pattern(text), re.DOTALL), catalogue(language)["errors"][text]) for text in forms)


def _as_pattern(text: str) -> str:
    pieces = _PLACE.split(text)
    return "".join(f"(?P<v{piece}>.+?)" if i % 2 else re.escape(piece) for i, piece in enumerate(pieces))


def explained(text: str, language: str = "") -> str:
    """An English sentence of an error in the language of the request; itself where the catalogue lacks it."""
    language = language or current_language()
    known: Mapping[str, str] = catalogue(language)["errors"]
    if text in known or len(text) > LONGEST:
        return known.get(text, text)
    message, dash, remedy = text.partition(" — ")
    if dash:
        return f"{explained(message, language)} — {explained(remedy, language)}"
    for pattern, said_so in _error_forms(language):
        match = pattern.fullmatch(text)
        if match:
            return _PLACE.sub(lambda place: match[f"v{place[1]}"], said_so)  # noqa: B023 - used at once
    return text


def explained_error(error: DialometerError) -> str:
    """What an error says, as its own text, in the language of the request."""
    text = explained(error.message)
    text = f"{said(current_language(), error.where)}: {text}" if error.where else text
    return f"{text} — {explained(error.remedy)}" if error.remedy else text


def counted(language: str, number: int, what: str) -> str:
    """A number with its noun, in the form that the number asks for."""
    forms = catalogue(language)["counted"].get(what, {})
    written = f"{number:,.0f}"
    form = forms.get(plural_category(language, number), forms.get("other"))
    if form is None:
        return f"{written} {what}{'' if number == 1 else 's'}"
    return str(form).replace("{n}", written)


def translated_count(number: int, what: str) -> str:
    """A number with its noun, in the language of the request."""
    return counted(current_language(), number, what)


@dataclass(frozen=True, slots=True)
class BoardLanguage:
    """A language of the dashboard, for the frame of its pages."""

    tag: str

    @property
    def name(self) -> str:
        """What it calls itself."""
        return own_name(self.tag)

    @property
    def direction(self) -> str:
        """From left to right, or from right to left."""
        return "rtl" if is_right_to_left(self.tag) else "ltr"


def current_language() -> str:
    """The language of the request that is being answered."""
    return _current.get()


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Pages that are drawn inside are in the language nearest to this one; in that of the request where there is none."""
    before = _current.set(nearest_language([language], dashboard_languages()) or current_language())
    try:
        yield
    finally:
        _current.reset(before)


def choose_language(query: bytes, headers: Mapping[bytes, bytes]) -> str:
    """Sets the language of this request: chosen now, chosen before, or what the browser asks for. Returns what was chosen now."""
    asked = dict(parse_qsl(query.decode("latin-1"), max_num_fields=100)) if CHOICE.encode() in query else {}
    chosen = nearest_language([asked.get(CHOICE, "")], dashboard_languages()) if asked.get(CHOICE) else ""
    try:
        kept = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(CHOICE)
    except CookieError:
        kept = None
    wanted = [
        chosen,
        kept.value if kept else "",
        *accepted_languages(headers.get(b"accept-language", b"").decode("latin-1")),
    ]
    _current.set(nearest_language([tag for tag in wanted if tag], dashboard_languages()) or "en")
    return chosen


def translation_for(language: str) -> type[Extension]:
    """The extension that gives an environment its language."""

    class TranslatedTemplates(Extension):
        """Templates of one language."""

        def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
            """The template with its messages in the language."""
            if language == "en" or not (name or "").startswith("dashboard/"):
                return source
            return replaced(source, lambda message: said(language, message).replace('"', "”"))

    return TranslatedTemplates
