"""Logs without personal data, counters that add up, and a health check that can fail."""

import asyncio
import io
import json
import logging
import multiprocessing
import threading

import pytest
from taking_part import form_answers

from dialometer.errors import StorageError
from dialometer.web.rater.service import declare_metrics
from dialometer.web.server import logs
from dialometer.web.server.guard import label_of
from dialometer.web.server.last_known import LastKnown
from dialometer.web.server.metrics import SIZES, Metrics


@pytest.fixture
def logged(monkeypatch):
    """What a server with its usual logging writes."""
    stream = io.StringIO()
    names = ("dialometer", "uvicorn", "uvicorn.error")
    before = {name: (logging.getLogger(name).handlers, logging.getLogger(name).propagate) for name in names}
    levels = {name: logging.getLogger(name).level for name in names}
    monkeypatch.setattr("sys.stderr", stream)
    logs.set_up("info")
    yield stream
    monkeypatch.setattr(logs, "_requests", None)
    for name, (handlers, propagate) in before.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(levels[name])


def test_logs_are_lines_of_json_that_name_no_person(make_study, site, logged):
    there = site(make_study(recruitment={"platform": "prolific"}))
    browser = there.browser()
    browser.arrive(PROLIFIC_PID="pid-5f3a9c", STUDY_ID="study-77aa", SESSION_ID="visit-31bb")
    for kind in ("item", "post"):
        browser.walk_to(there, kind)
    screen = there.app.service.flow.screen(there.only_session())
    answers = form_answers(there.study, screen) | {"comments": "my private words"}
    browser.send(answers)
    there.client.get("/?PROLIFIC_PID=pid-zzz%0A")
    there.client.get("/s", headers={"user-agent": "secret-agent", "x-forwarded-for": "203.0.113.9"})
    there.open_api("judge-77").answer(there.study)
    text = logged.getvalue()
    lines = [json.loads(line) for line in text.splitlines()]
    assert {line["event"] for line in lines} >= {"request", "arrival", "end"}
    assert all({"at", "level", "event"} <= set(line) for line in lines)
    requests = [line for line in lines if line["event"] == "request"]
    assert {line["route"] for line in requests} >= {"start", "screen", "submit", "api", "api_submit"}
    assert all(line["duration_ms"] >= 0 for line in requests)
    token = browser.client.cookies["dialometer_session"]
    for secret in (
        *(session.id for session in there.store.sessions.all()),
        "pid-5f3a9c",
        "study-77aa",
        "visit-31bb",
        "private words",
        "judge-77",
        "203.0.113.9",
        "testclient",
        "secret-agent",
        token,
    ):
        assert secret not in text, secret


def test_errors_are_logged_by_kind_and_place(logged):
    try:
        raise ValueError("what a rater wrote")
    except ValueError as error:
        reference = logs.log_failure(error)
    try:
        raise StorageError("the database: disk is full")
    except StorageError as error:
        logs.log_failure(error)
    logging.getLogger("uvicorn.error").error("Exception in ASGI application", exc_info=ValueError("private"))
    first, second, third = [json.loads(line) for line in logged.getvalue().splitlines()]
    assert (first["event"], first["error"], first["reference"]) == ("failure", "ValueError", reference)
    assert "test_web_watching.py" in first["trace"][-1]
    assert second["message"] == "the database: disk is full"
    assert third["error"] == "ValueError"
    assert "wrote" not in logged.getvalue()
    assert "private" not in logged.getvalue()


def test_warnings_only_when_asked(monkeypatch, logged):
    logs.set_up("warning")
    logs.log_request("GET", "screen", 200, 0.1)
    logs.log("arrival")
    assert logged.getvalue() == ""


def test_counters_follow_what_happens(make_study, site):
    there = site(make_study(recruitment={"platform": "link", "quota": 1}))
    program = there.open_api(source="person")
    program.answer(there.study)
    program.submit("consent", {}, token="x")
    program.submit("pre", {"no": "such"}, token="y")
    there.browser().get("/")
    text = there.client.get("/metrics").text
    series = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert series['dialometer_submissions_total{outcome="stored"}'] == "1"
    assert series['dialometer_submissions_total{outcome="outdated"}'] == "1"
    assert series['dialometer_submissions_total{outcome="rejected"}'] == "1"
    assert series["dialometer_arrivals_total"] == "1"
    assert series['dialometer_refusals_total{reason="full"}'] == "1"
    assert series['dialometer_sessions{state="active"}'] == "1"
    assert float(series["dialometer_sessions_age_seconds"]) < 60
    assert series['dialometer_requests_total{route="api_submit"}'] == "3"
    assert series["dialometer_waiting"] == "0"
    assert float(series['dialometer_request_seconds_bucket{le="+Inf"}']) == float(
        series["dialometer_request_seconds_count"]
    )
    assert int(series['dialometer_responses_total{status="4xx"}']) >= 2
    families = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families))


def _count(folder):
    metrics = declare_metrics(folder)
    metrics.add("dialometer_arrivals_total", 2)
    metrics.observe("dialometer_commit_screens", SIZES, 3)


@pytest.mark.slow
def test_counters_of_several_processes_are_added_up_and_survive_them(tmp_path):
    context = multiprocessing.get_context("spawn")
    for _ in range(2):
        process = context.Process(target=_count, args=(str(tmp_path),))
        process.start()
        process.join(300)
        assert process.exitcode == 0
    metrics = declare_metrics(str(tmp_path))
    metrics.add("dialometer_arrivals_total")
    text = metrics.render({})
    assert "dialometer_arrivals_total 5\n" in text
    assert 'dialometer_commit_screens_bucket{le="2"} 0\n' in text
    assert 'dialometer_commit_screens_bucket{le="4"} 2\n' in text
    assert "dialometer_commit_screens_sum 6\n" in text


def test_a_series_that_was_not_declared_is_an_error():
    with pytest.raises(KeyError):
        Metrics().add("unknown")


def test_health_fails_when_the_writer_is_stuck(site, monkeypatch):
    there = site()
    monkeypatch.setattr(type(there.app.service.writer), "busy_s", property(lambda _self: 100.0))
    assert there.client.get("/healthz").status_code == 503


@pytest.mark.parametrize(
    ("method", "path", "label"),
    [
        ("GET", "/", "start"),
        ("POST", "/s", "submit"),
        ("GET", "/wizard/chats", "wizard"),
        ("GET", "/static/x.js", "static"),
        ("GET", "/anything/else", "other"),
        ("BREW", "/s", "other"),
    ],
)
def test_requests_are_counted_by_route(method, path, label):
    assert label_of(method, path) == label


def test_a_client_that_leaves_while_sending_is_no_failure_of_the_server(site, logged):
    there = site()
    sent = []

    async def leave():
        messages = iter(
            [{"type": "http.request", "body": b"consent=ag", "more_body": True}, {"type": "http.disconnect"}]
        )

        async def receive():
            return next(messages)

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/s",
            "query_string": b"",
            "headers": [(b"content-type", b"application/x-www-form-urlencoded"), (b"host", b"testserver")],
            "client": ("127.0.0.1", 1),
            "scheme": "http",
            "server": ("testserver", 80),
        }
        await there.app(scope, receive, send)

    asyncio.run(leave())
    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    assert sent == []
    assert [line["event"] for line in lines] == ["request"]
    assert lines[0]["status"] == 0


def test_metrics_answer_while_the_database_does_not():
    """Who watches a server must be answered just then; the numbers are those last known, with their age."""
    is_free = threading.Event()
    answers = iter([lambda: 5, lambda: is_free.wait(120) and 7])
    known = LastKnown(lambda: next(answers)(), patience_s=60)  # noqa: PLW0108

    async def asked():
        first = await known()
        known._patience_s = 0.05
        meanwhile = await asyncio.gather(known(), known())
        known._patience_s = 60
        is_free.set()
        return first, meanwhile, await known()

    first, meanwhile, after = asyncio.run(asked())
    assert first[0] == 5
    assert [value for value, _ in meanwhile] == [5, 5]
    assert min(age_s for _, age_s in meanwhile) > 0.04
    assert after[0] == 7
    failing = LastKnown(lambda: 1 / 0)
    assert asyncio.run(failing()) == (None, float("inf"))
