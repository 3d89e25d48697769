"""Roles in single studies, and the second factor."""

import base64
import re

import pytest
from dashboard_visitor import PASSWORD
from sqlalchemy import select

from dialometer.flow.engine import now_ms
from dialometer.storage.schema import sign_in_failures
from dialometer.web.dashboard import login, login_pages
from dialometer.web.dashboard.login import CODE_MS, Login, NotSignedIn
from dialometer.web.dashboard.second_factor import PERIOD_S, app_address, code_at, matching_step

RFC_SECRET = base64.b32encode(b"12345678901234567890").decode()


@pytest.mark.parametrize(
    ("at_s", "digits"),
    [(59, "94287082"), (1111111109, "07081804"), (1111111111, "14050471"), (1234567890, "89005924"),
     (2000000000, "69279037"), (20000000000, "65353130")],
)  # fmt: skip
def test_the_digits_are_those_of_rfc_6238(at_s, digits):
    assert code_at(RFC_SECRET, at_s // PERIOD_S, n_digits=8) == digits
    assert matching_step(RFC_SECRET, f" {digits[2:5]} {digits[5:]} ", at_s * 1000) == at_s // PERIOD_S
    assert matching_step(RFC_SECRET, digits[2:], (at_s + PERIOD_S) * 1000) == at_s // PERIOD_S
    assert matching_step(RFC_SECRET, digits[2:], (at_s + 3 * PERIOD_S) * 1000) is None


def test_apps_get_an_address_they_understand():
    address = app_address("ABC", "ada@example.org", "study.example.org")
    assert address.startswith("otpauth://totp/dialometer%20study.example.org%3Aada%40example.org?")
    assert address.endswith("?secret=ABC&issuer=dialometer%20study.example.org")


def guest(site, role="viewer", study="likert", name="gil"):
    ada = site.owner()
    ada.get("/accounts")
    ada.post("/accounts/invite", {"role": role, "study": study})
    assert f"the role {role} of {study}" in ada.text
    token = re.search(r"join\?token=([\w-]+)", ada.page)[1]
    visitor = site.visitor()
    visitor.get("/join", token=token)
    assert f"Your role will be {role} of the study {study}" in visitor.text
    return ada, visitor.join(token, name)


def test_a_guest_sees_one_study_and_no_other(site):
    _, gil = guest(site)
    assert site.accounts.named("gil").role == "guest"
    assert "/dashboard/studies/likert/" in gil.page
    assert "/dashboard/studies/anchoring/" not in gil.page
    assert gil.get("/studies/likert/").status == 200
    assert "gil (viewer)" in gil.text
    for path in ("/studies/anchoring/", "/studies/anchoring/files", "/studies/no-such-study/", "/new", "/accounts"):
        assert gil.get(path).status == 403, path
    assert gil.post("/studies/likert/control", {"what": "pause"}).status == 403, "a viewer changes nothing"


def test_roles_in_a_study_are_given_and_taken(site):
    ada, gil = guest(site)
    number = site.accounts.named("gil").id
    change = f"/accounts/{number}/change"
    ada.post(change, {"what": "study", "study": "anchoring", "role": "editor"})
    assert "gil is now editor of anchoring" in ada.text
    assert "gil (editor)" in gil.get("/studies/anchoring/").text
    assert "gil (viewer)" in gil.get("/studies/likert/").text
    assert gil.get("/new").status == 403, "an editor of one study makes no others"
    ada.post(change, {"what": "study", "study": "anchoring", "role": ""})
    assert gil.get("/studies/anchoring/").status == 403
    for wrong in ({"study": "nowhere", "role": "viewer"}, {"study": "likert", "role": "owner"}):
        assert ada.post(change, {"what": "study", **wrong}).status == 422
    assert ada.post("/accounts/invite", {"role": "owner", "study": "likert"}).status == 422


def test_a_role_in_a_study_never_takes_anything_away(site):
    ada = site.owner()
    bob = site.member("editor", "bob")
    site.accounts.set_study_role(site.accounts.named("bob").id, "likert", "viewer")
    assert "bob (editor)" in bob.get("/studies/likert/").text
    assert ada.get("/studies/likert/").status == 200


def turn_on(visitor, password=PASSWORD):
    visitor.get("/me/second-factor")
    assert '<svg class="qr"' in visitor.page
    secret, signature = (
        re.search(rf'name="{name}" value="(\w+)"', visitor.page)[1] for name in ("secret", "signature")
    )
    step = now_ms() // 1000 // PERIOD_S
    form = {"secret": secret, "signature": signature, "code": code_at(secret, step), "password": password}
    visitor.post("/me/second-factor", form)
    return secret, step, re.findall(r"<li><code>([A-Z2-9]{5}-[A-Z2-9]{5})</code>", visitor.page)


def test_with_a_second_factor_the_password_alone_opens_nothing(site):
    ada = site.owner()
    secret, step, codes = turn_on(ada)
    assert len(set(codes)) == 10
    assert "10 recovery codes left" in ada.get("/me").text
    thief = site.visitor().sign_in()
    assert thief.text.startswith("Second factor")
    for path in ("/", "/studies/likert/", "/me", "/accounts"):
        assert thief.get(path).text.startswith("Sign in"), path
    thief.get("/code")
    assert thief.post("/code", {"code": "000000"}).status == 422
    assert thief.post("/code", {"code": code_at(secret, step)}).status == 422, "these digits turned it on: used"
    assert "ada (owner)" in thief.post("/code", {"code": code_at(secret, step + 1)}).text


def test_a_recovery_code_works_once_however_it_is_typed(site):
    ada = site.owner()
    _, _, codes = turn_on(ada)
    visitor = site.visitor().sign_in()
    assert "ada (owner)" in visitor.post("/code", {"code": codes[0].lower().replace("-", " ")}).text
    again = site.visitor().sign_in()
    assert again.post("/code", {"code": codes[0]}).status == 422
    assert "9 recovery codes left" in visitor.get("/me").text
    assert "signed in with a recovery code 9 left" in visitor.get("/audit").text


def test_guessing_digits_is_slowed_and_the_wanted_page_opens_at_last(site, monkeypatch):
    at_ms = now_ms()
    for module in (login, login_pages):  # the time stands: however long a guess takes, the next one is early
        monkeypatch.setattr(module, "now_ms", lambda: at_ms)
    ada = site.owner()
    secret, step, _ = turn_on(ada)
    visitor = site.visitor()
    visitor.get("/studies/likert/raters")
    visitor.post("/login", {"name": "ada", "password": PASSWORD, "next": "/dashboard/studies/likert/raters"})
    assert visitor.response.url.path == "/dashboard/code"
    wanted = {"next": "/dashboard/studies/likert/raters"}
    statuses = [visitor.post("/code", {"code": f"00000{n}", **wanted}).status for n in range(4)]
    assert statuses == [422, 422, 422, 429]
    site.accounts.forget_failures(next(iter(_failing(site))))
    visitor.post("/code", {"code": code_at(secret, step + 1), **wanted})
    assert visitor.response.url.path == "/dashboard/studies/likert/raters"


def _failing(site):
    with site.accounts.database.reading() as connection:
        return [row.name for row in connection.execute(select(sign_in_failures)) if row.name.startswith("code of ada")]


def test_the_code_is_asked_for_a_few_minutes_only(site):
    ada = site.owner()
    turn_on(ada)
    login = Login(site.accounts)
    at_ms = now_ms()
    secret, _ = login.sign_in("ada", PASSWORD, at_ms)
    assert login.asked_for_code(secret, at_ms + CODE_MS - 1000).name == "ada"
    with pytest.raises(NotSignedIn):
        login.asked_for_code(secret, at_ms + CODE_MS + 1000)
    with pytest.raises(NotSignedIn):
        login.asked_for_code("", at_ms)


def test_turning_it_on_takes_digits_password_and_the_own_form(site):
    ada = site.owner()
    assert turn_on(ada, "wrong password!")[2] == []
    assert "The password is not right" in ada.text
    ada.get("/me/second-factor")
    forged = {"secret": RFC_SECRET, "signature": "0" * 16, "code": "000000", "password": PASSWORD}
    assert ada.post("/me/second-factor", forged).status == 422
    assert not site.accounts.named("ada").has_second_factor


def test_it_is_turned_off_by_oneself_or_by_an_owner(site):
    ada = site.owner()
    turn_on(ada)
    ada.get("/me")
    assert "not right" in ada.post("/me/second-factor/off", {"old": "wrong"}).text
    assert "The second factor is off" in ada.post("/me/second-factor/off", {"old": PASSWORD}).text
    bob = site.member("viewer", "bob")
    turn_on(bob)
    number = site.accounts.named("bob").id
    ada.get("/accounts")
    ada.post(f"/accounts/{number}/change", {"what": "no second factor"})
    assert "bob (viewer)" in site.visitor().sign_in("bob").text


def test_a_new_password_by_link_still_needs_the_second_factor(site):
    ada = site.owner()
    bob = site.member("viewer", "bob")
    turn_on(bob)
    number = site.accounts.named("bob").id
    token = Login(site.accounts).invite("viewer", by="ada", at_ms=now_ms(), account_id=number)
    visitor = site.visitor()
    visitor.get("/join", token=token)
    visitor.post("/join", {"token": token, "password": "some other words", "again": "some other words"})
    assert visitor.text.startswith("Second factor")
    assert ada.get("/").status == 200
