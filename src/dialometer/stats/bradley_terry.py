"""Strengths of systems from pairwise votes: the Bradley-Terry model, with ties and the effect of position.

Ties count as half a win for each side, or have a parameter of their own (Davidson 1970). Where the votes admit no finite
estimate, the groups that cannot be compared are named and a penalised fit is given, labelled as such.

Checked in ``tests/stats/test_ranking_bradley_terry.py`` against independent penalised values and ``evalica.bradley_terry``
0.4.2, against ``statsmodels.api.GLM(..., family=Binomial())`` for strengths, position and standard errors, and against a
Poisson log-linear ``GLM`` for Davidson's model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bradley_terry_result import ELO_PER_LOGIT, ELO_START, BradleyTerry, Fitted
from dialometer.stats.comparison_graph import describe_groups, strong_groups
from dialometer.stats.paired_newton import Cells, Fit, Model, cells_of, covariance, gradient_and_information, newton
from dialometer.stats.penalty import choose_penalty, fitting_name
from dialometer.stats.separation import has_finite_estimate
from dialometer.stats.win_matrix import WinMatrix

__all__ = ["BradleyTerry", "Ties", "bradley_terry"]

Ties = Literal["half", "davidson"]


def bradley_terry(
    matrix: WinMatrix,
    *,
    ties: Ties = "half",
    position_effect: bool = False,
    prior: float | None = None,
    confidence: float = 0.95,
) -> BradleyTerry:
    """Fit the model to counted votes.

    ``prior`` is a number of pseudo-wins of every system over every other one; ``None`` takes maximum likelihood where it
    exists and 0.1 where it does not. Standard errors come from the curvature of the (penalised) likelihood; with ties as
    half wins they are on the cautious side, since a tie is less variable than the plain model allows for.
    """
    check_request(matrix, position_effect=position_effect)
    part = matrix.part(np.flatnonzero(matrix.votes_per_system > 0).tolist())
    model, notes = choose_model(part, ties=ties, position_effect=position_effect)
    if part.n_self:
        notes.append(f"{part.n_self} votes set a system against itself and were left out")
    groups = strong_groups(part.half_wins)
    used, remarks = choose_penalty(prior, _obstacles(part, model, groups), "Bradley-Terry")
    notes += remarks
    cells, fit = _fit(part, model, used)
    _, information = gradient_and_information(cells, model, fit.parameters)
    fitted = Fitted(
        names=part.systems,
        parameters=fit.parameters[:, 0],
        covariance=covariance(information[0], len(part.systems)),
        model=model,
        method=method_name(model, used),
        interval_method="Wald, curvature of the penalised likelihood" if used else "Wald, observed information",
        confidence=confidence,
        notes=tuple(notes),
    )
    return _result(matrix, fitted, cells, fit, prior=used, ties=ties, groups=groups)


def check_request(matrix: WinMatrix, *, position_effect: bool) -> None:
    """Refuse in words what cannot be fitted."""
    if len(matrix.systems) < 2:
        raise NotEnoughData(
            f"{len(matrix.systems)} system", where="Bradley-Terry", remedy="a ranking needs at least two"
        )
    if matrix.n_votes <= 0:
        raise NotEnoughData(
            "no votes between two different systems", where="Bradley-Terry", remedy="collect votes first"
        )
    if position_effect and not matrix.has_order:
        raise DialometerError(
            "the matrix does not say which system was shown first",
            where="Bradley-Terry",
            remedy="build it from votes, or leave the position effect out",
        )


def _obstacles(matrix: WinMatrix, model: Model, groups: list[list[int]]) -> list[str]:
    """Why no finite maximum-likelihood estimate exists, in words; empty where it does."""
    if len(groups) > 1:
        return describe_groups(groups, matrix.half_wins, matrix.systems)
    if model.n_extra and not has_finite_estimate(
        cells_of(matrix, keep_order=model.has_position, all_pairs=False), model
    ):
        return ["the votes leave the tie or position parameter open"]
    return []


def choose_model(matrix: WinMatrix, *, ties: Ties, position_effect: bool) -> tuple[Model, list[str]]:
    """Davidson's tie parameter has no finite value where nobody tied; the plain model is its limit there."""
    if ties == "davidson" and not matrix.tied.any():
        return Model(has_position=position_effect), ["no ties were cast, so that Davidson's model is the plain one"]
    return Model(has_ties=ties == "davidson", has_position=position_effect), []


def method_name(model: Model, prior: float) -> str:
    """The model and how it was fitted, in one line."""
    parts = ["Bradley-Terry", "Davidson's ties" if model.has_ties else "ties as half wins"]
    if model.has_position:
        parts.append("position effect")
    return ", ".join([*parts, fitting_name(prior)])


def _fit(matrix: WinMatrix, model: Model, prior: float) -> tuple[Cells, Fit]:
    cells = cells_of(matrix, keep_order=model.has_position, all_pairs=prior > 0)
    if prior > 0:
        cells = cells.with_pseudo_wins(prior, keep_order=model.has_position)
    fit = newton(cells, model, max_iterations=200)
    if not fit.is_converged[0]:
        raise NotEnoughData(
            "the strengths lie too far apart to be estimated", where="Bradley-Terry", remedy="set a larger prior"
        )
    return cells, fit


def _result(
    matrix: WinMatrix, fitted: Fitted, cells: Cells, fit: Fit, *, prior: float, ties: Ties, groups: list[list[int]]
) -> BradleyTerry:
    names, n = fitted.names, len(fitted.names)
    n_shown = dict(zip(matrix.systems, matrix.votes_per_system.round().astype(int).tolist(), strict=True))

    def by_system(make: Callable[[int, str], Estimate]) -> dict[str, Estimate]:
        place = {name: k for k, name in enumerate(names)}
        return {
            name: make(place[name], name)
            if name in place
            else unknown(fitted.method, f"no votes on '{name}'", label=name)
            for name in matrix.systems
        }

    tie_parameter = None
    if ties == "davidson":
        tie_parameter = (
            fitted.tie_parameter(matrix.tied.sum())
            if fitted.model.has_ties
            else unknown(fitted.method, "no ties were cast", n=0, label="tie parameter")
        )
    return BradleyTerry(
        systems=matrix.systems,
        strengths=by_system(lambda k, name: fitted.linear(k, n=n_shown[name], label=name, unit="log odds")),
        beats_average=by_system(
            lambda k, name: fitted.probability(
                [(k, other) for other in range(n) if other != k], n=n_shown[name], label=name
            )
        ),
        elo=by_system(
            lambda k, name: fitted.linear(
                k, n=n_shown[name], label=name, unit="Elo", shift=ELO_START, scale=ELO_PER_LOGIT
            )
        ),
        tie_parameter=tie_parameter,
        position_effect=fitted.position_effect(matrix.n_votes) if fitted.model.has_position else None,
        ranked=tuple(names[k] for k in np.argsort(-fitted.parameters[:n], kind="stable")),
        groups=tuple(tuple(names[k] for k in group) for group in groups),
        is_penalised=prior > 0,
        prior=prior,
        log_likelihood=float(fitted.model.log_likelihood(cells, fit.parameters)[0]),
        n_votes=matrix.n_votes,
        n_iterations=fit.n_iterations,
        method=fitted.method,
        notes=fitted.notes,
        fitted=fitted,
    )
