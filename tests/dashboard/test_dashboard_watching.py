"""What the pages say is what the database holds."""

import csv
import io
import re
import statistics
import zipfile
from collections import Counter
from dataclasses import replace

import pytest
from dashboard_cases import KEY, collect, cut

from dialometer.design.templates import copy_template
from dialometer.flow.engine import Flow, now_ms
from dialometer.flow.submissions import Timing
from dialometer.storage.access.audit_log import AuditLog
from dialometer.storage.schema import visits
from dialometer.storage.sessions import Patience, release_stale
from dialometer.web.dashboard.numbers import count_study, over_time, screen_times
from dialometer.web.dashboard.running_studies import StudyFolders


@pytest.fixture
def ada(site):
    return site.owner()


def rows_of(visitor, path, **params):
    visitor.get(path, format="csv", **params)
    assert visitor.response.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(visitor.response.content.decode("utf-8-sig"))))


def fact(visitor, name):
    found = re.search(rf"<dt>{name}</dt><dd[^>]*>([\d,]+)", visitor.page)
    return int(found[1].replace(",", ""))


def test_studies_stand_side_by_side(ada, site):
    ada.get("/")
    for word in ("likert", "anchoring", "draft", "Rating the responses of a travel assistant"):
        assert word in ada.text
    assert ada.page.count("state-running") == 2
    assert ada.page.count("state-draft") == 1


def test_a_broken_study_does_not_hide_the_others(ada, studies_folder):
    (studies_folder / "draft" / "study.yaml").write_text("dialometer: 1\nname: [", encoding="utf-8")
    ada.get("/")
    assert "to fix" in ada.text
    with (studies_folder / "likert" / "consent.md").open("a") as file:
        file.write("changed after freezing")
    # What runs was loaded before; a new start refuses the changed study and says so.
    assert ada.get("/studies/likert/").status == 200


def test_a_frozen_study_that_was_changed_is_not_served(make_site, studies_folder):
    with (studies_folder / "likert" / "consent.md").open("a") as file:
        file.write("changed after freezing")
    site = make_site(StudyFolders(parent=str(studies_folder)))
    ada = site.owner()
    ada.get("/")
    assert "has changed since" in ada.text
    assert "state-broken" in ada.page
    assert ada.get("/studies/likert/").status == 409
    rater = site.client.get("/likert/")
    assert rater.status_code == 503
    assert "consent" not in rater.text


def test_the_overview_counts_what_the_database_holds(ada, site):
    store = site.store("likert")
    sessions = store.sessions.all()
    ada.get("/studies/likert/")
    assert fact(ada, "arrived") == len(sessions)
    assert fact(ada, "finished") == sum(s.state == "completed" for s in sessions)
    assert fact(ada, "excluded") == sum(s.is_excluded for s in sessions)
    assert fact(ada, "finished and counted") == sum(s.state == "completed" and not s.is_excluded for s in sessions)
    assert fact(ada, "judgments") == sum(not j.is_practice for j in store.records.judgments())
    assert fact(ada, "practice judgments") == sum(j.is_practice for j in store.records.judgments())
    flagged = {(logged.finding.rule, logged.finding.action, logged.session_id) for logged in store.records.findings()}
    found = Counter((rule, action) for rule, action, _ in flagged)
    cells = re.search(r"<th scope=\"row\">gold</th>((?:<td[^>]*>\d+</td>)+)", ada.page)[1]
    assert [int(n) for n in re.findall(r">(\d+)<", cells)] == [0, found["gold", "exclude"], 0]
    pay = site.studies.running("likert").study.spec.recruitment
    spent = sum(s.state == "completed" for s in sessions) * pay.pay_cents * (1 + pay.fee_percent / 100) / 100
    assert f"{spent:,.2f} {pay.currency}" in ada.text
    assert ada.page.count("<svg") >= 8
    assert "Interim results are not a valid test" in ada.text
    spreads = [float(row["disagreement"]) for row in rows_of(ada, "/studies/likert/items")]
    assert f"raters disagree by {statistics.fmean(spreads):.2f} on average" in ada.get("/studies/likert/").text


def test_judgments_without_times_have_no_card_of_times(ada, site):
    """As after an import: judgments, but no visits of screens."""
    assert "Time per screen" in ada.get("/studies/likert/").text
    with site.store("anchoring").database.writing() as connection:
        connection.execute(visits.delete())
    ada.get("/studies/anchoring/")
    assert fact(ada, "judgments") > 0
    assert "Time per screen" not in ada.text


def test_numbers_of_money_forecast_replaces_the_excluded(site):
    running = site.studies.running("likert")
    numbers = count_study(running.study, running.store, now_ms())
    money, counts = numbers.money, numbers.counts
    running.store.control.set_quota(100, by="ada", reason="more", at_ms=1)
    more = count_study(running.study, running.store, now_ms()).money
    assert more.wanted == 100
    assert more.missing == 100 - counts.valid
    expected = counts.finished * money.per_rater_cents
    expected += more.missing / (counts.valid / counts.finished) * money.per_rater_cents
    assert more.forecast_cents == pytest.approx(expected)
    assert more.hours_left is not None


def test_numbers_know_sources_and_quotas_per_cell(site):
    running = site.studies.running("anchoring")
    running.store.control.set_cell_quota(2, 7, by="ada", reason="", at_ms=1)
    running.store.control.set_cell_open(1, False, by="ada", reason="", at_ms=2)
    numbers = count_study(running.study, running.store, now_ms())
    assert numbers.group == "simulated"
    assert [cell.quota for cell in numbers.cells] == [None, None, 7, None]
    assert [cell.is_open for cell in numbers.cells] == [True, False, True, True]
    assert sum(cell.finished + cell.active + cell.excluded for cell in numbers.cells) == numbers.counts.arrived
    people = count_study(running.study, running.store, now_ms(), "people")
    assert people.counts.arrived == 0
    for item in numbers.items:
        done = len({j.session_id for j in running.store.records.judgments_on(item.id) if not j.is_practice})
        excluded = {s.id for s in running.store.sessions.all(is_excluded=True)}
        lost = len({j.session_id for j in running.store.records.judgments_on(item.id)} & excluded)
        assert item.done == done - lost


def test_over_time_ends_where_things_stand(site):
    running = site.studies.running("likert")
    numbers = count_study(running.study, running.store, now_ms())
    moved = over_time(numbers.marks)
    assert moved["arrived"][-1][1] == numbers.counts.arrived
    assert moved["finished"][-1][1] == numbers.counts.finished
    assert moved["active"][-1][1] == numbers.counts.active
    assert moved["arrived"] == sorted(moved["arrived"])


def test_times_are_medians_by_kind():
    times = screen_times([("item/a", 2.0), ("item/b/fluency", 4.0), ("item/c", 90.0), ("consent", 5.0)])
    assert [(one.screen, one.n, one.median_s) for one in times] == [("consent", 1, 5.0), ("item", 3, 4.0)]


def test_raters_sort_filter_and_leave_as_csv(ada, site):
    store = site.store("likert")
    rows = rows_of(ada, "/studies/likert/raters")
    assert len(rows) == len(store.sessions.all())
    assert {row["rater"] for row in rows} == {f"R{s.ordinal:04d}" for s in store.sessions.all()}
    assert all((row["judgments"] == "0") <= (row["excluded"] != "counts") for row in rows), "nothing of them counts"
    excluded = rows_of(ada, "/studies/likert/raters", only_excluded="excluded")
    assert len(excluded) == sum(s.is_excluded for s in store.sessions.all()) > 0
    assert all("gold" in row["flags"] or "attention" in row["flags"] for row in excluded)
    by_number = [row["rater"] for row in rows_of(ada, "/studies/likert/raters", sort="rater")]
    assert by_number == sorted(by_number)
    assert [row["rater"] for row in rows_of(ada, "/studies/likert/raters", sort="-rater")] == by_number[::-1]
    assert [row["rater"] for row in rows_of(ada, "/studies/likert/raters", q="r0003")] == ["R0003"]
    assert "simulated-" not in ada.get("/studies/likert/raters").page, "no identifier of a platform"
    people = {store.sessions.person(s.id).external_id for s in store.sessions.all()}
    assert not any(name in ada.page for name in people if name)


def test_a_raters_page_shows_path_answers_gold_and_flags(ada, site):
    store = site.store("likert")
    session = next(
        s
        for s in store.sessions.all()
        if s.is_excluded and any(logged.finding.rule == "gold" for logged in store.records.findings(s.id))
    )
    ada.get(f"/studies/likert/raters/{session.ordinal}")
    for logged in store.records.findings(session.id):
        assert logged.finding.reason in ada.text
    assert "failed" in ada.text
    assert "gold, failed" in ada.text
    failed = {
        item
        for item, result in re.findall(r"items/(gold_\w+)\">.*?<td>(passed|failed)</td></tr>", ada.page)
        if result == "failed"
    }
    assert f"Failed {len(failed)} of " in ada.text
    record = store.records.of_session(session.id)
    assert ada.page.count("<tr") >= len(record.visits)
    judgment = next(j for j in record.judgments if not j.is_practice)
    assert judgment.item_id in ada.text
    assert f"{judgment.criterion}, {judgment.system} {judgment.value}" in ada.text
    assert "by the rule " in ada.text
    assert ada.get("/studies/likert/raters/999").status == 404


def test_excluding_and_restoring_need_a_reason_and_are_logged(ada, site):
    store = site.store("likert")
    session = next(s for s in store.sessions.all() if not s.is_excluded)
    n_before = len(list(store.records.judgments(session.id)))
    path = f"/studies/likert/raters/{session.ordinal}/decision"
    assert ada.post(path, {"what": "exclude", "reason": "  "}).status == 422
    assert not store.sessions.get(session.id).is_excluded
    ada.post(path, {"what": "exclude", "reason": "wrote <b>nonsense</b>"})
    assert "Excluded." in ada.text
    assert "by ada: wrote <b>nonsense</b>" in ada.text
    assert "<b>nonsense" not in ada.page
    assert store.sessions.get(session.id).is_excluded
    assert len(list(store.records.judgments(session.id))) == n_before
    row = next(r for r in rows_of(ada, "/studies/likert/raters") if r["rater"] == f"R{session.ordinal:04d}")
    assert row["excluded"] == "excluded"
    ada.get(f"/studies/likert/raters/{session.ordinal}")
    ada.post(path, {"what": "restore", "reason": "it was sense"})
    assert not store.sessions.get(session.id).is_excluded
    log = [(one.is_excluded, one.made_by, one.reason) for one in store.exclusions.log(session.id)]
    assert log == [(True, "ada", "wrote <b>nonsense</b>"), (False, "ada", "it was sense")]


def test_a_rater_who_lost_everything_gets_a_new_resume_link(make_site, tmp_path):
    copy_template("likert", tmp_path / "likert")
    cut(tmp_path / "likert", 8)
    site = make_site(StudyFolders((str(tmp_path / "likert"),)))
    ada, running = site.owner(), site.studies.running("likert")
    arrival = Flow(running.study, running.store).arrive(platform="link", external_id="forgetful")
    path = f"/studies/likert/raters/{arrival.session.ordinal}"
    assert "Make a resume link" in ada.get(path).text
    ada.post(f"{path}/resume", {})
    token = re.search(r"http://[^<]*/resume/([\w-]+)<", ada.page)[1]
    assert running.store.sessions.by_token(token) == arrival.session, "not seen by it"
    assert running.store.sessions.by_token(arrival.token) is None
    assert token not in ada.get(path).page, "shown once"


def test_items_and_one_item(ada, site):
    study, store = site.studies.running("likert").study, site.store("likert")
    rows = rows_of(ada, "/studies/likert/items")
    assert [row["item"] for row in rows] == [item.id for item in study.rated_items]
    assert all(0 <= float(row["disagreement"]) <= 1 for row in rows)
    counted = {s.id for s in store.sessions.all() if not s.is_excluded}
    for row in rows:
        groups = {}
        for j in store.records.judgments_on(row["item"]):
            if j.session_id in counted and not j.is_practice:
                groups.setdefault((j.criterion, j.system), []).append(j.value)
        ends = {"relevance": 4, "fluency": 4, "helpfulness": 6}
        by_hand = [statistics.pstdev(v) / (ends[c] / 2) for (c, _), v in groups.items() if len(v) > 1]
        assert float(row["disagreement"]) == pytest.approx(statistics.fmean(by_hand), abs=1e-3)
    item = study.rated_items[-1]
    ada.get(f"/studies/likert/items/{item.id}")
    for turn in item.context:
        assert turn.text[:30] in ada.text
    judged = rows_of(ada, f"/studies/likert/items/{item.id}")
    assert len(judged) == len(store.records.judgments_on(item.id))
    assert {row["counts"] for row in judged} <= {"counts", "excluded", "does not count", "practice"}
    assert ada.get("/studies/likert/items/nothing").status == 404


def test_texts_can_be_searched(ada, site):
    store = site.store("likert")
    found = next(a for a in store.records.answers() if a.question == "comments")
    text = "the =SUM(1) button was <hidden>"
    store.submissions.correct(replace(found, value=text, replaces=found.id, corrected_by="test", id=None))
    rows = rows_of(ada, "/studies/likert/texts", q="button")
    assert [row["text"] for row in rows] == [text]
    ada.get("/studies/likert/texts", q="BUTTON was")
    assert "&lt;hidden&gt;" in ada.page
    assert rows_of(ada, "/studies/likert/texts", q="nothing like it") == []


def test_the_quality_page_shows_rules_findings_and_gold(ada, site):
    store = site.store("likert")
    ada.get("/studies/likert/quality")
    for words in ("after every gold item or check", "when a session ends", "excludes from the analysis", "only flags"):
        assert words in ada.text
    rows = rows_of(ada, "/studies/likert/quality")
    assert len(rows) == len(list(store.records.findings()))
    gold = re.findall(
        r"items/(gold_\w+)\">[^<]+</a></th><td class=\"count\">(\d+)</td><td class=\"count\">(\d+)", ada.page or ""
    )
    ada.get("/studies/likert/quality")
    gold = re.findall(
        r"items/(gold_\w+)\">[^<]+</a></th><td class=\"count\">(\d+)</td><td class=\"count\">(\d+)", ada.page
    )
    assert len(gold) == 2
    n_failed = sum("gold_shuttle" in logged.finding.details.get("failed", []) for logged in store.records.findings())
    by_item = {item: (int(n), int(passed)) for item, n, passed in gold}
    assert by_item["gold_shuttle"][0] - by_item["gold_shuttle"][1] >= n_failed > 0


def test_everything_can_be_exported(ada, site):
    ada.get("/studies/likert/export.zip")
    with zipfile.ZipFile(io.BytesIO(ada.response.content)) as archive:
        names = {name.split("/")[1] for name in archive.namelist()}
        assert {"judgments.csv", "sessions.csv", "data_dictionary.md"} <= names
        n_rows = len(archive.read("likert-export/judgments.csv").decode().splitlines()) - 1
    assert n_rows == sum(not j.is_practice for j in site.store("likert").records.judgments())
    assert any(entry.what == "downloaded the data" for entry in AuditLog(site.accounts.database).newest(50))


def test_a_page_that_is_known_is_not_sent_again(ada):
    ada.get("/studies/likert/raters")
    mark = ada.response.headers["etag"]
    again = ada.client.get("/dashboard/studies/likert/raters", headers={"if-none-match": mark})
    assert (again.status_code, again.content) == (304, b"")
    other = ada.client.get("/dashboard/studies/likert/raters", params={"q": "zzz"}, headers={"if-none-match": mark})
    assert other.status_code == 200


def test_one_study_by_itself_keeps_its_address(make_site, studies_folder):
    site = make_site(StudyFolders((str(studies_folder / "likert"),)))
    assert "Start" in site.client.get("/").text
    ada = site.owner()
    assert "Rating the responses" in ada.get("/studies/likert/").text
    assert site.accounts is site.store("likert").accounts
    ada.get("/studies/likert/control")
    ada.post("/studies/likert/control", {"what": "pause", "reason": "lunch"})
    assert site.client.get("/healthz").json()["study"] == site.studies.running("likert").study.spec.name


def test_the_desk_works_below_a_root_path_and_on_postgresql(make_site, studies_folder, database_url):
    site = make_site(StudyFolders((str(studies_folder / "draft"),), database=database_url), root_path="/films")
    ada = site.visitor()
    from dialometer.web.dashboard.login import first_owner_token

    token = first_owner_token(site.accounts)
    page = ada.client.get("/films/dashboard/join", params={"token": token}).text
    csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', page)[1]
    form = {"csrf": csrf, "token": token, "name": "ada", "password": "many good words", "again": "many good words"}
    done = ada.client.post("/films/dashboard/join", data=form)
    assert (done.status_code, done.url.path) == (200, "/films/dashboard/")
    shown = ada.client.get("/films/dashboard/studies/draft/")
    assert shown.status_code == 200
    assert 'href="/films/dashboard/static/dashboard.css' in shown.text
    assert ada.client.get("/films/dashboard/static/dashboard.css").status_code == 200
    opened = ada.client.post(
        "/films/api/v1/sessions",
        json={"source": "model", "external_id": "x"},
        headers={"authorization": f"Bearer {KEY}"},
    )
    assert opened.status_code in (200, 201)


def test_every_page_opens_on_both_databases(make_site, studies_folder, database_url):
    """The likert study's raters once more, in PostgreSQL too."""
    folder = studies_folder / "likert"
    collect(folder, 5, database=database_url if "://" in database_url else None)
    site = make_site(StudyFolders((str(folder),), database=database_url if "://" in database_url else ""))
    ada = site.owner()
    n_sessions = len(site.store("likert").sessions.all())
    assert n_sessions >= 5
    assert fact(ada.get("/studies/likert/"), "arrived") == n_sessions
    for path in (
        "raters",
        "raters/1",
        "items",
        "items/t01",
        "texts",
        "quality",
        "control",
        "preview",
        "files",
        "results",
    ):
        assert ada.get(f"/studies/likert/{path}").status == 200, path
    assert len(rows_of(ada, "/studies/likert/items")) > 4
    ada.post("/studies/likert/raters/1/decision", {"what": "exclude", "reason": "for the test"})
    assert site.store("likert").sessions.get(site.store("likert").sessions.id_of(1)).is_excluded


def straight_liner(site, name="likert"):
    """Somebody who gives the same answer again and again and leaves before the end; and a place given away meanwhile."""
    running = site.studies.running(name)
    flow = Flow(running.study, running.store)
    session = flow.arrive(platform="link", external_id="lazy").session
    fixed = {"consent": "agree", "english": "It is my first language", "assistant_experience": "Never"}
    while flow.screen(session).kind != "post":
        screen = flow.screen(session)
        answers = {field.name: fixed.get(field.name, 3) for field in screen.fields} | {"consent": "agree"}
        check = next((c for rule in running.study.spec.quality for c in getattr(rule, "checks", ())), None)
        answers[check.name] = check.answer
        at_ms = flow.clock()
        flow.submit(session.id, screen.key, answers, Timing(at_ms - 60_000, at_ms), f"t-{session.step}")
        session = running.store.sessions.get(session.id)
    with running.store.database.writing() as connection:
        release_stale(connection, "person", Patience(now_ms() + 10_000))
    return running.store.sessions.get(session.id)


def test_rules_of_the_end_can_look_at_raters_who_left(make_site, tmp_path):
    copy_template("likert", tmp_path / "likert")
    cut(tmp_path / "likert", 8)
    site = make_site(StudyFolders((str(tmp_path / "likert"),)))
    ada = site.owner()
    left = straight_liner(site)
    assert left.state == "stale"
    store = site.store("likert")
    before = {logged.finding.rule for logged in store.records.findings(left.id)}
    assert "straight_lining" not in before
    ada.get(f"/studies/likert/raters/{left.ordinal}")
    assert "If the session ended now" in ada.text
    assert "are the same" in ada.text
    ada.get("/studies/likert/quality")
    ada.post("/studies/likert/quality/left")
    assert "flagged 1 of" in ada.text
    found = [logged.finding for logged in store.records.findings(left.id) if logged.finding.rule == "straight_lining"]
    assert found
    n = len(list(store.records.findings(left.id)))
    ada.post("/studies/likert/quality/left")
    assert "flagged 0 of" in ada.text
    assert len(list(store.records.findings(left.id))) == n, "each rule finds once"
