"""Data out and in: a study's tables as files that other programs read, and judgments that were collected elsewhere."""
