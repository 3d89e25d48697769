"""Which of two was preferred: forced choices with ties and "cannot tell" treated by a rule declared beforehand.

The rules, for ties and for "cannot tell" each:

``drop``    the answer leaves the numerator and the denominator;
``half``    it counts half for either side;
``report``  it stays in the denominator as an answer of its own, so the share of those who favour one side is smaller.

Whatever the rule, the test compares the answers for with the answers against: given the number of ties, the exact test
of "neither is preferred" does not depend on them. All tests here treat answers as coming from different raters;
``dialometer.stats.clustered.clustered`` is for raters who answer more than once.

Checked against ``scipy.stats.binomtest``, ``scipy.stats.chisquare``, ``statsmodels.stats.contingency_tables.mcnemar``,
``statsmodels.stats.descriptivestats.sign_test`` (the preference of signs) and the cells of Table 2 in Guerini, Falcone and
Magnini (SCAI 2018).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered.proportion import INTERVAL_NAMES, ProportionInterval, interval_of
from dialometer.stats.observations import Floats, missing_note, numbers, same_length

TieRule = Literal["drop", "half", "report"]
_RULE_WORDS: dict[TieRule, str] = {"drop": "excluded", "half": "counted as half", "report": "counted as answers"}


def with_rules(method: str, ties: TieRule, cannot_tell: TieRule, counts: Mapping[str, int]) -> str:
    """The method of an estimate with what is done with ties and "cannot tell", as far as there are any."""
    rules = {"ties": (counts["n_ties"], ties), "“cannot tell”": (counts["n_cannot_tell"], cannot_tell)}
    applied = {name: _RULE_WORDS[rule] for name, (count, rule) in rules.items() if count}
    if len(applied) == 2 and len(set(applied.values())) == 1:
        applied = {" and ".join(applied): _RULE_WORDS[ties]}
    words = ", ".join(f"{name} {rule}" for name, rule in applied.items())
    return f"{method}; {words}" if words else method


ChoiceTest = Literal["exact", "chi2", "chi2-yates"]

_STRANGE = 99.0
NO_DECISIVE = "no answer for either side: a test needs at least one rater who prefers one of the two"


def binomial_test(
    successes: int,
    n: int,
    *,
    null: float = 0.5,
    interval: ProportionInterval = "clopper-pearson",
    confidence: float = 0.95,
) -> Estimate:
    """Exact two-sided binomial test of a share, summing all outcomes that are no likelier than the observed one."""
    method = f"exact binomial test, two-sided, null {null:g}"
    if n == 0:
        return unknown(method, "no answers: collect at least one judgment")
    low, high = interval_of(interval, successes, n, confidence)
    return Estimate(
        value=successes / n,
        n=n,
        method=method,
        low=low,
        high=high,
        confidence=confidence,
        interval_method=INTERVAL_NAMES[interval],
        statistic=float(successes),
        p_value=float(stats.binomtest(successes, n, null).pvalue),
        details={"successes": successes, "null": null},
    )


def chi2_goodness_of_fit(counts: ArrayLike, expected: ArrayLike | None = None, *, yates: bool = False) -> Estimate:
    """Pearson's chi-square of counts against expected shares (equal by default); the value is Cohen's w.

    ``yates`` takes one half off each deviation, as is usual for two categories; never more than the deviation itself.
    """
    observed = numbers(counts)
    n = float(observed.sum())
    method = "chi-square goodness of fit" + (", Yates' correction" if yates else "")
    if len(observed) < 2:
        raise DialometerError("goodness of fit of fewer than two categories", remedy="give one count per category")
    shares = np.full(len(observed), 1 / len(observed)) if expected is None else numbers(expected)
    same_length(counts=observed, expected=shares)
    if np.any(shares <= 0):
        raise DialometerError("an expected share is not above zero", remedy="leave out categories that cannot occur")
    if n == 0:
        return unknown(method, "no answers: collect at least one judgment")
    predicted = n * shares / shares.sum()
    deviation = np.abs(observed - predicted)
    if yates:
        deviation = deviation - np.minimum(0.5, deviation)
    statistic = float(np.sum(deviation**2 / predicted))
    df = len(observed) - 1
    notes = ("an expected count is below 5: prefer the exact test",) if predicted.min() < 5 else ()
    return Estimate(
        value=math.sqrt(statistic / n),
        n=round(n),
        method=method,
        statistic=statistic,
        df=(float(df),),
        p_value=float(stats.chi2.sf(statistic, df)),
        notes=notes,
        details={"counts": observed.tolist(), "expected": predicted.tolist(), "effect": "Cohen's w"},
    )


def preference(
    n_for: int,
    n_against: int,
    n_ties: int = 0,
    n_cannot_tell: int = 0,
    *,
    ties: TieRule = "drop",
    cannot_tell: TieRule = "drop",
    test: ChoiceTest = "exact",
    interval: ProportionInterval = "wilson",
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Share of answers for one side under the declared rules, with a test of "neither side is preferred"."""
    counts = {"n_for": n_for, "n_against": n_against, "n_ties": n_ties, "n_cannot_tell": n_cannot_tell}
    if min(counts.values()) < 0:
        raise DialometerError(f"negative count in {counts}", remedy="counts are zero or more")
    decisive = n_for + n_against
    undecided = {"ties": (n_ties, ties), "cannot tell": (n_cannot_tell, cannot_tell)}
    n_halves = sum(count for count, rule in undecided.values() if rule == "half")
    n = decisive + sum(count for count, rule in undecided.values() if rule != "drop")
    method = with_rules(f"preference, {_test_name(test)} on decisive answers", ties, cannot_tell, counts)
    if decisive == 0:
        return unknown(method, NO_DECISIVE, n=n, label=label)
    successes = n_for + n_halves / 2
    low, high = interval_of(interval, successes, n, confidence)
    tested = _test_decisive(n_for, n_against, test)
    interval_method = INTERVAL_NAMES[interval] + (
        ", halves counted as half successes (conservative)" if n_halves else ""
    )
    notes = [f"{count} {name} excluded" for name, (count, rule) in undecided.items() if count and rule == "drop"]
    return Estimate(
        value=successes / n,
        n=n,
        method=method,
        low=low,
        high=high,
        confidence=confidence,
        interval_method=interval_method,
        statistic=tested.statistic,
        df=tested.df,
        p_value=tested.p_value,
        label=label,
        notes=(*notes, *tested.notes),
        details={**counts, "share_against": (n_against + n_halves / 2) / n},
    )


def signed_choices(
    choices: ArrayLike, *, favoured: Any, against: Any, tie: Any = "tie", cannot_tell: Any = "cannot_tell"
) -> Floats:
    """Answers as numbers: +1 for the favoured side, -1 against it, 0 a tie, nan cannot tell or missing.

    An answer that is none of these is refused: a misspelt name must not turn into a missing answer.
    """
    number = {favoured: 1.0, against: -1.0, tie: 0.0, cannot_tell: math.nan, None: math.nan}
    answers = np.asarray(choices, dtype=object).tolist()
    out = [number.get(answer, _strange(answer)) for answer in answers]
    strange = sorted({str(answer) for answer, value in zip(answers, out, strict=True) if value == _STRANGE})
    if strange:
        names = f"{favoured!r}, {against!r}, {tie!r} or {cannot_tell!r}"
        raise DialometerError(f"unexpected choice {', '.join(strange[:5])}", remedy=f"answers are {names}")
    return np.array(out, dtype=np.float64)


def preference_of(signed: ArrayLike, *, confidence: float = 0.95, label: str = "") -> Estimate:
    """Preference from an array of +1 (for), -1 (against), 0 (tie) and nan (cannot tell), one entry per rater."""
    answers = numbers(signed)
    is_missing = np.isnan(answers)
    decided = answers[~is_missing]
    if not np.isin(decided, (-1.0, 0.0, 1.0)).all():
        raise DialometerError("a choice is not +1, 0 or -1", remedy="turn answers into numbers with signed_choices")
    return preference(
        int(np.sum(decided == 1)),
        int(np.sum(decided == -1)),
        int(np.sum(decided == 0)),
        int(np.sum(is_missing)),
        confidence=confidence,
        label=label,
    )


def mcnemar(
    first: ArrayLike, second: ArrayLike, *, exact: bool = True, correction: bool = True, confidence: float = 0.95
) -> Estimate:
    """Did the same raters answer "yes" more often the first time than the second? McNemar's test on paired yes/no.

    The value is the share of changers who said yes only the first time (0.5: no change). ``exact`` uses the binomial;
    otherwise chi-square with one degree of freedom, with Edwards' continuity ``correction``. Pairs with a missing
    answer are left out.
    """
    a, b = numbers(first), numbers(second)
    same_length(first=a, second=b)
    is_whole = ~(np.isnan(a) | np.isnan(b))
    a, b = a[is_whole], b[is_whole]
    if not np.isin(np.concatenate([a, b]), (0.0, 1.0)).all():
        raise DialometerError("McNemar's test needs yes/no answers", remedy="give 0 and 1 or False and True")
    only_first = int(np.sum((a == 1) & (b == 0)))
    only_second = int(np.sum((a == 0) & (b == 1)))
    changed = only_first + only_second
    name = "exact binomial" if exact else "chi-square" + (", continuity-corrected" if correction else "")
    method = f"McNemar's test, {name}"
    notes = missing_note(int(np.sum(~is_whole)))
    if changed == 0:
        why = "no rater changed the answer: the test needs pairs that differ; collect more pairs"
        return unknown(method, why, n=len(a))
    tested = _test_decisive(only_first, only_second, "exact" if exact else "chi2-yates" if correction else "chi2")
    kind: ProportionInterval = "clopper-pearson" if exact else "wilson"
    low, high = interval_of(kind, only_first, changed, confidence)
    return Estimate(
        value=only_first / changed,
        n=len(a),
        method=method,
        low=low,
        high=high,
        confidence=confidence,
        interval_method=INTERVAL_NAMES[kind],
        statistic=float(min(only_first, only_second)) if exact else tested.statistic,
        df=tested.df,
        p_value=tested.p_value,
        notes=(*notes, *tested.notes),
        details={
            "n_only_first": only_first,
            "n_only_second": only_second,
            "difference": float(a.mean() - b.mean()),
        },
    )


def _strange(answer: Any) -> float:
    """A mark for answers nobody declared; a float that is nan is a missing answer, not a strange one."""
    return math.nan if isinstance(answer, float) and math.isnan(answer) else _STRANGE


def _test_name(test: ChoiceTest) -> str:
    return {"exact": "exact binomial test", "chi2": "chi-square", "chi2-yates": "chi-square with Yates' correction"}[
        test
    ]


def _test_decisive(n_for: int, n_against: int, test: ChoiceTest) -> Estimate:
    if test == "exact":
        return binomial_test(n_for, n_for + n_against)
    return chi2_goodness_of_fit([n_for, n_against], yates=test == "chi2-yates")
