"""What the pages of one rater and of one item show: the path and its answers, gold results, disagreement."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dialometer.flow.steps import Paths, Step
from dialometer.model.dialogue import Turn
from dialometer.model.item import ArenaItem, CandidateItem, ChatItem, DialogueItem, Item, PairItem, ResponsesItem
from dialometer.model.quality import Finding, newly_found
from dialometer.model.scale import Value
from dialometer.model.session import Answer, Judgment, ScreenVisit, Session, SessionRecord, Source
from dialometer.model.study import Study
from dialometer.model.values import answer_words
from dialometer.quality.gold import Gold
from dialometer.storage.counting.counts import CountedSession, JudgmentCounts, does_count
from dialometer.storage.sessions import SessionMark
from dialometer.storage.table import rater_name
from dialometer.web.dashboard.running_studies import RunningStudy
from dialometer.web.dashboard.table import Grid, GridColumn
from dialometer.web.dashboard.translating import translated


@dataclass(frozen=True)
class PathStep:
    """A screen of the path with what was done on it; ``visit`` is None for those not reached and before consent."""

    number: int
    kind: str
    screen: str
    item_id: str
    visit: ScreenVisit | None
    answers: Sequence[tuple[str, str]]
    is_gold: bool
    gold_failed: bool
    is_done: bool = True


@dataclass(frozen=True)
class GoldResult:
    """A gold item and whether the rater passed it; None where it was not answered."""

    item_id: str
    wanted: str
    given: str
    has_passed: bool | None


def rater_record(running: RunningStudy, session_id: str) -> dict[str, Any]:
    """Everything the page of a rater shows. Of a rater who was erased only the session itself is left."""
    session = running.store.sessions.get(session_id)
    record = running.store.records.of_session(session_id)
    findings = list(running.store.records.findings(session_id))
    gold = gold_results(running.study, record.judgments)
    return {
        "session": session,
        "name": rater_names(running)[session_id],
        "condition": running.study.cell_label(session.condition),
        "steps": _steps(running.study, session, record, gold),
        "gold": gold,
        "findings": findings,
        "so_far": so_far(running.study, session, record, [logged.finding for logged in findings]),
        "decisions": list(running.store.exclusions.log(session_id)),
        "answers": record.answers,
        "chats": running.store.conversations.turns(session_id) if is_live(running.study) else [],
        "judgments": running.store.counts.judgments_by_session(session_id).get(session_id, JudgmentCounts()),
        "focus_lost_n": sum(visit.focus_lost_n for visit in record.visits),
        "focus_lost_s": sum(visit.focus_lost_s for visit in record.visits),
        "device": next((visit.device for visit in reversed(record.visits) if visit.device), ""),
    }


def is_live(study: Study) -> bool:
    """Whether raters talk with systems."""
    return study.spec.items.kind in ("chat", "arena")


def so_far(study: Study, session: Session, record: SessionRecord, known: Sequence[Finding]) -> list[Finding]:
    """What the rules that act at the end would find if an unfinished session ended now.

    Rules about the time of a whole session are left out.
    """
    if session.state not in ("active", "stale") or not session.rater_id:
        return []
    counted = SessionRecord(
        [judgment for judgment in record.judgments if not judgment.is_practice], record.answers, record.visits
    )
    rules = [rule for rule in study.spec.quality if rule.acts == "end" and not rule.needs_whole_session]
    return newly_found(rules, study, session, counted, known)


def gold_results(study: Study, judgments: Sequence[Judgment]) -> list[GoldResult]:
    """A rater's answers to gold items."""
    results = []
    for rule in study.spec.quality:
        if not isinstance(rule, Gold):
            continue
        ids = set(rule.gold_ids(study))
        for judgment in judgments:
            if judgment.item_id not in ids or judgment.is_practice:
                continue
            for wanted in rule.acceptable:
                scale = study.judged_on(judgment.criterion, judgment.block, study.cells[0])
                if judgment.criterion == wanted.criterion and wanted.system in ("", judgment.system):
                    about = (
                        wanted.criterion
                        if not wanted.system
                        else translated("{1} of {2}", wanted.criterion, wanted.system)
                    )
                    given = f"{judgment.criterion} = {judgment.value}"
                    passed = wanted.passes(judgment.value, scale)
                    results.append(GoldResult(judgment.item_id, f"{about} {_words(wanted)}", given, passed))
    return results


def _words(wanted: Any) -> str:
    conditions = []
    if wanted.at_least is not None:
        conditions.append(translated("at least {1}", f"{wanted.at_least:g}"))
    if wanted.at_most is not None:
        conditions.append(translated("at most {1}", f"{wanted.at_most:g}"))
    if wanted.one_of is not None:
        conditions.append(translated("one of {1}", ", ".join(map(str, wanted.one_of))))
    return translated("{1} and {2}", *conditions) if len(conditions) > 1 else "".join(conditions)


def _steps(study: Study, session: Session, record: SessionRecord, gold: Sequence[GoldResult]) -> list[PathStep]:
    """The planned path where the study still knows it, else the screens that were visited."""
    newest = {visit.screen: visit for visit in record.visits}
    failed = {result.item_id for result in gold if result.has_passed is False}
    are_gold = study.gold_ids
    try:
        planned: Sequence[Step] = Paths(study, 1).of(session.draw).steps
    except (KeyError, StopIteration, IndexError):  # a draw of an earlier version of the study
        planned = ()
    if not planned:
        return [
            PathStep(i, visit.screen.split("/")[0], visit.screen, "", visit, (), False, False)
            for i, visit in enumerate(record.visits, start=1)
        ]
    steps = []
    for number, step in enumerate(planned, start=1):
        item_id = step.task.item_id if step.task else ""
        visit = newest.get(step.key)
        if step.kind == "comprehension" and visit is None and session.step >= number:
            continue  # a second attempt that was not needed
        is_gold = item_id in are_gold
        # Before consent no times are stored, so the screening is known by how far the session got.
        is_done = visit is not None or (step.kind == "screening" and session.step >= number)
        steps.append(
            PathStep(
                number=number,
                kind="practice" if step.task and step.task.is_practice else step.kind,
                screen=step.key,
                item_id=item_id,
                visit=visit,
                answers=_answers(step, record.judgments, record.answers) if is_done else (),
                is_gold=is_gold,
                gold_failed=is_gold and item_id in failed,
                is_done=is_done,
            )
        )
    return steps


def _answers(step: Step, judgments: Sequence[Judgment], answers: Sequence[Answer]) -> list[tuple[str, str]]:
    if step.kind == "item" and step.task:
        return [
            (_about(judgment), answer_words(judgment.value))
            for judgment in judgments
            if judgment.item_id == step.task.item_id
            and judgment.criterion in step.criteria
            and judgment.is_practice == step.task.is_practice
        ]
    part = step.key if step.kind == "comprehension" else step.kind
    names = {step.check.name} if step.check else None
    return [
        (a.question, answer_words(a.value)) for a in answers if a.part == part and (not names or a.question in names)
    ]


def _about(judgment: Judgment) -> str:
    turn = translated(", turn {1}", judgment.turn + 1) if judgment.turn is not None else ""
    return f"{judgment.criterion}{f', {judgment.system}' if judgment.system else ''}{turn}"


_COLUMNS = (
    GridColumn("rater", "Rater"),
    GridColumn("criterion", "Criterion", is_facet=True),
    GridColumn("system", "System", is_facet=True),
    GridColumn("answer", "Answer"),
    GridColumn("order", "Shown as", "marks"),
    GridColumn("seconds", "Seconds", "number"),
    GridColumn("answered", "When", "time"),
    GridColumn("counts", "Analysis", is_facet=True),
)


@dataclass(frozen=True)
class Summed:
    """The answers on one criterion (of one system): how many, the middle, and how far apart."""

    criterion: str
    system: str
    n: int
    middle: str
    counts: Sequence[tuple[str, int]]
    disagreement: float | None


@dataclass(frozen=True)
class ItemPart:
    """Some turns of an item under their title, and what the system was told before."""

    title: str
    turns: Sequence[Turn]
    system_prompt: str = ""


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """Everything the page of an item shows."""

    parts: Sequence[ItemPart]
    n_raters: int
    summed: Sequence[Summed]
    grid: Grid


def spread(values: Sequence[Value], reach: float | None) -> float | None:
    """How much answers disagree, from 0 (all the same) on; None where there are fewer than two.

    Numbers on a scale with two ends: the standard deviation as a share of the largest possible one, half of ``reach``.
    Numbers without ends (magnitudes): the standard deviation over the mean. Names: the share of pairs of raters who
    chose differently.
    """
    return spread_of([(value, 1) for value in values], reach)


def spread_of(counts: Sequence[tuple[Value, int]], reach: float | None) -> float | None:
    """The same from answers and how often each was given."""
    n = sum(times for _, times in counts)
    if n < 2:
        return None
    numbers = [
        (float(value), times)
        for value, times in counts
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if len(numbers) == len(counts):
        mean = math.fsum(value * times for value, times in numbers) / n
        deviation = math.sqrt(math.fsum(times * (value - mean) ** 2 for value, times in numbers) / n)
        whole = reach / 2 if reach else abs(mean)
        return deviation / whole if whole else 0.0
    alike: Counter[str] = Counter()
    for value, times in counts:
        alike[answer_words(value)] += times
    return 1 - sum(c * (c - 1) for c in alike.values()) / (n * (n - 1))


def scored(study: Study, criterion: str, value: Value) -> Value:
    """The number of an answer that has parts (a checklist, marks), where its scale gives one; other answers as they are."""
    declared = study.criteria_by_name.get(criterion)
    scale = study.spec.scales.get(declared.scale) if declared else None
    number = scale.number(value) if isinstance(value, dict) and scale is not None and scale.is_numeric else None
    return value if number is None else round(number, 1)


def reach_of(study: Study, criterion: str) -> float | None:
    """From one end of a criterion's scale to the other; None where it has no ends, or not the same everywhere."""
    declared = study.criteria_by_name.get(criterion)
    if declared is None:
        return None
    reaches = set()
    for scale in study.scales_of(declared):
        low, high = scale.bounds()
        has_ends = scale.is_numeric and scale.unit == "points" and math.isfinite(high - low)
        reaches.add(high - low if has_ends else None)
    return reaches.pop() if len(reaches) == 1 else None


def disagreement(running: RunningStudy, sources: Sequence[Source]) -> dict[str, float]:
    """The mean spread of each item's answers over criteria, systems and turns, of raters who count."""
    groups: dict[str, dict[tuple[str, str, int], list[tuple[Value, int]]]] = {}
    for item_id, criterion, system, turn, value, n in running.store.counts.value_counts(
        sources, without=running.study.written_types
    ):
        given = groups.setdefault(item_id, {}).setdefault((criterion, system, turn), [])
        given.append((scored(running.study, criterion, value), n))
    reaches = {criterion.name: reach_of(running.study, criterion.name) for criterion in running.study.spec.criteria}
    by_item = {}
    for item_id, by_key in groups.items():
        spreads = [spread_of(counts, reaches.get(key[0])) for key, counts in by_key.items()]
        known = [share for share in spreads if share is not None]
        if known:
            by_item[item_id] = round(statistics.fmean(known), 3)
    return by_item


def item_record(running: RunningStudy, item: Item, sources: Sequence[Source]) -> ItemRecord:
    """The item's texts and answers, of raters of these sources, as in the list of items."""
    marks = {mark.id: mark for mark in running.store.sessions.marks() if mark.source in sources}
    names = rater_names(running)
    judgments = [j for j in running.store.records.judgments_on(item.id) if j.session_id in marks]
    by_key: dict[tuple[str, str], list[Value]] = {}
    rows = []
    for judgment in judgments:
        mark = marks[judgment.session_id]
        counts = _analysis_of(judgment, mark)
        if counts == "counts" and judgment.scale not in running.study.written_types:
            turn = f" (turn {judgment.turn + 1})" if judgment.turn is not None else ""
            by_key.setdefault((judgment.criterion + turn, judgment.system), []).append(
                scored(running.study, judgment.criterion, judgment.value)
            )
        rows.append(
            {
                "rater": names[mark.id],
                "href": f"../raters/{mark.ordinal}",
                "criterion": judgment.criterion,
                "system": judgment.system,
                "answer": answer_words(judgment.value),
                "order": list(judgment.order) if len(judgment.order) > 1 else [],
                "seconds": round((judgment.answered_at_ms - judgment.shown_at_ms) / 1000, 1),
                "answered": judgment.answered_at_ms,
                "counts": counts,
            }
        )
    n_raters = running.store.counts.raters_by_item(sources, item.id).get(item.id, 0)
    summed = [
        Summed(
            criterion,
            system,
            len(values),
            _middle(values),
            _counted(values),
            spread(values, reach_of(running.study, criterion.split(" (")[0])),
        )
        for (criterion, system), values in sorted(by_key.items())
    ]
    return ItemRecord(
        parts_of(item), n_raters, summed, Grid(f"{running.name}-{_safe(item.id)}", _COLUMNS, rows, start="criterion")
    )


def rater_names(running: RunningStudy) -> dict[str, str]:
    """The pseudonym of each session's rater, the same as in the export."""
    return {session_id: rater_name(number) for session_id, number in running.store.sessions.rater_numbers().items()}


def analysis_status(session: CountedSession) -> str:
    """What becomes of a session in the analysis, in the same words on every page."""
    if session.is_excluded:
        return "excluded"
    return "counts" if does_count(session) else "does not count"


def _analysis_of(judgment: Judgment, mark: SessionMark) -> str:
    """What becomes of a judgment in the analysis."""
    return "practice" if judgment.is_practice else analysis_status(mark)


def _safe(text: str) -> str:
    return "".join(char if char.isascii() and (char.isalnum() or char in "-_") else "-" for char in text)[:60]


def _middle(values: Sequence[Value]) -> str:
    numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(values):
        return translated("median {1}", f"{statistics.median(numbers):g}")
    top, n = Counter(map(answer_words, values)).most_common(1)[0]
    return translated("most often {1} ({2} of {3})", top, n, len(values))


def _counted(values: Sequence[Value], n: int = 12) -> list[tuple[str, int]]:
    counts = Counter(map(answer_words, values))
    if all(isinstance(value, int | float) for value in values):
        return sorted(counts.items(), key=lambda pair: float(pair[0]))[:n]
    return counts.most_common(n)


def parts_of(item: Item) -> list[ItemPart]:
    """What the item shows, with the names that raters never see."""
    match item:
        case ResponsesItem():
            parts = [ItemPart(translated("Context"), item.context, item.system_prompt)]
            if item.standard:
                parts.append(ItemPart(translated("Standard response"), (Turn("", item.standard),)))
            own = item.system_prompts
            return parts + [ItemPart(name, (item.response_turn(name),), own.get(name, "")) for name in item.responses]
        case PairItem():
            told = item.system_prompt
            return [ItemPart(side.system, side.turns, side.system_prompt or told) for side in (item.a, item.b)]
        case DialogueItem():
            return [ItemPart(item.system, item.turns, item.system_prompt)]
        case CandidateItem():
            ranks = ", ".join(translated("{1} at rank {2}", system, rank) for system, rank in item.ranks.items())
            gold = translated("gold answer" if item.is_gold else "candidate")
            title = f"{gold}{f' ({ranks})' if ranks else ''}"
            return [
                ItemPart(translated("Context"), item.context, item.system_prompt),
                ItemPart(title, (item.candidate,)),
            ]
        case ArenaItem():
            opening = [Turn("Agent", item.opening, "agent")] if item.opening else []
            return [
                ItemPart(
                    translated("Two of {1}: {2}", ", ".join(item.systems), item.scenario), opening, item.system_prompt
                )
            ]
        case ChatItem():
            opening = [Turn("Agent", item.opening, "agent")] if item.opening else []
            title = f"{item.system}: {item.scenario}" if item.scenario else item.system
            return [ItemPart(title, opening, item.system_prompt)]
