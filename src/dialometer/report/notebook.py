"""Reports, tables, figures and estimates that show themselves in notebooks.

``enable()`` gives the model's classes the method that Jupyter, Colab, marimo and others look for. The model itself
knows nothing of HTML, so whoever wants the display switches it on; ``%load_ext dialometer.report.notebook`` does too.
"""

from __future__ import annotations

import math
from html import escape

from dialometer.model.estimate import Estimate
from dialometer.model.report import Figure, Report, Table, Turns
from dialometer.report.formats.html_page import html_page, html_part
from dialometer.report.numbers import digits_of, write_confidence, write_ends, write_p
from dialometer.report.theme import fragment_style

_HEIGHT_PX = 720


def enable() -> None:
    """Let reports and their parts show themselves as HTML from now on."""
    setattr(Report, "_repr_html_", report_html)  # noqa: B010 (the classes are frozen for type checkers, not for us)
    for part in (Table, Figure, Turns):
        setattr(part, "_repr_html_", part_html)  # noqa: B010
    setattr(Estimate, "_repr_html_", estimate_html)  # noqa: B010


def load_ipython_extension(_shell: object) -> None:
    """What ``%load_ext`` calls."""
    enable()


def part_html(part: Table | Figure | Turns) -> str:
    """One part with its own style, which reaches no further than the part."""
    return f"<div class='dialometer-part'><style>{fragment_style()}</style>{html_part(part)}</div>"


def report_html(report: Report) -> str:
    """The whole page in a frame of its own, so that its style and the notebook's leave each other alone."""
    page = escape(html_page(report), quote=True)
    return (
        f'<iframe srcdoc="{page}" title="{escape(report.title, quote=True)}" sandbox="" '
        f'style="width:100%;height:{_HEIGHT_PX}px;border:1px solid #8886;border-radius:8px"></iframe>'
    )


def estimate_html(estimate: Estimate) -> str:
    """The number with its interval, and in small letters what it rests on."""
    head = f"{escape(estimate.label)}: " if estimate.label else ""
    if not estimate.is_known:
        return f"<p>{head}<i>not enough data</i><br><small>{escape('; '.join(estimate.notes))}</small></p>"
    value, low, high = write_ends(estimate, digits_of(estimate, 3))
    text = f"<b>{value}</b>"
    if estimate.has_interval:
        text += f" ({write_confidence(estimate.confidence)} confidence interval {low} to {high})"
    if not math.isnan(estimate.p_value):
        text += f", {escape(write_p(estimate.p_value))}"
    small = "; ".join([f"{estimate.method}, n = {estimate.n:,}", *estimate.notes])
    return f"<p>{head}{text}<br><small>{escape(small)}</small></p>"
