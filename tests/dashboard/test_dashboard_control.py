"""Steering from the dashboard: who comes in, who goes on, and what is written down."""

import pytest
from dashboard_cases import KEY, cut

from dialometer.design.templates import copy_template
from dialometer.flow.engine import now_ms
from dialometer.web.dashboard.running_studies import StudyFolders


@pytest.fixture
def open_site(make_site, tmp_path):
    """A study with two conditions and nobody in it yet."""
    folder = tmp_path / "anchoring"
    copy_template("anchoring", folder)
    cut(folder, 2)
    return make_site(StudyFolders((str(folder),)))


def arrive(site, name):
    body = {"external_id": name, "source": "simulated"}
    return site.client.post("/api/v1/sessions", json=body, headers={"authorization": f"Bearer {KEY}"})


def decide(ada, **form):
    ada.post("/studies/anchoring/control", {"reason": "because", **form})
    return ada


def send(site, token, screen, answers):
    head = {"authorization": f"Bearer {token}"}
    body = {"screen": screen, "token": f"{screen}-1", "answers": answers, "shown_at_ms": now_ms()}
    return site.client.post("/api/v1/session/submissions", json=body, headers=head)


def test_pausing_keeps_newcomers_out_and_lets_raters_go_on(open_site):
    ada = open_site.owner()
    token = arrive(open_site, "a").json()["session_token"]
    assert "paused" in decide(ada, what="pause").text
    refused = arrive(open_site, "b")
    assert (refused.status_code, refused.json()["reason"]) == (403, "paused")
    sent = send(open_site, token, "consent", {"consent": "agree"})
    assert sent.json().get("outcome") == "stored", sent.text
    assert arrive(open_site, "a").status_code in (200, 201), "whoever was there may come back"
    assert "running" in decide(ada, what="start").text
    assert arrive(open_site, "b").status_code in (200, 201)
    decide(ada, what="close", reason="enough")
    assert arrive(open_site, "c").json()["reason"] == "closed"
    log = [(one.kind, one.value, one.made_by, one.reason) for one in open_site.store("anchoring").control.log()]
    assert log == [
        ("study", "paused", "ada", "because"),
        ("study", "running", "ada", "because"),
        ("study", "closed", "ada", "enough"),
    ]
    assert "by ada: enough" in ada.text


def test_one_cell_can_be_closed_and_given_a_quota(open_site):
    ada = open_site.owner()
    decide(ada, what="shut", cell="0")
    decide(ada, what="quota", cell="1", quota="1")
    decide(ada, what="quota", cell="2", quota="0")
    for n in range(6):
        arrive(open_site, f"r{n}")
    cells = [session.draw.cell for session in open_site.store("anchoring").sessions.all()]
    assert cells.count(0) == 0
    assert cells.count(1) == 1
    assert cells.count(2) == 0
    assert cells.count(3) == 5
    decide(ada, what="open", cell="0")
    arrive(open_site, "one-more")
    assert open_site.store("anchoring").sessions.all()[-1].draw.cell == 0


def test_the_quota_of_the_study_can_be_changed_and_lifted(open_site):
    ada = open_site.owner()
    decide(ada, what="quota", quota="1")
    assert arrive(open_site, "a").status_code in (200, 201)
    assert arrive(open_site, "b").json()["reason"] == "full"
    assert "<strong>1</strong>, set here" in ada.get("/studies/anchoring/control").page
    said = "The study file asks for 77 raters, and the results go by that."
    assert said in ada.text, "reports say '1 of 77 raters'"
    decide(ada, what="quota", quota="")
    assert said not in ada.get("/studies/anchoring/control").text
    assert arrive(open_site, "b").status_code in (200, 201)


@pytest.mark.parametrize(
    "form",
    [
        {"what": "nothing"},
        {"what": "quota", "quota": "-3"},
        {"what": "quota", "quota": "many"},
        {"what": "quota", "cell": "99", "quota": "3"},
        {"what": "shut"},
        {"what": "start", "cell": "1"},
    ],
)
def test_what_makes_no_sense_is_refused(open_site, form):
    ada = open_site.owner()
    assert decide(ada, **form).status == 422
    assert open_site.store("anchoring").control.log() == []


def test_wizards_find_their_link(make_site, tmp_path):
    import yaml

    copy_template("chat", tmp_path / "oz")
    path = tmp_path / "oz" / "study.yaml"
    spec = yaml.safe_load(path.read_text())
    for system in spec["systems"]:
        system["agent"] = {"type": "wizard"}
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    site = make_site(StudyFolders((str(tmp_path / "oz"),)), wizard_key="secret")
    ada = site.owner()
    assert 'href="/wizard?key=secret"' in ada.get("/studies/oz/control").page
    assert "secret" not in site.member("viewer").get("/studies/oz/control").page
    assert site.client.get("/wizard", params={"key": "secret"}).status_code == 200


def test_wizards_of_several_processes_know_each_other(tmp_path):
    import yaml

    from dialometer.web.dashboard.running_studies import RunningStudies
    from dialometer.web.server.settings import Settings

    copy_template("chat", tmp_path / "oz")
    path = tmp_path / "oz" / "study.yaml"
    spec = yaml.safe_load(path.read_text())
    for system in spec["systems"]:
        system["agent"] = {"type": "wizard"}
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    folders, settings = StudyFolders((str(tmp_path / "oz"),)), Settings(runtime_folder=str(tmp_path))
    processes = [RunningStudies(folders, settings) for _ in range(2)]
    one, other = (studies.running("oz").store.wizards for studies in processes)
    assert one.sign_in("secret", 1) == "Wizard 1"
    assert other.name_of("secret") == "Wizard 1"
    for studies in processes:
        studies.close()
