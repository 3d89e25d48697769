"""A study cut short, an application for it, and a system under test on loopback."""

import json
import sys
from pathlib import Path

import httpx
import pytest
import yaml
from starlette.testclient import TestClient

from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.web.server.settings import Settings
from dialometer.web.server.turns import TurnTakingStore
from dialometer.web.study_app import create_app
from loopback import Handler, serving_http

sys.path.insert(0, str(Path(__file__).parent))

from taking_part import KEY, Site, says


@pytest.fixture
def make_study(tmp_path):
    """A template with few items and changes to its study.yaml."""

    def make(template="likert", n_items=3, **changes):
        folder = tmp_path / f"study-{template}"
        copy_template(template, folder)
        lines = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
        special = [x for x in lines if x.get("metadata", {}).get("practice") or x.get("metadata", {}).get("gold")]
        plain = [x for x in lines if x not in special][:n_items]  # None for all
        (folder / "items.jsonl").write_text("\n".join(map(json.dumps, special + plain)) + "\n")
        spec = yaml.safe_load((folder / "study.yaml").read_text())
        if spec["design"].get("items_per_rater") != "unlimited":
            spec["design"]["items_per_rater"] = "all"
        for check in (check for rule in spec.get("quality", ()) for check in rule.get("checks", ())):
            check["after_item"] = 1
        for part, change in changes.items():
            if isinstance(change, dict) and isinstance(spec.get(part), dict):
                spec[part] |= change
            else:
                spec[part] = change
        (folder / "study.yaml").write_text(yaml.safe_dump(spec, sort_keys=False, allow_unicode=True))
        return load_study(folder)

    return make


@pytest.fixture
def site(tmp_path, make_study):
    """Applications, closed after the test."""
    opened = []

    def make(study=None, database=None, **settings):
        study = study or make_study()
        store = TurnTakingStore.open(database or tmp_path / "study.db")
        app = create_app(study, store, settings=Settings(**{"api_key": KEY, **settings}))
        client = TestClient(app, follow_redirects=False)
        client.__enter__()
        opened.append((client, store))
        return Site(app, store, client, study)

    yield make
    for client, store in opened:
        client.__exit__(None, None, None)
        store.close()


@pytest.fixture
def agent_server():
    """A system under test on loopback whose answers the test decides: a list of callables, the last for all others."""

    class Answering(Handler):
        def reply(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.server.asked.append({"path": self.path, "body": body, "headers": dict(self.headers)})
            answers = self.server.answers
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            self.answer(*answer(body))

    with serving_http(Answering, asked=[], answers=[says("Hello from the agent.")]) as server:
        server.url = f"http://127.0.0.1:{server.server_port}"
        yield server


@pytest.fixture
def http():
    with httpx.Client(timeout=120) as client:
        yield client
