"""Statistics: arrays in, :class:`~dialometer.model.estimate.Estimate` out, each checked against another implementation.

A statistic with the decorator :func:`statistic` has a name. It can be computed from a table of judgments
(``dm.compute("name", judgments)``), and reports of the studies that it says it fits show it. Other packages add theirs by an
entry point of the group ``dialometer.statistics``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from dialometer.model.statistic import Statistic
from dialometer.registry import Registry

if TYPE_CHECKING:
    from dialometer.model.study import Study

__all__ = ["STATISTICS", "statistic"]

F = TypeVar("F", bound=Callable[..., Any])

STATISTICS: Registry[Statistic] = Registry("statistic", "dialometer.stats", group="dialometer.statistics")


def statistic(
    name: str, *, title: str, source: str = "", fits: Callable[[Study], bool] | None = None
) -> Callable[[F], F]:
    """Decorator that gives a function a name, and a place in the reports of the studies for which ``fits`` is true."""

    def register(function: F) -> F:
        STATISTICS.register(name)(Statistic(name, title, function, source, fits))
        return function

    return register
