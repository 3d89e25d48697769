"""Labels given by raters to items, as coded arrays: the input of the models that weigh raters by their reliability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.registry import did_you_mean

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """One entry for each label given; ``rater``, ``item`` and ``label`` are numbers in the tuples of names."""

    raters: tuple[str, ...]
    items: tuple[str, ...]
    classes: tuple[str, ...]
    rater: Codes
    item: Codes
    label: Codes

    @property
    def n(self) -> int:
        """How many labels were given."""
        return len(self.label)

    @property
    def labels_per_rater(self) -> Codes:
        """How many labels each rater gave."""
        return np.bincount(self.rater, minlength=len(self.raters))


def code_labels(
    rater: Sequence[str], item: Sequence[str], label: Sequence[str], *, classes: Sequence[str] | None = None
) -> Labels:
    """Labels from names. ``classes`` lists what could have been given; left out, it is what was given, sorted."""
    if not len(rater) == len(item) == len(label):
        raise DialometerError(
            f"{len(rater)} raters, {len(item)} items, {len(label)} labels", where="labels", remedy="give one of each"
        )
    if not len(label):
        raise NotEnoughData("no labels", where="labels", remedy="collect judgments first")
    known = tuple(classes) if classes is not None else tuple(sorted(set(map(str, label))))
    place = {name: k for k, name in enumerate(known)}
    for given in set(map(str, label)) - set(known):
        raise DialometerError(f"unknown label '{given}'", where="labels", remedy=did_you_mean(given, list(known)))
    raters, rater_codes = np.unique(np.asarray(rater, dtype=np.str_), return_inverse=True)
    items, item_codes = np.unique(np.asarray(item, dtype=np.str_), return_inverse=True)
    return Labels(
        raters=tuple(raters.tolist()),
        items=tuple(items.tolist()),
        classes=known,
        rater=rater_codes.astype(np.intp),
        item=item_codes.astype(np.intp),
        label=np.array([place[str(given)] for given in label], dtype=np.intp),
    )


def check_informative(labels: Labels, method: str) -> None:
    """Models of reliability learn from agreement and disagreement; without either there is nothing to learn."""
    if len(labels.raters) < 2:
        raise NotEnoughData("one rater", where=method, remedy="reliability shows only beside other raters")
    if len(np.unique(labels.label)) < 2:
        raise NotEnoughData(
            f"every label is '{labels.classes[labels.label[0]]}'", where=method, remedy="at least two labels must occur"
        )
    raters_per_item = np.bincount(np.unique(labels.item * len(labels.raters) + labels.rater) // len(labels.raters))
    if raters_per_item.max() < 2:
        raise NotEnoughData("no item was labelled by two raters", where=method, remedy="let raters overlap")
