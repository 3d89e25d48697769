"""The chapter on strategies with several levels or crossed strategies."""

from __future__ import annotations

from dialometer.analysis.family import Options
from dialometer.analysis.leader import p_adjusted
from dialometer.analysis.pair_choices import PairChoices
from dialometer.analysis.pair_factors import CONTROL, Crossed, Effect, crossed_effects, version_name
from dialometer.analysis.pair_sections import is_significant, p_cell
from dialometer.analysis.pair_shares import corrected
from dialometer.analysis.words import listed, n_of, p_words, percent, sentence, with_interval
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.model.study import Study
from dialometer.report.charts import Dot, ranking_intervals


def factors_section(study: Study, choices: PairChoices, options: Options) -> Section:
    """Which level is best, what each factor does by itself, and whether the factors work together."""
    found = crossed_effects(study, choices, options)
    tested = corrected([effect.estimate for effect in found.effects], options)
    effects = [Effect(e.label, t, e.preferred) for e, t in zip(found.effects, tested, strict=True)]
    parts: list[Table | Figure] = [_versions_table(found), _versions_figure(found)]
    parts += [_effects_table(effects)] if effects else []
    named = " × ".join(found.factors)
    return Section("factors", f"Levels and combinations: {named}", _said(found, effects), tuple(parts))


def _versions_table(found: Crossed) -> Table:
    names = list(found.factors)
    rows: list[tuple[Cell, ...]] = []
    for version in sorted(found.versions, key=lambda v: -found.utilities[version_name(v)].value):
        levels = ("",) * len(names) if isinstance(version, str) else version
        name = version_name(version)
        rows.append((name, *levels, found.utilities[name], found.best_share.get(name)))
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
        notes=tuple(sentence(note) for note in found.notes),
    )


def _versions_figure(found: Crossed) -> Figure:
    dots = [Dot(name, one) for name, one in found.utilities.items()]
    told = "; ".join(f"{dot.label}: {with_interval(dot.estimate)}" for dot in dots)
    spec = ranking_intervals(dots, value_title="utility (log odds)", reference=0.0)
    return Figure("versions-figure", "Utility of every version", spec, f"Utilities with intervals: {told}.")


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


def _said(found: Crossed, effects: list[Effect]) -> tuple[str, ...]:
    said = []
    best = max(found.best_share, key=lambda name: found.best_share[name])
    said.append(
        f"The version {best} has the highest utility; it came out best in {percent(found.best_share[best])} of the resamples."
    )
    if found.missing:
        said.append(
            f"{sentence(n_of(len(found.missing), 'combination'))[:-1]} of levels was never shown "
            f"({listed((version_name(v) for v in found.missing), most=4)}), so main effects and interactions cannot be told "
            "apart. If a missing combination is the control itself, name its levels in control_factors."
        )
    for effect in effects:
        p = p_adjusted(effect.estimate)
        if effect.preferred is not None:
            share = with_interval(effect.preferred, is_percent=True)
            tail = f"({p_words(p)})" if is_significant(effect.estimate) else f"({p_words(p)}), which chance may explain"
            said.append(f"{effect.label}: preferred in {share} of choices, all else equal {tail}.")
        elif is_significant(effect.estimate):
            more = "more" if effect.estimate.value > 0 else "less"
            said.append(
                f"{effect.label}: together they give {more} than the two effects added ({p_words(p)}), so read the versions in "
                "the table rather than the effects alone."
            )
        else:
            said.append(f"{effect.label}: no sign that they do more or less together than apart ({p_words(p)}).")
    if CONTROL in found.versions and not found.missing:
        said.append("The control is a version of its own here: its levels are not among the combinations.")
    return tuple(sentence(one) for one in said)
