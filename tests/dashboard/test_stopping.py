"""The stopping rule at work: asked for at each check, obeyed once, and what the pages say instead of the warning."""

import time
from types import SimpleNamespace

import pytest

from dialometer.model.report import Report, Summary
from dialometer.web.dashboard.live_report import LiveReport
from dialometer.web.dashboard.running_studies import StudyFolders
from dialometer.web.dashboard.stopping import RULE, StoppingWatch


@pytest.fixture
def running(make_site, studies_folder):
    """A study that declares looks and a rule."""
    file = studies_folder / "likert" / "study.yaml"
    file.write_text(file.read_text().replace("analysis:\n", "analysis:\n  looks: anytime\n  stop: {every: 2}\n", 1))
    (studies_folder / "likert" / "study.lock.json").unlink(missing_ok=True)
    site = make_site(StudyFolders(folders=(str(studies_folder / "likert"),), report_command=()))
    return site, site.studies.running("likert")


class Reports:
    """Reports that say what they are told to."""

    def __init__(self, **provenance):
        self.report = Report("likert", "Likert", Summary("", ""), (), (), provenance)
        self.n_asked = 0

    def latest(self, running, by, sources=()):
        self.n_asked += 1
        assert by == RULE
        return SimpleNamespace(newest=LiveReport(self.report, b"", "", time.time_ns() // 1_000_000 + 5, 0.0))


def test_a_study_is_closed_once_with_its_reason(running):
    _, study = running
    study.store.control.set_state("running", by="ada", reason="start", at_ms=1)
    reports = Reports(stopped="decided", stopped_because="at 40 raters the primary hypothesis was supported")
    watch = StoppingWatch(None, reports)
    watch.check(study)
    decision = study.store.control.log()[-1]
    assert (decision.value, decision.made_by) == ("closed", RULE)
    assert decision.reason == "at 40 raters the primary hypothesis was supported"
    watch.check(study)
    assert reports.n_asked == 1, "a closed study is not asked about"
    study.store.control.set_state("running", by="ada", reason="go on", at_ms=2)
    StoppingWatch(None, reports).check(study)
    assert study.store.control.current().state == "running", "what a person starts again goes on"


def test_a_study_goes_on_where_its_report_does(running):
    _, study = running
    study.store.control.set_state("running", by="ada", reason="start", at_ms=1)
    reports = Reports()
    watch = StoppingWatch(None, reports)
    watch.check(study)
    watch.check(study)
    assert reports.n_asked == 1, "no further check was reached"
    assert study.store.control.current().state == "running"


def test_pages_say_what_holds_instead_of_warning(running):
    site, _ = running
    ada = site.owner()
    ada.get("/studies/likert/results")
    assert "Comparisons hold at every look." in ada.text
    assert "closes by itself once the primary hypothesis is decided" in ada.text
    assert "not a valid test" not in ada.text
