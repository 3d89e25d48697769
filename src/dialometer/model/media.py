"""Media: the kinds of files that browsers show and play, and recorded answers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import PurePosixPath

from dialometer.model.dialogue import MediaKind

IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
}
VIDEO_TYPES = {".mp4": "video/mp4", ".m4v": "video/mp4", ".webm": "video/webm", ".ogv": "video/ogg"}
AUDIO_TYPES = {
    ".mp3": "audio/mpeg",
    ".m4a": "audio/mp4",
    ".wav": "audio/wav",
    ".ogg": "audio/ogg",
    ".oga": "audio/ogg",
    ".opus": "audio/ogg",
    ".flac": "audio/flac",
}
CAPTION_TYPES = {".vtt": "text/vtt"}
CONTENT_TYPES = {**IMAGE_TYPES, **VIDEO_TYPES, **AUDIO_TYPES, **CAPTION_TYPES}

MEDIA_TYPES: dict[MediaKind, dict[str, str]] = {"image": IMAGE_TYPES, "audio": AUDIO_TYPES, "video": VIDEO_TYPES}


def media_kind(path: str) -> MediaKind | None:
    """What a file is by its name, or None where browsers do not show it."""
    ending = PurePosixPath(path).suffix.lower()
    return next((kind for kind, known in MEDIA_TYPES.items() if ending in known), None)


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
