"""Shares and means of raters who answer more than once."""
