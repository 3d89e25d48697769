"""The page on which a rater withdraws with the code shown at the end: everything they gave is erased."""

from __future__ import annotations

import secrets

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from dialometer.storage.withdrawal_codes import session_of_code
from dialometer.web.limits import Buckets
from dialometer.web.logs import log
from dialometer.web.reading import one, read_form
from dialometer.web.security import (
    SESSION_COOKIE,
    START_COOKIE,
    check_csrf,
    client_address,
    cookie,
    csrf_for,
    set_cookie,
)
from dialometer.web.service import Service

TRIES_PER_MINUTE = 10
"""From one address. A code cannot be guessed; this spares the server the attempt."""


class WithdrawPages:
    """The form and what it does."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.root = service.settings.root_path
        self.tries = Buckets(TRIES_PER_MINUTE)

    def routes(self) -> list[Route]:
        """Both routes."""
        return [
            Route("/withdraw", self.show, methods=["GET"]),
            Route("/withdraw", self.erase, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """The form; nobody has to be in a session for it."""
        return self._form(request)

    async def erase(self, request: Request) -> Response:
        """Erases the person whose code was given; a code that was used before gets the same answer."""
        form = await read_form(request)
        check_csrf(request, cookie(request, START_COOKIE), one(form, "csrf"))
        self.tries.take(client_address(request.scope))
        code = one(form, "code")
        if not await self.service.in_thread(lambda: self._withdraw(code)):
            return self._form(request, is_unknown=True, status=422)
        response = HTMLResponse(self.service.pages.render_message("withdrawn", root_path=self.root))
        for name in (SESSION_COOKIE, START_COOKIE):
            response.delete_cookie(name, path=self.root or "/")
        return response

    def _withdraw(self, code: str) -> bool:
        session_id = session_of_code(self.service.store, code)
        if session_id is None:
            return False
        self.service.store.withdraw(session_id, self.service.flow.clock())
        log("withdrawal", session=session_id)
        return True

    def _form(self, request: Request, *, is_unknown: bool = False, status: int = 200) -> Response:
        secret = cookie(request, START_COOKIE) or secrets.token_urlsafe(24)
        page = self.service.pages.render_withdraw(csrf=csrf_for(secret), root_path=self.root, is_unknown=is_unknown)
        response = HTMLResponse(page, status)
        is_embedded = bool(self.service.settings.frame_ancestors)
        set_cookie(request, response, START_COOKIE, secret, path=self.root, is_embedded=is_embedded)
        return response
