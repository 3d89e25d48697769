"""Agreement of raters on categories: kappa, alpha, plain agreement, and models of labels."""
