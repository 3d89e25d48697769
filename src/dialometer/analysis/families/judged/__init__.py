"""Human raters corrected by judges: the answer of studies that declare it."""
