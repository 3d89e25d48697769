"""Adjudication: where raters disagree about the same thing, so that somebody else settles it.

A thing is one item (and system, and turn) on one criterion in one condition: raters who were shown it otherwise may well
answer otherwise. What is done with it is up to the callers: :func:`~dialometer.design.assign.draw_adjudication` hands it to
adjudicators, reports count it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dialometer.model.scale import Scale, Value
from dialometer.model.session import Dispute
from dialometer.model.study import Study

Disputes = Mapping[tuple[int, str], tuple[Dispute, ...]]
"""What raters disagree about, by condition and item."""


class Thing(NamedTuple):
    """What raters judge: one criterion of an item (of a system, or of a turn) as it is shown in one condition."""

    cell: int
    block: str
    item: str
    criterion: str
    system: str
    turn: int | None


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one rater answered about a thing."""

    rater: str
    value: Value
    number: int = 0
    """Of the judgment in the database."""


def settled_scale(study: Study, thing: Thing) -> Scale | None:
    """The scale of something that can be settled; None for what is not, as answers in raters' own words."""
    rule = study.spec.adjudication
    is_known = thing.item in study.items_by_id and thing.cell < len(study.cells)  # the study may have changed since
    if rule is None or not is_known or thing.item in study.gold_ids:
        return None
    scale = study.judged_on(thing.criterion, thing.block, study.cells[thing.cell])
    if scale is None or (scale.takes_own_words and not scale.option_names()):
        return None
    return scale if not rule.criteria or thing.criterion in rule.criteria else None


def judged_enough(study: Study, judged: Iterable[tuple[Thing, Opinion]]) -> dict[Thing, tuple[list[Opinion], bool]]:
    """The things that as many raters have judged as the study asks for first, what each said, and whether they disagree.

    Of several answers of one rater the last one counts.
    """
    rule = study.spec.adjudication
    if rule is None:
        return {}
    by_thing: dict[Thing, dict[str, Opinion]] = {}
    for thing, opinion in judged:
        by_thing.setdefault(thing, {})[opinion.rater] = opinion
    found: dict[Thing, tuple[list[Opinion], bool]] = {}
    for thing, by_rater in by_thing.items():
        scale = settled_scale(study, thing) if len(by_rater) >= rule.raters else None
        if scale is not None:
            opinions = list(by_rater.values())
            values = [opinion.value for opinion in opinions]
            found[thing] = opinions, scale.differ(values, rule.distance_on(thing.criterion))
    return found


def disputes_among(study: Study, judged: Iterable[tuple[Thing, Opinion]]) -> dict[tuple[int, str], tuple[Dispute, ...]]:
    """Everything that raters disagree about, by condition and item."""
    disputes: dict[tuple[int, str], list[Dispute]] = {}
    for thing, (opinions, is_disputed) in judged_enough(study, judged).items():
        if is_disputed:
            numbers = tuple(sorted(opinion.number for opinion in opinions))
            dispute = Dispute(thing.criterion, thing.system, thing.turn, numbers)
            disputes.setdefault((thing.cell, thing.item), []).append(dispute)
    return {key: tuple(several) for key, several in disputes.items()}
