"""Arriving: the first page of a link, beginning a session, and going on with one in another browser.

Opening a link shows a page and stores nothing: previews, crawlers and impatient fingers open links too. A session begins
when its rater agrees (or presses Start, where questions come before consent). The name in a link is not proof of who opened
it, so a session that exists stays with the browsers that have its token: by cookie, or by the rater's own resume link. Links
that prove who opens them (see :meth:`Platform.is_proof`) may continue a session anywhere.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from dialometer.design.assign import draw_session
from dialometer.flow.engine import Arrival
from dialometer.flow.screens import CONSENT_FIELD, build_screen
from dialometer.model.session import Session, Snapshot
from dialometer.recruit.platforms import platform_of
from dialometer.storage.access.secrets import SIGNING, STARTING
from dialometer.web.rater.arrival import ArrivingRater, NotInvited, NotSigned, Signing, read_arrival
from dialometer.web.rater.service import LANGUAGE, Crowded, Service
from dialometer.web.server.logs import log
from dialometer.web.server.requests import Form, last_value, read_form, sent_from_form
from dialometer.web.server.security import (
    KEPT_S,
    LANGUAGE_COOKIE,
    SESSION_COOKIE,
    START_COOKIE,
    check_csrf,
    cookie,
    csrf_for,
    set_cookie,
)
from dialometer.web.server.submissions import NoSession

SEE_OTHER = 303
START = "/start"
RESUME = "/resume"
CHOICES = ("agree", "decline")


def to_screen(service: Service) -> RedirectResponse:
    """To wherever the session of the browser is."""
    return RedirectResponse(f"{service.settings.root_path}/s", SEE_OTHER)


def keep_cookie(
    service: Service, request: Request, response: Response, name: str, value: str, *, max_age_s: int = KEPT_S
) -> None:
    """Set a cookie of this study."""
    is_embedded = bool(service.settings.frame_ancestors)
    path = service.settings.root_path
    set_cookie(request, response, name, value, path=path, is_embedded=is_embedded, max_age_s=max_age_s)


def resume_link(service: Service, request: Request, token: str) -> str:
    """The rater's own address, which goes on with the session in any browser."""
    return f"{request.url.scheme}://{request.url.netloc}{service.settings.root_path}{RESUME}/{token}"


def token_for(service: Service, start_secret: str, rater: ArrivingRater) -> str:
    """The token of a session that begins in this browser.

    It follows from the first page's cookie, so that a form sent twice (a double click, an answer that got lost on its way)
    opens one session, and its rater is not taken for a stranger. It does not follow from the cookie alone: who used the
    browser before, and looked at it, has no key to the session.
    """
    key = service.store.secrets.get(STARTING, service.flow.clock())
    message = f"dialometer session\x00{start_secret}\x00{rater.platform}\x00{rater.external_id}"
    digest = hmac.digest(key, message.encode("utf-8", "surrogatepass"), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class LandingPages:
    """The routes on which sessions begin and go on."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.root = service.settings.root_path

    def routes(self) -> list[Route]:
        """All routes, in the order in which they are tried."""
        return [
            Route("/", self.land, methods=["GET"]),
            Route(START, self.start, methods=["POST"]),
            Route(f"{RESUME}/{{token}}", self.show_resume, methods=["GET"]),
            Route(RESUME, self.resume, methods=["POST"]),
        ]

    # the first page

    async def land(self, request: Request) -> Response:
        """The first page of a link. Nothing is stored; a browser that has the rater's session goes there."""
        query = request.query_params
        try:
            arriving = await self._arriving(request, query)
        except NotInvited:
            # A signed link may have expired since; the browser's own session is still its rater's.
            named = platform_of(self.service.study.spec.recruitment).rater_in(query)
            if named and await self._has_session_of(request, named):
                return to_screen(self.service)
            raise
        if await self._has_session_of(request, arriving.external_id if arriving else ""):
            return to_screen(self.service)
        language = self.service.language_of(request)
        hidden = {name: query[name] for name in query if name in self._parameters} | self._said_language(language)
        if arriving is not None and await self.service.has_session(arriving):
            if not arriving.is_proven:
                raise self.service.started_elsewhere()
            return self._ask(request, "resume", f"{self.root}{START}", hidden)
        await self.service.refuse_if_not_open(arriving)
        if arriving is None or not self._shows_consent:
            return self._page(request, lambda csrf: self._start_page(language, csrf, hidden), language=language)
        return self._page(request, lambda csrf: self._consent_page(language, csrf, hidden), language=language)

    async def start(self, request: Request) -> Response:
        """A session begins: its rater agreed, declined, or pressed Start."""
        form = await read_form(request)
        check_csrf(request, cookie(request, START_COOKIE), last_value(form, "csrf"))
        values = {name: last_value(form, name) for name in form}
        language = self.service.language_of(request, values.get(LANGUAGE, ""))
        hidden = {name: values[name] for name in values if name in self._parameters} | self._said_language(language)
        arriving = await self._arriving(request, values)
        if await self._has_session_of(request, arriving.external_id if arriving else ""):
            return to_screen(self.service)
        if values.get("screen") == "consent" and values.get(CONSENT_FIELD) not in CHOICES:
            wrong = {CONSENT_FIELD: "Please choose one of the two."}
            return self._page(request, lambda csrf: self._consent_page(language, csrf, hidden, wrong), status=422)
        rater = arriving or ArrivingRater(self.service.study.spec.recruitment.platform)
        secret = cookie(request, START_COOKIE)
        token = await self.service.in_thread(lambda: token_for(self.service, secret, rater))
        try:
            arrival = await self.service.arrive(
                request.scope,
                rater,
                language=language,
                per_minute=self.service.starts_per_minute,
                token=token,
            )
        except Crowded as crowded:
            again = {name: value for name, value in values.items() if name != "csrf"}
            return self._ask(request, "crowded", f"{self.root}{START}", again, crowded.status, crowded.headers())
        if values.get("screen") == "consent" and not arrival.session.step:
            await self._agree(arrival, form)
        log("arrival", rater=arrival.session.ordinal, is_new=arrival.is_new, cell=arrival.session.draw.cell)
        return self._to_session(request, arrival.token)

    async def _agree(self, arrival: Arrival, form: Form) -> None:
        """Stores the consent that came with the arrival."""
        choice = {CONSENT_FIELD: last_value(form, CONSENT_FIELD)}
        await self.service.submit(sent_from_form(form, arrival.token, lambda _screen: choice, is_opening=True))

    # another browser

    async def show_resume(self, request: Request) -> Response:
        """Asks whether to go on here; opening the link alone changes nothing."""
        token = request.path_params["token"]
        if await self.service.in_thread(lambda: self.service.store.sessions.by_token(token)) is None:
            raise NoSession("this link opens no session", remedy="compare it with the one you noted")
        if token == cookie(request, SESSION_COOKIE):
            return to_screen(self.service)
        return self._ask(request, "resume", f"{self.root}{RESUME}", {"resume": token})

    async def resume(self, request: Request) -> Response:
        """This browser gets the session of a resume link; the browsers that have it keep it too."""
        form = await read_form(request)
        check_csrf(request, cookie(request, START_COOKIE), last_value(form, "csrf"))
        token = last_value(form, "resume")
        session = await self.service.find(token)
        log("resumed", rater=session.ordinal)
        return self._to_session(request, token)

    # parts

    @cached_property
    def _parameters(self) -> frozenset[str]:
        """What a page carries over from the link to its form."""
        return frozenset(platform_of(self.service.study.spec.recruitment).link_parameters)

    @cached_property
    def _shows_consent(self) -> bool:
        """Whether consent is the first thing a rater sees, and the same in every condition."""
        study = self.service.study
        texts = {study.texts[study.spec.texts.consent]} if len(study.cells) == 1 else self._consents()
        return not study.spec.screening and len(texts) == 1

    def _said_language(self, language: str) -> dict[str, str]:
        """What a form carries over where there are several languages."""
        return {LANGUAGE: language} if len(self.service.study.spec.all_languages) > 1 else {}

    def _consents(self) -> set[str]:
        paths = (self.service.flow.path(self._before(cell)) for cell in range(len(self.service.study.cells)))
        return {build_screen(self.service.study, path, 0).text for path in paths}

    def _before(self, cell: int) -> Session:
        """A session that nobody has, for a page that comes before any session."""
        study = self.service.study
        others = frozenset(range(len(study.cells))) - {cell}
        draw = draw_session(study, Snapshot(ordinal=1, closed_cells=others))
        return Session(id="", rater_id="", ordinal=1, condition=study.cells[draw.cell], draw=draw)

    @cached_property
    def _opening(self) -> Session:
        return self._before(0)

    def _consent_page(
        self, language: str, csrf: str, hidden: Mapping[str, str], errors: Mapping[str, str] | None = None
    ) -> str:
        flow, opening = self.service.flow, replace(self._opening, language=language)
        return self.service.pages(language).render_screen(
            flow,
            opening,
            flow.screen(opening),
            csrf=csrf,
            token=secrets.token_urlsafe(18),
            errors=errors,
            root_path=self.root,
            action=f"{self.root}{START}",
            hidden=hidden,
        )

    def _start_page(self, language: str, csrf: str, hidden: Mapping[str, str]) -> str:
        pages, known = self.service.pages(language), self.service.study.spec.all_languages
        return pages.render_start(csrf=csrf, root_path=self.root, hidden=hidden, languages=known)

    def _ask(
        self,
        request: Request,
        what: str,
        action: str,
        hidden: Mapping[str, str],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """A page with one button."""
        pages = self.service.pages(self.service.language_of(request, hidden.get(LANGUAGE, "")))
        page = self._page(
            request, lambda csrf: pages.render_ask(what, action, hidden, csrf=csrf, root_path=self.root), status=status
        )
        page.headers.update(headers or {})
        return page

    async def _arriving(self, request: Request, values: Mapping[str, str]) -> ArrivingRater | None:
        """The rater that a link names; an arrival that is refused is counted."""
        at_ms = self.service.flow.clock()
        signing = Signing(
            lambda: self.service.store.secrets.get(SIGNING, at_ms), request.url.hostname or "", at_ms / 1000
        )
        try:
            return await self.service.in_thread(lambda: read_arrival(self.service.study, values, signing))
        except NotInvited as error:
            reason = "unsigned" if isinstance(error, NotSigned) else "uninvited"
            raise self.service.refused(reason, error) from None

    async def _has_session_of(self, request: Request, external_id: str) -> bool:
        """Whether this browser is in a session, and of this rater where one is named."""
        token = cookie(request, SESSION_COOKIE)
        try:
            session = await self.service.find(token)
        except NoSession:
            return False
        if not external_id:
            return True
        person = await self.service.in_thread(lambda: self.service.store.sessions.person(session.id))
        platform = self.service.study.spec.recruitment.platform
        return person is not None and (person.platform, person.external_id) == (platform, external_id)

    def _page(
        self, request: Request, render: Callable[[str], str], *, status: int = 200, language: str = ""
    ) -> Response:
        """A page with a form, and the cookie that its form must come with."""
        secret = cookie(request, START_COOKIE) or secrets.token_urlsafe(24)
        response = HTMLResponse(render(csrf_for(secret)), status)
        keep_cookie(self.service, request, response, START_COOKIE, secret)
        if self._said_language(language) and language:
            keep_cookie(self.service, request, response, LANGUAGE_COOKIE, language)
        return response

    def _to_session(self, request: Request, token: str) -> Response:
        response = to_screen(self.service)
        keep_cookie(self.service, request, response, SESSION_COOKIE, token)
        response.delete_cookie(START_COOKIE, path=self.root or "/")
        return response
