"""Who arrives from where, who is turned away, and where finished raters are sent."""

import pytest
from taking_part import form_answers

from dialometer.web.rater.arrival import NotInvited, read_arrival, way_back

PROLIFIC = {"PROLIFIC_PID": "5f3a9c", "STUDY_ID": "77aa", "SESSION_ID": "31bb"}


def finish(browser, there, kind=None):
    for _ in range(60):
        session = there.store.sessions.get(browser.session_id(there))
        if session.state != "active":
            return session
        browser.send(form_answers(there.study, there.app.service.flow.screen(session)))
    raise AssertionError("no end")


def test_a_platform_s_rater_arrives_at_once_and_comes_back_to_the_same_session(make_study, site, database_url):
    there = site(make_study(recruitment={"platform": "prolific", "completion_code": "C0DE"}), database_url)
    first = there.browser().get("/", **PROLIFIC)
    assert first.screen
    first.walk_to(there, "item")
    key = first.screen
    # In another browser, with the same parameters.
    second = there.browser().get("/", **PROLIFIC)
    assert second.screen == key
    assert len(there.store.sessions.all()) == 1
    # The browser left behind lost its token.
    assert first.get("/s").status == 401
    session = finish(second, there)
    assert session.state == "completed"
    assert "C0DE" in second.page
    assert "https://app.prolific.com/submissions/complete?cc=C0DE" in second.page
    person = there.store.sessions.person(session.id)
    assert (person.platform, person.external_id) == ("prolific", "5f3a9c")
    assert dict(person.params) == {"STUDY_ID": "77aa", "SESSION_ID": "31bb"}


def test_another_rater_in_the_same_browser_gets_a_session_of_their_own(make_study, site):
    there = site(make_study(recruitment={"platform": "prolific"}))
    browser = there.browser().get("/", **PROLIFIC)
    mine = browser.session_id(there)
    browser.get("/", **PROLIFIC | {"PROLIFIC_PID": "other"})
    assert browser.session_id(there) != mine
    assert len(there.store.sessions.all()) == 2


@pytest.mark.parametrize("query", [{}, {"PROLIFIC_PID": ""}, {"PROLIFIC_PID": "x" * 500}, {"PROLIFIC_PID": "a\nb"}])
def test_without_the_platform_s_parameters_nobody_arrives(query, make_study, site):
    there = site(make_study(recruitment={"platform": "prolific"}))
    browser = there.browser().get("/", **query)
    assert browser.status == 403
    assert not there.store.sessions.all()
    assert browser.get("/s").status == 401
    # Nor by the form of an open link.
    csrf = there.browser()
    csrf.client.cookies.set("dialometer_start", "x")
    assert csrf.post("/start", {"csrf": ""}).status == 403


def test_invitations_can_be_listed(make_study, site):
    study = make_study(recruitment={"platform": "invite"})
    there = site(study)
    assert there.browser().get("/", invite="anything").screen
    (study.folder / "invitations.txt").write_text("abc # Ann\nxyz\n")
    assert there.browser().get("/", invite="guess").status == 403
    assert there.browser().get("/", invite="# Ann").status == 403
    assert there.browser().get("/", invite="xyz").screen
    assert there.browser().get("/").status == 403


def test_names_of_parameters_are_the_study_s_own(make_study, site):
    there = site(
        make_study(
            recruitment={
                "platform": "redirect",
                "parameters": {"rater": "uid"},
                "return_url": "https://panel.example/end?u={uid}&p={project}&c={code}",
                "completion_code": "A B",
            }
        )
    )
    browser = there.browser().get("/", uid="r 1", project="p/2", spam="not kept")
    session = finish(browser, there)
    person = there.store.sessions.person(session.id)
    assert dict(person.params) == {"project": "p/2"}
    address, code = way_back(there.study, session, person)
    assert address == "https://panel.example/end?u=r%201&p=p%2F2&c=A%20B"
    assert code == "A B"
    assert address.replace("&", "&amp;") in browser.page


def test_an_open_link_may_name_its_rater(make_study, site):
    there = site(make_study(recruitment={"platform": "link", "parameters": {"rater": "who"}}))
    assert not there.browser().get("/").screen
    assert there.browser().get("/", who="ann").screen
    assert there.browser().get("/", who="ann").screen
    assert len(there.store.sessions.all()) == 1


def test_a_full_a_paused_and_a_closed_study_say_so(make_study, site):
    there = site(make_study(recruitment={"platform": "link", "quota": 1}))
    assert there.browser().start().screen
    full = there.browser().get("/")
    assert full.status == 403, "before a button is pressed for nothing"
    title = there.app.service.pages.language.text("message.full.title")
    assert full.heading == title
    response = there.client.post(
        "/api/v1/sessions", json={"source": "person"}, headers={"Authorization": "Bearer the-key-of-the-tests"}
    )
    assert (response.status_code, response.json()["reason"]) == (403, "full")
    there.store.control.set_state("paused", by="ann", reason="lunch", at_ms=1)
    paused = there.browser().get("/")
    assert (paused.status, paused.heading) == (403, there.app.service.pages.language.text("message.paused.title"))
    there.store.control.set_state("closed", by="ann", reason="done", at_ms=2)
    assert there.browser().get("/").heading == there.app.service.pages.language.text("message.closed.title")


def test_a_place_that_somebody_left_is_not_full(make_study, site):
    there = site(make_study(recruitment={"platform": "link", "quota": 1}))
    there.browser().start()
    later = there.app.service.flow.clock() + 3 * 3_600_000
    there.app.service.flow.clock = lambda: later
    assert there.browser().get("/").status == 200
    assert [mark.state for mark in there.store.sessions.marks()] == ["stale"]


def test_a_study_that_nobody_has_started_says_so(make_study, site):
    there = site(make_study(recruitment={"platform": "link"}))
    there.store.control.set_state("paused", by="ann", reason="frozen, not started yet", at_ms=1)
    early = there.browser().get("/")
    assert (early.status, early.heading) == (403, "The study has not started yet")
    there.store.control.set_state("running", by="ann", reason="", at_ms=2)
    assert there.browser().start().screen
    there.store.control.set_state("paused", by="ann", reason="", at_ms=3)
    assert there.browser().get("/").heading == "The study is paused"


def test_a_blocked_rater_is_turned_away(make_study, site):
    rules = [{"rule": "block_list", "raters": ["5f3a9c"]}]
    there = site(make_study(recruitment={"platform": "prolific"}, quality=rules))
    browser = there.browser().get("/", **PROLIFIC)
    assert browser.status == 403
    assert browser.heading == there.app.service.pages.language.text("message.blocked.title")
    assert not there.store.sessions.all()


def test_screened_out_raters_get_their_own_code(make_study, site):
    study = make_study("chat", n_items=2, recruitment={"platform": "prolific", "screen_out_code": "OUT"})
    there = site(study)
    browser = there.browser().get("/", **PROLIFIC)
    browser.send(writes_english="No")
    assert there.only_session().state == "screened_out"
    assert "cc=OUT" in browser.page


def test_an_arrival_is_read_without_a_server(make_study):
    study = make_study(recruitment={"platform": "prolific"})
    assert read_arrival(study, PROLIFIC).external_id == "5f3a9c"
    with pytest.raises(NotInvited, match="names no rater"):
        read_arrival(study, {})
