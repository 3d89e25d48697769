"""Formats of dialogue files, one file each; a new file here is a new format."""
