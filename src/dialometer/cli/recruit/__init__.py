"""Where raters come from."""
