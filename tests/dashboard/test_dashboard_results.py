"""The answer so far: computed aside, with its interval and its warning, and every look written down."""

import sys
import threading
import time
from types import SimpleNamespace

import pytest
from dashboard_serving import report_command

from dialometer.analysis.base.choose import analyse
from dialometer.errors import DialometerError
from dialometer.storage.looks import Look
from dialometer.web.dashboard import live_report as looking
from dialometer.web.dashboard.pages.after.results import history
from dialometer.web.dashboard.running_studies import StudyFolders

WAIT_S = 600


@pytest.fixture
def at(make_site, studies_folder):
    """A site that can compute, and somebody who looks."""

    def make(command=None):
        site = make_site(
            StudyFolders(parent=str(studies_folder), report_command=report_command() if command is None else command)
        )
        return site, site.owner()

    return make


def wait_for(visitor, words, path="/studies/likert/results"):
    until = time.monotonic() + WAIT_S
    while words not in visitor.get(path).text:
        assert time.monotonic() < until, visitor.text
        time.sleep(0.2)
    return visitor


def test_the_answer_appears_with_warning_agreement_and_rules(at):
    site, ada = at()
    ada.get("/studies/likert/results")
    assert "Interim results are not a valid test" in ada.text
    assert "Computing from the newest data" in ada.text
    wait_for(ada, "The answer")
    running = site.studies.running("likert")
    same = analyse(running.study, running.store, n_resamples=100)
    assert same.summary.answer in ada.text
    assert same.summary.headlines[0].label in ada.text
    assert "Quality rules and other choices" in ada.text
    assert "Would a critic's choice change the answer?" in ada.text
    agreement = next(s for s in same.sections if "agreement" in s.name)
    assert agreement.title in ada.text
    (look,) = running.store.looks.all()
    assert (look.made_by, look.n_judgments) == ("ada", same.provenance["n_judgments"])
    shown = [(seen["label"], seen["value"]) for seen in look.seen]
    assert shown == [(h.label, pytest.approx(h.estimate.value)) for h in same.summary.headlines if h.estimate]

    overview = ada.get("/studies/likert/").text
    assert same.summary.answer in overview
    assert same.summary.headlines[0].label in overview
    assert next(text for text in agreement.paragraphs if "ICC 0." in text) in overview
    assert "Would a critic's choice change the answer?" in ada.get("/studies/likert/quality").text
    ada.get("/studies/likert/report.html")
    assert ada.response.headers["content-disposition"].startswith("attachment")
    assert same.summary.answer.split(".")[0] in ada.page
    ada.get("/studies/likert/results")
    assert len(running.store.looks.all()) == 1, "nothing has happened since, so there is nothing new to see"


@pytest.mark.slow
def test_new_data_are_a_new_look_after_a_rest(at, monkeypatch):
    monkeypatch.setattr(looking, "REST_S", 0.0)
    monkeypatch.setattr(looking, "REST_FACTOR", 0.0)
    site, ada = at()
    wait_for(ada, "The answer")
    store = site.store("likert")
    session = next(s for s in store.sessions.all() if not s.is_excluded)
    store.exclusions.exclude(session.id, "ada", "for the test", 1)
    ada.get("/studies/likert/results")
    assert "newer data have come in" in ada.text
    wait_for(ada, "2 looks at the results")
    first, second = store.looks.all()
    assert second.n_judgments < first.n_judgments
    assert ada.page.count('class="band"') >= 2


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            (sys.executable, "-c", "import sys; print('error: no such thing', file=sys.stderr); sys.exit(1)"),
            "no such thing",
        ),
        ((sys.executable, "-c", "import sys; sys.exit(3)"), "the analysis failed"),
        (("/nothing/like/this",), "The analysis failed (reference"),
        ((sys.executable, "-c", "pass"), "The analysis failed (reference"),
        ((), "computes no results"),
    ],
)
def test_what_goes_wrong_is_said(at, command, told):
    site, ada = at(command)
    wait_for(ada, told)
    assert site.store("likert").looks.all() == []
    ada.get("/studies/likert/report.html")
    assert "not ready yet" in ada.text


def test_results_of_another_group_are_asked_for_by_its_source(at, tmp_path):
    """The chosen group decides what is computed; only the study's own raters make a look that is logged."""
    asked = tmp_path / "asked"
    code = f"import sys; open({str(asked)!r}, 'a').write(' '.join(sys.argv[1:]) + '.'); sys.exit('error: asked')"
    site, ada = at((sys.executable, "-c", code))
    wait_for(ada, "asked")
    wait_for(ada, "These results are about models", "/studies/likert/results?source=models")
    wait_for(ada, "asked", "/studies/likert/results?source=models")
    assert asked.read_text() == ".--source model."
    dashboard, running = site.app._dashboard.dashboard, site.studies.running("likert")
    assert dashboard.report_options(running, "simulated") == ()  # the main group of this study
    assert dashboard.report_options(running, "people") == ("--source", "person", "--source", "imported")
    assert site.store("likert").looks.all() == []


def test_an_empty_study_has_no_results_yet(at):
    _, ada = at()
    ada.post("/new", {"name": "fresh", "title": "", "from": "template:likert"})
    ada.post("/studies/fresh/freeze")
    wait_for(ada, "There are no judgments yet", "/studies/fresh/results")


def test_history_needs_two_looks():
    class Told:
        label = "share"

    looks = [Look("ada", n, 2, [{"label": "share", "value": 0.5, "low": 0.4, "high": 0.6}], n) for n in (10, 20)]
    assert history(Told(), looks[:1]) is None
    assert "last 0.5 with interval 0.4 to 0.6" in str(history(Told(), looks))
    unknown = [Look("ada", 30, 2, [{"label": "share", "value": None, "low": None, "high": None}], 3)]
    assert str(history(Told(), looks + unknown)) == str(history(Told(), looks))


def test_an_analysis_ends_with_the_server(make_site, studies_folder):
    slow = (sys.executable, "-c", "import time; time.sleep(600)")
    site = make_site(StudyFolders(parent=str(studies_folder), report_command=slow))
    ada = site.owner()
    ada.get("/studies/likert/results")
    results = site.app._dashboard.dashboard.reports
    until = time.monotonic() + 120
    while results._process is None:
        assert time.monotonic() < until
        time.sleep(0.02)
    process = results._process
    results.close()
    assert process.wait(120) != 0
    wait_for(ada, "the analysis failed")
    assert site.store("likert").looks.all() == []


def test_who_explores_much_starts_few_analyses(monkeypatch):
    """What is explored waits in a short line, and the whole of a study never waits for a place in it."""
    may_end = threading.Event()

    def compute(_self, _running, _pulse, _options):
        may_end.wait(120)
        raise DialometerError("ended")

    monkeypatch.setattr(looking.LiveReports, "_compute", compute)
    reports = looking.LiveReports(("anything",))
    running = SimpleNamespace(name="likert", store=SimpleNamespace(counts=SimpleNamespace(pulse=lambda: "1")))
    asked = [reports.latest(running, "eve", ("--only", f"age>={age}")) for age in range(50)]
    assert sum(status.has_begun for status in asked) == looking.MAX_WAITING
    assert {status.problem for status in asked[looking.MAX_WAITING :]} == {looking.BUSY}
    assert reports.latest(running, "ada").has_begun
    may_end.set()
    until = time.monotonic() + 120
    while not reports.latest(running, "eve", ("--only", "age>=49")).has_begun:
        assert time.monotonic() < until
        time.sleep(0.01)
