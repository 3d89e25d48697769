"""Checks that need more than one part of a study, by subject; `consistency.py` runs them all."""
