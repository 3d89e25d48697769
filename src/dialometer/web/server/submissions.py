"""Submitted screens, from pages and programs alike: a writer thread prepares and stores them in batches.

A commit that waits for the disk costs the same for one screen as for a hundred, so whatever arrives while the writer works
is stored together in its next round.

Where a session is in the study is remembered between its screens. The store checks each screen against the truth, so a
memory that is out of date (another process has moved the session on) costs a second lookup and nothing else.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from dialometer.flow.engine import Flow, RawAnswers
from dialometer.flow.submissions import Timing
from dialometer.model.session import Receipt, Session, Submission
from dialometer.storage.rows import token_hash
from dialometer.storage.submissions import SubmissionRefused
from dialometer.web.server.failures import RequestError
from dialometer.web.server.security import RateLimits, TooOften

REMEMBERED_S = 30.0
"""How long a token's session is remembered without a lookup; the store checks the token with each screen all the same."""
N_REMEMBERED = 20_000
OPENING_MS = 3_600_000
"""A page that was opened longer ago counts as opened then."""


class NoSession(RequestError):
    """A token that opens no session."""

    status = 401
    page = "no_session"

    def headers(self) -> dict[str, str]:
        return {"www-authenticate": "Bearer"}


@dataclass(frozen=True, slots=True)
class SentScreen:
    """One screen from a page or a program. ``token`` opens the session; ``submission`` is new for every screen sent."""

    token: str
    screen: str
    submission: str
    answers: RawAnswers
    shown_at_ms: int | None = None
    first_input_at_ms: int | None = None
    submitted_at_ms: int | None = None
    """Only from simulated raters, who have a clock of their own."""
    focus_lost_n: int = 0
    focus_lost_s: float = 0.0
    device: str = ""
    opened: tuple[str, ...] = ()
    """Places of the long responses that were opened."""
    is_opening: bool = False
    """Sent together with the arrival: the screen was shown before the session began."""


@dataclass(frozen=True, slots=True)
class SubmissionResult:
    """What became of a screen, and how many judgments were stored."""

    rater: int
    """The number of the session, for logs: ids of sessions stay in the database."""
    receipt: Receipt
    n_judgments: int = 0


class Submitter:
    """What the writer does with a batch; called from one thread only."""

    def __init__(self, flow: Flow, screens: RateLimits) -> None:
        self.flow = flow
        self._limits = screens
        self._remembered: OrderedDict[str, tuple[Session, float]] = OrderedDict()

    def __call__(self, batch: Sequence[SentScreen]) -> list[SubmissionResult | Exception]:
        """Stores all in one commit; screens whose session was not where it was remembered are prepared once more."""
        results: dict[int, SubmissionResult | Exception] = {}
        again = self._round(dict(enumerate(batch)), results, is_fresh=False)
        while again:
            again = self._round(again, results, is_fresh=True)
        return [results[i] for i in range(len(batch))]

    def forget(self, token: str) -> None:
        """Look the session up again next time."""
        self._remembered.pop(token, None)

    def _round(
        self, batch: Mapping[int, SentScreen], results: dict[int, SubmissionResult | Exception], *, is_fresh: bool
    ) -> dict[int, SentScreen]:
        now_ms = self.flow.clock()
        prepared: list[tuple[int, Session, Submission]] = []
        again: dict[int, SentScreen] = {}
        tokens: set[str] = set()
        for i, sent in batch.items():
            if sent.token in tokens:  # a second screen of one session sees what became of the first
                again[i] = sent
                continue
            tokens.add(sent.token)
            try:
                session, is_known = self._session(sent.token, now_ms, is_fresh=is_fresh)
                outcome = self._prepare(session, sent, now_ms)
            except Exception as error:
                results[i] = error
                continue
            if isinstance(outcome, Submission):
                prepared.append((i, session, outcome))
            elif is_known:
                again[i] = sent
            else:
                results[i] = SubmissionResult(session.ordinal, outcome)
        for i, session, stored in self._store(prepared, now_ms):
            if (
                isinstance(stored, SubmissionResult)
                and stored.receipt.outcome in ("outdated", "ended")
                and not is_fresh
            ):
                again[i] = batch[i]
            else:
                results[i] = stored
                self._remember(batch[i].token, session, stored, now_ms)
        return again

    def _session(self, token: str, now_ms: int, *, is_fresh: bool) -> tuple[Session, bool]:
        """The session and whether it was remembered. A stale one continues, since its rater is back."""
        known = self._remembered.get(token)
        if known is not None and not is_fresh and time.monotonic() - known[1] < REMEMBERED_S:
            return known[0], True
        session = self.flow.store.sessions.by_token(token)
        if session is None:
            self.forget(token)
            raise NoSession("this token opens no session", remedy="arrive again")
        if session.state == "stale":
            session = self.flow.store.sessions.revive(session.id, now_ms)
        self._keep(token, session, time.monotonic())
        return session, False

    def _prepare(self, session: Session, sent: SentScreen, now_ms: int) -> Submission | Receipt:
        if session.source == "person":
            wait_s = self._limits.wait_s(session.id)
            if wait_s:
                raise TooOften(wait_s)
        timing = timing_of(sent, session, now_ms)
        prepared = self.flow.prepare(session, sent.screen, sent.answers, timing, sent.submission)
        if isinstance(prepared, Submission):
            return replace(prepared, opened_with=token_hash(sent.token))
        return prepared

    def _store(
        self, prepared: Sequence[tuple[int, Session, Submission]], now_ms: int
    ) -> list[tuple[int, Session, SubmissionResult | Exception]]:
        """Real raters in one commit; simulated ones, whose clock runs apart, in another."""
        stored: list[tuple[int, Session, SubmissionResult | Exception]] = []
        for is_simulated in (False, True):
            part = [entry for entry in prepared if (entry[1].source == "simulated") is is_simulated]
            if not part:
                continue
            at_ms = max(entry[2].visit.submitted_at_ms for entry in part) if is_simulated else now_ms
            outcomes = self.flow.store.submissions.record_each([submission for _, _, submission in part], at_ms)
            for (i, session, submission), outcome in zip(part, outcomes, strict=True):
                if isinstance(outcome, SubmissionRefused):
                    stored.append((i, session, outcome))
                else:
                    n_judgments = len(submission.judgments) if outcome.outcome == "stored" else 0
                    stored.append((i, session, SubmissionResult(session.ordinal, outcome, n_judgments)))
        return stored

    def _remember(self, token: str, session: Session, outcome: SubmissionResult | Exception, now_ms: int) -> None:
        """Usually the session is one step further; after anything else it is looked up again."""
        known = self._remembered.get(token)
        is_plain = (
            isinstance(outcome, SubmissionResult)
            and outcome.receipt.outcome == "stored"
            and outcome.receipt.state == "active"
            and outcome.receipt.step == session.step + 1
        )
        if is_plain and known is not None:
            assert isinstance(outcome, SubmissionResult)
            self._keep(token, replace(session, step=outcome.receipt.step, last_seen_at_ms=now_ms), known[1])
        else:
            self.forget(token)

    def _keep(self, token: str, session: Session, read_at: float) -> None:
        self._remembered[token] = (session, read_at)
        self._remembered.move_to_end(token)
        if len(self._remembered) > N_REMEMBERED:
            self._remembered.popitem(last=False)


def timing_of(sent: SentScreen, session: Session, now_ms: int) -> Timing:
    """When the screen was used. Times from the client are limited to what is possible by the server's clock.

    Where the client does not say when the screen was shown, it counts from when the session was last seen.
    """
    if session.source == "simulated" and sent.submitted_at_ms is not None:
        submitted, earliest = sent.submitted_at_ms, 0
    else:
        submitted, earliest = now_ms, session.started_at_ms - (OPENING_MS if sent.is_opening else 0)
    shown = session.last_seen_at_ms if sent.shown_at_ms is None else sent.shown_at_ms
    shown = min(max(shown, earliest), submitted)
    first = sent.first_input_at_ms
    return Timing(
        shown_at_ms=shown,
        submitted_at_ms=submitted,
        first_input_at_ms=None if first is None else min(max(first, shown), submitted),
        focus_lost_n=sent.focus_lost_n,
        focus_lost_s=sent.focus_lost_s,
        device=sent.device,
        opened=sent.opened,
    )


J = TypeVar("J")
R = TypeVar("R")

MAX_BATCH = 256
"""Jobs in one round: enough to share a commit, few enough that the first does not wait long."""
MAX_WAITING = 10_000


class ServerBusy(RequestError):
    """More was sent than can be stored. Nothing of it was stored, and it may be sent again."""

    status = 503
    page = "busy"

    def headers(self) -> dict[str, str]:
        return {"retry-after": "1"}


class Writer(Generic[J, R]):
    """Runs ``work`` on batches of jobs in a thread of its own. ``work`` returns a result or an error for each job."""

    def __init__(self, work: Callable[[Sequence[J]], Sequence[R | Exception]]) -> None:
        self._work = work
        self._jobs: deque[tuple[J, asyncio.Future[R]]] = deque()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_stopping = False
        self._busy_since: float | None = None

    def put(self, job: J) -> asyncio.Future[R]:
        """A future for the result of a job. The thread starts with the first job."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        with self._wake:
            if self._is_stopping or len(self._jobs) >= MAX_WAITING:
                why = "is stopping" if self._is_stopping else "has more to store than it can"
                raise ServerBusy(f"the server {why}", remedy="send it again in a moment")
            self._jobs.append((job, future))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
                self._thread.start()
            elif len(self._jobs) == 1:
                self._wake.notify()
        return future

    @property
    def n_waiting(self) -> int:
        """Jobs that no round has taken yet."""
        return len(self._jobs)

    @property
    def busy_s(self) -> float:
        """How long the present round has taken so far; 0 between rounds."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def stop(self) -> None:
        """Finishes the waiting jobs, then ends; later jobs are refused."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._jobs and not self._is_stopping:
                    self._wake.wait()
                if not self._jobs:
                    return
                taken = [self._jobs.popleft() for _ in range(min(len(self._jobs), MAX_BATCH))]
            self._busy_since = time.monotonic()
            try:
                results = self._work([job for job, _ in taken])
            except Exception as error:
                results = [error] * len(taken)
            self._busy_since = None
            _deliver([future for _, future in taken], results)


def _deliver(futures: Sequence[asyncio.Future[R]], results: Sequence[R | Exception]) -> None:
    """Passes results to the event loops that wait for them, with one call for each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[R], R | Exception]]] = {}
    for future, result in zip(futures, results, strict=True):
        by_loop.setdefault(future.get_loop(), []).append((future, result))
    for loop, pairs in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, pairs)


def _resolve(pairs: Sequence[tuple[asyncio.Future[R], R | Exception]]) -> None:
    for future, result in pairs:
        if future.done():  # the client went away; what was stored stays
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
