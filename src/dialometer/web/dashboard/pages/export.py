"""Everything a study has collected, as one file to keep; and the study itself."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

from starlette.responses import Response

from dialometer.web.dashboard.dashboard import Desk, Visit, page
from dialometer.web.dashboard.running_studies import study_files

# The same content gives the same bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@page("/studies/{study}/export.zip", role="viewer", of_running=True)
def export(desk: Desk, visit: Visit) -> Response:
    """Judgments, answers, sessions, screens and findings under pseudonyms, as ``dialometer export`` writes them."""
    from dialometer.exchange.export import export_study  # noqa: PLC0415 - polars is slow to load, and rarely needed

    running = desk.of(visit)
    with tempfile.TemporaryDirectory(prefix="dialometer-export-") as folder:
        out = Path(folder) / "export"
        export_study(running.study, running.store, out)
        content = zipped(sorted(out.iterdir()), f"{running.name}-export")
    desk.note(visit, "exported", running.name)
    return _download(content, f"{running.name}-export.zip")


@page("/studies/{study}/study.zip", role="viewer")
def download(desk: Desk, visit: Visit) -> Response:
    """The study's folder: its file, items, texts and lock; never what was collected."""
    folder = desk.held.shelf.folder(visit.study)
    return _download(zipped(study_files(folder), visit.study), f"{visit.study}.zip")


def zipped(files: list[Path], folder: str) -> bytes:
    """Files in one folder of an archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            entry = zipfile.ZipInfo(f"{folder}/{path.name}", _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    return out.getvalue()


def _download(content: bytes, name: str) -> Response:
    return Response(
        content, media_type="application/zip", headers={"content-disposition": f'attachment; filename="{name}"'}
    )
