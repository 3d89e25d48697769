"""Raters in groups, by their answer to a question or by the time they took, and whether these groups judge differently."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import RaterRows
from dialometer.analysis.base.wording import listed, n_of, p_words, question_label, question_text
from dialometer.analysis.shared.comparisons import CORRECTIONS, corrected, p_adjusted
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Column, ColumnKind, Method
from dialometer.model.study import LANGUAGE, Study
from dialometer.stats.clustered.homogeneity import CLUSTERED, homogeneity_clustered
from dialometer.stats.clustered.two_way import two_way_linear
from dialometer.stats.effects.multiplicity import adjust
from dialometer.stats.observations import Floats, Ints

MOST_LEVELS = 12
NO_GROUP = -1
FEWEST_RATERS = 2
"""Raters of a group below which it is shown but not tested."""
FEWEST_GROUPS = 2
OTHER = "another answer"
SMALLEST_OF_PAIRS = (
    f"“p (groups differ)” is the smallest p-value of all pairs of groups with {FEWEST_RATERS} raters or more, corrected for their "
    "number (Holm)."
)


@dataclass(frozen=True, eq=False)
class RaterGroups:
    """A grouping of raters. ``of_rater`` counts in ``levels``, in the order of the raters that were given; -1 for no group."""

    name: str
    label: str
    text: str
    """What the raters are grouped by: the question they answered, or words for it."""
    levels: tuple[str, ...]
    of_rater: Ints
    note: str = ""

    @property
    def n_without(self) -> int:
        """Raters who are in no group."""
        return int(np.sum(self.of_rater == NO_GROUP))

    def inside(self, level: int) -> NDArray[np.bool_]:
        """Which raters are in a group."""
        return np.asarray(self.of_rater == level)

    def n_raters(self, level: int) -> int:
        """How many raters are in a group."""
        return int(np.sum(self.inside(level)))

    def columns(self, kind: ColumnKind = "estimate", names: str = "group_{}", first: int = 1) -> list[Column]:
        """A column for each group, with its number of raters; ``names`` and ``first`` say how columns are called."""
        return [
            Column(names.format(k), f"{level} (n = {self.n_raters(k - first)})", kind)
            for k, level in enumerate(self.levels, start=first)
        ]


def rater_groups(data: StudyData, question: str, raters: Sequence[str] | NDArray[np.str_]) -> RaterGroups:
    """The raters' groups by their answers. Numbers of many values are split at their median; rare free text is pooled."""
    by_rater = dict(data.answers_to(question).iter_rows())
    answers = [by_rater.get(str(rater)) for rater in raters]
    label, text = question_label(data.study, question), question_text(data.study, question)
    if all(answer is None for answer in answers):
        raise NotEnoughData(
            f"no rater has answered “{text}” yet", remedy="the table appears once the questionnaire is answered"
        )
    options = _options(data.study, question)
    if not options:
        numbers = _as_numbers(answers)
        if numbers is not None and question in data.study.spec.analysis.bins:
            return _binned(question, label, text, numbers, data.study.spec.analysis.bins[question])
        if numbers is not None and len(np.unique(numbers[~np.isnan(numbers)])) > MOST_LEVELS:
            return _halves(question, label, text, numbers)
        options = _by_frequency(answers)
    named = [None if answer is None else answer if answer in options else OTHER for answer in answers]
    levels = tuple(level for level in (*options, OTHER) if level in named)
    codes = [NO_GROUP if answer is None else levels.index(answer) for answer in named]
    return RaterGroups(question, label, text, levels, np.array(codes, dtype=np.int64))


def time_groups(rows: RaterRows) -> RaterGroups:
    """Raters below and above the mean time of all who finished."""
    known = ~np.isnan(rows.minutes)
    if known.sum() < 2:
        raise NotEnoughData(
            f"session times of {n_of(int(known.sum()), 'rater')}",
            remedy="groups by time need at least two raters who finished; imported judgments may have no times",
        )
    mean = float(rows.minutes[known].mean())
    codes = np.where(known, (rows.minutes > mean).astype(np.int64), NO_GROUP)
    text = f"time taken (mean {mean:.0f} minutes)"
    return RaterGroups("time", "Time taken", text, ("below average", "above average"), codes)


def _options(study: Study, name: str) -> list[str]:
    """Possible answers in the order of the scale, as far as it lists them."""
    scale = study.question_scales.get(name)
    if scale is None:
        return study.spec.languages if name == LANGUAGE else []
    return scale.option_names()


def _as_numbers(answers: Sequence[str | None]) -> Floats | None:
    try:
        return np.array([np.nan if answer is None else float(answer) for answer in answers])
    except ValueError:
        return None


def _halves(question: str, label: str, text: str, numbers: Floats) -> RaterGroups:
    middle = float(np.nanmedian(numbers))
    codes = np.where(np.isnan(numbers), NO_GROUP, (numbers > middle).astype(np.int64)).astype(np.int64)
    note = f"Answers are numbers of many values; raters are split at the median, {middle:g}."
    return RaterGroups(question, label, text, (f"up to {middle:g}", f"above {middle:g}"), codes, note)


def _binned(question: str, label: str, text: str, numbers: Floats, starts: Sequence[float]) -> RaterGroups:
    """Groups that begin at the declared numbers; whoever is below the first is in a group of its own."""
    is_whole = bool(np.all(np.isnan(numbers) | (numbers == np.round(numbers))))
    names = [f"under {starts[0]:g}"]
    for low, high in pairwise(starts):
        names.append(f"{low:g}-{high - 1:g}" if is_whole and high > low + 1 else f"{low:g} to under {high:g}")
    names.append(f"{starts[-1]:g} or more")
    place = np.searchsorted(np.asarray(starts, dtype=np.float64), numbers, side="right")
    used = [k for k in range(len(names)) if np.any((place == k) & ~np.isnan(numbers))]
    codes = [NO_GROUP if np.isnan(number) else used.index(int(k)) for k, number in zip(place, numbers, strict=True)]
    levels = tuple(names[k] for k in used)
    return RaterGroups(question, label, text, levels, np.array(codes, dtype=np.int64))


def _by_frequency(answers: Sequence[str | None]) -> list[str]:
    """Free answers as levels, the most frequent first; those beyond the most that a table can hold are left to be pooled."""
    given = [answer for answer in answers if answer is not None]
    counts = {answer: given.count(answer) for answer in dict.fromkeys(given)}
    return sorted(counts, key=lambda answer: (-counts[answer], answer))[:MOST_LEVELS]


@dataclass(frozen=True)
class GroupTest:
    """One outcome by groups of raters: an estimate for each group, and whether the groups differ."""

    by_level: tuple[Estimate, ...]
    test: Estimate


def groups_test(
    groups: RaterGroups,
    values: Floats,
    rater: Ints,
    estimate: Callable[[NDArray[np.bool_]], Estimate],
    *,
    items: Ints | None = None,
    has_items: bool = False,
    label: str = "",
) -> GroupTest:
    """Whether the groups' means differ, each rater as one cluster; ``estimate`` gives that of the chosen values.

    With ``has_items`` the test holds for other ``items`` too (None: they are fixed), and for few raters.
    """
    group = groups.of_rater[rater]
    levels = range(len(groups.levels))
    tested = [k for k in levels if len(np.unique(rater[group == k])) >= FEWEST_RATERS]
    if len(tested) < FEWEST_GROUPS:
        too_few = unknown(
            "groups of raters compared", "fewer than two groups have two raters", n=len(values), label=label
        )
        return GroupTest(tuple(estimate(group == k) for k in levels), too_few)
    kept = np.isin(group, tested)
    if has_items:
        shown = None if items is None else items[kept]
        test = _groups_differ(values[kept], group[kept], rater[kept], shown, label=label)
    else:
        test = homogeneity_clustered(values[kept], group[kept], rater[kept], label=label)
    return GroupTest(tuple(estimate(group == k) for k in levels), test)


def _groups_differ(values: Floats, group: Ints, rater: Ints, items: Ints | None, *, label: str) -> Estimate:
    """Groups differ if any two of them do: the smallest p-value of all pairs, corrected (Holm), over raters and items."""
    over = "raters" if items is None else "raters and items"
    method = f"groups two by two, jackknife over {over}, Student's t, smallest p-value (Holm)"
    levels, code = np.unique(group, return_inverse=True)
    means, variance = two_way_linear(values, np.eye(len(levels))[code], rater, items)
    p_values, gaps = [], []
    for a, b in combinations(range(len(levels)), 2):
        contrast = np.zeros(len(levels))
        contrast[a], contrast[b] = 1.0, -1.0
        error, df = variance.contrast(contrast)
        gaps.append(float(means[a] - means[b]))
        is_tested = error > 0 and df > 0
        p_values.append(2 * float(stats.t.sf(abs(gaps[-1]) / error, df)) if is_tested else math.nan)
    known = [float(p) for p in adjust(p_values, "holm") if not math.isnan(p)]
    if not known:
        return unknown(method, "the groups cannot be tested: too few raters or items", n=len(values), label=label)
    largest = max(gaps, key=abs)
    return Estimate(value=largest, n=len(values), method=method, p_value=min(known), label=label)


def groups_method(options: Options, *, over: str = "") -> Method:
    """How groups of raters were compared, for the table of methods. ``over`` names what tests of pairs of groups are over."""
    together = f"systems together: {CORRECTIONS.get(options.correction, 'none')}"
    describes = "raters were not assigned to groups, so this describes them"
    if not over:
        how = f"homogeneity of means of groups with {FEWEST_RATERS} raters or more, {CLUSTERED}, HTZ test; {together}"
        return Method("subgroups of raters", how, describes, "Pustejovsky and Tipton 2018")
    return Method(
        "subgroups of raters",
        f"difference of each two groups with {FEWEST_RATERS} raters or more, jackknife over {over}, Student's t; of each system the "
        f"smallest p-value of all pairs of groups, corrected (Holm); {together}",
        f"the groups differ if any two of them do; {describes}",
        "Cameron, Gelbach and Miller 2011; MacKinnon, Nielsen and Webb 2023",
    )


def corrected_groups(outcomes: Sequence[GroupTest], options: Options) -> list[GroupTest]:
    """The tests of several outcomes as one family."""
    tests = corrected([outcome.test for outcome in outcomes], options)
    return [replace(outcome, test=test) for outcome, test in zip(outcomes, tests, strict=True)]


def group_notes(groups: RaterGroups, outcomes: Sequence[GroupTest]) -> tuple[str, ...]:
    """For below a table of groups: which answers were taken together, and why outcomes have no test."""
    reasons: dict[str, list[str]] = {}
    for outcome in outcomes:
        if math.isnan(outcome.test.p_value) and outcome.test.notes:
            reasons.setdefault(outcome.test.notes[-1].removeprefix("no test: "), []).append(outcome.test.label)
    if all(math.isnan(outcome.test.p_value) for outcome in outcomes):
        reasons = {}  # no_difference_words says why there is no test at all
    untested = [
        f"No test for {listed(f'“{label}”' for label in labels)}: {reason}." for reason, labels in reasons.items()
    ]
    return (*((groups.note,) if groups.note else ()), *untested)


def no_difference_words(tests: Sequence[Estimate]) -> str:
    """Why no group differs from another: that they cannot be compared, or that no difference is significant."""
    known = [p_adjusted(test) for test in tests if not np.isnan(test.p_value)]
    if not known:
        reason = next((note for test in tests for note in test.notes), "not enough data")
        return f"The groups cannot be compared: {reason}."
    return f"No difference between the groups is significant (smallest corrected {p_words(min(known))})."
