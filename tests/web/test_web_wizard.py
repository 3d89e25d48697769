"""A person answers in place of the agent: the console's side and the rater's side."""

import re
import threading
import time

import pytest
from taking_part import Browser, running

WIZARD_KEY = "the-key-of-the-wizards"
CANNED = ["I see.", "Tell me more."]


@pytest.fixture
def wizard_site(make_study, site):
    suggest = [
        {"type": "scripted", "options": {"otherwise": ["How interesting!"]}},
        {"type": "http", "options": {"url": "http://127.0.0.1:9", "n_retries": 0}},
    ]
    agent = {"type": "wizard", "options": {"canned": CANNED, "suggest": suggest, "instructions": "Talk calmly."}}

    def make(**settings):
        systems = [{"name": name, "agent": agent} for name in ("juno", "tak")]
        study = make_study("chat", n_items=2, systems=systems)
        return site(study, wizard_key=WIZARD_KEY, **settings)

    return make


class Console:
    """A wizard's browser."""

    def __init__(self, client, url=""):
        self.client, self.url = client, url
        page = client.get(f"{url}/wizard", params={"key": WIZARD_KEY}, follow_redirects=True)
        assert page.status_code == 200
        assert "key" not in str(page.url.query)
        self.csrf = re.search(r'"([0-9a-f]{64})"', page.text)[1]

    def chats(self):
        response = self.client.get(f"{self.url}/wizard/chats")
        assert response.status_code == 200
        return response.json()

    def post(self, path, body=None):
        headers = {"X-CSRF-Token": self.csrf}
        return self.client.post(f"{self.url}/wizard{path}", json=body or {}, headers=headers)


def waiting(console):
    """The only conversation, as soon as its rater waits for an answer."""
    until = time.monotonic() + 60
    while True:
        (chat,) = console.chats()["chats"]
        if chat["waiting_since_ms"]:
            return chat
        assert time.monotonic() < until, "nobody waits"
        time.sleep(0.02)


def open_chat(there):
    browser = there.browser().start()
    browser.walk_to(there, "chat")
    return browser


def say(browser, text):
    return browser.client.post("/s/chat", json={"text": text}, headers={"X-CSRF-Token": browser.fields["csrf"]})


def test_the_console_opens_with_the_key_only(wizard_site):
    there = wizard_site()
    assert there.client.get("/wizard").status_code == 403
    assert there.client.get("/wizard?key=guess").status_code == 403
    assert there.client.get("/wizard/chats").status_code == 403
    entered = there.client.get(f"/wizard?key={WIZARD_KEY}")
    line = entered.headers["set-cookie"]
    assert "HttpOnly" in line
    assert "Path=/wizard" in line
    console = Console(there.client)
    assert console.chats()["chats"] == []
    assert there.client.post("/wizard/name", json={"name": "Ann"}).status_code == 403
    assert console.post("/name", {"name": "Ann"}).json() == {"wizard": "Ann"}
    assert console.post("/name", {"name": ""}).status_code == 400
    # The other raters' cookie opens nothing here.
    browser = open_chat(there)
    assert browser.client.get("/wizard/chats").status_code == 403


def test_studies_without_a_wizard_have_no_console(site):
    assert site(wizard_key=WIZARD_KEY).client.get(f"/wizard?key={WIZARD_KEY}").status_code == 404


def test_a_rater_waits_and_a_wizard_answers(wizard_site):
    there = wizard_site(pending_s=60)
    with running(there.app) as url:
        import httpx

        with (
            httpx.Client(base_url=url, timeout=120) as rater,
            httpx.Client(timeout=120) as one,
            httpx.Client(timeout=120) as two,
        ):
            browser = Browser(rater)
            browser.start()
            browser.walk_to(there, "chat")
            ann, bob = Console(one, url), Console(two, url)
            ann.post("/name", {"name": "Ann"})
            assert bob.post("/name", {"name": "Ann"}).status_code == 409
            bob.post("/name", {"name": "Bob"})
            (chat,) = ann.chats()["chats"]
            assert (chat["canned"], chat["instructions"]) == (CANNED, "Talk calmly.")
            assert chat["waiting_since_ms"] is None
            assert chat["holder"] is None
            answers = []
            talking = threading.Thread(target=lambda: answers.append(say(browser, "Is anybody there?")))
            talking.start()
            chat = waiting(ann)
            assert chat["turns"][-1] == {"role": "user", "text": "Is anybody there?", "at_ms": chat["waiting_since_ms"]}
            place = f"/chats/{chat['id']}"
            assert one.get(f"{url}/wizard{place}/suggestions").json() == {"suggestions": ["How interesting!"]}
            assert ann.post(f"{place}/take").status_code == 204
            assert bob.post(f"{place}/take").status_code == 409
            assert bob.post(f"{place}/reply", {"text": "Mine!", "n": 1}).status_code == 409
            assert ann.post(f"{place}/release").status_code == 204
            assert ann.post(f"{place}/reply", {"text": "", "n": 1}).status_code == 400
            assert ann.post(f"{place}/reply", {"text": "I see.", "n": 0}).status_code == 409
            assert ann.post(f"{place}/reply", {"text": "I see.", "n": 1}).status_code == 204
            assert ann.post(f"{place}/reply", {"text": "Again", "n": 1}).status_code == 409
            talking.join()
            assert answers[0].json()["reply"] == "I see."
            (chat,) = bob.chats()["chats"]
            assert (chat["holder"], chat["is_mine"], chat["n_said"], chat["is_over"]) == ("Ann", False, 1, False)
    turns = there.store.conversations.turns()
    assert [turn.text for turn in turns] == ["Is anybody there?", "I see."]
    meta = turns[1].meta
    assert (meta["wizard"], meta["is_canned"]) == ("Ann", True)
    assert meta["latency_s"] >= 0


def test_a_rater_who_waits_too_long_asks_again_and_loses_nothing(wizard_site):
    there = wizard_site(pending_s=0.1)
    browser = open_chat(there)
    pending = say(browser, "Hello?")
    assert pending.status_code == 202
    assert pending.json()["is_pending"] is True
    assert pending.json()["may_retry"] is True
    mark = {"X-CSRF-Token": browser.fields["csrf"]}
    assert browser.client.post("/s/chat/retry", json={}, headers=mark).status_code == 202
    console = Console(there.client)
    (chat,) = console.chats()["chats"]
    assert console.post(f"/chats/{chat['id']}/reply", {"text": "Here.", "n": chat["n"]}).status_code == 204
    answer = browser.client.post("/s/chat/retry", json={}, headers=mark)
    assert (answer.status_code, answer.json()["reply"]) == (200, "Here.")
    browser.post("/s/chat", {"csrf": browser.fields["csrf"], "text": "By form"})
    assert browser.status == 200
    assert "By form" in browser.page


def test_a_conversation_that_is_over_says_so(wizard_site):
    there = wizard_site(pending_s=0.05)
    browser = open_chat(there)
    console = Console(there.client)
    (chat,) = console.chats()["chats"]
    for _ in range(chat["min_turns"]):
        say(browser, "Hello?")
        (chat,) = console.chats()["chats"]
        console.post(f"/chats/{chat['id']}/reply", {"text": f"Yes {chat['n']}", "n": chat["n"]})
    browser.send()
    (chat,) = console.chats()["chats"]
    assert chat["is_over"] is True
    assert console.post("/chats/nowhere/take").status_code == 409
    assert console.post(f"/chats/{chat['id']}/reply", {"text": "Too late", "n": chat["n"]}).status_code == 409


def test_a_wizard_at_one_host_answers_a_rater_at_another(make_study, site):
    agent = {"type": "wizard", "options": {"canned": CANNED}}
    study = make_study("chat", n_items=2, systems=[{"name": name, "agent": agent} for name in ("juno", "tak")])
    here, there = (site(study, wizard_key=WIZARD_KEY, pending_s=60) for _ in range(2))
    with running(here.app) as raters_host, running(there.app) as wizards_host:
        import httpx

        with httpx.Client(base_url=raters_host, timeout=120) as rater, httpx.Client(timeout=120) as wizard:
            browser = Browser(rater)
            browser.start()
            browser.walk_to(here, "chat")
            ann = Console(wizard, wizards_host)
            ann.post("/name", {"name": "Ann"})
            assert here.app.service.store.wizards.name_of(wizard.cookies["dialometer_wizard"]) == "Ann"
            answers = []
            talking = threading.Thread(target=lambda: answers.append(say(browser, "Is anybody there?")))
            talking.start()
            chat = waiting(ann)
            assert ann.post(f"/chats/{chat['id']}/reply", {"text": "Here I am.", "n": 1}).status_code == 204
            talking.join()
    assert answers[0].json()["reply"] == "Here I am."
