"""Files of dialogues in, :class:`~dialometer.model.dialogue.Dialogue` objects out; one file here per format."""

from dialometer.readers.reader import READERS, Reader
from dialometer.readers.reading import Reading, read_dialogues
from dialometer.readers.writing import write_dialogues

__all__ = ["READERS", "Reader", "Reading", "read_dialogues", "write_dialogues"]
