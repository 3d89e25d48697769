"""The way through a study, screen by screen."""

import dataclasses
import json

import pytest
import yaml

from dialometer.design.load import load_study
from dialometer.design.templates import copy_template, template_names
from dialometer.errors import AnswersRejected, AssignmentError, FlowError
from dialometer.flow.stored_screens import unfinished_screens
from dialometer.model.item import ArenaItem, ChatItem


def names_in(screen):
    """Every text of a screen as one string, to look for names that must not be there."""
    return repr(dataclasses.asdict(dataclasses.replace(screen, fields=()))) + repr(
        [f.alternatives for f in screen.fields]
    )


def test_the_published_flow_with_both_questions_on_one_screen(shorten, arrive):
    study = shorten("anchoring")
    person = arrive(study)
    kinds = []
    while person.screen.kind != "done":
        kinds.append(person.screen.key.split("/")[0])
        person.submit()
    layout = person.session.condition["layout"]
    per_item = 1 if layout == "together" else 2
    expected = ["consent", "pre", "instructions", *["practice"] * per_item, *["item"] * 3 * per_item, "post"]
    assert kinds == expected
    assert person.session.state == "completed"
    assert person.session.consent_version == person.flow.consent_version(person.session)


@pytest.mark.parametrize("ordinal", range(1, 5))
def test_conditions_decide_what_is_seen(shorten, arrive, ordinal):
    study = shorten("anchoring")
    for i in range(ordinal - 1):
        arrive(study, f"p{i}")
    person = arrive(study, "me")
    condition = person.session.condition
    screen = person.walk_to("item")
    assert (screen.item.standard is not None) == (condition["anchor"] == "both")
    is_together = condition["layout"] == "together"
    asked = ["readability", "coherence"] if is_together else ["readability"]
    has_anchor = condition["anchor"] == "both"
    assert screen.item.anchor_values == (dict.fromkeys(asked, 100) if has_anchor else {})
    named = "Readability and Coherence" if is_together else "Readability"
    relative = ", relative to the value of the standard response (100)." if has_anchor else "."
    assert screen.item.task == f"Your task is to rate the responses below on {named}{relative}"
    n_fields = 6 if is_together else 3
    assert len(screen.fields) == n_fields


def test_criteria_have_anchors_of_their_own(shorten, arrive):
    study = shorten("anchoring", replace={"coherence: 100}": "coherence: 80}"})
    for i in range(4):
        screen = (person := arrive(study, f"p{i}")).walk_to("item")
        if person.session.condition == {"anchor": "both", "layout": "together"}:
            break
    assert screen.item.anchor_values == {"readability": 100, "coherence": 80}
    assert {field.name: field.anchor for field in screen.fields}["coherence.2"] == 80
    assert "(Readability 100, Coherence 80)" in screen.item.task


def test_screens_never_give_a_system_away(shorten, arrive):
    for name in ("anchoring", "acute", "strategies", "best-worst"):
        person = arrive(shorten(name, 31), database=f"{name}.db")
        systems = {system.name for system in person.flow.study.spec.systems}
        while person.screen.kind != "done":
            if person.screen.kind == "item":
                text = names_in(person.screen)
                assert not [s for s in systems if f"'{s}'" in text]
            person.submit()


def test_judgments_name_the_system_that_stood_at_the_place(shorten, arrive):
    person = arrive(shorten("anchoring"))
    person.walk_to("item")
    while person.screen.is_practice:
        person.submit()
    screen = person.screen
    item = person.flow.study.items_by_id[screen.item.id]
    texts = {option.place: option.turns[0].text for option in screen.item.options}
    values = {field.name: 10 * int(field.target) for field in screen.fields}
    person.submit(values)
    stored = [j for j in person.flow.store.records.of_session(person.session_id).judgments if not j.is_practice]
    assert len(stored) == len(screen.fields)
    for judgment in stored:
        assert item.responses[judgment.system] == texts[str(judgment.side)]
        assert judgment.value == 10 * judgment.side
        assert judgment.order[judgment.side - 1] == judgment.system
        assert judgment.position == 1


def test_pairwise_choices_are_stored_as_systems(shorten, arrive):
    person = arrive(shorten("strategies", 31))
    screen = person.walk_to("item")
    while screen.is_practice:
        person.submit()
        screen = person.screen
    item = person.flow.study.items_by_id[screen.item.id]
    left = screen.item.options[0].turns
    expected = next(side.system for side in (item.a, item.b) if side.turns == left)
    person.submit({field.name: "1" for field in screen.fields})
    stored = [j for j in person.flow.store.records.of_session(person.session_id).judgments if not j.is_practice]
    assert {j.value for j in stored} == {expected}
    assert {j.side for j in stored} == {1}
    assert stored[0].order[0] == expected


def test_wrong_answers_are_told_at_their_fields_and_nothing_is_stored(shorten, arrive):
    person = arrive(shorten("anchoring"))
    screen = person.walk_to("item")
    answers = {field.name: "50" for field in screen.fields}
    first, last = screen.fields[0].name, screen.fields[-1].name
    answers[first] = "many"
    del answers[last]
    before = person.session
    with pytest.raises(AnswersRejected) as caught:
        person.submit(answers)
    assert set(caught.value.fields) == {first, last}
    assert person.session.step == before.step
    assert person.flow.store.records.of_session(person.session_id).judgments == []


def test_the_same_submission_counts_once(shorten, arrive):
    person = arrive(shorten("anchoring"))
    person.walk_to("item")
    key = person.screen.key
    answers = person.answers()
    first = person.submit(answers, token="t-1")
    again = person.submit(answers, token="t-1", key=key)
    other_tab = person.submit(answers, token="t-2", key=key)
    assert (first.outcome, again.outcome, other_tab.outcome) == ("stored", "repeated", "outdated")
    assert again.step == first.step
    stored = person.flow.store.records.of_session(person.session_id)
    assert len({(j.item_id, j.criterion, j.system) for j in stored.judgments}) == len(stored.judgments)


def test_declining_ends_politely_and_frees_the_place(shorten, arrive):
    study = shorten("anchoring")
    person = arrive(study, consent="decline")
    cell = person.session.draw.cell
    person.submit()
    assert person.session.state == "declined"
    assert person.screen.kind == "done"
    assert arrive(study, "next").session.draw.cell == cell


def test_declining_leaves_nothing_but_that_somebody_declined(shorten, arrive):
    """Nor are times or the device stored before that; only the answers that screening needs."""
    screening = (
        "screening:\n  - {name: screened, text: How well, scale: english, accept: [Fluent]}\n\npre_questionnaire:"
    )
    study = shorten(
        "likert",
        n_items=10,
        replace={"\npre_questionnaire:": f"\n{screening}\n  - {{name: extra, text: So, scale: english}}"},
    )
    person = arrive(study, "PID-7", screened="Fluent", consent="decline")
    person.submit()
    left = person.flow.store.records.of_session(person.session_id)
    assert [answer.value for answer in left.answers] == ["Fluent"]
    assert left.visits == []
    person.submit(token="no")
    session, left = person.session, person.flow.store.records.of_session(person.session_id)
    assert (session.state, session.rater_id, session.consent_version) == ("declined", "", "")
    assert (left.answers, left.visits, left.judgments) == ([], [], [])
    assert person.flow.store.sessions.person(person.session_id) is None
    assert person.submit({"consent": "decline"}, token="no", key="consent").outcome == "ended"
    assert person.flow.store.counts.session_counts() == {(session.draw.cell, "declined"): 1}
    assert arrive(study, "PID-7").session_id != person.session_id, "somebody who is forgotten is new"


def test_a_rater_who_returns_finds_the_same_session(shorten, arrive):
    study = shorten("anchoring")
    person = arrive(study, "same")
    person.walk_to("item")
    again = person.flow.arrive(external_id="same")
    assert again.session.id == person.session_id
    assert not again.is_new
    assert again.session.step == person.session.step


def test_stale_sessions_give_their_place_away_and_can_still_come_back(shorten, arrive, clock):
    study = shorten("anchoring", replace={"quota: 77": "quota: 1"})
    person = arrive(study, "slow")
    person.walk_to("item")
    clock.pass_s(study.spec.design.stale_after_minutes * 60 + 60)
    other = arrive(study, "quick")
    assert other.session.draw.cell == person.session.draw.cell
    assert person.session.state == "stale"
    person.flow.store.sessions.revive(person.session_id, clock.ms)
    assert person.finish().state == "completed"


def test_the_quota_closes_the_study(shorten, arrive):
    study = shorten("anchoring", replace={"quota: 77": "quota: 2"})
    arrive(study, "a")
    arrive(study, "b")
    with pytest.raises(AssignmentError, match="all the raters it needs"):
        arrive(study, "c")


def test_late_answers_are_stored_as_late(shorten, arrive):
    study = shorten("anchoring", replace={"presentation:\n": "presentation:\n  deadline_s: 20\n"})
    person = arrive(study)
    person.walk_to("item")
    while person.screen.is_practice:
        person.submit()
    assert person.screen.deadline_s == 20
    person.submit(seconds=19)
    person.submit(seconds=21)
    late = [j.is_late for j in person.flow.store.records.of_session(person.session_id).judgments if not j.is_practice]
    assert set(late) == {True, False}


def test_going_back_is_a_correction_and_only_where_allowed(shorten, arrive):
    study = shorten("anchoring", replace={"design:\n": "design:\n  may_go_back: true\n"})
    person = arrive(study)
    person.walk_to("item")
    while person.screen.is_practice:
        person.submit()
    step, key, fields = person.session.step, person.screen.key, person.screen.fields
    person.submit({field.name: 40 for field in fields})
    assert person.screen.may_go_back
    assert person.flow.screen(person.session, step).key == key
    receipt = person.submit({field.name: 40 if i else 90 for i, field in enumerate(fields)}, key=key)
    assert receipt.outcome == "stored"
    assert receipt.step == step + 1
    current = [j for j in person.flow.store.records.of_session(person.session_id).judgments if not j.is_practice]
    assert sorted(j.value for j in current) == [40] * (len(fields) - 1) + [90]
    changed = next(j for j in current if j.value == 90)
    assert changed.replaces is not None
    assert changed.reason
    every = list(person.flow.store.records.judgments(person.session_id, include_corrected=True))
    assert sum(not j.is_practice for j in every) == len(fields) + 1
    with pytest.raises(FlowError):
        person.flow.screen(person.session, 0)


def test_going_back_is_refused_otherwise(shorten, arrive):
    person = arrive(shorten("anchoring"))
    person.walk_to("item")
    step, key = person.session.step, person.screen.key
    person.submit()
    with pytest.raises(FlowError, match="cannot be opened"):
        person.flow.screen(person.session, step)
    assert person.submit({}, key=key).outcome == "outdated"


def test_unlimited_raters_may_go_on_or_stop(shorten, arrive):
    study = shorten("avatar", 60)
    person = arrive(study)
    person.walk_to("more")
    n_first = len(person.session.draw.items["main"])
    person.given["more"] = "yes"
    person.submit()
    assert person.screen.kind == "item"
    assert len(person.session.draw.items["main"]) > n_first
    person.given["more"] = "no"
    assert person.finish().state == "completed"
    judged = {j.item_id for j in person.flow.store.records.of_session(person.session_id).judgments if not j.is_practice}
    assert judged == set(person.session.draw.items["main"])


@pytest.mark.parametrize("name", template_names())
def test_every_template_can_be_walked(shorten, arrive, name):
    study = shorten(name, 12 if name != "strategies" else 31)
    person = arrive(study)
    while person.screen.kind != "done":
        if person.screen.kind == "chat":
            chat(person)
        person.given.update(right_answers(person))
        person.submit()
    assert person.session.state == "completed"


def right_answers(person):
    checks = [
        c for r in person.flow.study.spec.quality for c in getattr(r, "checks", None) or getattr(r, "questions", [])
    ]
    return {check.name: check.answer for check in checks}


def chat(person):
    from dialometer.agents import Reply
    from dialometer.agents.wizard import Wizard
    from dialometer.flow.arena import Arenas
    from dialometer.flow.chat import Chats

    chats = Chats(person.flow.study, person.flow.store)
    item = person.flow.study.items_by_id[person.screen.item.id]
    with pytest.raises(AnswersRejected, match="at least"):
        person.submit()
    if isinstance(item, ArenaItem):
        for i in range(item.min_turns):
            Arenas(person.flow, chats).exchange(person.session, item.id, f"And number {i}?", person.clock.ms)
        return
    assert isinstance(item, ChatItem)
    agent = chats.agent(item.system)
    for i in range(item.min_turns):
        text = f"Tell me about film number {i}"
        if isinstance(agent, Wizard):
            chats.hear(person.session, item.id, text, person.clock.ms)
            (suggested,) = agent.suggestions(chats.history(person.session, item.id))
            chats.store_reply(person.session, item.id, 2 * i + 1, Reply(suggested), person.clock.ms)
        else:
            assert chats.say(person.session, item.id, text, person.clock.ms).text
    history = chats.history(person.session, item.id)
    assert [turn.role for turn in history][-2:] == ["user", "agent"]


def test_remaining_time_follows_the_raters_pace(shorten, arrive):
    study = shorten("likert", n_items=10)
    slow, fast = arrive(study, "slow"), arrive(study, "fast")
    assert slow.flow.remaining_s(slow.session) > 60
    for person, seconds in ((slow, 300), (fast, 5)):
        person.walk_to("item")
        for _ in range(3):
            person.submit(seconds=seconds)
    assert slow.flow.remaining_s(slow.session) > 1.5 * fast.flow.remaining_s(fast.session)


def test_an_hour_of_fifty_items_stays_about_an_hour_for_who_clicks_quickly(tmp_path, arrive):
    """Quick clicks lower what is shown screen by screen, never raise it, and four items do not cut an hour to minutes."""

    folder = tmp_path / "hour"
    copy_template("likert", folder)
    item = json.loads((folder / "items.jsonl").read_text().splitlines()[-1])
    (folder / "items.jsonl").write_text("".join(json.dumps({**item, "id": f"i{n}"}) + "\n" for n in range(50)))
    spec = yaml.safe_load((folder / "study.yaml").read_text())
    spec["design"] |= {"items_per_rater": 50, "n_practice_items": 0}
    spec["recruitment"] |= {"minutes": 60}
    spec["quality"] = []
    (folder / "study.yaml").write_text(yaml.safe_dump(spec))
    person = arrive(load_study(folder), "quick")
    shown = [person.flow.remaining_s(person.session) / 60]
    assert shown[0] == pytest.approx(60, abs=1)
    person.walk_to("item", seconds=1)
    shown.append(person.flow.remaining_s(person.session) / 60)
    assert shown[1] > 50
    for _ in range(4):
        person.submit(seconds=2)
        shown.append(person.flow.remaining_s(person.session) / 60)
    assert shown == sorted(shown, reverse=True)
    assert shown[-1] > 35
    for _ in range(36):
        person.submit(seconds=2)
    assert person.flow.remaining_s(person.session) / 60 < 8, "by now the rater's own pace says more than the design"


def test_a_break_does_not_count_as_pace(shorten, arrive):
    person = arrive(shorten("anchoring"), "lunch")
    person.walk_to("item")
    before = person.flow.remaining_s(person.session)
    person.submit(seconds=7200)
    assert person.flow.remaining_s(person.session) < 3 * before


def test_remaining_time_begins_with_what_raters_were_told(shorten, arrive):
    study = shorten("anchoring")
    arrived = arrive(study, "somebody")
    assert study.spec.recruitment.minutes
    assert arrived.flow.remaining_s(arrived.session) == pytest.approx(60 * study.spec.recruitment.minutes, rel=0.02)


def test_a_rater_who_withdraws_while_the_screens_are_checked_lacks_none(shorten, arrive, monkeypatch):
    """`verify` on a running server: the session was read before, its screens are read after the withdrawal."""
    study = shorten("anchoring")
    taking_part = arrive(study)
    taking_part.finish()
    store = taking_part.flow.store
    assert unfinished_screens(study, store) == ([], 1, 0)
    read = store.submissions.screens_by_session

    def withdrawn_meanwhile():
        store.withdrawals.withdraw(taking_part.session.id, 1)
        return read()

    monkeypatch.setattr(store.submissions, "screens_by_session", withdrawn_meanwhile)
    assert unfinished_screens(study, store) == ([], 0, 0)
