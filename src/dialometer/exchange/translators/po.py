"""PO files of GNU gettext: the key of a text is its context (``msgctxt``), a changed source makes it fuzzy."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dialometer.design.translations import TranslatedText
from dialometer.errors import ImportFileError, Problem

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_READ = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_LINE = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)\s+)?"((?:[^"\\]|\\.)*)"\s*')


def write_po(study: str, source: str, target: str, texts: Iterable[TranslatedText]) -> str:
    """The texts with their translations. Those that were translated from an earlier text are fuzzy, with that text above."""
    header = {
        "Project-Id-Version": study,
        "Language": target,
        "X-Source-Language": source,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
    }
    lines = ['msgid ""', 'msgstr ""', *(_quoted(f"{name}: {value}\n") for name, value in header.items()), ""]
    for text in texts:
        if text.was:
            lines += ["#, fuzzy", *(f"#| {line}" for line in _field("msgid", text.was))]
        lines += [*_field("msgctxt", text.key), *_field("msgid", text.source), *_field("msgstr", text.text), ""]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(char, char) for char in text) + '"'


def _field(name: str, text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    return [f'{name} ""', *map(_quoted, lines)] if len(lines) > 1 else [f"{name} {_quoted(text)}"]


def read_po(content: str) -> tuple[str, list[TranslatedText]]:
    """The language that the file names, and its texts; fuzzy ones count as not translated, plural forms are not used."""
    texts: list[TranslatedText] = []
    language = ""
    for number, entry in _entries(content):
        if "msgid" not in entry or "msgstr" not in entry:
            remedy = "every entry has msgctxt, msgid and msgstr, as in the file that was exported"
            raise ImportFileError([Problem("this entry is not whole", remedy, line=number)])
        if not entry["msgid"] and not entry.get("msgctxt"):
            header = re.search(r"^Language:\s*(\S+)", entry["msgstr"], re.MULTILINE)
            language = header[1].replace("_", "-") if header else ""
        else:
            text = "" if entry.get("fuzzy") else entry["msgstr"]
            texts.append(TranslatedText(entry.get("msgctxt", ""), entry["msgid"], text))
    return language, texts


def _entries(content: str) -> Iterable[tuple[int, dict[str, str]]]:
    """Entries with the line where each begins; they are divided by empty lines or by the next context."""
    entry: dict[str, str] = {}
    field, first = "", 1
    for number, line in enumerate(content.splitlines(), start=1):
        match = _LINE.fullmatch(line.strip())
        begins = match is not None and match[1] in ("msgctxt", "msgid") and "msgstr" in entry
        if entry and (not line.strip() or begins or (line.startswith("#") and "msgstr" in entry)):
            yield first, entry
            entry, field = {}, ""
        if not line.strip() or line.startswith("#"):
            if line.startswith("#,") and "fuzzy" in line:
                entry["fuzzy"] = "yes"
            continue
        if match is None or not (match[1] or field):
            raise ImportFileError(
                [Problem("this is not a line of a PO file", "msgid or msgstr, and a text in quotes", line=number)]
            )
        if not {"msgctxt", "msgid"} & entry.keys():
            first = number
        field = "msgstr" if match[1] == "msgstr[0]" else match[1] or field
        text = re.sub(r"\\(.)", lambda escape: _READ.get(escape[1], escape[1]), match[2])
        entry[field] = entry.get(field, "") + text
    if entry.keys() - {"fuzzy"}:
        yield first, entry
