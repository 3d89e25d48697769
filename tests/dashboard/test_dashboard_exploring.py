"""After the study: verdicts first, parts of the data to explore, files of figures, copies behind links, the pay list."""

import csv
import io
import re
import shutil
import time
from contextlib import suppress

import pytest
from dashboard_serving import report_command
from dashboard_site import Site

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.exploring import DataChoice
from dialometer.errors import DialometerError, UnknownName
from dialometer.flow.engine import Flow, now_ms
from dialometer.flow.pay_list import pay_list, totals
from dialometer.storage.access.audit_log import AuditLog
from dialometer.web.dashboard.running_studies import StudyFolders

WAIT_S = 600


@pytest.fixture(scope="module")
def site(answered, tmp_path_factory):
    """One server for the whole file: its analyses take seconds each."""
    parent = tmp_path_factory.mktemp("explored") / "studies"
    shutil.copytree(answered, parent)
    opened = Site(StudyFolders(parent=str(parent), report_command=report_command()))
    opened.ada = opened.owner()
    yield opened
    opened.close()


def wait_for(visitor, words, path, **params):
    until = time.monotonic() + WAIT_S
    while words not in visitor.get(path, **params).text:
        assert time.monotonic() < until, visitor.text
        time.sleep(0.3)
    return visitor


def log(site):
    return [(entry.what, entry.detail, entry.study) for entry in AuditLog(site.accounts.database).newest(500)]


def test_verdicts_come_first_and_are_those_of_the_report(site):
    ada = wait_for(site.ada, "The answer", "/studies/anchoring/results")
    running = site.studies.running("anchoring")
    same = analyse(running.study, running.store, n_resamples=100)
    assert same.summary.verdicts
    places = [ada.text.index(" ".join(verdict.tests.split())) for verdict in same.summary.verdicts]
    assert max(places) < ada.text.index("The answer")
    for verdict in same.summary.verdicts:
        assert f"{verdict.result} " in ada.text
        assert verdict.hypothesis in ada.text
    assert ada.text.index("The answer") < ada.text.index("Explore")


@pytest.mark.slow
def test_every_figure_comes_as_drawing_pixels_and_numbers(site):
    ada = wait_for(site.ada, "The answer", "/studies/likert/results")
    drawn = re.findall(r'<img src="/dashboard(/studies/likert/figures/[^"]+)\.svg"', ada.page)
    running = site.studies.running("likert")
    assert len(drawn) == len(analyse(running.study, running.store, n_resamples=100).figures()) > 3
    for name in drawn[:2]:
        assert ada.get(f"{name}.svg").page.startswith("<svg")
        assert ada.response.headers["content-type"] == "image/svg+xml"
        assert ada.response.headers.get_list("content-security-policy") == [
            "default-src 'none'; style-src 'unsafe-inline'; sandbox"
        ]
        assert site.ada.client.get(f"/dashboard{name}.png").content[:4] == b"\x89PNG"
        assert len(list(csv.reader(io.StringIO(ada.get(f"{name}.csv").page)))) > 1
    for wrong in ("/studies/likert/figures/nothing.svg", "/studies/likert/figures/..%2Findex.html"):
        assert ada.get(wrong).status == 404


def test_a_part_of_the_data_is_explored_and_marked(site):
    ada = site.ada
    ada.get("/studies/anchoring/explore", condition="anchor=none, layout=together")
    assert "Exploratory. This part of the data was chosen after the fact" in ada.text
    n_looks = len(site.store("anchoring").looks.all())
    wait_for(ada, "What this part shows", "/studies/anchoring/explore", condition="anchor=none, layout=together")
    assert '<span dir="auto">How old are you?</span>' in ada.page.replace('id="explore-age" ', ""), (
        "questions as they are written"
    )
    running = site.studies.running("anchoring")
    same = analyse(
        running.study, running.store, n_resamples=100, only=[DataChoice.parse("condition=anchor=none, layout=together")]
    )
    assert same.summary.answer in ada.text
    assert f"{same.provenance['n_judgments']} judgments of {same.provenance['n_raters']} raters" in ada.text
    assert 'class="kind-mark confirmatory"' not in ada.page
    assert len(site.store("anchoring").looks.all()) == n_looks, "a part is no look at the study's results"
    assert ("explored the results", "condition=anchor=none, layout=together", "anchoring") in log(site)
    picture = re.search(r'<img src="/dashboard(/studies/[^"]+\.svg\?[^"]+)"', ada.page)[1].replace("&amp;", "&")
    assert ada.get(picture).page.startswith("<svg")
    assert "Choose what to explore" in ada.get("/studies/anchoring/explore").text
    assert ada.get("/studies/anchoring/explore", gender="--database").status == 422
    assert ada.get("/studies/anchoring/explore", **{"from.age": "old"}).status == 422


@pytest.mark.slow
def test_nothing_that_is_explored_is_confirmatory(site):
    for study, words in (("likert", "gender=Woman"), ("anchoring", "age>=20"), ("anchoring", "item=c01")):
        running = site.studies.running(study)
        whole = analyse(running.study, running.store, n_resamples=100)
        part = analyse(running.study, running.store, n_resamples=100, only=[DataChoice.parse(words)])
        parts = (*part.tables(), *part.figures(), *part.sections, *part.summary.headlines)
        assert not [one for one in parts if one.is_confirmatory]
        assert not part.summary.verdicts
        assert part.summary.warnings[0].startswith("Exploratory")
        assert part.provenance["fingerprint"] == whole.provenance["fingerprint"]
        assert part.provenance["command"].endswith(f"--only '{words}'" if ">" in words else f"--only {words}")
        assert 0 < part.provenance["n_judgments"] <= whole.provenance["n_judgments"]
        assert part.is_finished == whole.is_finished


@pytest.mark.slow
def test_the_chosen_part_is_the_one_that_is_counted(site):
    """Counted by hand from the tables: raters by their answers, items, and both together."""
    running = site.studies.running("likert")
    sessions = [s.id for s in running.store.sessions.all() if not s.is_excluded]
    women = {a.session_id for a in running.store.records.answers() if (a.question, a.value) == ("gender", "Woman")}
    men = {a.session_id for a in running.store.records.answers() if (a.question, a.value) == ("gender", "Man")}
    item = next(item.id for item in running.study.people_items if not item.id.startswith("gold"))
    judged = [j for j in running.store.records.judgments() if j.session_id in sessions and not j.is_practice]

    def n(*words):
        only = [DataChoice.parse(word) for word in words]
        return analyse(running.study, running.store, n_resamples=100, only=only).provenance["n_judgments"]

    of_item = [j for j in judged if j.item_id == item]
    assert n(f"item={item}") == len(of_item)
    assert n(f"item={item}", "gender=Woman") == len([j for j in of_item if j.session_id in women])
    assert n(f"item={item}", "gender=Woman", "gender=Man") == len([j for j in of_item if j.session_id in women | men])


@pytest.mark.parametrize(
    "words", ["gender", "gender=", "=x", "nothing=1", "item=nothing", "condition=none", "age>=old"]
)
def test_a_choice_that_is_none_is_refused(site, words):
    running = site.studies.running("anchoring")
    with pytest.raises((DialometerError, UnknownName)):
        analyse(running.study, running.store, only=[DataChoice.parse(words)])


def test_blanks_around_a_choice_do_not_count():
    assert DataChoice.parse("  age of rater >= 30 \n") == DataChoice("age of rater", ">=", "30")
    assert DataChoice.parse("condition = a=b, c") == DataChoice("condition", "=", "a=b, c")


@pytest.mark.parametrize("words", ["{}x", "x{}y", "x={}y{}<", "x{}=", "{}=x"])
def test_thousands_of_blanks_are_read_at_once(words):
    """The time of reading them grew with the third power of their number: minutes."""
    began = time.perf_counter()
    with suppress(DialometerError):
        DataChoice.parse(words.replace("{}", " " * 2000))
    assert time.perf_counter() - began < 1


def test_a_copy_is_read_without_an_account_until_it_is_revoked(site):
    ada = wait_for(site.ada, "The copy would contain", "/studies/likert/share")
    ada.post("/studies/likert/share", {"note": "for the reviewers"})
    link = re.search(r"http://testserver(/dashboard/report/[\w-]{40,})", ada.page)[1]
    assert "for the reviewers" in ada.text
    assert link not in ada.get("/studies/likert/share").page, "shown once"
    stranger = site.visitor().client
    copy = stranger.get(link)
    running = site.studies.running("likert")
    report = analyse(running.study, running.store, n_resamples=100)
    assert copy.status_code == 200
    assert report.summary.answer.split(".")[0] in copy.text
    assert "noindex" in copy.headers["x-robots-tag"]
    assert len(copy.headers.get_list("content-security-policy")) == 1
    assert "script" not in copy.headers["content-security-policy"]
    assert copy.headers["referrer-policy"] == "no-referrer"
    names = {f"R{s.ordinal:04d}" for s in running.store.sessions.all()}
    assert not [name for name in names if name in copy.text], "no single rater is named"
    assert "set-cookie" not in copy.headers
    for wrong in (link[:-1], f"{link}x", "/dashboard/report/", "/dashboard/report/" + "a" * 3000):
        assert stranger.get(wrong, follow_redirects=False).status_code in (303, 403, 404), wrong
    before = copy.text
    session = next(s for s in running.store.sessions.all() if not s.is_excluded)
    running.store.exclusions.exclude(session.id, "ada", "for the test", now_ms())
    assert stranger.get(link).text == before, "a copy does not change with the data"
    running.store.exclusions.restore(session.id, "ada", "for the test", now_ms())
    number = re.search(r"/studies/likert/share/(\d+)/revoke", ada.page)[1]
    assert ada.post(f"/studies/anchoring/share/{number}/revoke").status == 409, "of another study"
    assert "no longer works" in ada.post(f"/studies/likert/share/{number}/revoke").text
    assert stranger.get(link).status_code == 403
    made = [what for what, _, study in log(site) if study == "likert"]
    assert "made a link to the report" in made
    assert "revoked a link to the report" in made


def people_arrive(site, study="likert"):
    """Two human raters of the platform: one who will have finished, one who leaves."""
    running = site.studies.running(study)
    flow = Flow(running.study, running.store)
    opened = [
        flow.arrive(external_id=f"PROLIFIC-{n}", params={"PROLIFIC_PID": f"PROLIFIC-{n}"}, source="person")
        for n in (1, 2)
    ]
    return running, opened


def test_the_pay_list_says_who_is_owed_what_and_names_nobody_to_viewers(site):
    running, _ = people_arrive(site)
    rows = pay_list(running.study, running.store)
    assert [row.participant for row in rows] == ["PROLIFIC-1", "PROLIFIC-2"]
    assert {(row.advice, row.why, row.owed_cents) for row in rows} == {("nothing", "is under way", 0)}
    with running.store.database.writing() as connection:
        connection.exec_driver_sql(
            "UPDATE sessions SET state = 'completed', started_at_ms = 0, finished_at_ms = 120000 WHERE ordinal = "
            f"{rows[0].ordinal}"
        )
    pay = running.study.spec.recruitment
    first, second = pay_list(running.study, running.store)
    assert (first.advice, first.owed_cents, first.minutes) == ("approve", pay.pay_cents, 2.0)
    assert first.by_time_cents == round(pay.pay_cents * 2 / pay.minutes)
    assert second.owed_cents == 0
    running.store.exclusions.exclude(running.store.sessions.id_of(first.ordinal), "ada", "too quick", now_ms())
    assert pay_list(running.study, running.store)[0].advice == "look"
    assert pay_list(running.study, running.store)[0].owed_cents == pay.pay_cents, "a rater who worked is paid"
    (total,) = totals(running.study, pay_list(running.study, running.store))
    assert (total.n_owed, total.owed_cents) == (1, pay.pay_cents)
    assert total.with_fee_cents == round(pay.pay_cents * (1 + pay.fee_percent / 100))
    assert "PROLIFIC-1" in site.ada.get("/studies/likert/pay").text
    assert "PROLIFIC-1" in site.ada.get("/studies/likert/pay", format="csv").page
    assert ("downloaded the pay list", "with the platform's names", "likert") in log(site)
    viewer = site.member("viewer")
    for params in ({}, {"format": "csv"}, {"q": "PROLIFIC-1"}, {"sort": "participant"}):
        viewer.get("/studies/likert/pay", **params)
        assert viewer.status == 200
        assert "PROLIFIC" not in viewer.page.replace('value="PROLIFIC-1"', "").replace("?q=PROLIFIC-1", "")
    assert "R00" in viewer.get("/studies/likert/pay", format="csv").page
