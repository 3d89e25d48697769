"""Recordings of answers: only the files that a knowledge base or a study names, with ranges so that players can seek."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from dialometer.model.media_types import CONTENT_TYPES
from dialometer.model.recording import Recording, address_of_file
from dialometer.model.study import Study
from dialometer.readers.recordings import is_inside

MEDIA_PATH = "/media"


class MediaFiles:
    """Files by the names that pages use. What is not named is not served, whatever the request says."""

    def __init__(self, folder: Path | None, recordings: Iterable[Recording]) -> None:
        self.folder = folder
        names = dict.fromkeys(name for recording in recordings for name in recording.files)
        self._files = {address_of_file(name): name for name in names} if folder is not None else {}

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
    """The recordings of a study's candidates."""
    return MediaFiles(study.folder, study.recordings)


def shown_recording(recording: Recording | None, root: str) -> dict[str, object] | None:
    """What a page needs to play a recording."""
    if recording is None:
        return None
    return {
        "is_video": recording.is_video,
        "source": f"{root}{MEDIA_PATH}/{address_of_file(recording.file)}",
        "captions": f"{root}{MEDIA_PATH}/{address_of_file(recording.captions)}" if recording.captions else "",
    }
