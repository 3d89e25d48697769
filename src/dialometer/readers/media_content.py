"""Whether a media file is what its name says, by its first bytes, and whether raters can load it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from dialometer.folder_files import MIB
from dialometer.model.dialogue import MediaKind

MAX_BYTES: dict[MediaKind, int] = {"image": 20 * MIB, "audio": 200 * MIB, "video": 1024 * MIB}
"""More than this no rater waits for."""

_ISO_MEDIA = frozenset({".mp4", ".m4v", ".m4a", ".avif"})
_BEGINNINGS: dict[str, tuple[bytes, ...]] = {
    ".png": (b"\x89PNG\r\n\x1a\n",),
    ".jpg": (b"\xff\xd8\xff",),
    ".jpeg": (b"\xff\xd8\xff",),
    ".gif": (b"GIF87a", b"GIF89a"),
    ".webp": (b"RIFF",),
    ".wav": (b"RIFF", b"RF64"),
    ".webm": (b"\x1aE\xdf\xa3",),
    ".ogv": (b"OggS",),
    ".ogg": (b"OggS",),
    ".oga": (b"OggS",),
    ".opus": (b"OggS",),
    ".flac": (b"fLaC", b"ID3"),
    ".mp3": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xfa", b"\xff\xe3"),
}
_RIFF_KINDS = {".webp": b"WEBP", ".wav": b"WAVE"}


def content_fault(file: Path, kind: MediaKind) -> tuple[str, str] | None:
    """What is wrong with a file that should be an image, sound or video, and the remedy; None where it looks right."""
    size = file.stat().st_size
    if size > MAX_BYTES[kind]:
        return f"'{file.name}' has {size / MIB:.0f} MiB", f"make it smaller than {MAX_BYTES[kind] // MIB} MiB"
    with file.open("rb") as stream:
        head = stream.read(16)
        if file.suffix.lower() == ".png":
            stream.seek(max(0, size - 32))
            if b"IEND" not in stream.read(32) and head.startswith(_BEGINNINGS[".png"]):
                return f"'{file.name}' is cut off: its end is missing", "copy the file again"
    ending = PurePosixPath(file.name).suffix.lower()
    if not head:
        return f"'{file.name}' is empty", "copy the file again"
    if not _begins_right(head, ending):
        return (
            f"'{file.name}' is not a valid {kind} of the kind {ending}",
            "save it again in that format, or correct its ending",
        )
    return None


def _begins_right(head: bytes, ending: str) -> bool:
    if ending in _ISO_MEDIA:
        return head[4:8] == b"ftyp" and (ending != ".avif" or head[8:12] in (b"avif", b"avis", b"mif1"))
    if not head.startswith(_BEGINNINGS[ending]):
        return False
    return ending not in _RIFF_KINDS or head[8:12] == _RIFF_KINDS[ending]
