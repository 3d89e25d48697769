"""A preregistration from the study file: what was planned, in the headings that registries ask for.

The headings follow the OSF's preregistration form. Nothing here is written by hand: what the study does not declare is
said to be open, so that a reader sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dialometer._version import __version__
from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.scale_units import log_types
from dialometer.analysis.base.wording import (
    confidence_words,
    inside,
    listed,
    n_of,
    percent,
    question_label,
    system_label,
)
from dialometer.analysis.families.common.assignment import method as assignment_method
from dialometer.analysis.families.ratings.declared import is_about_ratings
from dialometer.analysis.planning.power import DEFAULT, Setting, simulate_tests
from dialometer.analysis.planning.power_report import assumption_words
from dialometer.analysis.planning.simulated_study import n_items_of, planted, simulated_data
from dialometer.analysis.shared.comparisons import (
    compared_systems,
    comparison_title,
    deciding_family,
    primary_comparison,
)
from dialometer.analysis.shared.equivalence import WORDS, has_margin, plan_words
from dialometer.analysis.shared.verdicts import DeclaredHypothesis
from dialometer.design.adaptive import floor_of
from dialometer.design.lock import fingerprint
from dialometer.design.protocol import protocol, shown_words
from dialometer.errors import DialometerError
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.item import KIND_WORDS
from dialometer.model.quality import QualityRule
from dialometer.model.recruitment import money
from dialometer.model.report import Method
from dialometer.model.study import Study
from dialometer.quality.gold import Gold, gold_items
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.sequential.planned import WORDS as SPENDING

FEW = 100
"""Resamples of the trial run, which only shows which methods are used; the study's own number is written down."""


@dataclass(frozen=True, slots=True)
class PlannedPower:
    """The power of the planned design for one effect."""

    n_raters: int
    effect: float
    alpha: float
    n_simulations: int
    n_tests: int
    power: Estimate
    """Any of the tests of the primary comparison is significant."""
    all_tests: Estimate
    """All of them are."""


def planned_raters(study: Study) -> int:
    """How many raters the study plans for; raises where it does not say."""
    n = protocol(study).n_raters
    if n is None:
        raise DialometerError(
            "the study does not say how many raters it plans for",
            where=STUDY_FILE,
            remedy="give recruitment.quota, or --raters",
        )
    return n


def planned_power(
    study: Study, *, n_raters: int, effect: float, alpha: float, n_simulations: int, seed: int
) -> PlannedPower:
    """The share of simulated studies of the planned size in which the primary comparison shows a difference."""
    setting = Setting(n_raters, n_items_of(study), effect, alpha, seed)
    p_values = simulate_tests(study, setting, range(n_simulations))
    hits = [[p <= alpha for p in study_p.values()] for study_p in p_values]
    found, found_all = (
        proportion(sum(bool(study) and count(study) for study in hits), n_simulations, label="power")
        for count in (any, all)
    )
    return PlannedPower(n_raters, effect, alpha, n_simulations, max(map(len, hits)), found, found_all)


def planned_methods(study: Study, *, n_raters: int, seed: int) -> tuple[Method, ...]:
    """The statistics that the analysis will use, found by running it once on simulated ratings."""
    truth, habits, shifts = planted(study, 0.5, seed)
    data = simulated_data(study, truth, habits, n_raters=n_raters, seed=seed, shifts=shifts)
    methods = analyse(study, data, seed=seed, n_resamples=FEW).methods
    declared = f"{study.spec.analysis.n_resamples:,} resamples"
    return tuple(replace(method, method=method.method.replace(f"{FEW} resamples", declared)) for method in methods)


OPEN = "*Not declared in the study file.*"
_ORDERS = {
    "fixed": "as in the file",
    "random": "drawn at random",
    "counterbalanced": "counterbalanced",
    "williams": "balanced by Williams squares",
}


def preregistration(
    study: Study,
    *,
    n_raters: int,
    power: PlannedPower | None,
    methods: Sequence[Method],
    n_collected: int,
    frozen: str,
) -> str:
    """The document as Markdown. ``frozen`` names the version of the lock, empty where there is none."""
    sections = [
        ("Study information", _information(study)),
        ("Design plan", _design(study)),
        ("Sampling plan", _sampling(study, n_raters, power, n_collected)),
        ("Variables", _variables(study)),
        ("Analysis plan", _analysis(study, methods)),
        ("Other", _other(study, frozen)),
    ]
    lines = [f"# Preregistration: {study.spec.title}", ""]
    for title, parts in sections:
        lines += [f"## {title}", ""]
        for heading, text in parts:
            lines += [f"### {heading}", "", text.strip() or OPEN, ""]
    return "\n".join(lines).rstrip() + "\n"


Parts = Iterator[tuple[str, str]]


def _information(study: Study) -> Parts:
    spec = study.spec
    yield "Title", spec.title
    yield "Authors", ", ".join(spec.authors) or spec.contact
    yield "Description", spec.description
    stated = [(comparison, comparison.hypothesis) for comparison in spec.analysis.comparisons]
    lines = [
        f"{number}. **{comparison_title(comparison)}**{_rank(study, comparison)}: {hypothesis.strip() or 'no direction is stated.'}"
        + (f" {planned}" if (planned := plan_words(comparison, spec.analysis.confidence)) else "")
        + _tested(study, comparison)
        for number, (comparison, hypothesis) in enumerate(stated, start=1)
    ]
    yield "Hypotheses", "\n".join(lines)


def _tested(study: Study, comparison: Comparison) -> str:
    """What the tests of a written hypothesis compare."""
    words = DeclaredHypothesis(study, comparison, {}, Options.declared(study)).tested()
    if not words or not comparison.hypothesis:
        return ""
    return f" Tested: {words}{', in size and in consistency' if _has_consistency(study, comparison) else ''}."


def _has_consistency(study: Study, comparison: Comparison) -> bool:
    """Whether levels of a factor are compared in how far raters agree, too."""
    return comparison.between == "factor" and is_about_ratings(study, comparison)


def _rank(study: Study, comparison: Comparison) -> str:
    return " (primary)" if comparison.name == primary_comparison(study).name else ""


def _design(study: Study) -> Parts:
    spec, design = study.spec, study.spec.design
    yield "Study type", _type_words(study)
    yield "Blinding", _blinding_words(study)
    systems = "; ".join(
        f"{system.label or system.name}" + (f" ({system.description.strip()})" if system.description else "")
        for system in spec.systems
    )
    lines = [*_item_lines(study), f"- Systems: {systems}"]
    for factor in design.factors:
        levels = ", ".join(level.label or level.name for level in factor.levels)
        lines.append(f"- Between raters: {factor.label or factor.name} with the levels {levels}.")
    if design.blocks:
        blocks = ", ".join(
            (block.title or block.name)
            + (f" (a rater gets {n_of(block.n_items, 'item')})" if block.n_items != "all" else "")
            for block in design.blocks
        )
        lines.append(f"- Within raters: the blocks {blocks}.")
    lines += [f"- Conditions: {len(study.cells)}.", f"- {_given_words(study)}"]
    if design.n_practice_items:
        lines.append(f"- Before them: {n_of(design.n_practice_items, 'item')} for practice, not analysed.")
    if design.systems_per_item is not None:
        how = "drawn" if floor_of(study) is not None else "counterbalanced (Latin square over raters and items)"
        lines.append(f"- Of each item a rater sees the responses of {design.systems_per_item} of the systems, {how}.")
    lines += [f"- What raters see. {line}" for line in shown_words(study)]
    yield "Study design", "\n".join(lines)
    assigned = assignment_method(study) if floor_of(study) is not None else None
    yield (
        "Randomisation",
        "\n".join(
            [
                f"All draws follow from the seed {spec.seed}.",
                "",
                *(
                    ["- Conditions: permuted blocks, so that conditions stay equally filled."]
                    if len(study.cells) > 1
                    else []
                ),
                *([f"- Systems: {assigned.method}."] if assigned else []),
                f"- Order of items: {_ORDERS[design.item_order]}.",
                *(
                    []
                    if _is_alone(study)
                    else [f"- Order of systems or sides on the screen: {_ORDERS[design.system_order]}."]
                ),
                *([f"- Order of criteria: {_ORDERS[design.criterion_order]}."] if len(spec.criteria) > 1 else []),
                *([f"- Order of blocks: {_ORDERS[design.block_order]}."] if design.blocks else []),
            ]
        ),
    )


def _type_words(study: Study) -> str:
    """What is drawn for each rater."""
    design, plan = study.spec.design, protocol(study)
    drawn = ["the condition"] if len(study.cells) > 1 else []
    drawn += ["the items"] if plan.n_items_per_rater is None or plan.n_items_per_rater < plan.n_items else []
    drawn += ["the two systems of each item"] if study.spec.items.kind == "arena" else []
    is_ordered = design.item_order != "fixed" or (bool(design.blocks) and design.block_order != "fixed")
    drawn += ["the order of the items"] if is_ordered else []
    drawn += (
        ["the position of the systems on the screen"] if not _is_alone(study) and design.system_order != "fixed" else []
    )
    return f"Experiment. Drawn at random, or balanced, for each rater: {listed(drawn) or 'nothing'}."


def _blinding_words(study: Study) -> str:
    """Who does not know the systems, and who does."""
    shown = "its name is not shown" if _is_alone(study) else "systems are shown by their position on the screen only"
    words = [f"Raters do not know which system made what they see: {shown}."]
    if study.spec.items.kind == "arena" and study.spec.arena.reveal == "end":
        words.append("The last page names the systems, after all votes.")
    if any(system.agent is not None and system.agent.type == "wizard" for system in study.spec.systems):
        words.append("The people who answer in place of a system know which one they are.")
    return " ".join(words)


def _is_alone(study: Study) -> bool:
    """Whether a screen shows one system at a time, so that there is no order of systems."""
    return study.spec.items.kind in ("dialogue", "chat", "candidate")


def _item_lines(study: Study) -> list[str]:
    """How many items there are, which only check raters, and which are drawn for raters where judges score all."""
    gold = gold_items(study)
    items = [item for item in study.rated_items if item.id not in gold]
    lines = [f"- Items: {len(items)}, {KIND_WORDS[study.spec.items.kind]}."]
    if gold:
        lines.append(f"- Beside them: {n_of(len(gold), 'gold item')}, to check raters; in no result.")
    n_drawn = _n_drawn(study)
    if n_drawn:
        lines.append(
            f"- Raters judge {n_drawn} of the {len(items)} items, drawn at random before the first rater comes."
        )
    kinds = {"model": "a language model", "evaluator": "a learned evaluator", "scores": "scores of a program"}
    named = [judge for judge in study.spec.judges if judge.name in _used_judges(study)]
    if named:
        what = listed(f"{judge.name} ({kinds[judge.kind]})" for judge in named)
        lines.append(f"- Judges, whose scores of the items correct the raters' estimates: {what}.")
    return lines


def _n_drawn(study: Study) -> int:
    """How many items were drawn for raters; 0 where they get all."""
    gold = gold_items(study)
    drawn, every = (
        len([item for item in items if item.id not in gold]) for items in (study.people_items, study.rated_items)
    )
    return drawn if drawn < every else 0


def _used_judges(study: Study) -> list[str]:
    """The judges that the confirmatory analysis uses."""
    declared = study.spec.analysis.judges
    return [] if declared is None else declared.use


def _given_words(study: Study) -> str:
    """How many items a rater gets, gold items that are handed out beside them included."""
    plan = protocol(study)
    n_given = plan.n_items_per_rater
    if n_given is None:
        return "Each rater gets as many items as the rater likes."
    of = (
        f"{n_given} of {'the items that raters judge' if _n_drawn(study) else 'the items'}"
        if n_given < plan.n_items
        else "all items"
    )
    rules = [rule for rule in study.spec.quality if isinstance(rule, Gold) and rule.per_rater]
    n_gold = sum(min(rule.per_rater or 0, len(rule.gold_ids(study))) for rule in rules)
    beside = f" and {n_of(n_gold, 'gold item')}" if n_gold else ""
    return f"Each rater gets {of}{beside}."


def _sampling(study: Study, n_raters: int, power: PlannedPower | None, n_collected: int) -> Parts:
    spec, numbers = study.spec, protocol(study)
    existing = (
        f"{n_collected:,} judgments of human raters had been collected when this was written."
        if n_collected
        else "No judgment of a human rater had been collected when this was written."
    )
    yield "Existing data", existing
    lines = [f"Raters are recruited by: {spec.recruitment.preset or spec.recruitment.platform}."]
    if spec.recruitment.pay_cents:
        lines.append(f"They are paid {spec.recruitment.pay} for about {numbers.minutes_per_rater:g} minutes.")
    if numbers.qualifications:
        lines.append(f"Raters must meet these qualifications: {'; '.join(numbers.qualifications)}.")
    for question in spec.screening:
        if question.accept:
            accepted = listed((f"“{answer}”" for answer in question.accept), conjunction="or")
            lines.append(f"Only raters who answer “{question.text}” with {accepted} take part.")
    yield "Data collection", " ".join(lines)
    n_drawn = _n_drawn(study)
    each = f"each of the {n_drawn} items that raters judge" if n_drawn else "each item"
    wanted = f"{n_raters} raters"
    if spec.design.judgments_per_item:
        wanted += f"; {spec.design.judgments_per_item} raters for {each}"
    yield "Sample size", f"{wanted}."
    yield "Sample size rationale", _rationale(study, power)
    per_item = n_of(spec.design.judgments_per_item or 0, "rater")
    end = f"{n_raters} raters have finished"
    if spec.design.judgments_per_item and spec.recruitment.quota is None:
        where = " in each condition" if spec.design.is_quota_per_condition else ""
        end = f"{each if n_drawn else 'every item'} has been judged by {per_item}{where}"
    excludes = any(rule.action == "exclude" for rule in spec.quality)
    replaced = " Raters whom a rule excludes are replaced." if excludes else ""
    yield "Stopping rule", f"Data collection ends when {end}{_stops(study)}{replaced}"


def _stops(study: Study) -> str:
    """How looks before the end may end the study."""
    declared = study.spec.analysis
    if declared.looks is None:
        return ". Results seen before that are not used to decide when to stop."
    rule = declared.stop
    if isinstance(declared.looks, list):
        numbers = listed(map(str, declared.looks))
        looks = f"Results are looked at when {numbers} raters have finished, and at no other time"
        how = f"the error is spent over the looks by a {SPENDING[declared.spending]} function (Lan and DeMets 1983)"
    else:
        looks = "Results may be looked at any time"
        how = "tests and confidence intervals are those of an asymptotic confidence sequence (Robbins' normal mixture)"
    sure = f"{looks}: {how}, so that the error rate of {1 - declared.confidence:.2g} holds over all looks together."
    if rule is None:
        return f". {sure} Data collection may end at any look." if declared.looks == "anytime" else f". {sure}"
    reasons = ["the primary hypothesis is supported or contradicted"] if rule.decided else []
    if rule.futile:
        reasons.append(f"the predicted chance of deciding it by the end is below {percent(rule.futile)}")
    if rule.budget_cents:
        reasons.append(f"{money(rule.budget_cents, study.spec.recruitment.currency)} are spent")
    when = f", checked after every {rule.every} raters" if declared.looks == "anytime" else ""
    return f", or earlier when {listed(reasons, conjunction='or')}{when}. {sure}"


def _rationale(study: Study, power: PlannedPower | None) -> str:
    if power is None:
        return ""
    comparison = primary_comparison(study)
    unit = deciding_family(study).effect_unit(comparison)
    low, high = power.power.low, power.power.high
    several = (
        f" in any of its {power.n_tests} tests and {percent(power.all_tests.value)} in all of them"
        if power.n_tests > 1
        else ""
    )
    return (
        f"With {power.n_raters} raters, the primary comparison ({comparison_title(comparison)}) "
        f"{_shows(comparison, power.effect, unit)} with a power of {percent(power.power.value)} (95% confidence interval "
        f"{percent(low)} to {percent(high)}){several}, at a significance level of {power.alpha:g} after correction. This comes from "
        f"{power.n_simulations} simulated studies with this design, each analysed as the real one will be. "
        f"{assumption_words(DEFAULT)}"
    )


def _shows(comparison: Comparison, effect: float, unit: str) -> str:
    if not has_margin(comparison):
        return f"shows a difference of {effect:g} {unit}"
    margin = f"with a margin of {comparison.margin:g}"
    return f"shows {WORDS[comparison.test]} {margin} where the true difference is {effect:g} {unit}"


def _variables(study: Study) -> Parts:
    spec = study.spec
    manipulated = [
        f"- {factor.label or factor.name}: {', '.join(level.label or level.name for level in factor.levels)}"
        for factor in spec.design.factors
    ]
    compared = compared_systems(study) or [system.name for system in spec.systems]  # others only check raters
    manipulated.append(f"- System: {', '.join(system_label(study, name) for name in compared)}")
    yield "Manipulated variables", "\n".join(manipulated)
    measured = [
        f"- {criterion.label or criterion.name}: “{criterion.question}” ({spec.scales[criterion.scale].describe()})"
        + (f". {criterion.definition.strip()}" if criterion.definition else "")
        + (f" Source: {criterion.source}." if criterion.source else "")
        for criterion in spec.criteria
    ]
    questions = [
        f"- {question_label(study, question.name)}: “{question.text}”"
        + (f" Source: {question.source}." if question.source else "")
        for question in (*spec.pre_questionnaire, *spec.post_questionnaire)
    ]
    yield "Measured variables", "\n".join([*measured, *questions])


def _analysis(study: Study, methods: Sequence[Method]) -> Parts:
    spec, declared = study.spec, study.spec.analysis
    lines = [f"- {method.what}: {method.method}, because {method.why}." for method in methods]
    yield "Statistical models", "\n".join(lines)
    zeros = {
        "exclude": "zeros are excluded",
        "half_minimum": "zeros become half of the rater's smallest positive number",
        "error": "zeros stop the analysis",
    }
    yield (
        "Transformations",
        f"Magnitude estimates are analysed as logarithms; {zeros[declared.zeros]}."
        if log_types(study)
        else "None beyond those of the methods above.",
    )
    about_items = {
        "sample": "Items are a sample, as raters are: claims hold for other items too, or are worded as claims about these.",
        "fixed": "Items are fixed: all claims are about these items, for other raters.",
    }
    model = " Likert ratings are analysed by an ordinal mixed model." if declared.model == "ordinal" else ""
    correction = {
        "holm": "Holm's method",
        "benjamini-hochberg": "Benjamini and Hochberg's method",
        "none": "no correction",
    }
    yield (
        "Inference criteria",
        f"Confidence intervals of {confidence_words(declared.confidence)}; p-values below {1 - declared.confidence:.2g} count. "
        f"Several tests of a comparison are corrected by {correction[declared.correction]}. Bootstrap confidence intervals use "
        f"{declared.n_resamples:,} resamples with the study's seed. {about_items[declared.items]}{model}{_verdicts(study)}",
    )
    yield "Data exclusion", "\n".join(map(_rule, spec.quality))
    yield (
        "Missing data",
        "Judgments that a rater did not give are missing and not filled in. Judgments of raters who left before the end "
        "count; those of raters who were screened out, declined or withdrew do not.",
    )
    titles = listed(comparison_title(comparison) + _rank(study, comparison) for comparison in declared.comparisons)
    names = listed(inside(question_label(study, name)) for name in declared.subgroups)
    groups = f", results by {names} included" if names else ""
    yield "Confirmatory and exploratory analyses", f"Confirmatory: {titles}. All other results are exploratory{groups}."


def _verdicts(study: Study) -> str:
    """What makes a hypothesis supported or contradicted, for the kinds of hypotheses that the study has."""
    differences = [comparison for comparison in study.spec.analysis.comparisons if not has_margin(comparison)]
    words = []
    directed = any(comparison.expected for comparison in differences)
    if directed:
        words.append(
            "A hypothesis with a direction is supported where all expected differences are significant in that direction, and "
            "contradicted where one is significant in the other."
        )
    if any(not comparison.expected for comparison in differences):
        is_apart = any(_has_consistency(study, comparison) for comparison in differences if not comparison.expected)
        apart = " (of conditions in size and in consistency)" if is_apart else ""
        one = "One" if directed else "A hypothesis"
        words.append(
            f"{one} without a direction is supported where on each of its criteria{apart} a difference is significant."
        )
    if words:
        words.append("Anything else is undecided.")
    return "".join(f" {text}" for text in words)


def _rule(rule: QualityRule) -> str:
    follows = {
        "screen_out": "The session ends there.",
        "exclude": "The rater is excluded from the analysis.",
        "flag": "The rater is flagged and stays in the analysis.",
    }
    return f"- **{rule.rule.replace('_', ' ').capitalize()}**: {rule.in_words()}. {follows[rule.action]}"


def _other(study: Study, frozen: str) -> Parts:
    yield (
        "Study materials",
        f"The study file, all items and all texts have the fingerprint `{fingerprint(study)}`"
        + (f", frozen as {frozen}." if frozen else ". They are not frozen yet: run `dialometer freeze`."),
    )
    yield "Software", f"dialometer {__version__}; this document was written by `dialometer preregister`."
