"""Retrievers, one file each: a new file is a new retriever."""
