"""The tables of an export: every column with its type and meaning, the one source for files and data dictionary."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.storage.conversations import number_on_side, place_of
from dialometer.storage.store import Store
from dialometer.storage.table import COLUMNS, FACTOR_PREFIX, long_table, rater_name, session_name

Columns = dict[str, tuple[Any, str]]
_TIME = pl.Datetime("ms", "UTC")
_RATER = (pl.String, "pseudonym of the rater, the same in all files")
_SESSION = COLUMNS["session"]


@dataclass(frozen=True, slots=True)
class ExportTable:
    """One table: its name (the file's name without suffix), what a row is, and its columns with type and meaning."""

    name: str
    meaning: str
    columns: Columns

    @property
    def schema(self) -> dict[str, Any]:
        """Types by column."""
        return {name: kind for name, (kind, _) in self.columns.items()}


def factor_columns(names: Iterable[str]) -> Columns:
    """The columns that say in which condition a rater was."""
    return {
        FACTOR_PREFIX + name: (pl.String, f"level of the factor '{name}' that the rater was given") for name in names
    }


def judgments_table(factors: Iterable[str]) -> ExportTable:
    """The one long table."""
    return ExportTable("judgments", "one judgment of one rater a row", {**COLUMNS, **factor_columns(factors)})


def sessions_table(factors: Iterable[str]) -> ExportTable:
    """Who took part, under which condition, and how it ended."""
    columns: Columns = {
        "rater": _RATER,
        "session": _SESSION,
        "source": COLUMNS["source"],
        "program": (pl.String, "name of the model, where the rater is a program"),
        "state": COLUMNS["state"],
        "is_excluded": COLUMNS["is_excluded"],
        "exclusion_reason": (pl.String, "why the session is excluded from the analysis"),
        "started_at": (_TIME, "when the rater arrived (UTC)"),
        "finished_at": (_TIME, "when the session ended (UTC)"),
        "last_seen_at": (_TIME, "when the rater was last seen (UTC)"),
        "duration_s": (pl.Float64, "seconds from arrival to the end"),
        "consent_version": (
            pl.String,
            "short hash of the consent text the rater agreed to; empty where none was given",
        ),
        "language": (pl.String, "language in which the rater read the study"),
        "study_version": COLUMNS["study_version"],
        "cell": (pl.Int32, "number of the condition in the order of the study file, from 0"),
        "n_judgments": (pl.Int64, "judgments that count: practice and corrected ones are not among them"),
        **factor_columns(factors),
    }
    return ExportTable("sessions", "one rater's session a row", columns)


ANSWERS = ExportTable(
    "answers",
    "one answer to a questionnaire or check a row",
    {
        "entry": (pl.Int64, "number of the answer in the database"),
        "rater": _RATER,
        "session": _SESSION,
        "source": COLUMNS["source"],
        "part": (pl.String, "where it was asked: screening, pre, post, attention, comprehension/1 …"),
        "question": (pl.String, "name of the question"),
        "value": (pl.Float64, "the answer as a number, where it is one"),
        "text": (pl.String, "the answer as text, where it is one: the chosen option or the free text"),
        "answer": (pl.String, "the answer as stored, in JSON"),
        "shown_at": COLUMNS["shown_at"],
        "answered_at": COLUMNS["answered_at"],
        "duration_s": COLUMNS["duration_s"],
        "replaces": (pl.Int64, "number of the answer that this one corrects"),
    },
)
SCREENS = ExportTable(
    "screens",
    "one screen that a rater submitted a row",
    {
        "rater": _RATER,
        "session": _SESSION,
        "source": COLUMNS["source"],
        "screen": (pl.String, "name of the screen: consent, instructions, item/<id>, item/<id>/<criterion> …"),
        "shown_at": COLUMNS["shown_at"],
        "first_input_at": (_TIME, "when the rater first touched a field (UTC)"),
        "submitted_at": COLUMNS["answered_at"],
        "duration_s": COLUMNS["duration_s"],
        "focus_lost_n": (pl.Int64, "how often the rater went to another window or tab"),
        "focus_lost_s": (pl.Float64, "seconds spent there"),
        "device": (pl.String, "kind of device"),
        "is_late": (pl.Boolean, "whether it was submitted after the deadline"),
        "opened": (
            pl.String,
            "systems whose long response the rater opened to read all of it, in JSON; empty where none was opened or cut",
        ),
    },
)
FLAGS = ExportTable(
    "flags",
    "one flag of a quality rule a row",
    {
        "rater": _RATER,
        "session": _SESSION,
        "source": COLUMNS["source"],
        "rule": (pl.String, "the rule that found it"),
        "action": (pl.String, "what followed: screen_out, exclude or flag"),
        "reason": (pl.String, "what was found, in words"),
        "details": (pl.String, "numbers behind it, in JSON"),
        "found_at": (_TIME, "when (UTC)"),
    },
)
CHAT_TURNS = ExportTable(
    "chat_turns",
    "one utterance of a live conversation a row",
    {
        "rater": _RATER,
        "session": _SESSION,
        "source": COLUMNS["source"],
        "item": COLUMNS["item"],
        "system": (pl.String, "system the rater talked to"),
        "side": (pl.Int64, "arenas: on which side of the screen, from 1"),
        "turn": (pl.Int64, "place in the conversation with this system, counted from 0, without its opening"),
        "role": (pl.String, "who spoke: user (the rater) or agent"),
        "text": (pl.String, "what was said"),
        "said_at": (_TIME, "when it was stored (UTC)"),
        "details": (pl.String, "what the agent said about its response, in JSON"),
    },
)


DRAWN_SYSTEMS = ExportTable(
    "drawn_systems",
    "one set of systems that was drawn for a rater's item a row: the two of an arena, or by adaptive assignment",
    {
        "rater": _RATER,
        "session": _SESSION,
        "source": COLUMNS["source"],
        "item": COLUMNS["item"],
        "systems": (pl.String, "the systems, in the order of the study file, separated by |"),
        "probability": (pl.Float64, "how likely it was, at that moment, that these were drawn"),
    },
)


ADJUDICATIONS = ExportTable(
    "adjudications",
    "one disagreement that an adjudicator was given a row",
    {
        "rater": (pl.String, "pseudonym of the adjudicator"),
        "session": _SESSION,
        "source": COLUMNS["source"],
        "item": COLUMNS["item"],
        "system": COLUMNS["system"],
        "criterion": COLUMNS["criterion"],
        "turn": COLUMNS["turn"],
        "originals": (pl.String, "numbers of the raters' judgments that disagree, in JSON"),
        "settled": (pl.Int64, "number of the judgment that settles it; empty where it is not settled yet"),
    },
)


_KINDS = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
_OF_JUDGMENT = ("judgment", "rater", "session", "source", "is_excluded", "item", "system", "criterion")
"""What says to which judgment a part of an answer belongs."""


def detail_tables(study: Study) -> dict[str, ExportTable]:
    """The tables of answers that have parts, by the type of their scale."""
    names = {criterion.scale for criterion in study.spec.criteria}
    names |= {
        name
        for cell in study.cells
        for block in study.blocks
        for name in study.presentation(cell, block).scales.values()
    }
    scales = [study.spec.scales[name] for name in sorted(names)]
    return {
        scale.type: ExportTable(
            scale.detail_table.name,
            scale.detail_table.meaning,
            {
                **{name: COLUMNS[name] for name in _OF_JUDGMENT},
                "rated_turn": COLUMNS["turn"],
                **{name: (_KINDS[kind], meaning) for name, (kind, meaning) in scale.detail_table.columns.items()},
            },
        )
        for scale in scales
        if scale.detail_table is not None
    }


# the rows, a part at a time
#
# Raters leave the database only under the pseudonym that follows from their order of arrival. Nothing here reads who they
# are to a platform, and no id of a session, which would open their pages, is written.


N_PER_FRAME = 20_000


@dataclass(slots=True)
class RaterNames:
    """Pseudonyms by session, looked up anew for those who arrived while the export was running."""

    store: Store
    names: dict[str, tuple[str, str, str]] = field(default_factory=dict)

    def of(self, session_id: str) -> tuple[str, str, str]:
        """The pseudonyms of a session's rater and of the session itself, and what kind of rater it is."""
        if session_id not in self.names:
            numbers = self.store.sessions.rater_numbers()
            self.names = {
                session.id: (rater_name(numbers[session.id]), session_name(session.ordinal), session.source)
                for session in self.store.sessions.all()
                if session.id in numbers
            }
        return self.names[session_id]

    def program(self, session: Session) -> str | None:
        """The model that a program was; its raters are numbered behind a #. Of people nothing is told."""
        person = self.store.sessions.person(session.id) if session.source == "model" else None
        return person.external_id.rpartition("#")[0] or person.external_id if person else None


@dataclass(slots=True)
class JudgmentRows:
    """The rows of the long table in the order of writing; counts on the way what the sessions table tells."""

    study: Study
    store: Store
    include_practice: bool = False
    include_corrected: bool = False
    n_practice_left_out: int = 0
    n_counted: dict[str, int] = field(default_factory=dict)
    """Judgments by session."""
    raters: set[str] = field(default_factory=set)
    sources: dict[str, int] = field(default_factory=dict)

    def frames(self) -> Iterator[pl.DataFrame]:
        """The rows, a part at a time."""
        batches = self.store.records.judgment_batches(include_corrected=self.include_corrected, n_rows=N_PER_FRAME)
        for batch in batches:
            frame = long_table([batch], self.study)
            self._count(frame)
            if not self.include_practice:
                kept = frame.filter(~pl.col("is_practice"))
                self.n_practice_left_out += frame.height - kept.height
                frame = kept
            yield frame

    def _count(self, frame: pl.DataFrame) -> None:
        counts = ~pl.col("is_practice")
        if self.include_corrected:  # every correction takes the place of one row, so first entries are those in force
            counts &= pl.col("replaces").is_null()
        for session, rater, n in frame.filter(counts).group_by("session", "rater").len().iter_rows():
            self.n_counted[session] = self.n_counted.get(session, 0) + n
            self.raters.add(rater)
        for source, n in frame.group_by("source").len().iter_rows():
            self.sources[source] = self.sources.get(source, 0) + n


def detail_frames(
    study: Study, store: Store, scale_type: str, table: ExportTable, *, include_practice: bool, include_corrected: bool
) -> Iterator[pl.DataFrame]:
    """The parts of answers on scales of one type, in the order of the judgments."""
    judged = JudgmentRows(study, store, include_practice, include_corrected)
    factors = [FACTOR_PREFIX + factor.name for factor in study.spec.design.factors]

    def rows() -> Iterator[tuple[Any, ...]]:
        for frame in judged.frames():
            for row in frame.filter(pl.col("scale") == scale_type).iter_rows(named=True):
                condition = {name.removeprefix(FACTOR_PREFIX): row.get(name) or "" for name in factors}
                scale = study.judged_on(row["criterion"], row["block"], condition)
                if scale is None or scale.type != scale_type:
                    continue
                own = (*(row[name] for name in _OF_JUDGMENT), row["turn"])
                yield from ((*own, *part) for part in scale.details(json.loads(row["answer"])))

    return frames(table, rows())


def answer_frames(study: Study, store: Store, raters: RaterNames, *, include_corrected: bool) -> Iterator[pl.DataFrame]:
    """Answers to questionnaires and checks, in the order of writing."""
    scales = study.question_scales
    rows = (
        (
            answer.id,
            *raters.of(answer.session_id),
            answer.part,
            answer.question,
            scales[answer.question].number(answer.value) if answer.question in scales else None,
            answer.value if isinstance(answer.value, str) else None,
            _json(answer.value),
            answer.shown_at_ms or None,
            answer.answered_at_ms or None,
            seconds(answer.shown_at_ms, answer.answered_at_ms),
            answer.replaces,
        )
        for answer in store.records.answers(include_corrected=include_corrected)
    )
    return frames(ANSWERS, rows)


def screen_frames(store: Store, raters: RaterNames) -> Iterator[pl.DataFrame]:
    """Submitted screens, in the order of writing."""
    rows = (
        (
            *raters.of(visit.session_id),
            visit.screen,
            visit.shown_at_ms or None,
            visit.first_input_at_ms,
            visit.submitted_at_ms or None,
            seconds(visit.shown_at_ms, visit.submitted_at_ms),
            visit.focus_lost_n,
            visit.focus_lost_s,
            visit.device,
            visit.is_late,
            _json(list(visit.opened)) if visit.opened else None,
        )
        for visit in store.records.visits()
    )
    return frames(SCREENS, rows)


def flag_frames(store: Store, raters: RaterNames) -> Iterator[pl.DataFrame]:
    """What quality rules found, in the order of writing."""
    rows = (
        (
            *raters.of(logged.session_id),
            logged.finding.rule,
            logged.finding.action,
            logged.finding.reason,
            _json(dict(logged.finding.details)),
            logged.at_ms,
        )
        for logged in store.records.findings()
    )
    return frames(FLAGS, rows)


def chat_frames(store: Store, raters: RaterNames, study: Study, sessions: Iterable[Session]) -> Iterator[pl.DataFrame]:
    """Live conversations, by order of arrival; one session at a time, since there may be many."""
    systems = {item.id: item.systems[0] for item in study.items if item.kind == "chat"}
    is_arena = study.spec.items.kind == "arena"
    rows = (
        (
            *raters.of(session.id),
            turn.item_id,
            systems.get(turn.item_id) or str(turn.meta.get("system", "")),
            place_of(turn) if is_arena else None,
            number_on_side(turn) if is_arena else turn.n,
            turn.role,
            turn.text,
            turn.at_ms,
            _json(dict(turn.meta)),
        )
        for session in sessions
        for turn in store.conversations.turns(session.id)
    )
    return frames(CHAT_TURNS, rows)


def adjudication_frames(store: Store, raters: RaterNames, sessions: Iterable[Session]) -> Iterator[pl.DataFrame]:
    """What adjudicators were given to settle, by order of arrival."""

    def rows() -> Iterator[tuple[Any, ...]]:
        for session in sessions:
            if not session.draw.disputes:
                continue
            judgments = store.records.judgments(session.id)
            settled = {(j.item_id, j.system, j.criterion, j.turn): j.id for j in judgments}
            for item, disputes in session.draw.disputes.items():
                for dispute in disputes:
                    about = (item, dispute.system, dispute.criterion, dispute.turn)
                    yield (*raters.of(session.id), *about, _json(list(dispute.judgments)), settled.get(about))

    return frames(ADJUDICATIONS, rows())


def system_draw_frames(raters: RaterNames, sessions: Iterable[Session]) -> Iterator[pl.DataFrame]:
    """Which systems were drawn for each item, by order of arrival."""
    rows = (
        (*raters.of(session.id), item_id, "|".join(drawn.systems), drawn.probability)
        for session in sessions
        for item_id, drawn in session.draw.pairs.items()
    )
    return frames(DRAWN_SYSTEMS, rows)


def session_frames(
    table: ExportTable,
    raters: RaterNames,
    sessions: Iterable[Session],
    reasons: dict[str, str],
    n_judgments: dict[str, int],
) -> Iterator[pl.DataFrame]:
    """Sessions by order of arrival; ``reasons`` are those of exclusions by session."""
    factors = [name.removeprefix(FACTOR_PREFIX) for name in table.columns if name.startswith(FACTOR_PREFIX)]
    rows = (
        (
            *raters.of(session.id),
            raters.program(session),
            session.state,
            session.is_excluded,
            reasons.get(session.id) if session.is_excluded else None,
            session.started_at_ms or None,
            session.finished_at_ms or None,
            session.last_seen_at_ms or None,
            seconds(session.started_at_ms, session.finished_at_ms or 0),
            session.consent_version,
            session.language,
            session.study_version,
            session.draw.cell,
            n_judgments.get(session_name(session.ordinal), 0),
            *(session.condition.get(name) for name in factors),
        )
        for session in sessions
    )
    return frames(table, rows)


def seconds(from_ms: int, to_ms: int) -> float | None:
    """The time between two moments, None where one of them is not known (0)."""
    return (to_ms - from_ms) / 1000 if from_ms and to_ms else None


def frames(table: ExportTable, rows: Iterable[tuple[Any, ...]]) -> Iterator[pl.DataFrame]:
    """Rows as frames of a bounded size."""
    schema = {name: pl.Int64 if isinstance(kind, pl.Datetime) else kind for name, kind in table.schema.items()}
    rest = iter(rows)
    while chunk := list(itertools.islice(rest, N_PER_FRAME)):
        yield pl.DataFrame(chunk, schema=schema, orient="row").cast(pl.Schema(table.schema))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
