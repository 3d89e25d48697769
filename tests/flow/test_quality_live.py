"""Quality rules at work: what a session does against them and what follows."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dialometer.errors import AssignmentError
from dialometer.model.session import Judgment, SessionRecord
from dialometer.quality.gold import Acceptable
from dialometer.quality.straight_lining import StraightLining, visible_answer
from dialometer.quality.times import SessionTime


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


def test_every_gold_rule_is_heard_although_they_share_a_name(shorten, arrive):
    """A rule that only flags must not silence one that excludes."""
    study = shorten("likert", 12)
    rules = [rule for rule in study.spec.quality if rule.rule == "gold"]
    assert len(rules) == 2
    lenient = rules[0].model_copy(update={"action": "flag"})
    quality = [lenient if rule is rules[0] else rule for rule in study.spec.quality]
    study = replace(study, spec=study.spec.model_copy(update={"quality": quality}))
    person = arrive(study)
    person.given |= {"relevance": 3, "fluency": 3}
    person.finish()
    assert findings(person).count(("gold", "flag")) == findings(person).count(("gold", "exclude")) == 1
    assert person.session.is_excluded
    reasons = {
        logged.finding.details["rule_number"]: logged.finding.reason
        for logged in person.flow.store.records.findings(person.session_id)
        if logged.finding.rule == "gold"
    }
    assert "gold_shuttle" in reasons[1]
    assert "gold_payment" in reasons[2]


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
    order = ("blue", "green", "red")
    assert visible_answer("green", 0, order) == 2
    ends = visible_answer({"best": "green", "worst": "red"}, 0, order)
    assert ends == visible_answer({"best": "red", "worst": "blue"}, 0, ("green", "red", "blue"))
    assert visible_answer(["red", "blue"], 0, order) == visible_answer(["blue", "red"], 0, ("red", "green", "blue"))
    assert visible_answer("tie", 0, order) == visible_answer("tie")


def judged(study, values, **more):
    """A record of judgments on the study's first criterion."""
    named = {"session_id": "s", "criterion": study.spec.criteria[0].name, "scale": "any"}
    judgments = [Judgment(**{**named, "item_id": f"i{n}", "value": value, **more}) for n, value in enumerate(values)]
    return SessionRecord(judgments=tuple(judgments))


def test_always_the_best_system_is_no_straight_line(shorten):
    study = shorten("best-worst", 20)
    rule = StraightLining(rule="straight_lining")
    systems = [system.name for system in study.spec.systems]
    shown = [tuple(systems[n % 4 :] + systems[: n % 4]) for n in range(12)]
    always = {"best": systems[0], "worst": systems[1]}
    best = [replace(judged(study, [always]).judgments[0], order=order) for order in shown]
    assert rule.findings(study, None, SessionRecord(judgments=tuple(best))) == []
    first = [replace(one, value={"best": one.order[0], "worst": one.order[1]}) for one in best]
    (found,) = rule.findings(study, None, SessionRecord(judgments=tuple(first)))
    assert found.reason == "12 of 12 choices on quality are for the same position on the screen"
    assert rule.findings(study, None, judged(study, [always] * 12)) == [], "nobody knows where they were shown"


def test_the_side_of_the_system_judged_is_no_answer(shorten):
    study = shorten("best-worst", 20)
    rule = StraightLining(rule="straight_lining")
    labels = ["fine", "poor"] * 6
    assert rule.findings(study, None, judged(study, labels, system="base", side=1)) == []
    (found,) = rule.findings(study, None, judged(study, ["fine"] * 12, system="base", side=1))
    assert found.reason == "12 of 12 answers on quality are the same"


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [(179.853, "took 179 s, less than 180 s"), (180.0, ""), (600.0, ""), (600.2, "took 601 s, more than 600 s")],
)
def test_seconds_never_read_as_the_bound_they_broke(seconds, reason):
    rule = SessionTime(rule="session_time", at_least_s=180, at_most_s=600)
    visit = SimpleNamespace(submitted_at_ms=round(1000 * seconds))
    session = SimpleNamespace(source="person", started_at_ms=0)
    found = [one.reason for one in rule.findings(None, session, SimpleNamespace(visits=[visit]))]
    assert found == ([f"the session {reason}"] if reason else [])


def test_what_was_wrong_with_a_gold_answer_can_be_checked(shorten):
    low, yes = (
        Acceptable(criterion="fluency", at_least=4, at_most=5),
        Acceptable(criterion="q", point="a", one_of=["yes"]),
    )
    assert low.answer_words(2, system="Retrieval") == "fluency of Retrieval = 2, expected at least 4 and at most 5"
    assert yes.answer_words({"a": "no", "b": "yes"}, system="Guided") == "q of Guided: a = no, expected yes"
    assert yes.answer_words({}) == "q: a = no answer, expected yes"
    study = shorten("likert", 20)
    rule = next(rule for rule in study.spec.quality if rule.rule == "gold")
    wanted = next(one for one in rule.acceptable if one.system and one.at_least is not None)
    item = rule.gold_ids(study)[0]
    record = judged(study, [1, 1], system=wanted.system, criterion=wanted.criterion, item_id=item)
    (found,) = rule.findings(study, SimpleNamespace(condition={}), record)
    label = next(system.label for system in study.spec.systems if system.name == wanted.system)
    assert f"failed 1 gold item: {item} ({wanted.criterion} of {label} = 1, expected at least" in found.reason
