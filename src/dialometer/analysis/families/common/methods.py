"""The same strategies tried by different methods: reading transcripts, live conversations, a wizard. Results, minutes, cost.

Guerini, Falcone and Magnini (SCAI 2018, section 4.5) set transcript pairs beside a Wizard-of-Oz study: 3 minutes and one person a
session against 30 minutes and two. Here every figure comes from the data of the studies themselves. Preferences are made comparable:
a choice in a transcript pair, or which of a rater's two conversations on the same task was rated higher, question by question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from dialometer._version import __version__
from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import correction_name, listed, n_of, number, p_words, percent, with_interval
from dialometer.analysis.families.pairs.choices import Flags, pair_choices
from dialometer.analysis.shared.comparisons import corrected, is_significant, known_cell, p_adjusted, p_cell
from dialometer.design.lock import fingerprint
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.item import ChatItem
from dialometer.model.report import PERCENTAGE_POINTS, Cell, Column, Figure, Method, Report, Section, Summary, Table
from dialometer.model.study import Study
from dialometer.report.charts import Dot, dot_interval
from dialometer.stats.clustered.clustered import clustered_preference
from dialometer.stats.clustered.proportion import quantile
from dialometer.stats.clustered.two_way_groups import two_way_differences
from dialometer.stats.observations import Floats, Ints
from dialometer.storage.counting.counts import OUTSIDE_STATES

NO_PREFERENCE = 0.5
CONTROL = "control"
PEOPLE = {1: "one person", 2: "two people"}
PAPER = "Guerini, Falcone and Magnini, SCAI 2018, section 4.5"


@dataclass(frozen=True, eq=False)
class MethodResult:
    """One study as one method: preferences by strategy, and what its sessions took."""

    label: str
    data: StudyData
    strategies: tuple[str, ...]
    signed: Floats
    """+1 for the version with the strategy, -1 for the control, 0 for no difference; one entry per rater, strategy and question."""
    rater: Ints
    strategy: Ints
    n_people: int
    """People whom a session needs at the same time."""
    minutes: Estimate
    n_sessions: int

    @property
    def share(self) -> Floats:
        """1 for the version with the strategy, 0 for the control, nan for no difference."""
        return np.where(self.signed == 0, np.nan, (self.signed + 1) / 2)

    def preference(self, strategy: str, confidence: float) -> Estimate:
        """The share that prefers the version with the strategy, each rater as one cluster."""
        inside = self.inside(strategy)
        if not np.any(inside & (self.signed != 0)):
            return unknown("share", "no rater had a preference", label=strategy)
        share = clustered_preference(self.signed[inside], self.rater[inside], confidence=confidence, label=strategy)
        return replace(share, notes=())  # answers without a difference are counted once for the method

    def inside(self, strategy: str) -> Flags:
        """Which answers are about a strategy."""
        known = self.strategies.index(strategy) if strategy in self.strategies else -1
        return np.asarray(self.strategy == known)


def method_result(data: StudyData, options: Options) -> MethodResult:
    """What a study of transcript pairs or of live conversations says, in the same terms."""
    study = data.study
    if study.spec.items.kind == "transcript_pair" and study.spec.items.pairs == "controlled":
        choices = pair_choices(data)
        known = ~np.isnan(choices.signed)
        preferences = (choices.strategies, choices.signed[known], choices.rater[known], choices.strategy[known])
        label, n_people = "Transcript pairs", 1
    elif study.spec.items.kind == "chat":
        preferences = _preferences_in_conversations(data)
        has_wizard = any(system.agent is not None and system.agent.type == "wizard" for system in study.spec.systems)
        label, n_people = ("Wizard of Oz", 2) if has_wizard else ("Live conversations", 1)
    else:
        raise NotEnoughData(
            f"'{study.spec.name}' has neither controlled transcript pairs nor conversations",
            remedy="compare studies made from the templates strategies, wizard or chat",
        )
    if not len(preferences[1]):
        raise NotEnoughData(
            f"'{study.spec.name}' holds no preferences yet", remedy="collect judgments, or try 'dialometer simulate'"
        )
    minutes = data.completed_sessions()["duration_s"].drop_nulls().to_numpy() / 60
    finished = data.sessions.filter(
        pl.col("source").is_in(data.sources) & (pl.col("state") == "completed") & ~pl.col("state").is_in(OUTSIDE_STATES)
    )
    length = quantile(minutes, confidence=options.confidence, label="minutes per session")
    return MethodResult(label, data, *preferences, n_people=n_people, minutes=length, n_sessions=len(finished))


def _preferences_in_conversations(data: StudyData) -> tuple[tuple[str, ...], Floats, Ints, Ints]:
    """For every rater, strategy (block) and question: which of the two conversations was rated higher."""
    study = data.study
    sides = _sides(study)
    strategies = tuple(sides)
    rows = data.judgments.select("rater", "item", "criterion", "value").drop_nulls("value")
    by_place: dict[tuple[str, str, str], dict[str, float]] = {}
    items = study.items_by_id
    for rater, item_id, criterion, value in rows.iter_rows():
        item = items.get(item_id)
        if isinstance(item, ChatItem) and item.block in sides:
            by_place.setdefault((rater, item.block, criterion), {})[item.system] = float(value)
    raters = {name: k for k, name in enumerate(sorted({place[0] for place in by_place}))}
    signed, rater_codes, strategy_codes = [], [], []
    for (rater, block, _), values in by_place.items():
        control, experimental = sides[block]
        if control in values and experimental in values:
            signed.append(float(np.sign(values[experimental] - values[control])))
            rater_codes.append(raters[rater])
            strategy_codes.append(strategies.index(block))
    codes = (np.array(rater_codes, dtype=np.int64), np.array(strategy_codes, dtype=np.int64))
    return strategies, np.array(signed, dtype=np.float64), *codes


def _sides(study: Study) -> dict[str, tuple[str, str]]:
    """Control and experimental system of every block; the control is called so, or is the first in the study file."""
    order = [system.name for system in study.spec.systems]
    sides = {}
    for block in study.blocks:
        systems = sorted({item.systems[0] for item in study.block_items(block)}, key=order.index)
        if len(systems) != 2:
            raise NotEnoughData(
                f"the block '{block.name}' of '{study.spec.name}' has {n_of(len(systems), 'system')}, not two",
                remedy="give each strategy a block with a control and an experimental system, as the template wizard does",
            )
        control = CONTROL if CONTROL in systems else systems[0]
        sides[block.name] = (control, next(name for name in systems if name != control))
    return sides


def compare_methods(
    studies: Sequence[StudyData], options: Options, *, helper_pay_per_hour: float | None = None
) -> Report:
    """One report on studies that try the same strategies by different methods."""
    results = _named_apart([method_result(data, options) for data in studies])
    shared = [name for name in results[0].strategies if all(name in result.strategies for result in results)]
    if not shared:
        names = "; ".join(f"{result.label}: {listed(result.strategies)}" for result in results)
        raise NotEnoughData(f"the studies share no strategy ({names})", remedy="give their blocks the same names")
    gaps = _differences(results, shared, options)
    costs = [_cost(result, helper_pay_per_hour) for result in results]
    sources = {source for result in results for source in result.data.sources}
    warnings = (
        ("These raters are simulated: the numbers test the design, they say nothing about real systems.",)
        if "simulated" in sources
        else ()
    )
    left_out = sorted({name for result in results for name in result.strategies} - set(shared))
    if left_out:
        warnings = (*warnings, f"Not tried by every method, and excluded: {listed(left_out)}.")
    return Report(
        study=" and ".join(result.data.study.spec.name for result in results),
        title="Methods compared: " + " and ".join(result.label for result in results),
        summary=Summary(
            _effort_words(results),
            _gap_words(gaps, results),
            warnings=warnings,
            figure=_figure(results, shared, options),
        ),
        sections=(
            _results_section(results, shared, gaps, options),
            _effort_section(results, costs, helper_pay_per_hour),
        ),
        methods=METHODS,
        provenance={
            "dialometer": __version__,
            "command": "dialometer compare STUDY_FOLDER STUDY_FOLDER",
            "confidence": options.confidence,
            **{f"fingerprint of {result.data.study.spec.name}": fingerprint(result.data.study) for result in results},
        },
    )


def _named_apart(results: Sequence[MethodResult]) -> list[MethodResult]:
    """Studies of the same method under their own names."""
    labels = [result.label for result in results]
    return [
        replace(result, label=f"{result.label} ({result.data.study.spec.name})")
        if labels.count(result.label) > 1
        else result
        for result in results
    ]


def _differences(results: Sequence[MethodResult], strategies: Sequence[str], options: Options) -> dict[str, Estimate]:
    """For each strategy, how far the first two methods are apart: other people answered, so raters are clusters of one study."""
    first, second = results[0], results[1]
    gaps = []
    for name in strategies:
        here = [result.inside(name) for result in (first, second)]
        share = np.concatenate([result.share[inside] for result, inside in zip((first, second), here, strict=True)])
        group = np.repeat(["0", "1"], [int(inside.sum()) for inside in here])
        rater = np.concatenate([first.rater[here[0]], second.rater[here[1]] + 1 + int(first.rater.max())])
        differences = two_way_differences(share, group, rater, None, confidence=options.confidence)
        gap = next(iter(differences.values()), unknown("difference of shares", "no preferences", label=name))
        gaps.append(replace(gap, notes=()) if gap.is_known else gap)
    return dict(zip(strategies, corrected(gaps, options), strict=True))


@dataclass(frozen=True, slots=True)
class _Cost:
    """Money for a session: what its rater and whoever answers (a wizard) are paid."""

    rater: float | None
    helper: float | None
    currency: str

    @property
    def session(self) -> float | None:
        return None if self.rater is None else self.rater + (self.helper or 0.0)


def _cost(result: MethodResult, helper_pay_per_hour: float | None) -> _Cost:
    """Wizards are paid by the hour, as raters are if nothing else is said."""
    pay = result.data.study.spec.recruitment
    rater = pay.cost_cents() / 100 if pay.pay_cents else None
    if result.n_people == 1 or not result.minutes.is_known:
        return _Cost(rater, None, pay.currency)
    usual = None if rater is None else pay.pay_cents / 100 * 60 / (pay.minutes or result.minutes.value)
    per_hour = helper_pay_per_hour if helper_pay_per_hour is not None else usual
    helper = None if per_hour is None else per_hour * result.minutes.value / 60 * (result.n_people - 1)
    return _Cost(rater, helper, pay.currency)


def _results_section(
    results: Sequence[MethodResult], strategies: Sequence[str], gaps: Mapping[str, Estimate], options: Options
) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for name in strategies:
        shares = [known_cell(result.preference(name, options.confidence)) for result in results]
        gap = gaps[name]
        rows.append((name, *shares, known_cell(gap), p_cell(p_adjusted(gap) if gap.is_known else float("nan"))))
    columns = (
        Column("strategy", "Strategy"),
        *(Column(f"method_{k}", result.label, "percent_estimate") for k, result in enumerate(results, start=1)),
        Column("difference", f"{results[0].label} − {results[1].label}", "percent_estimate", unit=PERCENTAGE_POINTS),
        Column("p", f"p ({correction_name(options.correction)})", "p_value"),
    )
    undecided = [
        f"{result.label}: {percent(float(np.mean(result.signed == 0)))} of the answers show no difference and are excluded."
        for result in results
        if np.any(result.signed == 0)
    ]
    table = Table(
        "methods",
        "Share that prefers the version with the strategy, over all questions",
        columns,
        tuple(rows),
        notes=(
            "In conversations a rater prefers the version that they rated higher on the same task and question.",
            *undecided,
            "Each rater is one cluster. Claims are about these transcripts and tasks; the difference of methods is exploratory.",
        ),
    )
    return Section("results", "Do the methods agree?", (_gap_words(gaps, results),), (table,))


def _effort_section(results: Sequence[MethodResult], costs: Sequence[_Cost], helper_pay: float | None) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for result, cost in zip(results, costs, strict=True):
        minutes = result.minutes.value * result.n_people if result.minutes.is_known else float("nan")
        n_answers = len(result.signed)
        session = cost.session
        total = None if session is None else session * result.n_sessions
        rows.append(
            (
                result.label,
                result.n_sessions,
                known_cell(result.minutes),
                result.n_people,
                minutes / len(result.strategies) if result.minutes.is_known else None,
                n_answers,
                None if session is None else f"{number(session)} {cost.currency}",
                None if total is None else f"{number(total / len(result.strategies))} {cost.currency}",
                None if total is None else f"{number(total / n_answers, 3)} {cost.currency}",
            )
        )
    columns = (
        Column("method", "Method"),
        Column("sessions", "Sessions", "count"),
        Column("minutes", "Median minutes of a session", "estimate"),
        Column("people", "People in a session", "count"),
        Column("minutes_per_strategy", "Minutes of people per strategy and session", "number", 1),
        Column("answers", "Preferences", "count"),
        Column("cost_session", "Cost of a session"),
        Column("cost_strategy", "Cost per strategy"),
        Column("cost_answer", "Cost per preference"),
    )
    paid = "as given" if helper_pay is not None else "by the hour as its raters are"
    table = Table(
        "effort",
        "Minutes and cost by method",
        columns,
        tuple(rows),
        notes=(
            f"A wizard is present throughout a session and is paid {paid}. Preparing transcripts, instructing wizards and "
            "building the assistant are not counted.",
            "Published: 3 minutes and one person a session for transcripts, 30 minutes and two people for the wizard; "
            "51.48 USD for 143 sessions of transcripts, about 10 USD a strategy.",
        ),
    )
    return Section("effort", "What does each method take?", (_effort_words(results),), (table,))


def _effort_words(results: Sequence[MethodResult]) -> str:
    known = [result for result in results if result.minutes.is_known]
    if len(known) < len(results):
        return "Not every study records how long its sessions took."
    parts = [
        f"{with_interval(result.minutes, unit='minutes', n_digits=1)} of {PEOPLE[result.n_people]} with {_inside(result)}"
        for result in known
    ]
    least = min(known, key=lambda result: result.minutes.value * result.n_people)
    most = max(known, key=lambda result: result.minutes.value * result.n_people)
    times = most.minutes.value * most.n_people / (least.minutes.value * least.n_people)
    return f"A session took {listed(parts)}: {number(times, 1)} times as much working time with {_inside(most)}."


def _inside(result: MethodResult) -> str:
    """The method inside a sentence."""
    return result.label if result.label.startswith("Wizard") else result.label[0].lower() + result.label[1:]


def _gap_words(gaps: Mapping[str, Estimate], results: Sequence[MethodResult]) -> str:
    apart = [name for name, gap in gaps.items() if gap.is_known and is_significant(gap)]
    known = [p_adjusted(gap) for gap in gaps.values() if gap.is_known]
    names = f"{_inside(results[0])} and {_inside(results[1])}"
    if apart:
        return f"The results of {names} differ significantly for {listed(apart)}."
    if not known:
        return f"The results of {names} cannot be compared yet."
    return (
        f"No difference between {names} is significant for any of {n_of(len(gaps), 'strategy', 'strategies')} (smallest corrected "
        f"{p_words(min(known))}); this is no proof that the methods agree: see the confidence intervals."
    )


def _figure(results: Sequence[MethodResult], strategies: Sequence[str], options: Options) -> Figure:
    dots = [
        Dot(name, estimate, group=result.label)
        for name in strategies
        for result in results
        if (estimate := result.preference(name, options.confidence)).is_known
    ]
    spec = dot_interval(
        dots,
        value_title="prefer the version with the strategy",
        group_title="Method",
        reference=NO_PREFERENCE,
        domain=(0.0, 1.0),
        is_percent=True,
    )
    alt = "; ".join(f"{dot.label}, {dot.group}: {with_interval(dot.estimate, is_percent=True)}" for dot in dots)
    return Figure("methods", "Preference by strategy and method", spec, f"{alt}. The line at 50% is no preference.")


METHODS = (
    Method(
        "preference by strategy and method",
        "share with CR2 cluster-robust variance by rater, Wilson interval with the effective number of answers",
        "raters answer several questions about each strategy",
        "Bell and McCaffrey 2002; Pustejovsky and Tipton 2018",
    ),
    Method(
        "difference between methods",
        "cluster-robust difference of shares, t-test, corrected over strategies",
        "other raters took part in each study, so raters are clusters of one method",
        PAPER,
    ),
    Method("length of a session", "median with the exact interval of order statistics", "times are skewed", ""),
)
