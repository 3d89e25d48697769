"""The curve of a threshold as a drawing: how many questions are answered, and how many of those rightly."""

from __future__ import annotations

from dialometer.retrieval.threshold import Calibration

FEWEST_ANSWERED = 5
"""Answered questions below which a share of them is not drawn: it would jump up and down by chance."""
ANSWERED, RIGHT = "Questions answered", "Of those answered rightly"


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
        x_title="Answers from this confidence on",
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
        f"Share of questions answered and share of those answered rightly, by threshold. At {calibration.threshold:.2f}: "
        f"{100 * chosen.answered:.0f}% answered, {100 * chosen.right_of_answered:.0f}% of those rightly."
    )
    wide = for_page(draw_svg(spec, where="trade-off curve"), prefix="curve-wide-", alt=alt)
    narrow = for_page(draw_svg(narrow_form(spec) or spec, where="trade-off curve"), prefix="curve-narrow-", alt=alt)
    return wide, narrow
