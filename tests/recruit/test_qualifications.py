"""Who may rate: checked, sent to Prolific's filters, asked in screening elsewhere, shown in protocol and preregistration."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml

from dialometer.design.load import check_study, load_study
from dialometer.design.lock import fingerprint
from dialometer.design.protocol import protocol
from dialometer.errors import StudyError
from dialometer.recruit.names import COUNTRIES, LANGUAGES, known_name
from dialometer.recruit.platforms import platform_of
from dialometer.recruit.platforms.prolific import Prolific
from dialometer.recruit.prolific_filters import filters_in_numbers

URL = "https://study.example.org"
ADA, BO, CY = ("5f0c" + letter * 20 for letter in "abc")
PAPER = {"min_approval_percent": 80, "min_earlier_tasks": 500}


@pytest.fixture
def qualified(make_study, tmp_path):
    """A study with qualifications, in words of its file."""

    def make(qualifications, **recruitment):
        shutil.rmtree(tmp_path / "study", ignore_errors=True)
        return make_study(qualifications=qualifications, **recruitment)

    return make


def messages(folder):
    return [
        (p.field.removeprefix("recruitment.qualifications."), p.severity, p.message) for p in check_study(folder)[1]
    ]


def test_everything_goes_to_prolific_in_the_form_of_its_api(qualified, dialometer, loopback):
    folder = qualified(
        {
            **PAPER,
            "countries": ["GB", "Ireland", "Czechia"],
            "first_languages": ["english"],
            "fluent_languages": ["de", "English"],
            "platform_filters": {"handedness": ["Left", "Ambidextrous"]},
            "allow_list": "allowed.txt",
            "block_list": "blocked.txt",
        }
    )
    (folder / "allowed.txt").write_text(f"# a remark\n{ADA}\n{BO} # Bo\n", encoding="utf-8")
    (folder / "blocked.txt").write_text(f"{CY}\n", encoding="utf-8")
    dialometer("recruit", "prolific", "draft", folder, "--url", URL, "--live")
    made = {chosen["filter_id"]: chosen for chosen in loopback.platform.studies["study0001"]["filters"]}
    assert made["approval_rate"]["selected_range"] == {"lower": 80, "upper": 100}
    assert made["approval_numbers"]["selected_range"] == {"lower": 500, "upper": 10000}
    assert made["current-country-of-residence"]["selected_values"] == ["0", "2", "7"]
    assert made["first-language"]["selected_values"] == ["19"]
    assert made["fluent-languages"]["selected_values"] == ["4", "19"]
    assert made["handedness"]["selected_values"] == ["0", "2"]
    assert made["custom_allowlist"]["selected_values"] == [ADA, BO]
    assert made["custom_blocklist"]["selected_values"] == [CY]
    assert ("GET", "/filters/") in loopback.platform.seen


def test_the_server_of_these_tests_refuses_other_filters(qualified, loopback):
    study = load_study(qualified({"countries": ["GB"]}))
    with Prolific.api.from_environment() as api:
        payload = Prolific(study.spec.recruitment).draft_of(study, URL, minutes=5)
        with pytest.raises(Exception, match="Not a valid filter"):
            api.create_draft(payload)  # names where numbers are wanted


def test_a_dry_run_shows_filters_in_words(qualified, dialometer, loopback, monkeypatch):
    monkeypatch.delenv("PROLIFIC_TOKEN")
    folder = qualified({"countries": ["GB"]})
    told = json.loads(dialometer("recruit", "prolific", "draft", folder, "--url", URL, "--json"))
    assert told["would_send"]["filters"] == [{"filter_id": "current-country-of-residence", "selected_values": ["GB"]}]
    assert "looked up with --live" in dialometer("recruit", "prolific", "draft", folder, "--url", URL)
    assert loopback.platform.seen == []


def test_what_prolific_does_not_know_is_said_before_a_draft_is_made(qualified, dialometer, loopback):
    folder = qualified(
        {"countries": ["France"], "platform_filters": {"handednes": ["Left"], "approval_rate": ["high"]}}
    )
    told = dialometer("recruit", "prolific", "draft", folder, "--url", URL, "--live", fails=True)
    assert "has no answer 'France'" in told
    assert "did you mean 'handedness'" in told
    assert "is of the kind 'range'" in told
    assert loopback.platform.studies == {}
    with pytest.raises(StudyError, match="Prolific has no filter"):
        filters_in_numbers([{"filter_id": "x", "selected_values": []}], {})


def test_misspelt_names_lists_and_numbers_are_errors(qualified):
    folder = qualified(
        {"countries": ["Untied Kingdom"], "levels": {"Englisch": "C1"}, "allow_list": "a.txt", "block_list": "b.txt"}
    )
    (folder / "b.txt").write_text("not an id\n", encoding="utf-8")
    found = messages(folder)
    assert ("countries", "error", "there is no country 'Untied Kingdom'") in found
    assert ("levels", "error", "there is no language 'Englisch'") in found
    assert ("allow_list", "error", "the list 'a.txt' cannot be read: there is no such file") in found
    assert ("block_list", "error", "'not an id' in b.txt is not an identifier of Prolific") in found
    folder = qualified({"min_earlier_tasks": 9, "max_earlier_tasks": 3, "min_approval_percent": 101})
    texts = " ".join(message for _, _, message in messages(folder))
    assert "101 is out of range" in texts
    folder = qualified({"min_earlier_tasks": 9, "max_earlier_tasks": 3})
    assert "min_earlier_tasks 9 is above max_earlier_tasks 3" in " ".join(m for _, _, m in messages(folder))


def test_a_platform_that_cannot_filter_lets_screening_ask(qualified):
    folder = qualified(
        {"countries": ["IE"], "first_languages": ["English"], "levels": {"German": "B2"}, **PAPER},
        platform="link",
        completion_code="",
        screen_out_code="",
    )
    study = load_study(folder)
    asked = {question.name: question for question in study.spec.screening}
    assert asked["country_of_residence"].accept == ["Ireland"]
    options = study.spec.scales["screening_country_of_residence"].options
    assert {"Ireland", "India", "Another one"} <= set(options)
    assert len(asked["level_german"].accept) == 3
    met = dict(part.rsplit(" (", 1) for part in protocol(study).qualifications)
    assert met["lives in Ireland"] == "asked in screening)"
    assert met["German at level B2 or above"] == "asked in screening)"
    assert met["at least 80% of earlier tasks approved"] == "not checked: an open link cannot filter by it)"
    unmet = [(field, severity) for field, severity, _ in messages(folder) if severity == "warning"]
    assert {("min_approval_percent", "warning"), ("min_earlier_tasks", "warning")} <= set(unmet)


def test_own_questions_and_other_languages_are_left_to_the_study(qualified):
    folder = qualified({"countries": ["IE"], "levels": {"English": "C1"}}, platform="link")
    spec = yaml.safe_load((folder / "study.yaml").read_text())
    spec["language"] = "de"
    spec["scales"]["land"] = {"type": "choice", "options": ["Irland", "anderswo"]}
    question = {"name": "country_of_residence", "text": "Wo wohnen Sie?", "scale": "land", "accept": ["Irland"]}
    spec["screening"] = [question]
    (folder / "study.yaml").write_text(yaml.safe_dump(spec, allow_unicode=True))
    study = load_study(folder)
    assert [question.name for question in study.spec.screening] == ["country_of_residence"]
    warned = {field for field, severity, _ in messages(folder) if severity == "warning"}
    assert "levels" in warned
    assert "countries" not in warned


def test_prolific_asks_levels_in_screening_and_filters_the_rest(qualified):
    study = load_study(qualified({"countries": ["GB"], "levels": {"English": "C1"}}))
    assert [q.name for q in study.spec.screening if q.name.startswith(("country", "level"))] == ["level_english"]
    assert protocol(study).qualifications == (
        "lives in United Kingdom (filtered by Prolific)",
        "English at level C1 or above (asked in screening)",
    )


def test_lists_are_checked_on_arrival(qualified):
    folder = qualified({"allow_list": "allowed.txt", "block_list": "blocked.txt"})
    (folder / "allowed.txt").write_text(f"{ADA}\n{BO}\n", encoding="utf-8")
    (folder / "blocked.txt").write_text(f"{BO}\n", encoding="utf-8")
    platform = platform_of(load_study(folder).spec.recruitment)
    assert [platform.accepts(rater, folder) for rater in (ADA, BO, CY)] == [True, False, False]
    (folder / "allowed.txt").write_text(f"{ADA}\n{BO}\n{CY}\n", encoding="utf-8")
    assert platform.accepts(CY, folder), "the list may grow"


def test_protocol_and_preregistration_show_them(qualified, dialometer):
    folder = qualified({**PAPER, "countries": ["US", "IN"]})
    said = " ".join(dialometer("check", folder).split())
    assert "at least 500 earlier tasks (filtered by Prolific)" in said
    assert json.loads(dialometer("check", folder, "--json"))["protocol"]["qualifications"]
    assert "lives in United States or India (filtered by Prolific)" in said
    dialometer("preregister", folder, "--simulations", "0", "--out", folder / "plan.md")
    written = " ".join((folder / "plan.md").read_text(encoding="utf-8").split())
    assert (
        "Raters must meet these qualifications: at least 80% of earlier tasks approved (filtered by Prolific)"
        in written
    )
    told = " ".join(dialometer("recruit", "link", folder).split())
    assert "Qualification: at least 80% of earlier tasks approved (filtered by Prolific)" in told


def test_a_study_without_qualifications_is_still_the_study_that_was_frozen(make_study, qualified):
    before = fingerprint(load_study(make_study()))
    assert fingerprint(load_study(qualified({}))) == before
    assert fingerprint(load_study(qualified(PAPER))) != before


@pytest.mark.parametrize(
    ("text", "table", "name"),
    [
        ("gb", COUNTRIES, "United Kingdom"),
        ("USA", COUNTRIES, "United States"),
        ("czech republic", COUNTRIES, "Czechia"),
        ("EN", LANGUAGES, "English"),
        ("Farsi", LANGUAGES, "Persian"),
        ("Klingon", LANGUAGES, None),
    ],
)
def test_countries_and_languages_by_name_and_code(text, table, name):
    assert known_name(text, table) == name
