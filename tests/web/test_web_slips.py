"""Magnitudes on the page: zero is refused kindly, and a number like 1e12 is asked about once, without scripts too."""

from dialometer.scales.magnitude import in_digits


def numbers(screen, *values):
    return dict(zip([field.name for field in screen.fields], values, strict=False))


def test_a_slip_is_asked_about_once(make_study, site):
    there = site(make_study("anchoring", n_items=1))
    browser = there.browser().start()
    screen = browser.walk_to(there, "item")
    given = {**dict.fromkeys((field.name for field in screen.fields), "50"), **numbers(screen, "1e12", "0")}
    browser.send(given)
    assert browser.status == 422
    assert f"Did you mean {in_digits(1e12)}? If so, continue" in browser.page
    assert "Please enter a number above zero." in browser.page, "all complaints come together"
    asked = browser.fields["confirmed"]
    first, second = (field.name for field in screen.fields[:2])
    assert asked == f"{first}=1e12"
    # Another slip in the same place is another question.
    browser.send({**given, first: "1e13", second: "7", "confirmed": asked})
    assert browser.status == 422
    assert "above zero" not in browser.page
    browser.send({**given, first: "1e13", second: "7", "confirmed": browser.fields["confirmed"]})
    assert browser.status == 200
    stored = {judgment.value for judgment in there.store.records.judgments()}
    assert stored == {10**13, 7, 50}


def test_thousands_with_a_comma_are_asked_about(make_study, site):
    there = site(make_study("anchoring", n_items=1))
    browser = there.browser().start()
    screen = browser.walk_to(there, "item")
    given = dict.fromkeys((field.name for field in screen.fields), "50")
    first = screen.fields[0].name
    browser.send({**given, first: "1,000"})
    assert browser.status == 422
    assert "Do you mean 1000 or 1? Please write it like one of these." in browser.page
    assert "1,000" in browser.page, "what was typed stays in the field"
    browser.send({**given, first: "1000"})
    assert browser.status == 200
    assert {judgment.value for judgment in there.store.records.judgments()} == {1000, 50}


def test_a_draft_is_not_a_confirmation(make_study, site):
    there = site(make_study("anchoring", n_items=1))
    browser = there.browser().start()
    screen = browser.walk_to(there, "item")
    session = there.only_session()
    there.store.conversations.save_draft(session.id, screen.key, {screen.fields[0].name: "1e12"}, 1)
    browser.get("/s")
    assert 'value="1e12"' in browser.page
    assert "confirmed" not in browser.fields
