"""What the requests of one study share: flow, pages, chats, the writer, limits and metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from dialometer.errors import AgentError, AnswersRejected, AssignmentError, DialometerError
from dialometer.flow.chat import Chats
from dialometer.flow.engine import Arrival, Flow
from dialometer.model.session import Session, Source
from dialometer.model.study import Study
from dialometer.storage.store import Store
from dialometer.storage.submissions import SubmissionRefused
from dialometer.web.rater.arrival import ArrivingRater, refusal_reason, why_not_running
from dialometer.web.rater.pages import Pages
from dialometer.web.server.failures import RequestError
from dialometer.web.server.logs import log
from dialometer.web.server.metrics import SIZES, declare_metrics
from dialometer.web.server.security import RateLimits, client_address, is_local, shared_limit
from dialometer.web.server.settings import Settings
from dialometer.web.server.submissions import NoSession, SentScreen, SubmissionResult, Submitter, Writer

T = TypeVar("T")
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


class Service:
    """One study being served. All lasting state is in the store."""

    def __init__(self, study: Study, store: Store, settings: Settings) -> None:
        self.study = study
        self.store = store
        self.settings = settings
        self.flow = Flow(study, store)
        self.pages = Pages(study)
        self.chats = Chats(study, store, access=settings.agents)
        _check_agents(study, self.chats)
        several = bool(settings.runtime_folder)
        shared = shared_limit(store.limits, "arrival", has_others=several)
        self.arrivals = RateLimits(settings.arrivals_per_minute, shared=shared)
        self.messages = RateLimits(settings.messages_per_minute)
        self.drafts = RateLimits(settings.screens_per_minute)
        self.metrics = declare_metrics(settings.runtime_folder)
        self._submitter = Submitter(self.flow, RateLimits(settings.screens_per_minute))
        self.writer: Writer[SentScreen, SubmissionResult] = Writer(self._work)

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
        self, scope: Scope, arriving: ArrivingRater, *, source: Source = "person", at_ms: int | None = None
    ) -> Arrival:
        """A session for an arriving rater; raises :class:`NoPlace` or :class:`TooOften`."""
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
            )
        except AssignmentError as error:
            kind = await run_in_threadpool(refusal_reason, self.study, self.store, arriving.external_id)
            self.metrics.add("dialometer_refusals_total", label="reason", value=kind)
            raise NoPlace(kind, error.message) from error
        self.metrics.add("dialometer_arrivals_total")
        return arrival

    async def refuse_if_nobody_can_start(self) -> None:
        """Raises :class:`NoPlace` where nobody can start now, before a rater presses a button for nothing."""
        reason = await run_in_threadpool(why_not_running, self.store)
        if not reason and await run_in_threadpool(self.flow.is_full):
            reason = "full"
        if reason:
            self.metrics.add("dialometer_refusals_total", label="reason", value=reason)
            raise NoPlace(reason, "nobody can start this study now")

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Runs blocking work in a thread, so that other requests are served meanwhile."""
        return await run_in_threadpool(work)

    def check_health(self) -> dict[str, object]:
        """Raises when the database does not answer or the writer hangs."""
        with self.store.database.reading() as connection:
            connection.exec_driver_sql("SELECT 1")
        if self.writer.busy_s > STUCK_S:
            raise DialometerError(f"the writer has been busy for {self.writer.busy_s:.0f} s")
        return {"status": "ok", "study": self.study.spec.name, "n_waiting": self.writer.n_waiting}

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
