"""What several families use: declared comparisons and corrections, subgroups of raters, rankings, correlations."""
