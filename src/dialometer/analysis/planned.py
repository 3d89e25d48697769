"""What can be said of a study before its data: the planned size, its power, and the methods its report will use."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dialometer.analysis.array_data import data_from_arrays
from dialometer.analysis.choose import analyse
from dialometer.analysis.power import PowerAnalysis, Setting, planted, resized, simulate_tests
from dialometer.design.protocol import protocol
from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.model.report import Method
from dialometer.model.study import Study
from dialometer.simulate.quick import quick_judgments
from dialometer.stats.proportion import proportion

FEW = 100
"""Resamples of the trial run, which only shows which methods are used; the study's own number is written down."""


@dataclass(frozen=True, slots=True)
class PlannedPower:
    """The power of the planned design for one effect."""

    n_raters: int
    effect: float
    alpha: float
    n_simulations: int
    power: Estimate


def planned_raters(study: Study) -> int:
    """How many raters the study plans for; raises where it does not say."""
    n = protocol(study).n_raters
    if n is None:
        raise DialometerError(
            "the study does not say how many raters it plans for",
            where="study.yaml",
            remedy="give recruitment.quota, or --raters",
        )
    return n


def planned_power(
    study: Study, *, n_raters: int, effect: float, alpha: float, n_simulations: int, seed: int
) -> PlannedPower:
    """The share of simulated studies of the planned size in which the primary comparison shows a difference."""
    n_items = PowerAnalysis(study, effect).n_items
    setting = Setting(n_raters, n_items, effect, alpha, seed)
    found = simulate_tests(study, setting, range(n_simulations))
    n_hits = sum(any(p < alpha for p in one.values()) for one in found)
    return PlannedPower(n_raters, effect, alpha, n_simulations, proportion(n_hits, n_simulations, label="power"))


def planned_methods(study: Study, *, n_raters: int, seed: int) -> tuple[Method, ...]:
    """The statistics that the analysis will use, found by running it once on simulated ratings."""
    sized = resized(study, PowerAnalysis(study, 0.5).n_items)
    truth, habits, shifts = planted(sized, 0.5, seed)
    columns = quick_judgments(sized, truth, habits, n_raters=n_raters, seed=seed, shifts=shifts)
    found = analyse(sized, data_from_arrays(sized, columns), seed=seed, n_resamples=FEW).methods
    declared = f"{study.spec.analysis.n_resamples:,} resamples"
    return tuple(replace(one, method=one.method.replace(f"{FEW} resamples", declared)) for one in found)
