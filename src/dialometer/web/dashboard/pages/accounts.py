"""Accounts, their roles, one-time links, and the log of what accounts did."""

from __future__ import annotations

from starlette.responses import Response

from dialometer.errors import DialometerError
from dialometer.storage.accounts import ROLES, Account, Role
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.login import MIN_LENGTH, hash_password, is_right


@page("/accounts", role="owner")
def accounts(dashboard: Dashboard, request: PageRequest) -> Response:
    """All accounts, and the log."""
    return _page(dashboard, request)


def _page(dashboard: Dashboard, request: PageRequest, link: str = "", about: str = "") -> Response:
    content = {"accounts": dashboard.accounts.all(), "deeds": dashboard.accounts.actions(), "roles": ROLES}
    return dashboard.show("accounts.html", request, link=link, about=about, tab="accounts", **content)


@page("/accounts/invite", role="owner", method="POST")
def invite(dashboard: Dashboard, request: PageRequest) -> Response:
    """A one-time link for a new account; it is shown once."""
    role = _role(request)
    token = dashboard.login.invite(role, by=request.account.name, at_ms=request.at_ms)
    dashboard.note(request, "invited", role)
    return _page(dashboard, request, f"/dashboard/join?token={token}", f"a new account with the role {role}")


@page("/accounts/{id:int}/reset", role="owner", method="POST")
def reset(dashboard: Dashboard, request: PageRequest) -> Response:
    """A one-time link for setting a new password."""
    account = _account(dashboard, request)
    token = dashboard.login.invite(account.role, by=request.account.name, at_ms=request.at_ms, account_id=account.id)
    dashboard.note(request, "made a link for a new password", account.name)
    return _page(dashboard, request, f"/dashboard/join?token={token}", f"a new password for {account.name}")


@page("/accounts/{id:int}/change", role="owner", method="POST")
def change(dashboard: Dashboard, request: PageRequest) -> Response:
    """Another role, or an account closed or opened again. Accounts are never deleted: the logs name them."""
    account = _account(dashboard, request)
    what = request.form.get("what", "")
    if what == "role":
        role = _role(request)
        dashboard.accounts.change(account.id, role=role)
        message = f"{account.name} is now {role}."
    elif what in ("close", "open"):
        dashboard.accounts.change(account.id, is_active=what == "open")
        message = f"The account {account.name} is {'open again' if what == 'open' else 'closed'}."
    else:
        raise DialometerError("this is no change", remedy="go back and choose again")
    dashboard.note(request, "changed an account", message)
    return dashboard.redirect("/accounts", request, message)


@page("/me", role="viewer")
def me(dashboard: Dashboard, request: PageRequest) -> Response:
    """One's own account."""
    return dashboard.show("me.html", request, min_length=MIN_LENGTH, error="", tab="me")


@page("/me", role="viewer", method="POST")
def new_password(dashboard: Dashboard, request: PageRequest) -> Response:
    """Sets a new password; every browser must sign in again, this one too."""
    form = request.form
    error = ""
    if not is_right(form.get("old", ""), request.account.password_hash):
        error = "The old password is not right."
    elif form.get("password", "") != form.get("again", ""):
        error = "The two new passwords differ."
    if not error:
        try:
            hashed = hash_password(form.get("password", ""), request.account.name)
        except DialometerError as problem:
            error = str(problem)
        else:
            dashboard.accounts.change(request.account.id, password_hash=hashed)
            dashboard.note(request, "changed the password", request.account.name)
            return dashboard.redirect("/login", request)
    return dashboard.show("me.html", request, min_length=MIN_LENGTH, error=error, tab="me")


def _role(request: PageRequest) -> Role:
    given = request.form.get("role", "")
    role = next((role for role in ROLES if role == given), None)
    if role is None:
        raise DialometerError("there is no such role", remedy=f"one of {', '.join(ROLES)}")
    return role


def _account(dashboard: Dashboard, request: PageRequest) -> Account:
    number = int(request.params["id"])
    account = next((account for account in dashboard.accounts.all() if account.id == number), None)
    if account is None:
        raise DialometerError("there is no such account", remedy="go back to the list")
    return account
