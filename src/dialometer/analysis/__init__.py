"""From the one long table to a report: the study's design decides which statistics are used."""

from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options

__all__ = ["ANALYSES", "Family", "Findings", "Options"]
