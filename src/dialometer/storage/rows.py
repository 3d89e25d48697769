"""Between rows and the model: the one place that knows how a dataclass looks in a table."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import Row, Table

from dialometer.errors import StorageError
from dialometer.model.quality import Finding
from dialometer.model.session import Answer, Dispute, Draw, DrawnSystems, Judgment, ScreenVisit, Session
from dialometer.storage.database import Values
from dialometer.storage.schema import NO_TURN, answers, visits

# One encoder for all rows: building one per call costs more than the encoding.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def to_json(value: object) -> str:
    """JSON as it is stored. What JSON cannot hold (NaN, objects) is refused here, not found out when reading."""
    if type(value) is int:
        return str(value)
    try:
        return _encode(value)
    except (TypeError, ValueError) as error:
        raise StorageError(
            f"a value cannot be stored as JSON: {error}", remedy="store numbers, texts, lists or mappings"
        ) from error


@lru_cache(maxsize=4096)
def _order_to_json(order: tuple[str, ...]) -> str:
    """The order of a screen's systems; few different ones are used again and again."""
    return to_json(list(order)) if order else ""


def token_hash(token: str) -> str:
    """What is stored of a session's token, so that a copy of the database opens nobody's session."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def draw_to_json(draw: Draw) -> str:
    """A draw as JSON; the order of blocks and items is kept."""
    items = {block: list(ids) for block, ids in draw.items.items()}
    content = {"ordinal": draw.ordinal, "cell": draw.cell, "blocks": list(draw.blocks), "items": items}
    if draw.pairs:
        content["pairs"] = {item: [*pair.systems, pair.probability] for item, pair in draw.pairs.items()}
    if draw.chances:
        content["chances"] = dict(draw.chances)
    if draw.disputes:
        content["disputes"] = {
            item: [[dispute.criterion, dispute.system, dispute.turn, list(dispute.judgments)] for dispute in several]
            for item, several in draw.disputes.items()
        }
    return to_json(content)


def draw_from_json(text: str) -> Draw:
    """The draw that :func:`draw_to_json` wrote."""
    raw = json.loads(text)
    # Thousands of sessions name the same items: each name is in memory once.
    items = {block: tuple(map(sys.intern, ids)) for block, ids in raw["items"].items()}
    pairs = {item: DrawnSystems(tuple(systems), chance) for item, (*systems, chance) in raw.get("pairs", {}).items()}
    disputes = {
        item: tuple(Dispute(criterion, system, turn, tuple(ids)) for criterion, system, turn, ids in several)
        for item, several in raw.get("disputes", {}).items()
    }
    blocks, chances = tuple(raw["blocks"]), raw.get("chances", {})
    return Draw(raw["ordinal"], raw["cell"], blocks, items, pairs, chances, disputes)


def slot_rows(session_id: str, draw: Draw, source: str, at_ms: int) -> list[Values]:
    """One reserved place for each item of a draw; an item that is shown twice takes one place."""
    blocks = {item: block for block in reversed(list(draw.items)) for item in draw.items[block]}
    return [
        {
            "session_id": session_id,
            "item_id": item,
            "block": block,
            "cell": draw.cell,
            "source": source,
            "reserved_at_ms": at_ms,
            "is_released": False,
        }
        for item, block in blocks.items()
    ]


def session_from(row: Row[Any]) -> Session:
    """A session; one that was withdrawn or declined has no rater any more."""
    return Session(
        id=row.id,
        rater_id=row.rater_id or "",
        ordinal=row.ordinal,
        condition=json.loads(row.condition),
        draw=draw_from_json(row.draw),
        state=row.state,
        step=row.step,
        source=row.source,
        study_version=row.study_version,
        consent_version=row.consent_version,
        started_at_ms=row.started_at_ms,
        last_seen_at_ms=row.last_seen_at_ms,
        finished_at_ms=row.finished_at_ms,
        is_excluded=row.is_excluded,
        language=row.language,
    )


def judgment_values(judgment: Judgment) -> Values:
    """A judgment as a row; its number is given by the database."""
    return {
        "session_id": judgment.session_id,
        "item_id": judgment.item_id,
        "criterion": judgment.criterion,
        "system": judgment.system,
        "turn": NO_TURN if judgment.turn is None else judgment.turn,
        "value": to_json(judgment.value),
        "scale": judgment.scale,
        "block": judgment.block,
        "position": judgment.position,
        "side": judgment.side,
        "order": _order_to_json(judgment.order),
        "shown_at_ms": judgment.shown_at_ms,
        "answered_at_ms": judgment.answered_at_ms,
        "is_late": judgment.is_late,
        "is_practice": judgment.is_practice,
        "replaces": judgment.replaces,
        "corrected_by": judgment.corrected_by,
        "reason": judgment.reason,
    }


def _fields(table: Table, row: Row[Any]) -> dict[str, Any]:
    """A whole row as a mapping; much faster than the row's own, and reading a session's record needs hundreds."""
    return dict(zip(_names(table), row, strict=True))


@lru_cache
def _names(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns)


def _from_json(text: str) -> Any:
    """A stored value; most are whole numbers, which need no parser."""
    return int(text) if text.isdigit() else json.loads(text)


@lru_cache(maxsize=1024)
def _order_from_json(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text)) if text else ()


def judgment_from(row: Row[Any]) -> Judgment:
    """A judgment with the number under which a correction can name it; a session's record needs hundreds at once."""
    columns: Any = row  # by their order in the table; by name it takes three times as long
    (
        number,
        session_id,
        item_id,
        criterion,
        system,
        turn,
        value,
        scale,
        block,
        position,
        side,
        order,
        shown_at_ms,
        answered_at_ms,
        is_late,
        is_practice,
        replaces,
        corrected_by,
        reason,
    ) = columns
    return Judgment(
        id=number,
        session_id=session_id,
        item_id=item_id,
        criterion=criterion,
        system=system,
        turn=None if turn == NO_TURN else turn,
        value=_from_json(value),
        scale=scale,
        block=block,
        position=position,
        side=side,
        order=_order_from_json(order),
        shown_at_ms=shown_at_ms,
        answered_at_ms=answered_at_ms,
        is_late=is_late,
        is_practice=is_practice,
        replaces=replaces,
        corrected_by=corrected_by,
        reason=reason,
    )


def answer_values(answer: Answer) -> Values:
    """An answer as a row; its number is given by the database."""
    return {
        "session_id": answer.session_id,
        "part": answer.part,
        "question": answer.question,
        "value": to_json(answer.value),
        "shown_at_ms": answer.shown_at_ms,
        "answered_at_ms": answer.answered_at_ms,
        "replaces": answer.replaces,
        "corrected_by": answer.corrected_by,
        "reason": answer.reason,
    }


def answer_from(row: Row[Any]) -> Answer:
    """An answer with the number under which a correction can name it."""
    fields = _fields(answers, row)
    fields["value"] = _from_json(fields["value"])
    return Answer(**fields)


def visit_values(visit: ScreenVisit) -> Values:
    """A visit of a screen as a row."""
    return {
        "session_id": visit.session_id,
        "screen": visit.screen,
        "shown_at_ms": visit.shown_at_ms,
        "submitted_at_ms": visit.submitted_at_ms,
        "first_input_at_ms": visit.first_input_at_ms,
        "focus_lost_n": visit.focus_lost_n,
        "focus_lost_s": visit.focus_lost_s,
        "device": visit.device,
        "is_late": visit.is_late,
        "opened": to_json(list(visit.opened)) if visit.opened else "",
    }


def visit_from(row: Row[Any]) -> ScreenVisit:
    """A visit of a screen."""
    fields = _fields(visits, row)
    del fields["id"]
    fields["opened"] = tuple(json.loads(fields["opened"])) if fields["opened"] else ()
    return ScreenVisit(**fields)


def finding_values(session_id: str, finding: Finding, at_ms: int) -> Values:
    """A finding as a row."""
    return {
        "session_id": session_id,
        "rule": finding.rule,
        "action": finding.action,
        "reason": finding.reason,
        "details": to_json(dict(finding.details)),
        "at_ms": at_ms,
    }


def mapping_from_json(text: str) -> Mapping[str, Any]:
    """A stored JSON object."""
    result: dict[str, Any] = json.loads(text)
    return result
