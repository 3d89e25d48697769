"""Published and independent numbers beside ours: one file for each data set, found by this folder."""

from dialometer.analysis.reproduce.compared import REPRODUCTIONS, Reproduction, reproduce

__all__ = ["REPRODUCTIONS", "Reproduction", "reproduce"]
