"""Looking at data while they come in: tests and intervals that hold at every look."""
