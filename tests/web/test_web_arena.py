"""Two systems side by side through pages and API: what is stored, what is shown, and what happens when one of them fails."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from taking_part import says, sends

from dialometer.agents.calling import MAX_REPLY_LENGTH
from dialometer.flow.arena import ArenaState


@pytest.fixture
def arena_study(make_study):
    """One situation; with an address, the first system is behind it, and the other follows a script."""

    def make(url="", n_items=1, **changes):
        systems = [
            {"name": "larch", "agent": _scripted("From the larch.")},
            {"name": "rowan", "agent": _scripted("Rowan.")},
        ]
        if url:
            options = {"url": url, "timeout_s": 30, "n_retries": 0}
            systems[0]["agent"] = {"type": "http", "options": options}
        analysis = {"primary": None, "comparisons": [], "subgroups": []}
        return make_study("arena", n_items=n_items, systems=systems, analysis=analysis, **changes)

    return make


def _scripted(text):
    return {"type": "scripted", "options": {"otherwise": [text, f"{text} Again."]}}


def at_arena(there):
    browser = there.browser().start()
    return browser, browser.walk_to(there, "chat")


def say(browser, text, **more):
    headers = {"X-CSRF-Token": browser.fields["csrf"]}
    return browser.client.post("/s/arena", json={"text": text, **more}, headers=headers)


def retry(browser, **more):
    return browser.client.post("/s/arena/retry", json=more, headers={"X-CSRF-Token": browser.fields["csrf"]})


def events(answer):
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def replies_in(told):
    return {event["reply"] for event in told if "reply" in event}


def said(there, system):
    return [(t.role, t.text) for t in there.store.conversations.turns() if t.meta["system"] == system]


def place_of(there, system):
    session = there.only_session()
    (item,) = session.draw.items["main"]
    return there.app.service.arenas.systems(session, item).index(system) + 1


def test_one_message_goes_to_both_and_the_vote_names_the_systems(arena_study, site, database_url):
    there = site(arena_study(arena={"reveal": "end"}), database_url)
    browser, screen = at_arena(there)
    assert "larch" not in browser.page, "systems are anonymous"
    assert "Chat A" in browser.page
    assert browser.send().status == 422, "not enough was said"
    for n in range(screen.item.min_turns):
        told = events(say(browser, f"Question {n}", n_said=n))
        assert {event["place"] for event in told if "reply" in event} == {1, 2}
        assert told[-1] == {
            "n_said": [n + 1, n + 1],
            "waiting": [],
            "may_continue": n + 1 >= screen.item.min_turns,
            "may_say": True,
        }
    assert said(there, "larch") == [
        ("user", "Question 0"),
        ("agent", "From the larch."),
        ("user", "Question 1"),
        ("agent", "From the larch. Again."),
    ]
    replies = [turn for turn in there.store.conversations.turns() if turn.role == "agent"]
    assert all({"place", "system", "seed", "latency_s"} <= set(turn.meta) for turn in replies)
    browser.get("/s")
    assert browser.page.count("Question 1") == 2
    browser.send()
    assert there.app.service.flow.screen(there.only_session()).kind == "item"
    assert browser.page.count("Question 1") == 2, "both conversations stand above the vote"
    left = place_of(there, "larch")
    browser.send({"overall": str(left), "useful": "both_bad"})
    votes = {judgment.criterion: judgment for judgment in there.store.records.judgments()}
    assert (votes["overall"].value, votes["overall"].side, votes["useful"].value) == ("larch", left, "both_bad")
    assert set(votes["overall"].order) == {"larch", "rowan"}
    (pair,) = there.only_session().draw.pairs.values()
    assert (pair.systems, pair.probability) == (("larch", "rowan"), 1.0)
    browser.walk_to(there, "done")
    names = ["larch", "rowan"] if left == 1 else ["rowan", "larch"]
    assert f"A: <bdi>{names[0]}</bdi>, B: <bdi>{names[1]}</bdi>" in browser.page


def test_names_stay_hidden_unless_the_study_says_so(arena_study, site):
    there = site(arena_study(arena={"reveal": "never"}))
    browser, screen = at_arena(there)
    for n in range(screen.item.min_turns):
        events(say(browser, f"Question {n}"))
    browser.get("/s")
    browser.walk_to(there, "done")
    assert "<bdi>" not in browser.page


def test_plain_forms_do_the_same(arena_study, site):
    there = site(arena_study())
    browser, _ = at_arena(there)
    browser.post("/s/arena", {"csrf": browser.fields["csrf"], "text": "Hello there"})
    assert browser.status == 200
    assert browser.page.count("Hello there") == 2
    assert "From the larch." in browser.page
    browser.post("/s/arena", {"csrf": browser.fields["csrf"], "text": "  "})
    assert len(there.store.conversations.turns()) == 4


def test_each_system_its_own_messages(arena_study, site):
    there = site(arena_study(arena={"messages": "own"}))
    browser, _ = at_arena(there)
    assert say(browser, "To nobody").status_code == 409
    left = place_of(there, "larch")
    assert events(say(browser, "Only to you", place=left, n_said=0))[-1]["n_said"][left - 1] == 1
    assert said(there, "larch") == [("user", "Only to you"), ("agent", "From the larch.")]
    assert said(there, "rowan") == []
    browser.post("/s/arena", {"csrf": browser.fields["csrf"], "text": "And you", "place": str(3 - left)})
    assert said(there, "rowan") == [("user", "And you"), ("agent", "Rowan.")]
    assert say(browser, "To a third", place=3).status_code == 409


def test_a_message_sent_twice_is_said_once(arena_study, site):
    there = site(arena_study())
    browser, _ = at_arena(there)
    first, again = (events(say(browser, "Cafe\u0301", n_said=0)) for _ in range(2))
    assert again[-1] == first[-1]
    assert replies_in(again) == replies_in(first) == {"From the larch.", "Rowan."}, (
        "a page that lost them shows them now"
    )
    assert len(there.store.conversations.turns()) == 4
    elsewhere = say(browser, "Something else", n_said=0)
    assert elsewhere.status_code == 409
    assert "elsewhere" in elsewhere.json()["error"]


def test_two_tabs_on_two_servers_cannot_both_write(arena_study, site, monkeypatch):
    there = site(arena_study())
    browser, _ = at_arena(there)
    events(say(browser, "First"))
    monkeypatch.setattr(there.app.service.arenas, "state", lambda *_: ArenaState((0, 0), (), 2, 12))
    late = say(browser, "Second", n_said=0)
    assert (late.status_code, "elsewhere" in late.json()["error"]) == (409, True)


def test_a_page_loaded_again_while_a_reply_was_written_gets_it(arena_study, site):
    there = site(arena_study())
    browser, _ = at_arena(there)
    events(say(browser, "Hello"))
    left = place_of(there, "larch")
    assert replies_in(events(retry(browser, places=[left]))) == {"From the larch."}
    assert replies_in(events(retry(browser))) == set(), "nothing is missing"


def test_a_message_to_one_system_does_not_ask_the_other_that_still_writes(arena_study, site, agent_server):
    there = site(arena_study(agent_server.url, arena={"messages": "own"}))
    browser, _ = at_arena(there)
    left = place_of(there, "larch")
    is_asked, may_answer = Event(), Event()

    def slowly(body):
        is_asked.set()
        assert may_answer.wait(25)
        return says("At last.")(body)

    agent_server.answers[:] = [slowly, says("Asked twice.")]
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: events(say(browser, "To larch", place=left)))
        assert is_asked.wait(60)
        assert replies_in(events(say(browser, "To rowan", place=3 - left))) == {"Rowan."}
        may_answer.set()
        assert replies_in(first.result()) == {"At last."}
    assert len(agent_server.asked) == 1


@pytest.mark.parametrize(
    "failure",
    [sends(b"{}", 500), sends(b'{"reply": "' + b"x" * (MAX_REPLY_LENGTH + 1) + b'"}'), says("   ")],
    ids=["down", "endless", "empty"],
)
def test_one_system_fails_and_nothing_is_lost(failure, arena_study, site, agent_server):
    there = site(arena_study(agent_server.url))
    browser, _ = at_arena(there)
    agent_server.answers[:] = [failure]
    left = place_of(there, "larch")
    told = events(say(browser, "Are you there?"))
    (failed,) = [event for event in told if "error" in event]
    assert (failed["place"], failed["may_retry"], told[-1]["waiting"]) == (left, True, [left])
    assert said(there, "larch") == [("user", "Are you there?")]
    assert said(there, "rowan") == [("user", "Are you there?"), ("agent", "Rowan.")]
    browser.get("/s")
    assert "No response came." in browser.page
    assert events(retry(browser))[-1]["waiting"] == [left]
    # The rater may also write on: the side without a reply hears both messages.
    agent_server.answers[:] = [says("Here I am.")]
    assert events(say(browser, "Hello?", n_said=1))[-1]["waiting"] == []
    assert said(there, "larch") == [("user", "Are you there?"), ("user", "Hello?"), ("agent", "Here I am.")]
    reply = next(turn for turn in there.store.conversations.turns() if turn.text == "Here I am.")
    assert len(reply.meta["failed_tries"]) == 2
    assert 'dialometer_replies_total{by="failed"} 2' in there.client.get("/metrics").text


def test_a_system_that_gives_its_name_away_is_shown_in_its_own_column(arena_study, site, agent_server):
    there = site(arena_study(agent_server.url))
    browser, _ = at_arena(there)
    agent_server.answers[:] = [says("Chat B: <b>I am rowan</b>, the other one.")]
    events(say(browser, "Who are you?"))
    browser.get("/s")
    assert "Chat B: &lt;b&gt;I am rowan&lt;/b&gt;, the other one." in browser.page
    assert said(there, "larch")[-1] == ("agent", "Chat B: <b>I am rowan</b>, the other one.")


def test_programs_take_part_by_the_api(arena_study, site):
    there = site(arena_study())
    program = there.open_api()
    shown = program.walk_to(there.study, "chat")
    assert [option["turns"] for option in shown["item"]["options"]] == [[], []]
    answer = program.post("/session/chat", {"text": "Hello"})
    assert answer.status_code == 200
    assert [side["place"] for side in answer.json()["replies"]] == ["1", "2"]
    assert {side["reply"] for side in answer.json()["replies"]} == {"From the larch.", "Rowan."}
    assert len(program.screen()["item"]["options"][0]["turns"]) == 2
    assert '"larch"' not in json.dumps(program.screen())
