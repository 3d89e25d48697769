"""Quality rules at work: what a session does against them and what follows."""

import pytest

from dialometer.errors import AssignmentError
from dialometer.quality.straight_lining import visible_answer


def findings(person):
    return [
        (logged.finding.rule, logged.finding.action) for logged in person.flow.store.records.findings(person.session_id)
    ]


def test_gold_below_four_excludes_and_reopens_the_places(shorten, arrive):
    study = shorten("avatar", 60)
    person = arrive(study)
    gold = set(next(rule for rule in study.spec.quality if rule.rule == "gold").gold_ids(study))
    while person.screen.kind != "more":
        if person.screen.kind == "item" and not person.screen.is_practice:
            person.given["fit"] = 2 if person.screen.item.id in gold else 3
        person.submit()
    assert ("gold", "exclude") in findings(person)
    assert findings(person).count(("gold", "exclude")) == 1
    assert person.session.is_excluded
    assert person.session.state == "active"
    free = sum(
        counts.get("reserved", 0) + counts.get("done", 0) for counts in person.flow.store.counts.item_counts().values()
    )
    assert free == 0


def test_good_gold_passes(shorten, arrive):
    person = arrive(shorten("avatar", 60))
    person.walk_to("more")
    assert findings(person) == []


def test_attention_checks(shorten, arrive):
    study = shorten("likert", 12)
    check = next(rule for rule in study.spec.quality if rule.rule == "attention").checks[0]
    good, bad = arrive(study, "good"), arrive(study, "bad")
    good.given[check.name] = check.answer
    wrong = study.spec.scales[check.scale]
    bad.given[check.name] = next(v for v in (wrong.categories() or []) if v != check.answer)
    good.finish()
    bad.finish()
    assert ("attention", "exclude") not in findings(good)
    assert ("attention", "exclude") in findings(bad)
    assert bad.session.is_excluded


def test_comprehension_gives_a_second_chance_then_screens_out(shorten, arrive):
    study = shorten("acute", 12)
    rule = next(rule for rule in study.spec.quality if rule.rule == "comprehension")
    right = {q.name: q.answer for q in rule.questions}
    wrong = {q.name: next(o for o in study.spec.scales[q.scale].options if o != q.answer) for q in rule.questions}
    person = arrive(study, "second")
    person.walk_to("comprehension")
    person.submit(wrong)
    assert person.screen.attempt == 2
    person.submit(right)
    assert person.screen.kind in ("item", "attention")
    other = arrive(study, "never")
    other.walk_to("comprehension")
    other.submit(wrong)
    other.submit(wrong)
    assert other.session.state == "screened_out"
    first = arrive(study, "first")
    first.walk_to("comprehension")
    first.submit(right)
    assert first.screen.kind == "item"


def test_session_and_screen_times(shorten, arrive):
    study = shorten("strategies", 31)
    person = arrive(study)
    while person.screen.kind != "done":
        person.submit(seconds=2)
    assert ("session_time", "exclude") in findings(person)
    patient = arrive(study, "patient")
    while patient.screen.kind != "done":
        patient.submit(seconds=60)
    assert "session_time" not in {rule for rule, _ in findings(patient)}


def test_straight_lining_is_seen_in_values_and_in_sides(shorten, arrive):
    study = shorten("anchoring", 8)
    person = arrive(study)
    person.finish()
    assert ("straight_lining", "flag") in findings(person)
    assert not person.session.is_excluded


def test_screening_ends_before_consent(shorten, arrive):
    screening = (
        "screening:\n  - {name: adult, text: Are you 18 or older, scale: grown, accept: ['yes']}\nscales:\n"
        "  grown: {type: choice, options: ['yes', 'no']}\n"
    )
    study = shorten("anchoring", replace={"scales:\n": screening})
    person = arrive(study, "child", adult="no")
    assert person.screen.kind == "screening"
    person.submit()
    assert person.session.state == "screened_out"
    assert findings(person) == [("screening", "screen_out")]
    grown = arrive(study, "grown")
    grown.submit()
    assert grown.screen.kind == "consent"


def test_blocked_raters_are_refused(shorten, arrive):
    rule = "quality:\n  - {rule: block_list, raters: [bad-one]}\n"
    study = shorten("anchoring", replace={"quality:\n": rule})
    with pytest.raises(AssignmentError, match="not open to you"):
        arrive(study, "bad-one")
    assert arrive(study, "good-one").screen.kind == "consent"


def test_the_place_on_the_screen_counts_for_choices_between_systems():
    assert visible_answer("blue", 2) == visible_answer("green", 2) == 2
    assert visible_answer("blue", 0) != visible_answer("green", 0)
    assert visible_answer(4, 2) == 4
    assert visible_answer(["a", "b"], 0) == visible_answer(["a", "b"], 1)
