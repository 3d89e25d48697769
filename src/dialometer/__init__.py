"""dialometer: which conversational agent is better, by how much, and can the answer be trusted?"""

from dialometer._version import __version__

__all__ = ["__version__"]
