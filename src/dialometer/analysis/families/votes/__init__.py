"""Systems compared with each other: pairwise votes, rankings and best-worst choices."""
