"""Files of dialogues in, :class:`~dialometer.model.dialogue.Dialogue` objects out; one file per format in ``formats/``."""

from dialometer.readers.dialogue_file import DialogueFile, read_dialogues
from dialometer.readers.reader import READERS, Reader
from dialometer.readers.writing import write_dialogues

__all__ = ["READERS", "Reader", "DialogueFile", "read_dialogues", "write_dialogues"]
