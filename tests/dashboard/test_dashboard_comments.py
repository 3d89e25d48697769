"""Co-authors comment on a study and its parts, and owners see who did what."""

import csv
import io

from dialometer.design.load import load_study
from dialometer.design.lock import fingerprint
from dialometer.storage.access.audit_log import AuditLog
from dialometer.web.dashboard.pages.form import STEPS
from dialometer.web.dashboard.pages.together.comments import PARTS

ATTACK = "<script>alert(1)</script> [link](javascript:alert(1)) **bold**"


def test_co_authors_talk_about_a_draft(site, studies_folder):
    before = fingerprint(load_study(studies_folder / "draft"))
    files = sorted(path.name for path in (studies_folder / "draft").iterdir())
    ada, bob = site.owner(), site.member("viewer", "bob")
    ada.get("/studies/draft/form/criteria")
    ada.post("/studies/draft/comments", {"part": "form/criteria", "back": "form/criteria", "text": "Too many scales?"})
    assert ada.response.url.path == "/dashboard/studies/draft/form/criteria"
    assert "Too many scales?" in ada.text
    assert "Too many scales?" not in ada.get("/studies/draft/form/design").text
    bob.get("/studies/draft/comments")
    assert "ada" in bob.text
    assert "Criteria and scales" in bob.text
    number = site.app._dashboard.dashboard.comments.of_study("draft")[0].id
    bob.post("/studies/draft/comments", {"part": "", "reply_to": str(number), "text": ATTACK})
    assert "<script>alert" not in bob.page
    assert "**bold**" in bob.text, "plain text"
    bob.post(f"/studies/draft/comments/{number}/resolve", {"do": "resolve"})
    assert "No open comments" in bob.text
    assert "resolved by bob" in bob.get("/studies/draft/comments", state="all").text
    assert "Too many scales?" not in ada.get("/studies/draft/form/criteria").text
    ada.post(f"/studies/draft/comments/{number}/resolve", {"do": "open"})
    assert "open (1)" in ada.text
    assert fingerprint(load_study(studies_folder / "draft")) == before, "no part of the study"
    assert sorted(path.name for path in (studies_folder / "draft").iterdir()) == files


def test_comments_stay_in_their_study(site):
    ada = site.owner()
    ada.post("/studies/likert/comments", {"part": "results", "text": "only for likert"})
    number = site.app._dashboard.dashboard.comments.of_study("likert")[0].id
    assert ada.post(f"/studies/anchoring/comments/{number}/resolve").status == 409
    assert ada.post("/studies/anchoring/comments", {"part": "", "reply_to": str(number), "text": "x"}).status == 409
    assert ada.post("/studies/nothing/comments", {"part": "", "text": "x"}).status == 404
    assert ada.post("/studies/likert/comments", {"part": "elsewhere", "text": "x"}).status == 422
    assert ada.post("/studies/likert/comments", {"part": "", "text": "  "}).status == 409
    gil = site.member("guest", "gil")
    site.accounts.set_study_role(site.accounts.named("gil").id, "anchoring", "viewer")
    assert gil.get("/studies/likert/comments").status == 403
    assert gil.post("/studies/likert/comments", {"part": "", "text": "x"}).status == 403
    assert gil.get("/studies/anchoring/comments").status == 200
    assert "only for likert" not in gil.get("/studies/anchoring/comments", state="all").text
    assert "only for likert" not in site.visitor().client.get("/likert/").text


def test_every_step_can_be_commented_on():
    assert {f"form/{step}" for step in STEPS} <= set(PARTS)


def test_owners_see_who_did_what(site):
    ada = site.owner()
    site.visitor().sign_in("ada", "not the password")
    site.visitor().sign_in("nobody-such", "correct horse battery")
    ada.post("/studies/likert/control", {"what": "pause", "reason": "lunch"})
    rater = ada.get("/studies/likert/raters/1")
    assert rater.status == 200
    ada.post("/studies/likert/raters/1/decision", {"what": "exclude", "reason": "too quick"})
    ada.get("/studies/likert/export.zip")
    ada.get("/studies/likert/study.zip")
    ada.post("/studies/likert/review")
    ada.get("/audit")
    for words in (
        "paused the study",
        "lunch",
        "excluded a rater",
        "rater 1: too quick",
        "downloaded the data",
        "downloaded the study's files",
        "made a link for reviewers",
        "failed to sign in",
        "made the account",
    ):
        assert words in ada.text, words
    assert "nobody-such" not in ada.text, "what a stranger types may be a password"
    assert "paused the study" in ada.get("/audit", only_what="paused the study").text
    rows = list(csv.DictReader(io.StringIO(ada.get("/audit", format="csv", only_study="likert").page.lstrip("\ufeff"))))
    assert {row["study"] for row in rows} == {"likert"}
    assert {row["by"] for row in rows} == {"ada"}
    assert AuditLog(site.accounts.database).newest(1)[0].what == "downloaded the audit log"


def test_signing_in_and_out_is_logged_and_no_secret_is(site):
    site.owner()
    bob = site.member("editor", "bob")
    again = site.visitor().sign_in("bob")
    again.post("/logout", {})
    entries = AuditLog(site.accounts.database).newest(50)
    assert [entry.what for entry in entries if entry.made_by == "bob"][:2] == ["signed out", "signed in"]
    secrets = (bob.client.cookies["dialometer_dashboard"], "correct horse battery")
    assert not [entry for entry in entries for secret in secrets if secret in entry.detail]
    assert bob.get("/audit").status == 403
