"""Ways of taking part in a study: a browser without JavaScript, a program that uses the API; servers on loopback."""

import json
import re
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape

import uvicorn
from starlette.testclient import TestClient

KEY = "the-key-of-the-tests"
INPUT = re.compile(r"<(input|textarea|select|button)\b([^>]*)>")
ATTRIBUTE = re.compile(r'([\w-]+)(?:="([^"]*)")?')
HIDDEN = ("csrf", "screen", "token", "shown_at_ms", "first_input_at_ms", "focus_lost_n", "focus_lost_s", "device")


@dataclass
class Site:
    """An application with its store and a client."""

    app: object
    store: object
    client: TestClient
    study: object

    def browser(self, **headers):
        client = TestClient(self.app, headers=headers)
        client.portal = self.client.portal  # the same event loop, as in a server
        return Browser(client, self.app.service.settings.root_path)

    def open_api(self, external_id="", source="model", **more):
        return open_api(self.client, external_id, source, **more)

    def only_session(self):
        (session,) = self.store.sessions.all()
        return session


@dataclass
class Browser:
    """A browser that knows forms and cookies and nothing else."""

    client: object
    root: str = ""
    page: str = ""
    status: int = 0
    fields: dict = field(default_factory=dict)

    def get(self, path, **params):
        return self._take(self.client.get(f"{self.root}{path}", params=params or None, follow_redirects=True))

    def start(self):
        self.get("/")
        return self.post("/start", {"csrf": self.fields["csrf"]})

    def post(self, path, form):
        return self._take(self.client.post(f"{self.root}{path}", data=form, follow_redirects=True))

    def arrive(self, **query):
        """Opens a link and takes part: agrees where the page asks for it, else presses Start."""
        self.get("/", **query)
        if self.status != 200 or (self.client.cookies.get("dialometer_session") and self.action == "/s"):
            return self
        return self.send({"consent": "agree"} if self.screen else {})

    @property
    def action(self):
        """Where the form of the page is sent; the page of a conversation has others before it."""
        form = r'<form[^>]*action="([^"]*)"'
        found = re.search(r'<form(?=[^>]* id="answers")[^>]*action="([^"]*)"', self.page) or re.search(form, self.page)
        return found[1].removeprefix(self.root) if found else ""

    def send(self, _form=None, **answers):
        """The form of the page with these answers; what is not given is left out."""
        is_first = self.action != "/s"  # a page before any session carries the parameters of its link
        buttons = re.findall(r'<button[^>]* name="(\w+)"', self.page)
        own = {
            name: value for name, value in self.fields.items() if name in HIDDEN or (is_first and name not in buttons)
        }
        return self.post(self.action or "/s", {**own, **(_form or {}), **answers})

    def _take(self, response):
        self.response, self.page, self.status = response, response.text, response.status_code
        self.fields = {}
        for _, attributes in INPUT.findall(self.page):
            found = {name: unescape(value) for name, value in ATTRIBUTE.findall(attributes)}
            if "name" in found:
                self.fields.setdefault(found["name"], found.get("value", ""))
        return self

    @property
    def heading(self):
        found = re.search(r"<h1[^>]*>(.*?)</h1>", self.page, re.DOTALL)
        return unescape(found[1]).strip() if found else ""

    @property
    def screen(self):
        return self.fields.get("screen", "")

    def walk_to(self, site, kind):
        """Answers everything acceptably until a screen of this kind."""
        for _ in range(60):
            screen = site.app.service.flow.screen(site.store.sessions.get(self.session_id(site)))
            if screen.kind == kind:
                return screen
            self.send(form_answers(site.study, screen))
            assert self.status == 200, self.page
        raise AssertionError(f"no {kind}")

    def session_id(self, site):
        token = self.client.cookies.get("dialometer_session")
        return site.store.sessions.by_token(token).id


def acceptable(study, name, scale, alternatives):
    """An answer that the study accepts."""
    for rule in study.spec.quality:
        for check in (*getattr(rule, "checks", ()), *getattr(rule, "questions", ())):
            if check.name == name:
                return check.answer
    for question in study.spec.screening:
        if question.name == name and question.accept:
            return question.accept[0]
    match scale["type"]:
        case "likert":
            return scale["first"] + scale["points"] - 1
        case "slider" | "magnitude":
            return 50
        case "choice":
            return scale["options"][0]
        case "multiple":
            return scale["options"][:1]
        case "pairwise":
            return alternatives[0]
        case "ranking":
            return list(alternatives or scale["options"])
        case "best_worst":
            return {"best": alternatives[0], "worst": alternatives[1]}
        case "checklist":
            return {point["name"]: "yes" for point in scale["points"]}
        case "text":
            return "some words" if scale.get("format", "text") == "text" else "30"


def form_answers(study, screen):
    """What a form sends for a screen of the engine."""
    if screen.kind == "consent":
        return {"consent": "agree"}
    if screen.kind == "more":
        return {"more": "no"}
    form = {}
    for asked in screen.fields:
        value = acceptable(study, asked.name, asked.scale.model_dump(mode="json"), asked.alternatives)
        if isinstance(value, dict):
            form.update({f"{asked.name}.{part}": given for part, given in value.items()})
        elif asked.scale.type == "ranking":
            form.update({f"{asked.name}.{given}": str(rank) for rank, given in enumerate(value, start=1)})
        else:
            form[asked.name] = value
    return form


@dataclass
class Program:
    """A program that takes part through the JSON API."""

    client: object
    token: str
    session_id: str
    prefix: str = "/api/v1"

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.token}"}

    def get(self, path):
        return self.client.get(f"{self.prefix}{path}", headers=self.headers)

    def post(self, path, body=None):
        return self.client.post(f"{self.prefix}{path}", json=body, headers=self.headers)

    def screen(self):
        response = self.get("/session/screen")
        assert response.status_code == 200, response.text
        return response.json()

    def submit(self, screen, answers, token=None, **more):
        body = {"screen": screen, "token": token or f"{self.session_id}/{screen}", "answers": answers}
        return self.post("/session/submissions", {**body, "shown_at_ms": int(time.time() * 1000), **more})

    def answer(self, study, **given):
        """Sends acceptable answers for the screen where the session stands."""
        shown = self.screen()
        return self.submit(shown["screen"], json_answers(study, shown) | given)

    def walk_to(self, study, kind, n_most=80):
        for _ in range(n_most):
            shown = self.screen()
            if shown["kind"] == kind:
                return shown
            response = self.submit(shown["screen"], json_answers(study, shown))
            assert response.status_code == 200, response.text
        raise AssertionError(f"no {kind}")


def json_answers(study, shown):
    """What a program sends for a screen of the API."""
    return {
        asked["name"]: "no"
        if asked["name"] == "more"
        else acceptable(study, asked["name"], asked["scale"], asked["alternatives"])
        for asked in shown["fields"]
    }


def open_api(client, external_id="", source="model", prefix="/api/v1", **more):
    body = {"external_id": external_id, "source": source, **more}
    response = client.post(f"{prefix}/sessions", json=body, headers={"Authorization": f"Bearer {KEY}"})
    assert response.status_code == 201, response.text
    opened = response.json()
    return Program(client, opened["session_token"], opened["session_id"], prefix)


@contextmanager
def running(app):
    """An application on a real socket of loopback, in a thread."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="critical", access_log=False, lifespan="on", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    until = time.monotonic() + 120
    while not server.started:
        assert time.monotonic() < until, "the server did not start"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        sock.close()


def says(text, status=200, pause_s=0.0, **headers):
    """An answer of the system under test."""

    def answer(_body):
        time.sleep(pause_s)
        return status, json.dumps({"reply": text}).encode(), headers

    return answer


def sends(content, status=200):
    return lambda _body: (status, content, {})
