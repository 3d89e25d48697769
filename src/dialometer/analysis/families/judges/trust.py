"""Can this judge be trusted? Agreement with people beside what people reach, a tested verdict, and what sways the judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData, judge_names
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, in_appendix, section_or_problem
from dialometer.analysis.base.scale_units import within
from dialometer.analysis.base.wording import listed, n_of, percent, sentence, with_interval
from dialometer.analysis.families.judges.biases import Sway, self_preference, style_bias
from dialometer.analysis.families.judges.compared import Compared, as_labels, as_sides, compared_criteria
from dialometer.analysis.families.judges.ensembles import with_ensembles
from dialometer.analysis.families.judges.fit import (
    BY_RATERS,
    DIFFICULTY,
    FEWEST,
    JudgeCalibration,
    calibration,
    group_fits,
)
from dialometer.analysis.families.judges.position import PositionBias, position_bias
from dialometer.analysis.families.judges.verdicts import position_table, position_words
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import PERCENTAGE_POINTS, Cell, Column, Figure, Method, Section, Table
from dialometer.model.study import Study
from dialometer.report.charts import COEFFICIENT, Dot, dot_interval
from dialometer.stats.agreement.alternative_annotator import (
    EPSILON,
    MIN_ITEMS,
    MIN_RATERS,
    AlternativeTest,
    alternative_annotator_test,
)
from dialometer.stats.agreement.judge_agreement import FEWEST_THINGS, BesidePeople, Coefficient, judge_agreement
from dialometer.stats.bootstrap.means import bootstrap_mean
from dialometer.stats.effects.correlation import spearman

NAME, TITLE = "judges", "Can this judge be trusted?"
ONE_RATER = "One rater"
NO_ANSWER = "There is no analysis for this design yet."


class Trust(Family):
    """Fits every study; silent where no model has judged what people have."""

    rank = 880

    def fits(self, study: Study) -> bool:
        """Always; models may come late."""
        return True

    def run(self, data: StudyData, options: Options) -> Findings:
        """The verdict, and the rest folded; nothing where no model has judged."""
        if data.by_models.is_empty():
            return Findings(NO_ANSWER, "")
        section = section_or_problem(NAME, TITLE, lambda: trust_section(data, options))
        further = [] if section.problem else _further(data, options)
        return Findings(NO_ANSWER, "", sections=(section, *in_appendix(further)), methods=METHODS)


METHODS = (
    Method(
        "Judges beside human raters",
        "Cohen's kappa, Krippendorff's alpha and Gwet's AC1 or AC2 of the judge with a rater, beside those of a rater with another, "
        "bootstrap over things; Spearman's rho with the mean of the raters",
        "agreement means little without what people reach among themselves on the same things",
    ),
    Method(
        "Whether a judge can replace a rater",
        f"alternative annotator test with epsilon {EPSILON:g}; where fewer than {MIN_RATERS} raters saw {MIN_ITEMS} items "
        "or more, the same comparison over all raters and items together",
        "it asks of the judge what it asks of each rater: to fit the other raters",
        "Calderon, Reichart and Dror 2025",
    ),
)
ANALYSES.register(NAME)(Trust())


@dataclass(frozen=True, eq=False)
class CriterionTrust:
    """What is known about every judge, and every ensemble of judges, on one criterion."""

    compared: Compared
    options: Options = field(repr=False)

    @cached_property
    def agreement(self) -> dict[str, dict[Coefficient, BesidePeople]]:
        """Coefficients by judge, where answers are labels."""
        compared, found = self.compared, {}
        if not compared.labels:
            return {}
        coded, n_labels = (as_sides, 3) if compared.is_pairs else (as_labels, len(compared.labels))
        people = coded(compared, compared.people)
        for name, own in compared.judges.items():
            try:
                found[name] = dict(
                    judge_agreement(
                        people, coded(compared, own), n_labels, is_ordered=compared.is_number,
                        **self.options.resampling,
                    )
                )  # fmt: skip
            except NotEnoughData:
                continue
        return found

    @cached_property
    def rho(self) -> tuple[dict[str, Estimate], Estimate]:
        """Rank correlation of each judge with the mean of the raters, and of single raters with the mean of the others."""
        compared = self.compared
        mean, few = compared.people_mean, unknown("Spearman's rho", "too few things judged by both")
        own = {}
        for name, judge in compared.judges.items():
            both = ~np.isnan(judge) & ~np.isnan(mean)
            is_enough = both.sum() >= FEWEST_THINGS
            own[name] = spearman(judge[both], mean[both], confidence=self.options.confidence) if is_enough else few
        singles = []
        given = ~np.isnan(compared.people)
        n, total = given.sum(axis=1), np.nansum(compared.people, axis=1)
        for column in range(len(compared.raters)):
            both = given[:, column] & (n > 1)
            if both.sum() >= FEWEST_THINGS:
                rating = compared.people[both, column]
                rho = spearman(rating, (total[both] - rating) / (n[both] - 1))
                singles += [rho.value] if rho.is_known else []
        if len(singles) < 2:
            return own, unknown("Spearman's rho", f"fewer than two raters share {FEWEST_THINGS} things with others")
        return own, bootstrap_mean(singles, **self.options.resampling)

    @cached_property
    def tests(self) -> dict[str, AlternativeTest]:
        """The alternative annotator test by judge."""
        compared, found = self.compared, {}
        for name, own in compared.judges.items():
            try:
                found[name] = alternative_annotator_test(
                    compared.people, own, kind="numbers" if compared.is_number else "labels",
                    confidence=self.options.confidence,
                )  # fmt: skip
            except NotEnoughData:
                continue
        return found


def judged(data: StudyData, options: Options) -> list[CriterionTrust]:
    """Every criterion with its judges; computed once for a report."""
    key = (NAME, options)
    if key not in data.shared:
        data.shared[key] = [
            CriterionTrust(with_ensembles(compared, options.seed), options) for compared in compared_criteria(data)
        ]
    found: list[CriterionTrust] = data.shared[key]
    return found


def trust_section(data: StudyData, options: Options) -> Section:
    """The verdict on every judge, a picture, agreement and the test."""
    criteria = judged(data, options)
    if not criteria:
        raise NotEnoughData(
            "judges and human raters have judged nothing in common", remedy="have judges judge the study's items"
        )
    positions = position_bias(data, options)
    judges = list(dict.fromkeys(judge for one in criteria for judge in one.compared.judges))
    names = data.by_models["rater"].unique(maintain_order=True).to_list()
    sentences = [verdict(judge, criteria, positions) for judge in names if judge in judges]
    head = (
        f"{n_of(len(names), 'judge')} judged the same things as human raters. In this report judges count only "
        "where they correct human raters."
    )
    n_missing = _missing_words(data)
    drawn = [
        criterion.compared for criterion in criteria if len(criterion.compared.things) < criterion.compared.n_in_common
    ]
    if drawn:
        first = drawn[0]
        head += f" Of {first.n_in_common:,} things judged by both, {len(first.things):,} were drawn for this section."
    return Section(
        NAME,
        TITLE,
        tuple(text for text in (*sentences, head, n_missing) if text),
        (_figure(criteria), _test_table(criteria)),
    )


def verdict(judge: str, criteria: Sequence[CriterionTrust], positions: Sequence[PositionBias]) -> str:
    """One sentence: on what this judge is as good as a rater, and what speaks against it."""
    kinds: dict[str, list[str]] = {"as good": [], "worse": [], "open": []}
    main = None
    for criterion in criteria:
        test = criterion.tests.get(judge)
        if test is None or test.passes is None:
            kinds["open"].append(criterion.compared.label)
            continue
        main = main or test
        is_worse = test.difference.has_interval and test.difference.high < -test.epsilon
        kinds["as good" if test.passes else "worse" if is_worse else "open"].append(criterion.compared.label)
    words = []
    if kinds["as good"]:
        words.append(f"is as good as a human rater on {listed(kinds['as good'])}")
    if kinds["worse"]:
        words.append(f"is worse than a human rater on {listed(kinds['worse'])}")
    if kinds["open"]:
        words.append(f"is not shown to be as good as a human rater on {listed(kinds['open'])}")
    numbers = ""
    if main is not None:
        wins = with_interval(within(main.advantage, 0.0, 1.0), is_percent=True)
        of_rater = percent(main.advantage.value - main.difference.value)
        numbers = f" It fits the other raters at least as well as a left-out rater in {wins} of the cases, the rater at least as "
        numbers += f"well as the judge in {of_rater}" + (
            f" ({criteria[0].compared.label})." if len(criteria) > 1 else "."
        )
    biased = [row for row in positions if row.judge == judge and row.is_biased]
    places = ""
    if biased:
        worst = max(biased, key=lambda row: abs(row.first.value - 0.5))
        share, place = (worst.first.value, "first") if worst.first.value > 0.5 else (1 - worst.first.value, "second")
        places = f"It prefers a position on the screen: it chose the {place} one in {percent(share)} of its answers."
    return " ".join(part for part in (f"{judge} {'; it '.join(words)}.{numbers}", places) if part)


def _figure(criteria: Sequence[CriterionTrust]) -> Figure:
    dots = []
    for one in criteria:
        label = one.compared.label
        if one.agreement:
            first = next(iter(one.agreement.values()))
            dots.append(Dot(label, first["alpha"].people, group=ONE_RATER))
            dots += [Dot(label, found["alpha"].judge, group=judge) for judge, found in one.agreement.items()]
        else:
            rhos, alone = one.rho
            dots.append(Dot(label, alone, group=ONE_RATER))
            dots += [Dot(label, rho, group=judge) for judge, rho in rhos.items()]
    is_alpha = any(criterion.agreement for criterion in criteria)
    what = "Krippendorff's alpha with a human rater" if is_alpha else "Spearman's rho with the mean of the raters"
    return Figure(
        "judges_agreement",
        "Agreement with human raters: judges beside one rater",
        dot_interval(dots, value_title=what, group_title="Who", reference=0.0, limits=COEFFICIENT),
        f"{what} of each judge and of one human rater, on {n_of(len(criteria), 'criterion', 'criteria')}.",
        caption="One rater: a human rater beside the others, on the same things.",
    )


def _agreement_table(criteria: Sequence[CriterionTrust]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in criteria:
        compared = one.compared
        rhos, alone = one.rho if compared.is_number else ({}, None)
        known = list(one.agreement.values())
        people = [known[0][name].people if known else "" for name in COEFFICIENTS]
        n_shared = max((one.n for one in people if isinstance(one, Estimate)), default=len(compared.things))
        rows.append((compared.label, ONE_RATER, *people, "" if alone is None else alone, n_shared))
        for judge in compared.judges:
            agreement = one.agreement.get(judge)
            n = int((~np.isnan(compared.judges[judge])).sum())
            coefficients = [agreement[name].judge if agreement else "" for name in COEFFICIENTS]
            rows.append((compared.label, judge, *coefficients, rhos.get(judge, ""), n))
    has_rho = any(criterion.compared.is_number for criterion in criteria)
    if not has_rho:
        rows = [(*row[:-2], row[-1]) for row in rows]
    return Table(
        "judges",
        "Agreement with human raters",
        (
            Column("criterion", "Criterion"),
            Column("who", "Who"),
            Column("kappa", "Cohen's κ", "estimate"),
            Column("alpha", "Krippendorff's α", "estimate"),
            Column("gwet", "Gwet's AC1 or AC2", "estimate"),
            Column("same", "Same answer", "percent_estimate"),
            *((Column("rho", "Spearman's ρ", "estimate"),) if has_rho else ()),
            Column("n", "Things", "count"),
        ),
        tuple(rows),
        caption="Each beside a human rater of the same thing. One rater: every rater in turn beside the others. "
        "Ratings: quadratic weights and AC2; choices and categories: AC1."
        + (" Spearman's ρ is with the mean of the (other) raters." if has_rho else ""),
    )


COEFFICIENTS: tuple[Coefficient, ...] = ("kappa", "alpha", "gwet", "agreement")


def _test_table(criteria: Sequence[CriterionTrust]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    words = {True: "as good as a rater", False: "not shown", None: "not enough data"}
    is_by_rater = any(test.is_by_rater for one in criteria for test in one.tests.values())
    for one in criteria:
        for judge, test in one.tests.items():
            is_worse = test.difference.has_interval and test.difference.high < -test.epsilon
            by_rater: list[Cell] = [percent(test.omega), test.n_tested] if test.is_by_rater else ["–", None]
            rows.append(
                (
                    one.compared.label, judge, within(test.advantage, 0.0, 1.0), within(test.difference, -1.0, 1.0),
                    *(by_rater if is_by_rater else ()), "worse than a rater" if is_worse else words[test.passes],
                )
            )  # fmt: skip
    return Table(
        "judges_test",
        "As good as a human rater? The alternative annotator test",
        (
            Column("criterion", "Criterion"),
            Column("judge", "Judge"),
            Column("advantage", "Judge wins", "percent_estimate"),
            Column("difference", "Judge's wins minus the rater's", "percent_estimate", unit=PERCENTAGE_POINTS),
            *(
                (Column("omega", "ω: raters it can replace"), Column("tested", "Raters tested", "count"))
                if is_by_rater
                else ()
            ),
            Column("verdict", "Verdict"),
        ),
        tuple(rows),
        caption="Each rater in turn is compared with the judge: the one that fits the others at least as well wins the item. As "
        f"good: the judge wins at most {100 * EPSILON:g} percentage points less often. Raters with {MIN_ITEMS} or more things are "
        "tested one by one (corrected after Benjamini and Yekutieli), and the judge passes with half of them or more; with fewer "
        f"than {MIN_RATERS} such raters, all raters are tested together over raters and items.",
    )


# What is folded

ABOUT_ALL = (
    "All judges together are shown as judges of their own: the mean or majority of their answers, and Dawid and Skene's model, "
    "which learns from people's answers on other things how far to trust each of them."
)


def _further(data: StudyData, options: Options) -> list[Section]:
    names = data.by_models["rater"].unique().to_list()
    criteria = [
        replace(one.compared, judges={name: own for name, own in one.compared.judges.items() if name in names})
        for one in judged(data, options)
    ]
    made = [
        Section(
            "judge_agreement",
            "Agreement of the judges",
            (ABOUT_ALL,) if len(names) > 1 else (),
            (_agreement_table(judged(data, options)),),
        ),
        _bias_section(data, criteria, options),
        _group_section(data, criteria, options),
        _calibration_section(data, criteria, options),
        _cost_section(data),
    ]
    return [section for section in made if section is not None]


def _bias_section(data: StudyData, criteria: Sequence[Compared], options: Options) -> Section | None:
    positions = position_bias(data, options)
    parts = [position_table(data.study, positions)] if positions else []
    words = [position_words(positions)] if positions else []
    sways = [sway for compared in criteria for sway in style_bias(data, compared, options)]
    if sways:
        parts.append(_sway_table("judge_style", "Length and formatting", sways, criteria))
        found = [f"{sway.judge} ({sway.what.lower()}, {sway.criterion})" for sway in sways if sway.is_found]
        words.append(
            f"Swayed by length or formatting significantly more or less than people: {listed(found)}."
            if found
            else "No judge is swayed by length or formatting significantly more than people."
        )
    selves = [sway for compared in criteria for sway in self_preference(data, compared, options)]
    if selves:
        parts.append(_sway_table("judge_self", "Systems of the judge's own family", selves, criteria))
        found = [f"{sway.judge} ({sway.criterion})" for sway in selves if sway.is_found and sway.difference.value > 0]
        words.append(
            f"Judges that favour systems of their own family beside what people say: {listed(found)}."
            if found
            else "No judge favours systems of its own family significantly."
        )
    return Section("judge_biases", "What sways the judges", tuple(words), tuple(parts)) if parts else None


def _sway_table(name: str, title: str, sways: Sequence[Sway], criteria: Sequence[Compared]) -> Table:
    has_choices = any(compared.is_choice for compared in criteria)
    has_numbers = any(compared.is_number for compared in criteria)
    captions = []
    if name == "judge_style":
        captions += (
            ["Choices: how often the side with more of it is preferred (ties count half)."] if has_choices else []
        )
        captions += ["Ratings: rank correlation with it."] if has_numbers else []
    else:
        captions += (
            ["Choices: share won by systems of the judge's family where they meet others."] if has_choices else []
        )
        shifted = "Ratings: mean rating of these systems, the judge's shifted to people's level on the others."
        captions += [shifted] if has_numbers else []
    return Table(
        name,
        title,
        (
            Column("criterion", "Criterion"),
            Column("judge", "Judge"),
            Column("what", "What"),
            Column("people", "People", "estimate"),
            Column("of_judge", "Judge", "estimate"),
            Column("difference", "Judge minus people", "estimate"),
        ),
        tuple((s.criterion, s.judge, s.what, s.people, s.of_judge, s.difference) for s in sways),
        caption=" ".join(captions),
    )


def _group_section(data: StudyData, criteria: Sequence[Compared], options: Options) -> Section | None:
    groups = [group for compared in criteria for group in group_fits(data, compared, options)]
    if not groups:
        return None
    is_numbers = {compared.label: compared.is_number for compared in criteria}
    parts = []
    for is_number, what in ((False, "Share of raters who say the same"), (True, "Mean distance from a rater")):
        rows = [group for group in groups if is_numbers[group.criterion] == is_number]
        kind = "estimate" if is_number else "percent_estimate"
        if rows:
            parts.append(
                Table(
                    f"judge_groups_{'distance' if is_number else 'share'}",
                    f"By kind of item, difficulty and time: {what[0].lower()}{what[1:]}",
                    (
                        Column("criterion", "Criterion"),
                        Column("judge", "Judge"),
                        Column("by", "By"),
                        Column("group", "Group"),
                        Column("of_judge", "Judge", kind),  # type: ignore[arg-type]
                        Column("of_rater", "One rater", kind),  # type: ignore[arg-type]
                        Column("n", "Things", "count"),
                    ),
                    tuple(
                        (g.criterion, g.judge, g.by, g.group, g.of_judge, "" if g.by == DIFFICULTY else g.of_rater, g.n)
                        for g in rows
                    ),
                    caption=f"Groups of fewer than {FEWEST} things are not shown."
                    + (f" {sentence(BY_RATERS)}" if any(g.by == DIFFICULTY for g in rows) else ""),
                )
            )
    words = "Where a judge agrees less than elsewhere, look at these items first. " + _drift_words(groups)
    return Section("judge_groups", "Where judges agree with people", (words.strip(),), tuple(parts))


def _drift_words(groups: Sequence[object]) -> str:
    has_time = any(getattr(group, "by", "") == "time" for group in groups)
    return (
        ""
        if has_time
        else "All answers of a judge came within an hour, or are too few, so drift over time cannot be seen."
    )


def _uncalibrated(criteria: Sequence[Compared], shown: Sequence[JudgeCalibration]) -> tuple[str, ...]:
    """Says where things are missing from the rows: answers that a judge gave once only."""
    n_shown: Counter[tuple[str, str]] = Counter()
    for row in shown:
        n_shown[row.criterion, row.judge] += row.n
    n_lone = 0
    for compared in criteria:
        for judge, own in compared.judges.items():
            if (compared.label, judge) in n_shown and compared.is_number:
                n_both = int(np.sum(~np.isnan(own) & ~np.isnan(compared.people_mean)))
                n_lone += n_both - n_shown[compared.label, judge]
    if not n_lone:
        return ()
    verb = "is" if n_lone == 1 else "are"
    return (f"Ratings that a judge gave to one thing only have no row; there {verb} {n_lone} such.",)


def _calibration_section(data: StudyData, criteria: Sequence[Compared], options: Options) -> Section | None:
    rows = [(compared.is_number, row) for compared in criteria for row in calibration(data, compared, options)]
    parts, words = [], []
    for is_number, title, answer, people, meaning in (
        (
            True,
            "What people say, by the judge's rating",
            "The judge's rating",
            "Mean of the raters",
            "A judge is calibrated where the mean of the raters equals its rating.",
        ),
        (
            False,
            "How often most raters agree, by the judge's certainty",
            "The judge's answers",
            "Most raters agree",
            "A judge knows what it knows where people agree more often with answers that stay the same in both orders.",
        ),
    ):
        own = [row for kind, row in rows if kind == is_number]
        if own:
            words.append(meaning)
            columns = (
                Column("criterion", "Criterion"),
                Column("judge", "Judge"),
                Column("answer", answer),
                Column("people", people, "estimate" if is_number else "percent_estimate"),
                Column("n", "Things", "count"),
            )
            cells = tuple((row.criterion, row.judge, row.answer, row.people, row.n) for row in own)
            name = f"judge_calibration_{'ratings' if is_number else 'choices'}"
            parts.append(Table(name, title, columns, cells, notes=_uncalibrated(criteria, own)))
    return Section("judge_calibration", "Calibration of the judges", tuple(words), tuple(parts)) if parts else None


def _model_answers(data: StudyData, part: str) -> pl.DataFrame:
    names = judge_names(data.answers, data.sessions)
    own = data.answers.filter((pl.col("part") == part) & pl.col("rater").is_in(list(names)))
    return own.with_columns(pl.col("rater").replace(names).alias("judge"))


def _missing_words(data: StudyData) -> str:
    """Judgments that judges did not give, with the reason."""
    missing = _model_answers(data, "missing")
    if missing.is_empty():
        return ""
    kinds = missing.with_columns(pl.col("text").str.split(" (").list.first().alias("kind"))
    counts = kinds.group_by("judge", "kind").len().sort("judge", "len", "kind", descending=[False, True, False])
    words = listed(f"{judge}: {n:,} ({kind})" for judge, kind, n in counts.iter_rows())
    return f"Questions without a usable answer, which are missing here: {words}."


def _cost_section(data: StudyData) -> Section | None:
    reported = _model_answers(data, "model").filter(
        pl.col("question").is_in(["tokens_in", "tokens_out", "cost", "seconds"])
    )
    sums = {
        (judge, question): total
        for judge, question, total in reported.group_by("judge", "question").agg(pl.col("value").sum()).iter_rows()
    }
    if (
        not sums and not (data.calls["duration_s"].fill_null(0) > 0).any()
    ):  # scores of a program cost nothing that is known
        return None
    rows: list[tuple[Cell, ...]] = []
    for (judge,), own in data.calls.group_by("rater", maintain_order=True):
        seconds = own["duration_s"].drop_nulls()
        cost = sums.get((str(judge), "cost"))
        rows.append(
            (
                str(judge),
                len(own),
                float(seconds.mean()) if len(seconds) else "",  # type: ignore[arg-type]
                int(sums.get((str(judge), "tokens_in"), 0)) or "",
                int(sums.get((str(judge), "tokens_out"), 0)) or "",
                "" if cost is None else cost,
                "" if cost is None else 1000 * cost / len(own),
            )
        )
    table = Table(
        "judge_costs",
        "Cost and seconds",
        (
            Column("judge", "Judge"),
            Column("answers", "Answers", "count"),
            Column("seconds", "Seconds an answer", "number"),
            Column("tokens_in", "Tokens read", "count"),
            Column("tokens_out", "Tokens written", "count"),
            Column("cost", "Cost", "number", 4),
            Column("per_thousand", "Cost of 1,000 answers", "number"),
        ),
        tuple(rows),
        caption="Answers in every order and sample; cost at the prices given to dialometer judge.",
    )
    return Section("judge_costs", "Cost of the judges", (), (table,)) if rows else None
