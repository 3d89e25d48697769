"""Where raters come from. Each recruiting platform is one file in ``platforms/``."""
