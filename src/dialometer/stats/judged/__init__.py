"""Human raters corrected by judges: few human judgments and many scores of a judge in one estimate."""
