"""What the requests of one study share: flow, pages, chats, the writer, limits and metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import Scope

from dialometer.errors import AgentError, AnswersRejected, AssignmentError
from dialometer.flow.arena import Arenas
from dialometer.flow.chat import Chats
from dialometer.flow.engine import Arrival, Flow
from dialometer.flow.language import accepted_languages, nearest_language
from dialometer.model.session import Session, Source
from dialometer.model.study import Study
from dialometer.storage.sessions import SessionElsewhere, TooManyArrivals
from dialometer.storage.store import Store
from dialometer.storage.submissions import SubmissionRefused
from dialometer.web.rater.arrival import ArrivingRater, known_refusal, refusal_reason
from dialometer.web.rater.pages import Pages
from dialometer.web.server.failures import RequestError
from dialometer.web.server.health import HealthCheck
from dialometer.web.server.logs import log
from dialometer.web.server.metrics import SIZES, declare_metrics
from dialometer.web.server.security import (
    LANGUAGE_COOKIE,
    RateLimits,
    client_address,
    cookie,
    is_local,
    shared_limit,
)
from dialometer.web.server.settings import Settings
from dialometer.web.server.submissions import NoSession, SentScreen, SubmissionResult, Submitter, Writer

T = TypeVar("T")
LANGUAGE = "lang"
"""The parameter of a link that chooses the language."""
STUCK_S = 20.0
"""A writer that is busy for longer than this counts as failing."""


class NoPlace(RequestError):
    """An arriving rater cannot take part; ``page`` says why in one word: full, not_started, paused, closed or blocked."""

    status = 403

    def __init__(self, reason: str, message: str) -> None:
        self.page = reason
        super().__init__(message)

    def details(self) -> dict[str, object]:
        return {"reason": self.page}


class StartedElsewhere(RequestError):
    """The rater named by a link has a session in another browser, and the link does not prove that it is them."""

    status = 409
    page = "started"


class Crowded(RequestError):
    """More raters start at once than the study lets in; they may try again in a moment."""

    status = 429
    page = "busy"

    def __init__(self, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__("too many raters are starting at once", remedy=f"try again in {retry_after_s:.0f} s")

    def headers(self) -> dict[str, str]:
        return {"retry-after": str(math.ceil(self.retry_after_s))}


class Service:
    """One study being served. All lasting state is in the store."""

    def __init__(self, study: Study, store: Store, settings: Settings) -> None:
        self.study = study
        self.store = store
        self.settings = settings
        self.flow = Flow(study, store)
        self._pages = {study.spec.language: Pages(study)}
        for language in study.spec.languages:
            study.in_language(language)  # now, so that no rater waits for it
        self.chats = Chats(study, store, access=settings.agents)
        self.arenas = Arenas(self.flow, self.chats)
        _check_agents(study, self.chats)
        several = bool(settings.runtime_folder)
        shared = shared_limit(store.limits, "arrival", has_others=several)
        self.arrivals = RateLimits(settings.arrivals_per_minute, shared=shared)
        self.messages = RateLimits(settings.messages_per_minute)
        self.drafts = RateLimits(settings.screens_per_minute)
        self.metrics = declare_metrics(settings.runtime_folder)
        self.check_health = HealthCheck(store.database, self._why_stuck)
        self._submitter = Submitter(self.flow, RateLimits(settings.screens_per_minute))
        self.writer: Writer[SentScreen, SubmissionResult] = Writer(self._work)

    def pages(self, language: str = "") -> Pages:
        """The pages in one of the study's languages; in that of the study file where it is none of them."""
        language = language if language in self.study.spec.languages else self.study.spec.language
        if language not in self._pages:
            self._pages[language] = Pages(self.study.in_language(language))
        return self._pages[language]

    def language_of(self, request: Request, chosen: str = "") -> str:
        """The language for a request: chosen on a page or by the link, as before in this browser, or what the browser asks for."""
        wanted = [chosen or request.query_params.get(LANGUAGE, ""), cookie(request, LANGUAGE_COOKIE)]
        wanted += accepted_languages(request.headers.get("accept-language", ""))
        known = self.study.spec.all_languages
        return nearest_language([tag for tag in wanted if tag], known) or known[0]

    def _work(self, batch: Sequence[SentScreen]) -> Sequence[SubmissionResult | Exception]:
        self.metrics.observe("dialometer_commit_screens", SIZES, len(batch))
        return self._submitter(batch)

    async def find(self, token: str) -> Session:
        """The session that a token opens; raises :class:`NoSession`. A stale one continues, since its rater is back."""
        return await run_in_threadpool(self.session_of, token)

    def session_of(self, token: str) -> Session:
        """As :meth:`find`, for callers in a worker thread."""
        session = self.store.sessions.by_token(token) if token else None
        if session is None:
            raise NoSession("there is no such session", remedy="open the study's link again")
        return self.store.sessions.revive(session.id, self.flow.clock()) if session.state == "stale" else session

    async def submit(self, sent: SentScreen) -> SubmissionResult:
        """Stores one screen from a page or a program; when this returns, it is on disk."""
        try:
            result = await self.writer.put(sent)
        except (AnswersRejected, SubmissionRefused) as error:
            outcome = "rejected" if isinstance(error, AnswersRejected) else "refused"
            self.metrics.add("dialometer_submissions_total", label="outcome", value=outcome)
            raise
        receipt = result.receipt
        self.metrics.add("dialometer_submissions_total", label="outcome", value=receipt.outcome)
        if receipt.outcome == "stored" and receipt.state != "active":
            log("end", rater=result.rater, state=receipt.state)
        return result

    async def arrive(
        self,
        scope: Scope,
        arriving: ArrivingRater,
        *,
        source: Source = "person",
        at_ms: int | None = None,
        language: str = "",
        per_minute: int = 0,
        token: str = "",
    ) -> Arrival:
        """A session for an arriving rater.

        Raises :class:`NoPlace`, :class:`StartedElsewhere`, :class:`Crowded` or :class:`TooOften`.
        """
        address = client_address(scope)
        if source == "person" and not is_local(address):
            await self.arrivals.take_everywhere(address)
        try:
            arrival = await run_in_threadpool(
                self.flow.arrive,
                platform=arriving.platform,
                external_id=arriving.external_id,
                params=arriving.params,
                source=source,
                at_ms=at_ms,
                language=language,
                is_proven=arriving.is_proven,
                per_minute=per_minute,
                token=token,
            )
        except AssignmentError as error:
            kind = await run_in_threadpool(refusal_reason, self.study, self.store, arriving.external_id)
            raise self.refused(kind, NoPlace(kind, error.message)) from error
        except SessionElsewhere as error:
            raise self.started_elsewhere() from error
        except TooManyArrivals as error:
            raise self.refused("crowded", Crowded(error.retry_after_s)) from error
        self.metrics.add("dialometer_arrivals_total")
        return arrival

    @property
    def starts_per_minute(self) -> int:
        """How many raters may start in a minute, by the study or by the server, whichever is less; 0 is no limit."""
        limits = (self.settings.starts_per_minute, self.study.spec.recruitment.arrivals_per_minute)
        return min((limit for limit in limits if limit), default=0)

    def refused(self, reason: str, error: T) -> T:
        """Counts an arrival that got no session."""
        self.metrics.add("dialometer_refusals_total", label="reason", value=reason)
        return error

    def started_elsewhere(self) -> StartedElsewhere:
        """The refusal of a rater whose session is in another browser, counted."""
        error = StartedElsewhere("this rater has started in another browser", remedy="open the rater's resume link")
        return self.refused("elsewhere", error)

    async def has_session(self, arriving: ArrivingRater) -> bool:
        """Whether the arriving rater has a session that another browser holds."""
        patience = self.flow.patience(self.flow.clock())
        known = self.store.sessions.has_session
        return await run_in_threadpool(known, arriving.platform, arriving.external_id, patience)

    async def refuse_if_not_open(self, arriving: ArrivingRater | None) -> None:
        """Raises :class:`NoPlace` where this rater cannot start now, before they read and press a button for nothing."""
        external_id = arriving.external_id if arriving else ""
        reason = await run_in_threadpool(known_refusal, self.flow, external_id)
        if reason:
            raise self.refused(reason, NoPlace(reason, "this rater cannot start this study now"))

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Runs blocking work in a thread, so that other requests are served meanwhile."""
        return await run_in_threadpool(work)

    def _why_stuck(self) -> str:
        busy_s = self.writer.busy_s
        return f"the writer has been busy for {busy_s:.0f} s" if busy_s > STUCK_S else ""

    def stop(self) -> None:
        """Stores the screens that still wait."""
        self.writer.stop()


def _check_agents(study: Study, chats: Chats) -> None:
    """Builds every agent now, so that a mistake in its options is found before a rater sees it."""
    for system in study.spec.systems:
        if system.agent is None:
            continue
        try:
            chats.agent(system.name)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise AgentError(
                f"the agent of the system '{system.name}' is not in order: {first['msg']}",
                where=f"study.yaml, options.{place}",
                remedy="fix its options",
            ) from error
