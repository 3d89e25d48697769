"""A platform's submissions beside our own sessions: whom to pay, whom to ask, and where somebody must look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.recruit.prolific import Submission
from dialometer.recruit.sites import site_of
from dialometer.storage.store import Store

Advice = Literal["approve", "return", "look", "nothing"]


@dataclass(frozen=True, slots=True)
class Reviewed:
    """One submission, the session it belongs to (its number, empty where there is none), and what to do and why."""

    submission: Submission
    session: Session | None
    advice: Advice
    why: str


@dataclass(frozen=True, slots=True)
class Arrived:
    """A rater of the platform who came here; ``submission_id`` is what the link said, empty where it said nothing."""

    session: Session
    participant: str
    submission_id: str


def arrived(study: Study, store: Store) -> list[Arrived]:
    """The raters whom the platform sent, in the order of arrival; those who withdrew are forgotten."""
    name = site_of(study.spec.recruitment).parameters.get("session", "")
    found = []
    for session in store.sessions(source="person"):
        person = store.person(session.id)
        if person is not None and person.platform == study.spec.recruitment.platform and person.external_id:
            found.append(Arrived(session, person.external_id, str(person.params.get(name, ""))))
    return found


def review(study: Study, came: Sequence[Arrived], submissions: Iterable[Submission]) -> list[Reviewed]:
    """What our sessions say about each submission."""
    by_submission = {one.submission_id: one.session for one in came if one.submission_id}
    by_participant = {one.participant: one.session for one in came}
    reviewed = []
    for submission in submissions:
        session = by_submission.get(submission.id) or by_participant.get(submission.participant)
        advice, why = _advice(study, submission, session)
        reviewed.append(Reviewed(submission, session, advice, why))
    return reviewed


def _advice(study: Study, submission: Submission, session: Session | None) -> tuple[Advice, str]:
    recruitment = study.spec.recruitment
    if not submission.awaits_review:
        return "nothing", f"is {submission.status.lower().replace('_', ' ')}"
    if session is None:
        return "look", "nobody of this name is stored here: never came, or withdrew"
    if session.state == "screened_out":
        return "return", "was screened out"
    if session.state != "completed":
        return "look", f"entered a code, but the session here is {session.state}"
    if submission.code and submission.code != recruitment.completion_code:
        return "look", f"entered the code '{submission.code}', not the study's"
    if session.is_excluded:
        return "look", "finished, but is excluded from the analysis; whoever worked is paid unless there is a reason"
    return "approve", "finished"
