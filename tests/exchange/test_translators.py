"""Translators' files: what is written can be read by other programs, and comes back as it was."""

import csv
import io
from datetime import UTC, datetime

import pytest
from babel.messages.pofile import read_po as read_with_babel

from commands import run
from dialometer.design.load import check_study, load_study
from dialometer.design.lock import changes, freeze, part_hashes, read_lock
from dialometer.design.templates import copy_template
from dialometer.design.translations import translated_texts, translations_yaml, with_texts
from dialometer.errors import DialometerError, ImportFileError
from dialometer.exchange.translators.units import FORMATS, for_translators, take_over
from dialometer.flow.study_check import check_all
from dialometer.model.translation import Translation, study_texts

TEXTS = {
    "title": 'Ein "Titel" mit \\ und <Zeichen> & mehr',
    "texts.consent": "# Einwilligung\n\nZeile mit {{title}}, {{minutes}}, {{pay}} und {{contact}}\n\tund Tabulator",
    "scales.english.options.Good": "Gut",
}


@pytest.fixture
def study(tmp_path):
    folder = tmp_path / "study"
    copy_template("likert", folder)
    text = (folder / "study.yaml").read_text()
    (folder / "study.yaml").write_text(
        text.replace("\nseed:", "\nlanguages: [en, de]\nseed:", 1).replace("\nlanguage: en\n", "\n")
    )
    return translate(load_study(folder), TEXTS)


def translate(study, texts):
    content = translations_yaml(study, "de", with_texts(study, "de", texts))
    (study.folder / "translations.de.yaml").write_text(content, encoding="utf-8")
    return load_study(study.folder)


def retitle(study):
    """Gives the study another title, so that its translation is of an earlier one."""
    text = (study.folder / "study.yaml").read_text()
    (study.folder / "study.yaml").write_text(text.replace(f"title: {study.spec.title}", "title: Another title"))


def outdated(study):
    retitle(study)
    return load_study(study.folder)


def test_the_translate_toolkit_reads_the_xliff_file(study):
    """Not a dependency: installed where translators' tools are tried."""
    xliff = pytest.importorskip("translate.storage.xliff")
    study = outdated(study)
    store = xliff.xlifffile.parsestring(for_translators(study, "de", "xliff").encode())
    assert (store.getsourcelanguage(), store.gettargetlanguage()) == ("en", "de")
    units = {unit.xmlelement.get("id"): unit for unit in store.units}
    assert {key: unit.source for key, unit in units.items()} == study_texts(study)
    assert units["texts.consent"].target == TEXTS["texts.consent"]
    assert units["title"].isfuzzy()
    assert not units["texts.consent"].isfuzzy()
    assert not units["scales.english.options.Basic"].target


def test_babel_reads_the_po_file(study):
    study = outdated(study)
    catalogue = read_with_babel(io.BytesIO(for_translators(study, "de", "po").encode()))
    assert str(catalogue.locale) == "de"
    texts = study_texts(study)
    by_key = {message.context: message for message in catalogue if message.id}
    assert {key: message.id for key, message in by_key.items()} == texts
    assert by_key["texts.consent"].string == TEXTS["texts.consent"]
    assert by_key["title"].fuzzy
    assert not by_key["texts.consent"].fuzzy
    assert by_key["scales.english.options.Basic"].string == ""


@pytest.mark.parametrize("format_", FORMATS)
def test_a_file_comes_back_as_it_was(study, format_):
    written = for_translators(study, "de", format_)
    name = {"po": "de.po", "xliff": "de.xlf"}[format_]
    taken = take_over(study, "de", name, written.encode())
    assert taken.translations == study.translations["de"]
    assert (taken.n_new, taken.n_changed, taken.n_same) == (0, 0, len(TEXTS))
    fresh = load_study(study.folder)
    (study.folder / "translations.de.yaml").unlink()
    fresh = load_study(study.folder)
    taken = take_over(fresh, "de", name, written.encode())
    assert {key: entry.text for key, entry in taken.translations.items()} == TEXTS
    assert taken.n_new == len(TEXTS)


@pytest.mark.parametrize(("name", "format_"), [("de.po", "po"), ("de.xlf", "xliff")])
def test_what_changed_meanwhile_shows(study, name, format_):
    written = for_translators(study, "de", format_)
    newer = outdated(study)
    (study.folder / "translations.de.yaml").unlink()
    taken = take_over(load_study(study.folder), "de", name, written.encode())
    assert taken.outdated == ["title"]
    assert taken.translations["title"] == Translation(study.spec.title, TEXTS["title"])
    kept = translate(newer, {"title": "Ein anderer Titel"})
    taken = take_over(kept, "de", name, written.encode())
    assert taken.translations["title"].text == "Ein anderer Titel", "a newer translation is not written over"


def test_files_that_cannot_be_used_are_refused(study):
    for name, content in {
        "de.po": b'msgid "a',
        "fr.po": b'msgid ""\nmsgstr "Language: fr\\n"\n',
        "de.xlf": b"<xliff>",
        "old.xlf": b'<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0"/>',
        "bomb.xlf": b'<!DOCTYPE x [<!ENTITY a "a">]><xliff/>',
        "de.csv": b"",
        "latin.po": "ü".encode("latin-1"),
    }.items():
        with pytest.raises(ImportFileError):
            take_over(study, "de", name, content)


def test_the_command_lists_exports_and_imports(study, tmp_path):
    listed = run("translate", str(study.folder))
    n = len(study_texts(study))
    assert f"de: 3 of {n} texts translated, {n - 3} missing, 0 out of date" in listed.stdout
    file = tmp_path / "de.po"
    run("translate", str(study.folder), "--language", "de", "--export", str(file))
    written = file.read_text().replace('msgid "Basic"\nmsgstr ""', 'msgid "Basic"\nmsgstr "Grundkenntnisse"')
    file.write_text(written)
    said = run("translate", str(study.folder), "--language", "de", "--import", str(file))
    assert "1 new, 0 changed, 3 as before" in said.stdout
    assert load_study(study.folder).translations["de"]["scales.english.options.Basic"].text == "Grundkenntnisse"
    frozen = run("freeze", str(study.folder))
    assert "texts are not translated" in frozen.stdout
    refused = run("translate", str(study.folder), "-l", "de", "--import", str(file), code=1)
    assert "a frozen study is not changed" in refused.stderr


def test_a_frozen_study_keeps_its_translations(study):
    freeze(study, study.folder, datetime(2026, 1, 1, tzinfo=UTC))
    again = translate(study, {"title": "Ein besserer Titel"})
    assert changes(again, read_lock(study.folder)[-1]) == ["changed: translations.de.yaml"]


def test_one_language_leaves_no_trace_in_a_lock(tmp_path):
    copy_template("likert", tmp_path / "one")
    parts = part_hashes(load_study(tmp_path / "one"))
    assert not [name for name in parts if "languages" in name or "translations" in name]


def test_check_names_what_is_missing_outdated_unused_and_cannot_be_filled(study):
    path = study.folder / "translations.de.yaml"
    path.write_text(
        path.read_text() + "gone.key:\n  source: a\n  text: b\ncriteria.fluency.question:\n"
        "  source: How well is this response written?\n  text: Wie gut ist {{das}}?\n"
    )
    retitle(study)
    problems = {problem.message: problem for problem in check_study(study.folder)[1]}
    words = "\n".join(problems)
    assert "texts are not translated: speakers.Traveller" in words
    assert "translated from an earlier text: title" in words
    assert "the study has no text gone.key" in words
    assert problems["nothing is known under {{das}}"].severity == "error"
    assert problems["nothing is known under {{das}}"].file == "translations.de.yaml"
    assert problems["nothing is known under {{das}}"].line > 1


def test_own_wording_in_another_language_is_checked_too(study):
    path = study.folder / "study.yaml"
    path.write_text(path.read_text() + "\nwording:\n  button.continue: Onwards\n")
    study = load_study(study.folder)
    translate(study, {"wording.button.continue": "Weiter zu {n}"})
    (problem,) = [one for one in check_all(study.folder)[1] if one.severity == "error"]
    assert problem.file == "translations.de.yaml"
    assert "cannot fill in {n}" in problem.message
    assert translate(study, {"wording.button.continue": "Weiter"}).in_language("de").spec.wording == {
        "button.continue": "Weiter"
    }


def test_a_language_that_the_study_does_not_have(study):
    with pytest.raises(DialometerError, match="not translated into 'fr'"):
        translated_texts(study, "fr")


def test_a_study_in_two_languages_from_the_command_line_to_the_report(study, tmp_path):
    """The whole way: translated, run by simulated raters in both languages, exported and reported by language."""
    folder = str(study.folder)
    run("simulate", folder, "--raters", "12", "--languages", "en=1,de=1")
    run("export", folder, "--out", str(tmp_path / "export"))
    with (tmp_path / "export" / "sessions.csv").open(encoding="utf-8", newline="") as file:
        assert {row["language"] for row in csv.DictReader(file)} == {"en", "de"}
    run(
        "report",
        folder,
        "--by",
        "language",
        "--resamples",
        "100",
        "--format",
        "markdown",
        "--out",
        str(tmp_path / "report"),
    )
    assert "## Language: groups of raters" in (tmp_path / "report" / "report.md").read_text()
    refused = run("simulate", folder, "--languages", "fr=1", code=1)
    assert "is not a share of one of the study's languages" in refused.stderr
