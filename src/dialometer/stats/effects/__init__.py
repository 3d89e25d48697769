"""Differences and their size: mixed models, factorial designs, permutation tests, equivalence."""
