"""Uncertainty of Bradley-Terry parameters over raters and items, for a hundred votes or a million.

The same variance as :func:`dialometer.stats.clustered.two_way.two_way_variance`: clusters are left out one after the other
by one Newton step, over raters plus over items minus over single meetings of the two, with degrees of freedom from how much
each cluster weighs. A vote touches four parameters at most, so that sums over clusters are counted, not multiplied out.

Texts that are shown in several pairs are what was drawn, not the pairs: votes are then dependent if they have a text in common
(Fafchamps and Gubert 2007; Aronow, Samii and Assenova 2015). Texts are left out one after the other, and what two votes on one
pair have in common, which would count twice, is counted once; the variance is never below that of separate pairs.

Where every item was seen by one rater only, as in arenas with live dialogues, a new rater brings new items: raters are then
the only clusters there are, and their spread holds that of the items.

Checked in ``tests/stats/test_ranking_vote_variance.py`` against ``two_way_variance`` on the full design, and against fits
that leave out one rater or item after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg
from scipy.sparse import csr_array

from dialometer.errors import NotEnoughData
from dialometer.stats.clustered.two_way import LARGEST_LEAVING_OUT, text_and_pair
from dialometer.stats.observations import Floats, Ints, codes
from dialometer.stats.ranking.bradley_terry import BradleyTerry
from dialometer.stats.ranking.paired_newton import PairCells
from dialometer.stats.ranking.votes import FIRST, SECOND, TIE, Votes

_HEAVY = 0.5  # a cluster with more of the information than this may hold all there is on a parameter
_NOTHING = 1e-9
_MOST_WEIGHED = 3e8  # numbers multiplied to weigh clusters contrast by contrast; beyond, clusters weigh by their votes


def variances(contrasts: Floats, covariance: Floats) -> Floats:
    """Of each contrast (contrasts by parameters). Rounding leaves a spread of nothing a hair below nothing; it is cut there."""
    return np.asarray(np.maximum(np.einsum("cp,pq,cq->c", contrasts, covariance, contrasts), 0.0))


@dataclass(frozen=True, eq=False)
class ClusterSpread:
    """One way of clustering: the covariance of the parameters over it, and how much each cluster knows."""

    covariance: Floats
    information: Floats  # clusters × parameters × parameters; empty where clusters weigh by their votes
    sizes: Floats
    pairs: ClusterSpread | None = None
    """Over pairs of clusters, where a vote is in two of them: what is within a pair would count twice."""

    @property
    def n(self) -> int:
        """How many clusters there are."""
        return len(self.sizes)

    def variance(self, contrasts: Floats) -> Floats:
        """Of each contrast (contrasts by parameters)."""
        variance = variances(contrasts, self.covariance)
        if self.pairs is None:
            return variance
        within = self.pairs.variance(contrasts)
        return np.asarray(np.maximum(variance - within, within))

    def effective(self, contrasts: Floats, inverse: Floats) -> Floats:
        """How many equally weighty clusters would weigh as much in each contrast; or pairs of them, where these are fewer."""
        if self.pairs is not None:
            alone = replace(self, pairs=None)
            return np.minimum(alone.effective(contrasts, inverse), self.pairs.effective(contrasts, inverse))
        n, p = len(contrasts), len(inverse)
        if not len(self.information) or n * self.n * p * p > _MOST_WEIGHED:
            return np.full(n, self.sizes.sum() ** 2 / (self.sizes @ self.sizes))
        direction = contrasts @ inverse
        flat = self.information.reshape(self.n, p * p)
        weight = np.einsum("cp,cq->cpq", direction, direction).reshape(n, p * p) @ flat.T
        total, square = weight.sum(axis=1), (weight**2).sum(axis=1)
        return np.asarray(np.divide(total**2, square, out=np.zeros(n), where=square > 0))


@dataclass(frozen=True, eq=False)
class VoteVariance:
    """Uncertainty of all parameters of a fit. ``items`` is None where items are fixed or each belongs to one rater."""

    inverse: Floats
    """Covariance of the parameters if every vote were independent."""
    raters: ClusterSpread
    items: ClusterSpread | None = None
    meetings: ClusterSpread | None = None
    independent: Floats | None = None
    """Covariance of the parameters if every vote were independent, where votes have weights; ``inverse`` by default.

    With weights, the curvature of the likelihood is no variance: votes that weigh little are many, and bring more than that."""

    def contrasts(self, rows: Floats) -> tuple[Floats, Floats]:
        """Standard errors and degrees of freedom of linear combinations of the parameters (combinations by parameters)."""
        of_raters = self.raters.variance(rows)
        df = self.raters.effective(rows, self.inverse) - 1
        if self.items is None or self.meetings is None:
            return np.sqrt(of_raters), df
        of_items = self.items.variance(rows)
        together = of_raters + of_items - self.meetings.variance(rows)
        df = np.minimum(df, self.items.effective(rows, self.inverse) - 1)
        return np.sqrt(np.maximum.reduce([together, of_raters, of_items])), df

    def design_effect(self, rows: Floats) -> Floats:
        """How many times larger the variance of each combination is than the curvature of the likelihood says; never smaller
        than that of independent votes."""
        alone = variances(rows, self.inverse)
        variance = np.maximum(self.contrasts(rows)[0] ** 2, self.alone(rows))
        return np.asarray(np.divide(variance, alone, out=np.ones(len(rows)), where=alone > 0))

    def alone(self, rows: Floats) -> Floats:
        """The variance of each combination if every vote were independent."""
        return variances(rows, self.inverse if self.independent is None else self.independent)


def is_item_per_rater(votes: Votes) -> bool:
    """Whether every item (prompt, text) was seen by one rater only, so that raters and items cannot be told apart."""
    drawn = votes.drawn
    if votes.rater is None or drawn is None or not votes.n:
        return True
    thing, who = drawn.ravel(), np.repeat(votes.rater, 1 if drawn.ndim == 1 else 2)
    rater = np.zeros(int(thing.max()) + 1, dtype=np.intp)
    rater[thing] = who
    return bool((rater[thing] == who).all())


def vote_variance(votes: Votes, fit: BradleyTerry, *, has_fixed_items: bool = False) -> VoteVariance:
    """The uncertainty of a fit's parameters over the raters and items of the votes that it was made from."""
    rater, _ = codes(votes.rater if votes.rater is not None else np.arange(votes.n))
    if int(rater.max(initial=-1)) < 1:
        raise NotEnoughData("one rater", where="Bradley-Terry", remedy="at least two are needed to speak for others")
    pieces = _Pieces.of(votes, fit)
    n = len(fit.fitted.names)
    inverse = fit.fitted.covariance
    # The flat direction (a constant added to all strengths) is filled, as no vote touches it.
    total = linalg.pinvh(inverse)
    total[:n, :n] += float(np.diagonal(total).max()) / n
    of_raters = _left_out(pieces, rater, total, inverse)
    independent = None
    if votes.weight is not None:
        weighed_twice = replace(pieces, information=pieces.information * votes.weight[:, None, None])
        independent = inverse @ weighed_twice.informations(np.zeros(votes.n, dtype=np.int64))[0] @ inverse
    drawn = votes.drawn
    if has_fixed_items or drawn is None or is_item_per_rater(votes):
        return VoteVariance(inverse, of_raters, independent=independent)
    if drawn.ndim == 2:
        return VoteVariance(inverse, of_raters, *_of_texts(pieces, rater, drawn, total, inverse), independent)
    item, levels = codes(drawn)
    meeting, _ = codes(rater * len(levels) + item)
    of_items, of_meetings = _left_out(pieces, item, total, inverse), _summed(pieces, meeting, inverse)
    return VoteVariance(inverse, of_raters, of_items, of_meetings, independent)


def _of_texts(
    pieces: _Pieces, rater: Ints, drawn: Ints, total: Floats, inverse: Floats
) -> tuple[ClusterSpread, ClusterSpread]:
    """Over texts, two of which are in each vote, and over meetings of a rater with a text."""
    text, pair = text_and_pair(drawn)
    both = pieces.twice()
    of_texts = _left_out(both, text, total, inverse)
    meeting, _ = codes(np.tile(rater, 2) * (int(text.max()) + 1) + text)
    on_pair, _ = codes(rater * (int(pair.max()) + 1) + pair)
    of_meetings = _summed(both, meeting, inverse)
    return (
        replace(of_texts, pairs=_left_out(pieces, pair, total, inverse)),
        replace(of_meetings, pairs=_summed(pieces, on_pair, inverse)),
    )


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Each vote's score and information, by the few parameters that it touches (votes by places)."""

    n_parameters: int
    place: Ints  # votes × 2 to 4: numbers of parameters
    score: Floats
    information: Floats  # votes × places × places

    @classmethod
    def of(cls, votes: Votes, fit: BradleyTerry) -> _Pieces:
        model, names = fit.fitted.model, fit.fitted.names
        n = len(names)
        number = np.array([names.index(name) if name in names else -1 for name in votes.systems])
        first, second = number[votes.first], number[votes.second]
        cells = PairCells(n, first, second, *(np.zeros((votes.n, 1)) for _ in range(3)))
        chances = model.outcome_probabilities(cells, fit.fitted.parameters[:, None])
        won, lost, tied = (chance[:, 0] for chance in chances)
        lead = (won - lost) / 2
        side = np.where(votes.outcome == FIRST, 0.5, np.where(votes.outcome == SECOND, -0.5, 0.0)) - lead
        spread = won * lost + (tied * (won + lost) / 4 if model.has_ties else 0.0)
        sign = [(first, 1.0), (second, -1.0)]
        if model.has_position:
            sign.append((np.full(votes.n, n + model.n_extra - 1), 1.0))
        place = [where for where, _ in sign]
        score = [factor * side for _, factor in sign]
        size = len(sign) + int(model.has_ties)
        information = np.empty((votes.n, size, size))
        for j, (_, coefficient) in enumerate(sign):
            for k, (_, other) in enumerate(sign):
                information[:, j, k] = coefficient * other * spread
        if model.has_ties:
            place.append(np.full(votes.n, n))
            score.append((votes.outcome == TIE) - tied)
            for j, (_, coefficient) in enumerate(sign):
                information[:, j, -1] = information[:, -1, j] = -coefficient * tied * lead
            information[:, -1, -1] = tied * (1 - tied)
        scores = np.column_stack(score)
        if votes.weight is not None:
            scores, information = scores * votes.weight[:, None], information * votes.weight[:, None, None]
        return cls(n + model.n_extra, np.column_stack(place), scores, information)

    def twice(self) -> _Pieces:
        """Every vote twice, all once and then all again."""
        twice = (np.concatenate([part, part]) for part in (self.place, self.score, self.information))
        return _Pieces(self.n_parameters, *twice)

    def scores(self, cluster: Ints) -> csr_array:
        """Sums over clusters; clusters by parameters."""
        n = int(cluster.max()) + 1
        row = np.repeat(cluster, self.place.shape[1])
        return csr_array((self.score.ravel(), (row, self.place.ravel())), shape=(n, self.n_parameters))

    def informations(self, cluster: Ints) -> Floats:
        """Sums over clusters; clusters by parameters by parameters."""
        n, p = int(cluster.max()) + 1, self.n_parameters
        sums = np.zeros(n * p * p)
        for j in range(self.place.shape[1]):
            for k in range(self.place.shape[1]):
                cell = (cluster * p + self.place[:, j]) * p + self.place[:, k]
                sums += np.bincount(cell, weights=self.information[:, j, k], minlength=n * p * p)
        return sums.reshape(n, p, p)


def _summed(pieces: _Pieces, cluster: Ints, inverse: Floats) -> ClusterSpread:
    """The plain sandwich: right where clusters are many."""
    sums = pieces.scores(cluster)
    n = sums.shape[0]
    meat = (sums.T @ sums).toarray() * n / max(n - 1, 1)
    sizes = np.bincount(cluster).astype(np.float64)
    return ClusterSpread(inverse @ meat @ inverse, np.empty((0, *inverse.shape)), sizes)


def _left_out(pieces: _Pieces, cluster: Ints, total: Floats, inverse: Floats) -> ClusterSpread:
    """Clusters left out one after the other, by one Newton step."""
    n, p = int(cluster.max()) + 1, pieces.n_parameters
    if n * p * p > LARGEST_LEAVING_OUT:
        return _summed(pieces, cluster, inverse)
    sums, information = pieces.scores(cluster).toarray(), pieces.informations(cluster)
    share = np.einsum("gpq,pq->g", information, inverse)
    is_heavy = share > _HEAVY
    changes = np.empty((n, p))
    if not is_heavy.all():
        rest = total - information[~is_heavy]
        changes[~is_heavy] = np.linalg.solve(rest, sums[~is_heavy][:, :, None])[:, :, 0]
    if is_heavy.any():
        root = linalg.cholesky(total, lower=True)
        changes[is_heavy] = [_without(g, information, sums, root) for g in np.flatnonzero(is_heavy).tolist()]
    scale = (n - 1) / n if n > 1 else 1.0
    return ClusterSpread(scale * changes.T @ changes, information, np.bincount(cluster).astype(np.float64))


def _without(g: int, information: Floats, sums: Floats, root: Floats) -> Floats:
    """The change where a cluster holds much of the information; what it alone knows is left as it was."""
    half = linalg.solve_triangular(root, information[g], lower=True)
    known = linalg.solve_triangular(root, half.T, lower=True)
    value, vector = linalg.eigh((known + known.T) / 2)
    left = 1 - value
    inverse = np.divide(1.0, left, out=np.zeros_like(left), where=left > _NOTHING)
    score = vector @ (inverse * (vector.T @ linalg.solve_triangular(root, sums[g], lower=True)))
    return np.asarray(linalg.solve_triangular(root, score, lower=True, trans="T"))
