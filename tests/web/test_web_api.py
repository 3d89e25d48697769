"""The JSON API: the same way as the pages, receipts that can be trusted, and a description that is true."""

import json

import pytest
from pydantic import TypeAdapter
from taking_part import KEY, json_answers, open_api, running

from dialometer.web.api import models
from dialometer.web.server import submissions as sending

TEMPLATES = ["anchoring", "likert", "best-worst", "strategies", "acute", "avatar"]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_program_walks_through_every_template(template, make_study, site):
    study = make_study(template, n_items=None if template == "strategies" else 3)
    there = site(study)
    program = there.open_api("judge-1")
    names = {system.name for system in study.spec.systems}
    n_stored = 0
    for _ in range(80):
        shown = program.screen()
        models.ScreenShown.model_validate(shown)
        if shown["kind"] == "done":
            break
        assert not names & set(_words(shown)), "a system's name is shown"
        status = program.get("/session").json()
        models.SessionStatus.model_validate(status)
        assert status["step"] == shown["step"]
        assert status["remaining_s"] >= 0
        answer = program.submit(shown["screen"], json_answers(study, shown))
        assert answer.status_code == 200, answer.text
        receipt = models.SubmissionReceipt.model_validate(answer.json())
        assert receipt.outcome == "stored"
        n_stored += receipt.n_judgments
    session = there.only_session()
    assert (session.state, session.source) == ("completed", "model")
    assert n_stored == len(list(there.store.records.judgments()))
    over = program.get("/session").json()
    assert over["progress"] == 1
    assert over["remaining_s"] is None


def _words(content):
    """Every text of a JSON value, and every name of a system would be one of them."""
    if isinstance(content, dict):
        return [word for value in content.values() for word in _words(value)] + list(content)
    if isinstance(content, list):
        return [word for value in content for word in _words(value)]
    return [content] if isinstance(content, str) else []


def test_receipts_say_what_became_of_a_screen(make_study, site, database_url):
    study = make_study()
    there = site(study, database_url)
    program = there.open_api()
    shown = program.walk_to(study, "item")
    answers = json_answers(study, shown)
    first = program.submit(shown["screen"], answers, token="one")
    again = program.submit(shown["screen"], answers, token="one")
    other = program.submit(shown["screen"], answers, token="two")
    assert (first.status_code, first.json()["outcome"]) == (200, "stored")
    assert first.json()["n_judgments"] == len(shown["fields"])
    assert (again.status_code, again.json()["outcome"], again.json()["n_judgments"]) == (200, "repeated", 0)
    assert again.json()["step"] == first.json()["step"]
    assert (other.status_code, other.json()["outcome"]) == (409, "outdated")
    assert program.submit("no/such/screen", {}).json()["outcome"] == "outdated"
    assert len(list(there.store.records.judgments())) == len(shown["fields"])
    program.walk_to(study, "done")
    over = program.submit("post", {}, token="late")
    assert (over.status_code, over.json()["outcome"]) == (409, "ended")


def test_answers_that_are_not_in_order_are_named(make_study, site):
    study = make_study()
    program = site(study).open_api()
    shown = program.walk_to(study, "item")
    answers = json_answers(study, shown)
    bad = shown["fields"][0]["name"]
    for wrong in (99, "x", None, [], {}, True, 1e300, 10**400, -1, [1], {"a": 1}, "\x00"):
        response = program.submit(shown["screen"], answers | {bad: wrong})
        assert response.status_code == 422, wrong
        assert list(response.json()["fields"]) == [bad]
    for written in (b"NaN", b"Infinity", b"1e999"):
        body = json.dumps({"screen": shown["screen"], "token": "t", "answers": answers | {bad: 0}, "shown_at_ms": 1})
        content = body.encode().replace(f'"{bad}": 0'.encode(), f'"{bad}": '.encode() + written)
        response = program.client.post("/api/v1/session/submissions", content=content, headers=program.headers)
        assert response.status_code == 422, written
    assert program.submit(shown["screen"], answers).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"screen": "consent"}',
        b'{"screen": "consent", "token": "", "shown_at_ms": 1}',
        b'{"screen": "consent", "token": "a\\u0000b", "shown_at_ms": 1}',
        b'{"screen": "consent", "token": "t", "shown_at_ms": "1"}',
        b'{"screen": "consent", "token": "t", "shown_at_ms": -1}',
        b'{"screen": "consent", "token": "t", "shown_at_ms": 9007199254740992}',
        b'{"screen": "consent", "token": "t", "shown_at_ms": 1, "submitted_at_ms": 4102444800001}',
        b'{"screen": "consent", "token": "t", "shown_at_ms": 1, "answers": []}',
        b'{"screen": "consent", "token": "t", "shown_at_ms": 1, "more": 1}',
        b'{"screen": "\\ud800", "token": "t", "shown_at_ms": 1}',
    ],
)
def test_bodies_that_are_not_as_described_are_refused(body, site):
    there = site()
    program = there.open_api()
    response = there.client.post("/api/v1/session/submissions", content=body, headers=program.headers)
    assert response.status_code == 422
    models.Problem.model_validate(response.json())
    assert there.only_session().step == 0


def test_programs_need_a_key_to_open_sessions_and_a_token_to_use_them(site, make_study):
    there = site()
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {KEY}"}):
        assert there.client.post("/api/v1/sessions", json={}, headers=headers).status_code == 401
    for method, path in (
        ("GET", "session"),
        ("GET", "session/screen"),
        ("POST", "session/chat"),
        ("POST", "session/chat/retry"),
    ):
        for headers in ({}, {"Authorization": f"Bearer {KEY}"}):
            response = there.client.request(method, f"/api/v1/{path}", headers=headers, json={"text": "x"})
            assert response.status_code == 401, path
            assert response.headers["www-authenticate"] == "Bearer"
    closed = site(make_study("acute"), there.study.folder / "closed.db", api_key="")
    assert closed.client.post("/api/v1/sessions", json={}, headers={"Authorization": "Bearer "}).status_code == 401


def test_the_same_rater_gets_the_same_session_with_a_new_token(site):
    there = site()
    first = there.open_api("judge")
    first.answer(there.study)
    second = there.open_api("judge")
    assert second.session_id == first.session_id
    assert second.token != first.token
    assert second.get("/session").json()["step"] == 1
    assert first.get("/session").status_code == 401


def test_a_remembered_token_ends_when_it_is_replaced(site, monkeypatch):
    there = site()
    first = there.open_api("judge")
    first.answer(there.study)
    there.open_api("judge")
    monkeypatch.setattr(sending, "REMEMBERED_S", 0.0)
    assert first.submit("pre", {}).status_code == 401


def test_a_token_that_another_host_replaced_stores_nothing_here(site, make_study):
    study = make_study()
    here, there = site(study), site(study)
    first = here.open_api("judge")
    first.answer(here.study)
    shown = first.screen()
    second = there.open_api("judge")
    assert second.session_id == first.session_id
    assert second.token != first.token
    step = here.store.sessions.get(first.session_id).step
    late = first.submit(shown["screen"], json_answers(here.study, shown))
    assert late.status_code == 401, "this host still remembers the token, the store does not"
    assert here.store.sessions.get(first.session_id).step == step
    assert second.answer(there.study).status_code == 200


def test_a_simulation_takes_nothing_from_people(site):
    there = site()
    people = [there.browser().start() for _ in range(3)]
    slots = there.store.counts.item_counts(sources=("person",))
    for n in range(3):
        far_ms = 1_900_000_000_000 + n * 86_400_000
        there.open_api(f"s{n}", "simulated", at_ms=far_ms).submit(
            "consent", {"consent": "agree"}, shown_at_ms=far_ms, submitted_at_ms=far_ms + 1_000
        )
    assert {s.state for s in there.store.sessions.all(source="person")} == {"active"}
    assert there.store.counts.item_counts(sources=("person",)) == slots
    assert all(browser.get("/s").screen for browser in people)


def test_only_simulated_raters_have_a_clock_of_their_own(site):
    there = site()
    simulated = there.open_api("s", "simulated", at_ms=1_000_000)
    simulated.submit("consent", {"consent": "agree"}, shown_at_ms=1_000_500, submitted_at_ms=1_004_000)
    model = there.open_api("m", "model", at_ms=1_000_000)
    model.submit("consent", {"consent": "agree"}, shown_at_ms=1_000_500, submitted_at_ms=1_004_000)
    by_id = {visit.session_id: visit for visit in there.store.records.visits()}
    virtual, real = by_id[simulated.session_id], by_id[model.session_id]
    assert (virtual.shown_at_ms, virtual.submitted_at_ms) == (1_000_500, 1_004_000)
    assert there.store.sessions.get(simulated.session_id).started_at_ms == 1_000_000
    assert real.submitted_at_ms > 1_700_000_000_000
    assert real.shown_at_ms >= there.store.sessions.get(model.session_id).started_at_ms


@pytest.mark.parametrize("at_ms", [4_102_444_800_001, 2**53])
def test_a_clock_outside_reason_is_refused(site, at_ms):
    there = site()
    body = {"rater": "s", "source": "simulated", "at_ms": at_ms}
    answer = there.client.post("/api/v1/sessions", json=body, headers={"Authorization": f"Bearer {KEY}"})
    assert answer.status_code == 422, answer.text
    assert "at_ms" in answer.text


def test_earlier_screens_can_be_seen_where_the_study_allows_it(make_study, site):
    study = make_study(design={"may_go_back": True})
    program = site(study).open_api()
    shown = program.walk_to(study, "item")
    program.submit(shown["screen"], json_answers(study, shown))
    assert program.get(f"/session/screen?step={shown['step']}").json()["screen"] == shown["screen"]
    assert program.get("/session/screen?step=0").status_code == 409
    assert program.get("/session/screen?step=99").status_code == 409
    assert program.get("/session/screen?step=-1").status_code == 422


def test_the_description_names_every_route_and_status(site):
    there = site()
    described = there.client.get("/api/v1/openapi.json").json()
    assert described["servers"] == [{"url": "/api/v1"}]
    assert set(described["paths"]) == {
        "/sessions",
        "/session",
        "/session/screen",
        "/session/submissions",
        "/session/chat",
        "/session/chat/retry",
    }
    submit = described["paths"]["/session/submissions"]["post"]
    assert {"200", "401", "409", "413", "422", "429", "503"} <= set(submit["responses"])
    assert submit["security"] == [{"SessionToken": []}]
    assert described["paths"]["/sessions"]["post"]["security"] == [{"ApiKey": []}]
    refused = there.client.get("/api/v1/session/submissions")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert there.client.get("/api/v1/docs").status_code == 404
    TypeAdapter(dict).validate_python(described["components"]["schemas"])


def test_it_speaks_http_on_a_real_socket(site, http):
    there = site()
    with running(there.app) as url:
        program = open_api(http, prefix=f"{url}/api/v1")
        for _ in range(3):
            assert program.answer(there.study).status_code == 200
        assert program.get("/session").json()["step"] == 3
        assert http.get(f"{url}/healthz").json()["status"] == "ok"
