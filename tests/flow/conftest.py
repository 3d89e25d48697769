import json
from dataclasses import dataclass, field

import pytest

from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.flow.engine import Flow
from dialometer.flow.submissions import Timing
from dialometer.storage.store import Store


@pytest.fixture
def shorten(tmp_path):
    """A template cut down to its first items, with words of study.yaml replaced."""

    def make(name, n_items=3, *, replace=None):
        folder = tmp_path / name
        copy_template(name, folder)
        lines = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
        special = [x for x in lines if x.get("metadata", {}).get("practice") or x.get("metadata", {}).get("gold")]
        plain = [x for x in lines if x not in special][:n_items]
        (folder / "items.jsonl").write_text("\n".join(map(json.dumps, special + plain)) + "\n")
        text = (folder / "study.yaml").read_text()
        for old, new in (replace or {}).items():
            assert old in text, old
            text = text.replace(old, new)
        (folder / "study.yaml").write_text(text)
        return load_study(folder)

    return make


@dataclass
class Clock:
    ms: int = 1_800_000_000_000

    def __call__(self):
        return self.ms

    def pass_s(self, seconds):
        self.ms += int(seconds * 1000)


@dataclass
class Person:
    """A rater driven by hand: answers every field with what the test says, or something acceptable."""

    flow: Flow
    clock: Clock
    session_id: str
    given: dict = field(default_factory=dict)

    @property
    def session(self):
        return self.flow.store.sessions.get(self.session_id)

    @property
    def screen(self):
        return self.flow.screen(self.session)

    def answers(self, screen=None):
        screen = screen or self.screen
        if screen.kind == "consent":
            return {"consent": self.given.get("consent", "agree")}
        if screen.kind == "more":
            return {"more": self.given.get("more", "no")}
        return {f.name: self.given.get(f.name, acceptable(f)) for f in screen.fields}

    def submit(self, answers=None, *, seconds=10, token=None, key=None):
        screen = self.screen
        shown = self.clock.ms
        self.clock.pass_s(seconds)
        timing = Timing(shown, self.clock.ms, shown + 100, device="test")
        raw = self.answers(screen) if answers is None else answers
        return self.flow.submit(self.session_id, key or screen.key, raw, timing, token or f"{self.session_id}-{shown}")

    def walk_to(self, kind, *, seconds=10):
        while self.screen.kind not in (kind, "done"):
            self.submit(seconds=seconds)
        return self.screen

    def finish(self):
        self.walk_to("done")
        return self.session


def acceptable(field):
    scale = field.scale
    match scale.type:
        case "likert":
            return scale.last
        case "magnitude" | "slider":
            return 50
        case "pairwise":
            return "1"
        case "best_worst":
            return {"best": "1", "worst": "2"}
        case "ranking":
            return list(scale.options or field.alternatives)
        case "choice":
            return scale.options[0]
        case "multiple":
            return scale.options[:1]
        case "spans":
            return {"none": True}
        case "checklist":
            return dict.fromkeys(scale.point_texts(), "yes")
        case _:
            return 30 if scale.format != "text" else "fine"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def arrive(tmp_path, clock):
    """A flow on a fresh SQLite file, and a person who has just arrived."""
    stores = []

    def make(study, external_id="p1", *, database="study.db", **given):
        path = tmp_path / database
        store = Store.open(path)
        stores.append(store)
        flow = Flow(study, store, clock=clock)
        arrival = flow.arrive(external_id=external_id)
        return Person(flow, clock, arrival.session.id, given)

    yield make
    for store in stores:
        store.close()
