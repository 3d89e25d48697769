"""Kinds of media files that browsers show and play, by the ending of the file's name."""

from __future__ import annotations

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
