"""Backups of a study: one file with its database and its files, checked when it is made and when it is restored."""
