"""Translating a study in the browser: side by side, saved text by text, and translators' files."""

import json
import re
from html import unescape

import pytest

from dialometer.design.load import load_study
from dialometer.design.versions import Versions
from dialometer.model.translation import study_texts
from dialometer.web.dashboard.pages import translations


@pytest.fixture
def ada(site):
    return site.owner()


@pytest.fixture
def folder(ada, studies_folder):
    """A draft of the likert template to be translated into German."""
    ada.post("/new", {"name": "films", "title": "", "from": "template:likert"})
    ada.get("/studies/films/languages")
    ada.post("/studies/films/languages", {"language": "de"})
    assert ada.status == 200, ada.text
    return studies_folder / "films"


def row(page, key):
    """The hidden fields of one text's form."""
    forms = re.findall(r"<form method=\"post\".*?</form>", page, re.DOTALL)
    form = next(form for form in forms if f'name="key" value="{key}"' in form)
    return {name: unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', form)}


def test_a_language_is_added_to_the_study_file(ada, folder):
    study = load_study(folder)
    assert study.spec.languages == ["en", "de"]
    assert "# " in (folder / "study.yaml").read_text(), "comments stay"
    assert f"0 of {len(study_texts(study))} texts translated" in ada.text
    for wrong in ("de", "en", "not a tag", ""):
        ada.get("/studies/films/languages")
        assert ada.post("/studies/films/languages", {"language": wrong}).status == 422


def test_texts_are_saved_one_by_one_and_shown_to_raters(ada, folder):
    ada.get("/studies/films/languages/de")
    first = row(ada.page, "title")
    ada.post("/studies/films/languages/de", {**first, "text": "Reisen & mehr"})
    assert "1 of" in ada.text
    assert load_study(folder).in_language("de").spec.title == "Reisen & mehr"
    assert 'value="title"' not in ada.page, "what is done leaves the list"
    assert 'value="title"' in ada.get("/studies/films/languages/de", show="all").page
    ada.get("/studies/films/preview/0-de/0/s")
    assert '<html lang="de" dir="ltr">' in ada.page
    assert "Reisen &amp; mehr" in ada.page
    text = (folder / "study.yaml").read_text()
    (folder / "study.yaml").write_text(re.sub(r"^title: .*$", "title: Trains", text, flags=re.MULTILINE))
    ada.get("/studies/films/languages/de")
    assert "1 out of date" in ada.text
    assert "Still correct: save" in ada.text
    ada.post("/studies/films/languages/de", {**row(ada.page, "title"), "text": "Reisen & mehr"})
    assert "0 out of date" in ada.text


def test_two_people_at_the_same_text_lose_nothing(ada, folder):
    ada.get("/studies/films/languages/de")
    mine, other = row(ada.page, "title"), row(ada.page, "criteria.fluency.label")
    ada.post("/studies/films/languages/de", {**mine, "text": "Von Ada"})
    ada.post("/studies/films/languages/de", {**other, "text": "Sprache"})
    assert ada.status == 200, "another text is no conflict, though the file has changed since"
    ada.post("/studies/films/languages/de", {**mine, "text": "Von Bob"})
    assert ada.status == 409
    assert "Von Ada" in ada.text
    assert "Von Bob" in ada.text
    study = load_study(folder)
    assert {key: entry.text for key, entry in study.translations["de"].items()} == {
        "title": "Von Ada",
        "criteria.fluency.label": "Sprache",
    }
    ada.post("/studies/films/languages/de", {**row(ada.page, "title"), "text": "Von Bob"})
    assert load_study(folder).in_language("de").spec.title == "Von Bob"
    kept = [version.file for version in Versions(folder).all()]
    assert kept.count("translations.de.yaml") == 3


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("moment", ["translated_texts", "with_texts"])
def test_saves_of_two_people_at_the_same_moment_are_both_kept(ada, folder, monkeypatch, is_first, moment):
    """Somebody else saves between reading the texts and writing them, also where the language has no file yet."""
    ada.get("/studies/films/languages/de")
    mine, other = row(ada.page, "title"), row(ada.page, "criteria.fluency.label")
    if not is_first:
        ada.post("/studies/films/languages/de", {**row(ada.page, "criteria.relevance.label"), "text": "Bezug"})
    before = getattr(translations, moment)
    waiting = [{**other, "text": "Sprache"}]

    def meanwhile(*args):
        found = before(*args)
        if waiting:
            monkeypatch.setattr(translations, moment, before)
            ada.post("/studies/films/languages/de", waiting.pop())
        return found

    monkeypatch.setattr(translations, moment, meanwhile)
    ada.post("/studies/films/languages/de", {**mine, "text": "Titel"})
    said = {key: entry.text for key, entry in load_study(folder).translations["de"].items()}
    assert said.items() >= {"title": "Titel", "criteria.fluency.label": "Sprache"}.items()


@pytest.mark.parametrize("format_", ["po", "xliff"])
def test_translators_files_go_out_and_come_back(ada, folder, format_):
    ada.get(f"/studies/films/languages/de/file/{format_}")
    name = {"po": "films.de.po", "xliff": "films.de.xlf"}[format_]
    assert name in ada.response.headers["content-disposition"]
    if format_ == "po":
        translated = ada.page.replace('msgid "Fluent"\nmsgstr ""', 'msgid "Fluent"\nmsgstr "Fließend"')
    else:
        translated = ada.page.replace("<source>Fluent</source>", "<source>Fluent</source><target>Fließend</target>")
    ada.get("/studies/films/languages/de")
    ada.post("/studies/films/languages/de/file", files={"file": (name, translated.encode())})
    assert "1 new, 0 changed" in ada.text
    scale = load_study(folder).in_language("de").spec.scales["english"]
    assert scale.option_words("Fluent") == "Fließend"
    ada.post("/studies/films/languages/de/file", files={"file": ("x.po", b"nonsense")})
    assert ada.status == 422


def test_what_was_translated_last_leaves_an_empty_list(ada, folder):
    texts = list(study_texts(load_study(folder)).items())
    path = folder / "translations.de.yaml"
    path.write_text(json.dumps({key: {"source": source, "text": source} for key, source in texts[1:]}))
    ada.get("/studies/films/languages/de")
    ada.post("/studies/films/languages/de", {**row(ada.page, texts[0][0]), "text": "Titel"})
    assert ada.status == 200
    assert "Everything is translated." in ada.text


def test_a_translation_with_a_wrong_name_in_braces_is_shown_with_what_is_wrong(ada, folder):
    ada.get("/studies/films/languages/de", page="2")
    ada.post("/studies/films/languages/de", {**row(ada.page, "texts.consent"), "text": "Etwa {{minuten}} Minuten."})
    assert "nothing is known under {{minuten}}: the source text has {{contact}}" in ada.text
    ada.post("/studies/films/languages/de", {**row(ada.page, "texts.consent"), "text": "{{title}}"})
    assert "the translation leaves out {{minutes}}: add it where it belongs" in ada.text


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [("cut.xlf", b"<xliff", "cut.xlf"), ("cut.po", b'msgid "Hello"\nmsgstr', "cut.po:2"), ("x.docx", b"PK", "x.docx")],
)
def test_a_file_that_cannot_be_read_is_named(ada, folder, name, content, where):
    ada.get("/studies/films/languages/de")
    ada.post("/studies/films/languages/de/file", files={"file": (name, content)})
    assert "This cannot be read" in ada.text
    assert f"{where} error" in ada.text
    assert not (folder / "translations.de.yaml").exists()


def test_a_frozen_study_is_read_only(ada, folder):
    ada.get("/studies/films/freeze")
    assert "texts are not translated" in ada.text
    ada.post("/studies/films/freeze")
    ada.get("/studies/films/languages/de", show="all")
    assert "cannot be changed here" in ada.text
    assert "<textarea" not in ada.page
    assert ada.post("/studies/films/languages/de", {"key": "title", "text": "x", "base": ""}).status == 422
