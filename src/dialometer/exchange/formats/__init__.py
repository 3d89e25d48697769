"""Forms of files with judgments, one file each; a new file here is a new form."""

from dialometer.exchange.import_format import FORMATS, ImportFormat, ImportOptions, Intake

__all__ = ["FORMATS", "ImportFormat", "Intake", "ImportOptions"]
