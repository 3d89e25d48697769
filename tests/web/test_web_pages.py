"""The whole way through the pages, and what raters do to it: reload, double clicks, two tabs, coming back late."""

import html
import json
import re
import time

import pytest
from sqlalchemy import event
from taking_part import form_answers

from dialometer.design.load import load_study
from dialometer.flow import engine
from dialometer.flow.screens import build_screen


@pytest.mark.parametrize("template", ["likert", "best-worst"])
def test_a_rater_walks_from_the_start_page_to_the_end(template, make_study, site, database_url):
    study = make_study(template, n_items=4)
    there = site(study, database_url)
    browser = there.browser()
    browser.get("/")
    assert study.spec.title in browser.page
    browser.start()
    assert browser.status == 200
    assert browser.screen
    for _ in range(60):
        session = there.only_session()
        if session.state != "active":
            break
        screen = there.app.service.flow.screen(session)
        assert browser.screen == screen.shown_key
        browser.send(form_answers(study, screen))
        assert browser.status == 200, browser.page
    session = there.only_session()
    assert session.state == "completed"
    assert session.consent_version
    given = {item for items in session.draw.items.values() for item in items}
    assert {j.item_id for j in there.store.records.judgments() if not j.is_practice} == given
    visits = list(there.store.records.visits(session.id))
    assert [v.screen for v in visits] == [step.key for step in there.app.service.flow.path(session).steps]
    assert all(v.shown_at_ms <= v.submitted_at_ms for v in visits)
    # Coming back to the address shows the end again, and nothing is stored twice.
    n_before = len(list(there.store.records.judgments()))
    browser.get("/")
    assert "done" not in browser.screen
    assert browser.status == 200
    assert len(list(there.store.records.judgments())) == n_before


def test_the_first_screen_promises_no_more_minutes_than_the_first_page(make_study, site):
    study = make_study("acute")
    browser = site(study).browser()
    browser.get("/")
    assert "about 18 minutes" in browser.page
    browser.start()
    assert "about 18 minutes left" in browser.page


def test_declining_ends_politely(site):
    there = site()
    browser = there.browser().start()
    browser.send(consent="decline")
    assert browser.status == 200
    assert there.only_session().state == "declined"
    assert "csrf" not in browser.fields


def test_a_screen_without_answers_comes_back_with_words_and_what_was_typed(make_study, site, database_url):
    there = site(make_study(), database_url)
    browser = there.browser().start()
    screen = browser.walk_to(there, "item")
    filled = form_answers(there.study, screen)
    missing = screen.fields[-1].name
    del filled[missing]
    browser.send(filled)
    assert browser.status == 422
    assert "Please answer this." in browser.page
    assert browser.screen == screen.shown_key
    checked = [line for line in browser.page.split("<input") if "checked" in line and 'type="radio"' in line]
    assert len(checked) == len(filled)
    assert not list(there.store.records.judgments())
    browser.send(form_answers(there.study, screen))
    assert browser.status == 200
    assert len(list(there.store.records.judgments())) == len(screen.fields)


def test_the_same_form_twice_is_stored_once(make_study, site, database_url):
    there = site(make_study(), database_url)
    browser = there.browser().start()
    screen = browser.walk_to(there, "item")
    form = {name: browser.fields[name] for name in ("csrf", "screen", "token", "shown_at_ms")}
    form |= form_answers(there.study, screen)
    first = browser.post("/s", form).screen
    again = browser.post("/s", form).screen
    assert first == again != screen.key
    assert len(list(there.store.records.judgments())) == len(screen.fields)
    assert sum(v.screen == screen.key for v in there.store.records.visits()) == 1


def test_a_reload_shows_the_same_screen_and_stores_nothing(site):
    there = site()
    browser = there.browser().start()
    browser.walk_to(there, "item")
    before = browser.screen, there.only_session().step
    for _ in range(3):
        browser.get("/s")
    assert (browser.screen, there.only_session().step) == before


def test_two_tabs_do_not_corrupt_a_session(make_study, site, database_url):
    there = site(make_study(), database_url)
    browser = there.browser().start()
    screen = browser.walk_to(there, "item")
    one = {name: browser.fields[name] for name in ("csrf", "screen", "token", "shown_at_ms")}
    browser.get("/s")
    other = {name: browser.fields[name] for name in ("csrf", "screen", "token", "shown_at_ms")}
    assert one["token"] != other["token"]
    answers = form_answers(there.study, screen)
    browser.post("/s", one | answers)
    step = there.only_session().step
    lower = dict.fromkeys(answers, 1)
    browser.post("/s", other | lower)  # the tab left behind
    assert browser.status == 200
    assert there.only_session().step == step
    assert {j.value for j in there.store.records.judgments()} == set(answers.values())


def test_what_is_half_typed_is_there_after_a_reload(make_study, site, database_url):
    there = site(make_study("likert"), database_url)
    browser = there.browser().start()
    browser.walk_to(there, "post")
    draft = {"screen": browser.screen, "answers": {"comments": ["half a sent"]}}
    mark = {"X-CSRF-Token": browser.fields["csrf"]}
    assert browser.client.post("/s/draft", json=draft, headers=mark).status_code == 204
    browser.get("/s")
    assert "half a sent" in browser.page
    assert browser.client.post("/s/draft", json={**draft, "screen": "consent"}, headers=mark).status_code == 409
    assert browser.client.post("/s/draft", json=draft).status_code == 403
    assert browser.client.post("/s/draft", content=b"[1", headers=mark).status_code == 400
    assert browser.client.post("/s/draft", json={"screen": 1}, headers=mark).status_code == 400


def test_a_rater_who_comes_back_after_the_place_was_given_away_goes_on(make_study, site, database_url):
    there = site(make_study(), database_url)
    browser = there.browser().start()
    own_key = browser.walk_to(there, "item").key
    key = browser.screen
    flow = there.app.service.flow
    later = flow.clock() + 10 * 24 * 3600 * 1000
    flow.arrive(at_ms=later, external_id="somebody-else")
    first = there.store.sessions.all()[0]
    assert first.state == "stale"
    browser.get("/s")
    assert browser.screen == key
    assert there.store.sessions.get(first.id).state == "active"
    # The same when the rater does not reload but sends.
    flow.arrive(at_ms=later + 10 * 24 * 3600 * 1000, external_id="a-third")
    assert there.store.sessions.get(first.id).state == "stale"
    browser.send(form_answers(there.study, _screen(flow, first.id)))
    assert browser.status == 200
    assert there.store.sessions.get(first.id).state == "active"
    assert any(v.screen == own_key for v in there.store.records.visits(first.id))


def _screen(flow, session_id):
    session = flow.store.sessions.get(session_id)
    return build_screen(flow.study, flow.path(session), session.step)


def test_a_late_answer_is_stored_as_late(make_study, site):
    there = site(make_study(presentation={"deadline_s": 0.05}))
    browser = there.browser().start()
    screen = browser.walk_to(there, "item")
    time.sleep(0.1)
    browser.send(form_answers(there.study, screen))
    assert browser.status == 200
    judged = list(there.store.records.judgments())
    assert len(judged) == len(screen.fields)
    assert all(judgment.is_late for judgment in judged)
    assert next(v for v in there.store.records.visits() if v.screen == screen.key).is_late


@pytest.mark.parametrize("said", ["99999999999999999", "-4", "", "1e9"])
def test_times_that_cannot_be_are_not_believed(said, site):
    there = site()
    browser = there.browser().start()
    browser.send(consent="agree", shown_at_ms=said, first_input_at_ms=said, focus_lost_s="nan", focus_lost_n="many")
    session = there.only_session()
    (visit,) = there.store.records.visits()
    assert session.started_at_ms <= visit.shown_at_ms <= visit.submitted_at_ms
    assert visit.focus_lost_s == 0
    assert visit.first_input_at_ms is None


def test_what_the_page_measured_is_stored(site):
    there = site()
    browser = there.browser().start()
    shown = int(browser.fields["shown_at_ms"])
    browser.send(
        consent="agree", first_input_at_ms=str(shown + 1), focus_lost_n="2", focus_lost_s="3.5", device="phone"
    )
    (visit,) = there.store.records.visits()
    assert (visit.shown_at_ms, visit.focus_lost_n, visit.focus_lost_s, visit.device) == (shown, 2, 3.5, "phone")
    assert visit.first_input_at_ms in (shown + 1, visit.submitted_at_ms)


def test_going_back_shows_the_answer_and_a_changed_one_is_a_correction(make_study, site, database_url):
    there = site(make_study(design={"may_go_back": True}), database_url)
    browser = there.browser().start()
    screen = browser.walk_to(there, "item")
    browser.send(form_answers(there.study, screen))
    browser.get("/s", step=str(screen.step))
    assert browser.screen == screen.shown_key
    assert browser.page.count("checked") == len(screen.fields)
    changed = dict.fromkeys(form_answers(there.study, screen), 1)
    browser.send(changed)
    assert browser.status == 200
    assert {j.value for j in there.store.records.judgments()} == {1}
    everything = list(there.store.records.judgments(include_corrected=True))
    assert len(everything) == 2 * len(screen.fields)
    assert {j.corrected_by for j in everything if j.replaces} == {"rater"}


def test_going_back_where_it_is_not_allowed_leads_to_where_the_session_stands(site):
    there = site()
    browser = there.browser().start()
    screen = browser.walk_to(there, "item")
    browser.send(form_answers(there.study, screen))
    now = browser.screen
    for step in (str(screen.step), "999", "-1", "x"):
        browser.get("/s", step=step)
        assert browser.screen == now


def test_without_a_session_the_way_leads_to_the_start(site):
    there = site()
    browser = there.browser().get("/s")
    assert "/start" in browser.page
    browser.client.cookies.set("dialometer_session", "no-such-token")
    assert "/start" in browser.get("/s").page


def test_markup_in_a_dialogue_is_shown_as_text(make_study, site):
    study = make_study("likert", n_items=1)
    nasty = '<script>alert("x")</script><img src=x onerror=alert(1)>'
    file = study.folder / "items.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        for turn in line.get("context", []):
            turn["text"] = nasty
        for system in line.get("responses", {}):
            line["responses"][system] = nasty + system
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    there = site(load_study(study.folder))
    browser = there.browser().start()
    browser.walk_to(there, "item")
    assert "<script>alert" not in browser.page
    assert "&lt;script&gt;alert" in browser.page
    assert "onerror=alert(1)>" not in browser.page


def test_a_rater_sees_one_response_of_an_item_where_the_design_says_so(make_study, site):
    study = make_study("likert", n_items=1, design={"systems_per_item": 1, "n_practice_items": 0}, quality=[])
    there = site(study)
    browser = there.browser().start()
    browser.walk_to(there, "item")
    texts = {text for item in study.rated_items for text in item.responses.values()}
    page = html.unescape(browser.page)
    assert sum(text in page for text in texts) == 1
    assert "The response to rate" in browser.page
    assert "Possible next responses" not in browser.page


@pytest.mark.parametrize("by", ["page", "program"])
def test_a_submission_looks_the_session_up_once_and_builds_its_screen_once(by, site, monkeypatch):
    there = site()
    lookups, screens = [], []
    browser = there.browser().start()
    token = browser.client.cookies.get("dialometer_session")
    with there.store.database.reading() as connection:
        database = connection.engine
    event.listen(
        database,
        "before_cursor_execute",
        lambda _c, _cursor, statement, *_: lookups.append(statement) if "token_hash =" in statement else None,
    )
    monkeypatch.setattr(engine, "build_screen", lambda *a, **k: screens.append(a[2]) or build_screen(*a, **k))
    if by == "page":
        form = {name: browser.fields[name] for name in ("csrf", "screen", "token")} | {"consent": "agree"}
        answer = browser.client.post("/s", data=form, follow_redirects=False)
    else:
        body = {"screen": browser.screen, "token": "t", "answers": {"consent": "agree"}, "shown_at_ms": 1}
        answer = there.client.post(
            "/api/v1/session/submissions", json=body, headers={"authorization": f"Bearer {token}"}
        )
    assert answer.status_code == (303 if by == "page" else 200)
    assert there.only_session().step == 1
    assert len(lookups) == 1
    assert screens == [0]


def test_ids_of_items_stay_on_the_server(make_study, site):
    study = make_study("likert", n_items=4)
    there = site(study)
    browser = there.browser()
    browser.start()
    screen = browser.walk_to(there, "item")
    own, shown = screen.item.id, study.shown_ids[screen.item.id]
    assert not re.search(rf"\b{own}\b", browser.page), "as a word: a random mark may hold the same three letters"
    assert browser.screen == f"{screen.key.split('/')[0]}/{shown}"
    # A draft and a page that was open before the ids were hidden are kept under the same key.
    browser.client.post(
        "/s/draft",
        json={"screen": browser.screen, "answers": {"a": "b"}},
        headers={"X-CSRF-Token": browser.fields["csrf"]},
    )
    session = there.only_session()
    assert there.store.conversations.draft(session.id, screen.key) == {"a": "b"}
    browser.fields["screen"] = screen.key
    browser.send(form_answers(study, screen))
    assert there.only_session().step == session.step + 1
    assert list(there.store.records.visits(session.id))[-1].screen == screen.key


def test_the_api_calls_items_by_names_that_say_nothing(make_study, site):
    study = make_study("likert", n_items=4)
    shown = site(study).open_api().walk_to(study, "item")
    assert study.own_id(shown["item"]["id"]) in study.items_by_id
    assert not any(re.search(rf"\b{own}\b", json.dumps(shown)) for own in study.items_by_id)
