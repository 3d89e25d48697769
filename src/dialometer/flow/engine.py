"""The engine of a session: arriving, showing, submitting. Everything that is stored goes through here."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar, overload

from dialometer.design.adaptive import deciding_criterion, floor_of, open_by_ratings, open_by_votes
from dialometer.design.assign import draw_adjudication, draw_more, draw_session
from dialometer.design.lock import fingerprint
from dialometer.errors import AnswersRejected, AssignmentError, FlowError
from dialometer.flow.adjudication import PLATFORM, settling, with_said
from dialometer.flow.screens import CONSENT_FIELD, MORE_FIELD, Screen, build_screen, step_seconds
from dialometer.flow.steps import Path, Paths, Step, comprehension_rule
from dialometer.flow.submissions import Timing, opened_systems, read_values, to_answers, to_judgments
from dialometer.model.quality import Finding, newly_found
from dialometer.model.session import (
    ANONYMOUS,
    Answer,
    Draw,
    Judgment,
    Receipt,
    ScreenVisit,
    Session,
    SessionRecord,
    Snapshot,
    Source,
    State,
    Submission,
)
from dialometer.model.study import Study
from dialometer.storage.conversations import n_messages
from dialometer.storage.sessions import Patience
from dialometer.storage.store import Store

T = TypeVar("T")


class LazyList(Sequence[T]):
    """A list that is read when it is first used: most quality rules look at one part of a session's record only."""

    def __init__(self, read: Callable[[], Sequence[T]]) -> None:
        self._read = read

    @cached_property
    def _content(self) -> Sequence[T]:
        return self._read()

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._content[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)


MOST_PATHS = 4_096
"""Sessions whose estimated times are kept."""
RawAnswers = Mapping[str, object] | Callable[[Screen], Mapping[str, object]]
"""Answers by field, or a function that reads them once the screen is known, as for a form sent by a page."""


DESIGN_WEIGHT = 0.25
"""The design's estimate of the time per item counts as much as a quarter of all items done at that pace."""
SLOWEST, FASTEST = 4.0, 0.25
"""One screen counts as at most so much slower, or faster, than the design says: raters take breaks, and misclick."""


def _pace(expected: Mapping[str, float], taken: Mapping[str, float]) -> float:
    """How long items take this rater as a multiple of the design's estimate; 1 until enough of them are done."""
    weight = DESIGN_WEIGHT * sum(expected.values())
    done = [(expected[key], taken[key]) for key in expected if key in taken]
    if not weight:
        return 1.0
    actual = sum(min(SLOWEST * usual, max(FASTEST * usual, seconds)) for usual, seconds in done)
    return (weight + actual) / (weight + sum(usual for usual, _ in done))


def now_ms() -> int:
    """The wall clock in milliseconds since 1970 (UTC)."""
    return time.time_ns() // 1_000_000


def new_token() -> str:
    """A secret that opens a session."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A session and the secret that opens it; the secret is known to the rater only and stored as a hash."""

    session: Session
    token: str
    is_new: bool


class Flow:
    """One study on one store. Holds no state of its own that another process would need."""

    def __init__(
        self, study: Study, store: Store, *, clock: Callable[[], int] = now_ms, version: int | None = None
    ) -> None:
        """``version``: the number under which the store knows the study, where that is settled already."""
        self.study = study
        self.store = store
        self.clock = clock
        self.paths = Paths(study)
        self._seconds: dict[int, tuple[Path, list[float]]] = {}
        if version is None:
            spec_json = study.spec.model_dump_json()
            version = store.studies.register(study.spec.name, fingerprint(study), spec_json, clock())
        self.version = version

    def shown_study(self, session: Session) -> Study:
        """The study in the language of a session."""
        return self.study.in_language(session.language)

    def consent_version(self, session: Session) -> str:
        """A short hash of the consent text in the language of a session."""
        study = self.shown_study(session)
        return hashlib.sha256(study.texts[study.spec.texts.consent].encode()).hexdigest()[:12]

    # arriving

    def arrive(
        self,
        *,
        platform: str = "link",
        external_id: str = "",
        params: Mapping[str, str] | None = None,
        source: Source = "person",
        at_ms: int | None = None,
        language: str = "",
        is_proven: bool = True,
        per_minute: int = 0,
        token: str = "",
        choose: Callable[[Snapshot], Draw] | None = None,
    ) -> Arrival:
        """A new session for a rater, or the one the rater already has.

        Where the caller cannot tell that it is the rater who comes back (``is_proven``), that session stays closed;
        ``per_minute`` limits new sessions, and a ``token`` that is sent again opens the same session. See
        :meth:`dialometer.storage.sessions.Sessions.arrive`.
        """
        at_ms = self.clock() if at_ms is None else at_ms
        self._refuse_blocked(external_id)
        session_id, token = secrets.token_urlsafe(12), token or new_token()
        openness = self._openness(source)
        session = self.store.sessions.arrive(
            session_id=session_id,
            token=token,
            platform=platform,
            external_id=external_id or f"{ANONYMOUS}{session_id}",
            params=dict(params or {}),
            source=source,
            study_version=self.version,
            at_ms=at_ms,
            patience=self.patience(at_ms),
            language=language if language in self.study.spec.languages else self.study.spec.language,
            choose=choose or (lambda snapshot: self._choose(replace(snapshot, openness=openness))),
            conditions=self.study.cells,
            is_proven=is_proven,
            per_minute=per_minute,
        )
        return Arrival(session, token, is_new=session.id == session_id)

    def arrive_to_settle(
        self, name: str, *, source: Source = "adjudicator", at_ms: int | None = None, token: str = ""
    ) -> Arrival:
        """A session in which an adjudicator settles what raters disagree about now, or the one that is not finished yet.

        What is waiting is looked up before the assigning transaction, which should be short; what another adjudicator
        takes meanwhile is not given twice.
        """
        now = settling(self.study, self.store, source)
        visit = 1
        while (known := self.store.sessions.of_person(PLATFORM, f"{name}#{visit}")) and known.state == "completed":
            visit += 1
        return self.arrive(
            platform=PLATFORM,
            external_id=f"{name}#{visit}",
            source=source,
            at_ms=at_ms,
            token=token,
            choose=lambda snapshot: draw_adjudication(self.study, snapshot, now.open, now.n_done),
        )

    def _openness(self, source: Source) -> Mapping[tuple[str, str], float]:
        """How open comparisons are, for adaptive assignment. Read before the assigning transaction, which should be short: an
        answer that comes in between changes the next draw, and the probability that is stored is the one used."""
        study, records = self.study, self.store.records
        criterion = deciding_criterion(study) if floor_of(study) is not None and source != "model" else None
        if criterion is None:
            return {}
        scale = study.spec.scales[criterion.scale]
        if scale.compares:
            return open_by_votes(study, records.pair_votes(criterion.name, source))
        return open_by_ratings(study, scale, records.rating_counts(criterion.name, source))

    def patience(self, at_ms: int) -> Patience:
        """Which sessions have left their slots by now, by the study's design."""
        design = self.study.spec.design
        return Patience(
            stale_before_ms=at_ms - design.stale_ms,
            idle_before_ms=at_ms - int(design.hold_minutes * 60_000),
            n_opening=2 if self.study.spec.screening else 1,
        )

    def release_left(self, at_ms: int | None = None) -> None:
        """Give away the places of raters who left; nothing is kept of those who left before they consented."""
        at_ms = self.clock() if at_ms is None else at_ms
        self.store.sessions.release_left(self.patience(at_ms))

    def is_full(self) -> bool:
        """Whether a rater who came now would find no slot, nor one that somebody left."""
        if self._has_slot():
            return False
        self.release_left()
        return not self._has_slot()

    def _has_slot(self) -> bool:
        try:
            self._choose(self.store.sessions.snapshot("person"))
        except AssignmentError:
            return False
        return True

    def _choose(self, snapshot: Snapshot) -> Draw:
        if snapshot.quota is None:
            snapshot = replace(snapshot, quota=self.study.spec.recruitment.quota)
        return draw_session(self.study, snapshot)

    def _refuse_blocked(self, external_id: str) -> None:
        for rule in self.study.spec.quality:
            if rule.refuses(self.study, external_id):
                raise AssignmentError("this study is not open to you")

    # showing

    def path(self, session: Session) -> Path:
        """The steps of a session."""
        return self.paths.of(session.draw)

    def screen(self, session: Session, step: int | None = None) -> Screen:
        """The screen where the session stands, or an earlier one where going back is allowed."""
        path = self.path(session)
        index = session.step if step is None else step
        if session.state != "active" or session.step >= len(path.steps):
            return Screen("done", "done", len(path.steps), len(path.steps), state=session.state)
        if index != session.step and not self._may_return(session, path, index):
            raise FlowError("this screen cannot be opened", remedy="continue from where the session is")
        study = self.shown_study(session)
        screen = build_screen(study, path, index)
        task = path.steps[index].task
        return with_said(study, self.store, screen, task) if task is not None and task.disputes else screen

    def step_of(self, session: Session, screen_key: str) -> int | None:
        """The step of a screen where the session is, or to which it may go back; None for any other screen."""
        path = self.path(session)
        index = next((i for i, step in enumerate(path.steps) if step.is_called(screen_key)), -1)
        is_open = index == session.step or self._may_return(session, path, index)
        return index if session.state == "active" and is_open else None

    def may_change_language(self, session: Session) -> bool:
        """Whether a session has several languages to choose from and holds no answer yet."""
        done = self.path(session).steps[: session.step]
        has_answered = any(step.kind not in ("consent", "instructions") for step in done)
        return len(self.study.spec.all_languages) > 1 and session.state == "active" and not has_answered

    def change_language(self, session: Session, language: str) -> None:
        """Lets a rater who has answered nothing yet read the study in another language."""
        if not self.may_change_language(session) or language not in self.study.spec.languages:
            raise FlowError("the language cannot be changed any more", remedy="continue in the language you have")
        self.store.sessions.set_language(session.id, language)

    def _may_return(self, session: Session, path: Path, index: int) -> bool:
        is_earlier = 0 <= index < session.step
        return self.study.spec.design.may_go_back and is_earlier and path.steps[index].kind == "item"

    def remaining_s(self, session: Session) -> float:
        """Honest remaining time: what the design says is left, at a pace that blends the design with the items done.

        Where the study tells raters how long it takes, the design is scaled to that, so that the two agree. Only items
        say something about the pace: who clicks quickly through consent and instructions will not judge faster.
        """
        path = self.path(session)
        seconds = self._seconds_of(path)
        announced = self.study.spec.recruitment.minutes
        usual = 60 * announced / sum(seconds) if announced and sum(seconds) else 1.0
        expected = {
            step.key: usual * s for step, s in zip(path.steps, seconds, strict=True) if step.kind in ("item", "chat")
        }
        left = usual * sum(seconds[session.step :])
        return left * _pace(expected, self.store.records.seconds_on_screens(session.id))

    def _seconds_of(self, path: Path) -> list[float]:
        """What the design says of each step; every page of a session asks again."""
        known, seconds = self._seconds.get(id(path), (None, []))
        if known is not path:
            seconds = [step_seconds(self.study, path, step) for step in path.steps]
            if len(self._seconds) >= MOST_PATHS:
                self._seconds.clear()
            self._seconds[id(path)] = (path, seconds)
        return seconds

    # submitting

    def submit(
        self, session_id: str, screen_key: str, raw: Mapping[str, object], timing: Timing, token: str
    ) -> Receipt:
        """Reads, stores and acknowledges one screen. Raises :class:`AnswersRejected` when a field is not in order."""
        session = self.store.sessions.get(session_id)
        prepared = self.prepare(session, screen_key, raw, timing, token)
        if isinstance(prepared, Receipt):
            return prepared
        return self.store.submissions.record([prepared], timing.submitted_at_ms)[0]

    def prepare(
        self, session: Session, screen_key: str, raw: RawAnswers, timing: Timing, token: str
    ) -> Submission | Receipt:
        """What a submitted screen will write, or a receipt when there is nothing to write.

        Kept apart from storing so that a server can store many submissions in one commit.
        """
        path = self.path(session)
        is_here = session.step < len(path.steps) and path.steps[session.step].is_called(screen_key)
        if session.state == "active" and is_here:
            return self._forward(session, path, raw, timing, token)
        index = next((i for i, step in enumerate(path.steps) if step.is_called(screen_key)), -1)
        earlier = self.store.submissions.receipt(session.id, token)
        if earlier is not None:
            return earlier
        if session.state == "active" and self._may_return(session, path, index):
            return self._correct(session, path, index, raw, timing, token)
        return Receipt(token, "outdated" if session.state == "active" else "ended", session.step, session.state)

    def _forward(self, session: Session, path: Path, given: RawAnswers, timing: Timing, token: str) -> Submission:
        step = path.steps[session.step]
        screen = build_screen(self.shown_study(session), path, session.step, is_shown=False)
        raw = given(screen) if callable(given) else given
        is_late = self._is_late(screen, timing)
        judgments: list[Judgment] = []
        answers: list[Answer] = []
        findings: list[Finding] = []
        next_step, next_state = session.step + 1, "active"
        match step.kind:
            case "consent":
                if self._read_choice(raw, CONSENT_FIELD, ("agree", "decline")) == "decline":
                    next_state = "declined"
            case "instructions":
                pass
            case "more":
                if self._read_choice(raw, MORE_FIELD, ("yes", "no")) == "yes":
                    next_step = self._extend(session, timing)
            case "chat":
                self._check_chat(session, screen)
            case "item":
                values = read_values(screen.fields, raw)
                judgments = to_judgments(screen, step, values, session.id, timing, is_late=is_late)
            case _:
                values = read_values(screen.fields, raw)
                answers = to_answers(
                    step.key if step.kind == "comprehension" else step.kind, values, session.id, timing
                )
                if step.kind == "screening":
                    findings += self._screening_findings(values)
                elif step.kind == "comprehension" and self._has_understood(values):
                    next_step = next(
                        i for i, s in enumerate(path.steps) if i > session.step and s.kind != "comprehension"
                    )
        visit = self._visit(session, step, timing, is_late=is_late)
        is_last = next_step >= len(path.steps)
        findings += self._quality(session, step, judgments, answers, visit, is_last=is_last)
        state = self._state_after(next_state, findings, is_last=is_last)
        return Submission(
            token=token,
            session_id=session.id,
            step=session.step,
            next_step=next_step,
            visit=visit,
            keeps_visit=step.kind != "screening",
            judgments=judgments,
            answers=answers,
            done_item=self._done_item(path, step, next_step),
            next_state=state,
            consent_version=self.consent_version(session) if step.kind == "consent" and state == "active" else None,
            findings=findings,
        )

    @staticmethod
    def _state_after(next_state: str, findings: Sequence[Finding], *, is_last: bool) -> State:
        if next_state == "declined":
            return "declined"
        if any(finding.action == "screen_out" for finding in findings):
            return "screened_out"
        return "completed" if is_last else "active"

    @staticmethod
    def _read_choice(raw: Mapping[str, object], name: str, options: Sequence[str]) -> str:
        choice = str(raw.get(name, ""))
        if choice not in options:
            raise AnswersRejected({name: "Please choose one of the two."})
        return choice

    @staticmethod
    def _is_late(screen: Screen, timing: Timing) -> bool:
        return screen.deadline_s is not None and timing.submitted_at_ms - timing.shown_at_ms > screen.deadline_s * 1000

    @staticmethod
    def _visit(session: Session, step: Step, timing: Timing, *, is_late: bool) -> ScreenVisit:
        return ScreenVisit(
            session_id=session.id,
            screen=step.key,
            shown_at_ms=timing.shown_at_ms,
            submitted_at_ms=timing.submitted_at_ms,
            first_input_at_ms=timing.first_input_at_ms,
            focus_lost_n=timing.focus_lost_n,
            focus_lost_s=timing.focus_lost_s,
            device=timing.device,
            is_late=is_late,
            opened=opened_systems(step, timing.opened),
        )

    @staticmethod
    def _done_item(path: Path, step: Step, next_step: int) -> str | None:
        """The item that this screen finishes: its last screen, when several belong to it."""
        if step.kind != "item" or step.task is None or step.task.is_practice:
            return None
        after = path.steps[next_step] if next_step < len(path.steps) else None
        goes_on = (
            after is not None
            and after.kind == "item"
            and after.task is not None
            and after.task.item_id == step.task.item_id
        )
        return None if goes_on else step.task.item_id

    def _extend(self, session: Session, timing: Timing) -> int:
        """Gives one more batch; the session stays at its step, where the new items now begin, or passes on if none is left."""
        openness = self._openness(session.source)
        extended = self.store.sessions.extend(
            session.id,
            lambda current, snapshot: draw_more(self.study, current.draw, replace(snapshot, openness=openness)),
            timing.submitted_at_ms,
        )
        return session.step if extended.draw != session.draw else session.step + 1

    def _check_chat(self, session: Session, screen: Screen) -> None:
        assert screen.item is not None
        turns = self.store.conversations.turns(session.id, screen.item.id)
        n_said = n_messages(turns) if screen.item.kind == "arena" else sum(turn.role == "user" for turn in turns)
        if n_said < screen.item.min_turns:
            raise AnswersRejected(
                {"chat": f"Please write at least {screen.item.min_turns} messages first ({n_said} so far)."}
            )

    # checking

    def _screening_findings(self, values: Mapping[str, object]) -> list[Finding]:
        findings = []
        for question in self.study.spec.screening:
            if question.accept is not None and values.get(question.name) not in question.accept:
                reason = f"answered '{values.get(question.name)}' to the screening question {question.name}"
                findings.append(Finding("screening", "screen_out", reason))
        return findings

    def _has_understood(self, values: Mapping[str, object]) -> bool:
        rule = comprehension_rule(self.study)
        return rule is None or not rule.wrong(dict(values))

    def _quality(
        self,
        session: Session,
        step: Step,
        judgments: Sequence[Judgment],
        answers: Sequence[Answer],
        visit: ScreenVisit,
        *,
        is_last: bool,
    ) -> list[Finding]:
        """Rules that act live look after a gold item or a check, all others when the session ends; each finds once."""
        if session.draw.disputes:  # rules are about raters
            return []
        is_check = step.kind in ("attention", "comprehension")
        is_gold = step.task is not None and step.task.item_id in self.study.gold_ids
        rules = [
            rule
            for rule in self.study.spec.quality
            if (rule.acts == "live" and (is_check or is_gold)) or (rule.acts == "end" and is_last)
        ]
        if not rules:
            return []
        store, key = self.store, session.id
        record = SessionRecord(
            judgments=LazyList(lambda: [j for j in (*store.records.judgments(key), *judgments) if not j.is_practice]),
            answers=LazyList(lambda: [*store.records.answers(key), *answers]),
            visits=LazyList(lambda: [*store.records.visits(key), visit]),
        )
        known = [logged.finding for logged in self.store.records.findings(session.id)]
        return newly_found(rules, self.study, session, record, known)

    # correcting

    def _correct(
        self, session: Session, path: Path, index: int, given: RawAnswers, timing: Timing, token: str
    ) -> Submission:
        """An earlier screen sent again: every changed answer is a new judgment that names the one it replaces."""
        step = path.steps[index]
        screen = build_screen(self.shown_study(session), path, index)
        values = read_values(screen.fields, given(screen) if callable(given) else given)
        is_late = self._is_late(screen, timing)
        new = to_judgments(screen, step, values, session.id, timing, is_late=is_late)
        current = {_key(judgment): judgment for judgment in self.store.records.of_session(session.id).judgments}
        changed = []
        for judgment in new:
            old = current.get(_key(judgment))
            if old is None:
                changed.append(judgment)
            elif old.value != judgment.value:
                changed.append(
                    replace(judgment, replaces=old.id, corrected_by="rater", reason="changed after going back")
                )
        return Submission(
            token=token,
            session_id=session.id,
            step=session.step,
            next_step=session.step,
            visit=self._visit(session, step, timing, is_late=is_late),
            judgments=changed,
        )


def _key(judgment: Judgment) -> tuple[str, str, str, int | None, bool]:
    return (judgment.item_id, judgment.criterion, judgment.system, judgment.turn, judgment.is_practice)
