"""Every saved version of a study's files: who saved what and when, what changed, and a way back."""

from __future__ import annotations

from starlette.responses import Response

from dialometer.design.versions import Version, Versions
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.pages.making import changed_lines, content_of, editable_folder
from dialometer.web.dashboard.running_studies import NoStudy
from dialometer.web.dashboard.translating import translated
from dialometer.web.server.requests import small_number

MOST_VERSIONS = 500


@page("/studies/{study}/versions", role="editor")
def versions(dashboard: Dashboard, request: PageRequest) -> Response:
    """The versions, the newest first."""
    kept = Versions(dashboard.studies.folders.folder(request.study)).all()
    return _page(dashboard, request, versions=kept[: -MOST_VERSIONS - 1 : -1], n_versions=len(kept))


@page("/studies/{study}/versions/{number}", role="editor")
def version(dashboard: Dashboard, request: PageRequest) -> Response:
    """What one version changed, and what restoring it would change."""
    folder = dashboard.studies.folders.folder(request.study)
    kept, chosen = _chosen(Versions(folder), request)
    earlier = next((one for one in reversed(kept[: chosen.number - 1]) if one.file == chosen.file), None)
    now = content_of(folder, chosen.file).decode(errors="replace")
    text = _text(Versions(folder), chosen)
    before = _text(Versions(folder), earlier) if earlier else ""
    return _page(
        dashboard,
        request,
        version=chosen,
        is_first=earlier is None,
        changes=changed_lines(before, text),
        back=changed_lines(now, text),
    )


@page("/studies/{study}/versions/{number}/restore", role="editor", method="POST")
def restore(dashboard: Dashboard, request: PageRequest) -> Response:
    """Puts a file back as it was; what it is now stays among the versions."""
    folder = editable_folder(dashboard, request)
    kept = Versions(folder)
    _, chosen = _chosen(kept, request)
    kept.save(
        chosen.file, kept.content(chosen.content) if chosen.content else None, request.account.name, request.at_ms
    )
    dashboard.note(request, "restored a version", f"{chosen.file}, version {chosen.number}")
    said = translated("Restored {1} as it was in version {2}.", chosen.file, chosen.number)
    where = f"/studies/{request.study}/files" + (f"/{chosen.file}" if chosen.content else "")
    return dashboard.redirect(where, request, said)


def _chosen(kept: Versions, request: PageRequest) -> tuple[list[Version], Version]:
    every, number = kept.all(), small_number(request.params["number"]) or 0
    if not 1 <= number <= len(every):
        raise NoStudy("there is no such version", remedy="go back to the list of versions")
    return every, every[number - 1]


def _text(kept: Versions, version: Version) -> str:
    return (kept.content(version.content) or b"").decode("utf-8", "replace")


def _page(dashboard: Dashboard, request: PageRequest, **content: object) -> Response:
    studies = dashboard.studies
    study, _ = studies.checked(request.study)
    may_edit = not studies.folders.is_frozen(request.study) and not studies.folders.is_named(request.study)
    frame = {"study": request.study, "spec": study.spec if study else None, "is_open": studies.is_open(request.study)}
    return dashboard.show("versions.html", request, **frame, may_edit=may_edit, tab="files", **content)
