"""One rater's way through a study, put together from what the session left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dialometer.flow.steps import Paths, Step
from dialometer.model.quality import Finding
from dialometer.model.session import Answer, Judgment, ScreenVisit, Session, SessionRecord
from dialometer.model.study import Study
from dialometer.quality.gold import Gold
from dialometer.quality.times import SessionTime
from dialometer.table import rater_name
from dialometer.web.desk.held import Running


@dataclass(frozen=True)
class PathStep:
    """A screen of the path with what was done on it; ``visit`` is None for those not reached."""

    number: int
    kind: str
    screen: str
    item_id: str
    visit: ScreenVisit | None
    answers: Sequence[tuple[str, str]]
    is_gold: bool
    gold_failed: bool


@dataclass(frozen=True)
class GoldResult:
    """A gold item and whether the rater passed it; None where it was not answered."""

    item_id: str
    wanted: str
    given: str
    has_passed: bool | None


def rater_record(running: Running, session_id: str) -> dict[str, Any]:
    """Everything the page of a rater shows. A withdrawn rater has left nothing but the place."""
    session = running.store.session(session_id)
    record = running.store.record_of(session_id)
    findings = list(running.store.findings(session_id))
    gold = gold_results(running.study, record.judgments)
    return {
        "session": session,
        "name": rater_name(session.ordinal),
        "condition": running.study.cell_label(session.condition),
        "steps": _steps(running.study, session, record, gold),
        "gold": gold,
        "findings": findings,
        "so_far": so_far(running.study, session, record, {logged.finding.rule for logged in findings}),
        "decisions": list(running.store.exclusion_log(session_id)),
        "answers": record.answers,
        "chats": running.store.chat_turns(session_id) if running.study.spec.items.kind == "chat" else [],
        "n_judgments": sum(not judgment.is_practice for judgment in record.judgments),
        "focus_lost_n": sum(visit.focus_lost_n for visit in record.visits),
        "focus_lost_s": sum(visit.focus_lost_s for visit in record.visits),
        "device": next((visit.device for visit in reversed(record.visits) if visit.device), ""),
    }


def so_far(study: Study, session: Session, record: SessionRecord, known: set[str]) -> list[Finding]:
    """What the rules that look at the end would find if a session under way, or one that was left, ended now.

    Rules about the time of a whole session have nothing to say about a part of one.
    """
    if session.state not in ("active", "stale"):
        return []
    counted = SessionRecord(
        [judgment for judgment in record.judgments if not judgment.is_practice], record.answers, record.visits
    )
    rules = [
        rule
        for rule in study.spec.quality
        if rule.acts == "end" and rule.rule not in known and not isinstance(rule, SessionTime)
    ]
    return [finding for rule in rules for finding in rule.findings(study, session, counted)]


def gold_results(study: Study, judgments: Sequence[Judgment]) -> list[GoldResult]:
    """How a rater answered what the gold rules ask."""
    results = []
    for rule in study.spec.quality:
        if not isinstance(rule, Gold):
            continue
        ids = set(rule.gold_ids(study))
        for judgment in judgments:
            if judgment.item_id not in ids or judgment.is_practice:
                continue
            for wanted in rule.acceptable:
                if judgment.criterion == wanted.criterion and wanted.system in ("", judgment.system):
                    about = f"{wanted.criterion}{f' of {wanted.system}' if wanted.system else ''}"
                    given = f"{judgment.criterion} = {judgment.value}"
                    passed = wanted.passes(judgment.value)
                    results.append(GoldResult(judgment.item_id, f"{about} {_words(wanted)}", given, passed))
    return results


def _words(wanted: Any) -> str:
    said = []
    if wanted.at_least is not None:
        said.append(f"at least {wanted.at_least:g}")
    if wanted.at_most is not None:
        said.append(f"at most {wanted.at_most:g}")
    if wanted.one_of is not None:
        said.append(f"one of {', '.join(map(str, wanted.one_of))}")
    return " and ".join(said)


def _steps(study: Study, session: Session, record: SessionRecord, gold: Sequence[GoldResult]) -> list[PathStep]:
    """The planned path where the study still knows it, else the screens that were visited."""
    newest = {visit.screen: visit for visit in record.visits}
    failed = {result.item_id for result in gold if result.has_passed is False}
    are_gold = {i for rule in study.spec.quality if isinstance(rule, Gold) for i in rule.gold_ids(study)}
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
        steps.append(
            PathStep(
                number=number,
                kind="practice" if step.task and step.task.is_practice else step.kind,
                screen=step.key,
                item_id=item_id,
                visit=visit,
                answers=_answers(step, record.judgments, record.answers) if visit else (),
                is_gold=is_gold,
                gold_failed=is_gold and item_id in failed,
            )
        )
    return steps


def _answers(step: Step, judgments: Sequence[Judgment], answers: Sequence[Answer]) -> list[tuple[str, str]]:
    if step.kind == "item" and step.task:
        return [
            (_about(judgment), shown(judgment.value))
            for judgment in judgments
            if judgment.item_id == step.task.item_id
            and judgment.criterion in step.criteria
            and judgment.is_practice == step.task.is_practice
        ]
    part = step.key if step.kind == "comprehension" else step.kind
    names = {step.check.name} if step.check else None
    return [(a.question, shown(a.value)) for a in answers if a.part == part and (not names or a.question in names)]


def _about(judgment: Judgment) -> str:
    turn = f", turn {judgment.turn + 1}" if judgment.turn is not None else ""
    return f"{judgment.criterion}{f', {judgment.system}' if judgment.system else ''}{turn}"


def shown(value: object) -> str:
    """An answer in words."""
    match value:
        case {"best": best, "worst": worst}:
            return f"best {best}, worst {worst}"
        case list():
            return " > ".join(map(str, value))
        case float():
            return f"{value:g}"
        case _:
            return str(value)
