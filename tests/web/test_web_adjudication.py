"""Adjudicators at their own link: signed, one button, what raters answered beside the question, and nothing left at the end."""

from taking_part import form_answers

from dialometer.flow.adjudication import disputes_of, link_of
from dialometer.flow.simulated import EngineAccess
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.access.secrets import SIGNING


def disputed(make_study, site):
    """A study in which simulated raters disagree, and the link of an adjudicator."""
    there = site(make_study("rubric", n_items=3, quality=[], adjudication={"raters": 2}))
    access = EngineAccess(there.app.service.flow)
    simulate(there.study, access, draw_truth(there.study, 1), n_raters=3, seed=1, start_ms=1_800_000_000_000)
    return there, link_of(there.store.secrets.get(SIGNING, 1), "", "Ana")


def test_an_adjudicator_settles_what_raters_disagree_about(make_study, site):
    there, link = disputed(make_study, site)
    n_waiting = len(disputes_of(there.study, there.store))
    assert n_waiting
    browser = there.browser()
    browser.get(link)
    assert "Settle disagreements" in browser.page
    assert not there.store.sessions.all(source="adjudicator"), "opening a link stores nothing"
    browser.post("/adjudicate", {key: browser.fields[key] for key in ("csrf", "adjudicator", "sig")})
    screen = browser.walk_to(there, "item")
    assert "What the raters answered" in browser.page
    assert "(wanted: no)" not in browser.page, "what is wanted is not shown"
    assert all(field.said for field in screen.fields)
    while (session := there.store.sessions.all(source="adjudicator")[0]).state == "active":
        browser.send(form_answers(there.study, there.app.service.flow.screen(session)))
        assert browser.status == 200, browser.page
    assert {one.state for one in disputes_of(there.study, there.store)} == {"settled"}
    again = there.browser()
    again.get(link)
    again.post("/adjudicate", {key: again.fields[key] for key in ("csrf", "adjudicator", "sig")})
    assert again.status == 403
    assert "Nothing to settle" in again.page


def test_a_link_that_is_not_signed_opens_nothing(make_study, site, tmp_path):
    there, link = disputed(make_study, site)
    for wrong in (link.replace("Ana", "Ben"), "/adjudicate", "/adjudicate?adjudicator=Ana"):
        browser = there.browser()
        browser.get(wrong)
        assert browser.status == 403
    plain = site(make_study("likert"), tmp_path / "other.db").browser()
    plain.get("/adjudicate")
    assert plain.status == 404
