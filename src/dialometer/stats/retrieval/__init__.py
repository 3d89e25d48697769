"""Retrieval metrics."""
