"""Benches: each compares values with a peer first, then times both in the same run."""
