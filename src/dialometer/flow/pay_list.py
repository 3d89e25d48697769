"""Who is owed what: one row for each human rater, by the platform they came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dialometer.design.protocol import protocol
from dialometer.flow.review import Advice, advice_on
from dialometer.model.session import ANONYMOUS, Session
from dialometer.model.study import Study
from dialometer.recruit.platforms import platform_of
from dialometer.storage.store import Store

ERASED = "erased"
"""The platform of raters whose names are no longer kept."""


@dataclass(frozen=True, slots=True)
class PayRow:
    """One rater: what is owed, what to do on the platform and why, and what the time taken would be worth.

    ``by_time_cents`` is the study's pay for as much of its declared length as the rater took part; None where the time is not
    known. ``participant`` and ``submission`` are the platform's names, which only those who pay need.
    """

    ordinal: int
    platform: str
    participant: str
    submission: str
    advice: Advice
    why: str
    owed_cents: int
    minutes: float | None
    by_time_cents: int | None


@dataclass(frozen=True, slots=True)
class PlatformTotal:
    """What all raters of a platform are owed, and what they cost with its fee."""

    platform: str
    n_owed: int
    owed_cents: int
    with_fee_cents: int


def pay_list(study: Study, store: Store) -> list[PayRow]:
    """Every human rater in the order of arrival. A finished session is paid, excluded or not; who is screened out gets what
    the study promises for that."""
    pay, people = study.spec.recruitment, store.sessions.people()
    parameter = platform_of(pay).parameters.get("session", "")
    promised = pay.minutes or protocol(study).minutes_per_rater
    rows = []
    for session in store.sessions.all(source="person"):
        person = people.get(session.id)
        advice, why = advice_on(session)
        minutes = _minutes(session) if person is not None else None
        by_time = None if minutes is None or not promised else round(pay.pay_cents * min(1.0, minutes / promised))
        rows.append(
            PayRow(
                ordinal=session.ordinal,
                platform=person.platform if person else ERASED,
                participant=_name(person.external_id) if person else "",
                submission=str(person.params.get(parameter, "")) if person else "",
                advice=advice,
                why=why,
                owed_cents={"completed": pay.pay_cents, "screened_out": pay.screen_out_pay_cents}.get(session.state, 0),
                minutes=minutes,
                by_time_cents=by_time,
            )
        )
    return rows


def totals(study: Study, rows: Sequence[PayRow]) -> list[PlatformTotal]:
    """By platform."""
    fee = 1 + study.spec.recruitment.fee_percent / 100
    found = []
    for platform in dict.fromkeys(row.platform for row in rows):
        owed = [row.owed_cents for row in rows if row.platform == platform and row.owed_cents]
        if platform == ERASED and not owed:
            continue
        found.append(PlatformTotal(platform, len(owed), sum(owed), round(sum(owed) * fee)))
    return found


def _minutes(session: Session) -> float:
    end = session.finished_at_ms or session.last_seen_at_ms
    return (end - session.started_at_ms) / 60_000


def _name(external_id: str) -> str:
    """What the platform calls a rater; raters of an open link have no such name."""
    return "" if external_id.startswith(ANONYMOUS) else external_id
