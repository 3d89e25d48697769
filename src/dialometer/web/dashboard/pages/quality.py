"""The quality rules: what each does, which raters it flagged, and how many passed each gold item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from dialometer.model.quality import RULE_NUMBER, Finding, rule_number
from dialometer.storage.sessions import SessionMark
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.pages.after.results import ON_RULES, tables_of
from dialometer.web.dashboard.pages.studies import numbers_of
from dialometer.web.dashboard.records import analysis_status, gold_results, rater_names, so_far
from dialometer.web.dashboard.running_studies import RunningStudy
from dialometer.web.dashboard.table import Grid, GridColumn
from dialometer.web.dashboard.translating import translated, translated_count

ACTIONS = {"flag": "only flags", "exclude": "excludes from the analysis", "screen_out": "screens out at once"}
WHEN = {"arrival": "as a rater arrives", "live": "after every gold item or check", "end": "when a session ends"}
_COLUMNS = (
    GridColumn("rater", "Rater"),
    GridColumn("rule", "Rule", is_facet=True),
    GridColumn("action", "What followed", is_facet=True),
    GridColumn("reason", "Why"),
    GridColumn("found", "When", "time"),
    GridColumn("now", "Analysis", is_facet=True),
)


@page("/studies/{study}/quality", role="viewer", of_running=True)
def quality(dashboard: Dashboard, request: PageRequest) -> Response:
    """Rules with their findings, and the results with and without each as of the last look."""
    running = request.running
    numbers = numbers_of(dashboard, running, request.at_ms, request.group)
    own = {mark.id: mark for mark in numbers.marks}
    table = dashboard.cached(running, ("findings", numbers.group), lambda: _grid(running, request.root, own))
    content: dict[str, Any] = {"tab": "quality", "effects": [], "status": None}
    content["status"] = dashboard.reports.peek(running, dashboard.report_options(running, request.group))
    content["rules"] = dashboard.cached(running, ("rules", numbers.group), lambda: _rules(running, own))
    content["n_left"] = numbers.counts.left
    content["gold"] = dashboard.cached(running, ("gold", numbers.group), lambda: _gold(running, set(own)))
    newest = content["status"].newest
    if newest is not None:
        from dialometer.report.written import write_table  # noqa: PLC0415 - brings the drawing program along

        content["effects"] = [section for section in newest.report.sections if section.name in ON_RULES]
        content |= {"write_table": write_table, "tables_of": tables_of}
    return dashboard.show_table("quality.html", request, table, **content)


@page("/studies/{study}/quality/left", role="editor", method="POST", of_running=True)
def apply_rules_to_left_sessions(dashboard: Dashboard, request: PageRequest) -> Response:
    """Applies the rules that act at the end of a session to raters who left before it."""
    running = request.running
    store = running.store
    known: dict[str, list[Finding]] = {}
    for logged in store.records.findings():
        known.setdefault(logged.session_id, []).append(logged.finding)
    n_found = n_left = 0
    for session in store.sessions.all(state="stale"):
        n_left += 1
        findings = so_far(running.study, session, store.records.of_session(session.id), known.get(session.id, []))
        if findings:
            store.exclusions.add_findings(session.id, findings, request.at_ms)
            n_found += 1
    dashboard.note(request, "applied the rules to raters who left", f"{n_found} of {n_left}")
    dashboard.cache.clear()
    return dashboard.redirect(
        f"/studies/{running.name}/quality",
        request,
        translated("The rules flagged {1} of {2}.", n_found, translated_count(n_left, "rater")),
    )


def _rules(running: RunningStudy, marks: Mapping[str, SessionMark]) -> list[dict[str, Any]]:
    """Each rule in words, with how many of these raters it flagged."""
    rules = running.study.spec.quality
    sessions: dict[tuple[str, int | None], set[str]] = {}
    for logged in running.store.records.findings():
        if logged.session_id in marks:
            key = (logged.finding.rule, logged.finding.details.get(RULE_NUMBER))
            sessions.setdefault(key, set()).add(logged.session_id)
    return [
        {
            "rule": rule.rule,
            "recognises": rule.in_words(),
            "action": ACTIONS[rule.action],
            "when": WHEN[rule.acts],
            "n": len(
                sessions.get((rule.rule, None), set()) | sessions.get((rule.rule, rule_number(rule, rules)), set())
            ),
        }
        for rule in rules
    ]


def _grid(running: RunningStudy, root: str, marks: Mapping[str, SessionMark]) -> Grid:
    names = rater_names(running)
    rows = [
        {
            "rater": names[logged.session_id],
            "href": f"{root}/dashboard/studies/{running.name}/raters/{marks[logged.session_id].ordinal}",
            "rule": logged.finding.rule.replace("_", " "),
            "action": ACTIONS[logged.finding.action],
            "reason": logged.finding.reason,
            "found": logged.at_ms,
            "now": analysis_status(marks[logged.session_id]),
        }
        for logged in running.store.records.findings()
        if logged.session_id in marks
    ]
    return Grid(f"{running.name}-findings", _COLUMNS, rows, start="-found")


def _gold(running: RunningStudy, sessions: set[str]) -> list[dict[str, Any]]:
    """Each gold item with how many of these raters passed it; a gold item that most fail may itself be wrong."""
    rows = []
    for item_id in sorted(running.study.gold_ids):
        by_rater: dict[str, bool] = {}
        for judgment in running.store.records.judgments_on(item_id):
            if judgment.session_id not in sessions:
                continue
            for result in gold_results(running.study, [judgment]):
                by_rater[judgment.session_id] = by_rater.get(judgment.session_id, True) and bool(result.has_passed)
        n = len(by_rater)
        rows.append(
            {
                "item": item_id,
                "n": n,
                "passed": sum(by_rater.values()),
                "share": sum(by_rater.values()) / n if n else None,
            }
        )
    return rows
