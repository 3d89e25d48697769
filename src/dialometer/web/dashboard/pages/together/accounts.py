"""Accounts, their roles, and one-time links."""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from starlette.responses import Response

from dialometer.errors import DialometerError
from dialometer.storage.access.accounts import ROLES, STUDY_ROLES, Account, Role
from dialometer.storage.access.identities import Identities
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.login import LINKING, MIN_LENGTH, hash_password, is_right
from dialometer.web.dashboard.qr_code import qr_svg
from dialometer.web.dashboard.second_factor import (
    app_address,
    clean_code,
    matching_step,
    new_recovery_codes,
    new_secret,
)
from dialometer.web.dashboard.translating import explained_error, filled, translated


@page("/accounts", role="owner")
def accounts(dashboard: Dashboard, request: PageRequest) -> Response:
    """All accounts."""
    return _page(dashboard, request)


def _page(dashboard: Dashboard, request: PageRequest, link: str = "", about: str = "") -> Response:
    content = {
        "accounts": dashboard.accounts.all(),
        "roles": ROLES,
        "study_roles": STUDY_ROLES,
        "roles_in": dashboard.accounts.study_roles(),
        "names": dashboard.studies.folders.names(),
        "linked": Identities(dashboard.accounts.database).linked(),
    }
    return dashboard.show("accounts.html", request, link=link, about=about, tab="accounts", **content)


@page("/accounts/invite", role="owner", method="POST")
def invite(dashboard: Dashboard, request: PageRequest) -> Response:
    """A one-time link for a new account, with a role everywhere or in one study; it is shown once."""
    study = _study(dashboard, request) if request.form.get("study") else None
    role = _role(request, STUDY_ROLES if study else ROLES)
    what = f"{role} of {study}" if study else role
    token = dashboard.login.invite(role, by=request.account.name, at_ms=request.at_ms, study=study)
    dashboard.note(request, "invited", what)
    return _page(
        dashboard, request, f"/dashboard/join?token={token}", translated("a new account with the role {1}", what)
    )


@page("/accounts/{id:number}/reset", role="owner", method="POST")
def reset(dashboard: Dashboard, request: PageRequest) -> Response:
    """A one-time link for setting a new password."""
    account = _account(dashboard, request)
    token = dashboard.login.invite(account.role, by=request.account.name, at_ms=request.at_ms, account_id=account.id)
    dashboard.note(request, "made a link for a new password", account.name)
    return _page(
        dashboard, request, f"/dashboard/join?token={token}", translated("a new password for {1}", account.name)
    )


@page("/accounts/{id:number}/change", role="owner", method="POST")
def change(dashboard: Dashboard, request: PageRequest) -> Response:
    """Another role, or an account closed or opened again. Accounts are never deleted: the logs name them."""
    account = _account(dashboard, request)
    what = request.form.get("what", "")
    message: tuple[str, ...]
    if what == "role":
        role = _role(request)
        dashboard.accounts.change(account.id, role=role)
        message = "{1} is now {2}.", account.name, translated(role)
    elif what in ("close", "open"):
        dashboard.accounts.change(account.id, is_active=what == "open")
        message = "The account {1} is open again." if what == "open" else "The account {1} is closed.", account.name
    elif what == "no second factor":
        dashboard.accounts.set_second_factor(account.id, None)
        message = "The second factor of {1} is off.", account.name
    elif what == "unlink":
        Identities(dashboard.accounts.database).unlink(account.id)
        message = "The account {1} signs in with its password only.", account.name
    elif what == "study":
        study, role_there = _study(dashboard, request), request.form.get("role", "")
        given = _role(request, STUDY_ROLES) if role_there else None
        dashboard.accounts.set_study_role(account.id, study, given)
        message = "{1} has no role of its own in {2}.", account.name, study
        if given:
            message = "{1} is now {2} of {3}.", account.name, translated(given), study
    else:
        raise DialometerError("there is no such change", remedy="go back and choose again")
    text, *values = message
    dashboard.note(request, "changed an account", filled(text, *values))
    return dashboard.redirect("/accounts", request, translated(text, *values))


@page("/me", role="guest")
def me(dashboard: Dashboard, request: PageRequest) -> Response:
    """One's own account."""
    return _own_page(dashboard, request)


def _own_page(dashboard: Dashboard, request: PageRequest, **content: object) -> Response:
    left = dashboard.accounts.n_recovery_codes(request.account.id)
    shown = {"error": "", "factor_error": "", "min_length": MIN_LENGTH, "n_codes": left, "tab": "me"} | content
    shown |= {"provider": dashboard.provider.label if dashboard.provider else "", "link": request.sign(LINKING)}
    shown["is_linked"] = request.account.id in Identities(dashboard.accounts.database).linked()
    return dashboard.show("me.html", request, **shown)


@page("/me/second-factor", role="guest")
def second_factor(dashboard: Dashboard, request: PageRequest) -> Response:
    """A new secret to take over into an app; it counts once its first digits are typed."""
    return _new_factor(dashboard, request, new_secret())


def _new_factor(dashboard: Dashboard, request: PageRequest, secret: str, error: str = "") -> Response:
    address = app_address(secret, request.account.name, urlsplit(request.origin).netloc)
    content = {
        "secret": secret,
        "signature": request.sign(secret),
        "code": qr_svg(address, translated("QR code for your app")),
    }
    return dashboard.show("second_factor.html", request, **content, error=error, codes=(), tab="me")


@page("/me/second-factor", role="guest", method="POST")
def turn_on(dashboard: Dashboard, request: PageRequest) -> Response:
    """Turns the second factor on; its recovery codes are shown once."""
    secret, signature = request.form.get("secret", ""), request.form.get("signature", "")
    if not hmac.compare_digest(request.sign(secret).encode(), signature.encode("utf-8", "replace")):
        raise DialometerError("this form is too old", remedy="begin again")
    if not is_right(request.form.get("password", ""), request.account.password_hash):
        return _new_factor(dashboard, request, secret, translated("The password is not right."))
    step = matching_step(secret, request.form.get("code", "")[:20], request.at_ms)
    if step is None:
        return _new_factor(
            dashboard,
            request,
            secret,
            translated("These digits are not right. Check the clock of the phone, and type the newest."),
        )
    codes = new_recovery_codes()
    dashboard.accounts.set_second_factor(request.account.id, secret, [clean_code(code) for code in codes], step)
    dashboard.note(request, "turned the second factor on", request.account.name)
    return dashboard.show("second_factor.html", request, codes=codes, error="", tab="me")


@page("/me/second-factor/off", role="guest", method="POST")
def turn_off(dashboard: Dashboard, request: PageRequest) -> Response:
    """Turns the second factor off, with the password."""
    if not is_right(request.form.get("old", ""), request.account.password_hash):
        return _own_page(dashboard, request, factor_error=translated("The password is not right."))
    dashboard.accounts.set_second_factor(request.account.id, None)
    dashboard.note(request, "turned the second factor off", request.account.name)
    return dashboard.redirect("/me", request, translated("The second factor is off."))


@page("/me", role="guest", method="POST")
def new_password(dashboard: Dashboard, request: PageRequest) -> Response:
    """Sets a new password; every browser must sign in again, this one too."""
    form = request.form
    error = ""
    if not is_right(form.get("old", ""), request.account.password_hash):
        error = translated("The old password is not right.")
    elif form.get("password", "") != form.get("again", ""):
        error = translated("The two new passwords differ.")
    if not error:
        try:
            hashed = hash_password(form.get("password", ""), request.account.name)
        except DialometerError as problem:
            error = explained_error(problem)
        else:
            dashboard.accounts.change(request.account.id, password_hash=hashed)
            dashboard.note(request, "changed the password", request.account.name)
            return dashboard.redirect("/login", request)
    return _own_page(dashboard, request, error=error)


def _role(request: PageRequest, known: tuple[Role, ...] = ROLES) -> Role:
    given = request.form.get("role", "")
    role = next((role for role in known if role == given), None)
    if role is None:
        raise DialometerError("there is no such role", remedy=f"one of {', '.join(known)}")
    return role


def _study(dashboard: Dashboard, request: PageRequest) -> str:
    name = request.form.get("study", "")
    if name not in dashboard.studies.folders.names():
        raise DialometerError("there is no such study", remedy="choose one from the list")
    return name


def _account(dashboard: Dashboard, request: PageRequest) -> Account:
    number = int(request.params["id"])
    account = next((account for account in dashboard.accounts.all() if account.id == number), None)
    if account is None:
        raise DialometerError("there is no such account", remedy="go back to the list")
    return account
