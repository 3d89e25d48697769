"""A study in several languages: what raters read, what is stored, and how the language is chosen."""

import re
from collections import Counter
from dataclasses import replace
from typing import Literal

import pytest
import yaml

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import load_data
from dialometer.design.load import load_study
from dialometer.design.translations import translations_yaml, with_texts
from dialometer.flow.engine import Flow
from dialometer.flow.screen_json import screen_content
from dialometer.flow.simulated import EngineAccess
from dialometer.judges.items import ItemJudge
from dialometer.judges.prompt import screen_prompt
from dialometer.model.rater_text import RaterText
from dialometer.model.scale import Scale
from dialometer.model.study import translation_file
from dialometer.model.translation import Translation, study_texts
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth

GERMAN = {
    "title": "Antworten eines Reiseassistenten",
    "texts.consent": "# Einwilligung\n\nSie nehmen freiwillig teil.",
    "texts.instructions": "# So geht es\n\nLesen Sie jede Antwort.",
    "speakers.Traveller": "Reisende",
    "criteria.relevance.question": "Wie gut passt die Antwort?",
    "scales.relevance_5.labels.1": "Gar nicht",
    "scales.english.options.Fluent": "Fließend",
    "pre_questionnaire.english.text": "Wie gut lesen Sie Englisch?",
}
ARABIC = {
    "texts.consent": "# الموافقة\n\nمشاركتك طوعية.",
    "pre_questionnaire.english.text": "ما مدى إجادتك للإنجليزية؟",
}


@pytest.fixture
def translated(make_study):
    """A study in English, German and, for the most part untranslated, Arabic."""

    def make(**changes):
        study = make_study(languages=["en", "de", "ar"], **changes)
        for language, texts in (("de", GERMAN), ("ar", ARABIC)):
            content = translations_yaml(study, language, with_texts(study, language, texts))
            (study.folder / translation_file(language)).write_text(content, encoding="utf-8")
        return load_study(study.folder)

    return make


def page_language(browser):
    return re.search(r'<html lang="([^"]*)" dir="([^"]*)"', browser.page).groups()


def test_the_language_comes_from_link_browser_or_choice(site, translated):
    here = site(translated())
    german = here.browser(**{"accept-language": "fr;q=0.9, de-AT, en;q=0.5"}).get("/")
    assert page_language(german) == ("de", "ltr"), "French is none of them, and a region takes its language"
    assert page_language(here.browser().get("/", lang="ar")) == ("ar", "rtl")
    assert page_language(here.browser(**{"accept-language": "fr"}).get("/")) == ("en", "ltr")
    german.get("/", lang="en")
    assert page_language(german) == ("en", "ltr"), "the link is stronger than the browser"
    german.get("/")
    assert page_language(german) == ("en", "ltr"), "and is remembered"
    assert page_language(german.get("/withdraw")) == ("en", "ltr")


def test_a_german_rater_reads_german_and_stores_the_same_answers(site, translated):
    study = translated()
    here = site(study)
    browser = here.browser().get("/", lang="de")
    assert "Reiseassistenten" in browser.page
    browser.send({"consent": "agree"} if browser.screen else {})
    while here.only_session().step < 1:
        browser.send(consent="agree")
    session = here.only_session()
    assert session.language == "de"
    flow = here.app.service.flow
    assert (
        session.consent_version
        == flow.consent_version(session)
        != flow.consent_version(replace(session, language="en"))
    )
    screen = browser.walk_to(here, "pre")
    browser.get("/s")
    assert "Wie gut lesen Sie Englisch?" in browser.page
    assert 'value="Fluent"' in browser.page
    assert ">Fließend<" in browser.page
    assert ">Basic<" in browser.page, "what is not translated stays as it is"
    browser.send(**{field.name: "Fluent" if field.name == "english" else "Never" for field in screen.fields})
    stored = {answer.question: answer.value for answer in here.store.records.answers(session.id)}
    assert stored["english"] == "Fluent"
    browser.walk_to(here, "item")
    browser.get("/s")
    assert "Wie gut passt die Antwort?" in browser.page
    assert "Gar nicht" in browser.page
    assert ">Reisende<" in browser.page


def test_the_language_can_be_changed_until_the_first_answer(site, translated):
    here = site(translated())
    browser = here.browser().get("/", lang="de")
    browser.send({"consent": "agree"} if browser.screen else {})
    while here.only_session().step < 1:
        browser.send(consent="agree")
    assert 'action="/s/language"' in browser.page
    browser.post("/s/language", {"csrf": browser.fields["csrf"], "lang": "ar"})
    assert page_language(browser) == ("ar", "rtl")
    assert here.only_session().language == "ar"
    browser.walk_to(here, "item")
    browser.get("/s")
    assert page_language(browser) == ("ar", "rtl")
    assert "/s/language" not in browser.page
    browser.post("/s/language", {"csrf": browser.fields["csrf"], "lang": "en"})
    assert here.only_session().language == "ar", "answers in two languages could not be told apart"


def test_nothing_is_kept_of_the_language_of_who_declines(site, translated):
    here = site(translated())
    browser = here.browser().get("/", lang="de")
    browser.send({"consent": "decline"} if browser.screen else {})
    if here.only_session().state != "declined":
        browser.send(consent="decline")
    assert (here.only_session().state, here.only_session().language) == ("declined", "")


def test_programs_choose_a_language(site, translated):
    here = site(translated())
    program = here.open_api("judge", language="de")
    assert program.get("/session").json()["language"] == "de"
    flow, session = here.app.service.flow, here.only_session()
    shown = program.screen()
    assert shown["language"] == "de"
    assert shown["text"] == flow.screen(session).text
    field = next(field for screen in screens(flow, session) for field in screen.fields if field.name == "english")
    assert field.scale.other_words == {"Fluent": "Fließend"}
    assert '"Fluent" (Fließend)' in field.scale.answer_format()
    refused = here.client.post(
        "/api/v1/sessions",
        json={"external_id": "x", "language": "fr"},
        headers={"authorization": f"Bearer {here.app.service.settings.api_key}"},
    )
    assert refused.status_code == 400
    assert "en, de, ar" in refused.json()["error"]


def screens(flow, session):
    for step in range(len(flow.path(session).steps)):
        yield flow.screen(replace(session, step=step))


def test_a_judge_reads_the_language_it_is_given(translated):
    study = translated()
    judge = ItemJudge(study, None, None, "judge", study.rated_items[:1], language="de")
    assert "Lesen Sie jede Antwort." in judge.instructions
    question = judge._questions(next(judge._passes()))[0]
    assert "Wie gut passt die Antwort?" in screen_prompt(screen_content(question.screen))


def test_items_are_translated_where_the_study_says_so(site, translated):
    study = translated(items={"translated": True})
    item = study.rated_items[0]
    assert f"items.{item.id}.context.1.text" in study_texts(study)
    system = item.systems[0]
    content = with_texts(study, "de", {f"items.{item.id}.responses.{system}": "Guten Tag!"})
    (study.folder / "translations.de.yaml").write_text(translations_yaml(study, "de", content), encoding="utf-8")
    again = load_study(study.folder)
    assert again.in_language("de").items_by_id[item.id].responses[system] == "Guten Tag!"
    assert again.items_by_id[item.id].responses[system] == item.responses[system]


def test_simulated_raters_in_all_languages_and_a_report_by_language(site, translated):
    study = translated(analysis={"subgroups": ["language"]}, recruitment={"quota": 100}, quality=[])
    here = site(study)
    flow = Flow(study, here.store)
    truth = draw_truth(study, 1)
    simulate(study, EngineAccess(flow), truth, n_raters=24, seed=1, start_ms=1_800_000_000_000)
    by_language = Counter(session.language for session in here.store.sessions.all())
    assert set(by_language) == {"en", "de", "ar"}
    report = analyse(study, here.store, n_resamples=50)
    assert "Language: groups of raters" in [section.title for section in report.sections]
    analysed = Counter(load_data(study, here.store).answers_to("language")["text"].to_list())
    assert analysed == by_language
    answers = here.store.records.answers()
    assert {answer.value for answer in answers if answer.question == "english"} <= {
        *yaml.safe_load((study.folder / "study.yaml").read_text())["scales"]["english"]["options"]
    }


def test_texts_and_options_of_a_plug_in_are_there_by_themselves(make_study):
    class Thermometer(Scale):
        type: Literal["thermometer"] = "thermometer"
        cold_label: RaterText = "Cold"
        port: str = "usb"

        def parse(self, raw, alternatives=()):
            return str(raw)

        def categories(self):
            return ["frozen", "warm", "3"]

    study = make_study(languages=["en", "de"])
    scales = {**study.spec.scales, "heat": Thermometer()}
    study = replace(study, spec=study.spec.model_copy(update={"scales": scales}))
    own = {key: text for key, text in study_texts(study).items() if key.startswith("scales.heat")}
    assert own == {
        "scales.heat.cold_label": "Cold",
        "scales.heat.options.frozen": "frozen",
        "scales.heat.options.warm": "warm",
    }
    said = {
        "scales.heat.cold_label": Translation("Cold", "Kalt"),
        "scales.heat.options.warm": Translation("warm", "heiß"),
    }
    scale = replace(study, translations={"de": said}).in_language("de").spec.scales["heat"]
    assert (scale.cold_label, scale.option_words("warm"), scale.option_words("frozen")) == ("Kalt", "heiß", "frozen")
    assert scale.categories() == ["frozen", "warm", "3"], "what is stored stays the same"
