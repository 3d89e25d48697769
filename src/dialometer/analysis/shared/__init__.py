"""Parts that several families of analyses use: subgroups of raters, rankings, correlations."""
