"""The dashboard's page of disagreements."""

from datetime import UTC, datetime

from dialometer.design.load import load_study
from dialometer.design.lock import freeze
from dialometer.web.dashboard.running_studies import StudyFolders

PAGE = "/studies/likert/adjudication"


def test_what_waits_is_listed_and_editors_get_links(studies_folder, make_site):
    place = studies_folder / "likert"
    text = (place / "study.yaml").read_text()
    (place / "study.yaml").write_text(f"{text}\nadjudication: {{raters: 2}}\n")
    freeze(load_study(place), place, datetime.now(UTC), is_new_version=True)
    site = make_site(StudyFolders(parent=str(studies_folder)))
    owner = site.owner()
    owner.get(PAGE, adjudicator="Ana Lee")
    assert owner.status == 200, owner.text
    assert "items wait for an adjudicator" in owner.text
    assert "/likert/adjudicate?adjudicator=Ana%20Lee" in owner.page
    viewer = site.member("viewer")
    viewer.get(PAGE, adjudicator="Ana Lee")
    assert "items wait for an adjudicator" in viewer.text
    assert "sig=" not in viewer.page, "a viewer makes no links"
    owner.get("/studies/anchoring/adjudication")
    assert owner.status == 404
