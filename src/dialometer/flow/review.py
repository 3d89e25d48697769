"""A platform's submissions beside the study's sessions: which to approve, which to return, which need a closer look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.recruit.platform import PlatformSubmission
from dialometer.recruit.platforms import platform_of
from dialometer.storage.store import Store

Advice = Literal["approve", "return", "look", "nothing"]


@dataclass(frozen=True, slots=True)
class ReviewedSubmission:
    """One submission, the session it belongs to (None where there is none), and what to do and why."""

    submission: PlatformSubmission
    session: Session | None
    advice: Advice
    why: str


@dataclass(frozen=True, slots=True)
class PlatformRater:
    """A rater of the platform who came here; ``submission_id`` is what the link said, empty where it said nothing."""

    session: Session
    participant: str
    submission_id: str


def platform_raters(study: Study, store: Store) -> list[PlatformRater]:
    """The raters whom the platform sent, in the order of arrival; those who withdrew are forgotten."""
    recruitment = study.spec.recruitment
    name = platform_of(recruitment).parameters.get("session", "")
    raters, people = [], store.sessions.people()
    for session in store.sessions.all(source="person"):
        person = people.get(session.id)
        if person is not None and person.platform == recruitment.platform and person.external_id:
            raters.append(PlatformRater(session, person.external_id, str(person.params.get(name, ""))))
    return raters


def review(
    study: Study, raters: Sequence[PlatformRater], submissions: Iterable[PlatformSubmission]
) -> list[ReviewedSubmission]:
    """What our sessions say about each submission."""
    by_submission = {rater.submission_id: rater.session for rater in raters if rater.submission_id}
    by_participant = {rater.participant: rater.session for rater in raters}
    reviewed = []
    for submission in submissions:
        session = by_submission.get(submission.id) or by_participant.get(submission.participant)
        advice, why = _advice(study, submission, session)
        reviewed.append(ReviewedSubmission(submission, session, advice, why))
    return reviewed


def _advice(study: Study, submission: PlatformSubmission, session: Session | None) -> tuple[Advice, str]:
    recruitment = study.spec.recruitment
    if not submission.awaits_review:
        return "nothing", f"is {submission.status.lower().replace('_', ' ')}"
    if session is None:
        return "look", "nobody of this name is stored here: never came, or withdrew"
    if session.state not in ("screened_out", "completed"):
        return "look", f"entered a code, but the session here is {session.state}"
    if session.state == "completed" and submission.code and submission.code != recruitment.completion_code:
        return "look", f"entered the code '{submission.code}', not the study's"
    return advice_on(session)


def advice_on(session: Session) -> tuple[Advice, str]:
    """What a session alone says about paying for it."""
    if session.state == "screened_out":
        return "return", "was screened out"
    if session.state != "completed":
        return "nothing", _NOT_FINISHED.get(session.state, session.state)
    if session.is_excluded:
        return (
            "look",
            "finished, but is excluded from the analysis; a rater who worked is paid unless there is a reason",
        )
    return "approve", "finished"


_NOT_FINISHED = {
    "active": "is under way",
    "stale": "left before the end",
    "declined": "declined to take part",
    "withdrawn": "withdrew",
}
