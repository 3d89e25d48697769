"""Pooled candidates of retrievers, judged one at a time."""
