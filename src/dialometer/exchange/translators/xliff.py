"""XLIFF 1.2 (OASIS 2008), which translation programs read: one unit for each text, with the text's key as its id."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree  # nosec B405  # documents with entities are refused before they are parsed

from dialometer.design.translations import TranslatedText
from dialometer.errors import ImportFileError, Problem

NAMESPACE = "urn:oasis:names:tc:xliff:document:1.2"
VERSION = "1.2"
_STATES = {"outdated": "needs-review-translation", "done": "translated"}
NOT_READY = ("new", "needs-translation", "needs-review-translation", "needs-adaptation", "needs-l10n")
"""States of a target that does not count as a translation yet."""


def write_xliff(study: str, source: str, target: str, texts: Iterable[TranslatedText]) -> str:
    """The texts with their translations; one that was translated from an earlier text needs a review, with that text as a note."""
    ElementTree.register_namespace("", NAMESPACE)
    root = ElementTree.Element(_tag("xliff"), {"version": VERSION})
    about = {"original": f"{study}/study.yaml", "source-language": source, "target-language": target}
    file = ElementTree.SubElement(root, _tag("file"), {**about, "datatype": "plaintext"})
    body = ElementTree.SubElement(file, _tag("body"))
    for text in texts:
        unit = ElementTree.SubElement(
            body, _tag("trans-unit"), {"id": text.key, "{http://www.w3.org/XML/1998/namespace}space": "preserve"}
        )
        ElementTree.SubElement(unit, _tag("source")).text = text.source
        if text.text:
            ElementTree.SubElement(unit, _tag("target"), {"state": _STATES[text.state]}).text = text.text
            unit.set("approved", "no" if text.was else "yes")  # what some tools look at instead of the state
        if text.was:
            ElementTree.SubElement(unit, _tag("note")).text = f"Translated from: {text.was}"
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _tag(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"


def read_xliff(content: str) -> tuple[str, list[TranslatedText]]:
    """The language that the file names, and its texts; targets that a tool marks as not ready count as not translated."""
    if "<!DOCTYPE" in content or "<!ENTITY" in content:
        raise _unreadable("a file with entities is not read", "save it again as plain XLIFF 1.2")
    try:
        root = ElementTree.fromstring(content)  # nosec B314  # no entities, see above
    except ElementTree.ParseError as error:
        raise _unreadable(f"this is not XML: {error}", "save it again as XLIFF 1.2") from error
    if root.tag != _tag("xliff") or root.get("version") != VERSION:
        raise _unreadable("this is not XLIFF 1.2", "save it as XLIFF 1.2, or as PO")
    file = root.find(_tag("file"))
    language = file.get("target-language", "") if file is not None else ""
    texts = []
    for unit in root.iter(_tag("trans-unit")):
        source, target = unit.find(_tag("source")), unit.find(_tag("target"))
        is_ready = target is not None and target.get("state", "translated") not in NOT_READY
        text = "".join(target.itertext()) if target is not None and is_ready else ""
        texts.append(TranslatedText(unit.get("id", ""), "".join(source.itertext()) if source is not None else "", text))
    return language, texts


def _unreadable(message: str, remedy: str) -> ImportFileError:
    return ImportFileError([Problem(message, remedy)])
