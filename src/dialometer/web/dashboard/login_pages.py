"""The pages that need no account: signing in, and the one-time links by which accounts are made."""

from __future__ import annotations

import secrets
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from dialometer.errors import DialometerError
from dialometer.flow.engine import now_ms
from dialometer.storage.access.accounts import Account
from dialometer.storage.access.limits import SharedLimits
from dialometer.web.dashboard.dashboard import Dashboard
from dialometer.web.dashboard.login import LONGEST_MS, MIN_LENGTH, DeadLink, WrongCode
from dialometer.web.dashboard.translating import explained, explained_error, translated
from dialometer.web.server.failures import headers_of
from dialometer.web.server.requests import last_value, read_form
from dialometer.web.server.security import (
    RateLimits,
    TooOften,
    check_csrf,
    client_address,
    cookie,
    csrf_for,
    set_cookie,
    shared_limit,
)

DASHBOARD_COOKIE = "dialometer_dashboard"
_EARLIER_COOKIE = "dialometer_desk"  # browsers that signed in to an earlier version
LOGIN_COOKIE = "dialometer_door"
ATTEMPTS_PER_MINUTE = 20
"""From one address, over all names."""


def sign_in_of(request: Request) -> str:
    """The secret with which this browser is signed in; empty where it is not."""
    return cookie(request, DASHBOARD_COOKIE) or cookie(request, _EARLIER_COOKIE)


class LoginPages:
    """Routes that anybody can reach."""

    def __init__(self, dashboard: Dashboard) -> None:
        self.dashboard = dashboard
        several = bool(dashboard.studies.settings.runtime_folder)
        shared = shared_limit(SharedLimits(dashboard.accounts.database), "login", has_others=several)
        self.attempts = RateLimits(ATTEMPTS_PER_MINUTE, shared=shared)

    def routes(self) -> list[Route]:
        """All routes."""
        return [
            Route("/dashboard/login", self.ask, methods=["GET"]),
            Route("/dashboard/login", self.sign_in, methods=["POST"]),
            Route("/dashboard/code", self.ask_code, methods=["GET"]),
            Route("/dashboard/code", self.give_code, methods=["POST"]),
            Route("/dashboard/join", self.welcome, methods=["GET"]),
            Route("/dashboard/join", self.join, methods=["POST"]),
            Route("/dashboard/logout", self.sign_out, methods=["POST"]),
        ]

    async def ask(self, request: Request) -> Response:
        """The form for name and password, and the link to a provider."""
        provider, has_left = self.dashboard.provider, "left" in request.query_params
        sign_out = await run_in_threadpool(provider.sign_out_address) if provider and has_left else ""
        wanted = self.own_page(request.query_params.get("next", ""))
        return self._page(request, "login.html", next=wanted, sign_out=sign_out)

    def refused(self, request: Request, error: DialometerError) -> Response:
        """The login page with what went wrong at a provider."""
        is_often = isinstance(error, TooOften)
        message = explained_error(error)
        if error.remedy and not is_often:
            message = f"{explained(error.message)}: {explained(error.remedy)}"
        response = self._page(request, "login.html", status=429 if is_often else 403, next="", error=message)
        response.headers.update(headers_of(error))
        return response

    async def sign_in(self, request: Request) -> Response:
        """A right password opens the dashboard; a wrong one shows the form again, slower every time."""
        form = await read_form(request)
        check_csrf(request, cookie(request, LOGIN_COOKIE), last_value(form, "csrf"))
        wanted, name = self.own_page(last_value(form, "next")), last_value(form, "name")
        try:
            address = client_address(request.scope)
            await self.attempts.take_everywhere(address)
            secret, account = await run_in_threadpool(
                self.dashboard.login.sign_in, name, last_value(form, "password"), now_ms(), address
            )
        except DialometerError as error:
            message = explained_error(error) if isinstance(error, TooOften) else explained(error.message)
            status = 429 if isinstance(error, TooOften) else 422
            response = self._page(request, "login.html", status=status, next=wanted, error=message, name=name[:64])
            response.headers.update(headers_of(error))
            return response
        return self.signed_in(request, secret, wanted, account)

    async def ask_code(self, request: Request) -> Response:
        """The form for the second factor, after the password."""
        await run_in_threadpool(self.dashboard.login.asked_for_code, cookie(request, DASHBOARD_COOKIE), now_ms())
        return self._page(request, "code.html", next=self.own_page(request.query_params.get("next", "")))

    async def give_code(self, request: Request) -> Response:
        """The right digits open the dashboard."""
        form = await read_form(request)
        check_csrf(request, cookie(request, LOGIN_COOKIE), last_value(form, "csrf"))
        secret, address = cookie(request, DASHBOARD_COOKIE), client_address(request.scope)
        wanted = self.own_page(last_value(form, "next"))
        try:
            await self.attempts.take_everywhere(address)
            await run_in_threadpool(self.dashboard.login.give_code, secret, last_value(form, "code"), now_ms(), address)
        except (WrongCode, TooOften) as error:
            status = 429 if isinstance(error, TooOften) else 422
            response = self._page(request, "code.html", status=status, next=wanted, error=explained_error(error))
            response.headers.update(headers_of(error))
            return response
        return self.signed_in(request, secret, wanted)

    async def welcome(self, request: Request) -> Response:
        """What a one-time link opens."""
        return await self._welcome(request, request.query_params.get("token", ""))

    async def _welcome(self, request: Request, token: str, *, error: str = "", name: str = "") -> Response:
        link = await run_in_threadpool(self.dashboard.login.link, token, now_ms())
        if link is None:
            await self.attempts.take_everywhere(client_address(request.scope))
            raise DeadLink("this link was used already or is too old", remedy="ask an owner for a new one")
        status = 422 if error else 200
        content = {"token": token, "link": link, "error": error, "name": name, "min_length": MIN_LENGTH}
        return self._page(request, "join.html", status=status, **content)

    async def join(self, request: Request) -> Response:
        """Uses a one-time link."""
        form = await read_form(request)
        check_csrf(request, cookie(request, LOGIN_COOKIE), last_value(form, "csrf"))
        token, name, password = last_value(form, "token"), last_value(form, "name"), last_value(form, "password")
        if password != last_value(form, "again"):
            return await self._welcome(request, token, error=translated("The two passwords differ."), name=name[:64])
        try:
            secret, account = await run_in_threadpool(self.dashboard.login.join, token, name, password, now_ms())
        except DialometerError as error:
            return await self._welcome(request, token, error=explained_error(error), name=name[:64])
        return self.signed_in(request, secret, "", account)

    async def sign_out(self, request: Request) -> Response:
        """Signs this browser out."""
        secret = sign_in_of(request)
        check_csrf(request, secret, last_value(await read_form(request), "csrf"))
        await run_in_threadpool(self.dashboard.login.sign_out, secret, now_ms())
        response = RedirectResponse(f"{self.path}/login{'?left=1' if self.dashboard.provider else ''}", 303)
        for name in (DASHBOARD_COOKIE, _EARLIER_COOKIE):
            response.delete_cookie(name, path=self.path)
        return response

    @property
    def path(self) -> str:
        """Where the dashboard is."""
        return f"{self.dashboard.root}/dashboard"

    def own_page(self, wanted: str) -> str:
        """Where to go after signing in: only within the dashboard, never to another site."""
        is_own = wanted.startswith(f"{self.path}/") and "\\" not in wanted and wanted.isprintable()
        return wanted if is_own else ""

    def signed_in(self, request: Request, secret: str, wanted: str, account: Account | None = None) -> Response:
        """To the page that was wanted; first to the second factor, where the account of this password has one."""
        needs_code = account is not None and account.has_second_factor
        target = wanted or f"{self.path}/"
        if needs_code:
            target = f"{self.path}/code" + (f"?{urlencode({'next': wanted})}" if wanted else "")
        response = RedirectResponse(target, 303)
        kept_s = LONGEST_MS // 1000
        set_cookie(request, response, DASHBOARD_COOKIE, secret, path=self.path, is_embedded=False, max_age_s=kept_s)
        if not needs_code:
            response.delete_cookie(LOGIN_COOKIE, path=self.path)
        return response

    def _page(self, request: Request, template: str, *, status: int = 200, **content: object) -> Response:
        secret = cookie(request, LOGIN_COOKIE) or secrets.token_urlsafe(24)
        provider = self.dashboard.provider.label if self.dashboard.provider else ""
        defaults = {"error": "", "name": "", "sign_out": "", "provider": provider, "csrf": csrf_for(secret)}
        content = defaults | content
        response = HTMLResponse(self.dashboard.templates.render(template, None, **content), status)
        set_cookie(request, response, LOGIN_COOKIE, secret, path=self.path, is_embedded=False, max_age_s=3600)
        return response
