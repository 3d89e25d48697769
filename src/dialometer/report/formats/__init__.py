"""Formats of a report, one file each; a new file here is a new format."""
