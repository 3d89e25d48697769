"""Every command against a server that follows the documented API: drafts, publishing, submissions, bonuses."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from prolific_on_loopback import TOKEN

from dialometer.design.load import load_study
from dialometer.errors import StudyError
from dialometer.flow.engine import Flow, now_ms
from dialometer.flow.simulated import view_of
from dialometer.flow.submissions import Timing
from dialometer.recruit.api_client import ApiClient
from dialometer.recruit.platform import PlatformError, UnknownOutcome
from dialometer.recruit.platforms.prolific import Prolific, ProlificApi
from dialometer.simulate.answering import answer_screen
from dialometer.simulate.rater import Habits, draw_rater
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

URL = "https://study.example.org"


def take_part(folder, participant, submission, *, leaves=False):
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        flow = Flow(study, store)
        params = {"SESSION_ID": submission, "STUDY_ID": "study0001"}
        session = flow.arrive(platform="prolific", external_id=participant, params=params).session
        rater, truth = draw_rater(2, 3, Habits(careless_share=0)), draw_truth(study, 3)
        for _ in range(80):
            session = store.sessions.get(session.id)
            screen = flow.screen(session)
            if screen.kind == "done" or (leaves and screen.kind == "item"):
                return session
            at = now_ms()
            flow.submit(
                session.id,
                screen.key,
                answer_screen(study, truth, rater, view_of(screen)),
                Timing(at, at),
                screen.key + session.id,
            )
    raise AssertionError("no end")


def submission(identity, participant, status="AWAITING REVIEW", code="C0MPLETE"):
    return {
        "id": identity,
        "participant_id": participant,
        "study_id": "study0001",
        "status": status,
        "study_code": code,
        "started_at": "2026-11-15T10:00:00Z",
        "time_taken": 300,
    }


# drafts


def test_a_dry_run_needs_no_token_and_sends_nothing(make_study, dialometer, loopback, monkeypatch):
    monkeypatch.delenv("PROLIFIC_TOKEN")
    folder = make_study()
    told = json.loads(dialometer("recruit", "prolific", "draft", folder, "--url", URL, "--json"))
    assert not told["is_live"]
    assert told["would_send"]["total_available_places"] == 15
    assert "dry run" in dialometer("recruit", "prolific", "draft", folder, "--url", URL)
    assert loopback.platform.seen == []
    assert not (folder / "prolific.json").exists()


def test_a_draft_says_what_the_study_file_says(make_study, dialometer, loopback):
    folder = make_study()
    dialometer("recruit", "prolific", "draft", folder, "--url", URL + "/", "--live")
    made = loopback.platform.studies["study0001"]
    assert made["name"] == "Which of two conversations is better?"
    assert made["external_study_url"] == (
        URL + "/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    )
    assert (made["reward"], made["estimated_completion_time"], made["total_available_places"]) == (450, 18, 15)
    assert [(code["code"], code["code_type"]) for code in made["completion_codes"]] == [
        ("C0MPLETE", "COMPLETED"),
        ("SCR33NED", "OTHER"),
    ]
    assert made["status"] == "UNPUBLISHED"
    assert "nonsensical" not in made["description"], "what the study checks is not told to raters"
    assert made["description"].startswith(made["name"])
    assert "already" in dialometer("recruit", "prolific", "draft", folder, "--url", URL, "--live", fails=True)
    dialometer("recruit", "prolific", "publish", folder)
    assert made["status"] == "UNPUBLISHED", "a dry run publishes nothing"
    for verb, status in (("publish", "ACTIVE"), ("pause", "PAUSED"), ("start", "ACTIVE")):
        told = json.loads(dialometer("recruit", "prolific", verb, folder, "--live", "--json"))
        assert told["status"] == status


def test_screened_out_raters_can_be_paid_their_share(make_study):
    study = load_study(make_study(screen_out_pay_cents=60))
    codes = Prolific(study.spec.recruitment).draft_of(study, URL, minutes=5)["completion_codes"]
    assert codes[1]["code_type"] == "FIXED_SCREENOUT"
    assert codes[1]["actions"] == [{"action": "FIXED_SCREEN_OUT_PAYMENT", "fixed_screen_out_reward": 60, "slots": 15}]


def test_everything_a_draft_lacks_is_told_at_once(make_study):
    study = load_study(make_study(platform="link", completion_code="", screen_out_code="", pay_cents=0, quota=None))
    with pytest.raises(StudyError) as raised:
        Prolific(study.spec.recruitment).draft_of(study, "http://127.0.0.1:8000", minutes=5)
    assert {problem.field for problem in raised.value.problems} == {
        "recruitment.platform",
        "recruitment.completion_code",
        "recruitment.pay_cents",
        "recruitment.quota",
        "recruitment.screen_out_code",
        "",
    }


# submissions


def test_submissions_stand_beside_sessions(make_study, dialometer, loopback):
    folder = make_study()
    dialometer("recruit", "prolific", "draft", folder, "--url", URL, "--live")
    finished = take_part(folder, "p1", "s1")
    assert finished.state == "completed"
    left = take_part(folder, "p2", "s2", leaves=True)
    excluded = take_part(folder, "p3", "s3")
    take_part(folder, "p4", "s4")
    with Store.open(folder / "study.db") as store:
        store.exclusions.exclude(excluded.id, "ana", "too fast", now_ms())
    entered = {"p1": "C0MPLETE", "p2": "C0MPLETE", "p3": "C0MPLETE", "p4": "WR0NG", "p9": "C0MPLETE"}
    for number, (who, code) in enumerate(entered.items(), start=1):
        loopback.platform.submissions[f"s{number}"] = submission(f"s{number}", who, code=code)
    loopback.platform.submissions["s6"] = submission("s6", "p6", status="RETURNED", code="")
    rows = json.loads(dialometer("recruit", "prolific", "submissions", folder, "--json"))
    assert [(row["submission"], row["advice"]) for row in rows] == [
        ("s1", "approve"),
        ("s2", "look"),
        ("s3", "look"),
        ("s4", "look"),
        ("s5", "look"),
        ("s6", "nothing"),
    ]
    assert rows[1]["state"] == left.state == "active"
    assert "S0001" in dialometer("recruit", "prolific", "submissions", folder)

    told = json.loads(dialometer("recruit", "prolific", "approve", folder, "--json"))
    assert told == {"is_live": False, "would_approve": ["s1"]}
    assert loopback.platform.submissions["s1"]["status"] == "AWAITING REVIEW"
    dialometer("recruit", "prolific", "approve", folder, "--live")
    dialometer("recruit", "prolific", "approve", folder, "--submission", "s3", "--live")
    statuses = {key: one["status"] for key, one in loopback.platform.submissions.items()}
    assert [key for key, status in statuses.items() if status == "APPROVED"] == ["s1", "s3"]

    dialometer("recruit", "prolific", "return", folder, "s2", "--reason", "Did not finish the study")
    assert loopback.platform.returns == []
    dialometer("recruit", "prolific", "return", folder, "s2", "--reason", "Did not finish the study", "--live")
    assert loopback.platform.returns == [("s2", ["Did not finish the study"])]


def test_without_a_token_an_approval_is_rehearsed_from_what_is_stored(make_study, dialometer, loopback, monkeypatch):
    monkeypatch.delenv("PROLIFIC_TOKEN")
    folder = make_study()
    take_part(folder, "p1", "s1")
    told = json.loads(dialometer("recruit", "prolific", "approve", folder, "--json"))
    assert told == {"is_live": False, "would_approve": ["s1"]}
    assert "PROLIFIC_TOKEN" in dialometer("recruit", "prolific", "approve", folder, "--live", fails=True)
    assert loopback.platform.seen == []


def test_long_lists_come_page_by_page(loopback):
    for number in range(250):
        loopback.platform.submissions[f"s{number}"] = submission(f"s{number}", f"p{number}")
    with ApiClient(loopback.address, TOKEN) as client:
        found = list(ProlificApi(client).submissions("study0001"))
        ProlificApi(client).approve([one.id for one in found])
    assert [one.id for one in found] == [f"s{number}" for number in range(250)]
    assert {one["status"] for one in loopback.platform.submissions.values()} == {"APPROVED"}
    assert sum(path == "/submissions/bulk-approve/" for _, path in loopback.platform.seen) == 3


# bonuses


def test_bonuses_are_paid_once(make_study, dialometer, loopback, tmp_path):
    folder = make_study()
    dialometer("recruit", "prolific", "draft", folder, "--url", URL, "--live")
    take_part(folder, "p1", "s1")
    take_part(folder, "p2", "s2")
    for number in (1, 2):
        loopback.platform.submissions[f"s{number}"] = submission(f"s{number}", f"p{number}")
    amounts = tmp_path / "bonuses.csv"
    amounts.write_text("rater,amount\nR0001,1.50\np2,0.75\n")
    told = json.loads(dialometer("recruit", "prolific", "bonus", folder, amounts, "--json"))
    assert (told["total"], told["bonuses"]) == ("2.25", {"p1": "1.50", "p2": "0.75"})
    assert loopback.platform.bonuses == {}
    assert "3.00" in dialometer("recruit", "prolific", "bonus", folder, amounts, "--live")
    assert loopback.platform.n_paid == {"bonus1": 1}
    assert loopback.platform.bonuses["bonus1"]["lines"] == [["p1", "1.50"], ["p2", "0.75"]]
    assert "noted as paid" in dialometer("recruit", "prolific", "bonus", folder, amounts, "--live", fails=True)
    assert loopback.platform.n_paid == {"bonus1": 1}


def test_a_payment_whose_answer_is_lost_is_never_sent_again(make_study, dialometer, loopback, tmp_path):
    folder = make_study()
    dialometer("recruit", "prolific", "draft", folder, "--url", URL, "--live")
    take_part(folder, "p1", "s1")
    loopback.platform.submissions["s1"] = submission("s1", "p1")
    amounts = tmp_path / "bonuses.csv"
    amounts.write_text("rater,amount\nR0001,1.50\n")
    with ApiClient(loopback.address, TOKEN) as client:
        made = ProlificApi(client).set_up_bonuses("study0001", {"p1": "1.50"})
        loopback.platform.plan = [(0, {})]
        with pytest.raises(UnknownOutcome, match="look in the platform"):
            ProlificApi(client).pay_bonuses(made.id)
    assert loopback.platform.n_paid == {made.id: 1}
    loopback.platform.plan = [(502, {})]
    assert "nobody knows" in dialometer("recruit", "prolific", "bonus", folder, amounts, "--live", fails=True)
    assert "noted as begun" in dialometer("recruit", "prolific", "bonus", folder, amounts, "--live", fails=True)


def test_what_is_wrong_in_a_list_is_told_with_its_line(make_study, dialometer, loopback, tmp_path):
    folder = make_study()
    take_part(folder, "p1", "s1")
    amounts = tmp_path / "bonuses.csv"
    amounts.write_text("rater,amount\nR0001,1.505\nR0009,1\nR0001,-3\nR0001,4000\n")
    told = dialometer("recruit", "prolific", "bonus", folder, amounts, fails=True)
    for line, words in ((2, "'1.505' is not an amount"), (3, "nobody called 'R0009'"), (4, "'-3'"), (5, "'4000'")):
        assert f"bonuses.csv:{line}: " in told
        assert words in told


# the platform's moods


@pytest.mark.parametrize("status", [429, 503, 500, 502])
def test_what_may_pass_is_tried_again_with_growing_pauses(loopback, status):
    pauses = []
    loopback.platform.studies["study0001"] = {"id": "study0001", "status": "ACTIVE"}
    loopback.platform.plan = [(status, {})] * 3
    with ApiClient(loopback.address, TOKEN, sleep=pauses.append) as client:
        assert ProlificApi(client).study("study0001")["status"] == "ACTIVE"
    assert pauses == [1.0, 2.0, 4.0]


def test_a_wished_pause_is_kept_as_seconds_or_as_a_moment(loopback):
    pauses = []
    loopback.platform.studies["study0001"] = {"id": "study0001", "status": "ACTIVE"}
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    loopback.platform.plan = [
        (429, {"Retry-After": "7"}),
        (429, {"Retry-After": moment}),
        (429, {"Retry-After": "soon"}),
    ]
    with ApiClient(loopback.address, TOKEN, sleep=pauses.append) as client:
        ProlificApi(client).transition("study0001", "PAUSE")
    assert pauses[0] == 7
    assert 30 < pauses[1] <= 40
    assert pauses[2] == 4
    loopback.platform.plan = [(429, {"Retry-After": "86400"})]
    with (
        ApiClient(loopback.address, TOKEN, sleep=pauses.append) as client,
        pytest.raises(PlatformError, match="86400 s"),
    ):
        ProlificApi(client).study("study0001")


def test_a_draft_is_not_made_twice_by_a_lost_answer(make_study, dialometer, loopback):
    folder = make_study()
    loopback.platform.plan = [(0, {})]
    assert "nobody knows" in dialometer("recruit", "prolific", "draft", folder, "--url", URL, "--live", fails=True)
    assert len(loopback.platform.studies) == 1
    loopback.platform.plan = [(429, {})]
    dialometer("recruit", "prolific", "draft", folder, "--url", URL, "--live")
    assert len(loopback.platform.studies) == 2, "after a 429 nothing was done, so it is sent again"


def test_a_refusal_is_told_in_the_platforms_words_without_the_token(make_study, dialometer, loopback, monkeypatch):
    folder = make_study()
    told = dialometer("recruit", "prolific", "publish", folder, "--study-id", "nobody", "--live", fails=True)
    assert "This action is not possible." in told
    monkeypatch.setenv("PROLIFIC_TOKEN", "another-secret")
    told = dialometer("recruit", "prolific", "publish", folder, "--study-id", "x", "--live", fails=True)
    assert "status 401" in told
    assert "another-secret" not in told
    assert "draft" in dialometer("recruit", "prolific", "publish", folder, fails=True)


def test_a_platform_that_is_not_there_is_told(monkeypatch):
    with (
        ApiClient("http://127.0.0.1:9", TOKEN, sleep=lambda _: None) as client,
        pytest.raises(PlatformError, match="cannot be reached"),
    ):
        ProlificApi(client).study("x")
