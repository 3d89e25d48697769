"""What an analysis works on: the judgments that count, the raters who gave them, and what was excluded and why.

The data come from the database, from the files of an export, or from simulated arrays; all give the same numbers.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dialometer.analysis.base.battles import BATTLE_COLUMNS, battles_table
from dialometer.analysis.base.judge_verdicts import named_judges, one_verdict_each
from dialometer.analysis.base.look_state import LookState
from dialometer.design.adaptive import floor_of, weight_of
from dialometer.errors import DialometerError
from dialometer.exchange.exports.export_folder import read_manifest
from dialometer.formula_cells import is_escaped, restored_frame
from dialometer.model.scale import Scale
from dialometer.model.session import ADJUDICATORS, DrawnSystems, Session
from dialometer.model.study import LANGUAGE, Study
from dialometer.quality.gold import gold_items
from dialometer.storage.counting.counts import OUTSIDE_STATES, main_sources
from dialometer.storage.store import Store
from dialometer.storage.table import COLUMNS, FACTOR_PREFIX, long_table, rater_name, session_name

EXCLUDED = "raters excluded by quality rules or by hand"

MODEL_NAME = ("model", "name")
"""Part and question under which the name of a model is listed among the answers."""
APART = "/"
"""In a rater's name before the number of a further condition: who was in several counts as a rater in each of them."""

SESSION_COLUMNS = {
    "rater": pl.String,
    "session": pl.String,
    "source": pl.String,
    "state": pl.String,
    "is_excluded": pl.Boolean,
    "cell": pl.Int32,
    "started_at_ms": pl.Int64,
    "duration_s": pl.Float64,
}
ANSWER_COLUMNS = {
    "rater": pl.String,
    "part": pl.String,
    "question": pl.String,
    "answer": pl.String,
    "text": pl.String,
    "value": pl.Float64,
}
FINDING_COLUMNS = {"rater": pl.String, "rule": pl.String, "action": pl.String, "reason": pl.String}
DRAW_COLUMNS = {
    "rater": pl.String,
    "item": pl.String,
    "systems": pl.String,
    "probability": pl.Float64,
    "weight": pl.Float64,
}
CHAT_COLUMNS = {
    "rater": pl.String,
    "item": pl.String,
    "n_turns_user": pl.Int64,
    "n_turns_agent": pl.Int64,
    "n_words_user": pl.Int64,
    "duration_s": pl.Float64,
}


@dataclass(frozen=True)
class StudyData:
    """One study's data. ``judgments`` are those that count; ``sessions`` are all, so that nothing disappears unseen."""

    study: Study
    judgments: pl.DataFrame
    sessions: pl.DataFrame
    answers: pl.DataFrame
    findings: pl.DataFrame
    sources: tuple[str, ...]
    n_left_out: dict[str, int]
    """Judgments left out, by reason."""
    set_aside: pl.DataFrame = field(default_factory=lambda: long_table(()))
    """Judgments of excluded raters, which count in nothing but what the exclusion itself has changed."""
    chats: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CHAT_COLUMNS))
    """One row per live conversation: how long it was."""
    by_models: pl.DataFrame = field(default_factory=lambda: long_table(()))
    """Judgments of models (a learned evaluator, an LLM judge) beside people's: one for each judge and thing, under the judge's
    name. They count in nothing but their agreement."""
    calls: pl.DataFrame = field(default_factory=lambda: long_table(()))
    """Every single answer of models under the judge's name: each order and each sample."""
    settled: pl.DataFrame = field(default_factory=lambda: long_table(()))
    """Judgments of adjudicators, which settle what raters disagree about; they count in nothing else."""
    battles: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=BATTLE_COLUMNS))
    """One row per system that a rater talked to in an arena: how it was written, and what the vote weighs."""
    draws: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=DRAW_COLUMNS))
    """Adaptive assignment: one row per rater and item whose systems were drawn, with the probability and what answers weigh."""
    look: LookState | None = None
    """Which look these data are, where the study declares looks before its end."""
    shared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What several analyses of these data need and is computed once; other data begin with nothing."""

    @property
    def is_about_judges(self) -> bool:
        """Whether these are models' judgments alone: each model is a judge of its own, and only items are a sample."""
        return self.sources == ("model",)

    @property
    def factors(self) -> list[str]:
        """Names of the between-subject factors."""
        return [factor.name for factor in self.study.spec.design.factors]

    @property
    def rated(self) -> pl.DataFrame:
        """The judgments that are in results: all that count but those on gold items, which check raters."""
        return self.judgments.filter(~pl.col("item").is_in(sorted(gold_items(self.study))))

    def used_sessions(self) -> pl.DataFrame:
        """Sessions whose judgments count."""
        return self.sessions.filter(
            ~pl.col("is_excluded") & ~pl.col("state").is_in(OUTSIDE_STATES) & pl.col("source").is_in(self.sources)
        )

    def completed_sessions(self) -> pl.DataFrame:
        """Used sessions that went to the end; only these have a duration that means something."""
        return self.used_sessions().filter(pl.col("state") == "completed")

    def n_not_finished(self) -> int:
        """How many raters have not reached the end and yet gave judgments that count; what was imported has no end."""
        is_open = (pl.col("state") != "completed") & (pl.col("source") != "imported")
        given = self.rated["rater"].unique().to_list()
        return self.used_sessions().filter(is_open & pl.col("rater").is_in(given))["rater"].n_unique()

    def raters_by_finish(self) -> list[str]:
        """Raters whose judgments count and who went to the end, in the order in which they finished."""
        ended = pl.col("started_at_ms") + (1000 * pl.col("duration_s").fill_null(0)).cast(pl.Int64)
        return self.completed_sessions().sort(ended, maintain_order=True)["rater"].to_list()

    def of_raters(self, raters: Sequence[str], reason: str) -> StudyData:
        """The data of some raters alone, as if the others had not come yet; ``reason`` says why theirs are left out."""
        is_kept = pl.col("rater").is_in(list(raters))
        judgments = self.judgments.filter(is_kept)
        n_out = len(self.judgments) - len(judgments)
        return replace(
            self,
            judgments=judgments,
            sessions=self.sessions.filter(is_kept | pl.col("is_excluded") | ~pl.col("source").is_in(self.sources)),
            answers=self.answers.filter(is_kept),
            chats=self.chats.filter(is_kept),
            battles=self.battles.filter(is_kept),
            draws=self.draws.filter(is_kept),
            n_left_out={**self.n_left_out, **({reason: n_out} if n_out else {})},
        )

    def of_criterion(self, criterion: str) -> pl.DataFrame:
        """The judgments on one criterion."""
        return self.judgments.filter(pl.col("criterion") == criterion)

    def answers_to(self, question: str) -> pl.DataFrame:
        """Rater and answer (as text) to one question, of the raters whose judgments count."""
        used = self.used_sessions()["rater"]
        rows = self.answers.filter((pl.col("question") == question) & pl.col("rater").is_in(used.implode()))
        return rows.select("rater", "text").unique("rater", keep="first", maintain_order=True)


UNREAD = ("judgment", "session", "shown_at")
"""Columns of the long table that no analysis reads; at a million judgments they are 32 MB."""


def load_data(study: Study, store: Store, *, sources: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> StudyData:
    """The data of a study. Without ``sources``, people's judgments are used; where there are none, simulated raters', or
    else models'. They are never mixed unasked. Columns of the judgments that nobody will read can be left out."""
    held = list(store.sessions.all())
    numbers = store.sessions.rater_numbers()
    raters = names_apart([(s.id, numbers.get(s.id, s.ordinal), s.draw.cell) for s in held])
    sessions = _sessions_table(study, held, raters)
    given = [(a.session_id, a.part, a.question, a.value) for a in store.records.answers() if a.session_id in raters]
    programs = {s.id: program_of(store, s) for s in held if s.source == "model"}
    languages = {s.id: s.language for s in held} if study.spec.languages else {}
    answers = answers_table(given, programs, raters, languages)
    findings = pl.DataFrame(
        [
            (raters[logged.session_id], logged.finding.rule, logged.finding.action, logged.finding.reason)
            for logged in store.records.findings()
            if logged.session_id in raters
        ],
        schema=FINDING_COLUMNS,
        orient="row",
    )
    turns = (
        (raters[session.id], (turn.item_id, turn.role, turn.text, turn.at_ms))
        for session in held
        for turn in store.conversations.turns(session.id)
    )
    chats = chats_table(turns) if study.spec.items.kind == "chat" else pl.DataFrame(schema=CHAT_COLUMNS)
    battles = _battles(study, store, held, raters)
    draws = draws_table(
        study, ((raters[s.id], item, *_drawn(pair)) for s in held for item, pair in s.draw.pairs.items())
    )
    given_by_models = bool(programs)
    if any(APART in name for name in raters.values()):
        without = ()  # such raters are told apart by their sessions
    del (
        held,
        numbers,
        raters,
        given,
        programs,
        turns,
    )  # thousands of sessions with all their items: the table takes their place
    table = long_table(store.records.judgment_batches(), study, without=without)
    if without and not given_by_models and _are_all_numbers(study, table):
        # Their texts say nothing more; at a million judgments they are 16 MB.
        table = table.with_columns(pl.lit(None, dtype=pl.String).alias("answer"))
    return replace(select_data(study, table, sessions, answers, findings, chats, sources), battles=battles, draws=draws)


def _are_all_numbers(study: Study, table: pl.DataFrame) -> bool:
    """Whether every answer is a number as it was given, and nobody settles disagreements by the answers themselves."""
    are_plain = all(type(scale).number is Scale.number for scale in study.spec.scales.values())
    return are_plain and study.spec.adjudication is None and not table["value"].null_count()


def _battles(study: Study, store: Store, held: list[Session], raters: Mapping[str, str]) -> pl.DataFrame:
    """What was said in arenas."""
    if study.spec.items.kind != "arena":
        return pl.DataFrame(schema=BATTLE_COLUMNS)
    return battles_table(
        (raters[session.id], (turn.item_id, turn.role, turn.text, turn.meta))
        for session in held
        for turn in store.conversations.turns(session.id)
    )


def _drawn(drawn: DrawnSystems) -> tuple[str, float]:
    return "|".join(drawn.systems), drawn.probability


def draws_table(study: Study, drawn: Iterable[tuple[str, str, str, float]]) -> pl.DataFrame:
    """What answers weigh, from rater, item, systems (joined by |) and probability of every draw; empty where assignment is
    balanced, so that all weigh alike."""
    if floor_of(study) is None:
        return pl.DataFrame(schema=DRAW_COLUMNS)
    rows = [
        (rater, item, systems, probability, weight_of(study, study.items_by_id[item], probability))
        for rater, item, systems, probability in drawn
        if item in study.items_by_id
    ]
    return pl.DataFrame(rows, schema=DRAW_COLUMNS, orient="row")


def select_data(
    study: Study,
    table: pl.DataFrame,
    sessions: pl.DataFrame,
    answers: pl.DataFrame,
    findings: pl.DataFrame,
    chats: pl.DataFrame,
    sources: tuple[str, ...] = (),
) -> StudyData:
    """The data that an analysis works on, from everything there is, wherever it was read."""
    table = _renamed(table, sessions)
    sources = sources or main_sources(set(sessions["source"].unique()))
    is_settled = pl.col("source").is_in(ADJUDICATORS)
    settled = table.filter(is_settled) if study.spec.adjudication is not None else table.clear()
    if len(settled):
        table = table.filter(~is_settled)
        of_simulated = ADJUDICATORS if sources == ("simulated",) else ("adjudicator",)
        settled = _select(settled, of_simulated)[0]
    judgments, n_left_out, set_aside = _select(table, sources)
    calls, by_models = table.clear(), table.clear()
    if (sessions["source"] == "model").any():
        names = judge_names(answers, sessions)
        calls = named_judges(_select(table, ("model",))[0], names)
        by_models = one_verdict_each(calls, kept=[judge.name for judge in study.spec.judges if judge.flips == "keep"])
        if "model" in sources:
            judgments = pl.concat([judgments.filter(pl.col("source") != "model"), by_models])
            sessions = named_judges(sessions, names)
            by_models = table.clear()
    return StudyData(
        study, judgments, sessions, answers, findings, sources, n_left_out, set_aside, chats, by_models, calls, settled
    )


def judge_names(answers: pl.DataFrame, sessions: pl.DataFrame) -> dict[str, str]:
    """Names of judges by the pseudonyms of their sessions."""
    part, question = MODEL_NAME
    named = answers.filter((pl.col("part") == part) & (pl.col("question") == question))
    names = dict(zip(named["rater"].to_list(), named["text"].to_list(), strict=True))
    raters = sessions.filter(pl.col("source") == "model")["rater"].unique().sort().to_list()
    return {rater: names.get(rater, rater) for rater in raters}


def names_apart(sessions: Iterable[tuple[str, int, int]]) -> dict[str, str]:
    """Raters by session, from (session, number of the rater, cell). One who was imported in several conditions counts in
    each of them as a rater of its own: comparisons between conditions are comparisons between raters."""
    cells: dict[int, list[int]] = {}
    names = {}
    for session, number, cell in sessions:
        of_rater = cells.setdefault(number, [])
        if cell not in of_rater:
            of_rater.append(cell)
        place = of_rater.index(cell)
        names[session] = rater_name(number) + (f"{APART}{place + 1}" if place else "")
    return names


def _renamed(table: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """The judgments under the names that their raters have in the analysis."""
    apart = sessions.filter(pl.col("rater").str.contains(APART, literal=True))
    if apart.is_empty():
        return table
    names = dict(zip(apart["session"].to_list(), apart["rater"].to_list(), strict=True))
    renamed = pl.col("session").replace_strict(names, default=pl.col("rater"), return_dtype=pl.String)
    return table.with_columns(renamed.alias("rater"))


def _sessions_table(study: Study, sessions: list[Session], raters: Mapping[str, str]) -> pl.DataFrame:
    rows = [
        (
            raters[s.id],
            session_name(s.ordinal),
            s.source,
            s.state,
            s.is_excluded,
            s.draw.cell,
            s.started_at_ms,
            ((s.finished_at_ms or s.last_seen_at_ms) - s.started_at_ms) / 1000 if s.started_at_ms else None,
        )
        for s in sessions
    ]
    frame = pl.DataFrame(rows, schema=SESSION_COLUMNS, orient="row")
    return frame.with_columns(
        pl.Series(FACTOR_PREFIX + factor.name, [s.condition.get(factor.name) for s in sessions], dtype=pl.String)
        for factor in study.spec.design.factors
    )


def program_of(store: Store, session: Session) -> str:
    """The model that a program was, from the name it came under; its raters are numbered behind a #."""
    person = store.sessions.person(session.id)
    return (person.external_id.rpartition("#")[0] or person.external_id) if person else ""


def answers_table(
    given: Iterable[tuple[str, str, str, object]],
    programs: Mapping[str, str | None],
    raters: Mapping[str, str],
    languages: Mapping[str, str | None],
) -> pl.DataFrame:
    """Answers of all sessions, from (session, part, question, value). The name of a model and the language are listed among
    them, as if they had been asked; who was asked keeps the answer."""
    rows = list(given)
    if not any(question == LANGUAGE for _, _, question, _ in rows):
        rows += [(session, "session", LANGUAGE, language) for session, language in languages.items() if language]
    named = {session for session, part, question, _ in rows if (part, question) == MODEL_NAME}
    rows += [(session, *MODEL_NAME, name) for session, name in programs.items() if name and session not in named]
    return pl.DataFrame(
        [answer_row(raters[session], part, question, value) for session, part, question, value in rows],
        schema=ANSWER_COLUMNS,
        orient="row",
    )


def answer_row(rater: str, part: str, question: str, value: object) -> tuple[object, ...]:
    """One row of the answers, whatever the scale: as JSON, as text, and as a number where it is one."""
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    text = value if isinstance(value, str) else " > ".join(value) if isinstance(value, list) else str(value)
    return rater, part, question, json.dumps(value, ensure_ascii=False), text, number


def chats_table(said_turns: Iterable[tuple[str, tuple[str, str, str, int]]]) -> pl.DataFrame:
    """Lengths of conversations, from rater and (item, role, text, time) of every turn in order; texts are not kept."""
    rows: list[tuple[str, str, int, int, int, float | None]] = []
    for (rater, item), group in itertools.groupby(said_turns, key=lambda turn: (turn[0], turn[1][0])):
        turns = [turn for _, turn in group]
        texts = [text for _, role, text, _ in turns if role == "user"]
        times = [at_ms for *_, at_ms in turns if at_ms]
        duration_s = (max(times) - min(times)) / 1000 if len(times) > 1 else None
        n_agent = sum(role == "agent" for _, role, _, _ in turns)
        rows.append((rater, item, len(texts), n_agent, sum(len(text.split()) for text in texts), duration_s))
    return pl.DataFrame(rows, schema=CHAT_COLUMNS, orient="row")


PRACTICE, OTHER_SOURCE = "practice items", "another source of raters"


def _select(table: pl.DataFrame, sources: tuple[str, ...]) -> tuple[pl.DataFrame, dict[str, int], pl.DataFrame]:
    """Judgments that count, how many were excluded for which reason (the first that holds), and those of excluded raters."""
    reasons = [
        (PRACTICE, pl.col("is_practice")),
        (OTHER_SOURCE, ~pl.col("source").is_in(sources)),
        ("raters screened out, declined or withdrawn", pl.col("state").is_in(OUTSIDE_STATES)),
        (EXCLUDED, pl.col("is_excluded")),
    ]
    n_left_out: dict[str, int] = {}
    set_aside = table.clear()
    for reason, is_out in reasons:
        n_out = int(table.select(is_out.sum()).item() or 0)
        if not n_out:
            continue  # a filter that keeps every row would copy them all
        n_left_out[reason] = n_out
        if reason == EXCLUDED:
            set_aside = table.filter(is_out)
        table = table.filter(~is_out)
    return table, n_left_out, set_aside


_TIME = pl.Datetime("ms", "UTC")
_MAY_LACK = ("choice", "worst")
"""Texts of the long table that may be unknown, which is not the same as empty."""


def load_exported(study: Study, folder: Path, *, sources: tuple[str, ...] = ()) -> StudyData:
    """The data of a folder that ``dialometer export --include-practice`` wrote as CSV; the same as from the database."""
    try:
        return _load_exported(study, folder, sources)
    except (pl.exceptions.PolarsError, KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
        message = f"the tables do not hold what an export writes ({type(error).__name__}: {str(error)[:200]})"
        raise DialometerError(message, where=str(folder), remedy="export the study again") from error


def _load_exported(study: Study, folder: Path, sources: tuple[str, ...]) -> StudyData:
    listed = _read(folder / "sessions.csv")
    raters = names_apart(
        (session, int(rater[1:]), int(cell))
        for session, rater, cell in listed.select("session", "rater", "cell").rows()
    )
    sessions = _sessions(study, listed, raters)
    written = _read(folder / "answers.csv").select("session", "part", "question", "answer").rows()
    given = [(session, part, question, json.loads(answer)) for session, part, question, answer in written]
    programs = dict(listed.filter(pl.col("source") == "model").select("session", "program").rows())
    languages = dict(listed.select("session", "language").rows()) if study.spec.languages else {}
    answers = answers_table(given, programs, raters, languages)
    named = next(name for name in ("flags.csv", "findings.csv") if (folder / name).exists())  # the latter in 0.1.0
    flagged = _read(folder / named).select("session", "rule", "action", "reason").rows()
    findings = pl.DataFrame(
        [(raters[session], rule, action, reason or "") for session, rule, action, reason in flagged],
        schema=FINDING_COLUMNS,
        orient="row",
    )
    chats = pl.DataFrame(schema=CHAT_COLUMNS)
    if study.spec.items.kind == "chat":
        spoken = _read(folder / "chat_turns.csv", {"said_at": _TIME})
        spoken = spoken.with_columns(pl.col("said_at").dt.epoch("ms").fill_null(0))
        turns = spoken.select("session", "item", "role", "text", "said_at").rows()
        chats = chats_table((raters[session], (item, role, text, at_ms)) for session, item, role, text, at_ms in turns)
    data = select_data(study, _judgments(folder / "judgments.csv"), sessions, answers, findings, chats, sources)
    if (folder / "drawn_systems.csv").exists():
        drawn = _read(folder / "drawn_systems.csv").select("session", "item", "systems", "probability").rows()
        data = replace(data, draws=draws_table(study, ((raters[s], i, names, float(p)) for s, i, names, p in drawn)))
    if study.spec.items.kind != "arena":
        return data
    said = _read(folder / "chat_turns.csv").select("session", "item", "role", "text", "details").rows()
    spoken_turns = ((raters[s], (item, role, text, json.loads(details))) for s, item, role, text, details in said)
    return replace(data, battles=battles_table(spoken_turns))


def _judgments(path: Path) -> pl.DataFrame:
    """The long table with its types; what can only be empty, and never unknown, is empty."""
    frame = _read(path, {name: kind for name, (kind, _) in COLUMNS.items() if kind != pl.String})
    texts = [name for name, (kind, _) in COLUMNS.items() if kind == pl.String and name not in _MAY_LACK]
    factors = sorted(name for name in frame.columns if name.startswith(FACTOR_PREFIX))
    return frame.with_columns(pl.col(texts).fill_null("")).select(*COLUMNS, *factors)


def _sessions(study: Study, listed: pl.DataFrame, raters: dict[str, str]) -> pl.DataFrame:
    times = listed.select(
        pl.col(name).str.to_datetime(time_unit="ms", time_zone="UTC").dt.epoch("ms").fill_null(0)
        for name in ("started_at", "finished_at", "last_seen_at")
    ).rows()
    rows = []
    for row, (started, finished, last_seen) in zip(listed.iter_rows(named=True), times, strict=True):
        duration_s = ((finished or last_seen) - started) / 1000 if started else None
        state = (row["source"], row["state"], row["is_excluded"] == "true", int(row["cell"]))
        rows.append((raters[row["session"]], row["session"], *state, started, duration_s))
    frame = pl.DataFrame(rows, schema=SESSION_COLUMNS, orient="row")
    factors = [FACTOR_PREFIX + factor.name for factor in study.spec.design.factors]
    return frame.with_columns(
        listed[name] if name in listed.columns else pl.lit(None, dtype=pl.String).alias(name) for name in factors
    )


def _read(path: Path, kinds: dict[str, pl.DataType | type[pl.DataType]] | None = None) -> pl.DataFrame:
    """A table of the export: texts as they are, everything else as its column says."""
    try:
        frame = pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DialometerError(
            f"the table cannot be read: {error}", where=str(path), remedy="export the study again"
        ) from error
    converted = []
    for name, kind in (kinds or {}).items():
        if isinstance(kind, pl.Datetime):
            converted.append(pl.col(name).str.to_datetime(time_unit="ms", time_zone="UTC"))
        elif kind == pl.Boolean:
            converted.append((pl.col(name) == "true").alias(name))
        else:
            converted.append(pl.col(name).cast(kind))
    is_marked = is_escaped(read_manifest(path.parent), default=False)
    return (restored_frame(frame) if is_marked else frame).with_columns(converted)


def data_from_arrays(
    study: Study, columns: Mapping[str, NDArray[Any]], *, minutes_by_rater: NDArray[np.float64] | None = None
) -> StudyData:
    """Study data from the columns of ``simulate.judgment_arrays.simulate_judgments``; every rater counts as finished.

    ``minutes_by_rater`` gives the lengths of sessions in the order of the raters' numbers; without it they are unknown.
    """
    numbers = np.asarray(columns["rater"])
    cells = np.asarray(columns["cell"])
    raters = np.unique(numbers)
    names = np.array([rater_name(int(number)) for number in range(int(raters.max()) + 1)])
    visits = np.array([session_name(int(number)) for number in range(int(raters.max()) + 1)])
    cell_of = np.zeros(int(raters.max()) + 1, dtype=np.int64)
    cell_of[numbers] = cells
    frame = pl.DataFrame(
        {name: pl.Series(name, given, strict=False) for name, given in _given(columns, names, visits).items()}
    )
    constant = {"source": "simulated", "state": "completed", "is_excluded": False, "is_practice": False}
    blank = [name for name in COLUMNS if name not in frame.columns and name not in constant]
    frame = frame.with_columns(
        *(pl.lit(value).alias(name) for name, value in constant.items()),
        *(pl.lit(None, dtype=COLUMNS[name][0]).alias(name) for name in blank),
    ).select(*(pl.col(name).cast(kind, strict=False) for name, (kind, _) in COLUMNS.items()), "_cell")
    frame = frame.with_columns(_factor_columns(study, pl.col("_cell"))).drop("_cell")
    durations = None if minutes_by_rater is None else 60 * np.asarray(minutes_by_rater, dtype=np.float64)
    sessions = pl.DataFrame(
        {
            "rater": names[raters],
            "session": visits[raters],
            "source": np.full(len(raters), "simulated"),
            "state": np.full(len(raters), "completed"),
            "is_excluded": np.zeros(len(raters), dtype=bool),
            "cell": cell_of[raters],
            "started_at_ms": np.zeros(len(raters), dtype=np.int64),
            "duration_s": durations if durations is not None else [None] * len(raters),
        },
        schema=SESSION_COLUMNS,
        strict=False,
    )
    sessions = sessions.with_columns(_factor_columns(study, pl.col("cell")))
    drawn: list[tuple[str, str, str, float]] = []
    if "probability" in columns:
        drawn = (
            frame.select("rater", "item", "order", pl.Series("p", columns["probability"]))
            .unique(["rater", "item"], maintain_order=True)
            .rows()
        )
    return StudyData(
        study,
        frame,
        sessions,
        pl.DataFrame(schema=ANSWER_COLUMNS),
        pl.DataFrame(schema=FINDING_COLUMNS),
        ("simulated",),
        {},
        draws=draws_table(study, drawn),
    )


def _given(columns: Mapping[str, NDArray[Any]], names: NDArray[Any], sessions: NDArray[Any]) -> dict[str, Any]:
    """Columns under their names in the long table; empty choices are missing."""
    texts = {key: pl.Series(columns[key], dtype=pl.String, strict=False) for key in ("choice", "worst")}
    return {
        "rater": pl.Series(names)[np.asarray(columns["rater"])],
        "session": pl.Series(sessions)[np.asarray(columns["rater"])],
        **{key: columns[key] for key in ("block", "item", "system", "criterion", "scale", "position", "side", "order")},
        "value": pl.Series(columns["value"], dtype=pl.Float64).fill_nan(None),
        **{key: text.replace("", None) for key, text in texts.items()},
        "_cell": np.asarray(columns["cell"]),
    }


def _factor_columns(study: Study, cell: pl.Expr) -> list[pl.Expr]:
    return [
        cell.replace_strict(
            {number: condition[factor.name] for number, condition in enumerate(study.cells)}, return_dtype=pl.String
        ).alias(FACTOR_PREFIX + factor.name)
        for factor in study.spec.design.factors
    ]
