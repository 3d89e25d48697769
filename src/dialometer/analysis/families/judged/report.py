"""The answer of studies that declare it: human raters corrected by judges (``analysis.judges`` of the study file).

For every system, criterion and comparison: raters alone, judge alone, both; how much narrower the interval became, and how many
human judgments this was worth. The verdicts on hypotheses are those of the corrected estimates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from dialometer.analysis.base.data import MODEL_NAME, StudyData, judge_names
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, OtherChoice, section_or_problem
from dialometer.analysis.base.wording import as_geometric_mean, as_ratio, listed, n_of, percent, system_label
from dialometer.analysis.families.judged.scores import (
    THING,
    JudgedCriterion,
    chosen_criteria,
    judged_criteria,
    rated_criteria,
)
from dialometer.analysis.shared.comparisons import (
    corrected_by_name,
    is_about,
    is_significant,
    known_cell,
    p_cells,
    p_columns,
    primary_comparison,
)
from dialometer.analysis.shared.effect_words import compared_words, effect_words, flipped
from dialometer.analysis.shared.equivalence import decided
from dialometer.errors import NotEnoughData
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Claim, Column, Figure, Method, Section, Table
from dialometer.model.study import Study
from dialometer.quality.gold import gold_items
from dialometer.report.charts.intervals import Dot, dot_interval
from dialometer.stats.judged.means import Corrected

NAME, TITLE = "judged", "Human raters corrected by judges"
ALONE, JUDGE, BOTH = "Raters alone", "Judge alone", "Both"
CAPTION = (
    "Judge alone: its interval is over items and knows nothing of the judge's errors. Both: raters' estimate, corrected by the "
    "judge's scores of all items. Narrower: than the interval of raters alone; negative where it is wider, since the judge's "
    "estimated weight costs a degree of freedom. Worth: how many human judgments would give raters alone an estimate of the same "
    "variance; in brackets a rough confidence interval, which is wide where few items show how well judge and raters agree."
)
COMBINED = {
    "mean": "the mean of their scores",
    "majority": "the majority of their choices (the median of their ratings)",
    "dawid_skene": "Dawid and Skene's model, which learns from raters' answers on other items how far to trust each of them",
}
METHODS = (
    Method(
        "Human raters corrected by judges",
        "prediction-powered inference with power tuning (PPI++); variance by a jackknife over raters and items, Student's t (shares: "
        "Wilson's interval with the effective number of judgments)",
        "valid whatever the judge is worth, since raters judged a random part of the items; the judge's weight lies within 0 and 1",
        "Angelopoulos, Duchi and Zrnic 2023; judges that learn from these ratings: Zrnic and Candès 2024",
    ),
)


class PeopleAndJudges(Family):
    """Fits studies whose analysis names judges, where systems are rated with numbers or chosen between."""

    rank = 9

    def fits(self, study: Study) -> bool:
        """Whether judges are declared and all raters were under the same conditions."""
        has = study.spec.analysis.judges is not None and not study.spec.design.factors
        return has and bool(rated_criteria(study) or chosen_criteria(study))

    def decides(self, study: Study, comparison: Comparison) -> bool:
        """Comparisons of systems."""
        criteria = (*rated_criteria(study), *chosen_criteria(study))
        return comparison.between == "systems" and not comparison.blocks and is_about(comparison, criteria)

    def primary_tests(self, data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
        """Systems two by two on each criterion, corrected by judges."""
        return decided(_tests(data, comparison, options), comparison, options)

    def alternatives(self, data: StudyData, comparison: Comparison, options: Options) -> list[OtherChoice]:
        """Raters alone, as if there were no judge."""
        alone = replace(data, by_models=data.by_models.clear())

        def tests() -> dict[str, Estimate]:  # that a judge adds nothing is not news where there is none
            made = self.primary_tests(alone, comparison, options)
            return {label: replace(test, notes=()) for label, test in made.items()}

        return [OtherChoice("Judges", "raters alone", tests)]

    def run(self, data: StudyData, options: Options) -> Findings:
        """The answer, its section and its figure."""
        work = _JudgedRun(data, options)
        if not work.criteria:
            raise NotEnoughData(
                "there are no judgments that judges could correct", remedy="collect judgments of raters"
            )
        figure = work.figure()
        return Findings(
            answer=work.answer(),
            certainty=work.certainty(),
            basis=work.certainty(),
            figure=figure,
            sections=(section_or_problem(NAME, TITLE, work.section),),
            methods=METHODS,
            warnings=work.warnings(),
            claims=tuple(Claim(f"{label}: significant") for label, test in work.tests.items() if is_significant(test)),
        )


def _tests(data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
    tests = {}
    for criterion in judged_criteria(data, options):
        if comparison.criteria and criterion.name not in comparison.criteria:
            continue
        for pair in criterion.pairs:
            if not comparison.levels or set(pair) <= set(comparison.levels):
                first, second = (system_label(data.study, name) for name in pair)
                tests[f"{criterion.label}: {first} against {second}"] = criterion.test(pair)
    return tests


@dataclass(frozen=True, eq=False)
class _JudgedRun:
    """One run; what several parts need is computed once."""

    data: StudyData
    options: Options

    @cached_property
    def study(self) -> Study:
        return self.data.study

    @cached_property
    def criteria(self) -> list[JudgedCriterion]:
        return judged_criteria(self.data, self.options)

    @cached_property
    def tests(self) -> dict[str, Estimate]:
        """Those of the primary comparison."""
        comparison = primary_comparison(self.study)
        made = _tests(self.data, comparison, self.options) or _tests(
            self.data, Comparison(name="systems"), self.options
        )
        return corrected_by_name(made, self.options)

    @property
    def judge(self) -> str:
        """The judges in words."""
        use = self.study.spec.analysis.judges
        return listed(use.use) if use else "the judge"

    @cached_property
    def found(self) -> list[Corrected]:
        """All comparisons; where there are none, the means."""
        return [one for c in self.criteria for one in (*c.pairs.values(), *(() if c.pairs else c.means.values()))]

    def answer(self) -> str:
        """The tests of the primary comparison, the higher system first."""
        parts = [self._words(test) for test in self.tests.values() if test.is_known]
        return f"{'; '.join(parts[:3])}." if parts else "Not enough data."

    def _words(self, test: Estimate) -> str:
        shown = test if test.value >= float(test.details["null"]) else flipped(test)
        first, second = (system_label(self.study, str(shown.details[side])) for side in ("first", "second"))
        if len(self.criteria) == 1:
            shown = replace(shown, details={**shown.details, "about": ""})
        if math.isnan(test.p_value):
            return f"{compared_words(shown, first, second)}, which is not tested, since {test.notes[0]}"
        words = effect_words(shown, first, second, self.options.correction)
        return words if is_significant(test) else f"{words}, which is not significant"

    def certainty(self) -> str:
        """Who judged what, and what the judge added."""
        return f"{self._who()} {self._gain()}".strip()

    def _who(self) -> str:
        people, judges = self.criteria[0].people, self.criteria[0].judges
        n_scored = n_of(judges["item"].n_unique(), "item")
        scored = f"; their answers are corrected by {self.judge}, which scored {n_scored}" if len(judges) else ""
        return f"{n_of(people['rater'].n_unique(), 'rater')} judged {n_of(self._n_items, 'item')}{scored}."

    def _gain(self) -> str:
        known = [one for one in self.found if one.both.has_interval]
        if not known:
            return ""
        scored = [criterion for criterion in self.criteria if len(criterion.judges)]
        if scored and not any(len(one.judges.join(one.people, on=THING, how="anti")) for one in scored):
            return "The judge scored nothing that raters did not judge too, so the estimates are those of raters alone."
        if all(not one.weight for one in known):
            return "The judge adds nothing here: its weight is zero, and the estimates are those of raters alone."
        narrower = float(np.median([one.narrower for one in known]))
        if narrower < 0.005:
            what = "interval is" if len(known) == 1 else "intervals are"
            return f"The {what} no narrower with the judge than for raters alone."
        times = float(np.median([one.n_worth / one.both.n for one in known]))
        ends = [(one.n_worth_low / one.both.n, one.n_worth_high / one.both.n) for one in known if one.n_worth_low > 0]
        sure = ""
        if ends:
            low, high = np.median(ends, axis=0)
            reach = f"{low:.1f} to {high:.1f}" if np.isfinite(high) else f"{low:.1f} or more"
            sure = f" (roughly {reach})"
        what, median = ("The interval is", "") if len(known) == 1 else ("Intervals are", " (medians)")
        return (
            f"{what} {percent(narrower)} narrower with the judge than for raters alone. By the variance of the estimate, the "
            f"judge is worth about {times:.1f} times as many human judgments{sure}{median}."
        )

    @property
    def _n_items(self) -> int:
        return self.criteria[0].people["item"].n_unique()

    def warnings(self) -> tuple[str, ...]:
        """Judges that are declared and have said nothing, and judges whose scores cover little."""
        use = self.study.spec.analysis.judges
        known = set(self.data.by_models["rater"].unique().to_list())
        silent = [name for name in (use.use if use else ()) if name not in known]
        notes = []
        if silent:
            notes.append(
                f"The analysis declares {listed(silent)}, of which no judgments are stored; the estimates do without. Run dialometer "
                "judge, or dialometer learn judge."
            )
        items = {item.id for item in self.study.rated_items} - set(gold_items(self.study))
        n_scored = max((criterion.judges["item"].n_unique() for criterion in self.criteria), default=0)
        if not silent and 0 < n_scored < len(items):
            notes.append(
                f"{self.judge} scored {n_scored:,} of {n_of(len(items), 'item')}: estimates are about items like those that it scored."
            )
        trained = [name for name in self._trained_here if name in known and name not in self._folds]
        if trained:
            notes.append(
                f"{listed(trained)} learned from ratings of this study, and its scores are not cross-fitted: a model that has seen "
                "an item's ratings fits them too well, and the interval is too narrow. Run dialometer learn judge without a file of "
                "scores, which trains in folds, or give --folds with scores that were cross-fitted elsewhere."
            )
        notes += [
            f"{one.label}: judges are averaged, since Dawid and Skene's model cannot be fitted ({one.problem})."
            for one in self.criteria
            if one.problem
        ]
        return tuple(notes)

    @property
    def _trained_here(self) -> list[str]:
        """Judges in use that learned from this study's ratings."""
        use = self.study.spec.analysis.judges
        return [
            judge.name
            for judge in self.study.spec.judges
            if use and judge.name in use.use and judge.trained_on == "this"
        ]

    @cached_property
    def _folds(self) -> dict[str, int]:
        """Judges whose scores were cross-fitted, and in how many folds."""
        n_folds = self.data.answers.filter((pl.col("part") == MODEL_NAME[0]) & (pl.col("question") == "folds"))
        names = judge_names(self.data.answers, self.data.sessions)
        return {names[rater]: int(n) for rater, n in n_folds.select("rater", "value").iter_rows() if rater in names}

    def section(self) -> Section:
        """Everything three ways."""
        figure = self.figure()
        tables = (*self._tables(), *(() if figure is None else (figure,)))
        return Section(NAME, TITLE, tuple(self._paragraphs()), tables, is_confirmatory=True)

    def _paragraphs(self) -> Iterable[str]:
        rate = min(self.study.chances_for_people.values(), default=1.0)
        given = (
            "Raters were given a random part of the items, judges all."
            if rate < 1
            else "Raters and judges were given all items."
        )
        yield f"{self._who()} {given} {self._gain()}"
        use = self.study.spec.analysis.judges
        for judge, n_folds in self._folds.items():
            if use and judge in use.use:
                yield (
                    f"{judge} learned from this study's ratings in {n_folds} folds: each item that raters judged was scored by a "
                    "model that did not see its ratings, the others by the mean of all models."
                )
        if use and len(use.use) > 1:
            yield f"Several judges count as one, by {COMBINED[use.combine]}."
        flat = [
            f"{criterion.label}, {system_label(self.study, first)} against {system_label(self.study, second)}"
            for criterion in self.criteria
            for (first, second), one in criterion.pairs.items()
            if not one.weight and one.both.is_known
        ]
        if flat and len(flat) < len(self.found):
            yield f"The judge adds nothing to: {listed(flat)}. There its weight is zero."

    def _tables(self) -> Iterable[Table]:
        for kind in ("points", "log", "choices"):
            own = [criterion for criterion in self.criteria if _kind(criterion) == kind]
            if own:
                yield from self._tables_of(kind, own)

    def _tables_of(self, kind: str, own: list[JudgedCriterion]) -> Iterable[Table]:
        correction = self.options.correction
        pairs = {(criterion.label, *pair): criterion.test(pair) for criterion in own for pair in criterion.pairs}
        tests = corrected_by_name(pairs, self.options)
        rows = [
            (
                criterion.label,
                *(system_label(self.study, name) for name in shown),
                *_cells(turned, as_ratio if kind == "log" else _as_is),
                *p_cells(tests[criterion.label, *pair], correction),
            )
            for criterion in own
            for pair, one in criterion.pairs.items()
            for shown, turned in [_higher_first(pair, one, kind)]
        ]
        if rows:
            columns = (
                Column("criterion", "Criterion"),
                Column("first", "First"),
                Column("second", "Second"),
                *_columns("percent_estimate" if kind == "choices" else "estimate"),
                *p_columns(correction),
            )
            title = f"{COMPARED[kind]}, three ways"
            yield Table(f"judged_{PREFIX[kind]}", title, columns, tuple(rows), CAPTION, is_confirmatory=True)
        of_systems = [(f"judged_{PREFIX[kind]}_systems", OF_SYSTEMS[kind], [criterion.means for criterion in own])]
        if kind == "choices":
            title = "Bradley-Terry strengths (log odds) with length and formatting held equal"
            of_systems.append(("judged_choices_style", title, [criterion.styled for criterion in own]))
        for name, title, found in of_systems:
            means = [
                (
                    criterion.label,
                    system_label(self.study, system),
                    *_cells(one, as_geometric_mean if kind == "log" else _as_is),
                )
                for criterion, by_system in zip(own, found, strict=True)
                for system, one in by_system.items()
            ]
            if means:
                columns = (Column("criterion", "Criterion"), Column("system", "System"), *_columns("estimate"))
                yield Table(name, f"{title}, three ways", columns, tuple(means))

    def figure(self) -> Figure | None:
        """Differences or shares three ways, those of one kind."""
        criteria = [one for one in self.criteria if one.pairs]
        if not criteria:
            return None
        kind = _kind(criteria[0])
        alike = [criterion for criterion in criteria if _kind(criterion) == kind]
        shown = as_ratio if kind == "log" else _as_is
        dots = [
            Dot(self._pair_label(pair), shown(estimate), group, criterion.label if len(alike) > 1 else "")
            for criterion in alike
            for pair, one in (_higher_first(*item, kind) for item in criterion.pairs.items())
            for group, estimate in ((ALONE, one.people), (JUDGE, one.judge), (BOTH, one.both))
        ]
        what = DRAWN[kind]
        spec = dot_interval(dots, value_title=what, reference=NULL[kind], is_percent=kind == "choices")
        return Figure(
            "judged",
            f"{what}: raters alone, judge alone, both",
            spec,
            alt=f"{what} with confidence intervals, for raters alone, the judge alone, and raters corrected by the judge.",
            caption="The judge's own interval does not include its errors; the corrected one does.",
            is_confirmatory=True,
        )

    def _pair_label(self, pair: tuple[str, str]) -> str:
        return " against ".join(system_label(self.study, name) for name in pair)


PREFIX = {"points": "ratings", "log": "magnitudes", "choices": "choices"}
COMPARED = {"points": "First minus second", "log": "First over second", "choices": "First chosen over second"}
OF_SYSTEMS = {
    "points": "Mean ratings",
    "log": "Geometric mean ratings",
    "choices": "Bradley-Terry strengths (log odds)",
}
DRAWN = {
    "points": "Difference of mean ratings",
    "log": "Ratio of geometric mean ratings",
    "choices": "Share of choices for the first",
}
NULL = {"points": 0.0, "log": 1.0, "choices": 0.5}


def _kind(criterion: JudgedCriterion) -> str:
    return "choices" if criterion.is_choice else "log" if criterion.is_log else "points"


def _higher_first(pair: tuple[str, str], one: Corrected, kind: str) -> tuple[tuple[str, str], Corrected]:
    """A comparison as the sentences have it: the system with the higher corrected estimate first."""
    center = 1.0 if kind == "choices" else 0.0
    if not one.both.is_known or 2 * one.both.value >= center:
        return pair, one
    people, judge, both = (
        replace(e, value=center - e.value, low=center - e.high, high=center - e.low)
        for e in (one.people, one.judge, one.both)
    )
    return (pair[1], pair[0]), replace(one, people=people, judge=judge, both=both)


def _as_is(estimate: Estimate) -> Estimate:
    return estimate


def _columns(kind: str) -> tuple[Column, ...]:
    estimate = "percent_estimate" if kind == "percent_estimate" else "estimate"
    return (
        Column("people", ALONE, estimate),  # type: ignore[arg-type]
        Column("judge", JUDGE, estimate),  # type: ignore[arg-type]
        Column("both", BOTH, estimate),  # type: ignore[arg-type]
        Column("narrower", "Narrower", "percent", 0),
        Column("worth", "Worth", "estimate", 0),
        Column("n", "Human judgments", "count"),
        Column("weight", "Judge's weight", "number"),
    )


def _cells(one: Corrected, shown: Callable[[Estimate], Estimate]) -> tuple[Cell, ...]:
    estimates = tuple(known_cell(shown(estimate)) for estimate in (one.people, one.judge, one.both))
    if not one.both.has_interval:
        return (*estimates, None, None, one.both.n, one.weight if one.both.is_known else None)
    cell = None
    if np.isfinite(one.n_worth):
        cell = Estimate(
            one.n_worth,
            one.both.n,
            "human judgments of raters alone that give the same variance",
            low=one.n_worth_low,
            high=one.n_worth_high,
        )
    return (*estimates, one.narrower, cell, one.both.n, one.weight)


ANALYSES.register(NAME)(PeopleAndJudges())
