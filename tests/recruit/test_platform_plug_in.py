"""A recruiting platform of another package, as docs/how-to/add-a-platform.md describes it, from the link to the report."""

import json
from typing import ClassVar

import pytest
import yaml
from starlette.testclient import TestClient
from taking_part import Site

from dialometer.design.load import load_study, read_study
from dialometer.recruit.platform import PlatformApi, PlatformSubmission
from dialometer.recruit.platforms import PLATFORMS
from dialometer.web.server.settings import Settings
from dialometer.web.server.turns import TurnTakingStore
from dialometer.web.study_app import create_app

URL = "https://study.example.org"


@pytest.fixture
def installed(install_page):
    install_page("add-a-platform.md", PLATFORMS)


def campus_study(make_study):
    return make_study(platform="campus", completion_code="DONE42", screen_out_code="")


def test_a_rater_arrives_finishes_and_is_sent_back(installed, make_study, dialometer):
    folder = campus_study(make_study)
    study = load_study(folder)
    store = TurnTakingStore.open(folder / "study.db")
    app = create_app(study, store, settings=Settings())
    with TestClient(app, follow_redirects=False) as client:
        site = Site(app, store, client, study)
        browser = site.browser()
        browser.arrive(panelist="panelist-7", project="J1", visit="V 9", stray="not kept")
        browser.walk_to(site, "done")
        browser.get("/s")
        back = "https://panel.example.edu/done?visit=V%209&code=DONE42"
        assert back.replace("&", "&amp;") in browser.page
        session = site.only_session()
        person = store.sessions.person(session.id)
        assert (session.state, person.platform, person.external_id) == ("completed", "campus", "panelist-7")
        assert person.params == {"project": "J1", "visit": "V 9"}
        assert site.browser().get("/", project="J1").status == 403, "a link that names nobody"
    store.close()

    dialometer("export", folder, "--out", folder / "data")
    manifest = json.loads((folder / "data" / "export.json").read_text())
    assert manifest["study"]["recruited_through"] == "Campus Panel"
    assert "recruited through Campus Panel" in (folder / "data" / "data_dictionary.md").read_text()
    assert "panelist-7" not in "".join(path.read_text() for path in (folder / "data").iterdir())
    dialometer("report", folder, "--out", folder / "report", "--format", "markdown", "--resamples", "100")
    assert "Campus Panel" in (folder / "report" / "report.md").read_text()


def test_check_schema_and_link_know_it(installed, make_study, dialometer):
    folder = campus_study(make_study)
    dialometer("check", folder)
    assert '"campus"' in dialometer("schema")
    entries = json.loads(dialometer("recruit", "link", folder, "--url", URL, "--json"))
    assert entries["link"] == f"{URL}/?panelist=[ID]&project=[PROJECT]&visit=[VISIT]"
    assert (entries["rater"], entries["kept"]) == ("panelist", ["project", "visit"])
    assert entries["filters"] == {"first_languages": "mother tongue"}
    dialometer("recruit", "campus", "publish", folder, fails=True)  # it has no API


class RecordingApi(PlatformApi):
    """An API that notes what it is asked to do."""

    token_variable = "CAMPUS_TOKEN"
    asked: ClassVar = []

    @classmethod
    def from_environment(cls):
        return cls(client=None)

    def __exit__(self, *_):
        pass

    def create_draft(self, payload):
        self.asked.append(("draft", payload))
        return {"id": "campus-1"}

    def transition(self, study_id, action):
        self.asked.append((action, study_id))
        return {"status": "open"}

    def submissions(self, study_id):
        return iter([PlatformSubmission("V1", "P1", "AWAITING REVIEW")])

    def approve(self, submission_ids):
        self.asked.append(("approve", list(submission_ids)))

    request_return = set_up_bonuses = pay_bonuses = None


def test_a_platform_with_an_api_has_commands(installed, make_study, dialometer, monkeypatch):
    platform = PLATFORMS.get("campus")
    monkeypatch.setattr(platform, "api", RecordingApi)
    monkeypatch.setattr(platform, "draft_of", lambda self, study, address, **_: {"where": address})
    monkeypatch.setattr(RecordingApi, "asked", [])
    folder = campus_study(make_study)
    dialometer("recruit", "campus", "draft", folder, "--url", URL, "--live")
    assert json.loads((folder / "campus.json").read_text())["study_id"] == "campus-1"
    dialometer("recruit", "campus", "publish", folder, "--live")
    rows = json.loads(dialometer("recruit", "campus", "submissions", folder, "--json"))
    assert [(row["submission"], row["advice"]) for row in rows] == [("V1", "look")]
    assert "Campus Panel" in dialometer("recruit", "campus", "--help")
    assert RecordingApi.asked == [("draft", {"where": URL}), ("PUBLISH", "campus-1")]


def test_without_the_package_the_platform_is_unknown(make_study):
    folder = campus_study(make_study)
    _, problems = read_study(folder)
    (problem,) = [problem for problem in problems if problem.field == "recruitment.platform"]
    assert "no recruiting platform 'campus'" in problem.message
    spec = yaml.safe_load((folder / "study.yaml").read_text())
    spec["recruitment"]["platform"] = "prolifc"
    (folder / "study.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    _, problems = read_study(folder)
    assert "did you mean 'prolific'?" in str(problems)
