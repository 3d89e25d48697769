"""What is done on the command line is in the audit log of the study, and on the dashboard's page of it."""

import getpass

import pytest
from dashboard_site import Site

from commands import invoke
from dialometer.design.templates import copy_template
from dialometer.storage.access.audit_log import AuditLog
from dialometer.storage.store import Store
from dialometer.web.dashboard.running_studies import StudyFolders

WHO = f"{getpass.getuser()} (command line)"


@pytest.fixture
def study(tmp_path):
    folder = tmp_path / "studies" / "likert"
    copy_template("likert", folder)
    return folder


def logged(database):
    with Store.open(database) as store:
        return [(entry.made_by, entry.what, entry.study) for entry in AuditLog(store.database).newest(20)]


def test_commands_are_logged_where_the_study_has_a_database(study, tmp_path):
    invoke("freeze", study)
    assert not (study / "study.db").exists(), "nothing is made for the log alone"
    invoke("simulate", study, "--raters", "4", "--seed", "1")
    invoke("control", study, "pause", "--reason", "lunch")
    invoke("export", study, "--out", tmp_path / "out")
    invoke("check", study)
    invoke("status", study)
    done = ["downloaded the data", "paused the study", "ran simulated raters"]
    assert logged(study / "study.db") == [(WHO, what, "likert") for what in done], "looking is not logged"


def test_the_page_shows_both_logs_and_a_draft_is_logged_above_it(study):
    site = Site(StudyFolders(parent=str(study.parent)))
    try:
        ada = site.owner()
        invoke("freeze", study)
        invoke("control", study, "start", "--reason", "now")
        ada.get("/audit")
        assert f"{WHO} froze the study version 1" in ada.text
        assert f"{WHO} started the study now likert" in ada.text
        assert "ada made the account owner" in ada.text
        ada.get("/audit", dashboard_language="de")
        assert f"{WHO} fror die Studie ein" in ada.text
    finally:
        site.close()


def test_a_withdrawal_is_logged_without_its_code(study):
    invoke("simulate", study, "--raters", "2", "--seed", "1")
    with Store.open(study / "study.db") as store:
        code = store.withdrawals.code(next(iter(store.sessions.all())).id, "token")
    invoke("privacy", study, "--withdraw", code, "--yes")
    assert logged(study / "study.db")[0][1] == "withdrew a rater"
    with Store.open(study / "study.db") as store:
        assert AuditLog(store.database).newest(1)[0].detail == "", "the log stays when the rater is gone"
