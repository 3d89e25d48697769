"""The dashboard in German, Spanish and Arabic: whole pages in the language, and catalogues that fit the templates."""

import re
import time

import pytest
from babel.core import Locale
from dashboard_texts import TEMPLATES, of_errors, of_lists, of_pages, of_schema, of_templates

from dialometer.errors import DialometerError
from dialometer.web.dashboard.dashboard import all_pages, plural
from dialometer.web.dashboard.translating import (
    catalogue,
    counted,
    dashboard_languages,
    explained,
    explained_error,
    messages,
    replaced,
)

OTHERS = [tag for tag in dashboard_languages() if tag != "en"]
LEFT_ENGLISH = {"SVG", "PNG"}
"""Texts that no language has words of its own for. Names in study files (kinds, options, rules as they are written there), texts of
the templates and of the library, and reports are English too: they are content, not the dashboard's words."""


def test_there_are_four_languages():
    assert dashboard_languages() == ("en", "ar", "de", "es")


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("texts", [of_templates, of_pages, of_lists, of_schema], ids=lambda texts: texts.__name__)
def test_every_text_of_the_dashboard_is_translated(language, texts):
    every = texts()
    assert len(every) > 100
    assert sorted(every - LEFT_ENGLISH - set(catalogue(language)["messages"])) == []


@pytest.mark.parametrize("language", OTHERS)
def test_every_error_of_the_dashboard_is_translated(language):
    every = of_errors()
    assert len(every) > 150
    assert sorted(every - set(catalogue(language)["errors"])) == []


@pytest.mark.parametrize("language", OTHERS)
def test_nothing_is_translated_that_no_page_says(language):
    spoken = of_templates() | of_pages() | of_lists() | of_schema()
    assert sorted(set(catalogue(language)["messages"]) - spoken) == []


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_fills_in_nothing_that_its_message_does_not_have(language):
    for message, text in (catalogue(language)["messages"] | catalogue(language)["errors"]).items():
        assert set(re.findall(r"\{\d+\}", text)) <= set(re.findall(r"\{\d+\}", message)), message
    for message in of_templates():
        assert not re.search(r"[<>]|\{\{|\{%", catalogue(language)["messages"].get(message, "")), message


@pytest.mark.parametrize("language", OTHERS)
def test_nouns_have_the_plural_forms_of_cldr(language):
    forms = set(Locale(language).plural_form.tags) | {"other"}
    used = {noun for path in TEMPLATES.glob("*.html") for noun in re.findall(r'plural\("([^"]+)"', path.read_text())}
    nouns = catalogue(language)["counted"]
    assert used <= set(nouns)
    assert all(set(nouns[noun]) == forms for noun in nouns)


def test_a_message_may_be_put_in_another_order():
    source = '<p title="Role of {{ name }}">Page {{ n }} of {{ all }}</p>{% if x %}<b>{{ "Open" if y else "Close" }}</b>{% endif %}'
    said = {"Page {1} of {2}": "{2} Seiten, diese: {1}", "Role of {1}": "Rolle: {1}", "Open": "Auf", "Close": "Zu"}
    assert replaced(source, said.__getitem__) == (
        '<p title="Rolle: {{ name }}">{{ all }} Seiten, diese: {{ n }}</p>{% if x %}<b>{{ "Auf" if y else "Zu" }}</b>{% endif %}'
    )


def test_templates_are_put_into_a_language_at_once():
    """The first page in a language waits for it, and everybody else with it: one template once took twenty seconds."""
    began = time.process_time()
    for path in TEMPLATES.glob("*.html"):
        assert replaced(path.read_text(encoding="utf-8"), lambda message: message)
    assert time.process_time() - began < 10


def test_what_is_compared_in_code_begins_no_tag():
    source = '<p>About {{ "a minute" if n < 1 else "a few" if n > 9 }} left {{ a < b }}.</p>'
    assert list(messages(source)) == ["a minute", "a few", "About {1} left {2}."]


def test_code_is_left_alone():
    source = """{% extends "dashboard/base.html" %}{% if a == "both bad things/x" %}<a href="/a b">{{ n|plural("open item") }}</a>
        {{ "{{title}}" }}{% endif %}"""
    assert list(messages(source)) == []


def test_counting():
    assert [counted("ar", n, "item") for n in (1, 2, 3, 11)] == ["1 عنصر", "عنصران", "3 عناصر", "11 عنصرًا"]
    assert counted("de", 1234, "item") == "1,234 Items"
    assert counted("de", 2, "unheard thing") == plural(2, "unheard thing") == "2 unheard things"


def test_an_error_is_recognised_by_its_form():
    assert explained("there is a study 'a' already", "de") == "eine Studie „a“ gibt es schon"
    assert explained("'x' is not a number — such as 30", "es") == "«x» no es un número — por ejemplo 30"
    assert explained("nobody has said this before", "ar") == "nobody has said this before"
    assert explained_error(DialometerError("write a number", where="f")) == "f: write a number"


def test_what_somebody_wrote_into_a_message_takes_no_time():
    """It is part of what is compared with the forms of errors, and as long as an editor pleases."""
    began = time.process_time()
    for text in (
        f"'{'x — ' * 5000}' is not one of the possible values",
        "'x" + "' names x" * 3000 + " systems, and a rater can compare x" * 3000,
    ):
        assert explained(text, "de") == text
    assert time.process_time() - began < 10


def test_a_draft_with_long_values_is_shown_in_every_language(site, studies_folder):
    path = studies_folder / "draft" / "study.yaml"
    path.write_text(f"{path.read_text(encoding='utf-8')}\n? {'x — ' * 5000}\n: 1\n", encoding="utf-8")
    ada = site.owner()
    for language in dashboard_languages():
        for page in ("/", "/studies/draft/files", "/studies/draft/form/study"):
            assert ada.get(page, dashboard_language=language).status == 200, (language, page)


def test_pages_are_in_the_chosen_language(site):
    visitor = site.owner()
    visitor.get("/", dashboard_language="de")
    assert '<html lang="de" dir="ltr">' in visitor.page
    assert "Neue Studie" in visitor.text
    visitor.get("/studies/likert/raters")
    assert "Tabelle der Bewertenden" in visitor.page, "the choice is kept"
    visitor.get("/studies/likert/", dashboard_language="ar")
    assert '<html lang="ar" dir="rtl">' in visitor.page
    assert "المقيّمون عبر الزمن" in visitor.text
    visitor.get("/", dashboard_language="xx")
    assert '<html lang="ar" dir="rtl">' in visitor.page


def test_the_browser_decides_where_nothing_was_chosen(site):
    response = site.client.get("/dashboard/login", headers={"accept-language": "es-MX, en;q=0.5"})
    assert '<html lang="es" dir="ltr">' in response.text
    assert "Iniciar sesión" in response.text
    assert '<html lang="en" dir="ltr">' in site.client.get("/dashboard/login").text


@pytest.mark.parametrize("language", OTHERS)
def test_every_page_can_be_drawn_in_every_language(site, language):
    visitor = site.owner()
    visitor.get("/", dashboard_language=language)
    plain = [
        page.path
        for page in all_pages()
        if page.method == "GET" and set(re.findall(r"\{(\w+)", page.path)) <= {"study"}
    ]
    assert len(plain) > 10
    for path in plain:
        for study in ("likert", "draft") if "{study}" in path else ("",):
            visitor.get(path.replace("{study}", study))
            assert visitor.status in (200, 404, 409, 422), (path, study, visitor.text[:300])
            assert "{1}" not in visitor.page, path
