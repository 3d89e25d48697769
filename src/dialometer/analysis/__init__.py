"""From the one long table to a report: the study's design decides which statistics are used."""
