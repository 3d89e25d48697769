"""Signing in at a provider of OpenID Connect: to it, and back from it. Needs no account."""

from __future__ import annotations

import secrets

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dialometer.errors import DialometerError
from dialometer.flow.engine import now_ms
from dialometer.storage.access.accounts import Account
from dialometer.storage.access.identities import Identities, ProviderRequest
from dialometer.web.dashboard.dashboard import signature_of
from dialometer.web.dashboard.login import LINKING, NotSignedIn
from dialometer.web.dashboard.login_pages import LOGIN_COOKIE, LoginPages, sign_in_of
from dialometer.web.dashboard.openid.provider import Identity, Provider, ProviderError, new_verifier
from dialometer.web.server.security import TooOften, client_address, cookie, is_same_secret, set_cookie

UNDER_WAY_MS = 10 * 60_000
"""For so long a sign-in may take at the provider."""
UNKNOWN = "unknown"
"""Who is logged where the provider has proven nobody."""


class ProviderPages:
    """The two pages of a provider, beside the login page."""

    def __init__(self, login: LoginPages, provider: Provider) -> None:
        self.login, self.provider = login, provider
        self.dashboard = login.dashboard
        self.identities = Identities(self.dashboard.accounts.database)

    def routes(self) -> list[Route]:
        """Both routes."""
        return [
            Route("/dashboard/provider", self.leave, methods=["GET"]),
            Route("/dashboard/provider/back", self.come_back, methods=["GET"]),
        ]

    async def leave(self, request: Request) -> Response:
        """To the provider. Somebody who is signed in can link the account, by the link on its page alone."""
        browser = cookie(request, LOGIN_COOKIE) or secrets.token_urlsafe(24)
        wanted = self.login.own_page(request.query_params.get("next", ""))
        try:
            await self.login.attempts.take_everywhere(client_address(request.scope))
            target = await run_in_threadpool(self._leave, request, browser, wanted)
        except (ProviderError, TooOften) as error:
            return self.login.refused(request, error)
        response = RedirectResponse(target, 303)
        set_cookie(request, response, LOGIN_COOKIE, browser, path=self.login.path, is_embedded=False, max_age_s=3600)
        return response

    def _leave(self, request: Request, browser: str, wanted: str) -> str:
        account_id, secret = None, sign_in_of(request)
        if is_same_secret(request.query_params.get("link", ""), signature_of(secret, LINKING) if secret else ""):
            account_id = self.dashboard.login.account_of(secret, now_ms()).id
            wanted = f"{self.login.path}/me"
        state, nonce, verifier, at_ms = secrets.token_urlsafe(32), secrets.token_urlsafe(32), new_verifier(), now_ms()
        sent = ProviderRequest(nonce, verifier, wanted, account_id)
        address = self.provider.sign_in_address(state, nonce, verifier, self._back(request))
        self.identities.send(state, browser, sent, at_ms, expired_before_ms=at_ms - UNDER_WAY_MS)
        return address

    async def come_back(self, request: Request) -> Response:
        """From the provider, with a code for one sign-in that this browser has begun."""
        try:
            await self.login.attempts.take_everywhere(client_address(request.scope))
            account, wanted = await run_in_threadpool(self._come_back, request)
        except DialometerError as error:
            return self.login.refused(request, error)
        secret = await run_in_threadpool(self.dashboard.login.sign_in_at_provider, account, now_ms())
        return self.login.signed_in(request, secret, wanted)

    def _come_back(self, request: Request) -> tuple[Account, str]:
        query, at_ms = request.query_params, now_ms()
        browser = cookie(request, LOGIN_COOKIE)
        sent = self.identities.come_back(query.get("state", "")[:200], browser, sent_since_ms=at_ms - UNDER_WAY_MS)
        if sent is None or not browser:
            raise ProviderError("this sign-in was not begun in this browser, or is too old", remedy="sign in again")
        if sent.account_id is not None and sent.account_id != self._signed_in(request, at_ms):
            raise ProviderError(
                "you are no longer signed in to the account to link", remedy="sign in and link it again"
            )
        given_issuer = query.get("iss")
        if given_issuer is not None and given_issuer != self.provider.settings.issuer:
            raise ProviderError("this answer is from another provider", remedy="sign in again")
        if "error" in query or not query.get("code"):
            raise ProviderError(f"{self.provider.label} did not sign you in", remedy="try again")
        try:
            identity = self.provider.identity(query["code"][:2000], sent.verifier, sent.nonce, self._back(request))
        except ProviderError as error:
            self.dashboard.audit.add(UNKNOWN, "failed to sign in", f"at {self.provider.label}: {error.message}", at_ms)
            raise
        return self._account(identity, sent, at_ms), sent.next_page

    def _signed_in(self, request: Request, at_ms: int) -> int | None:
        try:
            return self.dashboard.login.account_of(sign_in_of(request), at_ms).id
        except NotSignedIn:
            return None

    def _account(self, identity: Identity, sent: ProviderRequest, at_ms: int) -> Account:
        """The account of a proven identity: the one it is linked with, or a new one where the address is allowed."""
        settings, audit = self.provider.settings, self.dashboard.audit
        if not settings.allows(identity.address):
            audit.add(identity.address, "failed to sign in", f"at {self.provider.label}: not allowed", at_ms)
            raise ProviderError(f"{identity.address} may not sign in here", remedy="ask an owner")
        if sent.account_id is not None:
            self.identities.link(identity.issuer, identity.subject, sent.account_id)
        account = self.identities.account(identity.issuer, identity.subject)
        if account is None:
            made = self.dashboard.login.checked_name(identity.address)
            account = self.identities.make_account(
                identity.issuer,
                identity.subject,
                made,
                settings.role,
                at_ms,
            )
            audit.add(account.name, "made the account", f"{account.role}, at {self.provider.label}", at_ms)
        elif sent.account_id is not None:
            audit.add(account.name, "linked the account", f"with {self.provider.label}", at_ms)
        if not account.is_active:
            audit.add(account.name, "failed to sign in", f"at {self.provider.label}: closed", at_ms)
            raise ProviderError("this account is closed", remedy="ask an owner")
        audit.add(account.name, "signed in", f"at {self.provider.label}", at_ms)
        return account

    def _back(self, request: Request) -> str:
        return f"{request.url.scheme}://{request.url.netloc}{self.login.path}/provider/back"
