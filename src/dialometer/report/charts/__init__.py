"""Charts from plain data: each function returns a Vega-Lite specification for ``model.report.Figure``.

Analyses give estimates, counts or shares; colours, labels, facets and the form for a phone are settled here.
"""

from dialometer.report.charts.bars import Bar, Share, bars, stacked_shares
from dialometer.report.charts.distributions import Bin, bin_values, histogram, strip
from dialometer.report.charts.frame import COEFFICIENT, Spec
from dialometer.report.charts.heatmap import HeatCell, heatmap
from dialometer.report.charts.intervals import Dot, dot_interval, forest, ranking_intervals
from dialometer.report.charts.lines import LinePoint, lines
from dialometer.report.charts.word_tree import WordBranch, word_tree

__all__ = [
    "COEFFICIENT",
    "Bar",
    "Bin",
    "Dot",
    "HeatCell",
    "LinePoint",
    "Share",
    "Spec",
    "WordBranch",
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
    "word_tree",
]
