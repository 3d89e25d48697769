"""A whole simulated study as the analysis will see it: raters and items drawn, an effect planted, careless raters excluded.

Power analysis and the calibration of the reports both work on these: what they say of a design is then about the same
raters, the same gold items and the same rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from dialometer.analysis.base.data import EXCLUDED, FINDING_COLUMNS, StudyData, data_from_arrays
from dialometer.analysis.base.wording import baseline
from dialometer.analysis.planning.simulated_assignment import AdaptiveAssigner
from dialometer.analysis.shared.comparisons import compared_systems, declared_factor, primary_comparison
from dialometer.errors import DialometerError
from dialometer.model.item import CandidateItem, Item, PairItem, Transcript
from dialometer.model.quality import Finding, QualityRule
from dialometer.model.session import Answer, Draw, Judgment, Session, SessionRecord
from dialometer.model.shared_texts import PROMPT, first_shown
from dialometer.model.study import Study
from dialometer.quality.checks import Comprehension
from dialometer.quality.gold import gold_items
from dialometer.simulate.judgment_arrays import Columns, simulate_judgments
from dialometer.simulate.rater import Habits, SimulatedRater, draw_rater
from dialometer.simulate.truth import Truth, gold_overrides
from dialometer.storage.table import rater_name


@dataclass(frozen=True, slots=True)
class Assumptions:
    """How much raters and items differ, in standard deviations of quality: what a plan has to assume."""

    item_sd: float = 0.6
    """How much each system differs from item to item, beside its mean."""
    rater_sd: float = 0.35
    """How much raters differ in leniency."""
    taste_sd: float = 0.3
    """How much raters differ in what they think of a system, whatever the item."""
    careless: float = 0.05
    """Share of raters who mostly answer at random."""

    def habits(self) -> Habits:
        """Raters of this kind. An anchor that attracts ratings would be an effect beside the planted one."""
        return Habits(
            bias_sd=self.rater_sd,
            taste_sd=self.taste_sd,
            careless_share=self.careless,
            anchor_pull=0.0,
            text_anchor_calm=0.0,
        )


# How many items: gold and practice items are none, and the candidates of one question are one.


def item_groups(study: Study) -> list[list[tuple[Item, ...]]]:
    """For each block its items that say something about systems; the candidates of a question are kept together."""
    gold = gold_items(study)
    blocks = []
    for block in study.blocks:
        groups: dict[str, list[Item]] = {}
        for item in study.block_items(block):
            if item.id not in gold:
                key = str(item.metadata.get("question", item.id)) if isinstance(item, CandidateItem) else item.id
                groups.setdefault(key, []).append(item)
        blocks.append([tuple(items) for items in groups.values()])
    return blocks


def n_items_of(study: Study) -> int:
    """How many items a study has to compare systems by."""
    return sum(map(len, item_groups(study)))


def resized(study: Study, n_items: int) -> Study:
    """The study with this many items: the last are dropped, or items are repeated as new ones, evenly over blocks.

    Gold and practice items stay as they are.
    """
    blocks = item_groups(study)
    n_now = sum(map(len, blocks))
    if n_items == n_now:
        return study
    if n_items < len(blocks) or n_now == 0:
        raise DialometerError(f"{n_items} items are too few for {len(blocks)} blocks", remedy="use more items")
    items: list[Item] = []
    for groups, n_wanted in zip(blocks, _split(n_items, [len(groups) for groups in blocks]), strict=True):
        for i in range(n_wanted):
            items += _copied(groups[i % len(groups)], i // len(groups))
    gold = gold_items(study)
    items += [item for item in study.items if item.id in gold or item.metadata.get("practice")]
    design = study.spec.design
    if isinstance(design.items_per_rater, int) and design.items_per_rater > n_items:
        design = design.model_copy(update={"items_per_rater": n_items})
    spec = study.spec.model_copy(update={"design": design})
    return Study(spec=spec, items=tuple(items), texts=study.texts)


def _copied(group: tuple[Item, ...], number: int) -> list[Item]:
    if not number:
        return list(group)
    copies: list[Item] = []
    for item in group:
        shared = {key: f"{item.metadata[key]}~{number}" for key in ("question", PROMPT) if key in item.metadata}
        copy = replace(item, id=f"{item.id}~{number}", metadata={**item.metadata, **shared})
        if isinstance(copy, PairItem):  # other transcripts than those of the items that are copied
            copy = replace(copy, a=_renewed(copy.a, number), b=_renewed(copy.b, number))
        copies.append(copy)
    return copies


def _renewed(side: Transcript, number: int) -> Transcript:
    first = replace(side.turns[0], text=f"{side.turns[0].text}~{number}")
    return replace(side, turns=(first, *side.turns[1:]))


def _split(n: int, sizes: Sequence[int]) -> list[int]:
    """A number of items over blocks, in proportion to what they have now, at least one each."""
    exact = [n * size / sum(sizes) for size in sizes]
    shares = [max(1, math.floor(share)) for share in exact]
    for block in sorted(range(len(sizes)), key=lambda block: shares[block] - exact[block]):
        if sum(shares) < n:
            shares[block] += 1
    while sum(shares) > n:
        shares[int(np.argmax(shares))] -= 1
    return shares


# The effect, and the raters who see it.


def planted(
    study: Study, effect: float, seed: int, assumptions: Assumptions | None = None
) -> tuple[Truth, Habits, dict[int, float]]:
    """Truth, habits and shifts by cell that hold the effect on the primary comparison and no other."""
    assumed = assumptions or Assumptions()
    if study.spec.analysis.items == "fixed":  # the effect is one on these items, with whatever each of them adds
        assumed = replace(assumed, item_sd=0.0)
    habits, gold = assumed.habits(), gold_overrides(study)
    comparison = primary_comparison(study)
    if comparison.between == "factor":
        shifts = _level_shifts(study, effect, habits)
        return Truth({}, item_sd=assumed.item_sd, seed=seed, overrides=gold), habits, shifts
    names = list(comparison.levels) or list(compared_systems(study, comparison))
    means = np.linspace(-effect / 2, effect / 2, len(names)) if len(names) > 1 else np.zeros(1)
    by_system = {name: float(mean) for name, mean in zip(names, means, strict=True)}
    means_of = {criterion.name: by_system for criterion in study.spec.criteria}
    truth = Truth(means_of, item_sd=assumed.item_sd, seed=seed, overrides=gold, first_shown=first_shown(study))
    return truth, habits, {}


def _level_shifts(study: Study, effect: float, habits: Habits) -> dict[int, float]:
    factor = declared_factor(study, primary_comparison(study))
    is_log = any(study.spec.scales[c.scale].unit == "log" for c in study.spec.criteria)
    spread = math.hypot(habits.bias_sd, habits.modulus_log_sd / habits.slope if is_log else 0.0)
    base = baseline(factor).name
    return {cell: effect * spread for cell, condition in enumerate(study.cells) if condition[factor.name] != base}


def simulated_data(
    study: Study, truth: Truth, habits: Habits, *, n_raters: int, seed: int, shifts: Mapping[int, float] | None = None
) -> StudyData:
    """The data of a simulated study, without the raters whom its quality rules exclude or screen out.

    The rules are those of a running study (``QualityRule.findings``), on the simulated answers to gold items, checks and
    scales. Rules about time are left out: these raters have no clock.
    """
    assigner = AdaptiveAssigner.of(study)
    columns = simulate_judgments(study, truth, habits, n_raters=n_raters, seed=seed, shifts=shifts, assigner=assigner)
    data = data_from_arrays(study, columns)
    return _without(data, _found(study, habits, columns, n_raters, seed))


def _found(study: Study, habits: Habits, columns: Columns, n_raters: int, seed: int) -> dict[int, list[Finding]]:
    """For each rater what the rules found; only those rules that keep raters out of the analysis are applied."""
    rules = [rule for rule in study.spec.quality if rule.action in ("exclude", "screen_out") and rule.acts != "arrival"]
    rules = [rule for rule in rules if not rule.rule.endswith("_time")]
    if not rules:
        return {}
    places = _places_by_rater(study, rules, columns, n_raters)
    found: dict[int, list[Finding]] = {}
    for number in range(1, n_raters + 1):
        rater = draw_rater(number, seed, habits)
        rows = places[number]
        cell = int(columns["cell"][rows[0]]) if len(rows) else 0
        session = Session(
            str(number), str(number), number, study.cells[cell], Draw(number, cell, (), {}), source="simulated"
        )
        record = SessionRecord(
            judgments=[_judgment(columns, row) for row in rows], answers=_check_answers(study, rater, rules), visits=[]
        )
        made = [finding for rule in rules for finding in rule.findings(study, session, record)]
        if made:
            found[number] = made
    return found


def _places_by_rater(study: Study, rules: list[QualityRule], columns: Columns, n_raters: int) -> list[Any]:
    """The rows of each rater that the rules look at; rules with gold items look at nothing else."""
    rater = np.asarray(columns["rater"])
    kept = np.arange(len(rater))
    if all(rule.questions_asked() or rule.gold_ids(study) for rule in rules):
        kept = kept[np.isin(columns["item"].astype(str), list(study.gold_ids))]
    order = kept[np.argsort(rater[kept], kind="stable")]
    bounds = np.searchsorted(rater[order], np.arange(n_raters + 2))
    return [order[bounds[number] : bounds[number + 1]] for number in range(n_raters + 1)]


def _judgment(columns: Columns, row: int) -> Judgment:
    choice, worst, value = columns["choice"][row], columns["worst"][row], float(columns["value"][row])
    given: Any = {"best": choice, "worst": worst} if worst else choice or value
    if "answer" in columns and columns["answer"][row] is not None:
        given = columns["answer"][row]
    return Judgment(
        session_id=str(columns["rater"][row]),
        item_id=str(columns["item"][row]),
        criterion=str(columns["criterion"][row]),
        value=given,
        scale=str(columns["scale"][row]),
        system=str(columns["system"][row]),
        block=str(columns["block"][row]),
        position=int(columns["position"][row]),
        side=int(columns["side"][row]),
    )


def _check_answers(study: Study, rater: SimulatedRater, rules: list[QualityRule]) -> list[Answer]:
    """Answers to attention and comprehension checks: right, unless a careless rater answers at random."""
    answers: list[Answer] = []
    for rule in rules:
        passed: set[str] = set()
        for place, (part, check) in enumerate(rule.questions_asked()):
            rng = rater.rng(place, 7)
            is_random = rater.is_careless and rng.random() < rater.habits.careless_rate
            given = study.question_scales[check.name].simulate_question(rng) if is_random else check.answer
            if isinstance(rule, Comprehension):  # what was right is not asked again
                given = check.answer if check.name in passed else given
            if given == check.answer:
                passed.add(check.name)
            answers.append(Answer(session_id=str(rater.number), part=part, question=check.name, value=given))
    return answers


def _without(data: StudyData, found: Mapping[int, Sequence[Finding]]) -> StudyData:
    if not found:
        return data
    rows = [
        (rater_name(number), finding.rule, finding.action, finding.reason)
        for number, findings in found.items()
        for finding in findings
    ]
    outside = {rater_name(n) for n, made in found.items() if any(finding.action == "screen_out" for finding in made)}
    excluded = {rater_name(number) for number in found} - outside
    is_excluded, is_outside = pl.col("rater").is_in(excluded), pl.col("rater").is_in(outside)
    set_aside = data.judgments.filter(is_excluded).with_columns(pl.lit(True).alias("is_excluded"))
    return replace(
        data,
        judgments=data.judgments.filter(~is_excluded & ~is_outside),
        sessions=data.sessions.with_columns(
            is_excluded.alias("is_excluded"),
            pl.when(is_outside).then(pl.lit("screened_out")).otherwise(pl.col("state")).alias("state"),
        ),
        findings=pl.DataFrame(rows, schema=FINDING_COLUMNS, orient="row"),
        n_left_out={EXCLUDED: len(set_aside)} if len(set_aside) else {},
        set_aside=set_aside,
    )
