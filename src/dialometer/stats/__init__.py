"""Arrays in, Estimate out: each statistic in its own file, checked against another implementation."""
