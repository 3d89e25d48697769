"""Numbers as raters gave them, put on the footing on which they are analysed; whatever is changed or left out is said."""

from __future__ import annotations

import numpy as np

from dialometer.analysis.scale_units import Asked, bounds
from dialometer.analysis.words import listed, n_of
from dialometer.model.scale import Scale
from dialometer.stats.normalise import normalise
from dialometer.stats.observations import Floats, Ints


def inside(value: Floats, cell: Ints, scales: tuple[Scale, ...]) -> tuple[Floats, tuple[str, ...]]:
    """Numbers a scale cannot give (they come from imports) made missing, with a sentence that says which."""
    low, high = (np.array(ends)[cell] for ends in zip(*(bounds(scale) for scale in scales), strict=True))
    is_likert = np.array([scale.type == "likert" for scale in scales])[cell]
    is_outside = ~np.isfinite(value) | (value < low) | (value > high) | (is_likert & (value != np.round(value)))
    n_outside = int(is_outside.sum())
    if not n_outside:
        return value, ()
    seen = listed((f"{number:g}" for number in np.unique(value[is_outside])), most=5)
    scale = scales[int(cell[np.flatnonzero(is_outside)[0]])]
    said = f"{n_of(n_outside, 'number')} outside the scale ({scale.describe()}) left out: {seen}. Correct the import."
    return np.where(is_outside, np.nan, value), (said,)


def once(
    value: Floats, target: Ints, columns: dict[str, Ints]
) -> tuple[Floats, Ints, dict[str, Ints], tuple[str, ...]]:
    """One judgment of each rater on each target; several are averaged, as which of them counts is not ours to say."""
    key = columns["rater"] * (int(target.max()) + 1) + target
    distinct, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    n_more = len(key) - len(distinct)
    if not n_more:
        return value, target, columns, ()
    given = ~np.isnan(value)
    sums = np.bincount(inverse[given], weights=value[given], minlength=len(distinct))
    counts = np.bincount(inverse[given], minlength=len(distinct))
    mean = np.divide(sums, counts, out=np.full(len(distinct), np.nan), where=counts > 0)
    said = f"{n_of(n_more, 'judgment')} repeated what the same rater had judged before; such judgments were averaged."
    return mean, target[first], {name: column[first] for name, column in columns.items()}, (said,)


def on_footing(
    value: Floats, columns: dict[str, Ints], asked: Asked, zeros: str, raters: tuple[str, ...]
) -> tuple[Floats, Floats, tuple[str, ...], tuple[str, ...]]:
    """Raw numbers and those that are analysed, remarks on zeros, and the raters who always gave the same number."""
    unit = asked.unit
    if unit == "percent":
        low, high = (np.array(ends)[columns["cell"]] for ends in zip(*map(bounds, asked.scales), strict=True))
        value = 100 * (value - low) / (high - low)
    is_magnitude = np.array([scale.type == "magnitude" for scale in asked.scales])[columns["cell"]]
    y = value.copy()
    said: list[str] = []
    constant: set[int] = set()
    for is_chosen, plain in ((is_magnitude, "ln"), (~is_magnitude, "raw")):
        if not is_chosen.any():
            continue
        method = f"{plain}_z" if unit == "z" else plain
        made = normalise(value[is_chosen], columns["rater"][is_chosen], method, zeros=zeros)  # type: ignore[arg-type]
        y[is_chosen] = made.values
        constant |= set(made.constant_raters)
        said += _zero_notes(made.n_zero, made.n_replaced, made.n_excluded)
        if made.raters_without_positive:
            names = listed(raters[code] for code in made.raters_without_positive)
            said.append(f"No positive number by {names}: nothing of theirs can be used.")
    return value, y, tuple(said), tuple(raters[code] for code in sorted(constant))


def _zero_notes(n_zero: int, n_replaced: int, n_excluded: int) -> list[str]:
    said = []
    if n_replaced:
        said.append(
            f"{n_of(n_replaced, 'zero', 'zeros')} replaced by half of the rater's smallest positive number, "
            "as declared, because zero has no logarithm."
        )
    if n_excluded:
        said.append(f"{n_of(n_excluded, 'zero', 'zeros')} left out, because zero has no logarithm.")
    return said if n_zero else []
