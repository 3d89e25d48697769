"""Whole steps of an analysis in one call each, for notebooks and scripts; ``import dialometer as dm`` gives them their names."""
