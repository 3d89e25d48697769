"""A rater's way through a study: the one path that people, simulated raters and programs all take."""
