"""What keeps raters apart and pages safe."""

import re

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from dialometer.web.server.security import RateLimits, TooOften, csrf_for, is_local

EXPECTED = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


def cookies_set(response):
    return {line.split("=", 1)[0]: line for line in response.headers.get_list("set-cookie")}


def test_cookies_are_out_of_reach_of_scripts_and_other_sites(site):
    there = site()
    page = there.client.get("/")
    start = cookies_set(page)["dialometer_start"]
    csrf = re.search(r'name="csrf" value="([^"]+)"', page.text)[1]
    session = cookies_set(there.client.post("/start", data={"csrf": csrf}))["dialometer_session"]
    for line in (start, session):
        assert "HttpOnly" in line
        assert "SameSite=lax" in line
        assert "Path=/" in line
        assert "Secure" not in line
    assert len(session.split("=", 1)[1].split(";")[0]) >= 40


def test_cookies_are_secure_over_https_and_usable_in_an_allowed_frame(site, make_study):
    study = make_study()
    there = site(study)
    there.client.base_url = "https://rate.example"
    assert "Secure" in cookies_set(there.client.get("/"))["dialometer_start"]
    framed = site(study, study.folder / "framed.db", frame_ancestors=("https://platform.example",))
    framed.client.base_url = "https://rate.example"
    page = framed.client.get("/")
    line = cookies_set(page)["dialometer_start"]
    assert "SameSite=none" in line
    assert "Secure" in line
    assert "frame-ancestors https://platform.example" in page.headers["content-security-policy"]
    assert "x-frame-options" not in page.headers


@pytest.mark.parametrize("path", ["/", "/s", "/nowhere", "/static/base.css", "/healthz", "/metrics", "/api/v1/session"])
def test_every_response_has_safe_headers(path, site):
    response = site().client.get(path)
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    for name, value in EXPECTED.items():
        if path != "/static/base.css" or name != "cache-control":
            assert response.headers[name] == value
    assert "server" not in response.headers


def test_pages_have_no_inline_script_or_style(site):
    there = site()
    browser = there.browser().start()
    for kind in ("consent", "item", "post"):
        browser.walk_to(there, kind)
        assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>\s*\S", browser.page)
        assert not re.search(r"\son\w+=|\sstyle=|javascript:", browser.page)


@pytest.mark.parametrize("how", ["missing", "wrong", "of another session", "from another site"])
def test_forms_that_do_not_come_from_the_session_are_refused(how, site):
    there = site()
    browser, other = there.browser().start(), there.browser().start()
    session = there.store.sessions.get(browser.session_id(there))
    form = {name: browser.fields[name] for name in ("csrf", "screen", "token", "shown_at_ms")} | {"consent": "agree"}
    headers = {}
    if how == "missing":
        del form["csrf"]
    elif how == "wrong":
        form["csrf"] = "0" * 64
    elif how == "of another session":
        form["csrf"] = other.fields["csrf"]
    else:
        headers["sec-fetch-site"] = "cross-site"
    response = browser.client.post("/s", data=form, headers=headers)
    assert response.status_code == 403
    assert there.store.sessions.get(session.id).step == 0
    for path in ("/start", "/s/chat", "/s/chat/retry"):
        form.pop("csrf", None)
        assert browser.client.post(path, data=form).status_code == 403


def test_the_mark_of_forms_does_not_give_the_session_away():
    assert csrf_for("secret") != csrf_for("secret2")
    assert "secret" not in csrf_for("secret")


def test_a_rater_cannot_reach_another_session(site):
    there = site()
    mine, other = there.browser().start(), there.browser().start()
    mine.walk_to(there, "item")
    victim = there.store.sessions.get(mine.session_id(there))
    stranger = there.open_api()
    # Nothing but the token opens a session: not its id, not the hash that is stored, not parameters.
    with there.store.database.reading() as connection:
        stored = connection.execute(text("SELECT token_hash FROM sessions")).scalars().all()
    for guess in (victim.id, victim.rater_id, *stored, "", "null", "'; --"):
        headers = {"Authorization": f"Bearer {guess}"}
        assert there.client.get("/api/v1/session", headers=headers).status_code == 401
        body = {"screen": "consent", "token": "t", "answers": {}, "shown_at_ms": 1}
        assert there.client.post("/api/v1/session/submissions", json=body, headers=headers).status_code == 401
    other.get("/s", session=victim.id)
    assert other.screen == "consent"
    # The token of a submission that another session has used is refused and tells nothing.
    used = next(iter(submission_tokens(there.store)))
    answer = stranger.submit("consent", {"consent": "agree"}, token=used)
    assert answer.status_code == 409
    assert "step" not in answer.json()
    assert there.store.sessions.get(stranger.session_id).step == 0


def submission_tokens(store):
    with store.database.reading() as connection:
        return connection.execute(text("SELECT token FROM submissions")).scalars().all()


def test_identifiers_of_a_platform_stand_only_with_the_person(make_study, site, database_url):
    study = make_study(recruitment={"platform": "prolific", "completion_code": "C0DE"})
    there = site(study, database_url)
    browser = there.browser()
    browser.arrive(PROLIFIC_PID="pid-5f3a9c", STUDY_ID="study-77aa", SESSION_ID="visit-31bb")
    browser.walk_to(there, "post")
    token = browser.client.cookies["dialometer_session"]
    names = ["pid-5f3a9c", "visit-31bb", "study-77aa", token]
    found = set()
    with there.store.database.reading() as connection:
        if there.store.database.is_sqlite:
            tables = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'")).scalars().all()
        else:
            query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            tables = connection.execute(text(query)).scalars().all()
        for table in tables:
            content = str(connection.execute(text(f'SELECT * FROM "{table}"')).all())
            found |= {(table, name) for name in names if name in content}
    assert found == {("people", name) for name in names[:3]}


def test_bodies_beyond_the_limit_are_refused(site):
    there = site(max_body_bytes=5_000)
    browser = there.browser().start()
    form = {name: browser.fields[name] for name in ("csrf", "screen", "token", "shown_at_ms")}
    large = browser.client.post("/s", data=form | {"consent": "x" * 6_000})
    assert large.status_code == 413
    assert "html" in large.headers["content-type"]

    def parts():
        for _ in range(12):
            yield b"x" * 1_000

    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert browser.client.post("/s", content=parts(), headers=kind).status_code == 413
    program = there.open_api()
    answer = program.submit("consent", {"consent": "x" * 6_000})
    assert answer.status_code == 413
    assert there.client.post("/api/v1/sessions", content=b"x" * 6_000).status_code == 413


def test_many_arrivals_from_one_address_are_slowed_down(make_study, site):
    study = make_study(design={"judgments_per_item": None}, recruitment={"quota": None})
    app = site(study, arrivals_per_minute=2).app

    def arrive(address):
        client = TestClient(app, client=(address, 5000), follow_redirects=False)
        csrf = re.search(r'name="csrf" value="([^"]+)"', client.get("/").text)[1]
        return client.post("/start", data={"csrf": csrf})

    assert [arrive("198.51.100.7").status_code for _ in range(3)] == [303, 303, 429]
    refused = arrive("198.51.100.7")
    assert int(refused.headers["retry-after"]) >= 1
    assert arrive("198.51.100.8").status_code == 303
    assert [arrive("127.0.0.1").status_code for _ in range(4)] == [303] * 4


def test_one_person_cannot_flood_the_server_but_programs_may_be_quick(site):
    there = site(screens_per_minute=3)
    browser = there.browser().start()
    form = {name: browser.fields[name] for name in ("csrf", "screen", "token", "shown_at_ms")}
    statuses = [browser.post("/s", form).status for _ in range(5)]
    assert statuses == [422] * 3 + [429] * 2
    program = there.open_api()
    for _ in range(6):
        assert program.submit("consent", {}).status_code == 422


def test_a_bucket_fills_with_time():
    now = [0.0]
    bucket = RateLimits(60, clock=lambda: now[0])
    assert [bucket.wait_s("a") for _ in range(60)] == [0.0] * 60
    assert bucket.wait_s("a") == pytest.approx(1.0)
    assert bucket.wait_s("b") == 0
    now[0] = 2.0
    assert [bucket.wait_s("a") > 0 for _ in range(3)] == [False, False, True]
    with pytest.raises(TooOften, match="try again"):
        bucket.take("a")
    assert RateLimits(0).wait_s("a") == 0


@pytest.mark.parametrize(
    ("address", "is_here"), [("127.0.0.1", True), ("::1", True), ("192.0.2.1", False), ("x", False)]
)
def test_clients_on_this_machine_are_known(address, is_here):
    assert is_local(address) is is_here


@pytest.mark.parametrize("is_stripped", [True, False])
def test_a_study_stands_under_a_path_of_its_own(is_stripped, site):
    there = site(root_path="/films")
    prefix = "" if is_stripped else "/films"
    page = there.client.get(f"{prefix}/")
    assert page.status_code == 200
    assert 'action="/films/start"' in page.text
    assert "Path=/films" in cookies_set(page)["dialometer_start"]
    csrf = re.search(r'name="csrf" value="([^"]+)"', page.text)[1]
    cookie = cookies_set(page)["dialometer_start"].split(";")[0]
    entered = there.client.post(f"{prefix}/start", data={"csrf": csrf}, headers={"cookie": cookie})
    assert entered.headers["location"] == "/films/s"
    asset = re.search(r'"(/films/static/[^"?]+)', page.text)[1]
    assert there.client.get(asset if not is_stripped else asset.removeprefix("/films")).status_code == 200
    assert there.client.get(f"{prefix}/healthz").json()["status"] == "ok"
    body = {"screen": "consent", "token": "t", "answers": {"consent": "agree"}, "shown_at_ms": 1}
    opened = there.client.post(
        f"{prefix}/api/v1/sessions", json={}, headers={"Authorization": "Bearer the-key-of-the-tests"}
    )
    token = {"Authorization": f"Bearer {opened.json()['session_token']}"}
    assert there.client.post(f"{prefix}/api/v1/session/submissions", json=body, headers=token).status_code == 200
    assert there.client.get(f"{prefix}/api/v1/session", headers=token).json()["step"] == 1


def test_assets_may_be_kept_when_their_address_names_a_version(site):
    client = site().client
    assert "immutable" in client.get("/static/base.css?v=1").headers["cache-control"]
    assert client.get("/static/base.css").headers["cache-control"] == "no-cache"
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/static/%2e%2e/app.py").status_code == 404


def test_odd_requests_get_an_answer_and_not_a_failure(site):
    there = site()
    browser = there.browser().start()
    client = browser.client
    csrf = browser.fields["csrf"]
    plain = {"content-type": "application/x-www-form-urlencoded"}
    odd = [
        client.post("/s", content=b"\xff\xfe%zz=%ff&csrf=" + csrf.encode(), headers=plain),
        client.post("/s", json={"csrf": csrf}),
        client.post("/s", files={"csrf": b"x"}),
        client.post("/s", content="&".join(f"a{i}=1" for i in range(3000)), headers=plain),
        client.post("/s", data={"csrf": csrf, "screen": "consent"}),
        client.get("/s", headers={"cookie": "dialometer_session=" + "x" * 9000}),
        client.get("/s", headers={"cookie": "dialometer_session=\x7f\x01"}),
        client.request("DELETE", "/s"),
        client.request("OPTIONS", "/"),
        client.get("/%00"),
        client.get("/wizard"),
        client.get("/?step=%ff&PROLIFIC_PID=%00"),
    ]
    assert all(response.status_code < 500 for response in odd), [r.status_code for r in odd]
    assert there.only_session().step == 0


def test_an_unforeseen_failure_is_told_by_a_reference_only(site, monkeypatch, caplog):
    there = site()
    browser = there.browser().start()

    def break_down(*_args, **_kwargs):
        raise RuntimeError("the secret words of a rater")

    monkeypatch.setattr(there.app.service.flow, "screen", break_down)
    response = browser.client.get("/s")
    assert response.status_code == 500
    assert "secret words" not in response.text
    program = there.open_api()
    told = program.get("/session/screen")
    assert told.status_code == 500
    assert "reference" in told.json()["error"]
    monkeypatch.setattr(there.app.service.flow, "prepare", break_down)
    sent = program.submit("consent", {"consent": "agree"})
    assert sent.status_code == 500
    assert "secret" not in sent.text
    logged = "\n".join(str(record.__dict__) for record in caplog.records if record.name.startswith("dialometer"))
    assert "RuntimeError" in logged
    assert "secret words" not in logged
