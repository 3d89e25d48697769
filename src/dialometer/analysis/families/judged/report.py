"""The answer of studies that declare it: human raters corrected by judges (``analysis.judges`` of the study file).

For every system, criterion and comparison: raters alone, judge alone, both; how much narrower the interval became, and how many
human judgments this was worth. The verdicts on hypotheses are those of the corrected estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, OtherChoice, section_or_problem
from dialometer.analysis.base.wording import listed, n_of, percent, system_label
from dialometer.analysis.families.judged.scores import (
    JudgedCriterion,
    chosen_criteria,
    judge_names,
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
from dialometer.analysis.shared.effect_words import effect_words, flipped
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
    "judge's scores of all items. Narrower: than the interval of raters alone. Worth: how many human judgments raters alone would "
    "need for the corrected interval."
)
METHODS = (
    Method(
        "Human raters corrected by judges",
        "prediction-powered inference with power tuning (PPI++); variance by a jackknife over raters and items, Student's t (shares: "
        "Wilson's interval with the effective number of judgments)",
        "valid whatever the judge is worth, since raters judged a random part of the items; the judge's weight lies within 0 and 1",
        "Angelopoulos, Duchi and Zrnic 2023",
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
        return [OtherChoice("Judges", "raters alone", partial(self.primary_tests, alone, comparison, options))]

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
        return f"Human raters corrected by {self.judge}: {'; '.join(parts[:3])}." if parts else "Not enough data."

    def _words(self, test: Estimate) -> str:
        shown = test if test.value >= float(test.details["null"]) else flipped(test)
        first, second = (system_label(self.study, str(shown.details[side])) for side in ("first", "second"))
        return effect_words(shown, first, second, self.options.correction)

    def certainty(self) -> str:
        """Who judged what, and what the judge added."""
        return f"{self._who()} {self._gain()}".strip()

    def _who(self) -> str:
        people, judges = self.criteria[0].people, self.criteria[0].judges
        n_raters, n_items = people["rater"].n_unique(), people["item"].n_unique()
        scored = f"; {self.judge} scored {n_of(judges['item'].n_unique(), 'item')}" if len(judges) else ""
        return f"{n_of(n_raters, 'rater')} judged {n_of(n_items, 'item')}{scored}."

    def _gain(self) -> str:
        known = [one for one in self.found if one.both.is_known]
        if not known:
            return ""
        if all(not one.weight for one in known):
            return "The judge adds nothing here: its weight is zero, and the estimates are those of raters alone."
        narrower = float(np.median([one.narrower for one in known]))
        times = float(np.median([one.n_worth / one.both.n for one in known]))
        return (
            f"With the judge, intervals are {percent(narrower)} narrower than those of raters alone (median), worth {times:.1f} times "
            "as many human judgments."
        )

    def warnings(self) -> tuple[str, ...]:
        """Judges that are declared and have said nothing, and judges whose scores cover little."""
        use = self.study.spec.analysis.judges
        known = set(judge_names(self.data).values())
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
        trained = [
            judge.name
            for judge in self.study.spec.judges
            if use and judge.name in use.use and judge.trained_on == "this"
        ]
        if trained:
            notes.append(
                f"{listed(trained)} learned from ratings of this study. The interval holds only if each item was scored by an "
                "evaluator that did not see its ratings (cross-fitting)."
            )
        return tuple(notes)

    def section(self) -> Section:
        """Everything three ways."""
        figure = self.figure()
        tables = (*self._tables(), *(() if figure is None else (figure,)))
        return Section(NAME, TITLE, tuple(self._paragraphs()), tables, is_confirmatory=True)

    def _paragraphs(self) -> Iterable[str]:
        rate = min(self.study.chances_for_people.values(), default=1.0)
        drawn = "a random part of the items" if rate < 1 else "all items"
        yield f"{self._who()} Raters were given {drawn}, judges all. {self._gain()}"
        flat = [
            f"{criterion.label}, {system_label(self.study, first)} against {system_label(self.study, second)}"
            for criterion in self.criteria
            for (first, second), one in criterion.pairs.items()
            if not one.weight and one.both.is_known
        ]
        if flat and len(flat) < len(self.found):
            yield f"The judge adds nothing to: {listed(flat)}. There its weight is zero."

    def _tables(self) -> Iterable[Table]:
        correction = self.options.correction
        for is_choice in (False, True):
            own = [criterion for criterion in self.criteria if criterion.is_choice == is_choice]
            if not own:
                continue
            kind = "percent_estimate" if is_choice else "estimate"
            prefix = "choices" if is_choice else "ratings"
            pairs = {(criterion.label, *pair): criterion.test(pair) for criterion in own for pair in criterion.pairs}
            tests = corrected_by_name(pairs, self.options)
            rows = [
                (
                    criterion.label,
                    *(system_label(self.study, name) for name in pair),
                    *_cells(one),
                    *p_cells(tests[criterion.label, *pair], correction),
                )
                for criterion in own
                for pair, one in criterion.pairs.items()
            ]
            what = "First chosen over second" if is_choice else "First minus second"
            if rows:
                columns = (
                    Column("criterion", "Criterion"),
                    Column("first", "First"),
                    Column("second", "Second"),
                    *_columns(kind),
                    *p_columns(correction),
                )
                yield Table(
                    f"judged_{prefix}", f"{what}, three ways", columns, tuple(rows), CAPTION, is_confirmatory=True
                )
            means = [
                (criterion.label, system_label(self.study, system), *_cells(one))
                for criterion in own
                for system, one in criterion.means.items()
            ]
            if means:
                title = "Bradley-Terry strengths (log odds), three ways" if is_choice else "Mean ratings, three ways"
                columns = (Column("criterion", "Criterion"), Column("system", "System"), *_columns("estimate"))
                yield Table(f"judged_{prefix}_systems", title, columns, tuple(means))

    def figure(self) -> Figure | None:
        """Differences or shares three ways, those of one kind."""
        criteria = [one for one in self.criteria if one.pairs]
        if not criteria:
            return None
        is_choice = criteria[0].is_choice
        alike = [criterion for criterion in criteria if criterion.is_choice == is_choice]
        dots = [
            Dot(label(criterion, pair), estimate, group, criterion.label if len(alike) > 1 else "")
            for label in (self._pair_label(),)
            for criterion in alike
            for pair, one in criterion.pairs.items()
            for group, estimate in ((ALONE, one.people), (JUDGE, one.judge), (BOTH, one.both))
        ]
        what = "Share of choices for the first" if is_choice else "Difference of mean ratings"
        spec = dot_interval(dots, value_title=what, reference=0.5 if is_choice else 0.0, is_percent=is_choice)
        return Figure(
            "judged",
            f"{what}: raters alone, judge alone, both",
            spec,
            alt=f"{what} with confidence intervals, for raters alone, the judge alone, and raters corrected by the judge.",
            caption="The judge's own interval does not include its errors; the corrected one does.",
            is_confirmatory=True,
        )

    def _pair_label(self) -> Callable[[JudgedCriterion, tuple[str, str]], str]:
        return lambda _, pair: " against ".join(system_label(self.study, name) for name in pair)


def _columns(kind: str) -> tuple[Column, ...]:
    estimate = "percent_estimate" if kind == "percent_estimate" else "estimate"
    return (
        Column("people", ALONE, estimate),  # type: ignore[arg-type]
        Column("judge", JUDGE, estimate),  # type: ignore[arg-type]
        Column("both", BOTH, estimate),  # type: ignore[arg-type]
        Column("narrower", "Narrower", "percent"),
        Column("worth", "Worth", "count"),
        Column("n", "Human judgments", "count"),
        Column("weight", "Judge's weight", "number"),
    )


def _cells(one: Corrected) -> tuple[Cell, ...]:
    estimates = (known_cell(one.people), known_cell(one.judge), known_cell(one.both))
    if not one.both.is_known:
        return (*estimates, None, None, one.both.n, None)
    worth = round(one.n_worth) if np.isfinite(one.n_worth) else None
    return (*estimates, one.narrower, worth, one.both.n, one.weight)


ANALYSES.register(NAME)(PeopleAndJudges())
