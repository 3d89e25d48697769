"""Formats of files with judgments, and of other annotation tools, one file each; a new file here is a new format."""

from dialometer.exchange.import_format import FORMATS, ImportFormat, ImportOptions, Intake

__all__ = ["FORMATS", "ImportFormat", "Intake", "ImportOptions"]
