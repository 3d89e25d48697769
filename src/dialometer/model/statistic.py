"""A statistic that has a name: a function of columns of the long table, and the studies whose reports it belongs in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dialometer.model.estimate import Estimate

if TYPE_CHECKING:
    from dialometer.model.study import Study

StatisticResult = Estimate | Mapping[str, Estimate]
"""One estimate, or one for each group: a rater, a system, a condition."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """What is computed and where it is shown.

    The function's positional parameters name columns of the long table; each gets an array with one entry per judgment. Its
    keyword-only parameters are settings, such as ``confidence``, ``n_resamples`` and ``seed``.
    """

    name: str
    title: str
    function: Callable[..., Any]
    source: str = ""
    """The publication that the formula comes from."""
    fits: Callable[[Study], bool] | None = None
    """Which studies' reports show it; none by default."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the long table that it is computed from."""
        return self._parameters(is_setting=False)

    @property
    def settings(self) -> tuple[str, ...]:
        """What can be set."""
        return self._parameters(is_setting=True)

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        return inspect.cleandoc(self.function.__doc__ or "").split("\n\n")[0].replace("\n", " ")

    def _parameters(self, *, is_setting: bool) -> tuple[str, ...]:
        parameters = inspect.signature(self.function).parameters.values()
        return tuple(
            parameter.name
            for parameter in parameters
            if (parameter.kind is inspect.Parameter.KEYWORD_ONLY) == is_setting
        )
