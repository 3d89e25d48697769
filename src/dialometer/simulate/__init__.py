"""Raters with known truth that walk through a study by the same path as people: for dry runs, power and tests."""
