"""Where a rater comes from and where a rater goes back to: the parameters of links, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dialometer.flow.engine import Flow
from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.recruit.platforms import platform_of
from dialometer.recruit.prolific_token import TOKEN as PROLIFIC_TOKEN
from dialometer.recruit.signed_links import SIGNATURE
from dialometer.storage.sessions import Person
from dialometer.storage.store import Store
from dialometer.web.server.failures import RequestError

_MAX_LENGTH = 200
SIGNS = frozenset((SIGNATURE, PROLIFIC_TOKEN))
"""Parameters that sign a link."""


class NotInvited(RequestError):
    """The study is open only to raters with an invitation, or sent by a platform."""

    status = 403
    page = "invitation"


@dataclass(frozen=True, slots=True)
class ArrivingRater:
    """Who arrives. ``external_id`` is what the rater is called where they come from, empty for an open link."""

    platform: str
    external_id: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    is_proven: bool = False
    """Whether the link shows that it is this rater who opened it; a name alone does not."""


class NotSigned(NotInvited):
    """The study asks for signed links, and this one is not, or not any more."""

    page = "unsigned"


@dataclass(frozen=True, slots=True)
class Signing:
    """What the signature of a link is checked with: the study's key, the address that was opened, and the time."""

    key: Callable[[], bytes]
    host: str
    now_s: float


def read_arrival(study: Study, query: Mapping[str, str], signing: Signing | None = None) -> ArrivingRater | None:
    """The rater that a link names; None where an open link names nobody. Raises :class:`NotInvited` where it must.

    Without ``signing`` no signature is looked at.
    """
    platform = platform_of(study.spec.recruitment)
    rater = platform.rater_in(query)
    if platform.is_open and not rater:
        if study.spec.recruitment.signed:
            raise NotSigned("the link is not signed", remedy="open the link exactly as you received it")
        return None
    is_name = bool(rater) and len(rater) <= _MAX_LENGTH and rater.isprintable()
    if not is_name or not platform.accepts(rater, study.folder):
        raise NotInvited("this address names no rater", remedy="open the link exactly as you received it")
    params = {
        name: query[name][:_MAX_LENGTH]
        for name in sorted(platform.kept_parameters)
        if query.get(name, "").isprintable() and name in query
    }
    is_proven = platform.is_proof(rater, study.folder)
    if signing is not None and (study.spec.recruitment.signed or not SIGNS.isdisjoint(query)):
        problem = platform.signature_problem(
            query, key=signing.key(), host=signing.host, now_s=signing.now_s, folder=study.folder
        )
        if problem and study.spec.recruitment.signed:
            raise NotSigned(
                problem, remedy="open the link exactly as you received it, or start again from the platform"
            )
        is_proven = is_proven or not problem
    return ArrivingRater(study.spec.recruitment.platform, rater, params, is_proven)


def refusal_reason(study: Study, store: Store, external_id: str) -> str:
    """Why there was no place, as the name of a page: blocked, not_started, paused, closed or full."""
    if any(rule.refuses(study, external_id) for rule in study.spec.quality):
        return "blocked"
    return why_not_running(store) or "full"


def known_refusal(flow: Flow, external_id: str) -> str:
    """Why this rater could not start now, as the name of a page; empty where nothing speaks against it."""
    if any(rule.refuses(flow.study, external_id) for rule in flow.study.spec.quality):
        return "blocked"
    return why_not_running(flow.store) or ("full" if flow.is_full() else "")


def why_not_running(store: Store) -> str:
    """The name of the page for a study that nobody can start now; empty where it is running.

    A study that was frozen on the dashboard is paused until somebody starts it; before that it has not started.
    """
    controls = store.control.current()
    if controls.state == "running":
        return ""
    return "not_started" if controls.is_new else controls.state


def way_back(study: Study, session: Session, person: Person | None) -> tuple[str, str]:
    """The address to which a finished rater is sent and the code that shows it is finished; empty where there is none."""
    rater, params = (person.external_id, person.params) if person else ("", {})
    return platform_of(study.spec.recruitment).way_back(session.state, rater, params)
