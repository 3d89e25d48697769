"""A study's data out: tables, the data dictionary, folders, archives, training files."""
