"""Who arrives from where, who is turned away, and where finished raters are sent."""

import base64
import hmac
import re
from html import unescape

import pytest
from taking_part import form_answers

from dialometer.recruit.signed_links import signature
from dialometer.storage.access.secrets import SIGNING
from dialometer.storage.controls import FROZEN
from dialometer.web.rater.arrival import NotInvited, read_arrival, way_back

PROLIFIC = {"PROLIFIC_PID": "5f3a9c", "STUDY_ID": "77aa", "SESSION_ID": "31bb"}


def finish(browser, there, kind=None):
    for _ in range(60):
        session = there.store.sessions.get(browser.session_id(there))
        if session.state != "active":
            return session
        browser.send(form_answers(there.study, there.app.service.flow.screen(session)))
    raise AssertionError("no end")


def test_opening_a_link_stores_nothing_and_agreeing_begins_a_session(make_study, site, database_url):
    there = site(make_study(recruitment={"platform": "prolific", "completion_code": "C0DE", "quota": 2}), database_url)
    for n in range(5):
        opened = there.browser().get("/", **PROLIFIC | {"PROLIFIC_PID": f"pid{n}"})
        assert (opened.status, opened.screen) == (200, "consent")
    assert not there.store.sessions.all()
    assert not there.store.counts.item_counts()
    first = there.browser().get("/", **PROLIFIC)
    first.send(consent="agree")
    session = there.only_session()
    assert (session.step, session.consent_version) == (1, there.app.service.flow.consent_version(session))
    (visit,) = there.store.records.visits(session.id)
    assert visit.screen == "consent"
    first.walk_to(there, "item")
    key = first.screen
    # The same browser with the same link, after its tab was closed.
    assert first.get("/", **PROLIFIC).screen == key
    session = finish(first, there)
    assert session.state == "completed"
    assert "C0DE" in first.page
    assert "https://app.prolific.com/submissions/complete?cc=C0DE" in first.page
    person = there.store.sessions.person(session.id)
    assert (person.platform, person.external_id) == ("prolific", "5f3a9c")
    assert dict(person.params) == {"STUDY_ID": "77aa", "SESSION_ID": "31bb"}
    assert len(there.store.sessions.all()) == 1


@pytest.mark.parametrize("query", [PROLIFIC, {}])
def test_a_form_that_is_sent_twice_begins_one_session(query, make_study, site):
    there = site(make_study(recruitment={"platform": "prolific" if query else "link"}))
    browser = there.browser().get("/", **query)
    form = {**browser.fields, **({"consent": "agree"} if query else {})}
    # The answer to the first sending never reaches the browser: it has no session yet.
    lost = there.browser()
    lost.client.cookies.set("dialometer_start", browser.client.cookies["dialometer_start"])
    assert lost.post("/start", form).screen
    assert browser.post("/start", form).screen
    assert browser.session_id(there) == there.only_session().id
    if query:
        assert there.only_session().step == 1


@pytest.mark.parametrize("query", [PROLIFIC, {}])
def test_who_used_the_browser_before_gets_nothing_of_the_session(query, make_study, site):
    """In a laboratory the next rater sits at the same computer: what the first page left there opens no session later."""
    there = site(make_study(recruitment={"platform": "prolific" if query else "link"}))
    browser = there.browser().get("/", **query)
    seen = browser.client.cookies["dialometer_start"]
    form = dict(browser.fields)
    browser.arrive(**query)
    browser.walk_to(there, "item")
    browser.send(form_answers(there.study, there.app.service.flow.screen(there.only_session())))
    stranger = there.browser()
    message = f"dialometer session\x00{'prolific' if query else 'link'}\x00{query.get('PROLIFIC_PID', '')}"
    digest = hmac.digest(seen.encode(), message.encode(), "sha256")
    token = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    stranger.client.cookies.set("dialometer_session", token)
    assert stranger.get("/s").action != "/s"
    stranger = there.browser()
    stranger.client.cookies.set("dialometer_start", seen)
    stranger.post("/start", {**form, **({"consent": "agree"} if query else {})})
    assert (stranger.status, stranger.heading) == (409, "You have already started this study")
    assert not stranger.client.cookies.get("dialometer_session")
    assert browser.get("/s").screen


def test_the_first_page_and_the_consent_name_the_same_minutes_and_pay(make_study, site):
    there = site(make_study(recruitment={"minutes": 12.4, "pay_cents": 125, "currency": "EUR"}))
    browser = there.browser().get("/")
    first = browser.page
    consent = browser.send().page
    assert "13 minutes" in first
    assert "13 minutes" in consent
    assert "1.25 EUR" in first


def test_who_declines_at_the_link_leaves_that_somebody_declined(make_study, site):
    there = site(make_study(recruitment={"platform": "prolific"}))
    browser = there.browser().get("/", **PROLIFIC)
    assert browser.send({}).status == 422, "one of the two buttons"
    assert browser.fields["PROLIFIC_PID"] == "5f3a9c", "the link is not lost"
    assert not there.store.sessions.all()
    browser.send(consent="decline")
    assert browser.heading == there.app.service.pages().language.text("done.declined.title")
    session = there.only_session()
    assert (session.state, session.rater_id) == ("declined", "")


def test_a_name_in_a_link_takes_over_nobody_s_session(make_study, site, database_url):
    there = site(make_study(recruitment={"platform": "prolific", "completion_code": "C0DE"}), database_url)
    alice = there.browser().arrive(**PROLIFIC)
    alice.walk_to(there, "item")
    key = alice.screen
    stranger = there.browser().get("/", **PROLIFIC)
    assert (stranger.status, stranger.heading) == (409, "You have already started this study")
    assert not stranger.client.cookies.get("dialometer_session")
    # Nor by the form of somebody else's page.
    forged = there.browser().get("/", **PROLIFIC | {"PROLIFIC_PID": "mallory"})
    forged.send({"consent": "agree", "PROLIFIC_PID": PROLIFIC["PROLIFIC_PID"]})
    assert forged.status == 409
    assert alice.get("/s").screen == key
    assert len(there.store.sessions.all()) == 1
    assert 'dialometer_refusals_total{reason="elsewhere"} 2' in there.client.get("/metrics").text


def test_the_resume_link_goes_on_in_another_browser(make_study, site):
    there = site(make_study(recruitment={"platform": "prolific"}))
    alice = there.browser().arrive(**PROLIFIC)
    alice.walk_to(there, "item")
    key = alice.screen
    link = re.search(r'class="resume-link"[^>]*>http://testserver(/resume/[^<]+)<', alice.page)[1]
    phone = there.browser().get(link)
    assert (phone.status, phone.heading) == (200, "Continue your session here?")
    assert not phone.client.cookies.get("dialometer_session"), "opening it changes nothing"
    assert phone.send().screen == key
    assert alice.get("/s").screen == key, "both browsers may go on"
    assert phone.get("/", **PROLIFIC).screen == key
    assert there.browser().get("/resume/guessed").status == 401
    finish(phone, there)
    late = there.browser().get(link).send()
    assert late.heading == "Thank you!", "a finished rater gets the code back"


def test_who_left_before_the_first_answer_may_begin_in_another_browser(make_study, site):
    there = site(make_study(recruitment={"platform": "prolific", "quota": 1}, design={"hold_minutes": 10}))
    phone = there.browser().arrive(**PROLIFIC)
    assert there.browser().get("/", **PROLIFIC).status == 409
    assert there.browser().get("/", PROLIFIC_PID="bob").status == 403, "the only slot is held"
    flow = there.app.service.flow
    now, flow.clock = flow.clock, lambda: now() + 11 * 60_000
    desk = there.browser().arrive(**PROLIFIC)
    assert desk.screen
    assert desk.session_id(there) == there.only_session().id
    assert phone.get("/s").status == 401
    flow.clock = lambda: now() + 22 * 60_000
    assert there.browser().arrive(PROLIFIC_PID="bob").screen, "the slot of a rater who never answered is free again"


def test_a_crowd_waits_at_the_door(make_study, site):
    there = site(make_study(recruitment={"platform": "prolific", "arrivals_per_minute": 2}))
    for n in range(2):
        assert there.browser().arrive(PROLIFIC_PID=f"p{n}").screen
    third = there.browser().arrive(PROLIFIC_PID="p2", STUDY_ID="77")
    assert (third.status, third.heading) == (429, "Many people are starting right now")
    assert 0 < int(third.response.headers["retry-after"]) <= 60
    assert 'dialometer_refusals_total{reason="crowded"} 1' in there.client.get("/metrics").text
    assert there.open_api("judge").screen()["screen"] == "consent", "programs with a key are not people"
    flow = there.app.service.flow
    now, flow.clock = flow.clock, lambda: now() + 61_000
    assert third.send().screen, "the button tries again, with everything that was chosen"
    person = there.store.sessions.person(third.session_id(there))
    assert (person.external_id, dict(person.params)) == ("p2", {"STUDY_ID": "77"})


def test_a_study_may_ask_for_signed_links(make_study, site):
    there = site(make_study(recruitment={"platform": "redirect", "signed": True}))
    bare = there.browser().get("/", rater="ann")
    assert (bare.status, bare.heading) == (403, "This link does not let you in")
    key = there.store.secrets.get(SIGNING, 0)
    link = {"rater": "ann", "sig": signature(key, "redirect", "ann")}
    ann = there.browser().arrive(**link)
    ann.walk_to(there, "item")
    forged = there.browser().get("/", **link)
    assert forged.heading == "Continue your session here?", "a signed link is the rater's own"
    assert forged.send({"rater": "bob"}).status == 403
    assert there.browser().get("/", **link | {"rater": "bob"}).status == 403
    assert ann.get("/", rater="ann").screen, "the browser has the session already"
    assert len(there.store.sessions.all()) == 1
    assert 'dialometer_refusals_total{reason="unsigned"} 4' in there.client.get("/metrics").text


def test_another_rater_in_the_same_browser_gets_a_session_of_their_own(make_study, site):
    there = site(make_study(recruitment={"platform": "prolific"}))
    browser = there.browser().arrive(**PROLIFIC)
    mine = browser.session_id(there)
    browser.arrive(**PROLIFIC | {"PROLIFIC_PID": "other"})
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
    xyz = there.browser().arrive(invite="xyz")
    xyz.walk_to(there, "item")
    # The token is the rater's own secret: on another device it continues the session.
    phone = there.browser().get("/", invite="xyz")
    assert phone.heading == "Continue your session here?"
    assert phone.send().screen == xyz.screen
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
    browser = there.browser().arrive(uid="r 1", project="p/2", spam="not kept")
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
    ann = there.browser().arrive(who="ann")
    assert ann.arrive(who="ann").screen
    assert there.browser().get("/", who="ann").status == 409
    assert len(there.store.sessions.all()) == 1


def test_a_full_a_paused_and_a_closed_study_say_so(make_study, site):
    there = site(make_study(recruitment={"platform": "link", "quota": 1}))
    assert there.browser().start().screen
    full = there.browser().get("/")
    assert full.status == 403, "before a button is pressed for nothing"
    title = there.app.service.pages().language.text("message.full.title")
    assert full.heading == title
    response = there.client.post(
        "/api/v1/sessions", json={"source": "person"}, headers={"Authorization": "Bearer the-key-of-the-tests"}
    )
    assert (response.status_code, response.json()["reason"]) == (403, "full")
    there.store.control.set_state("paused", by="ann", reason="lunch", at_ms=1)
    paused = there.browser().get("/")
    assert (paused.status, paused.heading) == (403, there.app.service.pages().language.text("message.paused.title"))
    there.store.control.set_state("closed", by="ann", reason="done", at_ms=2)
    assert there.browser().get("/").heading == there.app.service.pages().language.text("message.closed.title")


def test_a_place_that_somebody_left_is_not_full(make_study, site):
    there = site(make_study(recruitment={"platform": "link", "quota": 1}))
    there.browser().start()
    later = there.app.service.flow.clock() + 3 * 3_600_000
    there.app.service.flow.clock = lambda: later
    assert there.browser().get("/").status == 200
    assert [mark.state for mark in there.store.sessions.marks()] == ["stale"]


def test_a_study_that_nobody_has_started_says_so(make_study, site):
    there = site(make_study(recruitment={"platform": "link"}))
    there.store.control.set_state("paused", by="ann", reason=FROZEN, at_ms=1)
    early = there.browser().get("/")
    assert (early.status, early.heading) == (403, "The study has not started yet")
    there.store.control.set_quota(20, by="ann", reason="", at_ms=1)
    assert there.browser().get("/").heading == "The study has not started yet"
    there.store.control.set_state("running", by="ann", reason="", at_ms=2)
    assert there.browser().start().screen
    there.store.control.set_state("paused", by="ann", reason="", at_ms=3)
    assert there.browser().get("/").heading == "The study is paused"


def test_the_link_of_a_paused_study_still_names_its_rater(make_study, site):
    """Who comes back by "Load the page again" must not arrive as nobody: the platform pays by this name."""
    there = site(make_study(recruitment={"platform": "prolific"}))
    early, late = there.browser(), there.browser().get("/", **PROLIFIC)
    there.store.control.set_state("paused", by="ann", reason="lunch", at_ms=1)
    again = re.compile(r'<a class="button main" href="([^"]*)">Load the page again')
    assert again.search(early.get("/", **PROLIFIC).page)[1] == "", "the address itself"
    late.send(consent="agree")
    assert late.heading == "The study is paused", "by hand, before anybody came"
    address = unescape(again.search(late.page)[1])
    there.store.control.set_state("running", by="ann", reason="", at_ms=2)
    assert late.get(address).status == 200
    late.send(consent="agree")
    person = there.store.sessions.person(there.only_session().id)
    assert person.external_id == PROLIFIC["PROLIFIC_PID"]


def test_a_blocked_rater_is_turned_away(make_study, site):
    rules = [{"rule": "block_list", "raters": ["5f3a9c"]}]
    there = site(make_study(recruitment={"platform": "prolific"}, quality=rules))
    browser = there.browser().get("/", **PROLIFIC)
    assert browser.status == 403
    assert browser.heading == there.app.service.pages().language.text("message.blocked.title")
    assert not there.store.sessions.all()


def test_screened_out_raters_get_their_own_code(make_study, site):
    study = make_study("chat", n_items=2, recruitment={"platform": "prolific", "screen_out_code": "OUT"})
    there = site(study)
    browser = there.browser().get("/", **PROLIFIC)
    assert not browser.screen, "questions come before consent: the first page has a button"
    browser.send().send(writes_english="No")
    assert there.only_session().state == "screened_out"
    assert "cc=OUT" in browser.page


def test_an_arrival_is_read_without_a_server(make_study):
    study = make_study(recruitment={"platform": "prolific"})
    assert read_arrival(study, PROLIFIC).external_id == "5f3a9c"
    with pytest.raises(NotInvited, match="names no rater"):
        read_arrival(study, {})
