"""The declared stopping rule at work: a study whose last look says stop is closed, with the reason in its log.

The report says whether the rule stops the study, so the server, the page and ``dialometer report`` cannot differ. Here is only
when to ask for it: once a further look or check of the rule has been reached. Raters under way may finish.
"""

from __future__ import annotations

import threading
import time

from dialometer.model.report import Report
from dialometer.web.dashboard.live_report import LiveReports
from dialometer.web.dashboard.running_studies import RunningStudies, RunningStudy
from dialometer.web.server.logs import log, log_failure

CHECK_S = 10.0
"""How often the numbers of finished raters are looked at."""
RULE = "stopping rule"
"""Who decided, in the log of a study."""


class StoppingWatch:
    """Watches the open studies of this process that declare a stopping rule."""

    def __init__(self, studies: RunningStudies, reports: LiveReports) -> None:
        self.studies = studies
        self.reports = reports
        self._n_checked: dict[str, int] = {}
        self._since_ms: dict[str, int] = {}
        self._is_closing = threading.Event()

    def start(self) -> None:
        """In a thread of its own, until the server ends."""
        threading.Thread(target=self._watch, name="stopping rules", daemon=True).start()

    def close(self) -> None:
        """Ends the watch."""
        self._is_closing.set()

    def _watch(self) -> None:
        while not self._is_closing.wait(CHECK_S):
            for running in self.studies.opened():
                try:
                    self.check(running)
                except Exception as error:  # another study's rule is still to be checked
                    if not self._is_closing.is_set():
                        log_failure(error)

    def check(self, running: RunningStudy) -> None:
        """Has the report made where a further check was reached, and closes the study where it says so."""
        analysis = running.study.spec.analysis
        if analysis.stop is None or running.store.control.current().state != "running":
            return
        states = running.store.counts.session_counts()
        n_finished = sum(n for (_, state), n in states.items() if state == "completed")
        n_checks = len(analysis.checked_at(n_finished))
        if n_checks <= self._n_checked.get(running.name, 0):
            return
        since_ms = self._since_ms.setdefault(running.name, time.time_ns() // 1_000_000)
        newest = self.reports.latest(running, RULE).newest
        if newest is None or newest.at_ms - 1000 * newest.took_s < since_ms:
            return
        self._n_checked[running.name] = n_checks
        del self._since_ms[running.name]
        obey(running, newest.report, newest.at_ms)


def obey(running: RunningStudy, report: Report, at_ms: int) -> None:
    """Closes a running study where its report says that the rule stops it; once, so that people can start it again."""
    why, control = report.provenance.get("stopped_because"), running.store.control
    if why is None or control.current().state != "running" or any(one.made_by == RULE for one in control.log()):
        return
    control.set_state("closed", by=RULE, reason=str(why), at_ms=at_ms)
    log("stopped_by_rule", study=running.name)
