"""The six intraclass correlations under both of their usual names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, overload

import numpy as np

from dialometer.errors import UnknownName
from dialometer.registry import did_you_mean
from dialometer.stats.ratings import Floats

Model = Literal["one_way", "agreement", "consistency"]

NEGATIVE = "negative: items differ less than chance alone would make them; read it as no reliability"
"""The note beside every ICC below zero."""


@dataclass(frozen=True)
class Form:
    """One ICC: Shrout & Fleiss (1979) write ``ICC(2,1)``, McGraw & Wong (1996) ``ICC(A,1)``.

    ``one_way``: items were judged by different raters. ``agreement``: the same raters judged all items and a rater who is
    higher throughout counts as disagreement. ``consistency``: that shift is forgiven. An average form is the reliability of
    the mean of k ratings, a single form that of one rating.
    """

    name: str
    mcgraw_wong: str
    model: Model
    is_average: bool

    def label(self) -> str:
        """Both names, for reports."""
        return f"{self.name} = {self.mcgraw_wong}"


FORMS: tuple[Form, ...] = (
    Form("ICC(1,1)", "ICC(1)", "one_way", False),
    Form("ICC(2,1)", "ICC(A,1)", "agreement", False),
    Form("ICC(3,1)", "ICC(C,1)", "consistency", False),
    Form("ICC(1,k)", "ICC(k)", "one_way", True),
    Form("ICC(2,k)", "ICC(A,k)", "agreement", True),
    Form("ICC(3,k)", "ICC(C,k)", "consistency", True),
)


def form_named(name: str) -> Form:
    """The form of either name; an unknown one lists what there is."""
    for form in FORMS:
        if name.replace(" ", "") in (form.name, form.mcgraw_wong):
            return form
    known = [name for form in FORMS for name in (form.name, form.mcgraw_wong)]
    raise UnknownName(f"unknown form of ICC '{name}'", remedy=did_you_mean(name, known))


@overload
def spearman_brown(single: float, k: float) -> float: ...
@overload
def spearman_brown(single: Floats, k: float | Floats) -> Floats: ...
def spearman_brown(single: float | Floats, k: float | Floats) -> float | Floats:
    """Reliability of the mean of ``k`` ratings from that of one; every average form follows from its single form."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return single * k / (1 + (k - 1) * single)
