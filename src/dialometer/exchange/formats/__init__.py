"""Forms of files with judgments, one file each; a new file here is a new form."""

from dialometer.exchange.formats.form import FORMATS, Format, Intake, Options

__all__ = ["FORMATS", "Format", "Intake", "Options"]
