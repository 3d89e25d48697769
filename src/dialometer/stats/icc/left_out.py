"""ICCs of many groups of raters at once, and each of them with every rater and every item left out in turn.

An ICC depends on a handful of sums over raters and items, and leaving one of either out changes these sums in a known way.
So the jackknife over raters and items needs no refitting: a few matrix products give it for thousands of groups of raters,
as a permutation test asks for. Complete tables have the two-way forms, tables with holes the one-way form.

Checked in tests/stats/test_icc_raters.py against :func:`dialometer.stats.icc.icc.icc` and
:func:`dialometer.stats.icc.one_way.icc_one_way` of the tables with the rater or item deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dialometer.stats.icc.forms import IccModel
from dialometer.stats.observations import Floats, Ints, as_judgments, codes

_MOST_DENSE = 2_000_000  # cells of a table with holes that is kept as a plain array


@dataclass(frozen=True)
class LeftOut:
    """Single-rating ICCs of groups of raters (one row each): as they are, without each rater, without each item."""

    values: Floats
    without_raters: Floats  # groups × raters; only those entries count whose rater belongs to the group
    without_items: Floats  # groups × items (or clusters of items)
    is_member: Floats  # groups × raters, 1 or 0

    @property
    def n_raters(self) -> Floats:
        """Raters of each group."""
        return np.asarray(self.is_member.sum(axis=1))

    @property
    def n_items(self) -> int:
        """Items (or clusters of items)."""
        return int(self.without_items.shape[1])

    def rater_variance(self) -> Floats:
        """Variance of each group's ICC over raters."""
        k = self.n_raters
        kept = np.where(self.is_member > 0, self.without_raters, 0.0)
        mean = kept.sum(axis=1) / k
        squares = (np.where(self.is_member > 0, kept - mean[:, None], 0.0) ** 2).sum(axis=1)
        return np.asarray((k - 1) / k * squares)


def item_variance(without_items: Floats) -> Floats:
    """Variance over items of any statistic that was computed without each of them; one row per group."""
    n = without_items.shape[1]
    return np.asarray((n - 1) / n * ((without_items - without_items.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))


class CompleteTable:
    """A complete table of things rated by raters; ``clusters`` says which rows are left out together."""

    def __init__(self, matrix: Floats, clusters: ArrayLike | None = None) -> None:
        self.n, self.n_raters = matrix.shape
        x = matrix - matrix.mean()
        self.mean = x.mean(axis=0)
        self.rows = x - self.mean
        self.products = self.rows.T @ self.rows
        self.squares = np.diag(self.products)
        self.member = _membership(clusters, self.n)
        self.sums = _by_cluster(self.rows.T, self.member).T
        self.own_squares = _by_cluster((self.rows**2).T, self.member).T
        self.sizes = _by_cluster(np.ones((1, self.n)), self.member)[0]

    def left_out(self, groups: Floats, model: IccModel) -> LeftOut:
        """The ICC of every group (groups × raters, 1 for members) with each rater and each cluster of rows left out."""
        k = groups.sum(axis=1)
        with_others = groups @ self.products
        trace, total = groups @ self.squares, (groups * with_others).sum(axis=1)
        level, square = groups @ self.mean, groups @ self.mean**2
        values = _two_way(trace, total, level, square, k, np.float64(self.n), model)
        with np.errstate(divide="ignore", invalid="ignore"):
            without_raters = _two_way(
                trace[:, None] - self.squares,
                total[:, None] - 2 * with_others + self.squares,
                level[:, None] - self.mean,
                square[:, None] - self.mean**2,
                k[:, None] - 1,
                np.float64(self.n),
                model,
            )
            n = self.n - self.sizes
            sums, sum_squares = groups @ self.sums.T, groups @ (self.sums**2).T
            rows = (groups @ self.rows.T) ** 2
            without_items = _two_way(
                trace[:, None] - groups @ self.own_squares.T - sum_squares / n,
                total[:, None] - _by_cluster(rows, self.member) - sums**2 / n,
                level[:, None] - sums / n,
                square[:, None] - 2 * (groups @ (self.mean * self.sums).T) / n + sum_squares / n**2,
                k[:, None],
                n,
                model,
            )
        return LeftOut(values, without_raters, without_items, groups)


def _two_way(
    trace: Floats, total: Floats, level: Floats, square: Floats, k: Floats, n: Floats | np.float64, model: IccModel
) -> Floats:
    """The ICC of one rating from sums over raters: of their variances, of all products of two, of means and their squares."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if model == "one_way":
            between = total / k**2 / (n - 1)
            within = ((trace - total / k) + n * (square - level**2 / k)) / (n * (k - 1))
            item = between - within / k
            return np.asarray(item / (item + within))
        variance = trace / (n - 1) / k
        covariance = (total - trace) / (n - 1) / (k * (k - 1))
        if model == "consistency":
            return np.asarray(covariance / variance)
        of_raters = (square - level**2 / k) / (k - 1) - (variance - covariance) / n
        return np.asarray(covariance / (variance + of_raters))


class HoledTable:
    """Judgments in rows, at most one of a rater on a thing: the one-way ICC, in which raters' levels count as error."""

    def __init__(
        self, values: ArrayLike, items: ArrayLike, raters: ArrayLike, clusters: ArrayLike | None = None
    ) -> None:
        y, (item, rater), (item_ids, rater_ids) = as_judgments(values, items, raters)
        of_item = None
        if clusters is not None:
            of_item = np.empty(len(item_ids), dtype=np.int64)
            of_item[item] = codes(np.asarray(clusters)[~np.isnan(np.asarray(values, dtype=np.float64))])[0]
        self._lay_out(y, item, rater, (len(item_ids), len(rater_ids)), of_item)

    @classmethod
    def of_matrix(cls, matrix: Floats, clusters: ArrayLike | None = None) -> HoledTable:
        """Things by raters with ``nan`` in the holes; a rater or thing without judgments keeps its place."""
        item, rater = np.nonzero(~np.isnan(matrix))
        table = cls.__new__(cls)
        table._lay_out(matrix[item, rater], item, rater, (matrix.shape[0], matrix.shape[1]), clusters)
        return table

    def _lay_out(self, y: Floats, item: Ints, rater: Ints, shape: tuple[int, int], clusters: ArrayLike | None) -> None:
        self.n, self.n_raters = shape
        y = y - y.mean()
        self.given, self.values, self.squares = (
            _table(part, item, rater, (self.n, self.n_raters)) for part in (np.ones(len(y)), y, y**2)
        )
        self.member = _membership(clusters, self.n)

    def left_out(self, groups: Floats, model: IccModel = "one_way") -> LeftOut:
        """The ICC of every group (groups × raters, 1 for members) with each rater and each cluster of rows left out."""
        count, total = groups @ self.given.T, groups @ self.values.T
        square = groups @ self.squares.T
        explained = np.divide(total**2, count, out=np.zeros_like(count), where=count > 0)
        per_item = (square, explained, count, total, (count > 0).astype(np.float64), count**2)
        sums = [part.sum(axis=1) for part in per_item]
        without_items = [
            whole[:, None] - _by_cluster(part, self.member) for whole, part in zip(sums, per_item, strict=True)
        ]
        rest = np.divide(1.0, count - 1, out=np.zeros_like(count), where=count > 1)
        of_raters = (
            np.broadcast_to(self.squares.sum(axis=0), groups.shape),
            (explained - total**2 * rest) @ self.given + 2 * (total * rest) @ self.values - rest @ self.squares,
            np.broadcast_to(self.given.sum(axis=0), groups.shape),
            np.broadcast_to(self.values.sum(axis=0), groups.shape),
            (count == 1).astype(np.float64) @ self.given,
            (2 * count - 1) @ self.given,
        )
        without_raters = [whole[:, None] - part for whole, part in zip(sums, of_raters, strict=True)]
        return LeftOut(_one_way(*sums), _one_way(*without_raters), _one_way(*without_items), groups)


def _one_way(
    square: Floats, explained: Floats, count: Floats, total: Floats, n_items: Floats, squared_counts: Floats
) -> Floats:
    """ICC(1,1) of unbalanced data from sums over items (Donner 1986)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = (square - explained) / (count - n_items)
        between = explained - total**2 / count
        item = (between - (n_items - 1) * noise) / (count - squared_counts / count)
        return np.asarray(item / (item + noise))


def _table(values: Floats, item: Ints, rater: Ints, shape: tuple[int, int]) -> Any:
    """Things by raters with 0 in the holes; sparse where it is large."""
    table = sparse.coo_array((values, (item, rater)), shape=shape)
    return table.toarray() if shape[0] * shape[1] <= _MOST_DENSE else table.tocsr()


def _membership(clusters: ArrayLike | None, n: int) -> Any:
    """Clusters × rows, 1 where a row belongs to the cluster; nothing where each row is its own."""
    if clusters is None:
        return None
    code, levels = codes(clusters)
    return sparse.csr_array((np.ones(n), (code, np.arange(n))), shape=(len(levels), n))


def _by_cluster(rows: Floats, member: Any) -> Floats:
    """Sums over the rows of each cluster; the last axis runs over rows."""
    return rows if member is None else np.asarray(rows @ member.T)
