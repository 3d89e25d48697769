"""Adjudicators' own link: a signed name, one button, and then a session like any other."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dialometer.errors import AssignmentError
from dialometer.flow.adjudication import NAME, PATH, PLATFORM
from dialometer.recruit.signed_links import EXPIRES, SIGNATURE, signature_problem
from dialometer.storage.access.secrets import SIGNING
from dialometer.web.rater.arrival import ArrivingRater, NotSigned
from dialometer.web.rater.landing import LandingPages, to_screen, token_for
from dialometer.web.rater.service import NoPlace
from dialometer.web.server.logs import log
from dialometer.web.server.requests import last_value, read_form
from dialometer.web.server.security import SESSION_COOKIE, START_COOKIE, check_csrf, cookie

_PARAMETERS = (NAME, EXPIRES, SIGNATURE)


class AdjudicationPages(LandingPages):
    """The routes on which adjudicators begin and come back."""

    def routes(self) -> list[Route]:
        """Both routes; none where the study has no adjudication."""
        if self.service.study.spec.adjudication is None:
            return []
        return [Route(f"/{PATH}", self.land, methods=["GET"]), Route(f"/{PATH}", self.start, methods=["POST"])]

    async def land(self, request: Request) -> Response:
        """The first page of a link. Nothing is stored; who has an unfinished session in this browser goes there."""
        query = {name: request.query_params.get(name, "") for name in _PARAMETERS}
        name = await self._name(query)
        if await self._is_under_way(request, name):
            return to_screen(self.service)
        return self._ask(
            request, PLATFORM, f"{self.root}/{PATH}", {key: value for key, value in query.items() if value}
        )

    async def start(self, request: Request) -> Response:
        """A session begins with what is waiting now, or the unfinished one goes on here: the link shows whose it is."""
        form = await read_form(request)
        secret = cookie(request, START_COOKIE)
        check_csrf(request, secret, last_value(form, "csrf"))
        name = await self._name({key: last_value(form, key) for key in _PARAMETERS})
        rater = ArrivingRater(PLATFORM, name)
        token = await self.service.in_thread(lambda: token_for(self.service, secret, rater))
        try:
            arrival = await self.service.in_thread(lambda: self.service.flow.arrive_to_settle(name, token=token))
        except AssignmentError as error:
            raise self.service.refused("settled", NoPlace("settled", error.message)) from error
        log("adjudicator", rater=arrival.session.ordinal, is_new=arrival.is_new)
        return self._to_session(request, arrival.token)

    async def _name(self, query: dict[str, str]) -> str:
        """The adjudicator that a signed link names."""
        flow, name = self.service.flow, query[NAME]
        key = await self.service.in_thread(lambda: self.service.store.secrets.get(SIGNING, flow.clock()))
        problem = signature_problem(key, PLATFORM, name, query, flow.clock() / 1000) if name else "nobody is named"
        if problem:
            error = NotSigned(problem, remedy="open the link exactly as you received it")
            raise self.service.refused("unsigned", error)
        return name

    async def _is_under_way(self, request: Request, name: str) -> bool:
        token = cookie(request, SESSION_COOKIE)
        session = await self.service.in_thread(lambda: self.service.store.sessions.by_token(token)) if token else None
        if session is None or session.state != "active":
            return False
        person = await self.service.in_thread(lambda: self.service.store.sessions.person(session.id))
        return person is not None and person.platform == PLATFORM and person.external_id.rpartition("#")[0] == name
