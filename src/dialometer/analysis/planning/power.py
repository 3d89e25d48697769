"""Power by simulation: the declared design, the declared analysis, simulated raters, many times over.

The effect is planted in the truth of the raters. Between systems it is the distance of the best and the worst of the
compared systems in standard deviations of quality; between levels of a factor it is Cohen's d of raters' mean ratings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.planning.simulated_study import Assumptions, n_items_of, planted, resized, simulated_data
from dialometer.analysis.shared.comparisons import deciding_family, primary_comparison
from dialometer.analysis.shared.looks import tests_at_looks
from dialometer.design.protocol import protocol
from dialometer.errors import DialometerError, NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.study import Study
from dialometer.neural.engines import LOCAL, Engine, one_thread
from dialometer.stats.clustered.proportion import proportion

CHUNK = 10  # simulations handed to a process at a time
DEFAULT = Assumptions()
FINE = 0.03  # raters are searched to this relative precision
MANY_RATERS = 5  # times the largest number asked for: if so many are not enough, no number is
MORE_ITEMS = (2, 4, 8)  # times the items of the study


@dataclass(frozen=True, slots=True)
class Setting:
    """A design to try and the effect planted in it."""

    n_raters: int
    n_items: int
    effect: float
    alpha: float
    seed: int
    assumed: Assumptions = DEFAULT


@dataclass(frozen=True)
class PowerPoint:
    """The power of one design: the share of simulated studies in which the primary comparison is significant.

    ``power`` counts studies in which any of its tests is, ``all_tests`` those in which every one is.
    """

    setting: Setting
    power: Estimate
    all_tests: Estimate
    by_test: dict[str, Estimate]
    cost_cents: int | None
    currency: str

    def reached(self, needs_all: bool) -> float:
        """The power that counts."""
        return self.all_tests.value if needs_all else self.power.value

    def is_enough(self, target: float, needs_all: bool) -> bool:
        """Whether the power reaches the target as it is written: what reads 80% reaches 80%."""
        return float(f"{100 * self.reached(needs_all):.0f}") >= 100 * target


@dataclass(frozen=True)
class PowerResult:
    """All designs tried, and the smallest that reaches the target with all items of the study.

    Where none does, not even far more raters than were asked for (``limit``), ``with_items`` is the first of several larger
    numbers of items that reaches the target with the largest number of raters asked for.
    """

    comparison: str
    effect: float
    target: float
    points: tuple[PowerPoint, ...]
    smallest: PowerPoint | None
    needs_all: bool = False
    limit: PowerPoint | None = None
    with_items: PowerPoint | None = None

    @property
    def n_tests(self) -> int:
        """Tests of the comparison."""
        return len(self.points[0].by_test)


def primary_tests(data: StudyData, options: Options) -> dict[str, Estimate]:
    """Each test of the primary comparison by its label, as the deciding family makes it."""
    study, comparison = data.study, primary_comparison(data.study)
    if comparison.between == "items":
        raise DialometerError(
            "power analysis compares systems or levels of a factor, not single items",
            remedy="declare another primary comparison",
        )
    family = deciding_family(study)
    if not family.decides(study, comparison):
        raise DialometerError(
            f"no analysis of this design tests the comparison '{comparison.name}'",
            remedy="declare a primary comparison between systems",
        )
    return family.primary_tests(data, comparison, options)


def simulate_tests(study: Study, setting: Setting, numbers: Iterable[int]) -> list[dict[str, float]]:
    """The corrected p-values of some simulated studies. Runs in a process of its own, on one thread."""
    sized = resized(study, setting.n_items)
    options = replace(Options.declared(study), confidence=1 - setting.alpha, n_resamples=100, seed=0)
    p_values = []
    for number in numbers:
        seed = int(
            np.random.SeedSequence([setting.seed, setting.n_raters, setting.n_items, number]).generate_state(1)[0]
        )
        truth, habits, shifts = planted(sized, setting.effect, seed, setting.assumed)
        data = simulated_data(sized, truth, habits, n_raters=setting.n_raters, seed=seed, shifts=shifts)
        try:
            has_looks = study.spec.analysis.looks is not None
            tests = tests_at_looks(data, options, primary_tests) if has_looks else primary_tests(data, options)
        except NotEnoughData:  # such a study finds nothing
            tests = {}
        p_values.append({label: float(e.details.get("p_adjusted", e.p_value)) for label, e in tests.items()})
    return p_values


def _simulate_part(study: Study, part: tuple[Setting, range]) -> list[dict[str, float]]:
    setting, numbers = part
    return simulate_tests(study, setting, numbers)


class PowerAnalysis:
    """Tries designs of one study; several processes or machines, the same numbers however many."""

    def __init__(
        self,
        study: Study,
        effect: float,
        *,
        alpha: float = 0.05,
        target: float = 0.8,
        n_simulations: int = 200,
        seed: int = 1,
        engine: Engine = LOCAL,
        assumed: Assumptions = DEFAULT,
        needs_all: bool = False,
        report: Callable[[int, Setting], None] | None = None,
    ) -> None:
        self.study = study
        self.effect = effect
        self.alpha = alpha
        self.target = target
        self.n_simulations = n_simulations
        self.seed = seed
        self.engine = engine
        self.assumed = assumed
        self.needs_all = needs_all
        self.report = report
        self._tried: dict[tuple[int, int], PowerPoint] = {}

    @property
    def n_items(self) -> int:
        """Items of the study now."""
        return n_items_of(self.study)

    def run(self, raters: Sequence[int], items: Sequence[int] = ()) -> PowerResult:
        """The power over the grid, then a search for the smallest number of raters with all items of the study; where there
        is none, whether more raters or more items would help."""
        one_thread()
        limit = with_items = None
        for n_items in items or (self.n_items,):
            for n_raters in raters:
                self._try(n_raters, n_items)
        smallest = self._search(sorted(raters))
        if smallest is None:
            limit = self._try(MANY_RATERS * max(raters), self.n_items)
            with_items = self._more_items(max(raters))
        name = primary_comparison(self.study).name
        points = tuple(self._tried[key] for key in sorted(self._tried, key=lambda key: (key[1], key[0])))
        return PowerResult(
            name, self.effect, self.target, points, smallest, self.needs_all, limit=limit, with_items=with_items
        )

    def _is_enough(self, point: PowerPoint) -> bool:
        return point.is_enough(self.target, self.needs_all)

    def _more_items(self, n_raters: int) -> PowerPoint | None:
        """The first larger number of items that is enough."""
        if self.study.spec.items.kind in (
            "chat",
            "arena",
        ):  # every conversation is another one, however few items there are
            return None
        points = (self._try(n_raters, factor * self.n_items) for factor in MORE_ITEMS)
        return next((point for point in points if self._is_enough(point)), None)

    def _try(self, n_raters: int, n_items: int) -> PowerPoint:
        key = (n_raters, n_items)
        if key not in self._tried:
            setting = Setting(n_raters, n_items, self.effect, self.alpha, self.seed, self.assumed)
            numbers = range(self.n_simulations)
            parts = [(setting, numbers[i : i + CHUNK]) for i in range(0, self.n_simulations, CHUNK)]
            p_values: list[dict[str, float]] = []
            for done in self.engine.run(_simulate_part, self.study, parts):
                p_values += done
                if self.report is not None:
                    self.report(len(done), setting)
            self._tried[key] = self._point(setting, p_values)
        return self._tried[key]

    def _point(self, setting: Setting, p_values: list[dict[str, float]]) -> PowerPoint:
        labels = list(dict.fromkeys(label for study_p in p_values for label in study_p))
        # As in the report: a test that could not be made (nan) is not significant.
        hits = np.array([[study_p.get(label, math.nan) <= setting.alpha for label in labels] for study_p in p_values])
        if not labels:
            raise NotEnoughData(f"{setting.n_raters} raters are too few for any test", remedy="try more raters")
        n = len(p_values)
        numbers = protocol(self.study)
        return PowerPoint(
            setting,
            proportion(int(hits.any(axis=1).sum()), n, label="any difference"),
            proportion(int(hits.all(axis=1).sum()), n, label="all differences"),
            {label: proportion(int(hits[:, i].sum()), n, label=label) for i, label in enumerate(labels)},
            math.ceil(self.study.spec.recruitment.cost_cents(setting.n_raters))
            if numbers.cost_cents is not None
            else None,
            numbers.currency,
        )

    def _search(self, raters: Sequence[int]) -> PowerPoint | None:
        """Bisection between the largest design that falls short and the smallest that does not; far more raters than asked
        for are tried where none of those is enough."""
        points = [self._try(n, self.n_items) for n in raters]
        enough = [p for p in points if self._is_enough(p)]
        if not enough:
            points.append(self._try(MANY_RATERS * max(raters), self.n_items))
            enough = [points[-1]] if self._is_enough(points[-1]) else []
        if not enough:
            return None
        best = min(enough, key=lambda p: p.setting.n_raters)
        short = [p.setting.n_raters for p in points if p.setting.n_raters < best.setting.n_raters]
        low, high = max(short, default=len(self.study.cells)), best.setting.n_raters
        while high - low > max(1, FINE * high):
            middle = self._try((low + high) // 2, self.n_items)
            if self._is_enough(middle):
                high, best = middle.setting.n_raters, middle
            else:
                low = middle.setting.n_raters
        return best
