"""The files of the pages: styles, scripts, icons."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

STATIC = Path(__file__).parents[1] / "static"


class Assets(StaticFiles):
    """Serves the files. An address that names its version never changes its content, so browsers may keep it."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        is_versioned = b"v=" in scope.get("query_string", b"")
        response.headers["cache-control"] = "public, max-age=31536000, immutable" if is_versioned else "no-cache"
        return response


@cache
def static_version() -> str:
    """Changes with any of the files."""
    digest = hashlib.sha256()
    for file in sorted(STATIC.iterdir(), key=lambda file: file.name):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:10]
