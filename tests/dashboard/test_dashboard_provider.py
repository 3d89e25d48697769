"""Signing in by OpenID Connect, against a real small provider on this machine, and what attackers try with it."""

from __future__ import annotations

import base64
import json
import re
import time

import httpx
import pytest

pytest.importorskip("jwt", reason="PyJWT is not installed")
pytest.importorskip("cryptography", reason="cryptography is not installed")

import jwt
from dashboard_site import Site
from oidc_provider import CLIENT, SECRET, OwnProvider, new_key

from dialometer.errors import DialometerError
from dialometer.storage.access.audit_log import AuditLog
from dialometer.web.dashboard.login import is_right
from dialometer.web.dashboard.openid.provider import challenge_of
from dialometer.web.dashboard.running_studies import StudyFolders
from dialometer.web.server.provider_settings import SECRET_VARIABLE, ProviderSettings
from dialometer.web.server.settings import Settings
from loopback import serving_app


@pytest.fixture(scope="module")
def keys():
    """Drawing keys takes a while: the provider's own, and an attacker's."""
    return new_key(), new_key()


@pytest.fixture
def provider(keys):
    own = OwnProvider(key=keys[0])
    with serving_app(own.app()) as port:
        own.issuer = f"http://127.0.0.1:{port}"
        yield own


@pytest.fixture
def site(provider, tmp_path, monkeypatch):
    monkeypatch.setenv(SECRET_VARIABLE, SECRET)
    settings = ProviderSettings.checked(
        provider.issuer, CLIENT, ["@example.org, bob@elsewhere.net"], "viewer", "Our ID"
    )
    opened = Site(StudyFolders(parent=str(tmp_path)), provider=settings)
    opened.owner_name = opened.owner()
    yield opened
    opened.close()


def go(visitor, **params):
    """To the provider, and what the provider's redirect says."""
    response = visitor.client.get("/dashboard/provider", params=params, follow_redirects=False)
    assert response.status_code == 303, response.text
    answered = httpx.get(response.headers["location"], follow_redirects=False)
    back = answered.headers["location"]
    assert back.startswith("http://testserver/dashboard/provider/back?code=")
    return back.removeprefix("http://testserver/dashboard")


def sign_in(site, **params):
    visitor = site.visitor()
    visitor.get("/login")
    visitor.get(go(visitor, **params))
    return visitor


def log(site):
    return [(entry.made_by, entry.what, entry.detail) for entry in AuditLog(site.accounts.database).newest(50)]


def test_somebody_of_the_domain_comes_in_with_the_default_role(site, provider):
    visitor = site.visitor().get("/login")
    assert "Sign in with Our ID" in visitor.text
    ada = sign_in(site)
    assert "ada@example.org (viewer)" in ada.text
    assert ("ada@example.org", "made the account", "viewer, at Our ID") in log(site)
    assert ("ada@example.org", "signed in", "at Our ID") in log(site)
    provider.user = {**provider.user, "email": "ada.new@example.org"}
    again = sign_in(site)
    assert "ada@example.org (viewer)" in again.text, "the subject counts, not the address"
    assert [account.name for account in site.accounts.all()] == ["ada", "ada@example.org"]
    assert "OpenID Connect" in site.owner_name.get("/accounts").text


def test_the_wanted_page_opens_and_no_other_site_does(site):
    wanted = sign_in(site, next="/dashboard/me")
    assert wanted.response.url.path == "/dashboard/me"
    for evil in ("https://evil.example/", "//evil.example", "/dashboard/\\evil.example", "/dashboard@evil.example/"):
        visitor = site.visitor()
        response = visitor.client.get(f"/dashboard{go(visitor, next=evil)}", follow_redirects=False)
        assert response.headers["location"] == "/dashboard/", evil


def test_the_provider_gets_hashes_and_this_server_alone_knows_the_rest(site, provider):
    visitor = site.visitor()
    address = visitor.client.get("/dashboard/provider", follow_redirects=False).headers["location"]
    query = httpx.URL(address).params
    assert query["redirect_uri"] == "http://testserver/dashboard/provider/back"
    assert len(query["state"]) > 40
    assert len(query["nonce"]) > 40
    assert query["state"] != query["nonce"]
    assert SECRET not in address
    assert challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert SECRET not in Settings(provider=site.studies.settings.provider).as_json()
    assert Settings.from_json(Settings(provider=site.studies.settings.provider).as_json()).provider is not None


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"nonce": "of another sign-in"}, "belongs to another sign-in"),
        ({"nonce": None}, "belongs to another sign-in"),
        ({"aud": "another-client"}, "InvalidAudienceError"),
        ({"aud": [CLIENT, "another-client"]}, "given to another site"),
        ({"azp": "another-client"}, "given to another site"),
        ({"iss": "https://another.example"}, "InvalidIssuerError"),
        ({"exp": int(time.time()) - 3600}, "ExpiredSignatureError"),
        ({"exp": None}, "MissingRequiredClaimError"),
        ({"sub": None}, "MissingRequiredClaimError"),
        ({"iat": int(time.time()) + 30 * 86_400}, "ImmatureSignatureError"),
        ({"email_verified": False}, "not verified your e-mail"),
        ({"email_verified": None}, "not verified your e-mail"),
        ({"email": "eve@evil.example"}, "may not sign in here"),
        ({"email": "eve@sub.example.org"}, "may not sign in here"),
        ({"email": "eve@evil.example, @example.org"}, "may not sign in here"),
        ({"email": None}, "may not sign in here"),
    ],
)
def test_a_token_that_proves_nothing_opens_nothing(site, provider, claims, why):
    provider.claims = claims
    eve = sign_in(site)
    assert eve.status == 403
    assert re.search(why, eve.text, re.IGNORECASE), eve.text
    assert eve.get("/me").text.startswith("Sign in")
    assert [account.name for account in site.accounts.all()] == ["ada"]
    assert any(what == "failed to sign in" for _, what, _ in log(site))


def _segment(part):
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def test_a_signature_is_never_optional(site, provider, keys):
    def unsigned(claims):
        return f"{_segment({'alg': 'none', 'typ': 'JWT'})}.{_segment(claims)}."

    def with_the_public_key_as_a_secret(claims):
        import hashlib
        import hmac

        signed = f"{_segment({'alg': 'HS256', 'typ': 'JWT', 'kid': 'k1'})}.{_segment(claims)}"
        digest = hmac.new(provider.public_pem(), signed.encode(), hashlib.sha256).digest()
        return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"

    def with_another_key(claims):
        return jwt.encode(claims, keys[1], algorithm="RS256", headers={"kid": "k1"})

    def with_a_key_of_its_own(claims):
        own = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(keys[1].public_key()))
        return jwt.encode(
            claims, keys[1], algorithm="RS256", headers={"kid": "k9", "jwk": own, "jku": "http://127.0.0.1:1/"}
        )

    def changed_afterwards(claims):
        head, _, signature = jwt.encode(claims, provider.key, algorithm="RS256", headers={"kid": "k1"}).split(".")
        return f"{head}.{_segment(claims | {'sub': 'owner'})}.{signature}"

    attacks = (unsigned, with_the_public_key_as_a_secret, with_another_key, with_a_key_of_its_own, changed_afterwards)
    for attack in attacks:
        provider.sign = attack
        eve = sign_in(site)
        assert eve.status == 403, attack.__name__
        assert eve.get("/me").text.startswith("Sign in"), attack.__name__
    provider.sign = None
    assert "ada@example.org (viewer)" in sign_in(site).text


def test_a_code_and_a_state_work_once_and_in_their_browser(site, provider):
    ada = site.visitor()
    back = go(ada)
    thief = site.visitor().get("/login")
    assert thief.get(back).status == 403, (
        "another browser: nobody is signed in as the thief's victim or the other way round"
    )
    assert "ada@example.org (viewer)" in ada.get(back).text
    assert provider.n_tokens == 1
    ada.client.cookies.delete("dialometer_dashboard")
    assert ada.get(back).status == 403, "replayed"
    assert provider.n_tokens == 1, "the provider is not even asked"
    other = site.visitor()
    fresh = go(other)
    used = re.search(r"code=([^&]+)", back)[1]
    replayed = re.sub(r"code=[^&]+", f"code={used}", fresh)
    assert other.get(replayed).status == 403, "an old code with a new state"
    for wrong in (
        "/provider/back",
        "/provider/back?code=x",
        "/provider/back?state=x&code=y",
        "/provider/back?error=denied",
    ):
        assert site.visitor().get(wrong).status == 403


def test_an_answer_of_another_issuer_is_refused(site, provider):
    visitor = site.visitor()
    assert visitor.get(f"{go(visitor)}&iss=https%3A%2F%2Fanother.example").status == 403
    visitor = site.visitor()
    assert "(viewer)" in visitor.get(f"{go(visitor)}&iss={provider.issuer}").text


@pytest.mark.parametrize(
    "about",
    [
        {"issuer": "https://another.example"},
        {"token_endpoint": "ftp://127.0.0.1/token"},
        {"jwks_uri": ""},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
)
def test_a_provider_that_is_not_what_was_configured_is_not_used(site, provider, about):
    provider.about = about
    visitor = site.visitor().get("/provider")
    assert visitor.status == 403
    assert visitor.text.startswith("Sign in")


def test_keys_may_change(site, provider, keys):
    assert "(viewer)" in sign_in(site).text
    provider.key, provider.key_id = keys[1], "k2"
    used = site.app._dashboard.dashboard.provider
    assert sign_in(site).status == 403, "keys are not fetched again at once for everybody who names another"
    used._keys_at -= 61
    assert "(viewer)" in sign_in(site).text


def test_an_account_with_a_password_is_linked_by_its_owner_only(site, provider):
    site.accounts.use_link(_link(site, "viewer"), "carl@example.org", "not a hash", 1)
    provider.user = {"sub": "subject-2", "email": "carl@example.org", "email_verified": True}
    assert sign_in(site).status == 403, "the same address is no proof of the same person"
    ada = site.owner_name
    ada.get("/me")
    link = re.search(r"/dashboard/provider\?link=(\w+)", ada.page)[1]
    ada.get(go(ada, link=link))
    assert "ada (owner)" in ada.text
    assert ("ada", "linked the account", "with Our ID") in log(site)
    assert "ada (owner)" in sign_in(site).text
    forged = site.visitor().sign_in()
    forged.get(go(forged, link="0" * 16))
    assert "You can sign in with Our ID" in forged.get("/me").text
    eve = site.member("viewer", "eve")
    eve.get("/me")
    taken = re.search(r"/dashboard/provider\?link=(\w+)", eve.page)[1]
    eve.get(go(eve, link=taken))
    assert "belongs to another account" in eve.text


def test_an_account_is_linked_only_while_its_owner_is_signed_in(site):
    """Who signs out on the way to the provider, or whose account was closed meanwhile, links nothing."""
    ada = site.owner_name
    ada.get("/me")
    back = go(ada, link=re.search(r"/dashboard/provider\?link=(\w+)", ada.page)[1])
    ada.client.cookies.delete("dialometer_dashboard")
    assert ada.get(back).status == 403
    assert "no longer signed in" in ada.text
    assert "linked the account" not in [what for _, what, _ in log(site)]


def _link(site, role):
    from dialometer.flow.engine import now_ms
    from dialometer.web.dashboard.login import Login

    return Login(site.accounts).invite(role, by="ada", at_ms=now_ms())


def test_a_closed_account_stays_outside_and_no_password_opens_one_without(site):
    sign_in(site)
    account = site.accounts.named("ada@example.org")
    for guess in ("", "nobody has this password", account.password_hash):
        assert not is_right(guess, account.password_hash)
        assert site.visitor().sign_in("ada@example.org", guess).status in (422, 429)
    site.accounts.change(account.id, is_active=False)
    assert "closed" in sign_in(site).text


def test_signing_out_offers_the_providers_sign_out(site, provider):
    ada = sign_in(site)
    ada.post("/logout", {})
    assert f"{provider.issuer}/end?client_id={CLIENT}" in ada.page
    assert ada.get("/me").text.startswith("Sign in")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("https://id.example", "", ["@a.org"], "viewer", ""), "client id"),
        (("http://id.example", "me", ["@a.org"], "viewer", ""), "https"),
        (("http://127.0.0.1.evil.example", "me", ["@a.org"], "viewer", ""), "https"),
        (("https://id.example", "me", [], "viewer", ""), "nobody"),
        (("https://id.example", "me", ["*"], "viewer", ""), "neither an address nor a domain"),
        (("https://id.example", "me", ["@a.org"], "king", ""), "no role"),
    ],
)
def test_settings_that_would_open_the_door_are_refused(given, why):
    with pytest.raises(DialometerError, match=why):
        ProviderSettings.checked(*given)


def test_without_a_provider_there_is_no_such_page(make_site, tmp_path):
    site = make_site(StudyFolders(parent=str(tmp_path)))
    assert ProviderSettings.checked("", "", (), "guest", "") is None
    assert (
        site.visitor()
        .client.get("/dashboard/provider", follow_redirects=False)
        .headers["location"]
        .startswith("/dashboard/login")
    )


def test_an_owner_unlinks_an_account_that_keeps_a_way_to_sign_in(site, provider):
    ada = site.owner_name
    ada.get("/me")
    ada.get(go(ada, link=re.search(r"/dashboard/provider\?link=(\w+)", ada.page)[1]))
    ada.get("/accounts")
    assert "Unlink OpenID Connect from ada" in ada.text
    number = re.search(r"/accounts/(\d+)/change", ada.page)[1]
    made = site.visitor()
    provider.user = {**provider.user, "sub": "s-eve", "email": "eve@example.org"}
    made.get("/login")
    made.get(go(made))
    ada.get("/accounts")
    other = max(re.findall(r"/accounts/(\d+)/change", ada.page), key=int)
    assert ada.post(f"/accounts/{other}/change", {"what": "unlink"}).status == 409
    assert "could no longer sign in" in ada.text
    ada.get("/accounts")
    ada.post(f"/accounts/{number}/change", {"what": "unlink"})
    assert ("ada", "changed an account", "The account ada signs in with its password only.") in log(site)
    assert ada.get("/me").response.url.path == "/dashboard/login", "sign-ins by the provider end"
