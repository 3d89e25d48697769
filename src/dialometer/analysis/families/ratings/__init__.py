"""Numeric ratings: which system is rated higher, do raters agree, and what did between-subject factors change?"""
