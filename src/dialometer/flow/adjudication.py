"""Adjudication on a store: what raters disagree about now, what waits, and what adjudicators see of the raters' answers.

An adjudicator's session is a session like others: its slots are disagreements, of a source of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from dialometer.design.adjudication import Disputes, Opinion, Thing, disputes_among
from dialometer.flow.language import Language
from dialometer.flow.screens import AnswerInWords, Field, Screen, dispute_about
from dialometer.model.scale import Scale, Value
from dialometer.model.session import Judgment, Source, Task
from dialometer.model.study import REASON, Study
from dialometer.model.values import BOTH_BAD, CANNOT_TELL, TIE
from dialometer.recruit.signed_links import EXPIRES, SIGNATURE, signature
from dialometer.storage.counting.counts import does_count, main_sources
from dialometer.storage.store import Store

PLATFORM = "adjudication"
"""Where adjudicators come from, as the store calls it; their links are signed under this name."""
PATH, NAME = "adjudicate", "adjudicator"
"""The page where adjudicators begin, and the parameter that names one."""
_EXTRAS = (TIE, BOTH_BAD, CANNOT_TELL)


def link_of(key: bytes, address: str, name: str, expires: str = "") -> str:
    """The signed link with which an adjudicator begins and comes back; ``address`` is that of the study."""
    until = f"&{EXPIRES}={expires}" if expires else ""
    signed = signature(key, PLATFORM, name, expires)
    return f"{address.rstrip('/')}/{PATH}?{NAME}={quote(name, safe='')}{until}&{SIGNATURE}={signed}"


def find_disputes(study: Study, store: Store, source: Source = "adjudicator") -> Disputes:
    """Everything that raters disagree about, settled or not."""
    if study.spec.adjudication is None:
        return {}
    held = store.sessions.all()
    is_simulated = source == "simulated_adjudicator"
    sources = ("simulated",) if is_simulated else main_sources({session.source for session in held})
    counted = {session.id: session for session in held if session.source in sources and does_count(session)}

    def opinion(judgment: Judgment) -> tuple[Thing, Opinion]:
        session = counted[judgment.session_id]
        about = (judgment.item_id, judgment.criterion, judgment.system, judgment.turn)
        thing = Thing(session.draw.cell, judgment.block, *about)
        return thing, Opinion(session.rater_id, judgment.value, judgment.id or 0)

    given = (j for j in store.records.judgments() if j.session_id in counted and not j.is_practice)
    return disputes_among(study, map(opinion, given))


@dataclass(frozen=True, slots=True)
class Settling:
    """What raters disagree about in each item of each condition, and how far adjudicators have come with it."""

    disputes: Disputes
    open: Disputes
    """What no adjudicator has decided yet. Raters may come to disagree about more of an item after it was settled."""
    n_done: Mapping[tuple[int, str], int]
    """How many sessions of adjudicators have finished the item."""
    under_way: Set[tuple[int, str]]


def settling(study: Study, store: Store, source: Source = "adjudicator") -> Settling:
    """All disagreements and what adjudicators of this source did about them; those who were excluded do not count."""
    disputes = find_disputes(study, store, source)
    decided: set[tuple[int, str, str, str, int | None]] = set()
    n_done: Counter[tuple[int, str]] = Counter()
    under_way = set()
    for session in store.sessions.all(source=source) if disputes else ():
        if not does_count(session):
            continue
        answered = {(j.item_id, j.criterion, j.system, j.turn) for j in store.records.judgments(session.id)}
        for item_id, given in session.draw.disputes.items():
            key = (session.draw.cell, item_id)
            about = {(one.criterion, one.system, one.turn) for one in given}
            done = {one for one in about if session.state == "completed" or (item_id, *one) in answered}
            decided |= {(*key, *one) for one in done}
            if done == about:
                n_done[key] += 1
            elif session.state == "active":
                under_way.add(key)
    waiting = {
        key: tuple(one for one in given if (*key, one.criterion, one.system, one.turn) not in decided)
        for key, given in disputes.items()
    }
    return Settling(disputes, {key: given for key, given in waiting.items() if given}, n_done, under_way)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What raters disagree about in one item of one condition, and how far it is settled."""

    cell: int
    item_id: str
    criteria: tuple[str, ...]
    state: str
    """``waiting``, ``under way`` (an adjudicator has it) or ``settled``."""


def disputes_of(study: Study, store: Store, source: Source = "adjudicator") -> list[Waiting]:
    """All disagreements in file order, and which of them wait."""
    now = settling(study, store, source)
    rows = []
    for key in sorted(now.disputes, key=lambda key: (study.item_numbers[key[1]], key[0])):
        state = "settled" if key not in now.open else "under way" if key in now.under_way else "waiting"
        criteria = tuple(dict.fromkeys(dispute.criterion for dispute in now.open.get(key, now.disputes[key])))
        rows.append(Waiting(*key, criteria, state))
    return rows


def with_said(study: Study, store: Store, screen: Screen, task: Task) -> Screen:
    """The screen of an adjudicator with what the raters answered; who withdrew since is no longer among them."""
    numbers = [number for dispute in task.disputes for number in dispute.judgments]
    given = {judgment.id: judgment for judgment in store.records.numbered(numbers)}
    sessions = sorted({judgment.session_id for judgment in given.values()}, key=lambda one: _mixed(task.item_id, one))
    reasons = {
        (judgment.session_id, judgment.criterion.removesuffix(REASON), judgment.system, judgment.turn): judgment.value
        for judgment in store.records.judgments_on(task.item_id)
        if judgment.criterion.endswith(REASON) and judgment.session_id in sessions
    }
    language = Language(study.spec.language, study.spec.wording)
    kind = "conversation" if screen.item and screen.item.kind == "transcript_pair" else "response"
    places = {
        system: language.text(f"item.option_{kind}", place=place) for place, system in enumerate(task.systems, start=1)
    }

    def filled(field: Field) -> Field:
        dispute = dispute_about(field, task)
        if dispute is None or field.name.endswith(REASON):
            return field
        known = [given[number] for number in dispute.judgments if number in given]
        by_letter = {chr(ord("A") + sessions.index(one.session_id) % 26): one for one in known}
        letters = sorted(by_letter)
        values = [by_letter[letter].value for letter in letters]
        if field.scale.point_texts():
            return replace(field, said=tuple(_points(field.scale, letters, values, language)))
        said = [
            AnswerInWords(
                language.text("adjudicate.rater", letter=letter),
                answer,
                str(reasons.get((by_letter[letter].session_id, dispute.criterion, dispute.system, dispute.turn), "")),
            )
            for letter, answer in zip(letters, _answers(field.scale, values, places, language), strict=True)
        ]
        return replace(field, said=tuple(said))

    return replace(screen, fields=tuple(filled(field) for field in screen.fields))


def _mixed(item_id: str, session_id: str) -> str:
    """An order of raters that says nothing about who came first."""
    return sha256(f"{item_id} {session_id}".encode()).hexdigest()


def _points(
    scale: Scale, letters: Sequence[str], values: Sequence[Value], language: Language
) -> Iterator[AnswerInWords]:
    """The points of a checklist on which raters differ, each with what they answered."""
    given: list[dict[str, Any]] = [value if isinstance(value, dict) else {} for value in values]
    for name, text in scale.point_texts(as_shown=True).items():
        if len({one.get(name) for one in given}) > 1:
            answers = zip(letters, given, strict=True)
            said = [f"{letter}: {language.text(f'checklist.{one[name]}')}" for letter, one in answers if name in one]
            yield AnswerInWords(text, " · ".join(said))


def _answers(scale: Scale, values: Sequence[Value], places: Mapping[str, str], language: Language) -> list[str]:
    """Answers as they read on this screen, systems by their places."""
    if scale.compares:
        names = {**places, **{extra: language.text(f"field.{extra}") for extra in _EXTRAS}}
        values = [names[v] if isinstance(v, str) and v in names else scale.rename(v, places) for v in values]
    nothing = language.text("spans.none") if scale.marks_text else ""
    return [scale.in_words(value) or nothing for value in values]
