"""A study file whose items were exchanged: its systems, comparisons and rules follow, and every change is told."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from dialometer.exchange.own_systems.item_columns import NewItems
from dialometer.model.item import ItemKind

SHOWN_BY_ITEMS = frozenset({"responses", "transcript_pair", "dialogue"})
"""Kinds whose items hold what every system said; systems of other kinds may have nothing in the items."""


def with_items(
    content: Mapping[str, Any], new: NewItems, kind: ItemKind, *, is_more: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """The data of a study file with these items in place of its own, or beside them with ``is_more``; and what changed."""
    data: dict[str, Any] = copy.deepcopy(dict(content))
    notes: list[str] = []
    own = [system for system in data.get("systems") or () if isinstance(system, dict)]
    known = [system.get("name") for system in own]
    added = {name: label for name, label in new.systems.items() if name not in known}
    gone = [] if is_more or kind not in SHOWN_BY_ITEMS else [name for name in known if name not in new.systems]
    if added or gone:
        data["systems"] = [system for system in own if system.get("name") not in gone]
        data["systems"] += [
            {"name": name, **({"label": label} if label != name else {})} for name, label in added.items()
        ]
    if added:
        notes.append(f"Systems added: {', '.join(added)}")
    if gone:
        notes.append(f"Systems removed, since no item shows them: {', '.join(map(str, gone))}")
        _fit_comparisons(data, gone, notes)
    if new.speakers:
        data["speakers"] = {**(data.get("speakers") or {}), **new.speakers}
    if not is_more:
        _fit_design(data, new.rows, notes)
    return data, notes


def _fit_comparisons(data: dict[str, Any], gone: Sequence[Any], notes: list[str]) -> None:
    """Comparisons of systems that are no longer there are about all systems; what they expected of them is dropped."""
    for comparison in (data.get("analysis") or {}).get("comparisons") or ():
        if not isinstance(comparison, dict):
            continue
        if set(comparison.get("levels") or ()) & set(gone):
            del comparison["levels"]
            notes.append(f"The comparison {comparison.get('name')} is about all systems now")
        if comparison.get("reference") in gone:
            del comparison["reference"]
        expected = comparison.get("expected") or []
        expected = [expected] if isinstance(expected, str) else expected
        left = [line for line in expected if not any(str(name) in line for name in gone)]
        if len(left) < len(expected):
            comparison["expected"] = left
            dropped = "; ".join(line for line in expected if line not in left)
            notes.append(f"The comparison {comparison.get('name')} no longer expects {dropped}")
            if not left:
                del comparison["expected"]


def _fit_design(data: dict[str, Any], rows: Sequence[Mapping[str, Any]], notes: list[str]) -> None:
    """Practice items, gold items and numbers of items that the new items do not have."""
    marks = [row["metadata"] for row in rows if isinstance(row.get("metadata"), dict)]
    n_practice = sum(bool(mark.get("practice")) for mark in marks)
    design = data.get("design")
    if isinstance(design, dict):
        if (design.get("n_practice_items") or 0) > n_practice:
            design["n_practice_items"] = n_practice
            notes.append(f"Items for practice: {n_practice}")
        items_per_rater = design.get("items_per_rater")
        if isinstance(items_per_rater, int) and items_per_rater > len(rows) - n_practice:
            design["items_per_rater"] = "all"
            notes.append("Every rater gets all items")
    ids = {row.get("id") for row in rows}
    rules = data.get("quality")
    if isinstance(rules, list):
        missing = [
            rule for rule in rules if isinstance(rule, dict) and rule.get("items") and not set(rule["items"]) <= ids
        ]
        if missing:
            data["quality"] = [rule for rule in rules if rule not in missing]
            named = ", ".join(dict.fromkeys(str(rule.get("rule")) for rule in missing))
            notes.append(f"Quality rules removed, since their items are gone: {named}")
