"""One file per revision. A revision that has been released is never edited."""
