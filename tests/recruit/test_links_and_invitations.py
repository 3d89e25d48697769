"""Invitations by list, and sites that send raters by links with parameters of their own."""

from __future__ import annotations

import csv
import json

import pytest
import yaml

from dialometer.design.load import load_study, read_study
from dialometer.errors import DialometerError
from dialometer.model.session import Draw, Session
from dialometer.recruit.platforms.invite import invite, read_invitations
from dialometer.storage.sessions import Person
from dialometer.web.rater.arrival import NotInvited, read_arrival, way_back

URL = "https://study.example.org"


@pytest.fixture
def people(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("name,mail\nAda,ada@example.org\nBo,bo@example.org\n", encoding="utf-8")
    return file


def links(file):
    with file.open(encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def test_every_person_gets_a_link_that_the_study_accepts(make_study, dialometer, people):
    folder = make_study(platform="invite")
    told = json.loads(dialometer("recruit", "invite", folder, people, "--url", URL, "--json"))
    assert (told["people"], told["new"]) == (2, 2)
    rows = links(people.with_name("people-links.csv"))
    assert [row["name"] for row in rows] == ["Ada", "Bo"]
    assert rows[0]["link"] == f"{URL}/?invite={rows[0]['invitation']}"
    assert len({row["invitation"] for row in rows}) == 2
    assert read_invitations(folder) == {row["invitation"] for row in rows}
    study = load_study(folder)
    assert read_arrival(study, {"invite": rows[1]["invitation"]}).external_id == rows[1]["invitation"]
    with pytest.raises(NotInvited):
        read_arrival(study, {"invite": "guessed"})
    for path in folder.iterdir():
        assert b"ada@example.org" not in path.read_bytes(), "who has which link stays outside the study"


def test_a_longer_list_leaves_old_links_as_they_are(make_study, dialometer, people):
    folder = make_study(platform="invite")
    dialometer("recruit", "invite", folder, people, "--url", URL)
    listed = people.with_name("people-links.csv")
    before = links(listed)
    listed.write_text(listed.read_text() + "Cy,cy@example.org,,\n")
    told = json.loads(dialometer("recruit", "invite", folder, listed, "--url", URL, "--out", listed, "--json"))
    assert (told["people"], told["new"], told["added"]) == (3, 1, 1)
    assert links(listed)[:2] == before
    assert len(read_invitations(folder)) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "nobody"), ("name\n", "nobody"), ("name,mail\nAda\n", "cells"), ("name,name\na,b\n", "differ")],
)
def test_a_list_that_cannot_be_read_is_refused(tmp_path, text, words):
    file = tmp_path / "people.csv"
    file.write_text(text)
    with pytest.raises(DialometerError, match=words):
        invite(file, URL)


def test_the_list_of_links_stays_outside_the_study(make_study, dialometer, people):
    folder = make_study(platform="invite")
    told = dialometer("recruit", "invite", folder, people, "--url", URL, "--out", folder / "links.csv", fails=True)
    assert "outside" in told
    assert "platform" in dialometer("recruit", "invite", make_study_link(folder), people, "--url", URL, fails=True)


def make_study_link(folder):
    path = folder / "study.yaml"
    path.write_text(path.read_text().replace("platform: invite", "platform: link"))
    return folder


SITES = {
    "connect": ({"participantId": "P9", "assignmentId": "A1", "projectId": "J7"}, "participantId"),
    "sona": ({"survey_code": "4711"}, "survey_code"),
    "mturk": ({"workerId": "W1", "assignmentId": "A2", "hitId": "H3"}, "workerId"),
}


@pytest.mark.parametrize("preset", SITES)
def test_known_sites_send_raters_and_get_them_back(make_study, dialometer, preset):
    query, rater = SITES[preset]
    back = "https://site.example/end?id={" + rater + "}&c={code}"
    folder = make_study(platform="redirect", preset=preset, return_url=back, screen_out_url="https://site.example/out")
    study = load_study(folder)
    arriving = read_arrival(study, {**query, "stray": "not kept"})
    assert arriving.external_id == query[rater]
    assert dict(arriving.params) == {name: value for name, value in query.items() if name != rater}
    with pytest.raises(NotInvited):
        read_arrival(study, {name: value for name, value in query.items() if name != rater})
    person = Person("r", "redirect", arriving.external_id, arriving.params)
    session = Session("s", "r", 1, {}, Draw(1, 0, (), {}), state="completed")
    assert way_back(study, session, person) == (f"https://site.example/end?id={query[rater]}&c=C0MPLETE", "C0MPLETE")
    out = Session("s", "r", 1, {}, Draw(1, 0, (), {}), state="screened_out")
    assert way_back(study, out, person) == ("https://site.example/out", "SCR33NED")
    told = json.loads(dialometer("recruit", "link", folder, "--url", URL, "--json"))
    assert told["rater"] == rater
    assert told["kept"] == sorted(name for name in query if name != rater)
    assert rater in dialometer("recruit", "link", folder, "--url", URL)


def test_own_names_of_parameters_go_over_those_of_a_site(make_study):
    folder = make_study(platform="redirect", preset="mturk", parameters={"rater": "panelist"})
    assert read_arrival(load_study(folder), {"panelist": "x", "hitId": "h"}).external_id == "x"


def test_a_site_needs_a_redirect(make_study):
    folder = make_study()
    path = folder / "study.yaml"
    spec = yaml.safe_load(path.read_text())
    spec["recruitment"]["preset"] = "sona"
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    _, problems = read_study(folder)
    assert any("needs platform: redirect" in problem.message for problem in problems)
