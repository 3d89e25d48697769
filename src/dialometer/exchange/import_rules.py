"""The study's quality rules on raters who were imported: gold answers and checks tell as much there as they do here.

Rules about times find nothing, because a file has no visits to screens.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dialometer.model.quality import newly_found
from dialometer.model.session import SessionRecord
from dialometer.model.study import Study
from dialometer.storage.store import Store


@dataclass(frozen=True, slots=True)
class RulesApplied:
    """How many sessions the rules looked at, and what they found."""

    n_sessions: int
    n_flagged: int
    n_excluded: int


def apply_rules(study: Study, store: Store, session_ids: Iterable[str], at_ms: int) -> RulesApplied:
    """Store what the rules find about imported sessions; a rule that excludes takes effect, as it does for raters here."""
    rules = [rule for rule in study.spec.quality if rule.acts != "arrival"]
    n_sessions = n_flagged = n_excluded = 0
    for session_id in session_ids:
        session, record = store.sessions.get(session_id), store.records.of_session(session_id)
        counted = SessionRecord([each for each in record.judgments if not each.is_practice], record.answers, [])
        findings = newly_found(rules, study, session, counted)
        n_sessions += 1
        if findings:
            store.exclusions.add_findings(session_id, findings, at_ms)
            n_flagged += 1
            n_excluded += any(finding.action == "exclude" for finding in findings)
    return RulesApplied(n_sessions, n_flagged, n_excluded)
