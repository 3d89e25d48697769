"""Sentences about preferences that say how far each reaches: a strategy in general, or the texts that were shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import (
    confidence_words,
    first_note,
    interval_only,
    listed,
    n_of,
    p_words,
    percent,
    sentence,
)
from dialometer.analysis.families.pairs.choices import PairChoices
from dialometer.analysis.families.pairs.results import NO_PREFERENCE, DeclaredShares, Result
from dialometer.analysis.shared.comparisons import CORRECTIONS, is_significant, p_adjusted
from dialometer.design.checks.items import FEWEST_PAIRS
from dialometer.model.estimate import Estimate

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def number_word(n: int) -> str:
    """Small numbers in words."""
    return _NUMBERS[n] if n < len(_NUMBERS) else f"{n:,}"


def answer_words(results: Sequence[Result]) -> str:
    """What a reader wants to know first."""
    up = [result for result in results if result.value > NO_PREFERENCE]
    reaches = {result.reach for result in results}
    if len(up) < len(results) or len(results) < 2 or len(reaches) > 1 or not reaches <= {"general", "here"}:
        return verdict(results)
    low, high = (percent(end(result.value for result in results)) for end in (min, max))
    lowest, highest = (listed(c.label for c in results if percent(c.value) == end) for end in (low, high))
    span = (
        f"from {low} of the choices ({lowest}) to {high} ({highest})"
        if low != high
        else f"with {low} of the choices each"
    )
    text = f"raters preferred the experimental version for all {len(results)} strategies, {span}"
    if reaches == {"general"}:
        return sentence(text)
    return f"In {pairs_words(results)}, {text}{why_not_general(results)}"


def verdict(results: Sequence[Result]) -> str:
    """Which strategies are preferred in general, which in these pairs only, which rejected, and which left open."""
    parts = [*_preferred([result for result in results if result.reach == "general"], len(results))]
    text = sentence("; ".join(parts))
    shown = [result for result in results if result.reach == "here"]
    if shown:
        found = " and ".join(_preferred(shown, len(results)))
        text = f"{text} In {pairs_words(shown)}, {found}{why_not_general(shown)}"
    left_open = [result for result in results if result.reach == "open"]
    untested = [result for result in results if result.reach == "untested"]
    unknown = [result for result in results if result.reach == "unknown"]
    rest = []
    if left_open:
        rest.append(f"no preference is significant for {_with_shares(left_open, of=' chose the experimental version')}")
    if untested:
        rest.append(
            f"there are too few raters for a test on {_with_shares(untested, of=' chose the experimental version')}"
        )
    if unknown:
        why = first_note([result.here for result in unknown]).partition(":")[0]
        rest.append(f"there are not enough data on {listed(c.label for c in unknown)}" + (f" ({why})" if why else ""))
    return " ".join(part for part in (text.strip(), sentence("; ".join(rest))) if part)


def _preferred(results: Sequence[Result], n_all: int) -> list[str]:
    up = [result for result in results if result.value > NO_PREFERENCE]
    down = [result for result in results if result.value < NO_PREFERENCE]
    parts = []
    if up:
        whole = " all strategies:" if len(up) == n_all > 1 else ""
        parts.append(f"the experimental version is preferred for{whole} {_with_shares(up)}")
    if down:
        parts.append(f"the control version is preferred for {_with_shares(down, is_control=True)}")
    return parts


def _with_shares(results: Sequence[Result], *, is_control: bool = False, of: str = "") -> str:
    """Strategies with their shares, the largest first; ``of`` says with the first what the shares are of."""
    shares = {result.label: 1 - result.value if is_control else result.value for result in results}
    order = sorted(shares, key=lambda label: -shares[label])
    return listed(f"{label} ({percent(shares[label])}{of if label == order[0] else ''})" for label in order)


def pairs_words(results: Sequence[Result]) -> str:
    """The pairs that a claim of limited reach is about."""
    counts = {result.n_pairs for result in results}
    if len(counts) > 1:
        return "the transcript pairs shown"
    (n,) = counts
    of_each = "" if len(results) == 1 else " of each strategy"
    return f"the {'single' if n == 1 else number_word(n)} transcript {'pair' if n == 1 else 'pairs'}{of_each}"


def why_not_general(results: Sequence[Result]) -> str:
    """The end of a sentence on these pairs: why it says nothing about the strategies in general."""
    if all(result.general is None for result in results):
        return ". This is a claim about these texts: the study declares its transcript pairs as fixed."
    most = max(result.n_pairs for result in results)
    if most == 1:
        return ". This is about these texts only: one pair cannot show that a strategy is preferred in general."
    what = "the strategy is" if len(results) == 1 else "a strategy is"
    if most < FEWEST_PAIRS:
        how_many = (
            number_word(most) if len({result.n_pairs for result in results}) == 1 else f"{number_word(most)} or fewer"
        )
        return f"; {how_many} pairs are too few to say that {what} preferred in general."
    return "; for other transcript pairs this is not significant."


def certainty_words(
    results: Sequence[Result], choices: PairChoices, options: Options, deciding: DeclaredShares | None
) -> str:
    """How many tests are significant at which reach, on how many data, and what is left open."""
    kind = "confirmatory (declared in advance)" if deciding else "exploratory"
    what = f"The comparison is {kind}."
    basis = f"{n_of(choices.n_raters, 'rater')} made {n_of(choices.n, 'choice')} on {n_of(choices.n_pairs, 'transcript pair')}"
    if all(result.reach in ("untested", "unknown") for result in results):
        return f"{basis}; that is not enough for a test. {what}"
    has_correction = options.correction in CORRECTIONS and len(results) > 1
    found = f"after {CORRECTIONS[options.correction]}'s correction, " if has_correction else ""
    general = [result.general for result in results if result.general is not None]
    tested = [one for one in general if not math.isnan(one.p_value)]
    these = "for other raters who read these same transcript pairs"
    here = [result.here for result in results]
    if tested:
        found += f"{_counted(tested, 'significant ')}for other raters and other transcript pairs, and {_counted(here)} {these}"
    else:
        found += f"{_counted(here, 'significant ')}{these}"
        found += "; for other transcript pairs nothing can be tested" if general else ""
    return f"{sentence(found)} {sentence(basis)} {what}{_left_open(results, options)}"


def _counted(tests: Sequence[Estimate], word: str = "") -> str:
    tests = [test for test in tests if not math.isnan(p_adjusted(test))]
    clear = [p_adjusted(test) for test in tests if is_significant(test)]
    largest = f"({'largest ' if len(clear) > 1 else ''}{p_words(max(clear))})" if clear else ""
    verb = ("is " if len(clear) < 2 else "are ") + word if word else ""
    some = "all" if len(clear) == len(tests) > 1 else f"{len(clear) or 'none'} of"
    counted = f"{some} {n_of(len(tests), 'preference') if word else len(tests)} {verb}{largest}".strip()
    return f"{counted} " if word else counted


def _left_open(results: Sequence[Result], options: Options) -> str:
    unclear = [c for c in results if c.reach in ("open", "here") and c.has_general_test and c.declared.has_interval]
    unclear = unclear or [c for c in results if c.reach == "open" and c.shown.has_interval]
    if not unclear:
        return ""
    widest = max(unclear, key=lambda c: c.shown.high - c.shown.low)
    n_raters = float(widest.declared.details.get("n_raters", math.inf))
    few = widest.has_general_test and widest.n_pairs < min(FEWEST_PAIRS, n_raters)
    what = "transcript pairs" if few else "raters and transcript pairs" if widest.has_general_test else "raters"
    where = " in general" if widest.has_general_test else ""
    ends = f"{percent(widest.shown.low)} to {percent(widest.shown.high)}"
    return (
        f" A result that is not significant{where} may mean no preference, or one that so few {what} cannot show: for "
        f"{widest.label} the {confidence_words(options.confidence)} confidence interval extends from {ends}."
    )


def headline_words(result: Result) -> str:
    """What the numbers shown with a strategy, its share and the corrected p-value, do not say: how far they reach."""
    n = f"{number_word(result.n_pairs)} {'pair' if result.n_pairs == 1 else 'pairs'}"
    these = f"in {'this' if result.n_pairs == 1 else 'these'} {n}"
    if result.reach == "general":
        return "Significant for other transcript pairs too."
    if result.reach == "untested":
        return "Not tested."
    if not result.has_general_test:
        text = f"{'Significant' if result.reach == 'here' else 'Not significant'} {these}"
        return f"{text}." if result.general is None else f"{text}; for other pairs nothing can be tested."
    text = "Not significant for other transcript pairs"
    if result.reach == "open":
        return f"{text}."
    few = f": {n} are too few" if result.n_pairs < FEWEST_PAIRS else ""
    here = f"{p_words(p_adjusted(result.here))}, {interval_only(result.here, is_percent=True)}"
    return f"{text}{few}. Significant {these} ({here})."
