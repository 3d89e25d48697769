"""Media files that a knowledge base or a study names: checked when they are read, and copied along when they move."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath

from dialometer.folder_files import is_file, is_inside
from dialometer.model.media import AUDIO_TYPES, CAPTION_TYPES, VIDEO_TYPES, Recording

Fault = tuple[str, str, str]
"""What is wrong, how to fix it, and the field."""
_PLAYABLE = {**VIDEO_TYPES, **AUDIO_TYPES}


def recording_of(media: str, captions: str, folder: Path | None) -> Recording | Fault | None:
    """The recording of an answer, what is wrong with it, or None where none is named. Without a folder nothing is looked up."""
    media, captions = media.strip(), captions.strip()
    if not media:
        if captions:
            return (
                "captions without a recording",
                "name the recording under 'media', or remove the captions",
                "captions",
            )
        return None
    fault = path_fault(media, "media", _PLAYABLE, folder)
    if fault is None and captions:
        fault = path_fault(captions, "captions", CAPTION_TYPES, folder)
    if fault is None and captions and folder is not None and not _is_vtt(folder / captions):
        fault = (f"'{captions}' does not begin with WEBVTT", "save the captions as WebVTT", "captions")
    return fault or Recording(normal_path(media), normal_path(captions) if captions else "")


def normal_path(name: str) -> str:
    """A path inside a folder, written one way."""
    return str(PurePosixPath(name))


def path_fault(name: str, field: str, known: Iterable[str], folder: Path | None) -> Fault | None:
    """What is wrong with the path of a media file, if anything: outside the folder, of no known kind, missing."""
    path = PurePosixPath(name)
    if "://" in name:
        return f"'{name}' is an address", "copy the file into the folder of this file and name it there", field
    if path.is_absolute() or ".." in path.parts or "\\" in name or PureWindowsPath(name).drive:
        remedy = "write its path inside the folder of this file, with slashes: media/answer.mp4"
        return f"'{name}' lies outside the folder", remedy, field
    if path.suffix.lower() not in known:
        return f"'{name}' is of no kind that browsers play here", f"use one of {', '.join(sorted(known))}", field
    if folder is None:
        return None
    place = folder / path
    if not is_file(place):
        return f"the file '{name}' is missing", f"put it into {folder}, or remove its name", field
    if not is_inside(place, folder):
        return f"'{name}' is a link to a file outside the folder", "copy the file into the folder", field
    return None


def _is_vtt(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(9).removeprefix(b"\xef\xbb\xbf").startswith(b"WEBVTT")


def copy_recordings(recordings: Iterable[Recording], source: Path, target: Path) -> int:
    """Brings the files of recordings along under the same paths and returns how many."""
    return copy_media((name for recording in recordings for name in recording.files), source, target)


def copy_media(files: Iterable[str], source: Path, target: Path) -> int:
    """Brings files along under the same paths and returns how many; on one disk they share their space (hard links)."""
    names = dict.fromkeys(files)
    for name in names:
        place = target / name
        if place.exists() and place.samefile(source / name):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            os.link(source / name, place)
        if not place.exists():
            shutil.copyfile(source / name, place)
    return len(names)
