"""Rated dialogues: reading and cleaning them, pairs, splits, and how well scores order pairs."""
