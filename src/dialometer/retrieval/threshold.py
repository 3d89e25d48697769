"""When an avatar should rather say "ask me something else": confidence, and what a threshold on it costs and gains.

Confidence is the probability that the first answer is right, from its score and its lead over the second, by logistic regression
on questions whose answers are known (checked against ``sklearn.linear_model.LogisticRegression(C=0.5)`` on standardised
features). For every threshold the curve tells how many questions are answered and how many of those rightly, by confidences that
the question itself had no share in; the chosen threshold has the highest worth, where a right answer gains 1, a wrong one costs
``cost_of_wrong`` and declining costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import NotEnoughData
from dialometer.retrieval.retriever import NO_ANSWER, RankedAnswers

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]

PENALTY = 1.0
FEWEST = 20
N_FOLDS = 5
SHARE_ANSWERED = 0.8
"""The share of questions at which retrievers are compared when they may decline the rest."""


@dataclass(frozen=True)
class ThresholdPoint:
    """One threshold: share of questions answered, share of those answered rightly, and the worth per question."""

    threshold: float
    answered: float
    right_of_answered: float
    worth: float


@dataclass(frozen=True)
class Calibration:
    """How a score becomes a probability, and from which probability on the avatar answers."""

    intercept: float
    by_score: float
    by_lead: float
    threshold: float
    cost_of_wrong: float
    n_questions: int
    curve: tuple[ThresholdPoint, ...] = ()
    right_of_surest: float | None = None
    """Of the four fifths of the questions that it is surest of, the share answered correctly; None in older files."""

    def confidence(self, ranking: RankedAnswers) -> Floats:
        """Probability that each first answer is right; 0 where nothing was retrieved."""
        score, lead = _features(ranking)
        log_odds = self.intercept + self.by_score * score + self.by_lead * lead
        chance = 1 / (1 + np.exp(-np.clip(log_odds, -50, 50)))
        return np.where(ranking.answers[:, 0] == NO_ANSWER, 0.0, chance)

    def as_json(self) -> dict[str, Any]:
        """For the retriever's folder."""
        return {
            "intercept": self.intercept,
            "by_score": self.by_score,
            "by_lead": self.by_lead,
            "threshold": self.threshold,
            "cost_of_wrong": self.cost_of_wrong,
            "n_questions": self.n_questions,
            "right_of_surest": self.right_of_surest,
            "curve": [
                [p.threshold, p.answered, None if np.isnan(p.right_of_answered) else p.right_of_answered, p.worth]
                for p in self.curve
            ],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Calibration:
        """As :meth:`as_json` wrote it."""
        points = tuple(ThresholdPoint(*(float("nan") if v is None else v for v in values)) for values in data["curve"])
        return cls(**{**data, "curve": points})


def _features(ranking: RankedAnswers) -> tuple[Floats, Floats]:
    scores = np.nan_to_num(ranking.scores.astype(np.float64), nan=0.0)
    score = scores[:, 0]
    lead = score - scores[:, 1] if scores.shape[1] > 1 else np.zeros(len(score))
    return score, lead


def calibrate(ranking: RankedAnswers, is_right: Marks, *, cost_of_wrong: float = 1.0, seed: int = 0) -> Calibration:
    """From the first two answers to questions that the retriever has not learned from, and whether the first was right."""
    if len(is_right) < FEWEST or is_right.all() or not is_right.any():
        raise NotEnoughData(
            f"{int(is_right.sum())} right first answers of {len(is_right)}: too little to estimate confidence",
            remedy=f"give at least {FEWEST} questions with marked answers, some answered correctly and some not",
        )
    whole = _fit(ranking, is_right, cost_of_wrong)
    confidence = _unseen(ranking, is_right, cost_of_wrong, seed)
    curve = trade_off(confidence, is_right, cost_of_wrong=cost_of_wrong)
    best = max(curve, key=lambda point: (point.worth, point.answered))
    surest = right_of_surest(confidence, is_right)
    return replace(whole, threshold=best.threshold, curve=curve, right_of_surest=surest)


def _fit(ranking: RankedAnswers, is_right: Marks, cost_of_wrong: float) -> Calibration:
    return Calibration(*_logistic(ranking, is_right), 0.0, cost_of_wrong, len(is_right))


def _unseen(ranking: RankedAnswers, is_right: Marks, cost_of_wrong: float, seed: int) -> Floats:
    """Confidence in each first answer from a calibration on the other folds, as it will be met in use."""
    fold = np.random.default_rng(seed).permutation(len(is_right)) % N_FOLDS
    out = np.empty(len(is_right))
    for number in range(N_FOLDS):
        rest, own = fold != number, fold == number
        others = RankedAnswers(ranking.answers[rest], ranking.scores[rest])
        asked = RankedAnswers(ranking.answers[own], ranking.scores[own])
        out[own] = _fit(others, is_right[rest], cost_of_wrong).confidence(asked)
    return out


def _logistic(ranking: RankedAnswers, is_right: Marks) -> tuple[float, float, float]:
    from scipy.optimize import minimize  # noqa: PLC0415 - heavy

    columns = np.stack(_features(ranking), axis=1)
    centre, spread = columns.mean(axis=0), columns.std(axis=0)
    spread[spread == 0] = 1.0
    scaled = np.column_stack([np.ones(len(columns)), (columns - centre) / spread])
    sign = np.where(is_right, 1.0, -1.0)

    def cost(weights: Floats) -> tuple[float, Floats]:
        margin = sign * (scaled @ weights)
        slope = -(scaled.T @ (sign / (1 + np.exp(margin))))
        held = np.array([0.0, weights[1], weights[2]])
        return float(np.logaddexp(0, -margin).sum() + PENALTY * held @ held), slope + 2 * PENALTY * held

    # A higher score or a larger lead never lowers confidence, however few questions it was learned on.
    upward = [(None, None), (0.0, None), (0.0, None)]
    solution = minimize(cost, np.zeros(3), jac=True, method="L-BFGS-B", bounds=upward).x
    slopes = solution[1:] / spread
    return float(solution[0] - slopes @ centre), float(slopes[0]), float(slopes[1])


def trade_off(
    confidence: Floats, is_right: Marks, *, cost_of_wrong: float = 1.0, n_points: int = 41
) -> tuple[ThresholdPoint, ...]:
    """The curve over thresholds from 0 (answer everything) to 1."""
    points = []
    for threshold in np.linspace(0, 1, n_points):
        answers = confidence >= threshold
        n_answered, n_right = int(answers.sum()), int((answers & is_right).sum())
        precision = n_right / n_answered if n_answered else float("nan")
        worth = (n_right - cost_of_wrong * (n_answered - n_right)) / len(is_right)
        points.append(ThresholdPoint(round(float(threshold), 4), n_answered / len(is_right), precision, worth))
    return tuple(points)


def right_of_surest(confidence: Floats, is_right: Marks) -> float:
    """Share of right answers when only the questions it is surest of are answered, four fifths of all."""
    surest = np.argsort(-confidence, kind="stable")[: round(SHARE_ANSWERED * len(is_right))]
    return float(is_right[surest].mean())


# The curve as a drawing.

FEWEST_ANSWERED = 5
"""Answered questions below which a share of them is not drawn: it would jump up and down by chance."""
ANSWERED, RIGHT = "Questions answered", "Of those answered correctly"


def trade_off_spec(calibration: Calibration) -> dict[str, object]:
    """A Vega-Lite chart for wide and narrow screens, the chosen threshold marked."""
    from dialometer.report.charts import LinePoint, lines  # noqa: PLC0415 - drawing is heavy

    points = [LinePoint(point.threshold, point.answered, group=ANSWERED) for point in calibration.curve]
    points += [
        LinePoint(point.threshold, point.right_of_answered, group=RIGHT)
        for point in calibration.curve
        if point.answered * calibration.n_questions >= FEWEST_ANSWERED
    ]
    return lines(
        points,
        x_title="Answers at this confidence or more",
        y_title="Share",
        is_percent=True,
        y_domain=(0.0, 1.0),
        mark_x=calibration.threshold,
    )


def trade_off_svg(calibration: Calibration) -> str:
    """The drawing that stands by itself, for a file."""
    from dialometer.report.drawing import draw_svg  # noqa: PLC0415 - drawing is heavy

    return draw_svg(trade_off_spec(calibration), where="trade-off curve")


def trade_off_inline(calibration: Calibration) -> tuple[str, str]:
    """The drawing for inside a page, for wide and for narrow screens."""
    from dialometer.report.drawing import draw_svg, for_page  # noqa: PLC0415 - drawing is heavy
    from dialometer.report.theme import narrow_form  # noqa: PLC0415

    spec = trade_off_spec(calibration)
    chosen = next(point for point in calibration.curve if point.threshold == calibration.threshold)
    alt = (
        f"Share of questions answered and share of those answered correctly, by threshold. At {calibration.threshold:.2f}: "
        f"{100 * chosen.answered:.0f}% answered, {100 * chosen.right_of_answered:.0f}% of those correctly."
    )
    wide = for_page(draw_svg(spec, where="trade-off curve"), prefix="curve-wide-", alt=alt)
    narrow = for_page(draw_svg(narrow_form(spec) or spec, where="trade-off curve"), prefix="curve-narrow-", alt=alt)
    return wide, narrow
