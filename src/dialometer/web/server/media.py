"""Images, sounds and videos: only the files that a knowledge base or a study names, with ranges so that players can seek."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from dialometer.folder_files import is_inside
from dialometer.model.media import CONTENT_TYPES, Recording, address_of_file
from dialometer.model.study import Study
from dialometer.readers.study_media import media_files

MEDIA_PATH = "/media"


class MediaFiles:
    """Files by the names that pages use. What is not named is not served, whatever the request says."""

    def __init__(self, folder: Path | None, files: Iterable[str]) -> None:
        self.folder = folder
        self._files = {address_of_file(name): name for name in files} if folder is not None else {}

    def route(self) -> Route:
        """Serves the files; a server without any has nothing there."""
        return Route(f"{MEDIA_PATH}/{{name}}", self._serve, methods=["GET"])

    async def _serve(self, request: Request) -> Response:
        return self.response(request.path_params["name"])

    def response(self, address: str) -> Response:
        """One file by the name a page uses; whole or the range that the request asks for."""
        name = self._files.get(address)
        place = self.folder / name if name is not None and self.folder is not None else None
        if place is None or self.folder is None or not place.is_file() or not is_inside(place, self.folder):
            raise HTTPException(404)
        kind = CONTENT_TYPES[PurePosixPath(place.name).suffix.lower()]
        return FileResponse(place, media_type=kind, headers={"cache-control": "private, max-age=3600"})


def study_media(study: Study) -> MediaFiles:
    """The media files that a study shows."""
    return MediaFiles(study.folder, media_files(study))


def file_source(path: str, root: str) -> str:
    """Where a page finds a media file; the address does not tell what the file is called."""
    return f"{root}{MEDIA_PATH}/{address_of_file(path)}"


def shown_recording(recording: Recording | None, root: str) -> dict[str, object] | None:
    """What a page needs to play a recording."""
    if recording is None:
        return None
    return {
        "is_video": recording.is_video,
        "source": file_source(recording.file, root),
        "captions": file_source(recording.captions, root) if recording.captions else "",
    }
