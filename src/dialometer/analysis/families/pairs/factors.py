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
regression of the choice on the levels.

Transcript pairs that set the same two versions against each other are samples of what these versions can look like, so an effect
in general takes raters and pairs as samples (two-way jackknife); that needs at least two pairs for every two versions compared.
The effect in these very pairs takes raters alone as a sample.

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
from dialometer.analysis.base.wording import listed, n_of, p_words, sentence, with_interval
from dialometer.analysis.families.pairs.choices import PairChoices, pair_items
from dialometer.analysis.families.pairs.results import Result, corrected_results
from dialometer.analysis.families.pairs.sections import HERE, IN_GENERAL, ResultColumns
from dialometer.analysis.shared.comparisons import p_adjusted
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.item import PairItem
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.model.study import Study
from dialometer.report.charts import Dot, ranking_intervals
from dialometer.stats.clustered.two_way import TwoWayVariance, two_way_variance
from dialometer.stats.observations import Floats, Ints, codes
from dialometer.stats.ranking.bradley_terry import BradleyTerry, bradley_terry
from dialometer.stats.ranking.votes import Votes, win_matrix

CONTROL = "control"
Levels = tuple[str, ...]


NO_REPEATS = "two versions were compared in one transcript pair only: nothing can be said about other pairs of them"


@dataclass(frozen=True, slots=True)
class Effect:
    """A main effect (one level against the first of its factor) or an interaction, in log odds."""

    result: Result
    is_main: bool

    @property
    def preferred(self) -> Estimate | None:
        """Of a main effect: how often the level would be preferred to an otherwise equal version with the first level."""
        return _preferred(self.result.shown) if self.is_main else None


@dataclass(frozen=True, eq=False)
class CrossedFactors:
    """What was found about the factors; ``effects`` is empty where combinations are missing."""

    factors: dict[str, Levels]
    versions: tuple[Levels | str, ...]
    utilities: dict[str, Result]
    effects: tuple[Effect, ...]
    missing: tuple[Levels, ...]
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
    fit = _fit(votes, choices, options)
    missing = tuple(c for c in combinations if c not in versions or version_name(c) not in fit.names)
    effects = () if missing else tuple(_effects(fit, factors, options))
    return CrossedFactors(
        factors, versions, {v: fit.utility(v) for v in map(version_name, versions)}, effects, missing, fit.model.notes
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


@dataclass(frozen=True, eq=False)
class _Fit:
    """Utilities with their uncertainty over raters, and over raters and pairs where pairs repeat."""

    model: BradleyTerry
    here: TwoWayVariance
    general: TwoWayVariance | None
    strata: Ints
    options: Options

    @property
    def names(self) -> tuple[str, ...]:
        """Versions that were voted on."""
        return self.model.fitted.names

    def utility(self, name: str) -> Result:
        """One version's utility, against the mean of all."""
        if name not in self.names:
            return self.result(name, np.full(len(self.names), math.nan))
        weights = np.full(len(self.names), -1 / len(self.names))
        weights[self.names.index(name)] += 1
        return self.result(name, weights)

    def result(self, label: str, weights: Floats) -> Result:
        """A contrast of utilities, at both reaches."""
        here = self._wald(label, weights, self.here, None)
        n_pairs = len(self.strata)
        if self.options.has_fixed_items:
            return Result(label, here, None, n_pairs)
        if self.general is None:
            blank = replace(here, low=math.nan, high=math.nan, statistic=math.nan, df=(), p_value=math.nan)
            return Result(label, here, blank.with_note(NO_REPEATS), n_pairs)
        return Result(label, here, self._wald(label, weights, self.general, self.strata), n_pairs)

    def _wald(self, label: str, weights: Floats, variance: TwoWayVariance, strata: Ints | None) -> Estimate:
        point = float(weights @ self.model.fitted.parameters)
        se, df = variance.contrast(weights[1:], strata)
        over = "raters" if strata is None else "raters and transcript pairs"
        blank = Estimate(
            point, round(self.model.n_votes), f"contrast of utilities (logistic, Bradley-Terry), t-test by jackknife over {over}",
            confidence=self.options.confidence, label=label, unit="log odds", notes=self.model.notes,
        )  # fmt: skip
        if math.isnan(point) or df <= 0 or se < 1e-12:
            return blank
        half = float(stats.t.isf((1 - self.options.confidence) / 2, df)) * se
        return replace(
            blank,
            low=point - half,
            high=point + half,
            interval_method="Student's t with the degrees of freedom of the design",
            statistic=point / se,
            df=(df,),
            p_value=float(2 * stats.t.sf(abs(point) / se, df)),
        )


def _fit(votes: Votes, choices: PairChoices, options: Options) -> _Fit:
    model = bradley_terry(win_matrix(votes), confidence=options.confidence)
    names, strength = model.fitted.names, model.fitted.parameters
    column = np.array([names.index(name) if name in names else -1 for name in votes.systems])
    first, second = column[votes.first], column[votes.second]
    n, k = len(first), len(names)
    rows = np.zeros((n, k))
    rows[np.arange(n), second] += 1
    rows[np.arange(n), first] -= 1
    chance = expit(strength[second] - strength[first])
    won = (1 - votes.outcome) / 2  # a vote for the first is 1, for the second -1, a tie 0
    scores, weights = rows * (won - chance)[:, None], chance * (1 - chance)
    # The first version is the point of reference: only differences of utilities are known.
    rows, scores = rows[:, 1:], scores[:, 1:]
    penalty = None
    if model.prior:
        between = [np.eye(k)[a] - np.eye(k)[b] for a, b in itertools.combinations(range(k), 2)]
        slopes = [2 * model.prior * expit(d @ strength) * expit(-(d @ strength)) for d in between]
        penalty = sum(w * np.outer(d[1:], d[1:]) for w, d in zip(slopes, between, strict=True))
    rater = choices.rater[votes.row]
    item, levels = codes(choices.drawn[votes.row])
    strata = np.zeros(len(levels), dtype=np.int64)
    strata[item] = np.minimum(first, second) * k + np.maximum(first, second)
    has_repeats = bool(np.min(np.unique(strata, return_counts=True)[1]) > 1)
    return _Fit(
        model,
        two_way_variance(scores, rows, weights, rater, None, penalty=penalty),
        two_way_variance(scores, rows, weights, rater, item, penalty=penalty)
        if has_repeats and not options.has_fixed_items
        else None,
        strata,
        options,
    )


def _effects(fit: _Fit, factors: dict[str, Levels], options: Options) -> list[Effect]:
    """All effects: for each set of factors the products of "this level against the first" contrasts; one family of tests."""
    shape = [len(levels) for levels in factors.values()]
    place = [fit.names.index(version_name(combination)) for combination in itertools.product(*factors.values())]
    names = list(factors)
    results, is_main = [], []
    for size in range(1, len(names) + 1):
        for chosen in itertools.combinations(range(len(names)), size):
            if any(shape[f] < 2 for f in chosen):
                continue
            for levels in itertools.product(*(range(1, shape[f]) for f in chosen)):
                weights = np.zeros(len(fit.names))
                weights[place] = _contrast(shape, dict(zip(chosen, levels, strict=True)))
                label = " × ".join(
                    f"{names[f]}: {factors[names[f]][level]} rather than {factors[names[f]][0]}"
                    for f, level in zip(chosen, levels, strict=True)
                )
                results.append(fit.result(label, weights))
                is_main.append(size == 1)
    return [Effect(result, main) for result, main in zip(corrected_results(results, options), is_main, strict=True)]


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
    parts: list[Table | Figure] = [_versions_table(crossed), _versions_figure(crossed)]
    parts += [_effects_table(crossed.effects, options)] if crossed.effects else []
    named = " × ".join(crossed.factors)
    return Section("factors", f"Levels and combinations: {named}", _paragraphs(crossed), tuple(parts))


def _reach(crossed: CrossedFactors) -> str:
    return IN_GENERAL if any(result.has_general_test for result in crossed.utilities.values()) else HERE


def _versions_table(crossed: CrossedFactors) -> Table:
    names = list(crossed.factors)
    rows: list[tuple[Cell, ...]] = []
    for version in sorted(crossed.versions, key=lambda v: -crossed.utilities[version_name(v)].value):
        levels = ("",) * len(names) if isinstance(version, str) else version
        name = version_name(version)
        rows.append((name, *levels, crossed.utilities[name].shown))
    columns = (
        Column("version", "Version"),
        *(Column(f"level-{k}", factor) for k, factor in enumerate(names)),
        Column("utility", f"Utility (log odds), {_reach(crossed)}", "estimate"),
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
    dots = [Dot(name, utility.shown) for name, utility in crossed.utilities.items()]
    details = "; ".join(f"{dot.label}: {with_interval(dot.estimate)}" for dot in dots)
    spec = ranking_intervals(dots, value_title="utility (log odds)", reference=0.0)
    title = f"Utility of every version, {_reach(crossed)}"
    return Figure("versions-figure", title, spec, f"Utilities with confidence intervals: {details}.")


def _effects_table(effects: tuple[Effect, ...], options: Options) -> Table:
    shown = ResultColumns([effect.result for effect in effects], options)
    rows: list[tuple[Cell, ...]] = [
        (
            effect.result.label,
            "main effect" if effect.is_main else "interaction",
            effect.preferred if effect.preferred is not None else "",
            *shown.cells(effect.result),
        )
        for effect in effects
    ]
    columns = (
        Column("effect", "Effect"),
        Column("kind", "Kind"),
        Column("preferred", "Preferred, all else equal", "percent_estimate"),
        *shown.columns("Log odds", "estimate"),
    )
    repeats = () if shown.has_general or options.has_fixed_items else (sentence(NO_REPEATS),)
    return Table(
        "factor-effects",
        "Main effects and interactions",
        columns,
        tuple(rows),
        caption="Logistic model of the choices; each rater, and in general each transcript pair, is dropped in turn.",
        notes=(
            f"Effects {IN_GENERAL} take raters and transcript pairs as samples, those {HERE} raters only.",
            *repeats,
        ),
    )


def _paragraphs(crossed: CrossedFactors) -> tuple[str, ...]:
    best = max(crossed.utilities.values(), key=lambda c: c.value if c.here.is_known else -math.inf)
    texts = [f"The version {best.label} has the highest utility in these transcript pairs."]
    if crossed.missing:
        texts.append(
            f"{sentence(n_of(len(crossed.missing), 'combination'))[:-1]} of levels was never shown "
            f"({listed((version_name(v) for v in crossed.missing), most=4)}), so main effects and interactions cannot be "
            "separated. If a missing combination is the control itself, name its levels in control_factors."
        )
    texts += [_effect_words(effect) for effect in crossed.effects]
    if CONTROL in crossed.versions and not crossed.missing:
        texts.append("The control is a version of its own here: its levels are not among the combinations.")
    return tuple(sentence(text) for text in texts)


def _effect_words(effect: Effect) -> str:
    result = effect.result
    is_here = result.reach == "here" or not result.has_general_test
    p = p_words(p_adjusted(result.here if is_here else result.declared))
    where = " in these transcript pairs" if is_here else ""
    is_clear = result.reach in ("general", "here")
    beyond = f", but not significant for other pairs ({p_words(p_adjusted(result.declared))})"
    tail = beyond if result.reach == "here" and result.has_general_test else ""
    if effect.preferred is not None:
        share = with_interval(_preferred(result.here) if is_here else effect.preferred, is_percent=True)
        significant = f"{p}{tail}" if is_clear else f"{p}, not significant"
        return f"{result.label}: preferred in {share} of choices{where}, all else equal ({significant})."
    if is_clear:
        more = "more" if result.value > 0 else "less"
        return (
            f"{result.label}: together they give {more} than the two effects added{where} ({p}{tail}), so read the versions in the "
            "table rather than the effects alone."
        )
    return f"{result.label}: no significant sign that they do more or less together than apart{where} ({p})."
