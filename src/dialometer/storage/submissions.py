"""Storing what raters submit: many screens in one commit, each of them whole or not at all.

A correction is a new row that names the one it replaces; it is checked before it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, Table, bindparam, case, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from dialometer.errors import StorageError
from dialometer.model.session import Answer, Judgment, Receipt, State, Submission
from dialometer.storage.database import StorePart, Values, execute_many, insert_many
from dialometer.storage.erasing import erase_sessions, scrub
from dialometer.storage.rows import answer_values, finding_values, judgment_values, visit_values
from dialometer.storage.schema import (
    NO_TURN,
    answers,
    drafts,
    exclusions,
    findings,
    judgments,
    sessions,
    slots,
    submissions,
    visits,
)
from dialometer.storage.sessions import present_session

JUDGMENT_KEY = ("session_id", "item_id", "criterion", "system", "turn", "is_practice")
ANSWER_KEY = ("session_id", "part", "question")
N_PER_QUERY = 500
ENDS: tuple[State, ...] = ("completed", "screened_out", "declined")
"""How a submitted screen can end a session; a withdrawal has its own way, and only time makes a session stale."""

_OF_SESSION = sessions.c.id == bindparam("of_session")
_SEEN = case(
    (sessions.c.last_seen_at_ms < bindparam("seen"), bindparam("seen")),
    else_=sessions.c.last_seen_at_ms,
)
# Most screens only move a session on; leaving the other columns alone spares the index over them.
MOVE = update(sessions).where(_OF_SESSION).values(step=bindparam("to_step"), last_seen_at_ms=_SEEN)
CHANGE = (
    update(sessions)
    .where(_OF_SESSION)
    .values(
        state=bindparam("to_state"),
        consent_version=bindparam("consent"),
        finished_at_ms=bindparam("finished"),
        is_excluded=bindparam("excluded"),
    )
)
DONE = (
    update(slots)
    .where(
        slots.c.session_id == bindparam("of_session"),
        slots.c.item_id == bindparam("of_item"),
        slots.c.done_at_ms.is_(None),
    )
    .values(done_at_ms=bindparam("done"))
)


class SubmissionRefused(StorageError):
    """A submission contradicts what is stored; ``token`` names it where it is known. Nothing of it was written."""

    def __init__(self, message: str, *, token: str = "", remedy: str = "") -> None:
        self.token = token
        super().__init__(message, where=f"submission {token}" if token else "", remedy=remedy)


class Submissions(StorePart):
    """Storing submitted screens and corrections."""

    def record(self, batch: Sequence[Submission], at_ms: int) -> list[Receipt]:
        """Store a batch in one transaction, as if its submissions came one after the other; one receipt for each.

        When it returns, everything reported as stored is on disk. A submission that contradicts what is stored raises
        :class:`SubmissionRefused` and nothing of the batch is written; :meth:`record_each` saves the others.
        """
        if not batch:
            return []
        with self.database.writing() as connection:
            writes = _Writes(at_ms, _positions(connection, batch), _receipts(connection, batch))
            receipts = [writes.take(submission) for submission in batch]
            writes.flush(connection)
        if self.database.log_stored is not None and writes.submissions:
            self.database.log_stored([(row["session_id"], row["token"]) for row in writes.submissions])
        if writes.to_erase:
            scrub(self.database)
        return receipts

    def record_each(self, batch: Sequence[Submission], at_ms: int) -> list[Receipt | SubmissionRefused]:
        """As :meth:`record`, but a refused submission does not hold up the others: its place has the error."""
        try:
            return list(self.record(batch, at_ms))
        except SubmissionRefused as error:
            if len(batch) == 1:
                return [error]
        return [outcome for submission in batch for outcome in self.record_each([submission], at_ms)]

    def receipt(self, session_id: str, token: str) -> Receipt | None:
        """What became of a session's submission with this token, for a client that asks again; None if it never arrived."""
        query = select(submissions.c.step_after, submissions.c.state_after).where(
            submissions.c.token == token, submissions.c.session_id == session_id
        )
        with self.database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else Receipt(token, "repeated", row.step_after, row.state_after)

    def screens_by_session(self) -> dict[str, set[str]]:
        """The screens that each session has submitted."""
        screens: dict[str, set[str]] = {}
        with self.database.reading() as connection:
            for session_id, screen in connection.execute(select(submissions.c.session_id, submissions.c.screen)):
                screens.setdefault(session_id, set()).add(screen)
        return screens

    def correct(self, entry: Judgment | Answer) -> int:
        """Store a correction made outside the rater's screens, in any state but withdrawn; gives its number."""
        if entry.replaces is None or not entry.corrected_by:
            raise StorageError(
                "a correction names what it replaces and who made it", remedy="set replaces and corrected_by"
            )
        with self.database.writing() as connection:
            present_session(connection, entry.session_id)
            check_replaced(connection, [entry])
            if isinstance(entry, Judgment):
                result = connection.execute(insert(judgments), judgment_values(entry))
            else:
                result = connection.execute(insert(answers), answer_values(entry))
            key = result.inserted_primary_key
            assert key is not None
            return int(key[0])


@dataclass(slots=True)
class _Position:
    """Step and state of a session while a batch is processed."""

    step: int
    state: State
    consent_version: str
    is_excluded: bool
    finished_at_ms: int | None
    token_hash: str | None
    has_moved: bool = False
    has_changed: bool = False


def _chunks(values: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(values), N_PER_QUERY):
        yield values[start : start + N_PER_QUERY]


def _positions(connection: Connection, batch: Sequence[Submission]) -> dict[str, _Position]:
    """The sessions of a batch, locked in one order everywhere so that two batches never wait for each other."""
    columns = [
        sessions.c[name] for name in ("step", "state", "consent_version", "is_excluded", "finished_at_ms", "token_hash")
    ]
    query = select(sessions.c.id, *columns).order_by(sessions.c.id).with_for_update()
    positions: dict[str, _Position] = {}
    for ids in _chunks(sorted({submission.session_id for submission in batch})):
        for session_id, *columns_of in connection.execute(query.where(sessions.c.id.in_(ids))):
            positions[session_id] = _Position(*columns_of)
    return positions


def _receipts(connection: Connection, batch: Sequence[Submission]) -> dict[str, tuple[str, Receipt]]:
    """What was answered before to the tokens of a batch, with the session each belongs to."""
    columns = [submissions.c[name] for name in ("token", "session_id", "step_after", "state_after")]
    receipts: dict[str, tuple[str, Receipt]] = {}
    for tokens in _chunks([submission.token for submission in batch]):
        for token, session_id, step, state in connection.execute(
            select(*columns).where(submissions.c.token.in_(tokens))
        ):
            receipts[token] = (session_id, Receipt(token, "repeated", step, state))
    return receipts


@dataclass(slots=True)
class _Writes:
    """The rows of a batch, collected first and then written table by table."""

    at_ms: int
    positions: dict[str, _Position]
    receipts: dict[str, tuple[str, Receipt]]
    submissions: list[Values] = field(default_factory=list)
    visits: list[Values] = field(default_factory=list)
    judgments: list[Values] = field(default_factory=list)
    answers: list[Values] = field(default_factory=list)
    findings: list[Values] = field(default_factory=list)
    exclusions: list[Values] = field(default_factory=list)
    done: list[Values] = field(default_factory=list)
    corrections: list[Judgment | Answer] = field(default_factory=list)
    to_release: set[str] = field(default_factory=set)
    to_release_all: set[str] = field(default_factory=set)
    to_erase: set[str] = field(default_factory=set)

    def take(self, submission: Submission) -> Receipt:
        """Decide about one submission, given all those before it."""
        session_id, token = submission.session_id, submission.token
        if token in self.receipts:
            owner, receipt = self.receipts[token]
            if owner != session_id:
                raise SubmissionRefused("this submission's token was used by another session", token=token)
            return receipt
        position = self.positions.get(session_id)
        if position is None:
            raise SubmissionRefused("there is no session with this id", token=token)
        if position.state != "active":
            return Receipt(token, "ended", position.step, position.state)
        if submission.opened_with and submission.opened_with != position.token_hash:
            return Receipt(token, "outdated", position.step, position.state)
        if position.step != submission.step:
            return Receipt(token, "outdated", position.step, position.state)
        self._move(submission, position)
        self._collect(submission, position)
        receipt = Receipt(token, "stored", position.step, position.state)
        self.receipts[token] = (session_id, Receipt(token, "repeated", position.step, position.state))
        return receipt

    def _move(self, submission: Submission, position: _Position) -> None:
        position.step = submission.next_step
        position.has_moved = True
        if submission.consent_version is not None:
            position.consent_version = submission.consent_version
            position.has_changed = True
        if submission.next_state != "active":
            if submission.next_state not in ENDS:
                raise SubmissionRefused(
                    f"a screen cannot make a session {submission.next_state}", token=submission.token
                )
            position.state = submission.next_state
            position.finished_at_ms = self.at_ms
            position.has_changed = True
            if submission.next_state == "declined" and not position.consent_version:
                self.to_erase.add(submission.session_id)
            releases = self.to_release_all if submission.next_state == "screened_out" else self.to_release
            releases.add(submission.session_id)

    def _collect(self, submission: Submission, position: _Position) -> None:
        session_id = submission.session_id
        entries: list[Judgment | Answer] = [*submission.judgments, *submission.answers]
        if submission.visit.session_id != session_id or any(entry.session_id != session_id for entry in entries):
            raise SubmissionRefused("a submission holds entries of another session", token=submission.token)
        self.corrections += [entry for entry in entries if entry.replaces is not None]
        self.judgments += map(judgment_values, submission.judgments)
        self.answers += map(answer_values, submission.answers)
        if submission.keeps_visit:
            self.visits.append(visit_values(submission.visit))
        for finding in submission.findings:
            self.findings.append(finding_values(session_id, finding, self.at_ms))
            if finding.action == "exclude" and not position.is_excluded:
                position.is_excluded = position.has_changed = True
                self.to_release_all.add(session_id)
                made_by = f"rule:{finding.rule}"
                log = {"is_excluded": True, "made_by": made_by, "reason": finding.reason, "at_ms": self.at_ms}
                self.exclusions.append({"session_id": session_id, **log})
        if submission.done_item is not None:
            self.done.append({"of_session": session_id, "of_item": submission.done_item, "done": self.at_ms})
        row = {"token": submission.token, "session_id": session_id, "screen": submission.visit.screen}
        self.submissions.append(
            {**row, "step_after": position.step, "state_after": position.state, "at_ms": self.at_ms}
        )

    def flush(self, connection: Connection) -> None:
        """Write everything collected, each table in one go."""
        if not self.submissions:
            return
        check_replaced(connection, self.corrections)
        try:
            insert_many(connection, submissions, self.submissions)
            insert_many(connection, judgments, self.judgments)
            insert_many(connection, answers, self.answers)
        except IntegrityError as error:
            raise SubmissionRefused(
                f"an answer is already there ({str(error.orig).splitlines()[0]})",
                remedy="a second answer to the same question must name the first one in 'replaces'",
            ) from error
        insert_many(connection, visits, self.visits)
        insert_many(connection, findings, self.findings)
        insert_many(connection, exclusions, self.exclusions)
        self._update_sessions(connection)
        self._update_slots(connection)
        # A rater who declines leaves nothing, not even what this batch has just written.
        for ids in _chunks(sorted(self.to_erase)):
            erase_sessions(connection, ids)

    def _update_sessions(self, connection: Connection) -> None:
        moved = {key: position for key, position in self.positions.items() if position.has_moved}
        moves = [{"of_session": key, "to_step": position.step, "seen": self.at_ms} for key, position in moved.items()]
        execute_many(connection, MOVE, moves)
        changes = [
            {
                "of_session": key,
                "to_state": position.state,
                "consent": position.consent_version,
                "finished": position.finished_at_ms,
                "excluded": position.is_excluded,
            }
            for key, position in moved.items()
            if position.has_changed
        ]
        execute_many(connection, CHANGE, changes)
        for ids in _chunks(list(moved)):
            connection.execute(delete(drafts).where(drafts.c.session_id.in_(ids)))

    def _update_slots(self, connection: Connection) -> None:
        execute_many(connection, DONE, self.done)
        for ids in _chunks(sorted(self.to_release_all)):
            connection.execute(update(slots).where(slots.c.session_id.in_(ids)).values(is_released=True))
        for ids in _chunks(sorted(self.to_release)):
            unused = (slots.c.session_id.in_(ids), slots.c.done_at_ms.is_(None))
            connection.execute(update(slots).where(*unused).values(is_released=True))


def check_replaced(connection: Connection, entries: Sequence[Judgment | Answer]) -> None:
    """Refuse corrections of what is not there, of something else, or of what another correction has replaced."""
    _check(connection, judgments, JUDGMENT_KEY, [entry for entry in entries if isinstance(entry, Judgment)])
    _check(connection, answers, ANSWER_KEY, [entry for entry in entries if isinstance(entry, Answer)])


def _check(
    connection: Connection, table: Table, key: tuple[str, ...], corrections: Sequence[Judgment] | Sequence[Answer]
) -> None:
    if not corrections:
        return
    ids = [correction.replaces for correction in corrections]
    columns = [table.c[name] for name in ("id", *key)]
    stored = {row.id: tuple(row)[1:] for row in connection.execute(select(*columns).where(table.c.id.in_(ids)))}
    replaced = set(connection.scalars(select(table.c.replaces).where(table.c.replaces.in_(ids))))
    for correction in corrections:
        number = correction.replaces
        if number not in stored:
            raise SubmissionRefused(f"a correction replaces {table.name} {number}, which is not there")
        if stored[number] != _key_of(correction, key):
            raise SubmissionRefused(f"a correction replaces {table.name} {number}, which is about something else")
        if number in replaced:
            raise SubmissionRefused(f"{table.name} {number} was corrected already", remedy="correct the newest one")
        replaced.add(number)


def _key_of(entry: Judgment | Answer, key: tuple[str, ...]) -> tuple[object, ...]:
    values = (getattr(entry, name) for name in key)
    return tuple(NO_TURN if value is None else value for value in values)
