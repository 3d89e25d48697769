"""Faults under load, and whether anything acknowledged was lost or stored twice: ``make chaos``."""
