"""Differences, relations and their size: mixed models, factorial designs, permutation and rank tests, equivalence."""
