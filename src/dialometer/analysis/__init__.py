"""From the one long table to a report: the study's design decides which statistics are used."""

from dialometer.analysis.base.family import ANALYSES, Analysis, Findings, Options

__all__ = ["ANALYSES", "Analysis", "Findings", "Options"]
