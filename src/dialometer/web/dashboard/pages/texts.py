"""What raters wrote in their own words, with search."""

from __future__ import annotations

from starlette.responses import Response

from dialometer.model.study import Study
from dialometer.storage.table import rater_name
from dialometer.web.dashboard.dashboard import Desk, Visit, page
from dialometer.web.dashboard.running_studies import Running
from dialometer.web.dashboard.table import Grid, GridColumn

_COLUMNS = (
    GridColumn("rater", "Rater"),
    GridColumn("question", "Question", is_facet=True),
    GridColumn("item", "Item"),
    GridColumn("text", "Text"),
    GridColumn("written", "When", "time"),
)


def written_questions(study: Study) -> dict[str, str]:
    """Questions of the questionnaires that can be answered in own words, with their texts."""
    spec = study.spec
    asked = [*spec.screening, *spec.pre_questionnaire, *spec.post_questionnaire]
    return {q.name: q.text for q in asked if _is_free(study, q.scale)}


def _is_free(study: Study, scale: str) -> bool:
    declared = study.spec.scales[scale]
    return declared.type == "text" or bool(getattr(declared, "allow_other", False))


@page("/studies/{study}/texts", role="viewer", of_running=True)
def texts(desk: Desk, visit: Visit) -> Response:
    """Every free text; the search looks at all of them."""
    running = desk.of(visit)
    grid = desk.kept(running, "texts", lambda: _grid(running, visit.root))
    view = grid.view(visit.query)
    if visit.query.get("format") == "csv":
        return view.csv()
    return desk.show_study("texts.html", visit, grid=view, tab="texts")


def _grid(running: Running, root: str) -> Grid:
    ordinals = {mark.id: mark.ordinal for mark in running.store.session_marks()}
    questions = written_questions(running.study)
    found = [
        (a.session_id, a.question, "", a.value, a.answered_at_ms) for a in running.store.answers_to(list(questions))
    ]
    found += [
        (j.session_id, j.criterion, j.item_id, j.value, j.answered_at_ms) for j in running.store.written_judgments()
    ]
    rows = [
        {
            "rater": rater_name(ordinals[session_id]),
            "href": f"{root}/desk/studies/{running.name}/raters/{ordinals[session_id]}",
            "question": question,
            "item": item,
            "text": value,
            "written": at_ms,
        }
        for session_id, question, item, value, at_ms in found
        if session_id in ordinals and isinstance(value, str) and value.strip()
    ]
    return Grid(f"{running.name}-texts", _COLUMNS, rows, start="-written")
