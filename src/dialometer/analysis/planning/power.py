"""Power by simulation: the declared design, the declared analysis, simulated raters, many times over.

The effect is planted in the truth of the raters. Between systems it is the distance of the best and the worst of the
compared systems in standard deviations of quality; between levels of a factor it is Cohen's d of raters' mean ratings.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

from dialometer._version import __version__
from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.planning.simulated_study import Assumptions, n_items_of, planted, resized, simulated_data
from dialometer.analysis.shared.comparisons import deciding_family, primary_comparison
from dialometer.design.lock import fingerprint
from dialometer.design.protocol import protocol
from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Headline, Method, Report, Section, Summary, Table
from dialometer.model.study import Study
from dialometer.report.charts.lines import LinePoint, lines
from dialometer.stats.clustered.proportion import proportion

CHUNK = 10  # simulations handed to a process at a time
DEFAULT = Assumptions()
FINE = 0.03  # raters are searched to this relative precision


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
    """The power of one design: the share of simulated studies in which the primary comparison shows at least one difference."""

    setting: Setting
    power: Estimate
    by_test: dict[str, Estimate]
    cost_cents: int | None
    currency: str


@dataclass(frozen=True)
class PowerResult:
    """All designs tried, and the smallest that reaches the target with all items of the study."""

    comparison: str
    effect: float
    target: float
    points: tuple[PowerPoint, ...]
    smallest: PowerPoint | None


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
    """The corrected p values of some simulated studies. Runs in a process of its own, on one thread."""
    sized = resized(study, setting.n_items)
    declared = study.spec.analysis
    options = Options(
        confidence=1 - setting.alpha,
        n_resamples=100,
        seed=0,
        correction=declared.correction,
        has_fixed_items=declared.items == "fixed",
    )
    p_values = []
    for number in numbers:
        seed = int(
            np.random.SeedSequence([setting.seed, setting.n_raters, setting.n_items, number]).generate_state(1)[0]
        )
        truth, habits, shifts = planted(sized, setting.effect, seed, setting.assumed)
        data = simulated_data(sized, truth, habits, n_raters=setting.n_raters, seed=seed, shifts=shifts)
        tests = primary_tests(data, options)
        p_values.append({label: float(e.details.get("p_adjusted", e.p_value)) for label, e in tests.items()})
    return p_values


def _one_thread() -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ[name] = "1"


class PowerAnalysis:
    """Tries designs of one study; several processes, the same numbers however many."""

    def __init__(
        self,
        study: Study,
        effect: float,
        *,
        alpha: float = 0.05,
        target: float = 0.8,
        n_simulations: int = 200,
        seed: int = 1,
        n_processes: int = 1,
        report: Callable[[int, Setting], None] | None = None,
    ) -> None:
        self.study = study
        self.effect = effect
        self.alpha = alpha
        self.target = target
        self.n_simulations = n_simulations
        self.seed = seed
        self.n_processes = n_processes
        self.report = report
        self._tried: dict[tuple[int, int], PowerPoint] = {}

    @property
    def n_items(self) -> int:
        """Items of the study now."""
        return n_items_of(self.study)

    def run(self, raters: Sequence[int], items: Sequence[int] = ()) -> PowerResult:
        """The power over the grid, then a search for the smallest number of raters with all items of the study."""
        _one_thread()
        with ProcessPoolExecutor(self.n_processes, get_context("spawn"), initializer=_one_thread) as pool:
            for n_items in items or (self.n_items,):
                for n_raters in raters:
                    self._try(pool, n_raters, n_items)
            smallest = self._search(pool, sorted(raters))
        points = tuple(self._tried[key] for key in sorted(self._tried, key=lambda key: (key[1], key[0])))
        return PowerResult(primary_comparison(self.study).name, self.effect, self.target, points, smallest)

    def _try(self, pool: ProcessPoolExecutor, n_raters: int, n_items: int) -> PowerPoint:
        key = (n_raters, n_items)
        if key not in self._tried:
            setting = Setting(n_raters, n_items, self.effect, self.alpha, self.seed)
            numbers = range(self.n_simulations)
            jobs = [
                pool.submit(simulate_tests, self.study, setting, numbers[i : i + CHUNK])
                for i in range(0, self.n_simulations, CHUNK)
            ]
            for job in as_completed(jobs):
                done = job.result()
                if self.report is not None:
                    self.report(len(done), setting)
            self._tried[key] = self._point(setting, [study_p for job in jobs for study_p in job.result()])
        return self._tried[key]

    def _point(self, setting: Setting, p_values: list[dict[str, float]]) -> PowerPoint:
        labels = list(p_values[0])
        hits = np.array([[study_p[label] < setting.alpha for label in labels] for study_p in p_values])
        n = len(p_values)
        numbers = protocol(self.study)
        per_rater = self.study.spec.recruitment.pay_cents * (1 + self.study.spec.recruitment.fee_percent / 100)
        return PowerPoint(
            setting,
            proportion(int(hits.any(axis=1).sum()), n, label="any difference"),
            {label: proportion(int(hits[:, i].sum()), n, label=label) for i, label in enumerate(labels)},
            math.ceil(setting.n_raters * per_rater) if numbers.cost_cents is not None else None,
            numbers.currency,
        )

    def _search(self, pool: ProcessPoolExecutor, raters: Sequence[int]) -> PowerPoint | None:
        """Bisection between the largest design that falls short and the smallest that does not."""
        points = [self._try(pool, n, self.n_items) for n in raters]
        enough = [p for p in points if p.power.value >= self.target]
        if not enough:
            return None
        best = min(enough, key=lambda p: p.setting.n_raters)
        short = [p.setting.n_raters for p in points if p.setting.n_raters < best.setting.n_raters]
        low, high = max(short, default=len(self.study.cells)), best.setting.n_raters
        while high - low > max(1, FINE * high):
            middle = self._try(pool, (low + high) // 2, self.n_items)
            if middle.power.value >= self.target:
                high, best = middle.setting.n_raters, middle
            else:
                low = middle.setting.n_raters
        return best


def power_report(study: Study, result: PowerResult, *, n_simulations: int, seed: int, alpha: float) -> Report:
    """What was tried and what follows from it."""
    figure = _figure(result)
    first = result.points[0]
    effect = f"an effect of {result.effect:g}"
    if result.smallest is None:
        answer = f"No design that was tried reaches a power of {result.target:.0%} for {effect}."
        largest = max(p.setting.n_raters for p in result.points)
        certainty = f"The largest had {largest} raters. Try more raters or items, or plan for a larger effect."
    else:
        setting = result.smallest.setting
        answer = f"{setting.n_raters} raters reach a power of {result.target:.0%} for {effect}."
        reached = f"Power {result.smallest.power.value:.0%} with {setting.n_items} items"
        certainty = f"{reached}, from {n_simulations} simulated studies{_cost(result.smallest)}."
    headlines: tuple[Headline, ...] = ()
    if result.smallest is not None:
        label = "Power of the smallest design"
        headlines = (Headline(label, result.smallest.power, certainty, is_confirmatory=True),)
    return Report(
        study=study.spec.name,
        title=f"Power of: {study.spec.title}",
        summary=Summary(answer, certainty, headlines, figure=figure),
        sections=(
            Section(
                "power",
                "Power by design",
                (
                    f"The primary comparison is {result.comparison}. Each simulated study was analysed as the real one will be; "
                    f"power is the share in which at least one of its tests is significant at {alpha:g} after correction.",
                    "Between systems, the effect is the distance of the best and the worst in standard deviations of quality; "
                    "between levels of a factor, Cohen's d of raters' mean ratings.",
                    "The result speaks for other items too."
                    if deciding_family(study).generalises_to_items
                    else "The analysis speaks for other raters on the items shown, so items differ by nothing else.",
                ),
                (_table(result), _by_test(result)),
            ),
        ),
        methods=(
            Method(
                "power",
                f"simulation, {n_simulations} studies for each design",
                "it follows the declared design and analysis exactly",
            ),
        ),
        provenance={
            "study": study.spec.name,
            "fingerprint": fingerprint(study),
            "seed": seed,
            "n_simulations": n_simulations,
            "alpha": first.setting.alpha,
            "dialometer": __version__,
        },
    )


def _cost(point: PowerPoint) -> str:
    return "" if point.cost_cents is None else f", for {point.cost_cents / 100:,.2f} {point.currency}"


def _table(result: PowerResult) -> Table:
    columns = (
        Column("raters", "Raters", "count"),
        Column("items", "Items", "count"),
        Column("power", "Power", "percent_estimate", n_digits=0),
        Column("cost", "Cost", "text"),
        Column("enough", "Enough", "mark"),
    )
    rows = tuple(
        (
            point.setting.n_raters,
            point.setting.n_items,
            point.power,
            "" if point.cost_cents is None else f"{point.cost_cents / 100:,.2f} {point.currency}",
            point.power.value >= result.target,
        )
        for point in result.points
    )
    return Table("power", "Power by number of raters and items", columns, rows)


def _by_test(result: PowerResult) -> Table:
    labels = list(result.points[0].by_test)
    columns = (
        Column("raters", "Raters", "count"),
        Column("items", "Items", "count"),
        *(Column(f"test_{i + 1}", label, "percent_estimate", n_digits=0) for i, label in enumerate(labels)),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (p.setting.n_raters, p.setting.n_items, *(p.by_test[label] for label in labels)) for p in result.points
    )
    return Table("power_by_test", "Power of each test", columns, rows)


def _figure(result: PowerResult) -> Figure:
    points = [
        LinePoint(
            x=point.setting.n_raters,
            y=point.power.value,
            low=point.power.low,
            high=point.power.high,
            group=f"{point.setting.n_items} items",
        )
        for point in result.points
    ]
    spec = lines(
        points,
        x_title="raters",
        y_title="power",
        group_title="Items",
        target=result.target,
        y_domain=(0.0, 1.0),
        is_percent=True,
    )
    shown = ", ".join(f"{p.setting.n_raters} raters: {p.power.value:.0%}" for p in result.points)
    return Figure(
        "power_curve", "Power over the number of raters", spec, f"Power rises with the number of raters. {shown}."
    )
