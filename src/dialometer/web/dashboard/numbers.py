"""The numbers of a study's overview: raters, conditions, items, times, flags and costs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dialometer.design.protocol import raters_wanted
from dialometer.model.session import Source
from dialometer.model.study import Study
from dialometer.quality.gold import placed_gold
from dialometer.storage.controls import Controls
from dialometer.storage.counting.counts import GROUPS, Group, JudgmentCounts, SessionCounts, count_sessions, groups_of
from dialometer.storage.sessions import SessionMark
from dialometer.storage.store import Store

N_VISITS = 20_000
"""Times per screen come from the newest visits only, so that the overview of a long study is fast."""
DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class CellCounts:
    """One condition."""

    number: int
    label: str
    finished: int
    active: int
    excluded: int
    screened_out: int
    quota: int | None
    is_open: bool


@dataclass(frozen=True, slots=True)
class ItemCounts:
    """One item: its raters, the slots of those who are under way, and how many raters are wanted."""

    id: str
    block: str
    done: int
    reserved: int
    wanted: int | None


@dataclass(frozen=True, slots=True)
class ScreenSeconds:
    """How long raters stay on a kind of screen: the median, and the range of the middle 80 %."""

    screen: str
    n: int
    median_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """How many raters one quality rule flagged, excluded and screened out."""

    rule: str
    n_flagged: int
    n_excluded: int
    n_screened_out: int


@dataclass(frozen=True, slots=True)
class Money:
    """Costs so far and forecast, in hundredths of the currency; None where the study does not say."""

    currency: str
    per_rater_cents: float
    n_paid: int
    spent_cents: float
    screened_out_cents: float
    """What of it was spent on raters who were screened out."""
    wanted: int | None
    missing: int | None
    forecast_cents: float | None
    planned_cents: float | None
    hours_left: float | None


@dataclass(frozen=True)
class StudyNumbers:
    """Everything the overview shows."""

    at_ms: int
    group: Group
    sources: Sequence[Source]
    counts: SessionCounts
    cells: Sequence[CellCounts]
    items: Sequence[ItemCounts]
    screens: Sequence[ScreenSeconds]
    rules: Sequence[RuleCounts]
    money: Money | None
    """Of simulated raters what people would be paid; None for models."""
    marks: Sequence[SessionMark]
    judgments: JudgmentCounts
    quota: int | None
    wanted: int | None
    """How many raters who count the study needs: its quota, or what follows from judgments per item."""
    planned: int | None
    """How many of them the study file asks for, by which reports go."""
    minutes: float | None
    """Median length of a finished session."""


def chosen_group(present: Sequence[Group], wanted: str = "") -> Group:
    """The group of raters that was chosen; else the first of people, simulated raters and models that are there."""
    return next((group for group in GROUPS if group == wanted), present[0] if present else "people")


def count_study(study: Study, store: Store, at_ms: int, group: str = "") -> StudyNumbers:
    """The numbers of a study for one group of raters; people if there are any."""
    marks = store.sessions.marks()
    controls = store.control.current()
    chosen = chosen_group(groups_of({mark.source for mark in marks}), group)
    sources = GROUPS[chosen]
    own = [mark for mark in marks if mark.source in sources]
    by_source = store.counts.judgments_by_source()
    quota = controls.quota if controls.quota is not None else study.spec.recruitment.quota
    counts = count_sessions(own)
    lengths = [
        (m.finished_at_ms - m.started_at_ms) / 60_000 for m in own if m.state == "completed" and m.finished_at_ms
    ]
    return StudyNumbers(
        at_ms=at_ms,
        group=chosen,
        sources=sources,
        counts=counts,
        cells=_cells(study, controls, own),
        items=count_items(study, store, sources),
        screens=screen_times(store.records.screen_times(N_VISITS, sources)),
        rules=_rules(study, store, {mark.id for mark in own}),
        money=_money(study, own, counts, quota, at_ms) if chosen != "models" else None,
        marks=own,
        judgments=sum((by_source.get(source, JudgmentCounts()) for source in sources), JudgmentCounts()),
        quota=quota,
        wanted=raters_wanted(study, quota),
        planned=raters_wanted(study, study.spec.recruitment.quota),
        minutes=statistics.median(lengths) if lengths else None,
    )


def _cells(study: Study, controls: Controls, marks: Sequence[SessionMark]) -> list[CellCounts]:
    by_cell: dict[int, list[SessionMark]] = {}
    for mark in marks:
        by_cell.setdefault(mark.cell, []).append(mark)
    cells = []
    for number, condition in enumerate(study.cells):
        here = by_cell.get(number, [])
        kept = [mark for mark in here if not mark.is_excluded]
        cells.append(
            CellCounts(
                number=number,
                label=study.cell_label(condition),
                finished=sum(mark.state == "completed" for mark in kept),
                active=sum(mark.state == "active" for mark in kept),
                excluded=len(here) - len(kept),
                screened_out=sum(mark.state == "screened_out" for mark in here),
                quota=controls.cell_quotas.get(number),
                is_open=number not in controls.closed_cells,
            )
        )
    return cells


def count_items(study: Study, store: Store, sources: Sequence[Source]) -> list[ItemCounts]:
    """Raters and reserved slots of every rated item. Gold items that everybody gets have no quota, and models fill none."""
    n_raters = store.counts.raters_by_item(sources)
    reserved = store.counts.reserved_by_item(sources)
    design, placed = study.spec.design, placed_gold(study)
    per_item = design.judgments_per_item
    if per_item is not None and design.is_quota_per_condition:
        per_item *= len(study.cells)
    return [
        ItemCounts(
            item.id,
            item.block,
            n_raters.get(item.id, 0),
            reserved.get(item.id, 0),
            None if item.id in placed or "model" in sources else per_item,
        )
        for item in study.people_items
    ]


def screen_times(visits: Sequence[tuple[str, float]]) -> list[ScreenSeconds]:
    """Times by kind of screen, in the order in which kinds usually come."""
    order = ("screening", "consent", "pre", "instructions", "comprehension", "practice", "chat", "item", "attention")
    by_kind: dict[str, list[float]] = {}
    for screen, seconds in visits:
        by_kind.setdefault(screen.split("/", 1)[0], []).append(seconds)
    rank = {kind: place for place, kind in enumerate((*order, "more", "post"))}
    times_by_kind = []
    for kind in sorted(by_kind, key=lambda kind: rank.get(kind, len(rank))):
        times = sorted(by_kind[kind])
        low, high = times[int(0.1 * (len(times) - 1))], times[int(0.9 * (len(times) - 1) + 0.5)]
        times_by_kind.append(ScreenSeconds(kind, len(times), statistics.median(times), low, high))
    return times_by_kind


def _rules(study: Study, store: Store, sessions: set[str]) -> list[RuleCounts]:
    sessions_by_rule: dict[str, dict[str, set[str]]] = {rule.rule: {} for rule in study.spec.quality}
    for logged in store.records.findings():
        if logged.session_id in sessions:
            of_rule = sessions_by_rule.setdefault(logged.finding.rule, {})
            of_rule.setdefault(logged.finding.action, set()).add(logged.session_id)
    return [
        RuleCounts(rule, *(len(by_action.get(action, ())) for action in ("flag", "exclude", "screen_out")))
        for rule, by_action in sessions_by_rule.items()
    ]


def _money(study: Study, marks: Sequence[SessionMark], counts: SessionCounts, quota: int | None, at_ms: int) -> Money:
    """Finished sessions are paid, excluded ones too, and imported ones were paid elsewhere; the forecast adds those that will
    have to replace excluded ones."""
    pay = study.spec.recruitment
    per_rater = pay.cost_cents()
    here = count_sessions(mark for mark in marks if mark.source != "imported")
    on_screened_out = here.screened_out * pay.screen_out_pay_cents * (1 + pay.fee_percent / 100)
    wanted = raters_wanted(study, quota)
    missing = None if wanted is None else max(0, wanted - counts.valid)
    share_kept = counts.valid / counts.finished if counts.finished else 1.0
    spent = here.finished * per_rater + on_screened_out
    forecast = None
    if missing is not None and (share_kept > 0 or not missing):
        forecast = spent + (missing / share_kept * per_rater if missing else 0.0)
    ended = [mark.finished_at_ms for mark in marks if mark.state == "completed" and mark.finished_at_ms]
    return Money(
        currency=pay.currency,
        per_rater_cents=per_rater,
        n_paid=here.finished,
        spent_cents=spent,
        screened_out_cents=on_screened_out,
        wanted=wanted,
        missing=missing,
        forecast_cents=forecast,
        planned_cents=None if wanted is None else wanted * per_rater,
        hours_left=_hours_left(ended, missing, share_kept, at_ms),
    )


def _hours_left(ended: Sequence[int], missing: int | None, share_kept: float, at_ms: int) -> float | None:
    """At the pace of the last day; None when there is none."""
    recent = [end for end in ended if end > at_ms - DAY_MS]
    if not missing or len(recent) < 3 or not share_kept:
        return None
    hours = max(1 / 60, (at_ms - min(recent)) / 3_600_000)
    return missing / share_kept / (len(recent) / hours)


def with_times(marks: Sequence[SessionMark]) -> list[SessionMark]:
    """Marks in the order of arrival, erased sessions at the time of the session before them (or after them).

    Of an erased session only the day is kept, but sessions are numbered as they arrive, so their place is known. Where
    all are erased there is no time to show.
    """
    ordered = sorted(marks, key=lambda mark: mark.ordinal)
    known = [mark for mark in ordered if not mark.is_erased]
    if not known:
        return []
    placed, at = [], known[0].started_at_ms
    for mark in ordered:
        at = at if mark.is_erased else mark.started_at_ms
        moved = replace(mark, started_at_ms=at, last_seen_at_ms=at, finished_at_ms=at)
        placed.append(moved if mark.is_erased else mark)
    return placed


def over_time(sessions: Sequence[SessionMark]) -> Mapping[str, list[tuple[float, float]]]:
    """Arrived, finished, screened out and active over time, as points (ms, count)."""
    marks = with_times(sessions)

    def summed(moments: Sequence[int]) -> list[tuple[float, float]]:
        return [(float(at), float(i)) for i, at in enumerate(sorted(moments), start=1)]

    ended = [mark for mark in marks if mark.finished_at_ms]
    out = [m.finished_at_ms for m in ended if m.state in ("screened_out", "declined") and m.finished_at_ms]
    changes = [(mark.started_at_ms, 1) for mark in marks]
    changes += [(mark.finished_at_ms or mark.last_seen_at_ms, -1) for mark in marks if mark.state != "active"]
    active, n = [], 0
    for at, change in sorted(
        changes, key=lambda moment: (moment[0], -moment[1])
    ):  # who comes and leaves at once came first
        n += change
        active.append((float(at), float(n)))
    return {
        "arrived": summed([mark.started_at_ms for mark in marks]),
        "finished": summed([m.finished_at_ms for m in ended if m.state == "completed" and m.finished_at_ms]),
        "screened out or declined": summed(out),
        "active": active,
    }
