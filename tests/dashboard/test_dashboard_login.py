"""Coming in and being kept out: links, passwords, waiting, expiry, cookies."""

import re

import pytest
from dashboard_visitor import PASSWORD, Visitor
from starlette.testclient import TestClient

from dialometer.web.dashboard import login, login_pages
from dialometer.web.dashboard.login import (
    IDLE_MS,
    LINK_MS,
    LONGEST_MS,
    Login,
    WeakPassword,
    first_owner_token,
    hash_password,
    is_right,
    wait_s,
)
from dialometer.web.server.security import TooOften


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""
    moment = [1_800_000_000_000]
    for module in (login, login_pages):
        monkeypatch.setattr(module, "now_ms", lambda: moment[0])
    monkeypatch.setattr("dialometer.web.dashboard.app.now_ms", lambda: moment[0])
    return moment


def test_the_first_owner_comes_by_a_link_that_works_once(site):
    token = first_owner_token(site.accounts)
    first = site.visitor().join(token, "Ada")
    assert first.status == 200
    assert "ada (owner)" in first.text
    second = site.visitor().join(token, "eve")
    assert second.status == 403
    assert "used already or is too old" in second.text
    assert [account.name for account in site.accounts.all()] == ["ada"]
    assert first_owner_token(site.accounts) == ""
    assert first_owner_token(site.accounts, is_asked=True)


def test_a_link_dies_after_a_while_and_with_the_next_start(site, clock):
    old = first_owner_token(site.accounts)
    token = first_owner_token(site.accounts)
    assert site.visitor().get("/join", token=old).status == 403
    assert "Create your account" in site.visitor().get("/join", token=token).text
    clock[0] += LINK_MS
    assert site.visitor().get("/join", token=token).status == 403


@pytest.mark.parametrize(
    ("name", "password", "again", "told"),
    [
        ("ada", "short", "short", "at least 12"),
        ("ada", PASSWORD, "other words here", "differ"),
        ("ada", "aaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaa", "easy to guess"),
        ("ada-lovelace", "ada-lovelace1", "ada-lovelace1", "easy to guess"),
        ("", PASSWORD, PASSWORD, "2 to 64"),
        ("a b", PASSWORD, PASSWORD, "2 to 64"),
        ("<script>", PASSWORD, PASSWORD, "2 to 64"),
    ],
)
def test_a_refused_account_leaves_the_link_usable(site, name, password, again, told):
    token = first_owner_token(site.accounts)
    visitor = site.visitor().get("/join", token=token)
    visitor.post("/join", {"token": token, "name": name, "password": password, "again": again})
    assert visitor.status == 422
    assert told in visitor.text
    assert "<script>" not in visitor.page
    assert not site.accounts.all()
    assert "ada (owner)" in visitor.join(token).text


def test_passwords_are_kept_as_argon2_hashes(site):
    site.owner()
    (account,) = site.accounts.all()
    assert account.password_hash.startswith("$argon2id$")
    assert PASSWORD not in account.password_hash
    assert is_right(PASSWORD, account.password_hash)
    assert not is_right(PASSWORD + "!", account.password_hash)
    assert not is_right(PASSWORD, None)
    assert not is_right(PASSWORD, "no hash")
    with pytest.raises(WeakPassword):
        hash_password("x" * 500, "ada")


def test_signing_in_and_out(site):
    site.owner()
    visitor = site.visitor().sign_in("ADA ")
    assert "ada (owner)" in visitor.text
    cookie = next(c for c in visitor.client.cookies.jar if c.name == "dialometer_dashboard")
    assert cookie.path == "/dashboard"
    assert cookie.has_nonstandard_attr("HttpOnly")
    visitor.post("/logout")
    assert "Sign in" in visitor.text
    assert visitor.get("/").text.startswith("Sign in")
    assert (
        site.visitor().client.get("/dashboard/", headers={"cookie": f"dialometer_dashboard={cookie.value}"}).url.path
        == "/dashboard/login"
    )


def test_wrong_name_and_wrong_password_look_the_same(site):
    site.owner()
    wrong = [site.visitor().sign_in("ada", "not the password"), site.visitor().sign_in("nobody", PASSWORD)]
    assert [visitor.status for visitor in wrong] == [422, 422]
    assert all("name or the password is wrong" in visitor.text for visitor in wrong)
    pages = [re.sub('name="csrf" value="[0-9a-f]+"', "", visitor.page) for visitor in wrong]
    assert pages[0].replace('value="ada"', 'value="nobody"') == pages[1]


def test_failed_sign_ins_are_slowed_and_forgiven_by_the_right_password(site, clock):
    site.owner()
    for _ in range(3):
        assert site.visitor().sign_in("ada", "wrong").status == 422
    waiting = site.visitor().sign_in("ada", PASSWORD)
    assert waiting.status == 429
    assert int(waiting.response.headers["retry-after"]) >= 1
    clock[0] += 2000
    assert site.visitor().sign_in("ada", "wrong").status == 422
    clock[0] += 3000
    assert site.visitor().sign_in("ada", PASSWORD).status == 429
    clock[0] += 1500
    assert "ada (owner)" in site.visitor().sign_in("ada", PASSWORD).text
    assert site.visitor().sign_in("ada", "wrong").status == 422, "counted from the start again"


def test_a_stranger_cannot_lock_the_owner_out(site, clock):
    site.owner()

    def come_from(address):
        client = TestClient(site.app, client=(address, 50_000))
        client.portal = site.client.portal
        return Visitor(client)

    statuses = [come_from("203.0.113.9").sign_in("ada", "wrong").status for _ in range(6)]
    assert statuses == [422, 422, 422, 429, 429, 429]
    assert "ada (owner)" in come_from("198.51.100.7").sign_in("ada", PASSWORD).text
    assert come_from("203.0.113.9").sign_in("ada", PASSWORD).status == 429, "the stranger still waits"


def test_waiting_doubles_and_ends():
    assert [wait_s(n, 0, 0) for n in (0, 2, 3, 4, 5)] == [0, 0, 2, 4, 8]
    assert wait_s(100, 0, 0) == 300
    assert wait_s(4, 0, 4000) == 0


def test_names_that_do_not_exist_are_slowed_too(site, clock):
    known = Login(site.accounts)
    for _ in range(3):
        with pytest.raises(login.WrongPassword):
            known.sign_in("nobody", "wrong", clock[0])
    with pytest.raises(TooOften):
        known.sign_in("nobody", "wrong", clock[0])


def test_one_address_cannot_try_all_names(site, clock):
    site.owner()
    statuses = [site.visitor().sign_in(f"name{n}", "wrong").status for n in range(25)]
    assert statuses[:5] == [422] * 5
    assert statuses[-1] == 429


def test_a_sign_in_ends_after_idle_hours_and_after_a_week(site, clock):
    visitor = site.owner()
    for _ in range(13):
        clock[0] += IDLE_MS - 1000
        if clock[0] - 1_800_000_000_000 > LONGEST_MS:
            break
        assert "Sign in" not in visitor.get("/").text
    clock[0] = 1_800_000_000_000 + LONGEST_MS + 1000
    assert visitor.get("/").text.startswith("Sign in")
    other = site.visitor().sign_in()
    clock[0] += IDLE_MS + 1000
    assert other.get("/").text.startswith("Sign in")


def test_after_signing_in_the_wanted_page_opens_and_no_other_site(site):
    site.owner()
    visitor = site.visitor()
    visitor.get("/studies/likert/raters")
    assert 'name="next" value="/dashboard/studies/likert/raters"' in visitor.page
    visitor.post("/login", {"name": "ada", "password": PASSWORD, "next": "/dashboard/studies/likert/raters"})
    assert visitor.response.url.path == "/dashboard/studies/likert/raters"
    for wanted in ("https://evil.example/", "//evil.example", "/dashboard/\\evil", "/elsewhere"):
        stranger = site.visitor().get("/login", next=wanted)
        assert wanted not in stranger.page
        stranger.post("/login", {"name": "ada", "password": PASSWORD, "next": wanted})
        assert stranger.response.url.path == "/dashboard/"


def test_a_live_page_is_told_that_the_sign_in_is_over(site):
    stranger = site.visitor(**{"x-live": "1"})
    assert stranger.get("/studies/likert/").status == 401


def test_a_new_password_signs_everybody_out(site):
    ada, other = site.owner(), site.visitor().sign_in()
    ada.get("/me")
    ada.post("/me", {"old": "wrong", "password": "many new words", "again": "many new words"})
    assert "old password is not right" in ada.text
    ada.post("/me", {"old": PASSWORD, "password": "many new words", "again": "many new words"})
    assert ada.text.startswith("Sign in")
    assert other.get("/").text.startswith("Sign in")
    assert site.visitor().sign_in("ada", PASSWORD).status == 422
    assert "ada (owner)" in site.visitor().sign_in("ada", "many new words").text


def test_owners_look_after_accounts(site):
    ada = site.owner()
    ada.get("/accounts")
    ada.post("/accounts/invite", {"role": "editor"})
    token = ada.page.split("/dashboard/join?token=")[1].split("<")[0].split('"')[0]
    bob = site.visitor().join(token, "bob")
    assert "bob (editor)" in bob.text
    number = site.accounts.named("bob").id
    ada.post(f"/accounts/{number}/change", {"what": "role", "role": "viewer"})
    assert "bob is now viewer" in ada.text
    assert "bob (viewer)" in bob.get("/").text
    ada.post(f"/accounts/{number}/reset")
    token = ada.page.split("/dashboard/join?token=")[1].split("<")[0].split('"')[0]
    assert "Choose a new password" in bob.get("/join", token=token).text
    bob.post("/join", {"token": token, "password": "some other words", "again": "some other words"})
    assert "bob (viewer)" in bob.text
    ada.post(f"/accounts/{number}/change", {"what": "close"})
    assert bob.get("/").text.startswith("Sign in")
    assert site.visitor().sign_in("bob", "some other words").status == 422
    own = site.accounts.named("ada").id
    assert ada.post(f"/accounts/{own}/change", {"what": "role", "role": "viewer"}).status == 409
    assert "last owner" in ada.text
    log = ada.get("/audit").text
    for words in ("ada invited", "bob made the account", "ada changed an account", "bob set a new password"):
        assert words in log
    assert ada.post("/accounts/invite", {"role": "king"}).status == 422
    assert ada.post("/accounts/999/change", {"what": "close"}).status == 422
    assert ada.post(f"/accounts/{own}/change", {"what": "nonsense"}).status == 422


def test_a_sentence_in_the_address_is_shown_only_with_its_mark(site):
    ada = site.owner()
    assert "you have won" not in ada.get("/", told="you have won", mark="0000").text
    assert "you have won" not in ada.get("/", told="you have won").text


def test_strangers_cannot_send_much(site):
    stranger = site.visitor()
    assert stranger.client.post("/dashboard/login", content=b"x" * 300_000).status_code == 413
    assert stranger.client.post("/dashboard/studies/likert/files", content=b"x" * 300_000).status_code == 401
    assert stranger.client.post("/dashboard/studies/likert/files", content=b"x" * 34_000_000).status_code == 413
