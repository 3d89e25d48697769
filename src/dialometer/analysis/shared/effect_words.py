"""One difference in words, whatever it is counted in: points, ratios, shares, odds, scores, consistency.

Every sentence about a confirmatory test comes from here, so that the same number is worded the same in the answer, in the
verdict on a hypothesis and in what to do next.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dialometer.analysis.base.wording import (
    after_correction,
    as_ratio,
    interval_only,
    p_words,
    value_only,
    write_points,
)
from dialometer.analysis.shared.comparisons import p_adjusted
from dialometer.model.estimate import Estimate
from dialometer.report.numbers import PERCENTAGE_POINTS, write_estimate

_WORDS = {
    "points": "is rated {value} points {higher} than",
    "standard deviations": "is rated {value} standard deviations {higher} than",
    "percentage points of the scale": "is rated {value} percentage points of the scale {higher} than",
    "score": "scores {value} {higher} than",
    "percentage points": "is {value} percentage points {higher} than",
    "ICC": "has an ICC {value} {higher} than",
}
"""How a difference reads, by what it is counted in."""


TIE = 0.005
"""What is smaller reads as no difference, with two digits."""


def is_share(estimate: Estimate) -> bool:
    """Whether the estimate is a share of choices, for which 50% means no preference."""
    return float(estimate.details.get("null", 0.0)) == 0.5


def flipped(estimate: Estimate) -> Estimate:
    """The same difference the other way round: the second relative to the first."""
    center = 2 * float(estimate.details.get("null", 0.0))
    details = {
        **estimate.details,
        "first": estimate.details.get("second"),
        "second": estimate.details.get("first"),
    }
    return replace(
        estimate, value=center - estimate.value, low=center - estimate.high, high=center - estimate.low, details=details
    )


def readable(estimate: Estimate) -> tuple[Estimate, bool]:
    """The estimate as a reader wants it, and whether it is written in percent.

    Logarithms become ratios and log odds become probabilities; a difference of shares is in percentage points.
    """
    if not estimate.is_known:
        return estimate, False
    if estimate.details.get("is_log"):
        return as_ratio(estimate), False
    if estimate.unit == "log odds":
        ends = np.array([estimate.value, estimate.low, estimate.high])
        value, low, high = expected_share(ends, float(estimate.details.get("tie", 0.0))).tolist()
        details = {**estimate.details, "null": 0.5}
        return replace(estimate, value=value, low=low, high=high, unit="probability", details=details), True
    if estimate.details.get("quantity") == PERCENTAGE_POINTS:
        value, low, high = (100 * share for share in (estimate.value, estimate.low, estimate.high))
        return replace(estimate, value=value, low=low, high=high, unit=PERCENTAGE_POINTS), False
    return estimate, is_share(estimate)


def counted_in(estimate: Estimate) -> str:
    """The unit of the readable estimate, as a tile writes it behind the number."""
    if estimate.unit == "log odds":
        return "probability"
    if is_share(estimate):
        return "share"
    if estimate.details.get("is_log"):
        return "times"
    quantity = str(estimate.details.get("quantity", "points"))
    return {"ICC": "difference in ICC", "score": "difference in score"}.get(quantity, quantity)


def expected_share(log_odds: NDArray[np.float64], tie: float = 0.0) -> NDArray[np.float64]:
    """Expected points (a win 1, a tie ½) at differences of strengths; ``tie`` is Davidson's parameter, 0 without ties."""
    size = np.abs(log_odds)
    even = tie * np.exp(-size / 2)
    ahead = (1 + even / 2) / (1 + np.exp(-size) + even)
    return np.where(log_odds < 0, 1 - ahead, ahead)


def effect_words(estimate: Estimate, first: str, second: str, correction: str) -> str:
    """ "Juno is rated 0.62 points higher than Tak (95% confidence interval 0.32 to 0.93, p < .001 after Holm)"."""
    if not estimate.is_known:
        return _unknown(estimate, first, second)
    shown, is_percent = readable(estimate)
    after = after_correction(correction) if estimate.details.get("n_tests", 2) > 1 else ""
    test = f"{interval_only(shown, is_percent=is_percent)}, {p_words(p_adjusted(estimate))}{after}"
    return f"{about_words(estimate)}{compared_words(estimate, first, second)} ({test})"


def short_words(estimate: Estimate, first: str, second: str) -> str:
    """The same for a list: "Juno is rated 0.62 points higher than Tak [0.32, 0.93], p < .001"."""
    if not estimate.is_known:
        return _unknown(estimate, first, second)
    shown, is_percent = readable(estimate)
    interval = write_estimate(shown, is_percent=is_percent).interval
    interval = f" {interval}" if interval else ""
    return f"{compared_words(estimate, first, second)}{interval}, {p_words(p_adjusted(estimate))}"


def _unknown(estimate: Estimate, first: str, second: str) -> str:
    why = f" ({estimate.notes[-1]})" if estimate.notes else ""
    return f"{first} against {second}: not enough data{why}"


def about_words(estimate: Estimate) -> str:
    """What the difference is on, before a colon."""
    words = [str(word) for key in ("about", "part") if (word := estimate.details.get(key))]
    return f"{', '.join(words)}: " if words else ""


def is_tie(estimate: Estimate) -> bool:
    """Whether the two are level as it is written: 0.00 points, 1.00 times, 50%."""
    shown, is_percent = readable(estimate)
    if is_percent:
        return value_only(shown, is_percent=True) == "50%"
    return abs(shown.value - (1.0 if estimate.details.get("is_log") else 0.0)) < TIE


def compared_words(estimate: Estimate, first: str, second: str) -> str:
    """The two and the estimate: "Juno is rated 0.62 points higher than Tak"."""
    shown, _ = readable(estimate)
    if estimate.unit == "log odds":
        return f"{first} is preferred to {second} with an estimated probability of {value_only(shown, is_percent=True)}"
    if is_share(estimate):
        return f"{first} is chosen over {second} in {value_only(shown, is_percent=True)} of choices"
    if estimate.details.get("is_log"):
        return f"{first} is rated {value_only(shown)} times as high as {second}"
    quantity = str(estimate.details.get("quantity", "points"))
    if abs(shown.value) < TIE:
        counted = quantity if quantity.endswith(("points", "deviations")) else f"in {quantity}"
        return f"{first} and {second} differ by less than 0.01 {counted}"
    value = write_points(shown)
    higher = "higher" if shown.value > 0 else "lower"
    return f"{first} {_WORDS.get(quantity, _WORDS['points']).format(value=value, higher=higher)} {second}"
