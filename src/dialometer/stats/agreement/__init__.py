"""Agreement of raters on labels: kappa, alpha, shares of pairs, and models of who knows the right label."""
