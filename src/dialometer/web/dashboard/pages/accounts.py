"""Who may come in: accounts, their roles, one-time links, and what was done."""

from __future__ import annotations

from starlette.responses import Response

from dialometer.errors import DialometerError
from dialometer.storage.accounts import ROLES, Account, Role
from dialometer.web.dashboard.dashboard import Desk, Visit, page
from dialometer.web.dashboard.login import MIN_LENGTH, hash_password, is_right


@page("/accounts", role="owner")
def accounts(desk: Desk, visit: Visit) -> Response:
    """All accounts, and the log."""
    return _page(desk, visit)


def _page(desk: Desk, visit: Visit, link: str = "", about: str = "") -> Response:
    content = {"accounts": desk.accounts.accounts(), "deeds": desk.accounts.deeds(), "roles": ROLES}
    return desk.show("accounts.html", visit, link=link, about=about, tab="accounts", **content)


@page("/accounts/invite", role="owner", method="POST")
def invite(desk: Desk, visit: Visit) -> Response:
    """A one-time link for a new account; it is shown once."""
    role = _role(visit)
    token = desk.entry.invite(role, by=visit.account.name, at_ms=visit.at_ms)
    desk.note(visit, "invited", role)
    return _page(desk, visit, f"/desk/join?token={token}", f"a new account with the role {role}")


@page("/accounts/{id:int}/reset", role="owner", method="POST")
def reset(desk: Desk, visit: Visit) -> Response:
    """A one-time link by which somebody sets a new password."""
    account = _account(desk, visit)
    token = desk.entry.invite(account.role, by=visit.account.name, at_ms=visit.at_ms, account_id=account.id)
    desk.note(visit, "made a link for a new password", account.name)
    return _page(desk, visit, f"/desk/join?token={token}", f"a new password for {account.name}")


@page("/accounts/{id:int}/change", role="owner", method="POST")
def change(desk: Desk, visit: Visit) -> Response:
    """Another role, or an account closed or opened again. Accounts are never deleted: the logs name them."""
    account = _account(desk, visit)
    what = visit.form.get("what", "")
    if what == "role":
        role = _role(visit)
        desk.accounts.change_account(account.id, role=role)
        told = f"{account.name} is now {role}."
    elif what in ("close", "open"):
        desk.accounts.change_account(account.id, is_active=what == "open")
        told = f"The account {account.name} is {'open again' if what == 'open' else 'closed'}."
    else:
        raise DialometerError("this is no change", remedy="go back and choose again")
    desk.note(visit, "changed an account", told)
    return desk.to("/accounts", visit, told)


@page("/me", role="viewer")
def me(desk: Desk, visit: Visit) -> Response:
    """One's own account."""
    return desk.show("me.html", visit, min_length=MIN_LENGTH, error="", tab="me")


@page("/me", role="viewer", method="POST")
def new_password(desk: Desk, visit: Visit) -> Response:
    """Sets a new password; every browser must sign in again, this one too."""
    form = visit.form
    error = ""
    if not is_right(form.get("old", ""), visit.account.password_hash):
        error = "The old password is not right."
    elif form.get("password", "") != form.get("again", ""):
        error = "The two new passwords differ."
    if not error:
        try:
            hashed = hash_password(form.get("password", ""), visit.account.name)
        except DialometerError as problem:
            error = str(problem)
        else:
            desk.accounts.change_account(visit.account.id, password_hash=hashed)
            desk.note(visit, "changed the password", visit.account.name)
            return desk.to("/login", visit)
    return desk.show("me.html", visit, min_length=MIN_LENGTH, error=error, tab="me")


def _role(visit: Visit) -> Role:
    given = visit.form.get("role", "")
    found = next((role for role in ROLES if role == given), None)
    if found is None:
        raise DialometerError("there is no such role", remedy=f"one of {', '.join(ROLES)}")
    return found


def _account(desk: Desk, visit: Visit) -> Account:
    found = next((one for one in desk.accounts.accounts() if one.id == int(visit.params["id"])), None)
    if found is None:
        raise DialometerError("there is no such account", remedy="go back to the list")
    return found
