"""Every place that counts raters, sessions or judgments shows the same numbers: a study with practice items, an excluded rater,
one who declined, a correction, and one person among simulated raters."""

import csv
import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from dashboard_cases import cut

from commands import result_of
from dialometer.analysis.base.choose import analyse
from dialometer.design.load import load_study
from dialometer.design.lock import freeze
from dialometer.design.templates import copy_template
from dialometer.exchange.exports.export import export_study
from dialometer.flow.engine import Flow, now_ms
from dialometer.flow.simulated import EngineAccess
from dialometer.flow.submissions import Timing
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.counting.counts import JudgmentCounts
from dialometer.storage.store import Store
from dialometer.web.dashboard.running_studies import StudyFolders

N_RATERS = 6


def command(*arguments):
    done = result_of(*arguments)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """The folder of the study and what ``simulate`` printed about it."""
    folder = tmp_path_factory.mktemp("counted") / "anchoring"
    copy_template("anchoring", folder)
    cut(folder, 3)
    freeze(load_study(folder), folder, datetime.now(UTC))
    closing = command("simulate", folder, "--raters", N_RATERS, "--careless", 0).output
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        first, second, *_ = store.sessions.all()
        store.exclusions.exclude(first.id, "ada", "did not read", now_ms())
        judgment = next(j for j in store.records.judgments(second.id) if not j.is_practice)
        other = replace(judgment, id=None, value=judgment.value + 1, replaces=judgment.id)
        store.submissions.correct(replace(other, corrected_by="ada", reason="asked for it"))
        flow = Flow(study, store)
        decliner = flow.arrive(source="simulated", external_id="no").session
        screen = flow.screen(decliner)
        timing = Timing(now_ms(), now_ms() + 1000)
        flow.submit(decliner.id, screen.key, {"consent": "decline"}, timing, "declining")
    return folder, closing


@pytest.fixture
def ada(counted, make_site):
    site = make_site(StudyFolders(parent=str(counted[0].parent)))
    return site.owner()


def rows_of(visitor, path):
    visitor.get(path, format="csv")
    return list(csv.DictReader(io.StringIO(visitor.response.content.decode("utf-8-sig"))))


def fact(visitor, name):
    return int(re.search(rf"<dt>{name}</dt><dd[^>]*>([\d,]+)", visitor.page)[1].replace(",", ""))


class PersonDoor(EngineAccess):
    """Lets what a simulated rater answers count as a person's."""

    def arrive(self, external_id, at_ms, language=""):
        return self.flow.arrive(external_id=external_id, source="person", at_ms=at_ms, language=language).session.id


def by_hand(folder):
    """The numbers, counted from the rows themselves."""
    with Store.open(folder / "study.db") as store:
        sessions = {session.id: session for session in store.sessions.all()}
        rows = list(store.records.judgments(include_corrected=True))
    replaced = {row.replaces for row in rows}
    current = [row for row in rows if row.id not in replaced]
    judgments = [row for row in current if not row.is_practice]
    kept = [row for row in judgments if not sessions[row.session_id].is_excluded]
    assert len(rows) == len(current) + 1, "there is a correction"
    assert len(kept) < len(judgments) < len(current)
    return sessions, JudgmentCounts(len(judgments), len(kept), len(current) - len(judgments)), judgments, kept


def test_simulate_and_status_count_alike(counted):
    folder, closing = counted
    sessions, counts, _, kept = by_hand(folder)
    assert f"{counts.judgments:,} judgments and {counts.practice:,} practice judgments stored" in closing
    status = json.loads(command("status", folder, "--json").stdout)
    expected = {"judgments": counts.judgments, "counted": counts.counted, "practice": counts.practice}
    assert status["judgments"] == {"simulated": expected}
    for state in ("completed", "declined"):
        n = sum(cell[state] for cell in status["sessions"]["simulated"])
        assert n == sum(session.state == state for session in sessions.values())
    n_raters = {
        item: len({row.session_id for row in kept if row.item_id == item}) for item in (r.item_id for r in kept)
    }
    assert status["raters_per_item"]["least"] == status["raters_per_item"]["most"] == N_RATERS - 1
    assert set(n_raters.values()) == {N_RATERS - 1}
    words = " ".join(command("status", folder).output.split())
    n_valid = sum(session.state == "completed" and not session.is_excluded for session in sessions.values())
    assert status["session_counts"]["simulated"]["valid"] == n_valid == N_RATERS - 1
    assert f"finished and counted: {n_valid} of {status['raters_wanted']} wanted; 1 excluded" in words
    assert f"{counts}; {counts.counted:,} count in the analysis" in words


def test_the_export_counts_alike(counted, tmp_path):
    folder, _ = counted
    sessions, counts, judgments, _ = by_hand(folder)
    with Store.open(folder / "study.db") as store:
        written = export_study(load_study(folder), store, tmp_path / "out")
        of_session = store.counts.judgments_by_session()
    assert written.n_rows["judgments.csv"] == counts.judgments
    assert written.manifest["files"]["judgments.csv"]["n_rows"] == counts.judgments
    assert written.n_practice_left_out == counts.practice
    assert written.n_raters == len({row.session_id for row in judgments}) == N_RATERS
    assert (written.n_excluded, written.states) == (1, {"completed": N_RATERS, "declined": 1})
    with (tmp_path / "out" / "sessions.csv").open(encoding="utf-8-sig") as file:
        exported = {row["session"]: int(row["n_judgments"]) for row in csv.DictReader(file)}
    assert exported == {
        f"S{session.ordinal:04d}": of_session.get(session.id, JudgmentCounts()).judgments
        for session in sessions.values()
    }


def test_the_report_counts_alike(counted):
    folder, _ = counted
    _, counts, judgments, kept = by_hand(folder)
    with Store.open(folder / "study.db") as store:
        report = analyse(load_study(folder), store, n_resamples=20)
    assert report.provenance["n_judgments"] == counts.counted
    assert report.provenance["n_raters"] == len({row.session_id for row in kept}) == N_RATERS - 1
    left_out = {row[0]: row[1:] for row in report.summary.exclusions.rows}
    assert left_out["judgments on practice items"] == ("", counts.practice)
    n_excluded = N_RATERS - report.provenance["n_raters"]
    excluded = left_out["judgments of raters excluded by quality rules or by hand"]
    assert excluded == (n_excluded, len(judgments) - len(kept))
    assert left_out["declined to take part"] == (1, "")
    assert sum(row[-1] for row in report.summary.balance.rows) == counts.counted


def test_the_dashboard_counts_alike(counted, ada):
    folder, _ = counted
    sessions, counts, judgments, kept = by_hand(folder)
    ada.get("/studies/anchoring/")
    assert fact(ada, "arrived") == len(sessions)
    assert (fact(ada, "declined"), fact(ada, "excluded")) == (1, 1)
    assert fact(ada, "judgments") == counts.judgments
    assert fact(ada, "judgments that count") == counts.counted
    assert fact(ada, "practice judgments") == counts.practice
    n_valid, n_finished = fact(ada, "finished and counted"), fact(ada, "finished")
    assert n_valid == n_finished - 1, "one who finished is excluded"
    assert re.search(r"cost of \d+ finished sessions if raters were human", ada.text), (
        "simulated raters are paid nothing"
    )
    assert "spent" not in ada.text
    ada.get("/studies/anchoring/control")
    assert re.findall(r'scope="col" class="count">([^<]*)', ada.page)[:3] == [
        "Finished and counted",
        "Active, not excluded",
        "Excluded",
    ]
    cells = re.findall(r'<td class="count">(\d+)</td>', ada.page)
    assert sum(map(int, cells[::3])) == n_valid
    assert fact(ada.get("/"), "judgments") == counts.judgments
    assert "spent" not in ada.text
    for row in rows_of(ada, "/studies/anchoring/raters"):
        ordinal = int(row["rater"][1:])
        own = [j for j in judgments if sessions[j.session_id].ordinal == ordinal]
        assert int(row["judgments"]) == len(own)
        assert fact(ada.get(f"/studies/anchoring/raters/{ordinal}"), "judgments") == len(own)
    for row in rows_of(ada, "/studies/anchoring/items"):
        raters = {j.session_id for j in kept if j.item_id == row["item"]}
        assert int(row["done"]) == len(raters)
        ada.get(f"/studies/anchoring/items/{row['item']}")
        assert f"{len(raters)} raters judged it (simulated raters)" in ada.text
        of_criteria = re.findall(r'<tr><th scope="row">[^<]*</th><td>[^<]*</td><td class="count">(\d+)</td>', ada.page)
        assert of_criteria
        assert {int(n) for n in of_criteria} == {len(raters)}


def test_people_are_not_mixed_with_simulated_raters(tmp_path, make_site):
    """The list of items once showed one rater where the item's own page showed 73."""
    folder = tmp_path / "studies" / "likert"
    copy_template("likert", folder)
    cut(folder, 2)
    freeze(load_study(folder), folder, datetime.now(UTC))
    command("simulate", folder, "--raters", 4, "--careless", 0)
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        truth, habits = draw_truth(study, 1), Habits(careless_share=0)
        simulate(study, PersonDoor(Flow(study, store)), truth, n_raters=1, seed=9, start_ms=now_ms(), habits=habits)
    ada = make_site(StudyFolders(parent=str(folder.parent))).owner()
    rows = rows_of(ada, "/studies/likert/items")
    assert {int(row["done"]) for row in rows} == {1}
    for row in rows:
        ada.get(f"/studies/likert/items/{row['item']}")
        assert "1 rater judged it." in ada.text
        assert set(re.findall(r'</td><td class="count">(\d+)</td><td>', ada.page)) == {"1"}
    assert "judged by 1 rater" in command("status", folder).output
    numbers = {}
    for group, n in (("simulated", 4), ("people", 1)):
        ada.get("/studies/likert/", source=group)
        assert fact(ada, "arrived") == n
        numbers[group] = {row["rater"] for row in rows_of(ada, "/studies/likert/raters")}
        assert len(numbers[group]) == n, "what was chosen on one tab holds on the others"
        assert {int(row["done"]) for row in rows_of(ada, "/studies/likert/items")} == {n}
        assert {row["rater"] for row in rows_of(ada, "/studies/likert/quality")} <= numbers[group]
        ada.get("/studies/likert/quality")
        assert set(re.findall(r'/items/[^"]+">[^<]+</a></th><td class="count">(\d+)</td>', ada.page)) == {str(n)}
        assert {row["rater"] for row in rows_of(ada, "/studies/likert/texts")} <= numbers[group]
    assert not numbers["simulated"] & numbers["people"]


def test_every_rater_and_item_of_live_conversations_has_a_page(tmp_path, make_site):
    """Turns of a chat name no system, those of an arena do; the pages of raters who talked once failed on it."""
    for name in ("chat", "arena"):
        folder = tmp_path / "studies" / name
        copy_template(name, folder)
        freeze(load_study(folder), folder, datetime.now(UTC))
        command("simulate", folder, "--raters", 1, "--careless", 0)
    ada = make_site(StudyFolders(parent=str(tmp_path / "studies"))).owner()
    for name in ("chat", "arena"):
        (rater,) = rows_of(ada, f"/studies/{name}/raters")
        assert ada.get(f"/studies/{name}/raters/1").status == 200
        assert "Conversations" in ada.text
        judged = [row["item"] for row in rows_of(ada, f"/studies/{name}/items") if row["done"] == "1"]
        assert judged
        for item in judged:
            assert ada.get(f"/studies/{name}/items/{item}").status == 200
        assert int(rater["judgments"]) > 0
