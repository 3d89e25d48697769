"""A rater withdraws on a page with the code shown at the end; nothing of them is left."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient
from taking_part import Browser

from dialometer.storage.access.codes import withdrawal_code
from dialometer.storage.migrations.versions.r0005_links_and_codes import earlier_code

CODE = re.compile(r"[0-9A-Z]{4}(?:-[0-9A-Z]{4}){3}")


def finish(site):
    browser = site.browser()
    browser.start()
    browser.walk_to(site, "done")
    return browser


def test_the_last_page_shows_a_code_that_withdraws(site):
    here = site()
    browser = finish(here)
    session = here.only_session()
    assert session.state == "completed"
    assert session.consent_version == here.app.service.flow.consent_version(session)
    (code,) = set(CODE.findall(browser.page))
    assert code == withdrawal_code(browser.client.cookies["dialometer_session"])
    assert here.store.withdrawals.session_of_code(earlier_code(session.id)) is None, "a session's id does not yield it"
    assert session.id not in browser.page

    browser.get("/withdraw")
    assert browser.fields["code"] == code, "the browser's own session needs no copying"
    assert "last page" not in browser.page, "who is in the middle has seen no last page"
    assert "The button below erases all your answers" in browser.page
    csrf = browser.fields["csrf"]
    browser.post("/withdraw", {"csrf": csrf, "code": "0000-0000-0000-0000"})
    assert browser.status == 422
    assert "No session has this withdrawal code" in browser.page
    assert browser.fields["code"] == "0000-0000-0000-0000", "what was typed is there to be compared"
    assert here.only_session().state == "completed"

    typed = code.lower().replace("-", " ").replace("0", "o").replace("1", "l")
    browser.post("/withdraw", {"csrf": browser.fields["csrf"], "code": typed})
    assert browser.status == 200
    assert "erased" in browser.page
    left = here.only_session()
    assert (left.state, left.rater_id) == ("withdrawn", "")
    assert list(here.store.records.judgments()) == []
    assert list(here.store.records.answers()) == []
    assert here.store.withdrawals.all()[0].n_judgments > 0
    assert here.app.service.flow.store.sessions.get(session.id).state == "withdrawn"
    assert browser.get("/s").heading == here.app.service.study.spec.title, "the browser's session is over: a new start"

    browser.get("/withdraw")
    browser.post("/withdraw", {"csrf": browser.fields["csrf"], "code": code})
    assert browser.status == 200, "the same code again is answered the same"
    assert len(here.store.withdrawals.all()) == 1


def test_a_forged_form_withdraws_nobody(site):
    here = site()
    code = withdrawal_code(finish(here).client.cookies["dialometer_session"])
    stranger: Browser = here.browser()
    stranger.post("/withdraw", {"csrf": "forged", "code": code})
    assert stranger.status == 403
    assert here.only_session().state == "completed"


def test_codes_are_tried_only_so_often(site):
    here = site()
    browser = here.browser()
    browser.get("/withdraw")
    csrf = browser.fields["csrf"]
    statuses = []
    for _ in range(12):
        browser.post("/withdraw", {"csrf": csrf, "code": "AAAA-AAAA-AAAA-AAAA"})
        statuses.append(browser.status)
    assert statuses[:10] == [422] * 10
    assert statuses[-1] == 429


@pytest.mark.parametrize("typed", ["", "AAAA", "not a code at all, but long enough", "\x00" * 16])
def test_what_is_no_code_finds_nobody(site, typed):
    assert site().store.withdrawals.session_of_code(typed) is None


def test_no_address_of_a_rater_is_stored_or_logged(site, tmp_path, caplog):
    here = site()
    caplog.set_level("DEBUG")
    address, device = "203.0.113.77", "SecretPhone"
    client = TestClient(here.app, client=(address, 5), headers={"user-agent": f"Mozilla/5.0 ({device} 9)"})
    client.portal = here.client.portal
    browser = Browser(client)
    browser.start()
    browser.walk_to(here, "done")
    assert here.only_session().state == "completed"
    files = list(tmp_path.glob("study.db*"))
    assert files
    for content in [file.read_bytes() for file in files] + [caplog.text.encode()]:
        assert address.encode() not in content
        assert device.encode() not in content
