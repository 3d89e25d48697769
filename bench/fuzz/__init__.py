"""Hostile files for everything that reads a file: each must be read, or refused with a message of ours.

``python -m bench.fuzz`` changes valid files of every kind (``valid_files.py``, ``changes.py``), reads each with what would read it
(``readers_under_test.py``) in processes with a limit on memory and time (``run.py``), and counts.
"""
