"""The truth behind simulated judgments: how good each system's contribution to each item really is."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dialometer.errors import DialometerError
from dialometer.model.file_names import SIMULATION_FILE
from dialometer.model.item import CandidateItem, DialogueItem, Item, PairItem, ResponsesItem
from dialometer.model.shared_texts import first_shown
from dialometer.model.study import Study
from dialometer.quality.gold import Gold, is_gold
from dialometer.simulate.rater import Habits, keyed_normal

GOLD_QUALITY = 2.2  # in standard deviations: what every attentive rater recognises


@dataclass(frozen=True)
class Truth:
    """Qualities in standard deviations: a mean per system and criterion, and a deviation for each item.

    ``systems[criterion][system]`` is what an analysis should recover; ``items`` are random deviations around it.
    """

    systems: Mapping[str, Mapping[str, float]]
    item_sd: float = 0.6
    seed: int = 0
    overrides: Mapping[tuple[str, str], float] = field(default_factory=dict)
    first_shown: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The item that first shows what a system shows in an item again; it is as good there as before."""

    def quality(self, item_id: str, criterion: str, system: str) -> float:
        """True quality of what a system shows in an item, on one criterion."""
        fixed = self.overrides.get((item_id, system))
        if fixed is not None:
            return fixed
        mean = self.systems.get(criterion, {}).get(system, 0.0)
        first = self.first_shown.get((item_id, system), item_id)
        return mean + self.item_sd * keyed_normal(self.seed, first, system, criterion)

    def as_json(self) -> dict[str, Any]:
        """What is written beside a simulated study, so that reports and tests can compare."""
        return {"systems": {c: dict(s) for c, s in self.systems.items()}, "item_sd": self.item_sd, "seed": self.seed}


def draw_truth(study: Study, seed: int, *, spread: float = 0.5, item_sd: float = 0.6) -> Truth:
    """System means that are evenly spaced over ``2 × spread`` in a random order per criterion, correlated between criteria."""
    if study.spec.items.pairs == "dialogues":  # the systems only name the sides, and neither side is the better one
        qualities = _rated_qualities(study, item_sd, seed) | gold_overrides(study)
        return Truth({}, item_sd=item_sd, seed=seed, overrides=qualities)
    rng = np.random.default_rng([seed, 1])
    names = [system.name for system in study.spec.systems]
    base = np.linspace(-spread, spread, len(names)) if len(names) > 1 else np.zeros(1)
    # In file order the later system is the better one: controls are usually named first.
    systems: dict[str, dict[str, float]] = {}
    for criterion in study.spec.criteria:
        wobble = rng.normal(0, spread / 4, len(names))
        systems[criterion.name] = {name: round(float(base[i] + wobble[i]), 3) for i, name in enumerate(names)}
    return Truth(systems, item_sd=item_sd, seed=seed, overrides=gold_overrides(study), first_shown=first_shown(study))


def _rated_qualities(study: Study, item_sd: float, seed: int) -> dict[tuple[str, str], float]:
    """Qualities of dialogues whose users rated them: what the rating says, and as much that it does not say."""
    qualities = {}
    for item in study.items:
        for side, rating in (
            ("first", item.metadata.get("first_rating")),
            ("second", item.metadata.get("second_rating")),
        ):
            if rating is not None and isinstance(item, PairItem):
                system = item.a.system if side == "first" else item.b.system
                hidden = item_sd * keyed_normal(seed, "dialogue", str(item.metadata.get(side)))
                qualities[item.id, system] = item_sd / 2 * (float(rating) - 3) + hidden
    return qualities


def gold_overrides(study: Study) -> dict[tuple[str, str], float]:
    """Gold items are unmistakable: what the rule accepts is very good, everything else on the item very bad."""
    overrides: dict[tuple[str, str], float] = {}
    for rule in study.spec.quality:
        if not isinstance(rule, Gold):
            continue
        for item_id in rule.gold_ids(study):
            item = study.items_by_id[item_id]
            for system in _places(item):
                overrides[(item_id, system)] = _gold_quality(study, rule, system)
    for item in study.items:
        if is_gold(item) and isinstance(item, CandidateItem):
            overrides.setdefault((item.id, ""), GOLD_QUALITY)
    return overrides


def _gold_quality(study: Study, rule: Gold, system: str) -> float:
    for acceptable in rule.acceptable:
        if acceptable.point and acceptable.one_of:
            if acceptable.system in ("", system):
                scale = study.spec.scales[study.criteria_by_name[acceptable.criterion].scale]
                results = scale.point_results({acceptable.point: str(acceptable.one_of[0])})
                return GOLD_QUALITY if results.get(acceptable.point) else -GOLD_QUALITY
            continue
        if acceptable.one_of and system:
            return GOLD_QUALITY if system in acceptable.one_of else -GOLD_QUALITY
        if acceptable.system and acceptable.system != system:
            continue
        if acceptable.at_most is not None and acceptable.at_least is None:
            return -GOLD_QUALITY
        return GOLD_QUALITY
    return 0.0


def _places(item: Item) -> tuple[str, ...]:
    return ("",) if isinstance(item, CandidateItem) else tuple(item.systems)


def candidate_quality(truth: Truth, item: CandidateItem, criterion: str) -> float:
    """How good a candidate answer is: what a high rank promises, and how good the systems are that put it first."""
    fixed = truth.overrides.get((item.id, ""))
    if fixed is not None:
        return fixed
    best_rank = min(item.ranks.values(), default=10)
    means = truth.systems.get(criterion, {})
    first = [means.get(system, 0.0) for system, rank in item.ranks.items() if rank == 1]
    return (
        0.8
        - 0.5 * math.log2(best_rank)
        + (sum(first) / len(first) if first else 0.0)
        + truth.quality(item.id, criterion, "")
    )


def shown_systems(item: Item, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Which system stands behind each text on a screen. A simulated rater reads the texts as people do; equal texts are one."""
    match item:
        case ResponsesItem():
            by_text = {text: system for system, text in reversed(list(item.responses.items()))}
        case PairItem():
            by_text = {side.turns[-1].text + str(len(side.turns)): side.system for side in (item.b, item.a)}
            by_text |= {"\n".join(turn.text for turn in side.turns): side.system for side in (item.b, item.a)}
        case DialogueItem():
            return (item.system,) * len(texts)
        case CandidateItem():
            return ("",) * len(texts)
        case _:
            return (item.systems[0],) * len(texts)
    return tuple(by_text.get(text, "") for text in texts)


# The truth that simulated raters saw, kept beside their study so that an analysis can be compared with it.


def keep_truth(
    folder: Path, truth: Truth, *, seed: int, n_raters: int, habits: Habits, has_raters: bool = False
) -> Path:
    """Writes it down before anybody comes. ``has_raters`` says that simulated raters came before: they saw the same one, or
    this is refused, since raters of two truths in one database could be compared with neither.
    """
    file = folder / SIMULATION_FILE
    content = {"seed": seed, "raters": n_raters, "habits": asdict(habits), "truth": truth.as_json()}
    text = json.dumps(content, indent=1) + "\n"
    if has_raters:
        _refuse_another(file, json.loads(text))
    file.write_text(text, encoding="utf-8")
    return file


def _refuse_another(file: Path, now: dict[str, object]) -> None:
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    differing = [name for name in ("seed", "habits", "truth") if before.get(name) != now[name]]
    if differing:
        raise DialometerError(
            f"the study holds simulated raters of another truth (seed {before.get('seed')}; {', '.join(differing)} differ)",
            where=str(file),
            remedy="continue with the same options, or simulate in another copy of the study's folder",
        )
