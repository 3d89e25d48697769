"""Counting: what is there, which slots are taken, and what came since the last look."""
