"""Ratings with the lowest value as one page to read through: each dialogue with its neighbours, light and dark, phone and desk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from dialometer.learned.data.rated import HIGH, LOW, RatedDialogue
from dialometer.learned.experiments.rating_values import Valued
from dialometer.report.theme import page_style

N_NEIGHBOURS_SHOWN = 5


@dataclass(frozen=True)
class Noisy:
    """A rating that is doubted, and what its nearest dialogues were rated."""

    rated: RatedDialogue
    value: float
    smoothed: float
    neighbours: tuple[RatedDialogue, ...]
    n_by_rating: dict[float, int]
    """How many of all K neighbours have each rating."""

    @property
    def reason(self) -> str:
        """The doubt in words."""
        n = sum(self.n_by_rating.values())
        return (
            f"rated {self.rated.rating:g} of {HIGH:g}, while the {n} nearest dialogues are rated "
            f"{self.smoothed:.1f} on average; value {self.value:+.2g}"
        )


def lowest(rated: Sequence[RatedDialogue], valued: Valued, n: int) -> list[Noisy]:
    """The ``n`` ratings that do most harm, worst first; ratings that help are never among them."""
    order = np.argsort(np.where(np.isnan(valued.values), np.inf, valued.values), kind="stable")
    found = []
    for row in order[:n].tolist():
        if not valued.values[row] < 0:
            break
        near = valued.neighbours[row].tolist()
        counted = Counter(rated[other].rating for other in near)
        found.append(
            Noisy(
                rated[row],
                float(valued.values[row]),
                float(valued.smoothed[row]),
                tuple(rated[other] for other in near[:N_NEIGHBOURS_SHOWN]),
                dict(sorted(counted.items())),
            )
        )
    return found


def noisy_rows(noisy: Sequence[Noisy]) -> list[dict[str, Any]]:
    """The list as plain data, for programs."""
    return [
        {
            "id": one.rated.id,
            "rating": one.rated.rating,
            "value": one.value,
            "smoothed": one.smoothed,
            "user": one.rated.user,
            "bot": one.rated.bot,
            "source": one.rated.source,
            "neighbours": [{"id": near.id, "rating": near.rating} for near in one.neighbours],
            "reason": one.reason,
        }
        for one in noisy
    ]


def noisy_page(noisy: Sequence[Noisy], valued: Valued, *, title: str, command: str) -> str:
    """The whole page, which needs nothing else."""
    known = valued.values[~np.isnan(valued.values)]
    return _template().render(
        style=Markup(page_style()),
        title=title,
        command=command,
        noisy=noisy,
        n_rated=len(valued.values),
        n_valued=len(known),
        n_negative=int((known < 0).sum()),
        k=valued.neighbours.shape[1],
        is_expert=valued.is_expert,
        low=LOW,
        high=HIGH,
        bars=_bars,
    )


def _bars(one: Noisy) -> list[dict[str, Any]]:
    """One bar for each whole rating: how many neighbours have it, and whether it is the rating in doubt."""
    points = sorted({*one.n_by_rating, one.rated.rating, *(float(p) for p in range(int(LOW), int(HIGH) + 1))})
    most = max(one.n_by_rating.values())
    return [
        asdict(
            _Bar(
                f"{point:g}",
                one.n_by_rating.get(point, 0),
                one.n_by_rating.get(point, 0) / most,
                point == one.rated.rating,
            )
        )
        for point in points
    ]


@dataclass(frozen=True, slots=True)
class _Bar:
    label: str
    n: int
    share: float
    is_own: bool


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("dialometer.learned"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("noisy.html")
