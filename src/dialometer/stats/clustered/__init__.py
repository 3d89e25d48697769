"""Shares, means and preferences, for answers that are independent or come in clusters (several of one rater)."""
