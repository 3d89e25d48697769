"""What sways a judge more than it sways people: length, formatting, and systems of its own family.

Every bias is a difference to the human raters of the same things, so that a judge who prefers long responses because they are
better is not blamed for it. Intervals are bootstrapped over items.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.families.judges.compared import Compared
from dialometer.analysis.shared.styles import style_of
from dialometer.model.estimate import Estimate
from dialometer.model.study import Study
from dialometer.stats.bootstrap.bootstrap import draw_counts, estimate_from
from dialometer.stats.observations import Floats
from dialometer.stats.ranking.style import STYLE, STYLE_LABELS

FEWEST = 10
FAMILIES = (
    "gpt", "claude", "llama", "vicuna", "alpaca", "gemini", "gemma", "palm", "bard", "mistral", "mixtral", "qwen", "deepseek",
    "phi", "command", "grok", "smollm", "falcon", "yi", "glm", "olmo", "nova",
)  # fmt: skip
"""Families of language models as their names begin; the study file can say it instead (``judges: own_systems``)."""


@dataclass(frozen=True)
class Sway:
    """How far something sways people, a judge, and the judge more than people."""

    criterion: str
    judge: str
    what: str
    people: Estimate
    of_judge: Estimate
    difference: Estimate

    @property
    def is_found(self) -> bool:
        """Whether the judge is swayed significantly more, or less, than people."""
        return self.difference.has_interval and not self.difference.low <= 0 <= self.difference.high


def style_bias(data: StudyData, compared: Compared, options: Options) -> list[Sway]:
    """For each judge and feature: choices for the side that has more of it, or the correlation of ratings with it."""
    styles = style_of(data.study)
    sways = []
    for number, feature in enumerate(STYLE):
        for judge, own in compared.judges.items():
            if compared.is_choice:
                arrays = _more(compared, own, styles, number)
            elif compared.is_number and not (compared.things["turn"] >= 0).any():
                counts = [styles.get((i, s), (np.nan,) * len(STYLE))[number] for i, s in _keys(compared)]
                arrays = (np.array(counts, dtype=float), compared.people_mean, own)
            else:
                continue
            sway = _sway(compared, judge, STYLE_LABELS[feature], arrays, options, is_correlation=compared.is_number)
            if sway is not None:
                sways.append(sway)
    return sways


def _keys(compared: Compared) -> list[tuple[str, str]]:
    return [(item, system) for item, system in compared.things.select("item", "system").iter_rows()]


def _more(
    compared: Compared, own: Floats, styles: dict[tuple[str, str], tuple[int, ...]], number: int
) -> tuple[Floats, Floats, Floats]:
    """1 where a pair differs in the feature, and what people and the judge give the side that has more (0 to 1)."""
    differs, people, judge = (np.full(len(own), np.nan) for _ in range(3))
    points = {
        system: (compared.people_points(system), compared.points(own, system))
        for text in compared.things["pair"].unique().to_list()
        for system in text.split("|")
    }
    for row, (item, pair) in enumerate(compared.things.select("item", "pair").iter_rows()):
        systems = pair.split("|")
        counts = [styles.get((item, system), (0,) * len(STYLE))[number] for system in systems]
        if len(systems) == 2 and counts[0] != counts[1]:
            more = systems[int(counts[1] > counts[0])]
            differs[row], people[row], judge[row] = 1.0, points[more][0][row], points[more][1][row]
    return differs, people, judge


def _sway(
    compared: Compared,
    judge: str,
    what: str,
    arrays: tuple[Floats, Floats, Floats],
    options: Options,
    *,
    is_correlation: bool = False,
) -> Sway | None:
    """From a feature, people's and the judge's numbers: the means of both, or their correlations with the feature."""
    is_used = ~np.isnan(np.stack(arrays)).any(axis=0)
    x, people, own = (array[is_used] for array in arrays)
    if len(x) < FEWEST or (is_correlation and np.ptp(x) == 0):
        return None
    items = compared.things["drawn"].to_numpy()[is_used]
    codes = np.unique(items, return_inverse=True)[1]
    counts = draw_counts(np.random.default_rng(options.seed), int(codes.max()) + 1, options.n_resamples)[:, codes]
    once = np.ones((1, len(x)))

    def of(weights: Floats) -> tuple[Floats, Floats]:
        if not is_correlation:
            return _mean(weights, people), _mean(weights, own)
        return _correlation(weights, _ranks(x), _ranks(people)), _correlation(weights, _ranks(x), _ranks(own))

    value, drawn = of(once), of(counts)
    measured = "share of choices, a tie counting half" if compared.is_choice else "mean rating"
    method = "Spearman's rho of rating and feature" if is_correlation else measured

    def made(value: float, draws: Floats, method: str = method) -> Estimate:
        return estimate_from(
            value, draws, n=len(x), method=method, resampled="items", seed=options.seed, confidence=options.confidence
        )

    return Sway(
        compared.label,
        judge,
        what,
        made(float(value[0][0]), drawn[0]),
        made(float(value[1][0]), drawn[1]),
        made(float(value[1][0] - value[0][0]), drawn[1] - drawn[0], f"the judge's minus that of people: {method}"),
    )


def _mean(weights: Floats, values: Floats) -> Floats:
    return np.asarray(weights @ values / weights.sum(axis=1))


def _ranks(values: Floats) -> Floats:
    return np.asarray(pl.Series(values).rank("average").to_numpy())


def _correlation(weights: Floats, first: Floats, second: Floats) -> Floats:
    """Pearson's correlation under weights, for all draws at once."""
    total = weights.sum(axis=1)
    a, b = weights @ first / total, weights @ second / total
    cross = weights @ (first * second) / total - a * b
    spread = (weights @ first**2 / total - a**2) * (weights @ second**2 / total - b**2)
    return np.asarray(
        np.divide(cross, np.sqrt(np.maximum(spread, 0)), out=np.full(len(total), np.nan), where=spread > 1e-12)
    )


# Systems of the judge's own family


def family_of(name: str) -> str:
    """The family of language models that a name tells, empty where it tells none."""
    words = re.split(r"[^a-z]+", name.lower())
    return next((family for family in FAMILIES if any(word.startswith(family) for word in words)), "")


def own_systems(study: Study, judge: str) -> set[str]:
    """The systems of the judge's family: as the study says, or as the names of both tell."""
    declared = next((one for one in study.spec.judges if one.name == judge), None)
    if declared is not None and declared.own_systems:
        return set(declared.own_systems)
    model = str(declared.agent.options.get("model", "")) if declared is not None and declared.agent is not None else ""
    family = family_of(model) or family_of(judge)
    if not family:
        return set()
    named = {
        system.name: f"{system.name} {system.agent.options.get('model', '') if system.agent else ''}"
        for system in study.spec.systems
    }
    return {name for name, text in named.items() if family_of(text) == family}


def self_preference(data: StudyData, compared: Compared, options: Options) -> list[Sway]:
    """For each judge with systems of its family: what it gives them, beside what people do."""
    sways = []
    for judge, own in compared.judges.items():
        related = own_systems(data.study, judge)
        if not related:
            continue
        if compared.is_choice:
            people, answers = _points_of(compared, own, related)
        elif compared.is_number:
            is_own = compared.things["system"].is_in(list(related)).to_numpy()
            # A judge may be milder than people throughout: what counts is how much milder with its own.
            shift = np.nanmean((own - compared.people_mean)[~is_own]) if (~is_own).any() else 0.0
            people, answers = np.where(is_own, compared.people_mean, np.nan), np.where(is_own, own - shift, np.nan)
        else:
            continue
        sway = _sway(compared, judge, "Systems of its own family", (np.ones(len(own)), people, answers), options)
        if sway is not None:
            sways.append(sway)
    return sways


def _points_of(compared: Compared, own: Floats, related: set[str]) -> tuple[Floats, Floats]:
    """What people and the judge give systems of a family where they meet others."""
    people, judge = np.full(len(own), np.nan), np.full(len(own), np.nan)
    inside = [[system for system in pair.split("|") if system in related] for pair in compared.things["pair"].to_list()]
    for system in related & set(compared.labels):
        is_its = np.array([names == [system] for names in inside])
        people[is_its] = compared.people_points(system)[is_its]
        judge[is_its] = compared.points(own, system)[is_its]
    return people, judge
