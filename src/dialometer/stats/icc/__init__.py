"""Intraclass correlation: every form, for complete designs and for designs with holes."""
