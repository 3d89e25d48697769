"""A recorded answer: the file that plays it, and its captions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import PurePosixPath

from dialometer.model.media_types import VIDEO_TYPES


@dataclass(frozen=True, slots=True)
class Recording:
    """Files by their paths inside the folder of the knowledge base or study, written with slashes."""

    file: str
    captions: str = ""

    @property
    def is_video(self) -> bool:
        """Whether there is something to see."""
        return PurePosixPath(self.file).suffix.lower() in VIDEO_TYPES

    @property
    def files(self) -> tuple[str, ...]:
        """All files it needs."""
        return (self.file, self.captions) if self.captions else (self.file,)

    def as_json(self) -> dict[str, str]:
        """As knowledge bases and items write it."""
        return {"media": self.file, **({"captions": self.captions} if self.captions else {})}


def address_of_file(file: str) -> str:
    """The name under which a page asks for a file: it does not tell what the file is called."""
    digest = hashlib.sha256(file.encode()).hexdigest()[:20]
    return f"{digest}{PurePosixPath(file).suffix.lower()}"
