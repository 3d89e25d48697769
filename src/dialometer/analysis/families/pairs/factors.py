"""Strategies with several levels, and strategies crossed with each other (style × empathy).

An item says which levels its experimental version has, and may say which its control has::

    {"id": "…", "a": {…}, "b": {…}, "metadata": {
        "factors":         {"style": "formal",   "empathy": "high"},
        "control_factors": {"style": "informal", "empathy": "low"}}}

Every combination of levels is a *version*; without ``control_factors`` the control is a version apart from all
combinations. A choice is a vote between two versions, and the model is logistic: the log odds of preferring one version to
another are the difference of their utilities (Bradley and Terry 1952; factorial treatments as in El-Helbawy and Bradley
1978). A main effect is the difference of mean utilities between two levels over all levels of the other factors, an
interaction the difference between such differences. Where every pair has the same control this is the saturated logistic
regression of the choice on the levels. Raters are resampled whole (cluster bootstrap); tests are Wald's with the
resampled covariance and the raters' degrees of freedom.

Utilities of a combination that was never shown cannot be estimated: then only the combinations that were shown are compared.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import expit

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import listed, n_of, p_words, percent, sentence, with_interval
from dialometer.analysis.families.pairs.choices import PairChoices, pair_items
from dialometer.analysis.shared.comparisons import corrected, is_significant, p_adjusted, p_cell
from dialometer.analysis.shared.ranking import STUDENT, n_resampled, resampled_raters
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.item import PairItem
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.model.study import Study
from dialometer.report.charts import Dot, ranking_intervals
from dialometer.stats.observations import Floats
from dialometer.stats.ranking.bradley_terry_bootstrap import BradleyTerryBootstrap
from dialometer.stats.ranking.votes import Votes

CONTROL = "control"
Levels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """A main effect (one level against the first of its factor) or an interaction, in log odds.

    ``preferred`` is how often the level would be preferred to an otherwise equal version with the first level.
    """

    label: str
    estimate: Estimate
    preferred: Estimate | None = None


@dataclass(frozen=True, eq=False)
class CrossedFactors:
    """What was found about the factors; ``effects`` is empty where combinations are missing."""

    factors: dict[str, Levels]
    versions: tuple[Levels | str, ...]
    utilities: dict[str, Estimate]
    effects: tuple[Effect, ...]
    missing: tuple[Levels, ...]
    best_share: Mapping[str, float]
    notes: tuple[str, ...]


def has_factors(study: Study) -> bool:
    """Whether items name levels of factors."""
    return any(isinstance(item.metadata.get("factors"), Mapping) for item in pair_items(study))


def crossed_effects(study: Study, choices: PairChoices, options: Options) -> CrossedFactors:
    """Utilities of the versions, main effects and interactions."""
    items = pair_items(study)
    factors = _factor_levels(items)
    version_of = {
        k: (_version(item, "control_factors", factors), _version(item, "factors", factors))
        for k, item in enumerate(items)
    }
    used = {k: pair for k, pair in version_of.items() if pair[1] != CONTROL}
    combinations = list(itertools.product(*factors.values()))
    shown = {version for pair in used.values() for version in pair}
    versions: tuple[Levels | str, ...] = tuple(v for v in (CONTROL, *combinations) if v in shown)
    votes = _votes(choices, used, versions)
    if len(votes.raters) < 2:
        raise NotEnoughData("one rater only", remedy="effects of factors need at least two raters")
    fit = resampled_raters(votes, options)
    missing = tuple(c for c in combinations if c not in versions or not fit.strengths[version_name(c)].is_known)
    effects = () if missing else tuple(_effects(fit, factors, versions, options))
    return CrossedFactors(
        factors,
        versions,
        {version_name(v): fit.strengths[version_name(v)] for v in versions},
        effects,
        missing,
        fit.ranks.best_share,
        fit.fit.notes,
    )


def version_name(version: Levels | str) -> str:
    """A version in words."""
    return version if isinstance(version, str) else " + ".join(version)


def _factor_levels(items: tuple[PairItem, ...]) -> dict[str, Levels]:
    """Factors and their levels; a control's levels come first, then in the order of the item file."""
    levels_of: dict[str, dict[str, None]] = {}
    for key in ("control_factors", "factors"):
        for item in items:
            given = item.metadata.get(key)
            for factor, level in given.items() if isinstance(given, Mapping) else ():
                levels_of.setdefault(str(factor), {})[str(level)] = None
    return {factor: tuple(levels) for factor, levels in levels_of.items()}


def _version(item: PairItem, key: str, factors: dict[str, Levels]) -> Levels | str:
    given: Any = item.metadata.get(key)
    if not isinstance(given, Mapping) or set(map(str, given)) != set(factors):
        return CONTROL
    return tuple(str(given[factor]) for factor in factors)


def _votes(
    choices: PairChoices, used: dict[int, tuple[Levels | str, Levels | str]], versions: tuple[Levels | str, ...]
) -> Votes:
    """Choices as votes between versions: the control first, which says nothing of the screen."""
    number = {version: k for k, version in enumerate(versions)}
    control, other = np.full(len(choices.items), -1), np.full(len(choices.items), -1)
    for item, (a, b) in used.items():
        control[item], other[item] = number[a], number[b]
    kept = ~np.isnan(choices.signed) & (other[choices.item] >= 0) & (control[choices.item] != other[choices.item])
    raters, rater = np.unique(choices.rater[kept], return_inverse=True)
    return Votes(
        systems=tuple(version_name(version) for version in versions),
        first=control[choices.item[kept]],
        second=other[choices.item[kept]],
        outcome=-choices.signed[kept].astype(np.intp),
        row=np.flatnonzero(kept),
        raters=tuple(map(str, raters.tolist())),
        rater=rater.astype(np.intp),
    )


def _effects(
    fit: BradleyTerryBootstrap, factors: dict[str, Levels], versions: tuple[Levels | str, ...], options: Options
) -> list[Effect]:
    """All effects: for each set of factors the products of "this level against the first" contrasts."""
    shape = [len(levels) for levels in factors.values()]
    place = [versions.index(combination) for combination in itertools.product(*factors.values())]
    value = np.array([fit.strengths[version_name(versions[k])].value for k in place])
    replicates = fit.replicates[:, place]
    n_raters = n_resampled(fit.ranks)
    names = list(factors)
    effects = []
    for size in range(1, len(names) + 1):
        for chosen in itertools.combinations(range(len(names)), size):
            if any(shape[f] < 2 for f in chosen):
                continue
            for levels in itertools.product(*(range(1, shape[f]) for f in chosen)):
                weights = _contrast(shape, dict(zip(chosen, levels, strict=True)))
                label = " × ".join(
                    f"{names[f]}: {factors[names[f]][level]} rather than {factors[names[f]][0]}"
                    for f, level in zip(chosen, levels, strict=True)
                )
                estimate = _wald(label, weights, value, replicates, n_raters, fit, options)
                effects.append(Effect(label, estimate, _preferred(estimate) if size == 1 else None))
    return effects


def _contrast(shape: list[int], levels: dict[int, int]) -> Floats:
    """Weights over all combinations: level against first in the chosen factors, the mean over the others."""
    weights = np.ones(1)
    for factor, n_levels in enumerate(shape):
        part = np.full(n_levels, 1 / n_levels)
        if factor in levels:
            part = np.zeros(n_levels)
            part[levels[factor]], part[0] = 1.0, -1.0
        weights = np.kron(weights, part)
    return weights


def _wald(
    label: str,
    weights: Floats,
    value: Floats,
    replicates: Floats,
    n_raters: int,
    fit: BradleyTerryBootstrap,
    options: Options,
) -> Estimate:
    point, drawn, df = float(weights @ value), replicates @ weights, n_raters - 1
    se = float(drawn.std(ddof=1)) * math.sqrt(n_raters / df)
    half = float(stats.t.isf((1 - options.confidence) / 2, df)) * se
    t = point / se if se > 0 else math.nan
    return Estimate(
        value=point,
        n=round(fit.fit.n_votes),
        method="contrast of utilities (logistic, Bradley-Terry), Wald's t-test with the covariance of resampled raters",
        low=point - half,
        high=point + half,
        confidence=options.confidence,
        interval_method=STUDENT,
        statistic=t,
        df=(float(df),),
        p_value=float(2 * stats.t.sf(abs(t), df)) if not math.isnan(t) else math.nan,
        seed=options.seed,
        n_resamples=len(drawn),
        label=label,
        unit="log odds",
        notes=fit.fit.notes,
    )


def _preferred(effect: Estimate) -> Estimate:
    return replace(
        effect,
        value=float(expit(effect.value)),
        low=float(expit(effect.low)),
        high=float(expit(effect.high)),
        unit="probability",
        method=f"{effect.method}, turned into a probability",
    )


def factors_section(study: Study, choices: PairChoices, options: Options) -> Section:
    """Which level is best, what each factor does by itself, and whether the factors work together."""
    crossed = crossed_effects(study, choices, options)
    tested = corrected([effect.estimate for effect in crossed.effects], options)
    effects = [Effect(e.label, t, e.preferred) for e, t in zip(crossed.effects, tested, strict=True)]
    parts: list[Table | Figure] = [_versions_table(crossed), _versions_figure(crossed)]
    parts += [_effects_table(effects)] if effects else []
    named = " × ".join(crossed.factors)
    return Section("factors", f"Levels and combinations: {named}", _paragraphs(crossed, effects), tuple(parts))


def _versions_table(crossed: CrossedFactors) -> Table:
    names = list(crossed.factors)
    rows: list[tuple[Cell, ...]] = []
    for version in sorted(crossed.versions, key=lambda v: -crossed.utilities[version_name(v)].value):
        levels = ("",) * len(names) if isinstance(version, str) else version
        name = version_name(version)
        rows.append((name, *levels, crossed.utilities[name], crossed.best_share.get(name)))
    columns = (
        Column("version", "Version"),
        *(Column(f"level-{k}", factor) for k, factor in enumerate(names)),
        Column("utility", "Utility (log odds)", "estimate"),
        Column("best", "Best in resamples", "percent", 0),
    )
    return Table(
        "versions",
        "Utility of every version",
        columns,
        tuple(rows),
        caption="The log odds of preferring one version to another are the difference of their utilities; their mean is 0.",
        notes=tuple(sentence(note) for note in crossed.notes),
    )


def _versions_figure(crossed: CrossedFactors) -> Figure:
    dots = [Dot(name, utility) for name, utility in crossed.utilities.items()]
    details = "; ".join(f"{dot.label}: {with_interval(dot.estimate)}" for dot in dots)
    spec = ranking_intervals(dots, value_title="utility (log odds)", reference=0.0)
    return Figure("versions-figure", "Utility of every version", spec, f"Utilities with intervals: {details}.")


def _effects_table(effects: list[Effect]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            effect.label,
            "main effect" if effect.preferred is not None else "interaction",
            effect.estimate,
            effect.preferred if effect.preferred is not None else "",
            p_cell(effect.estimate.p_value),
            p_cell(p_adjusted(effect.estimate)),
        )
        for effect in effects
    ]
    columns = (
        Column("effect", "Effect"),
        Column("kind", "Kind"),
        Column("log_odds", "Log odds", "estimate"),
        Column("preferred", "Preferred, all else equal", "percent_estimate"),
        Column("p", "p", "p_value"),
        Column("p_adjusted", "p, corrected", "p_value"),
    )
    return Table(
        "factor-effects",
        "Main effects and interactions",
        columns,
        tuple(rows),
        caption="Logistic model of the choices; raters are resampled whole, since each answers several times.",
    )


def _paragraphs(crossed: CrossedFactors, effects: list[Effect]) -> tuple[str, ...]:
    texts = []
    best = max(crossed.best_share, key=lambda name: crossed.best_share[name])
    texts.append(
        f"The version {best} has the highest utility; it came out best in {percent(crossed.best_share[best])} of the resamples."
    )
    if crossed.missing:
        texts.append(
            f"{sentence(n_of(len(crossed.missing), 'combination'))[:-1]} of levels was never shown "
            f"({listed((version_name(v) for v in crossed.missing), most=4)}), so main effects and interactions cannot be told "
            "apart. If a missing combination is the control itself, name its levels in control_factors."
        )
    for effect in effects:
        p = p_adjusted(effect.estimate)
        if effect.preferred is not None:
            share = with_interval(effect.preferred, is_percent=True)
            tail = f"({p_words(p)})" if is_significant(effect.estimate) else f"({p_words(p)}), which chance may explain"
            texts.append(f"{effect.label}: preferred in {share} of choices, all else equal {tail}.")
        elif is_significant(effect.estimate):
            more = "more" if effect.estimate.value > 0 else "less"
            texts.append(
                f"{effect.label}: together they give {more} than the two effects added ({p_words(p)}), so read the versions in "
                "the table rather than the effects alone."
            )
        else:
            texts.append(f"{effect.label}: no sign that they do more or less together than apart ({p_words(p)}).")
    if CONTROL in crossed.versions and not crossed.missing:
        texts.append("The control is a version of its own here: its levels are not among the combinations.")
    return tuple(sentence(text) for text in texts)
