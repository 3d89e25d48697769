"""Charts from plain data: each function returns a Vega-Lite specification for ``model.report.Figure``.

Analyses give estimates, counts or shares; colours, labels, facets and the form for a phone are settled here.
"""

from dialometer.report.charts.bars import Bar, Share, bars, stacked_shares
from dialometer.report.charts.dot_interval import Dot, dot_interval
from dialometer.report.charts.forest import forest, ranking_intervals
from dialometer.report.charts.frame import Spec
from dialometer.report.charts.heatmap import HeatCell, heatmap
from dialometer.report.charts.histogram import Bin, bin_values, histogram
from dialometer.report.charts.lines import LinePoint, lines
from dialometer.report.charts.strip import strip

__all__ = [
    "Bar",
    "Bin",
    "Dot",
    "HeatCell",
    "LinePoint",
    "Share",
    "Spec",
    "bars",
    "bin_values",
    "dot_interval",
    "forest",
    "heatmap",
    "histogram",
    "lines",
    "ranking_intervals",
    "stacked_shares",
    "strip",
]
