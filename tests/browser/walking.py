"""A person at the pages, by mouse, finger or keyboard alone, and a server for them. Shared with scripts/screenshots.py."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import ElementHandle, Page
from starlette.applications import Starlette
from starlette.routing import Mount

import dialometer.design.templates as template_folder
from dialometer.design.load import load_study
from dialometer.model.study import Study
from dialometer.storage.store import Store
from dialometer.web.server.settings import Settings
from dialometer.web.study_app import create_app
from loopback import serving_app

TEMPLATES = Path(str(template_folder.__file__)).parent
STUDIES = Path(__file__).parent / "studies"
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
SAID = (
    "I liked the film Alien a lot.",
    "I saw it with my brother.",
    "Which book is like it?",
    "Thanks, I will read it.",
)
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}


def copy_study(name: str, folder: Path, change: Callable[[dict[str, Any], list[dict[str, Any]]], None]) -> Path:
    """A copy of a template (or of a study of these tests) with its study file and items changed."""
    source = STUDIES / name if (STUDIES / name).exists() else TEMPLATES / name
    target = folder / name
    shutil.copytree(source, target)
    spec = yaml.safe_load((target / "study.yaml").read_text(encoding="utf-8"))
    items = [json.loads(line) for line in (target / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    change(spec, items)
    (target / "study.yaml").write_text(yaml.safe_dump(spec, allow_unicode=True, sort_keys=False), encoding="utf-8")
    text = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    (target / "items.jsonl").write_text(text, encoding="utf-8")
    return target


def shorten(spec: dict[str, Any], items: list[dict[str, Any]]) -> None:
    """Leaves two items (and practice and gold ones) of a template, so that a whole session is walked in seconds."""
    kept = 0
    for item in list(items):
        is_extra = item.get("metadata", {}).get("practice") or item["id"].startswith("gold") or item.get("is_gold")
        if is_extra or spec["name"] in ("acute", "strategies", "chat"):
            continue
        kept += 1
        if kept > (5 if spec["name"] == "avatar" else 2):
            items.remove(item)
    design = spec["design"]
    if isinstance(design.get("items_per_rater"), int) and spec["name"] != "chat":
        design["items_per_rater"] = 2
    if spec["name"] == "avatar":
        design["batch_size"] = 3
    for item in items:
        if "min_turns" in item:
            item["min_turns"] = 2
    for rule in spec.get("quality", []):
        for check in rule.get("checks", []):
            check["after_item"] = 1


@dataclass
class Served:
    """A study that is being served."""

    url: str
    store: Store
    study: Study


@contextlib.contextmanager
def serving(folder: Path, database: Path, **settings: Any) -> Iterator[Served]:
    """The real server for a study, on a free port of this machine."""
    store = Store.open(database)
    root = settings.get("root_path", "")
    study = load_study(folder)
    app = create_app(study, store, settings=Settings(**settings))
    try:
        with serving_app(Starlette(routes=[Mount(root, app)]) if root else app) as port:
            yield Served(f"http://127.0.0.1:{port}{root}", store, study)
    finally:
        app.close()
        store.close()


@dataclass
class Rater:
    """Answers screen after screen. ``right`` names the answers that must be given, by question."""

    page: Page
    right: dict[str, str] = field(default_factory=dict)
    n_sets: int = 1
    on_screen: Callable[[Page, str], None] = lambda _page, _kind: None
    seen: list[str] = field(default_factory=list)

    def begin(self, url: str) -> None:
        """From the start page to the first screen."""
        self.page.goto(url)
        self.press(self.page.locator("main button[type=submit]"))
        self.page.wait_for_selector("#answers")
        self.page.wait_for_load_state()

    def walk(self, url: str, at_most: int = 60) -> str:
        """The whole way; gives the heading of the last page."""
        self.begin(url)
        for _ in range(at_most):
            if not self.page.query_selector("#answers"):
                break
            self.one_screen()
        return self.page.inner_text("h1")

    def one_screen(self) -> str:
        """Answers the screen and sends it; gives its key."""
        key = self.key()
        self.seen.append(key)
        self.on_screen(self.page, key.split("/")[0])
        self.answer()
        self.send()
        return key

    def key(self) -> str:
        """The key of the screen that is shown."""
        return self.page.get_attribute("#answers", "data-screen") or ""

    def press(self, target: Any) -> None:
        """Presses a button."""
        target.first.click()

    def choose(self, name: str, values: list[str]) -> str:
        """The value for a group of buttons."""
        if self.right.get(name) in values:
            return self.right[name]
        if name.endswith(".worst"):
            return values[-1]
        return "4" if "4" in values and "5" in values else values[0]

    def answer(self) -> None:
        """Fills in everything that is asked, by mouse or finger."""
        if self.page.query_selector("#arena"):
            self.talk_to_both()
        if self.page.query_selector("#chat"):
            self.talk()
        for name, values in self.groups().items():
            value = self.choose(name, values)
            radio = self.page.locator(f'#answers input[name="{name}"][value="{value}"]')
            if not radio.is_checked():
                radio.locator("xpath=ancestor-or-self::label").click()
        # Every look at a control is a message to the browser, and there are many radio buttons.
        for control in self.page.query_selector_all(
            "#answers input:not([type=hidden], [type=radio], [data-own]), #answers textarea, #answers select"
        ):
            self._fill(control)
        for field_ in self.page.query_selector_all("[data-ranking]:not(.is-set)"):
            self._drag(field_)

    def _fill(self, control: ElementHandle) -> None:
        kind = control.evaluate("c => c.disabled ? '' : c.type") if control.is_visible() else "unseen"
        if kind == "checkbox" and control.evaluate("c => !document.querySelector(`[name='${c.name}']:checked`)"):
            control.click()
        elif kind == "range":
            box = control.bounding_box()
            assert box is not None
            control.click(position={"x": box["width"] * 0.7, "y": box["height"] / 2})
        elif kind == "select-one":
            control.select_option(index=2)
        elif (
            kind in ("text", "textarea")
            and not control.input_value()
            and control.get_attribute("data-own-words") is None
        ):
            control.fill(self.text_for(control))

    @staticmethod
    def text_for(control: ElementHandle) -> str:
        """Something to type: a number where one is asked for."""
        is_number = control.get_attribute("inputmode") in ("decimal", "numeric")
        return "42" if is_number else "A few words"

    def _drag(self, field_: ElementHandle) -> None:
        """Drags the first line below the second."""
        grips = field_.query_selector_all(".rank-grip")
        grips[0].scroll_into_view_if_needed()
        first, second = grips[0].bounding_box(), grips[1].bounding_box()
        assert first is not None
        assert second is not None
        x = first["x"] + first["width"] / 2
        self.page.mouse.move(x, first["y"] + first["height"] / 2)
        self.page.mouse.down()
        self.page.mouse.move(x, second["y"] + second["height"] * 0.6, steps=4)
        self.page.mouse.move(x, second["y"] + second["height"] * 0.9, steps=2)
        self.page.mouse.up()

    def groups(self) -> dict[str, list[str]]:
        """Groups of radio buttons and their values."""
        found: dict[str, list[str]] = self.page.evaluate(
            """() => { const groups = {};
              for (const radio of document.querySelectorAll('#answers input[type=radio]'))
                if (radio.value !== '__other__') (groups[radio.name] ??= []).push(radio.value);
              return groups; }"""
        )
        return found

    def talk(self) -> None:
        """Talks as long as the conversation asks for it."""
        for i in range(int(self.page.get_attribute("#chat", "data-min") or 1)):
            n_before = self.page.locator("#log .turn").count()
            self.say(SAID[i % len(SAID)])
            self.page.locator("#log .turn").nth(n_before + 1).wait_for()
            self.may_send()

    def talk_to_both(self) -> None:
        """Talks in an arena as long as it asks for it; on a phone it looks at the other side too."""
        for i in range(int(self.page.get_attribute("#arena", "data-min") or 1)):
            n_before = self.page.locator("[data-side='1'] .turn").count()
            self.say(("My rice gets mushy. How do I cook it?", "Last time it was too wet and mushy.")[i % 2])
            for side in ("1", "2"):
                self.page.locator(f"[data-side='{side}'] .turn.start").nth((n_before + 1) // 2).wait_for(
                    state="attached"
                )
            self.may_send()

    def may_send(self) -> None:
        """Waits until the reply is whole. Before that, the dots are away and its first words are there, but Enter sends nothing."""
        self.page.locator("#say button:not([aria-disabled='true'])").wait_for(state="attached")

    def say(self, text: str) -> None:
        """One message."""
        self.page.fill("#message", text)
        self.page.click("#say button")

    def send(self) -> None:
        """Sends the screen and waits for the next one."""
        with self.page.expect_navigation():
            self.press(self.page.locator(self.sender()))
        refused = self.page.query_selector(".summary")
        assert refused is None, refused.inner_text()

    def sender(self) -> str:
        """The button that sends this screen."""
        if self.page.query_selector("button[name=more]"):
            n_done = sum(key.startswith("more") for key in self.seen)
            return f"button[name=more][value={'yes' if n_done < self.n_sets else 'no'}]"
        if self.page.query_selector("button[name=consent]"):
            return "button[name=consent][value=agree]"
        return "#answers .actions button[type=submit]"


_FOCUSED = """() => { const e = document.activeElement; return {
  tag: e.tagName, type: e.type ?? '', name: e.name ?? '', value: e.value ?? '', id: e.id, classes: e.className,
  checked: e.checked ?? false, mode: e.inputMode ?? '', disabled: e.getAttribute('aria-disabled') === 'true',
  inForm: Boolean(e.closest('#answers')), isSet: Boolean(e.closest('.is-set')) }; }"""


class KeyboardRater(Rater):
    """The same, without ever touching the mouse: Tab, arrows, digits, Space, Enter."""

    def press(self, target: Any) -> None:
        wanted = target.first.evaluate_handle("e => e")
        for _ in range(80):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("wanted => document.activeElement === wanted", wanted):
                self.page.keyboard.press("Enter")
                return
        raise AssertionError("the button cannot be reached by keyboard")

    def answer(self) -> None:
        """Goes from stop to stop and answers what has the focus, until the button that sends is reached."""
        values = self.groups()
        done: set[str] = set()
        for _ in range(150):
            self.page.keyboard.press("Tab")
            focused = self.page.evaluate(_FOCUSED)
            if focused["id"] == "message":
                self.talk_to_both() if self.page.query_selector("#arena") else self.talk()
            if not focused["inForm"]:
                continue
            if focused["tag"] == "BUTTON" and focused["type"] == "submit":
                self.page.keyboard.press("Shift+Tab")
                return
            self._respond(focused, values, done)
        raise AssertionError("the end of the form cannot be reached by keyboard")

    def _respond(self, focused: dict[str, Any], values: dict[str, list[str]], done: set[str]) -> None:
        keys, name = self.page.keyboard, focused["name"]
        if focused["type"] == "radio" and name not in done:
            done.add(name)
            self._choose_by_keys(name, self.choose(name, values[name]))
        elif focused["type"] == "checkbox" and name not in done:
            done.add(name)
            keys.press("Space")
        elif focused["type"] == "range":
            keys.press("ArrowRight")
        elif focused["type"] == "select-one":
            keys.type("Aus")
        elif "rank-move down" in focused["classes"] and not focused["isSet"]:
            keys.press("Enter")
        elif focused["type"] in ("text", "textarea") and not focused["value"] and "own-words" not in focused["classes"]:
            keys.type("42" if focused["mode"] in ("decimal", "numeric") else "A few words")

    def _choose_by_keys(self, name: str, wanted: str) -> None:
        """Digits where the group takes them, else arrows until the wanted button is chosen."""
        if wanted.isdecimal() and self.page.evaluate("() => Boolean(document.activeElement.closest('[data-keys]'))"):
            self.page.keyboard.press(wanted)
        else:
            self.page.keyboard.press("Space")
        for _ in range(20):
            focused = self.page.evaluate(_FOCUSED)
            if focused["checked"] and focused["value"] == wanted:
                return
            self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"{wanted!r} cannot be chosen for {name} by keyboard")

    def say(self, text: str) -> None:
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")
