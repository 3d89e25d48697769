"""Answers of several parts beside their number: the points of checklists, and marks in texts."""
