"""Keeping what was collected: SQLite's files, copies of a database, the log of acknowledged screens, and checks of it all."""
